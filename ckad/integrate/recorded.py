"""Adaptive methods inside of a recording: from the first state to the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.integrate.result import Ends, OdeResult
from ckad.integrate.run import Run, State
from ckad.trace.arrays import stopping
from ckad.transforms import scan, stop_gradient

EITHER_END = (
    "The solver successfully reached the end of the integration interval, or a terminal event "
    "occurred: status says which."
)
FINISHED = "The solver successfully reached the end of the integration interval."


def solve(run: Run, observe: Callable[[Any, Any], Any]) -> OdeResult:
    """The result with traced values; ``observe(t, y)`` is what is kept at ``t_eval``."""
    state = run.begin()
    rows: list[Any] = []
    times = run.problem.t_eval
    if times is not None:

        def reach(state: State, target: Any) -> tuple[State, Any]:
            state, y = run.state_at(run.to(state, target), target)
            return state, observe(target, y)

        state, states = scan(reach, state, times)
        rows = [times, states]
    state = run.to(state, run.tf)
    t = stopping(state["t"], state["failed"], "RAISED")
    times, kept = _rows(run, state, t, rows)
    status: Any = 0
    found: dict[str, Any] = {name: state[name] for name in ("nfev", "njev", "nlu")}
    if run.events:
        status = np.where(state["events"]["ended"], 1, 0)
        found |= _found(state["events"])
    message = EITHER_END if any(e.ends_at for e in run.events) else FINISHED
    return OdeResult(times, kept, status, message, **found)


def _rows(run: Run, state: State, t: Any, rows: Sequence[Any]) -> tuple[Any, Any]:
    if not rows:
        first = run.problem.y0
        return Ends(run.t0, t), Ends(first, state["y"] + 0.0 * stop_gradient(t))
    times, states = rows
    states = states + 0.0 * stop_gradient(t)  # a run that failed gives no state
    if any(e.ends_at for e in run.events):
        reached = np.sum(np.where(run.direction * (times - t) <= 0.0, 1, 0))
        times, states = times[:reached], states[:reached]
    return times, np.moveaxis(states, 0, -1) if states.ndim > 1 else states


def _found(events: dict[str, Any]) -> dict[str, Any]:
    return {
        "t_events": [t[:n] for t, n in zip(events["t"], events["count"], strict=True)],
        "y_events": [y[:n] for y, n in zip(events["y"], events["count"], strict=True)],
    }
