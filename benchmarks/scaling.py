"""How ckad's gradient grows with steps and with cells, and what it costs under less memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.case import Settings
from benchmarks.cases import CASES
from benchmarks.compare import Timing
from benchmarks.fit import exponent
from benchmarks.machine import heading
from benchmarks.report import describe, duration, settings_text, size, table
from benchmarks.worker import FormError, Worker

CELL_STEPS = 2**24
"""Cells times steps of every point along `cells`: each takes about the same time and memory."""


@dataclass(frozen=True)
class Axis:
    """One quantity that is varied: the case, the settings of each point, what a time is divided by.

    `x` is the count of `Case` that varies. Time is that of a call, or of one of its steps. A call
    at `least` does next to nothing, so that its time is what every call costs beside its work.
    """

    case: str
    x: str
    per_step: bool
    points: Sequence[Settings]
    least: Settings


def along_steps(counts: Sequence[int]) -> Axis:
    points = [{"n_steps": n, "horizon": 10.0} for n in (*counts, 1)]
    return Axis("lorenz63", "steps", False, points[:-1], least=points[-1])


def along_cells(sides: Sequence[int], cell_steps: int) -> Axis:
    points = [{"size": n, "n_steps": max(4, cell_steps // n**2)} for n in sides]
    return Axis("gray_scott", "cells", True, points, least={"size": 4, "n_steps": 1})


AXES = {
    "steps": along_steps([10**k for k in range(3, 8)]),
    "cells": along_cells([10, 32, 100, 316, 1000, 3162], CELL_STEPS),
}
TINY_AXES = {"steps": along_steps([100, 1000]), "cells": along_cells([8, 16], 1024)}
BUDGET_CASE = "gray_scott"
BUDGETS = 8
PARTS = (*AXES, "budget")


def scaling(
    parts: Sequence[str], tiny: bool, timing: Timing, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The answer is what the JSON file holds; `options` are those of ``ckad.value_and_grad``."""
    record = heading("scaling") | {"options": dict(options), "axes": {}}
    for name, axis in (TINY_AXES if tiny else AXES).items():
        if name in parts:
            record["axes"][name] = along(name, axis, timing, options)
    if "budget" in parts:
        case = CASES[BUDGET_CASE]
        settings = case.tiny if tiny else case.defaults
        engine = {key: value for key, value in options.items() if key == "engine"}
        record["budget"] = under_budgets(settings, 2 if tiny else BUDGETS, timing, engine)
    return record


# Along an axis -----------------------------------------------------------------------------------


def along(name: str, axis: Axis, timing: Timing, options: Mapping[str, Any]) -> dict[str, Any]:
    overhead = measured(axis.case, axis.least, timing, options)["call_seconds"]
    bar = tqdm(axis.points, desc=f"scaling: {name}", leave=False, disable=None)
    points = [point(axis, settings, timing, options, overhead) for settings in bar]
    sizes = [p[axis.x] for p in points]
    return {
        "case": axis.case,
        "x": axis.x,
        "per_step": axis.per_step,
        "overhead_seconds": overhead,
        "points": points,
        "exponent": exponent(sizes, [p["seconds"] for p in points]),
        "exponent_of_work": exponent(sizes, [p["work_seconds"] for p in points]),
    }


def point(
    axis: Axis,
    settings: Settings,
    timing: Timing,
    options: Mapping[str, Any],
    overhead: float,
) -> dict[str, Any]:
    case = CASES[axis.case]
    steps = case.steps(settings)
    figures = measured(axis.case, settings, timing, options)
    call, parts = figures["call_seconds"], steps if axis.per_step else 1
    return {
        "settings": dict(settings),
        "steps": steps,
        "cells": case.cells(settings),
        **figures,
        "seconds": call / parts,
        "work_seconds": max(call - overhead, 1e-9) / parts,
    }


def measured(
    case: str, settings: Settings, timing: Timing, options: Mapping[str, Any]
) -> dict[str, Any]:
    """First call, peak memory and the median of the turns, in a process of its own."""
    form, limit = CASES[case].first_form("ckad"), timing.limit_seconds
    with Worker(case, "ckad", form, settings, options, limit) as worker:
        figures = worker.ask("first")
        figures["peak_growth"] = worker.ask("steady_memory")
        turns = [worker.ask("turn", timing.turn_seconds) for _ in range(timing.rounds)]
    return figures | {"turns": turns, "call_seconds": median(turns)}


# Under a budget ----------------------------------------------------------------------------------


def under_budgets(
    settings: Settings, n_budgets: int, timing: Timing, options: Mapping[str, Any]
) -> dict[str, Any]:
    """From the least that ckad accepts to what keeping everything takes, in equal ratios."""
    everything = measured(BUDGET_CASE, settings, timing, {**options, "schedule": "store_all"})
    low = minimum(settings, timing, options)
    high = max(low, everything["peak_growth"] or everything["first_peak_growth"] or 0)
    points = []
    budgets = np.geomspace(low, high, n_budgets).astype(int).tolist()
    for budget in tqdm(budgets, desc="scaling: budget", leave=False, disable=None):
        figures = measured(BUDGET_CASE, settings, timing, {**options, "memory": max(low, budget)})
        points.append({"budget": max(low, budget)} | figures)
    return {
        "case": BUDGET_CASE,
        "settings": dict(settings),
        "minimum": low,
        "points": points,
        "store_all": everything,
    }


def minimum(settings: Settings, timing: Timing, options: Mapping[str, Any]) -> int:
    """The least budget, which the error about a smaller one names."""
    form, limit = CASES[BUDGET_CASE].first_form("ckad"), timing.limit_seconds
    with Worker(BUDGET_CASE, "ckad", form, settings, {**options, "memory": 1}, limit) as worker:
        try:
            worker.ask("first")
        except FormError as error:
            named = re.search(r"at least ([\d,]+)", str(error))
            if named is None:
                raise
            return int(named[1].replace(",", ""))
    raise FormError("a gradient within one byte: the budget is not respected")


# As Markdown -------------------------------------------------------------------------------------


def markdown(record: Mapping[str, Any]) -> str:
    parts = [describe(record)]
    parts += [axis_table(name, axis) for name, axis in record["axes"].items()]
    if "budget" in record:
        parts.append(budget_table(record["budget"]))
    return "\n\n".join(parts) + "\n"


def axis_table(name: str, axis: Mapping[str, Any]) -> str:
    seconds = "time per step" if axis["per_step"] else "time"
    growth = [f"{value:.2f}" for value in local_exponents(axis)]
    rows = [
        (settings_text(p["settings"]), f"{p[axis['x']]:,}", duration(p["seconds"]), local)
        for p, local in zip(axis["points"], ["", *growth], strict=True)
    ]
    title = (
        f"**{name}**, {axis['case']}: exponent {axis['exponent']:.3f}; without the "
        f"{duration(axis['overhead_seconds'])} that every call takes, "
        f"{axis['exponent_of_work']:.3f}."
    )
    return f"{title}\n\n{table(('settings', axis['x'], seconds, 'exponent from above'), rows)}"


def local_exponents(axis: Mapping[str, Any]) -> list[float]:
    """Between neighbouring points, which shows where the growth changes."""
    return [
        exponent([a[axis["x"]], b[axis["x"]]], [a["seconds"], b["seconds"]]) or 0.0
        for a, b in pairwise(axis["points"])
    ]


def budget_table(budget: Mapping[str, Any]) -> str:
    points = [(size(p["budget"]), p) for p in budget["points"]]
    everything = budget["store_all"]
    rows = [
        (
            given,
            size(p["peak_growth"]),
            duration(p["call_seconds"]),
            f"{p['call_seconds'] / everything['call_seconds']:.2f}",
        )
        for given, p in [*points, ("none, store all", everything)]
    ]
    columns = ("budget", "peak growth", "time", "time / store all's")
    title = f"**budget**, {budget['case']} ({settings_text(budget['settings'])})."
    return f"{title}\n\n{table(columns, rows)}"
