"""What some programs end with: truth values computed with, items looked at until one decides.

It is drawn by numbers of its own, so that all else of a seed's program is as it is without.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .choices import Choices
from .program import NAME
from .scope import Shape

#: One of so many programs has a coda.
ONE_OF = 8

_TALLY = """
def tally(values, level):
    n = 0
    def found(x):
        nonlocal n
        n += 1
        return x {op} level
    met = {which}({items})
    return 0.1 * n + 0.05 * met
"""
_ITEMS = (
    "found(x) for x in values",
    "map(found, values)",
    "[found(x) for x in values]",
    "found(x + y) for x in values for y in values[1:]",
)
_SUMS = (
    "0.1 * (({a} > {p}) + ({b} > {q}))",
    "0.1 * (True + ({a} > {p}))",
    "0.1 * (({a} > {p}) * ({b} > {q}) + ({a} < {q}))",
    "0.1 * ~({a} > {p})",
    "0.1 * (({a} > {p}) - int({b} > {q})) // 2",
    "0.1 * sum([{a} > {p}, {b} > {q}], True)",
)


def _numbers(x: str, shape: Shape | None) -> tuple[str, ...]:
    """Of NumPy's class, and of Python's."""
    if shape is None:
        return x, f"0.5 * {x}"
    place = ", ".join("0" * len(shape))
    return f"{x}[{place}]", f"{x}.item({place})", f"0.5 * {x}[{place}]"


def with_coda(seed: int, text: str, arguments: Mapping[str, Shape | None]) -> str:
    """The module's text; ``program`` adds to what it returns where the seed says so."""
    if seed % ONE_OF != 5:
        return text
    c = Choices(seed + 10**9)
    numbers = [form for x, s in arguments.items() for form in _numbers(x, s)]
    a, b = c.pick(numbers), c.pick(numbers)
    p, q = c.number(-0.6, 0.6), c.number(-0.6, 0.6)
    if c.chance(0.5):
        which, op = c.pick(("any", "all")), c.pick("<>")
        text += _TALLY.format(which=which, op=op, items=c.pick(_ITEMS))
        coda = f"tally(({a}, {b}, {c.pick(numbers)}), {p})"
    else:
        coda = c.pick(_SUMS).format(a=a, b=b, p=p, q=q)
    given = ", ".join(arguments)
    whole = re.sub(rf"\bdef {NAME}\(", "def whole(", text)
    return f"{whole}\n\ndef {NAME}({given}):\n    return whole({given}) + {coda}\n"
