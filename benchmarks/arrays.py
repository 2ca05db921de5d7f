"""The programs of tests/programs that take arrays, on larger ones: gradients in units of values.

Each program runs in a fresh process, on one thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tqdm import tqdm

from benchmarks.compare import Timing
from benchmarks.latency import run_program
from benchmarks.machine import heading
from benchmarks.report import describe, duration, table
from benchmarks.wild import copy_kernels

COLUMNS = ("program", "elements", "value", "gradient", "gradient / value")
#: What is asked of each.
MOST = 4.0


def programs() -> list[str]:
    import numpy as np
    import optree

    from tests.programs.registry import PROGRAMS  # the tests may be absent, other commands run

    return [
        program.name
        for program in PROGRAMS
        if any(
            isinstance(x, np.ndarray)
            for x in optree.tree_leaves(program.make_arguments(np.random.default_rng(0)))
        )
    ]


def arrays(names: Sequence[str], tiny: bool, timing: Timing) -> dict[str, Any]:
    """The answer is what the JSON file holds."""
    record = heading("arrays") | {"tiny": tiny, "programs": {}}
    size = "tiny" if tiny else "full"
    with TemporaryDirectory() as directory:
        copy_kernels(Path(directory))
        for name in tqdm(names, desc="arrays", leave=False, disable=None):
            arguments = name, size, timing.rounds, timing.turn_seconds, timing.limit_seconds
            record["programs"][name] = run_program("arrays", arguments, Path(directory))
    return record


def markdown(record: Mapping[str, Any]) -> str:
    found = record["programs"]
    right = {name: x for name, x in found.items() if "error" not in x}
    ordered = sorted(right, key=lambda name: -ratio(right[name]))
    above = sum(ratio(x) > MOST for x in right.values())
    rows = [row(name, right[name]) for name in ordered]
    rows += [(name, x["error"], "", "", "") for name, x in found.items() if "error" in x]
    said = f"{len(right)} of {len(found)} programs ran; {above} take more than {MOST:g}."
    return f"{describe(dict(record))}\n\n{table(COLUMNS, rows)}\n\n{said}\n"


def ratio(figures: Mapping[str, Any]) -> float:
    return least(figures, "gradient") / least(figures, "value")


def least(figures: Mapping[str, Any], kind: str) -> float:
    return min(figures["turns"][kind])


def row(name: str, figures: Mapping[str, Any]) -> tuple[str, ...]:
    times = duration(least(figures, "value")), duration(least(figures, "gradient"))
    return name, f"{figures['size']:,}", *times, f"{ratio(figures):.2f}"
