"""One-step methods as a loop: a turn is one attempt, accepted or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ckad.integrate import events as happening
from ckad.integrate.events import Event
from ckad.integrate.problem import Control, Problem
from ckad.integrate.run import Run, State
from ckad.integrate.stages import Stepper, factor, first_step, smallest_step
from ckad.trace.arrays import traced
from ckad.transforms import stop_gradient


class OneStep(Run):
    """SciPy's ``RungeKutta`` with any method for a step."""

    def __init__(
        self, stepper: Stepper, problem: Problem, control: Control, events: Sequence[Event]
    ) -> None:
        super().__init__(problem, control, events)
        self.stepper = stepper
        self.keeps_stages = problem.t_eval is not None

    def begin(self) -> State:
        y0 = self.problem.y0
        f0 = self.problem.fun(self.t0, y0)
        evaluations = 1
        if self.control.first_step is None:
            length = np.abs(self.tf - self.t0)
            span = self.cut(self.t0), self.cut(length), self.direction
            given = self.cut(y0), self.cut(f0)
            order = self.stepper.error_order
            h = first_step(order, self.problem.fun, span, *given, self.control)
            evaluations = 2
        else:
            h = self.control.first_step
        state = {
            "t": self.t0,
            "y": y0,
            "f": f0,
            "h": self.cut(traced(h)),
            "rejected": np.bool_(False),
            "failed": np.bool_(False),
            "nfev": np.int64(evaluations),
            "njev": np.int64(0),
            "nlu": np.int64(0),
        }
        if self.keeps_stages:
            n = self.stepper.n_stages
            stages = np.stack([f0, *[np.zeros_like(f0)] * (n - 1)])
            state["last"] = {"t": self.t0, "y": y0, "h": 0.0 * self.t0, "stages": stages}
            state["last"]["y_new"] = y0
        if self.stepper.n_extra:
            state["counted"] = np.float64(np.nan)
        return self.with_events(state)

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
        trial = self.stepper.attempt((t, y, state["f"]), h)
        accepted, change = factor(self.stepper.error_order, trial.norm, rejected)
        accepted = accepted & np.logical_not(failed)
        new = {
            "t": np.where(accepted, t_new, t),
            "y": np.where(accepted, trial.y, y),
            "f": np.where(accepted, trial.f, state["f"]),
            "h": np.where(failed, length, self.cut(np.abs(h) * change)),
            "rejected": np.logical_not(accepted),
            "failed": failed,
        }
        for count in ("nfev", "njev", "nlu"):
            new[count] = state[count] + np.where(failed, 0, getattr(trial, count))
        if self.keeps_stages:
            made = {"t": t, "y": y, "h": h, "stages": np.stack(trial.stages), "y_new": trial.y}
            new["last"] = {
                name: np.where(accepted, made[name], old) for name, old in state["last"].items()
            }
        found_any: Any = False
        if self.events:
            state_at = self._interpolant((t, y), trial.y, h, trial.stages)
            near = self.stepper.near and partial(self.stepper.near, (t, y, state["f"]), state_at)
            whole = happening.Step(accepted, t, t_new, trial.y, state_at, near)
            found, t_end, y_end = happening.after_step(self.events, state["events"], whole)
            new["events"] = found
            new["t"], new["y"] = np.where(accepted, t_end, t), np.where(accepted, y_end, y)
            found_any = sum(found["count"]) > sum(state["events"]["count"])
        if self.stepper.n_extra:
            new["counted"] = state["counted"]
            new = self._counted(new, stop_gradient(t), found_any)
        return new

    def _counted(self, state: State, t_old: Any, wanted: Any) -> State:
        """With the evaluations that DOP853's interpolant takes, once in a step that needs it."""
        fresh = wanted & (state["counted"] != t_old)
        evaluations = np.where(fresh, self.stepper.n_extra, 0)
        counted = np.where(fresh, t_old, state["counted"])
        return {**state, "nfev": state["nfev"] + evaluations, "counted": counted}

    def _interpolant(
        self, begin: tuple[Any, Any], y_new: Any, h: Any, stages: Sequence[Any]
    ) -> Callable[[Any], Any]:
        return lambda t: self.stepper.at(t, begin, y_new, h, stages)

    def state_at(self, state: State, t: Any) -> tuple[State, Any]:
        last = state["last"]
        if self.stepper.n_extra:
            state = self._counted(state, stop_gradient(last["t"]), True)
        stages = [last["stages"][k] for k in range(self.stepper.n_stages)]
        found = self._interpolant((last["t"], last["y"]), last["y_new"], last["h"], stages)
        return state, found(t)
