"""From bytes to slots to a schedule, and the plan that says so before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isqrt
from typing import Any

from ckad.checkpoint.picture import draw
from ckad.checkpoint.schedules.online import MOST_SLOTS
from ckad.checkpoint.schedules.revolve import revolve
from ckad.checkpoint.schedules.schedule import Schedule
from ckad.checkpoint.schedules.store_all import store_all
from ckad.checkpoint.schedules.two_level import forward_steps as two_level_steps
from ckad.checkpoint.schedules.two_level import two_level
from ckad.memory import format_bytes


def fitting_schedule(
    n_steps: int,
    state_bytes: int,
    residual_bytes: int,
    budget: int,
    binomial: Callable[[int, int], Schedule] = revolve,
) -> Schedule | None:
    """The schedule with the fewest forward steps whose slots fit into ``budget`` bytes.

    ``state_bytes`` is one restart state, ``residual_bytes`` what the reversal of one step needs,
    ``binomial`` the family to take where states are restored again and again. None if not even one
    restart state and one step's residuals fit.
    """
    if n_steps * residual_bytes <= budget:
        return store_all(n_steps)
    n_slots = (budget - residual_bytes) // max(1, state_bytes)
    if n_slots < 1:
        return None
    candidates = [binomial(n_steps, min(n_slots, max(n_steps, MOST_SLOTS)))]
    periods = _periods(n_steps, state_bytes, residual_bytes, budget)
    candidates += [two_level(n_steps, p) for p in periods]
    return min(candidates, key=lambda schedule: schedule.forward_steps)


def even_period(n_steps: int, n_slots: int) -> int:
    """The period of `two_level` with at most ``n_slots`` restart slots and segments of like length.

    The last segment is run once, the others twice, so that it should not be shorter than needed.
    """
    return -(-n_steps // (n_slots + 1))


def _periods(n_steps: int, state_bytes: int, residual_bytes: int, budget: int) -> list[int]:
    """The period that runs the fewest steps with two levels, if any fits.

    k states and n / (k + 1) residuals fit where k lies between the roots of a parabola; the fewest
    steps are run near the lower one.
    """
    low, high = 1, max(1, isqrt(n_steps * residual_bytes // max(1, state_bytes)))

    def used(k: int) -> int:
        return k * state_bytes + even_period(n_steps, k) * residual_bytes

    if used(high) > budget:
        return []
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if used(middle) <= budget else (middle + 1, high)
    some = [k for k in range(low, min(n_steps, low + 32) + 1) if used(k) <= budget]
    best = min(some, key=lambda k: two_level_steps(n_steps, even_period(n_steps, k)))
    return [even_period(n_steps, best)]


@dataclass(frozen=True)
class LoopPlan:
    """How one loop is reversed. Bytes are those of a restart state and of a step's residuals.

    ``runs`` says how often the loops around it run it in one sweep, ``depth`` is 1 for a loop
    inside of none. Where a loop ``is_open``, its number of steps is known when it has run:
    ``n_steps`` is what is thought, after a run that needed more what was needed, or more. ``place``
    is its file and line.
    """

    n_steps: int
    state_bytes: int
    residual_bytes: int
    schedule: Schedule
    runs: int = 1
    depth: int = 1
    is_open: bool = False
    place: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes of all restart states and residuals of one run of the loop."""
        s = self.schedule
        return s.n_slots * self.state_bytes + s.n_tape_slots * self.residual_bytes

    def __str__(self) -> str:
        s = self.schedule
        times = f", {self.runs:,} times" if self.depth > 1 else ""
        kept = [
            _count(s.n_slots, "restart slot", self.state_bytes),
            _count(s.n_tape_slots, "residual slot", self.residual_bytes),
        ]
        return (
            f"{s.family} over {self._length}{times}: {', '.join(filter(None, kept))}, "
            f"{'about ' if self.is_open else ''}{s.forward_steps:,} forward steps "
            f"(factor {s.recompute_factor:.3f})"
        )

    @property
    def _length(self) -> str:
        steps = f"{self.n_steps:,} steps"
        unknown = f"a number of steps not known before the run ({steps} assumed)"
        return unknown if self.is_open else steps


def _count(n: int, what: str, size: int) -> str:
    return f"{n:,} {what}{'s' if n > 1 else ''} of {format_bytes(size)}" if n else ""


@dataclass(frozen=True)
class Plan:
    """What a gradient will cost, known before it runs. ``print(plan)`` shows it.

    ``n_steps``, ``n_slots``, ``forward_steps`` and ``schedule`` are those of the outermost loop
    (of the longest one, if there are several); ``loops`` lists all of them, inner ones after the
    loop they are in. ``peak_bytes`` is everything ckad allocates for the call.
    """

    peak_bytes: int
    budget: int | None
    engine: str
    loops: tuple[LoopPlan, ...] = field(default=())

    @property
    def _main(self) -> LoopPlan | None:
        outermost = [loop for loop in self.loops if loop.depth == 1]
        return max(outermost, key=lambda loop: loop.n_steps, default=None)

    @property
    def n_steps(self) -> int:
        return self._main.n_steps if self._main else 0

    @property
    def n_slots(self) -> int:
        return self._main.schedule.n_slots if self._main else 0

    @property
    def forward_steps(self) -> int:
        return self._main.schedule.forward_steps if self._main else 0

    @property
    def recompute_factor(self) -> float:
        """Forward steps per step; 1.0 if nothing is computed twice."""
        return self.forward_steps / self.n_steps if self.n_steps else 1.0

    @property
    def schedule(self) -> Schedule | None:
        return self._main.schedule if self._main else None

    def __str__(self) -> str:
        of = f" of {self.budget:,}" if self.budget else ""
        size = f"{self.peak_bytes:,}{of} bytes ({format_bytes(self.peak_bytes)})"
        head = f"Plan: peak {size}, engine {self.engine}"
        if not self.loops:
            return f"{head}, no loop to reverse"
        unknown = " (not known before the run)" if self._main and self._main.is_open else ""
        main = (
            f"  steps {self.n_steps:,}{unknown}, slots {self.n_slots:,}, forward steps "
            f"{self.forward_steps:,}, recompute factor {self.recompute_factor:.3f}"
        )
        loops = [f"{'  ' * loop.depth}{loop}" for loop in self.loops]
        return "\n".join([head, main, *loops])

    def plot(self, ax: Any = None) -> Any:
        """Draw the state's way through the steps: sweeps up, restarts, reversals. Needs matplotlib.

        Returns the axes. Schedules with more than 200,000 actions are refused (ValueError).
        """
        if self.schedule is None:
            raise ValueError("this program has no loop to reverse, so there is nothing to draw")
        return draw(self.schedule, ax)
