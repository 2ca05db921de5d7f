"""Spectral codes by ckad in units of the own runs of NumPy and SciPy, and of JAX's gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from statistics import median
from typing import Any

from tqdm import tqdm

from benchmarks.case import PRIMAL, Case, Settings
from benchmarks.compare import Timing, distance
from benchmarks.machine import heading
from benchmarks.peers import PEERS
from benchmarks.report import describe, duration, settings_text, table
from benchmarks.worker import FormError, Worker

COLUMNS = (
    "case",
    "NumPy",
    "SciPy",
    "value",
    "gradient",
    "JAX's gradient",
    "value / SciPy",
    "gradient / NumPy",
    "JAX / gradient",
)


def spectra(
    cases: Sequence[Case], settings: Mapping[str, Settings], timing: Timing
) -> dict[str, Any]:
    record = heading("spectra", ("ckad", "jax")) | {"cases": {}}
    for case in tqdm(cases, desc="spectra", leave=False, disable=None):
        record["cases"][case.name] = measure(case, settings[case.name], timing)
    return record


def measure(case: Case, settings: Settings, timing: Timing) -> dict[str, Any]:
    """Medians of the seconds of a call of each kind; the gradients have to agree."""
    kinds = {name: ("ckad", name) for name in case.bases}
    kinds |= {"value": ("ckad", PRIMAL), "gradient": ("ckad", case.first_form("ckad"))}
    if PEERS["jax"].installed():
        kinds["JAX"] = ("jax", case.first_form("jax"))
    found: dict[str, Any] = {"settings": dict(settings)}
    try:
        with ExitStack() as stack:
            workers = {
                kind: stack.enter_context(
                    Worker(case.name, *what, settings, limit_seconds=timing.limit_seconds)
                )
                for kind, what in kinds.items()
            }
            for worker in workers.values():
                worker.ask("first")
            check(case, workers)
            turns: dict[str, list[float]] = {kind: [] for kind in kinds}
            for _ in range(timing.rounds):
                for kind, worker in workers.items():
                    turns[kind].append(worker.ask("turn", *timing.turn))
    except FormError as error:
        return found | {"error": str(error)}
    return found | {"turns": turns} | {kind: median(seconds) for kind, seconds in turns.items()}


def check(case: Case, workers: Mapping[str, Worker]) -> None:
    """FormError if JAX has another gradient."""
    if "JAX" in workers:
        (_, own), (_, other) = (workers[kind].ask("result") for kind in ("gradient", "JAX"))
        apart = distance(own, other)
        if not apart <= case.tolerance:
            raise FormError(f"the gradients of ckad and JAX differ by {apart:.1e}")


def markdown(record: Mapping[str, Any]) -> str:
    rows = [row(name, case) for name, case in record["cases"].items()]
    return f"{describe(record)}\n\n{table(COLUMNS, rows)}\n"


def row(name: str, case: Mapping[str, Any]) -> tuple[str, ...]:
    title = f"{name} ({settings_text(case['settings'])})"
    if "error" in case:
        error = case["error"].splitlines()[0].replace("|", "\\|")
        return (title, "failed", error, *[""] * (len(COLUMNS) - 3))
    kinds = ("NumPy", "SciPy", "value", "gradient", "JAX")
    times = [duration(case[kind]) if kind in case else "" for kind in kinds]
    ratios = (("value", "SciPy"), ("gradient", "NumPy"), ("JAX", "gradient"))
    parts = [f"{case[a] / case[b]:.2f}" if a in case else "" for a, b in ratios]
    return (title, *times, *parts)
