"""What is checked without running the code: style, the layers of the architecture, public types."""

from __future__ import annotations

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


def test_every_folder_is_a_package(checkout):
    """Import-linter and the doctests pass over folders without an ``__init__.py``."""
    folders = {path.parent for path in checkout.glob("ckad/**/*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []
