"""What the gradient costs in units of the value alone, both by ckad, in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from tqdm import tqdm

from benchmarks.case import PRIMAL, Case, Settings
from benchmarks.compare import Timing
from benchmarks.machine import heading
from benchmarks.report import describe, duration, settings_text, table
from benchmarks.worker import FormError, Worker

COLUMNS = ("case", "value", "gradient", "gradient / value")


def ratio(
    cases: Sequence[Case],
    settings: Mapping[str, Settings],
    timing: Timing,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """`options` are those of ``ckad.value_and_grad``; the answer is what the JSON file holds."""
    record = heading("ratio") | {"options": dict(options), "cases": {}}
    with_primal = [case for case in cases if case.primal is not None]
    for case in tqdm(with_primal, desc="ratio", leave=False, disable=None):
        record["cases"][case.name] = case_ratio(case, settings[case.name], timing, options)
    return record


def case_ratio(
    case: Case, settings: Settings, timing: Timing, options: Mapping[str, Any]
) -> dict[str, Any]:
    try:
        seconds = take_turns(case, settings, timing, options)
    except FormError as error:
        return {"settings": dict(settings), "error": str(error)}
    value, gradient = (median(turns) for turns in seconds)
    return {
        "settings": dict(settings),
        "steps": case.steps(settings),
        "cells": case.cells(settings),
        "value_turns": seconds[0],
        "gradient_turns": seconds[1],
        "value_seconds": value,
        "gradient_seconds": gradient,
        "ratio": gradient / value,
    }


def take_turns(
    case: Case, settings: Settings, timing: Timing, options: Mapping[str, Any]
) -> tuple[list[float], list[float]]:
    """Seconds of the value and of the gradient, a turn each."""
    form, limit = case.first_form("ckad"), timing.limit_seconds
    value: list[float] = []
    gradient: list[float] = []
    with (
        Worker(case.name, "ckad", PRIMAL, settings, options, limit) as primal,
        Worker(case.name, "ckad", form, settings, options, limit) as adjoint,
    ):
        for worker in (primal, adjoint):
            worker.ask("first")
        for _ in range(timing.rounds):
            value.append(primal.ask("turn", *timing.turn))
            gradient.append(adjoint.ask("turn", *timing.turn))
    return value, gradient


def markdown(record: Mapping[str, Any]) -> str:
    rows = [row(name, case) for name, case in record["cases"].items()]
    return f"{describe(record)}\n\n{table(COLUMNS, rows)}\n"


def row(name: str, case: Mapping[str, Any]) -> tuple[str, ...]:
    title = f"{name} ({settings_text(case['settings'])})"
    if "error" in case:
        return title, "failed", case["error"].splitlines()[0].replace("|", "\\|"), ""
    times = duration(case["value_seconds"]), duration(case["gradient_seconds"])
    return title, *times, f"{case['ratio']:.2f}"
