"""Every example that the documentation shows runs: Markdown files and docstrings."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import importlib.util
import io
import linecache
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


def test_the_life_of_one_line_prints_what_it_shows():
    """Each stage's lines, without the page's remarks, are among those that are printed."""
    page = (CHECKOUT / "docs/architecture.md").read_text().partition("## The whole")[0]
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    names = {}
    filename = "life.py"
    lines = [line + "\n" for line in code.splitlines()]
    linecache.cache[filename] = (len(code), None, lines, filename)
    exec(compile(code, filename, "exec"), names)
    trace, explained, plan = (eval(x, names) for x in re.findall(r"`print\((.+?)\)`", page))
    program = ckad.value_and_grad(names["spread"], (0, 1), engine="native")
    compiled = program.compiled(names["u"], names["k"])
    stages = (trace, explained, compiled.tape, compiled.text)
    shown = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert len(shown) == len(stages)
    for text, printed in zip(shown, stages, strict=True):
        there = {_bare(line) for line in str(printed).splitlines()}
        assert {_bare(line) for line in text.splitlines()} - there == set()
    assert "832 bytes" in page
    assert "of 832 B" in str(plan)


def _bare(line):
    """A line without indentation and remarks; attributes of loops that the page leaves out."""
    return re.sub(r"(n_carry=1), .*\)", r"\1)", line.partition("#")[0].strip().replace("...", "x"))


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
