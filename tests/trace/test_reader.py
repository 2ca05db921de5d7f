"""The source of a function is used only if it is certainly the source of what would run."""

from __future__ import annotations

import importlib.util
import linecache
import sys

import numpy as np
import pytest

import ckad
from ckad.trace.memory import context
from ckad.trace.source.names.reader import definition_of


def imported(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text, name):
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        linecache.clearcache()
        return path, imported(path, name)

    return write


LOOP = "def f(x):\n    for k in range(10):\n        x = {} * x\n    return x\n"


def test_a_file_that_was_edited_after_its_import_is_not_taken(written):
    path, module = written(LOOP.format("0.5"), "edited")
    path.write_text(LOOP.format("0.7"))
    linecache.clearcache()
    assert definition_of(module.f) is None
    assert ckad.grad(module.f)(1.0) == 0.5**10  # Python runs what was imported


def test_a_file_that_is_gone_is_not_missed(written):
    path, module = written(LOOP.format("0.5"), "gone")
    path.unlink()
    linecache.clearcache()
    assert definition_of(module.f) is None
    assert ckad.grad(module.f)(1.0) == 0.5**10


def test_lambdas_on_one_line_are_told_apart(written):
    _, module = written(
        "fs = [lambda x: 2.0 * x, lambda x: 3.0 * x, lambda x, y=4.0: y * x]\n", "fs"
    )
    assert [ckad.grad(f)(1.0) for f in module.fs] == [2.0, 3.0, 4.0]
    assert all(definition_of(f) is not None for f in module.fs)


def test_functions_of_one_name_are_told_apart(written):
    text = "def f(x):\n    return 2.0 * x\ng = f\ndef f(x):\n    return 3.0 * x\n"
    _, module = written(text, "twice")
    assert (ckad.grad(module.g)(1.0), ckad.grad(module.f)(1.0)) == (2.0, 3.0)


def test_decorators_and_closures_are_kept(written):
    text = (
        "import functools\n"
        "def doubled(f):\n"
        "    @functools.wraps(f)\n"
        "    def g(*args):\n"
        "        return 2.0 * f(*args)\n"
        "    return g\n"
        "def make(a):\n"
        "    @doubled\n"
        "    def f(x):\n"
        "        for _ in range(6):\n"
        "            x = a * x\n"
        "        return x\n"
        "    return f\n"
    )
    _, module = written(text, "decorated")
    f = module.make(2.0)
    assert ckad.grad(f)(1.0) == 2.0 * 2.0**6
    assert ckad.plan(f, 1.0).n_steps == 6
    assert ckad.grad(module.make(3.0))(1.0) == 2.0 * 3.0**6


def test_code_in_a_document_is_read(tmp_path):
    page = tmp_path / "page.md"
    lines = ["# Title", "", "```python", *LOOP.format("0.5").splitlines(), "```"]
    page.write_text("\n".join(lines) + "\n")
    names: dict[str, object] = {}
    exec(compile("\n" * 3 + LOOP.format("0.5"), str(page), "exec"), names)
    assert ckad.plan(names["f"], 1.0).n_steps == 10


def test_a_long_loop_whose_source_is_not_known_says_what_to_do(monkeypatch):
    monkeypatch.setattr(context, "MOST_ROWS", 2_000)
    names: dict[str, object] = {"np": np}
    exec("def f(x):\n    for k in range(10**7):\n        x = x * 0.5\n    return x\n", names)
    with pytest.raises(ckad.errors.TraceError, match=r"more than 2,000 operations.*fori_loop"):
        ckad.grad(names["f"])(1.0)
