"""Adaptive methods inside of a recording: from the first state to the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import ConcreteValueError, UnfinishedError, UnrecordableError
from ckad.integrate.result import Ends, OdeResult
from ckad.integrate.run import Run, State
from ckad.integrate.stages import smallest_step
from ckad.place import at_place
from ckad.trace.arrays import known_as_run, stopping, traced
from ckad.trace.memory import assumed
from ckad.trace.memory.context import current
from ckad.trace.source.control.checks import count_check
from ckad.transforms import scan, stop_gradient, while_loop

EITHER_END = (
    "The solver successfully reached the end of the integration interval, or a terminal event "
    "occurred: status says which."
)
FAILED = "Required step size is less than spacing between numbers."
FINISHED = "The solver successfully reached the end of the integration interval."
#: Accepted steps for which there is room where all of them are asked for.
ROOM = 8191


class Steps:
    """The states of all steps: solved again, by a loop that keeps them, where all are asked for."""

    def __init__(self, run: Callable[[], Run]) -> None:
        self._run = run
        self._at: Any = None
        self._kept: tuple[Any, Any] = None, None

    def times(self) -> Any:
        return self._rows()[0]

    def states(self) -> Any:
        return self._rows()[1].T

    def _rows(self) -> tuple[Any, Any]:
        if self._at is not current():  # rows of a branch are not known behind it
            self._kept, self._at = _every(self._run()), current()
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
        count = stopping(count, accepted & (count >= ROOM), "STEPS")
        times[count + 1], states[count + 1] = state["t"], state["y"]  # a rejected one is replaced
        return state, count + np.where(accepted, 1, 0), times, states

    begin = (state, traced(np.int64(0)), times, states)
    state, count, times, states = while_loop(lambda c: run.goes_on(c[0], run.tf), attempt, begin)
    count = stopping(count, state["failed"], "STEP")
    return times[: count + 1], states[: count + 1]


class Solution:
    """``sol`` of a solution with ``dense_output=True``: solved again, for the times asked for."""

    def __init__(self, run_to: Callable[[Any], Run]) -> None:
        self._run_to = run_to  # the loop of a problem with these times as its t_eval

    @property
    def t_min(self) -> Any:
        """Where the solution begins or ends, whichever is earlier."""
        return np.minimum(*self._span())

    @property
    def t_max(self) -> Any:
        return np.maximum(*self._span())

    def _span(self) -> tuple[Any, Any]:
        run = self._run_to(traced(0.0)[np.newaxis])
        return run.t0, run.tf

    def __call__(self, t: Any) -> Any:
        """float64[n], or float64[n, m]; beyond t_span by the polynomial of the step at that end."""
        times = traced(t)
        if times.ndim > 1:
            raise ValueError(at_place(f"times have shape {times.shape}; give 1-D, or one number."))
        found = self._at(np.atleast_1d(times) * 1.0)
        return found if times.ndim else found[:, 0]

    def _at(self, times: Any) -> Any:
        run = self._run_to(times)
        order = np.argsort(run.direction * stop_gradient(times), kind="stable")
        begin, end = stop_gradient((run.t0, run.tf))
        earliest = begin + run.direction * smallest_step(begin)  # within the first step

        def reach(state: State, target: Any) -> tuple[State, Any]:
            place = run.direction * stop_gradient(target)
            within = np.clip(place, run.direction * earliest, run.direction * end)
            return run.state_at(run.to(state, run.direction * within), target)

        state, states = scan(reach, run.begin(), times[order])
        t = stopping(state["t"], state["failed"], "STEP")
        states = states + 0.0 * stop_gradient(t)
        return states[np.argsort(order)].T


def _solution_elsewhere(_: None, children: Any) -> Solution:
    return Solution(_not_solved_again)


def _not_solved_again(times: Any) -> Run:
    raise UnrecordableError.here(
        "sol of a solution that is made in a loop or a branch is not known behind it. Call it "
        "there, or give t_eval= and read y."
    )


trees.register(Solution, lambda _: ((), None), _solution_elsewhere)


def solve(run: Run, observe: Callable[[Any, Any], Any], again: Callable[[], Run]) -> OdeResult:
    """The result with traced values; ``observe(t, y)`` is what is kept at ``t_eval``.

    ``again`` makes the loop that is run where all steps are asked for.
    """
    state = run.begin()
    rows: list[Any] = []
    times = run.problem.t_eval
    if times is not None:

        def reach(state: State, target: Any) -> tuple[State, Any]:
            state, y = run.state_at(run.to(state, target), target)
            return state, observe(target, y)

        state, states = scan(reach, state, times)
        rows = [times, states]
    if not run.problem.ends:  # a loop of no turns, and all of a step in the tape once more
        state = run.to(state, run.tf)
    t = stopping(state["t"], state["failed"], "STEP")
    times, kept = _rows(run, state, t, rows, again)
    status: Any = 0
    found: dict[str, Any] = {name: state[name] for name in ("nfev", "njev", "nlu")}
    if run.events:
        status = np.where(state["events"]["ended"], 1, 0)
        found |= _found(state["events"])
    message = EITHER_END if any(e.ends_at for e in run.events) else FINISHED
    result = OdeResult(times, kept, status, message, **found)
    return result.asking(partial(_tell_of_end, run, state, rows))


def _tell_of_end(run: Run, state: State, rows: Sequence[Any], result: OdeResult) -> None:
    """Where a step has failed, a result that is asked says so, and holds what is before that."""
    if not _is_unfinished(state["failed"]):
        return
    result.status, result.success, result.message = -1, False, FAILED
    if rows:
        times, states = rows
        before = np.sum(np.where(run.direction * (times - state["t"]) <= 0.0, 1, 0))
        n = int(before)
        result.t, result.y = times[:n], np.moveaxis(states[:n], 0, -1)
    else:
        times, states = result.t, result.y
        result.t = Ends(run.t0, state["t"], times.whole)
        result.y = Ends(run.problem.y0, state["y"], states.whole)


def _is_unfinished(failed: Any) -> bool:
    """Whether a solution has ended early, where a program asks: if a run was stopped by that, the
    program is recorded again, as it runs for these numbers."""
    current().handlers.append(UnfinishedError)
    if not assumed.unfinished():
        count_check(stopping(traced(np.int64(0)), failed, "STEP"))
        return False
    found = known_as_run(traced(failed))
    if found is None:
        raise ConcreteValueError.here(
            "a loop asks whether its solutions come to their ends, which one of them does not."
        )
    return bool(found)


def _rows(
    run: Run, state: State, t: Any, rows: Sequence[Any], again: Callable[[], Run]
) -> tuple[Any, Any]:
    if not rows:
        first, steps = run.problem.y0, Steps(again)
        last = state["y"] + 0.0 * stop_gradient(t)
        return Ends(run.t0, t, steps.times), Ends(first, last, steps.states)
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
