"""Budgets from the least to all that is kept: what a plan says of memory and time, and what it is.

Plans are asked for before the first run. Peaks are the growth of this process's resident memory in
one run; times are the least of some runs, beside the first. Where other processes keep the machine
busy, the processor's time (CPU) says more of programs without a disk.
"""

from __future__ import annotations

import importlib
import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.machine import heading
from benchmarks.memory import peak_growth
from benchmarks.report import describe, table
from ckad.errors import BudgetError, RecomputeWarning

#: Programs with sizes at which each budget takes seconds at the most.
PROGRAMS: dict[str, dict[str, float]] = {
    "burgers": {"size": 3000, "n_steps": 2000},
    "gray_scott": {"size": 128, "n_steps": 300},
    "heat1d": {"size": 10_000, "n_steps": 2000},
    "heat2d": {"size": 128, "n_steps": 500},
    "lorenz63": {"n_steps": 500_000, "horizon": 5.0},
    "lorenz96": {"size": 40, "n_steps": 20_000, "horizon": 4.0},
    "n_body": {"n_bodies": 6, "n_steps": 20_000, "horizon": 20.0},
    "neural_ode": {"batch": 32, "width": 64, "n_steps": 200, "horizon": 2.0},
    "shallow_water": {"size": 128, "n_steps": 200},
    "van_der_pol": {"n_steps": 300_000, "horizon": 60.0},
    "wave2d": {"size": 128, "n_steps": 500},
}
COLUMNS = (
    "program",
    "memory",
    "disk",
    "schedule",
    "factor",
    "peak / budget",
    "planned / peak",
    "predicted s",
    "least s (first)",
    "predicted / least",
    "predicted / CPU",
)
#: Bytes by which a process grows beside what a call allocates.
PAGES = 2**20
DISK = "1 GiB"
#: How often steps run at the most on the average.
DEAR = 8


def budgets(
    names: Sequence[str], points: int, rounds: int, directory: Path | None, threads: int, tiny: bool
) -> dict[str, Any]:
    """Of each program at ``points`` budgets, with memory alone and with disk."""
    record = heading("budgets", ("ckad",))
    record |= {"rounds": rounds, "threads": threads, "points": []}
    warnings.simplefilter("ignore", RecomputeWarning)  # small budgets are what this is about
    for name in names:
        case = importlib.import_module(f"benchmarks.cases.{name}")
        settings = case.CASE.tiny if tiny else PROGRAMS[name]
        value, inputs = case.ckad_value(settings), case.inputs(settings)
        for memory in sweep(value, inputs, points, threads):
            for disk in (None, DISK):
                found = point(value, inputs, memory, disk, rounds, directory, threads)
                record["points"].append({"program": name, "memory": memory, "disk": disk} | found)
    return record


def sweep(value: Any, inputs: Sequence[np.ndarray], points: int, threads: int) -> Iterator[int]:
    """Bytes in equal ratios, from the least to what keeping everything takes.

    Where steps would run more than DEAR times under the least it begins with twice as much, and so
    on.
    """
    import ckad

    def planned(**options: Any) -> Any:
        numbers = tuple(range(len(inputs)))
        return (
            ckad.value_and_grad(value, numbers, threads=threads, **options).compiled(*inputs).plan
        )

    most = planned(schedule="store_all").peak_bytes
    try:
        planned(memory=1)
    except BudgetError as error:
        found = re.search(r"Raise memory= to at least ([\d,]+)", str(error))
        assert found is not None
        least = int(found[1].replace(",", ""))
    while least < most and planned(memory=least).recompute_factor > DEAR:
        least *= 2
    for k in range(points):
        yield round(least * (max(most, least) / least) ** (k / max(1, points - 1)))


def point(
    value: Any,
    inputs: Sequence[np.ndarray],
    memory: int,
    disk: str | None,
    rounds: int,
    directory: Path | None,
    threads: int,
) -> dict[str, Any]:
    import ckad
    from ckad.engines import arena

    ckad.clear_caches()
    with tempfile.TemporaryDirectory(dir=directory) as place:
        budget = ckad.Budget(memory, disk, place if disk else None)
        about = {"memory": budget, "threads": threads}
        gradient = ckad.value_and_grad(value, tuple(range(len(inputs))), **about)
        gradient.compiled(*inputs)
        began = perf_counter()
        plan = gradient.plan(*inputs)
        asked = perf_counter() - began
        peaks: list[int | None] = []
        seconds, busy = [], []

        def once() -> None:
            start, used = perf_counter(), process_time()
            gradient(*inputs)
            seconds.append(perf_counter() - start)
            busy.append(process_time() - used)

        for _ in range(rounds):
            once()
        timed = [*seconds], [*busy]
        for _ in range(2):
            arena.clear()
            peaks.append(peak_growth(once))
    growth = None if None in peaks else max(peak for peak in peaks if peak is not None)
    return {
        "schedule": plan.schedule.family if plan.schedule else "none",
        "disk_slots": plan.schedule.n_disk_slots if plan.schedule else 0,
        "factor": plan.recompute_factor,
        "planned_bytes": plan.peak_bytes,
        "peak_bytes": growth,
        "predicted_seconds": plan.seconds,
        "plan_seconds": asked,
        "seconds": timed[0],
        "busy_seconds": timed[1],
    }


def ratio(found: dict[str, Any]) -> float | None:
    """Predicted seconds in units of the measured ones."""
    if found["predicted_seconds"] is None:
        return None
    return float(found["predicted_seconds"]) / min(found["seconds"])


def over(found: dict[str, Any]) -> float | None:
    """The measured peak in units of the budget, without the pages that any run touches."""
    if found["peak_bytes"] is None:
        return None
    return max(0, int(found["peak_bytes"]) - PAGES) / int(found["memory"])


def markdown(record: dict[str, Any]) -> str:
    rows = [_row(found) for found in record["points"]]
    return f"{describe(record)}\n\n{table(COLUMNS, rows)}\n\n{summary(record)}\n"


def summary(record: dict[str, Any]) -> str:
    ratios = [x for found in record["points"] if (x := ratio(found)) is not None]
    peaks = [x for found in record["points"] if (x := over(found)) is not None]
    near = sum(0.8 <= x <= 1.25 for x in ratios)
    lines = [f"{len(record['points'])} points."]
    if ratios:
        lines.append(
            f"Time predicted within 25 %: {near} of {len(ratios)}; predicted / measured "
            f"{min(ratios):.2f} to {max(ratios):.2f}."
        )
    if peaks:
        held = sum(x <= 1.05 for x in peaks)
        lines.append(
            f"Peak at most 5 % above the budget (beside {PAGES // 1024:,} KiB of pages): {held} of "
            f"{len(peaks)}; at the most {max(peaks):.3f} of it."
        )
    return " ".join(lines)


def _row(found: dict[str, Any]) -> tuple[str, ...]:
    where = f", {found['disk_slots']} on disk" if found["disk_slots"] else ""
    peak, predicted = over(found), ratio(found)
    first, least = found["seconds"][0], min(found["seconds"])
    share = found["planned_bytes"] / found["peak_bytes"] if found["peak_bytes"] else None
    return (
        found["program"],
        f"{found['memory']:,}",
        found["disk"] or "",
        f"{found['schedule']}{where}",
        f"{found['factor']:.2f}",
        "" if peak is None else f"{peak:.3f}",
        "" if share is None else f"{share:.2f}",
        "" if predicted is None else f"{found['predicted_seconds']:.3g}",
        f"{least:.3g} ({first:.3g})",
        "" if predicted is None else f"{predicted:.2f}",
        ""
        if predicted is None
        else f"{found['predicted_seconds'] / min(found['busy_seconds']):.2f}",
    )
