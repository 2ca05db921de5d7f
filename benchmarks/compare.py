"""The comparison: probe every form, check the gradients against each other, then time in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.case import PRIMAL, Case, Inputs, Settings
from benchmarks.machine import heading
from benchmarks.peers import PEERS
from benchmarks.worker import FormError, Worker

#: The row of what ckad takes for the value without the gradient.
VALUE = "ckad, the value alone"


@dataclass(frozen=True)
class Timing:
    """`rounds` turns per peer, each of about `turn_seconds`; the form is chosen in `probes`.

    `first_form_only` leaves out all but the first form of each peer: for tests. A form of which
    one call, or one turn, takes more than `limit_seconds` is given up. `with_value` times ckad's
    value alone, too; `processor` counts seconds of processors.
    """

    rounds: int = 7
    turn_seconds: float = 0.1
    probes: int = 3
    limit_seconds: float = 300.0
    first_form_only: bool = False
    with_value: bool = False
    processor: bool = False

    @property
    def turn(self) -> tuple[float, bool]:
        """What a worker is told."""
        return self.turn_seconds, self.processor


@dataclass
class Probe:
    """What one form did in its own process, before any peer is timed against another."""

    peer: str
    form: str
    settings: Settings = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    value: float = float("nan")
    gradient: Inputs = ()
    error: str | None = None
    worker: Worker | None = None

    def record(self) -> dict[str, Any]:
        if self.error is not None:
            return {"error": self.error}
        return {**self.figures, "value": self.value, "settings": dict(self.settings)}


def compare(
    cases: Sequence[Case], peers: Sequence[str], settings: dict[str, Settings], timing: Timing
) -> dict[str, Any]:
    """Run `peers` on `cases`; the answer is what the JSON file holds."""
    present = [peer for peer in peers if PEERS[peer].installed()]
    report: dict[str, Any] = {
        **heading("compare", present),
        "timing": asdict(timing),
        "skipped": [peer for peer in peers if peer not in present],
        "cases": {},
    }
    for case in cases:
        report["cases"][case.name] = compare_case(case, present, settings[case.name], timing)
    return report


def compare_case(
    case: Case, peers: Sequence[str], settings: Settings, timing: Timing
) -> dict[str, Any]:
    last = 1 if timing.first_form_only else None
    forms = [(peer, form) for peer in peers for form in list(case.forms.get(peer, ()))[:last]]
    best: dict[str, Probe] = {}
    probes = []
    try:
        for peer, form in tqdm(forms, desc=f"{case.name}: forms", leave=False, disable=None):
            probes.append(probe(case, peer, form, case.settings_of(peer, settings), timing))
            keep(best, probes[-1], case.also)
        if "ckad" in best:
            best.pop(row_name(best["ckad"]), None)  # the fastest has its row already
        if timing.with_value and case.primal is not None and "ckad" in best:
            best[VALUE] = value_alone(case, best["ckad"].settings, timing)
        ran = [p for p in probes if p.error is None]
        disagreement = largest_disagreement([*ran, *witnesses(case, ran, settings, timing)])
        record: dict[str, Any] = {
            "title": case.title,
            "settings": dict(settings),
            "steps": case.steps(settings),
            "cells": case.cells(settings),
            "disagreement": disagreement,
            "tolerance": case.tolerance,
            "forms": by_peer(probes),
            "peers": {},
        }
        if agrees(disagreement, case.tolerance):
            record["peers"] = summarise(case, best, take_turns(best, timing))
        return record
    finally:
        for chosen in best.values():
            close(chosen)


def probe(case: Case, peer: str, form: str, settings: Settings, timing: Timing) -> Probe:
    """First call, gradient, memory of a steady call and a first view of the steady time."""
    result = Probe(peer, form, settings)
    try:
        start(result, case, timing)
        result.figures["peak_growth"] = result.worker.ask("steady_memory")
        turns = [result.worker.ask("turn", *timing.turn) for _ in range(timing.probes)]
        result.figures["probe_seconds"] = min(turns)
    except FormError as error:
        result.error = str(error)
        close(result)
    return result


def start(result: Probe, case: Case, timing: Timing) -> None:
    """The form's process and its first call."""
    result.worker = Worker(
        case.name,
        result.peer,
        result.form,
        result.settings,
        limit_seconds=timing.limit_seconds,
    )
    result.figures = result.worker.ask("first")
    value, gradient = result.worker.ask("result")
    result.value, result.gradient = float(value), tuple(np.asarray(g) for g in gradient)


def value_alone(case: Case, settings: Settings, timing: Timing) -> Probe:
    limit = timing.limit_seconds
    worker = Worker(case.name, "ckad", PRIMAL, settings, limit_seconds=limit)
    result = Probe("ckad", PRIMAL, settings, worker=worker)
    result.figures = worker.ask("first")
    result.figures["peak_growth"] = worker.ask("steady_memory")
    return result


def witnesses(
    case: Case, ran: Sequence[Probe], settings: Settings, timing: Timing
) -> Iterator[Probe]:
    """For each size that only shortened peers ran at, the gradient by a form of another peer."""
    full = next((p for p in ran if p.settings == settings), None)
    shortened = [p.settings for p in ran if p.settings != settings]
    for k, smaller in enumerate(shortened):
        if full is not None and smaller not in shortened[:k]:
            witness = Probe(full.peer, full.form, smaller)
            try:
                start(witness, case, timing)
                yield witness
            finally:
                close(witness)


def keep(best: dict[str, Probe], candidate: Probe, also: Sequence[str]) -> None:
    """Only the fastest form of a peer keeps its process, and those that are timed in any case."""
    if candidate.error is not None:
        return
    if candidate.peer == "ckad" and candidate.form in also:
        best[row_name(candidate)] = candidate
    holder = best.get(candidate.peer)
    is_slower = holder and holder.figures["probe_seconds"] <= candidate.figures["probe_seconds"]
    if not is_slower:
        best[candidate.peer] = candidate
    loser = candidate if is_slower else holder
    if loser and not any(kept is loser for kept in best.values()):
        close(loser)


def row_name(result: Probe) -> str:
    return f"{result.peer}, {result.form}"


def close(result: Probe) -> None:
    if result.worker is not None:
        result.worker.close()
        result.worker = None


def largest_disagreement(probes: Sequence[Probe]) -> dict[str, Any] | None:
    """The worst pair: the distance of two gradients' arrays in units of the array's largest entry.

    Only forms that ran at the same size are compared; None when no two did. A NaN or a shape that
    differs counts as infinite.
    """
    pairs = [
        {"relative": distance(a.gradient, b.gradient), "forms": [label(a), label(b)]}
        for i, a in enumerate(probes)
        for b in probes[:i]
        if a.settings == b.settings
    ]
    return max(pairs, key=lambda pair: pair["relative"], default=None)


def agrees(disagreement: dict[str, Any] | None, tolerance: float) -> bool:
    return disagreement is None or disagreement["relative"] <= tolerance


def label(result: Probe) -> str:
    return f"{result.peer}: {result.form}"


def distance(a: Inputs, b: Inputs) -> float:
    if [x.shape for x in a] != [y.shape for y in b]:
        return float("inf")
    return max(array_distance(x, y) for x, y in zip(a, b, strict=True))


def array_distance(x: np.ndarray, y: np.ndarray) -> float:
    scale = max(np.max(np.abs(x)), np.max(np.abs(y)))
    if not np.isfinite(scale):
        return float("inf")
    return float(np.max(np.abs(x - y)) / scale) if scale else 0.0


def take_turns(best: dict[str, Probe], timing: Timing) -> dict[str, list[float]]:
    """A B C A B C ...: what disturbs the machine for a while disturbs every peer."""
    seconds: dict[str, list[float]] = {peer: [] for peer in best}
    for _ in tqdm(range(timing.rounds), desc="rounds", leave=False, disable=None):
        for peer, chosen in best.items():
            assert chosen.worker is not None
            seconds[peer].append(chosen.worker.ask("turn", *timing.turn))
    return seconds


def summarise(
    case: Case, best: dict[str, Probe], seconds: dict[str, list[float]]
) -> dict[str, Any]:
    figures = {peer: peer_figures(case, best[peer], turns) for peer, turns in seconds.items()}
    reference = figures.get("ckad", {}).get("ns_per_cell_step")
    for found in figures.values():
        found["ratio_to_ckad"] = found["ns_per_cell_step"] / reference if reference else None
    return figures


def peer_figures(case: Case, chosen: Probe, turns: list[float]) -> dict[str, Any]:
    middle, steps = median(turns), case.steps(chosen.settings)
    return {
        "form": chosen.form,
        "settings": dict(chosen.settings),
        **chosen.figures,
        "median_seconds": middle,
        "min_seconds": min(turns),
        "max_seconds": max(turns),
        "turns": turns,
        "ns_per_step": 1e9 * middle / steps,
        "ns_per_cell_step": 1e9 * middle / (steps * case.cells(chosen.settings)),
    }


def by_peer(probes: Sequence[Probe]) -> dict[str, dict[str, Any]]:
    forms: dict[str, dict[str, Any]] = {}
    for result in probes:
        forms.setdefault(result.peer, {})[result.form] = result.record()
    return forms


def faults(report: dict[str, Any]) -> list[str]:
    """What makes the run a failure: gradients apart, or a peer of which no form ran."""
    found = []
    for name, case in report["cases"].items():
        if not agrees(case["disagreement"], case["tolerance"]):
            worst = case["disagreement"]
            found.append(
                f"{name}: the gradients of {' and '.join(worst['forms'])} differ by "
                f"{worst['relative']:.1e} (allowed {case['tolerance']:.0e}); nothing was timed."
            )
        for peer, forms in case["forms"].items():
            if all("error" in form for form in forms.values()):
                reason = next(iter(forms.values()))["error"]
                found.append(f"{name}: no form of {peer} ran; the first said {reason}")
    return found
