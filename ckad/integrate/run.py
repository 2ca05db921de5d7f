"""What the loops of adaptive methods have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.integrate import events as happening
from ckad.integrate.events import Event
from ckad.integrate.problem import Control, Problem
from ckad.trace.arrays import stopping, traced
from ckad.transforms import stop_gradient, while_loop

State = dict[str, Any]


class Run(ABC):
    """What does not change from step to step.

    A state holds "t", "y", "failed", "nfev", "njev", "nlu" and, if there are any, "events".
    """

    def __init__(self, problem: Problem, control: Control, events: Sequence[Event]) -> None:
        self.problem, self.control, self.events = problem, control, events
        t0, tf = problem.t0, problem.tf
        length = traced(tf) - t0
        wrong = np.logical_not(np.isfinite(length))
        if control.first_step is not None:
            wrong = wrong | (control.first_step > np.abs(length))
        self.t0 = stopping(traced(t0) * 1.0, wrong, "TIMES")
        self.tf = traced(tf) * 1.0
        self.direction = stop_gradient(np.where(self.tf >= self.t0, 1.0, -1.0))
        self.cut: Callable[[Any], Any] = (
            (lambda x: x) if control.differentiate_steps else stop_gradient
        )

    @abstractmethod
    def begin(self) -> State:
        """The state before the first step."""

    @abstractmethod
    def attempt(self, state: State) -> State:
        """The state after one more attempt at a step."""

    @abstractmethod
    def state_at(self, state: State, t: Any) -> tuple[State, Any]:
        """The solution at a time in the last step, and the state with what that takes counted."""

    def with_events(self, state: State) -> State:
        if self.events:
            state["events"] = happening.begun(self.events, self.t0, self.problem.y0)
        return state

    def to(self, state: State, target: Any) -> State:
        """Attempts until ``target`` is reached."""

        def attempt(state: State) -> State:  # a function, since methods keep no recording
            return self.attempt(state)

        found: State = while_loop(lambda s: self.goes_on(s, target), attempt, state)
        return found

    def goes_on(self, state: State, target: Any) -> Any:
        before = self.direction * (target - state["t"]) > 0.0
        running = before & np.logical_not(state["failed"])
        return running & ~state["events"]["ended"] if self.events else running
