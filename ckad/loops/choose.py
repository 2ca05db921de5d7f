"""Choosing a schedule for every taped loop of a program so that all fits into the budget."""

from __future__ import annotations

from collections.abc import Callable

from ckad.checkpoint.plan import LoopPlan, fitting_schedule
from ckad.checkpoint.schedules import SCHEDULES
from ckad.checkpoint.schedules.revolve import revolve
from ckad.checkpoint.schedules.schedule import Schedule
from ckad.checkpoint.schedules.store_all import store_all
from ckad.checkpoint.schedules.two_level import two_level
from ckad.engines.vm.measure import TapedLoop, step_bytes, token_bytes
from ckad.engines.vm.program import Slots
from ckad.errors import BudgetError, ScheduleError
from ckad.memory import format_bytes

#: What ``schedule=`` takes: a name, a schedule, or a function from the number of steps to one.
Choice = str | Schedule | Callable[[int], Schedule]
Schedules = dict[int, Schedule]
#: Restart slots tried for the inner loops when keeping all their residuals does not fit.
INNER_SLOTS = (64, 32, 16, 8, 4, 2, 1)


def slots_of(schedules: Schedules) -> dict[int, Slots]:
    return {name: Slots(s.n_slots, s.n_tape_slots) for name, s in schedules.items()}


class Chooser:
    """Finds schedules for ``loops``; ``measure(schedules)`` gives the bytes of a whole run."""

    def __init__(
        self,
        loops: dict[int, TapedLoop],
        budget: int,
        choice: Choice,
        measure: Callable[[Schedules], int],
        requested: str | int | None,
    ) -> None:
        self.loops, self.budget, self.choice, self.measure = loops, budget, choice, measure
        self.requested = requested
        self.outer = [x for x in loops.values() if x.depth == 1]
        self.inner = [x for x in loops.values() if x.depth > 1]

    def schedules(self) -> Schedules:
        """The cheapest schedules that fit; BudgetError if none do."""
        if self.choice != "auto":
            return self._as_asked()
        best: tuple[int, Schedules] | None = None
        for inner in self._inner_options():
            found = self._outer_for(inner)
            if found is None:
                continue
            work = self._work(found)
            if best is None or work < best[0]:
                best = (work, found)
            if not self.inner:
                break
        if best is None:
            raise self._too_small()
        return best[1]

    def _inner_options(self) -> list[Schedules]:
        options = [{x.name: store_all(x.n_steps) for x in self.inner}]
        if self.inner:
            options += [{x.name: revolve(x.n_steps, s) for x in self.inner} for s in INNER_SLOTS]
        return options

    def _least(self) -> Schedules:
        return {x.name: revolve(x.n_steps, 1) for x in self.loops.values()}

    def _outer_for(self, inner: Schedules) -> Schedules | None:
        """Give the room that the rest of the program leaves to the outermost loops."""
        least = {**inner, **{x.name: revolve(x.n_steps, 1) for x in self.outer}}
        spare = self.budget - self.measure(least)
        if spare < 0:
            return None
        chosen = dict(least)
        waiting = sorted(self.outer, key=lambda x: x.n_steps * (x.state_bytes + x.residual_bytes))
        for k, loop in enumerate(waiting):
            step = step_bytes(self.loops, slots_of(least), loop.name)
            base = token_bytes(self.loops, slots_of(least), loop.name)
            share = spare // (len(waiting) - k)
            chosen[loop.name] = self._fit(chosen, loop, step, base + share)
            spare = self.budget - self.measure(chosen)
        return chosen

    def _fit(self, chosen: Schedules, loop: TapedLoop, step: int, room: int) -> Schedule:
        """The best schedule for ``loop``; room is taken back while the whole does not fit."""
        while True:
            schedule = fitting_schedule(loop.n_steps, loop.state_bytes, step, room)
            if schedule is None:
                return chosen[loop.name]
            excess = self.measure({**chosen, loop.name: schedule}) - self.budget
            if excess <= 0:
                return schedule
            room -= excess

    def _work(self, schedules: Schedules) -> int:
        """Forward steps of all loops together, each weighted by how often it runs."""
        total = 0
        for loop in self.loops.values():
            total += loop.runs * schedules[loop.name].forward_steps
        return total

    # --- what the user asked for ---------------------------------------------------------------

    def _as_asked(self) -> Schedules:
        inner = {x.name: store_all(x.n_steps) for x in self.inner}
        chosen = {**inner, **{x.name: revolve(x.n_steps, 1) for x in self.outer}}
        for loop in self.outer:
            chosen[loop.name] = self._asked_for(chosen, loop)
        if self.requested is not None and self.measure(chosen) > self.budget:
            raise self._too_small(self.measure(chosen))
        return chosen

    def _asked_for(self, chosen: Schedules, loop: TapedLoop) -> Schedule:
        schedule = self._named(chosen, loop)
        if not isinstance(schedule, Schedule):
            raise ScheduleError(
                f"schedule={self.choice!r} gave {type(schedule).__name__}; a schedule of "
                "ckad.schedules is wanted, its name, or a function from n_steps to one."
            )
        if schedule.n_steps != loop.n_steps:
            raise ScheduleError(
                f"the schedule is made for {schedule.n_steps} steps, the loop has {loop.n_steps}. "
                f"Build it for {loop.n_steps}, or pass a function: schedule=lambda n: "
                f"ckad.schedules.{schedule.family}(n, ...)."
            )
        return schedule

    def _named(self, chosen: Schedules, loop: TapedLoop) -> object:
        n, choice = loop.n_steps, self.choice
        if isinstance(choice, Schedule):
            return choice
        if callable(choice):
            return choice(n)
        if choice == "store_all":
            return store_all(n)
        if choice == "two_level":
            return two_level(n)
        if choice == "revolve":
            spare = self.budget - self.measure(chosen)
            return revolve(n, max(1, min(n, 1 + spare // max(1, loop.state_bytes))))
        names = ", ".join(repr(x) for x in ("auto", *SCHEDULES))
        raise ScheduleError(f"schedule={choice!r} is not known; use one of {names}, or a Schedule.")

    def _too_small(self, needed: int | None = None) -> BudgetError:
        least = self.measure(self._least()) if needed is None else needed
        what = "the least that this program needs" if needed is None else "what this schedule needs"
        states = ", ".join(
            f"{x.n_steps:,} steps with a state of {format_bytes(x.state_bytes)}" for x in self.outer
        )
        asked = f"memory={self.requested!r}" if self.requested is not None else "the free memory"
        return BudgetError(
            f"{asked} is {self.budget:,} bytes; {what} is {least:,} bytes "
            f"({states or 'no loop to reverse'}). Raise memory= to at least {least:,}."
        )

    def plans(self, schedules: Schedules) -> tuple[LoopPlan, ...]:
        slots = slots_of(schedules)
        return tuple(
            LoopPlan(
                x.n_steps,
                x.state_bytes,
                step_bytes(self.loops, slots, x.name),
                schedules[x.name],
                x.runs,
            )
            for x in sorted(self.loops.values(), key=lambda x: x.depth)
        )
