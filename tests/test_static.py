"""What is checked without running the code: style, the layers of the architecture, types."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys

import pytest

TOOLS = {
    "ruff": ["-m", "ruff", "check", "ckad", "tests", "examples", "benchmarks"],
    "import-linter": ["-c", "from importlinter.cli import lint_imports_command as run; run()"],
    "mypy": ["-m", "mypy"],
}
MODULES = {"ruff": "ruff", "import-linter": "importlinter", "mypy": "mypy"}


@pytest.mark.parametrize("tool", TOOLS)
def test_the_source_tree_passes(tool, checkout):
    pytest.importorskip(MODULES[tool])
    command = [sys.executable, *TOOLS[tool]]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_few_lines_and_no_module_are_left_out_of_the_types(checkout):
    assert "ignore_errors" not in (checkout / "pyproject.toml").read_text()
    lines = [x for p in checkout.glob("ckad/**/*.py") for x in p.read_text().splitlines()]
    ignored = [x for x in lines if "type: ignore" in x]
    assert len(ignored) <= 30
    assert [x for x in ignored if "type: ignore[" not in x] == []


def test_every_folder_is_a_package(checkout):
    """Import-linter and the doctests pass over folders without an ``__init__.py``."""
    folders = {path.parent for path in checkout.glob("ckad/**/*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


@pytest.mark.parametrize("layer", ["trace", "passes", "tape", "engines", "rules", "transforms"])
def test_modules_are_imported_at_the_head_of_a_module(layer, checkout):
    """An import inside a function holds a circle open."""
    found = [
        f"{path}:{node.lineno}"
        for path in checkout.glob(f"ckad/{layer}/**/*.py")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and "ckad" in ast.unparse(node)
    ]
    assert found == []


def test_no_modules_import_each_other_in_a_circle():
    """Of any size, within a folder too, and imports for types alone count."""
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("ckad", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    order = [*graphlib.TopologicalSorter(imports).static_order()]  # CycleError names a circle
    assert order.index("ckad.errors") < order.index("ckad.transforms.call")


def test_rooms_are_small(checkout):
    """A folder has at most 15 files, a module at most 400 lines."""
    modules = list(checkout.glob("ckad/**/*.py"))
    assert [p for p in modules if len(p.read_text().splitlines()) > 400] == []
    folders = {p.parent for p in modules}
    assert [f for f in folders if len(list(f.glob("*.py"))) > 15] == []


def test_classes_are_whole_where_they_are_written(checkout):
    """No module of the front end sets attributes of classes when it is imported."""
    found = []
    for path in checkout.glob("ckad/trace/**/*.py"):
        for statement in ast.parse(path.read_text()).body:
            if not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                calls = [x.func for x in ast.walk(statement) if isinstance(x, ast.Call)]
                found += [path for x in calls if isinstance(x, ast.Name) and x.id == "setattr"]
    assert found == []


def test_the_only_binary_files_are_pictures(checkout):
    """Compiled code, say, that a program under test has left where it ran, is not committed."""
    listed = subprocess.run(["git", "ls-files"], cwd=checkout, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no git checkout")
    files = [path for name in listed.stdout.splitlines() if (path := checkout / name).is_file()]
    binary = [path for path in files if b"\0" in path.read_bytes()]
    assert [path for path in binary if path.suffix != ".png"] == []
