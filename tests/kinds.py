"""Which functions take which kinds of values, as ``docs/numpy.md`` shows it.

``python -m tests.kinds`` writes the table into the page anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ckad.trace import record
from ckad.trace.dispatch import COMPLEX, PART, cell, rows
from ckad.trace.primitives.complex.ufuncs import LOWERINGS
from ckad.trace.source.library import asserted

PAGE = Path(__file__).parents[1] / "docs" / "numpy.md"
BEGIN, END = "<!-- from tests/kinds.py -->\n", "<!-- to here -->\n"
#: What takes which kinds beside arrays of real numbers.
TITLES = {
    (True, True): "arrays, parts, complex arrays",
    (False, True): "arrays, complex arrays",
    (True, False): "arrays, parts",
    (False, False): "arrays",
}


def _is_a_function(key):
    named = callable(key) and not isinstance(key, type) and hasattr(key, "__name__")
    module = getattr(key, "__module__", None) or ""
    return named and (
        isinstance(key, np.ufunc) or (module.startswith("numpy") and "polynomial" not in module)
    )


def _name(key):
    if isinstance(key, np.ufunc):
        return key.__name__
    package = key.__module__.partition("._")[0].removeprefix("numpy").lstrip(".")
    package = {"lib.scimath": "emath"}.get(package, package)
    return f"{package}.{key.__name__}" if package and "lib" not in package else key.__name__


def _takes(key):
    complex_ = cell(key, COMPLEX) is not None
    if isinstance(key, np.ufunc):
        complex_ = key in LOWERINGS or (key.signature is not None and complex_)
    return cell(key, PART) is not None, complex_


def table() -> str:
    """The functions of NumPy by the kinds that they take, in Markdown."""
    assert record.MODULES  # which fill the rows, as does `asserted`
    assert asserted
    found: dict[tuple[bool, bool], set[str]] = {kinds: set() for kinds in TITLES}
    for key in filter(_is_a_function, rows()):
        if isinstance(key, np.ufunc) and np.__dict__.get(key.__name__) is not key:  # SciPy's
            continue
        found[_takes(key)].add(_name(key))
    lines = [
        f"| {title} | {' '.join(f'`{name}`' for name in sorted(found[kinds]))} |\n"
        for kinds, title in TITLES.items()
    ]
    return "".join(["| takes | functions |\n", "| --- | --- |\n", *lines])


def shown() -> str:
    return PAGE.read_text().split(BEGIN)[1].split(END)[0]


def described() -> list[str]:
    """The rows of the page's table that says what functions do, above that of the kinds."""
    above = PAGE.read_text().split(BEGIN)[0].split("## Functions")[1]
    return [line for line in above.splitlines() if line.startswith("| ")]


if __name__ == "__main__":
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.split(END)[1])
