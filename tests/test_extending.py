"""What docs/extending.md adds to the package works: a NumPy function, an op, a pass, a schedule,
a solver.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

RUN = """
import doctest, sys
import numpy as np
import ckad

test = doctest.DocTestParser().get_doctest(
    sys.stdin.read(), {"np": np, "ckad": ckad}, "extending", None, 0
)
result = doctest.DocTestRunner().run(test)
print(ckad.__file__, result.attempted, result.failed)
"""


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def apply(diff: str, root: Path) -> None:
    """Each hunk in place of the lines that it shows as there already, which occur once."""
    for part in re.split(r"^--- ", diff, flags=re.MULTILINE)[1:]:
        name, _, hunks = part.partition("\n")
        path = root / name.removeprefix("/dev/null ")
        text = "" if name.startswith("/dev/null ") else path.read_text()
        for hunk in hunks.split("@@\n"):
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] != "+")
            after = "".join(line[1:] for line in lines if line[0] != "-")
            assert (text.count(before) if before else not text) == 1, f"{name}:\n{before}"
            text = text.replace(before, after) if before else after
        path.write_text(text)


def test_what_the_page_adds_works(checkout: Path, tmp_path: Path) -> None:
    page = (checkout / "docs/extending.md").read_text()
    shutil.copytree(
        checkout / "ckad", tmp_path / "ckad", ignore=shutil.ignore_patterns("__pycache__")
    )
    diffs, examples = blocks(page, "diff"), blocks(page, "pycon")
    assert len(diffs) == len(examples) == 5
    for diff in diffs:
        apply(diff, tmp_path)
    shutil.copy(checkout / "pyproject.toml", tmp_path)
    for options in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *options, "-q", "ckad"]
        subprocess.run(command, cwd=tmp_path, check=True)
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "CKAD_CACHE_DIR": str(tmp_path / "c")}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input="\n".join(examples),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [str(tmp_path / "ckad/__init__.py"), "19", "0"], (
        done.stdout + done.stderr
    )
