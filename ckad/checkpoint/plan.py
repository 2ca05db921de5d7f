"""From bytes to slots to a schedule, and the plan that says so before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

import numpy as np

from ckad.checkpoint.picture import draw
from ckad.checkpoint.schedules import online
from ckad.checkpoint.schedules.online import MOST_SLOTS, Online
from ckad.checkpoint.schedules.periodic import even_period, fitting_slots
from ckad.checkpoint.schedules.revolve import revolve
from ckad.checkpoint.schedules.schedule import Action, Schedule
from ckad.checkpoint.schedules.store_all import store_all
from ckad.checkpoint.schedules.two_level import two_level
from ckad.memory import format_bytes


def fitting_schedule(
    n_steps: int,
    state_bytes: int,
    residual_bytes: int,
    budget: int,
    binomial: Callable[[int, int], Schedule] = revolve,
    beside: bool = False,
) -> Schedule | None:
    """The schedule with the fewest forward steps whose slots fit into ``budget`` bytes.

    ``state_bytes`` is one restart state, ``residual_bytes`` what the reversal of one step needs,
    ``binomial`` the family to take where states are restored again and again. ``beside`` says that
    steps are run again beside the reversal of others. None if not even one restart state and one
    step's residuals fit.
    """
    if n_steps * residual_bytes <= budget:
        return store_all(n_steps)
    n_slots = (budget - residual_bytes) // max(1, state_bytes)
    if n_slots < 1:
        return None
    candidates = [binomial(n_steps, min(n_slots, max(n_steps, MOST_SLOTS)))]
    n_even = fitting_slots(n_steps, state_bytes, residual_bytes, budget)
    if n_even is not None:
        candidates.append(two_level(n_steps, even_period(n_steps, n_even)))
    n_ahead = fitting_slots(n_steps, state_bytes, 2 * residual_bytes, budget) if beside else None
    if n_ahead is not None:
        candidates.append(two_level(n_steps, even_period(n_steps, n_ahead), ahead=True))
    return min(candidates, key=lambda schedule: schedule.weight)


@dataclass(frozen=True)
class LoopPlan:
    """How one loop is reversed. Bytes are those of a restart state and of a step's residuals.

    ``runs`` says how often the loops around it run it in one sweep, ``depth`` is 1 for a loop
    inside of none. Where a loop ``is_open``, its number of steps is known when it has run: it is
    ``ran``, 0 before, and ``n_steps`` is what the schedule is made for. ``place`` is its file and
    line, ``name`` a number that no other loop of the program has. ``beside`` of the forward steps
    are run in one stream of instructions with reversals of others.
    """

    n_steps: int
    state_bytes: int
    residual_bytes: int
    schedule: Schedule
    runs: int = 1
    depth: int = 1
    is_open: bool = False
    place: str = ""
    name: int = -1
    ran: int = 0
    beside: int = 0

    @property
    def is_unknown(self) -> bool:
        """Whether nobody knows how long it runs: it is open, and has not run."""
        return self.is_open and not self.ran

    @property
    def _is_about(self) -> bool:
        # which checkpoints a loop keeps on the way depends a little on how long it is thought to be
        return self.is_unknown or (self.is_open and isinstance(self.schedule.source, Online))

    @cached_property
    def forward_steps(self) -> int:
        """Of the schedule; of the steps that were made, where that was learnt."""
        return clipped(self.schedule, self.ran) if self.ran else self.schedule.forward_steps

    @property
    def recompute_factor(self) -> float:
        return self.forward_steps / max(1, self.ran or self.n_steps)

    @property
    def nbytes(self) -> int:
        """Bytes of all restart states and residuals of one run of the loop."""
        s, shared = self.schedule, self.schedule.shared_bytes(self.state_bytes, self.residual_bytes)
        apart = s.n_slots * self.state_bytes + s.n_tape_slots * self.residual_bytes
        return apart if shared is None else shared

    def __str__(self) -> str:
        s = self.schedule
        times = f", {self.runs:,} times" if self.depth > 1 else ""
        kept = [
            _count(s.n_slots, "restart slot", self.state_bytes),
            _count(s.n_disk_slots, "slot on disk", self.state_bytes),
            _count(s.n_tape_slots, "residual slot", self.residual_bytes),
        ]
        if s.arena:
            kept.append(f"all in {format_bytes(self.nbytes)}")
        return (
            f"{s.family} over {self._length}{times}: {', '.join(filter(None, kept))}, "
            f"{'about ' if self._is_about else ''}{self.forward_steps:,} forward steps "
            f"(factor {self.recompute_factor:.3f})"
            f"{f', {self.beside:,} of them beside reversals' if self.beside else ''}"
        )

    @property
    def _length(self) -> str:
        steps = f"{self.n_steps:,} steps"
        if self.is_unknown:
            return f"a number of steps not known before the run ({steps} assumed)"
        return f"the {self.ran:,} steps of the last run" if self.is_open else steps

    def formula(self, budget: int | None) -> str:
        """What n steps take, where nobody knows n."""
        end = f"the {budget:,} bytes" if budget else "a quarter of the free memory"
        return (
            f"n steps: n x {self.residual_bytes:,} bytes of residuals within {end}, then restart "
            f"slots of {self.state_bytes:,} bytes and steps that are run again"
        )


def clipped(schedule: Schedule, n: int) -> int:
    """Forward steps if only ``n`` of the steps are there: every action ends at the last of them."""
    if isinstance(schedule.source, Online):
        return online.forward_steps(n, schedule.n_slots + schedule.n_disk_slots)
    steps = 0
    for rows in schedule.chunks():
        forward = (rows.kind == Action.ADVANCE) | (rows.kind == Action.TAPE)
        start, stop = (np.minimum(x[forward], n) for x in (rows.start, rows.stop))
        steps += int(np.sum(stop - start))
    return steps


def _count(n: int, what: str, size: int) -> str:
    plural = what.replace("slot", "slots") if n > 1 else what
    return f"{n:,} {plural} of {format_bytes(size)}" if n else ""


class OnDisk(NamedTuple):
    """What was weighed where disk was given: predicted seconds of both sweeps and bytes moved."""

    seconds: float
    computing: float  # seconds of the steps alone
    io_bytes: int
    instead: str  # the runner-up
    instead_seconds: float

    def __str__(self) -> str:
        text = (
            f"disk: {format_bytes(self.io_bytes)} written and read, "
            f"about {self.seconds:.3g} s predicted"
        )
        return f"{text}; runner-up {self.instead}, {self.instead_seconds:.3g} s"


@dataclass(frozen=True)
class Plan:
    """What a gradient will cost, known before it runs. ``print(plan)`` shows it.

    ``n_steps``, ``n_slots``, ``forward_steps`` and ``schedule`` are those of the outermost loop
    (of the longest one, if there are several); ``loops`` lists all of them, inner ones after the
    loop they are in. ``peak_bytes`` is everything ckad allocates for the call. Where a loop's
    number of steps is not known before it runs, they are those of a guess, and ``is_unknown`` says
    so; a plan asked for after a run has the numbers of that run. ``disk`` says what was predicted
    where disk was given, else it is None. ``seconds`` is how long a call is predicted to take, from
    a few steps that were timed, and of a run of a loop that nobody knows the length of from what
    those of the last run would. Where steps cannot be left out (see `ckad.plan`) it is what the
    fastest run so far has taken; None before it. Of one thread these are seconds of a processor,
    which other programs do not move; of several threads, or with a disk, those of a clock.
    ``rounding`` is by how much ``codec="float32"`` has changed a state at the most in the last run,
    ‖x - x̃‖₂ / ‖x‖₂: to first order the gradient has changed by that, times how much it depends
    on the states.

    >>> import numpy as np, ckad
    >>> def decay(x):
    ...     for _ in range(50):
    ...         x = x - 0.1 * x**3
    ...     return x
    >>> plan = ckad.plan(decay, 1.0)
    >>> plan.n_steps, plan.forward_steps, plan.schedule.family, plan.peak_bytes < 10_000
    (50, 50, 'store_all', True)
    """

    peak_bytes: int
    budget: int | None
    engine: str
    loops: tuple[LoopPlan, ...] = field(default=())
    disk: OnDisk | None = None
    seconds: float | None = None
    rounding: float | None = None

    @property
    def _main(self) -> LoopPlan | None:
        outermost = [loop for loop in self.loops if loop.depth == 1]
        return max(outermost, key=lambda loop: loop.n_steps, default=None)

    @property
    def n_steps(self) -> int:
        return (self._main.ran or self._main.n_steps) if self._main else 0

    @property
    def is_unknown(self) -> bool:
        """Whether it is a guess, since a loop has not run that nobody knows the length of."""
        return any(loop.is_unknown for loop in self.loops)

    def after(self, ran: Mapping[int, int]) -> Plan:
        """The plan of a run whose open loops made so many steps, by name."""
        loops = (replace(x, ran=ran[x.name]) if ran.get(x.name) else x for x in self.loops)
        return replace(self, loops=tuple(loops))

    @property
    def n_slots(self) -> int:
        return self._main.schedule.n_slots if self._main else 0

    @property
    def forward_steps(self) -> int:
        return self._main.forward_steps if self._main else 0

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
        if self.is_unknown:
            size = f"unknown before the first run, {size} for what is assumed"
        head = f"Plan: peak {size}, engine {self.engine}"
        if not self.loops:
            return f"{head}, no loop to reverse"
        unknown = " (not known before the run)" if self._main and self._main.is_unknown else ""
        main = (
            f"  steps {self.n_steps:,}{unknown}, slots {self.n_slots:,}, forward steps "
            f"{self.forward_steps:,}, recompute factor {self.recompute_factor:.3f}"
        )
        took = [] if self.seconds is None else [f"  about {self.seconds:.2g} s predicted"]
        if self.rounding is not None:
            took.append(f"  states on disk rounded by {self.rounding:.1e} of their norm, at most")
        loops = [f"{'  ' * loop.depth}{loop}" for loop in self.loops]
        formulas = [
            f"{'  ' * loop.depth}{loop.formula(self.budget)}"
            for loop in self.loops
            if loop.is_unknown
        ]
        disk = [f"  {self.disk}"] if self.disk else []
        return "\n".join([head, main, *took, *disk, *loops, *formulas])

    def _repr_html_(self) -> str:
        """The same text, as notebooks show it."""
        return f"<pre>{escape(str(self))}</pre>"

    def plot(self, ax: Any = None) -> Any:
        """Draw the state's way through the steps: sweeps up, restarts, reversals. Needs matplotlib.

        Returns the axes. Schedules with more than 200,000 actions are refused (ValueError).
        """
        if self.schedule is None:
            raise ValueError("this program has no loop to reverse, so there is nothing to draw")
        return draw(self.schedule, ax)
