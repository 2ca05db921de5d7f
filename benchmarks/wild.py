"""The programs of tests/wild: ckad's gradient in units of NumPy's own run, and what comes first.

Each program runs in a fresh process; the package's kernels are compiled, the program is not.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from tqdm import tqdm

from benchmarks.compare import Timing
from benchmarks.latency import run_program
from benchmarks.machine import heading
from benchmarks.report import describe, duration, table

COLUMNS = ("program", "NumPy", "gradient", "gradient / NumPy", "second call", "record", "compile")
COLUMNS += ("record, warm", "rows", "recorded anew at each call, because")


def programs() -> dict[str, Any]:
    from tests.wild.registry import PROGRAMS  # the tests may be absent, the other commands run

    return {program.name: program for program in PROGRAMS}


def wild(names: Sequence[str], tiny: bool, timing: Timing) -> dict[str, Any]:
    """The answer is what the JSON file holds."""
    record = heading("wild") | {"tiny": tiny, "programs": {}}
    with TemporaryDirectory() as directory:
        copy_kernels(Path(directory))
        for name in tqdm(names, desc="wild", leave=False, disable=None):
            record["programs"][name] = measure(name, tiny, timing, Path(directory))
    return record


def copy_kernels(directory: Path) -> None:
    """The package's own kernels, as far as they were compiled before."""
    from ckad.cache import KERNELS, cache_dir

    for kernels in cache_dir().glob(f"{KERNELS}*"):
        shutil.copytree(kernels, directory / kernels.name)


def measure(name: str, tiny: bool, timing: Timing, cache: Path) -> dict[str, Any]:
    size = "tiny" if tiny else "full"
    arguments = name, size, timing.rounds, timing.turn_seconds, timing.limit_seconds
    found = run_program("wild", arguments, cache)
    if "error" in found:
        return found
    numpy, gradient = (median(found["turns"][kind]) for kind in ("numpy", "gradient"))
    return found | {
        "numpy": numpy,
        "gradient": gradient,
        "ratio": gradient / numpy,
    }


def markdown(record: Mapping[str, Any]) -> str:
    found = record["programs"]
    rows = [row(name, figures) for name, figures in found.items()]
    right = [figures for figures in found.values() if "error" not in figures]
    if right:
        rows += [summary("median", median, right), summary("worst", max, right)]
    anew = sum(bool(figures["anew"]) for figures in right)
    taken = f"{len(right)} of {len(found)} programs are taken; each call records {anew} anew."
    return f"{describe(dict(record))}\n\n{table(COLUMNS, rows)}\n\n{taken}\n"


def row(name: str, figures: Mapping[str, Any]) -> tuple[str, ...]:
    if "error" in figures:
        return name, figures["error"], *[""] * (len(COLUMNS) - 2)
    times = duration(figures["numpy"]), duration(figures["gradient"])
    return name, *times, *shown(figures), figures["anew"]


def summary(title: str, of: Any, right: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    keys = "ratio", "second", "record", "compile", "record_warm", "rows"
    return title, "", "", *shown({key: of([f[key] for f in right]) for key in keys}), ""


def shown(figures: Mapping[str, Any]) -> tuple[str, ...]:
    first = [duration(figures[key]) for key in ("second", "record", "compile", "record_warm")]
    return f"{figures['ratio']:.2f}", *first, f"{figures['rows']:,.0f}"
