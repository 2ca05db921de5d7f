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
        script.write_text("\n".join((code[0], code[1], code[at])))
        runpy.run_path(str(script))
    shown = text.split(code[at])[1].split("```")[2].strip()
    seconds = r"about \S+ s predicted"  # of the machine at hand
    found = re.sub(seconds, re.search(seconds, shown)[0], printed.getvalue())
    assert found.strip() == shown


def test_the_map_names_every_module_of_the_front_end():
    page = (CHECKOUT / "docs/architecture.md").read_text()
    table = page[page.index("## One line per module") : page.index("## Decisions, and why")]
    named = set(re.findall(r"\w+", table))
    modules = {path.stem for path in (CHECKOUT / "ckad/trace").rglob("[!_]*.py")}
    assert len(modules) > 100
    assert modules - named == set()
