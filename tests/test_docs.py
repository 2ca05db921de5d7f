"""Every example that the documentation shows runs: Markdown files and docstrings."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import importlib.util
import io
import pkgutil
import re
import runpy
import tomllib
from pathlib import Path

import pytest

import ckad

CHECKOUT = Path(__file__).parents[1]
PAGES = [
    page
    for page in sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md")])
    if re.search(r"^```python$", page.read_text(), re.MULTILINE)
]
MODULES = ["ckad", *(found.name for found in pkgutil.walk_packages(ckad.__path__, "ckad."))]


def shows_examples(module):
    text = Path(importlib.util.find_spec(module).origin).read_text()
    return re.search(r"^\s*>>> ", text, re.MULTILINE) is not None


SET_UP = ("pip install '.[demo]' && ckad demo", "pip install '.[test]' && pytest")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page, tmp_path, monkeypatch):
    parsers = pytest.importorskip("sybil.parsers.markdown")
    from sybil.document import Document

    monkeypatch.chdir(tmp_path)  # where an example may write a figure
    examples = [*Document.parse(str(page), parsers.PythonCodeBlockParser()).examples()]
    assert examples
    for example in examples:
        example.evaluate()


@pytest.mark.parametrize("name", [*filter(shows_examples, MODULES)])
def test_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, attempted = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert failed == 0
    assert attempted > 0


def test_every_module_can_be_imported():
    assert [importlib.import_module(name).__name__ for name in MODULES] == MODULES


def test_the_readme_shows_both_set_up_lines():
    lines = (CHECKOUT / "README.md").read_text().splitlines()
    assert [line for line in lines if line in SET_UP] == list(SET_UP)


def test_the_readme_shows_the_plan_that_is_printed(tmp_path):
    text = (CHECKOUT / "README.md").read_text()
    code = re.findall(r"(?:```|code-block: )python\n(.*?)(?:```|--->)", text, re.DOTALL)
    at = next(k for k, block in enumerate(code) if "ckad.plan(" in block)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        script = tmp_path / "readme.py"
        script.write_text("\n".join((code[0], code[at])))
        runpy.run_path(str(script))
    shown = text.split(code[at])[1].split("```")[2].strip()
    seconds = r"about \S+ s predicted"  # of the machine at hand
    found = re.sub(seconds, re.search(seconds, shown)[0], printed.getvalue())
    assert found.strip() == shown


#: Folders with a file per family, which the map names as a whole.
FAMILIES = ("engines/native/kernels", "rules/vector_math")


def test_the_map_names_every_module_and_no_other():
    page = (CHECKOUT / "docs/architecture.md").read_text()
    table = page[page.index("## One line per module") : page.index("## Decisions, and why")]
    package = CHECKOUT / "ckad"
    own = {f"{package / family}" for family in FAMILIES}
    modules = {x for x in package.rglob("[!_]*.py") if f"{x.parent}" not in own}
    assert len(modules) > 500
    named = set(re.findall(r"\w+", table))
    assert {x.stem for x in modules} - named == set()
    for section in table.split("| **`")[1:]:
        here = package / section.partition("/`**")[0]
        below = {x.name for x in (*here.rglob("*.py"), *package.glob("*.py"))}
        assert set(re.findall(r"`(\w+\.py)`", section)) - below == set(), here


def test_the_layers_are_those_that_are_checked():
    checked = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["importlinter"]
    table = (
        (CHECKOUT / "CONTRIBUTING.md").read_text().partition("| layer |")[2].partition("\n\n")[0]
    )
    shown = [re.findall(r"`(\w+)`", line.split("|")[1]) for line in table.splitlines()[2:]]
    assert shown == [re.findall(r"\w+", x) for x in checked["contracts"][0]["layers"]]
