"""What schedules cost beside the steps: the driver alone, and revolve against revolve by hand.

The driver's cost is what a run takes more than its steps, states and reversals, which are timed
many at a time in the same program. By hand it is Burgers' equation in Numba with the recursion of
A. Griewank and A. Walther, Algorithm 799: revolve, ACM TOMS 26 (2000) 19-45. Gray-Scott runs with
everything kept and within a quarter of that memory, in turn.
"""

from __future__ import annotations

from math import comb
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from benchmarks.cases import burgers, gray_scott
from benchmarks.machine import heading
from benchmarks.report import describe, table
from benchmarks.two_level import compiled, copy_into

#: Of Gray-Scott.
FIELDS: dict[str, float] = {"size": 256, "n_steps": 200}
THREADS = 2
COLUMNS = ("what", "forward steps", "ms", "ns per forward step")


def driver(n_steps: int, n_cells: int, n_slots: int, rounds: int) -> dict[str, Any]:
    """Both take turns; the least of ``rounds``, in seconds of the thread, as steps are timed."""
    import ckad

    settings = {"size": n_cells, "n_steps": n_steps}
    value, inputs = burgers.ckad_value(settings), burgers.inputs(settings)
    schedule = ckad.schedules.revolve(n_steps, n_slots)
    options = {"schedule": schedule, "engine": "native", "threads": 1}
    gradient = ckad.value_and_grad(value, (0, 1), **options)
    program, plan = gradient.compiled(*inputs), gradient.plan(*inputs)
    loop = next(x for x in plan.loops if x.depth == 1)
    cost = program.costs.loops[loop.name]
    by_hand = Revolve(settings, n_slots)
    seconds: dict[str, list[float]] = {"ckad": [], "by hand": []}
    found: dict[str, Any] = {}
    for _ in range(rounds + 1):  # the first calls compile
        for name, call in (("ckad", lambda: gradient(*inputs)), ("by hand", by_hand)):
            began = thread_time()
            found[name] = call()
            seconds[name].append(thread_time() - began)
    ours, theirs = (min(seconds[name][1:]) for name in ("ckad", "by hand"))
    record = heading("driver", ("ckad",))
    return record | {
        "n_steps": n_steps,
        "n_cells": n_cells,
        "n_slots": n_slots,
        "forward_steps": schedule.forward_steps,
        "by_hand_steps": by_hand.steps,
        "seconds": ours,
        "by_hand_seconds": theirs,
        "kernel_seconds": cost.kernels(schedule),
        "difference": _difference(found["ckad"][1], found["by hand"][1]),
        "quarter": quarter(rounds),
    }


def quarter(rounds: int) -> dict[str, Any]:
    """Gray-Scott with everything kept, and within a quarter of its memory: seconds, bytes."""
    import ckad

    value, inputs = gray_scott.ckad_value(FIELDS), gray_scott.inputs(FIELDS)
    about = {"engine": "native", "threads": THREADS}
    kept = ckad.value_and_grad(value, schedule="store_all", **about)
    most = kept.compiled(*inputs).plan.peak_bytes
    less = ckad.value_and_grad(value, memory=most // 4, **about)
    gradients = {"everything kept": kept, "within a quarter of its memory": less}
    found: dict[str, Any] = {name: {"seconds": []} for name in gradients}
    for _ in range(rounds + 1):
        for name, gradient in gradients.items():
            began = perf_counter()
            gradient(*inputs)
            found[name]["seconds"].append(perf_counter() - began)
    for name, gradient in gradients.items():
        plan = gradient.plan(*inputs)
        found[name] |= {"peak_bytes": plan.peak_bytes, "forward_steps": plan.forward_steps}
        found[name] |= {"seconds": min(found[name]["seconds"][1:]), "predicted": plan.seconds}
    return found


def _difference(found: Any, expected: Any) -> float:
    pairs = zip(found, expected, strict=True)
    return float(max(np.max(np.abs(x - y)) / np.max(np.abs(y)) for x, y in pairs))


def markdown(record: dict[str, Any]) -> str:
    steps, theirs = record["forward_steps"], record["by_hand_steps"]
    driver_s = record["seconds"] - record["kernel_seconds"]
    rows = [
        _row("ckad", steps, record["seconds"]),
        _row("its steps, states and reversals", steps, record["kernel_seconds"]),
        _row("the driver", steps, driver_s),
        _row("revolve by hand in Numba", theirs, record["by_hand_seconds"]),
    ]
    what = (
        f"Burgers, {record['n_steps']:,} steps x {record['n_cells']} cells, {record['n_slots']} "
        f"slots: {record['seconds'] / record['by_hand_seconds']:.2f} times the time by hand; "
        f"gradients differ by {record['difference']:.1e}."
    )
    rows += [
        _row(f"Gray-Scott, {name}", x["forward_steps"], x["seconds"])
        for name, x in record["quarter"].items()
    ]
    kept, less = record["quarter"].values()
    what += (
        f" Gray-Scott, {FIELDS['n_steps']} steps x {FIELDS['size']}² cells, {THREADS} threads: "
        f"within {less['peak_bytes']:,} of {kept['peak_bytes']:,} bytes "
        f"{less['seconds'] / kept['seconds']:.2f} times the time with everything kept; predicted / "
        f"measured {kept['predicted'] / kept['seconds']:.2f}, "
        f"{less['predicted'] / less['seconds']:.2f}."
    )
    return f"{describe(record)}\n\n{what}\n\n{table(COLUMNS, rows)}\n"


def _row(name: str, steps: int, seconds: float) -> tuple[str, ...]:
    return name, f"{steps:,}", f"{1e3 * seconds:.2f}", f"{1e9 * seconds / steps:.1f}"


class Revolve:
    """The gradient of Burgers' equation by hand; ``steps`` are run forward."""

    def __init__(self, settings: dict[str, int], n_slots: int) -> None:
        self.length, self.n_slots = settings["n_steps"], n_slots
        self.u0, self.viscosity = burgers.inputs(settings)
        self.observed = burgers.target(settings)
        self.counts = _binomials(self.length, n_slots)
        self.steps = 0

    def __call__(self) -> tuple[float, tuple[np.ndarray, np.ndarray]]:
        ct = np.zeros(1)
        parameters = self.viscosity, np.empty(self.u0.size + 1), ct, self.observed
        value, by_u0, self.steps = _reversed(
            self.u0, self.length, self.counts, burgers.numba_step, burgers.misfit,
            burgers.step_adjoint, parameters,
        )  # fmt: skip
        return value, (by_u0, ct)


def _binomials(length: int, n_slots: int) -> np.ndarray:
    """Row s, column t: how many steps s slots reverse if each step runs t times at the most."""
    times = next(t for t in range(length + 2) if comb(n_slots + t, t) >= length)
    rows = [[comb(s + t, t) for t in range(times + 2)] for s in range(n_slots + 1)]
    return np.array(rows, np.int64)


@compiled
def _split(length, slots, counts):
    """After how many steps the next checkpoint is."""
    t = 0
    while counts[slots, t] < length:
        t += 1
    least = counts[slots, t - 2] if t > 1 else 1
    return max(1, least, length - counts[slots - 1, t])


@compiled
def _reversed(start, length, counts, step, finish, step_adjoint, parameters):
    slots = counts.shape[0] - 1
    states, at = np.empty((slots, start.size)), np.zeros(slots, np.int64)
    now, then = np.empty(start.size), np.empty(start.size)
    ct, new_ct = np.zeros(start.size), np.zeros(start.size)
    copy_into(states[0], start)
    top, stop, n, value = 0, length, 0, 0.0
    while stop > 0:
        copy_into(now, states[top])
        here = at[top]
        while stop - here > 1:
            ahead = _split(stop - here, slots - top, counts) if top < slots - 1 else stop - here - 1
            for i in range(here, here + ahead):
                step(then, now, now, i, parameters)
                now, then = then, now
            here, n = here + ahead, n + ahead
            if top < slots - 1:
                top += 1
                copy_into(states[top], now)
                at[top] = here
        if stop == length:
            step(then, now, now, here, parameters)
            n += 1
            value = finish(ct, then, parameters)
        step_adjoint(new_ct, ct, ct, now, here, parameters)
        ct, new_ct = new_ct, ct
        stop -= 1
        if at[top] == stop and top > 0:
            top -= 1
    return value, ct, n
