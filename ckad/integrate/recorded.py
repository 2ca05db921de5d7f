"""Adaptive methods inside of a recording: one loop whose step is one attempt, accepted or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.integrate import events as happening
from ckad.integrate.events import Event
from ckad.integrate.problem import Control, Problem
from ckad.integrate.result import Ends, OdeResult
from ckad.integrate.stages import (
    error_norm,
    factor,
    first_step,
    interpolated,
    smallest_step,
    step,
)
from ckad.integrate.tableaux import Pair
from ckad.trace.arrays import stopping, traced
from ckad.trace.memory.context import current
from ckad.transforms import scan, stop_gradient, while_loop

EITHER_END = (
    "The solver successfully reached the end of the integration interval, or a terminal event "
    "occurred: status says which."
)
FINISHED = "The solver successfully reached the end of the integration interval."
State = dict[str, Any]
#: Accepted steps for which there is room where all of them are asked for.
ROOM = 8191


class Run:
    """What does not change from step to step."""

    def __init__(self, pair: Pair, problem: Problem, control: Control, events: Sequence[Event]):
        self.pair, self.problem, self.control, self.events = pair, problem, control, events
        t0, tf = problem.t0, problem.tf
        length = traced(tf) - t0
        self.t0 = stopping(traced(t0) * 1.0, np.logical_not(np.isfinite(length)), "RAISED")
        self.tf = traced(tf) * 1.0
        self.direction = stop_gradient(np.where(self.tf >= self.t0, 1.0, -1.0))
        self.keeps_stages = problem.t_eval is not None
        self.cut: Callable[[Any], Any] = (
            (lambda x: x) if control.differentiate_steps else stop_gradient
        )

    def begin(self) -> State:
        """The state before the first step."""
        y0 = self.problem.y0
        f0 = self.problem.fun(self.t0, y0)
        evaluations = 1
        if self.control.first_step is None:
            length = np.abs(self.tf - self.t0)
            span = self.cut(self.t0), self.cut(length), self.direction
            given = self.cut(y0), self.cut(f0)
            h = first_step(self.pair, self.problem.fun, span, *given, self.control)
            evaluations = 2
        else:
            h = np.float64(self.control.first_step)
        state = {
            "t": self.t0,
            "y": y0,
            "f": f0,
            "h": self.cut(traced(h)),
            "rejected": np.bool_(False),
            "failed": np.bool_(False),
            "nfev": np.int64(evaluations),
        }
        if self.keeps_stages:
            n = len(self.pair.b) + 1
            stages = np.stack([f0, *[np.zeros_like(f0)] * (n - 1)])
            state["last"] = {"t": self.t0, "y": y0, "h": 0.0 * self.t0, "stages": stages}
            state["last"]["y_new"] = y0
        if self.pair.a_extra.size:
            state["counted"] = np.float64(np.nan)
        if self.events:
            state["events"] = happening.begun(self.events, self.t0, y0)
        return state

    def goes_on(self, state: State, target: Any) -> Any:
        before = self.direction * (target - state["t"]) > 0.0
        running = before & np.logical_not(state["failed"])
        return running & ~state["events"]["ended"] if self.events else running

    def attempt(self, state: State) -> State:
        """SciPy's ``RungeKutta._step_impl``, of which a rejected step is one more turn."""
        t, y, rejected = state["t"], state["y"], state["rejected"]
        smallest = smallest_step(stop_gradient(t))
        within = np.maximum(np.minimum(state["h"], self.control.max_step), smallest)
        length = np.where(rejected, state["h"], within)
        failed = rejected & np.logical_not(length >= smallest)  # NaN, too
        t_new = t + length * self.direction
        t_new = np.where(self.direction * (t_new - self.tf) > 0.0, self.tf, t_new)
        h = t_new - t
        y_new, stages, norm = self._tried(t, y, state["f"], h)
        accepted, change = factor(self.pair, norm, rejected)
        accepted = accepted & np.logical_not(failed)
        new = {
            "t": np.where(accepted, t_new, t),
            "y": np.where(accepted, y_new, y),
            "f": np.where(accepted, stages[-1], state["f"]),
            "h": np.where(failed, length, self.cut(np.abs(h) * change)),
            "rejected": np.logical_not(accepted),
            "failed": failed,
            "nfev": state["nfev"] + np.where(failed, 0, len(stages) - 1),
        }
        if self.keeps_stages:
            made = {"t": t, "y": y, "h": h, "stages": np.stack(stages), "y_new": y_new}
            new["last"] = {
                name: np.where(accepted, made[name], old) for name, old in state["last"].items()
            }
        if self.events:
            whole = happening.Step(
                accepted, t, t_new, y_new, self._interpolant((t, y), y_new, h, stages)
            )
            found, t_end, y_end = happening.after_step(self.events, state["events"], whole)
            new["events"] = found
            new["t"], new["y"] = np.where(accepted, t_end, t), np.where(accepted, y_end, y)
            found_any = sum(found["count"]) > sum(state["events"]["count"])
        else:
            found_any = False
        if self.pair.a_extra.size:
            new["counted"] = state["counted"]
            new = self.counted(new, stop_gradient(t), found_any)
        return new

    def counted(self, state: State, t_old: Any, wanted: Any) -> State:
        """With the evaluations that DOP853's interpolant takes, once in a step that needs it."""
        if not self.pair.a_extra.size:
            return state
        fresh = wanted & (state["counted"] != t_old)
        evaluations = np.where(fresh, len(self.pair.c_extra), 0)
        counted = np.where(fresh, t_old, state["counted"])
        return {**state, "nfev": state["nfev"] + evaluations, "counted": counted}

    def _tried(self, t: Any, y: Any, f: Any, h: Any) -> tuple[Any, list[Any], Any]:
        """The state after a step, its stages, and its error in units of the tolerances.

        What a rejected step has overflowed to would make the derivative NaN, though nothing depends
        on it. So a step is tried without derivative, and of length 0 where that gave no number.
        """
        fun = self.problem.fun
        if not self.control.differentiate_steps:
            tried = (stop_gradient(x) for x in (t, y, f, h))
            norm = stop_gradient(self._norm(*step(self.pair, fun, *tried), y, h))
            h = np.where(np.isfinite(norm), h, 0.0)
            return *step(self.pair, fun, t, y, f, h), norm
        y_new, stages = step(self.pair, fun, t, y, f, h)
        return y_new, stages, self._norm(y_new, stages, y, h)

    def _norm(self, y_new: Any, stages: Sequence[Any], y: Any, h: Any) -> Any:
        scale = self.control.atol + np.maximum(np.abs(y), np.abs(y_new)) * self.control.rtol
        return error_norm(self.pair, stages, h, scale)

    def _interpolant(
        self, begin: tuple[Any, Any], y_new: Any, h: Any, stages: Sequence[Any]
    ) -> Callable[[Any], Any]:
        fun = self.problem.fun
        return lambda t: interpolated(self.pair, fun, t, begin, y_new, h, stages)

    def to(self, state: State, target: Any) -> State:
        """Attempts until ``target`` is reached."""

        def attempt(state: State) -> State:  # a function, since methods keep no recording
            return self.attempt(state)

        found: State = while_loop(lambda s: self.goes_on(s, target), attempt, state)
        return found

    def state_in_last_step(self, state: State, t: Any) -> Any:
        last = state["last"]
        stages = [last["stages"][k] for k in range(len(self.pair.b) + 1)]
        return self._interpolant((last["t"], last["y"]), last["y_new"], last["h"], stages)(t)


class Steps:
    """The states of all steps: solved again, by a loop that keeps them, where all are asked for."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._at: Any = None
        self._kept: tuple[Any, Any] = None, None

    def times(self) -> Any:
        return self._rows()[0]

    def states(self) -> Any:
        return self._rows()[1].T

    def _rows(self) -> tuple[Any, Any]:
        if self._at is not current():  # rows of a branch are not known behind it
            self._kept, self._at = _every(self._run), current()
        return self._kept


def _every(run: Run) -> tuple[Any, Any]:
    """Times and states of the accepted steps, float64[m] and float64[m, n], the first state too."""
    state = run.begin()
    times = np.zeros(ROOM + 1, like=run.t0)
    states = np.zeros((ROOM + 1, state["y"].size), dtype=state["y"].dtype, like=run.t0)
    times[0], states[0] = run.t0, state["y"]

    def attempt(carry: Any) -> Any:
        old, count, times, states = carry
        state = run.attempt(old)
        accepted = state["t"] != old["t"]
        count = stopping(count, accepted & (count >= ROOM), "SPACE")
        times[count + 1], states[count + 1] = state["t"], state["y"]  # a rejected one is replaced
        return state, count + np.where(accepted, 1, 0), times, states

    begin = (state, traced(np.int64(0)), times, states)
    state, count, times, states = while_loop(lambda c: run.goes_on(c[0], run.tf), attempt, begin)
    count = stopping(count, state["failed"], "RAISED")
    return times[: count + 1], states[: count + 1]


def solve(pair: Pair, problem: Problem, control: Control, events: Sequence[Event]) -> OdeResult:
    """The result with traced values."""
    run = Run(pair, problem, control, events)
    state = run.begin()
    rows: list[Any] = []
    if problem.t_eval is not None:

        def reach(state: State, target: Any) -> tuple[State, Any]:
            state = run.to(state, target)
            state = run.counted(state, stop_gradient(state["last"]["t"]), True)
            return state, run.state_in_last_step(state, target)

        state, states = scan(reach, state, problem.t_eval)
        rows = [problem.t_eval, states]
    state = run.to(state, run.tf)
    t = stopping(state["t"], state["failed"], "RAISED")
    times, states_of_rows = _rows(run, state, t, rows)
    status: Any = 0
    found: dict[str, Any] = {"nfev": state["nfev"]}
    if events:
        status = np.where(state["events"]["ended"], 1, 0)
        found |= _found(state["events"])
    message = EITHER_END if any(e.ends_at for e in events) else FINISHED
    return OdeResult(times, states_of_rows, status, message, **found)


def _rows(run: Run, state: State, t: Any, rows: Sequence[Any]) -> tuple[Any, Any]:
    if not rows:
        first, steps = run.problem.y0, Steps(run)
        last = state["y"] + 0.0 * stop_gradient(t)
        return Ends(run.t0, t, steps.times), Ends(first, last, steps.states)
    times, states = rows
    states = states + 0.0 * stop_gradient(t)  # a run that failed gives no state
    if any(e.ends_at for e in run.events):
        reached = np.sum(np.where(run.direction * (times - t) <= 0.0, 1, 0))
        return times[:reached], states[:reached].T
    return times, states.T


def _found(events: dict[str, Any]) -> dict[str, Any]:
    return {
        "t_events": [t[:n] for t, n in zip(events["t"], events["count"], strict=True)],
        "y_events": [y[:n] for y, n in zip(events["y"], events["count"], strict=True)],
    }
