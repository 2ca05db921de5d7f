"""The slots of schedules; states and residuals in one arena, where that runs fewer steps.

So what is idle between half of all residuals and all of them is used; and where only states fit,
residuals take the room of those that are done.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from ckad.checkpoint.schedules.mixed_bytes import mixed_bytes
from ckad.checkpoint.schedules.online import Online
from ckad.checkpoint.schedules.schedule import MAX_STEPS, Schedule
from ckad.engines.actions import Slots
from ckad.engines.measure import TapedLoop, step_bytes
from ckad.errors import ScheduleError

#: A schedule for each loop, by its name.
Schedules = dict[int, Schedule]
#: Longer loops are not searched, and more states than these are hardly fewer steps.
MOST_STEPS, MOST_STATES = 10**5, 4096
#: How often the arena is made smaller until the whole program fits.
TRIES = 4


class Limits(Protocol):
    """What a choice of schedules has to keep to."""

    loops: dict[int, TapedLoop]
    outer: list[TapedLoop]
    budget: int
    is_limited: bool
    resumes: bool
    overlaps: bool

    def measured(self, schedules: Schedules) -> int:
        """The bytes of a whole run."""


def slots_of(schedules: Schedules) -> dict[int, Slots]:
    return {
        name: Slots(_in_memory(s), s.n_tape_slots, _most(s), s.arena)
        for name, s in schedules.items()
    }


def _in_memory(schedule: Schedule) -> int:
    """Restart slots in memory; with others on disk, one through which their states go."""
    return schedule.n_slots + (1 if schedule.n_disk_slots else 0)


def _most(schedule: Schedule) -> int:
    """How many steps a loop may run at the most under a schedule."""
    return MAX_STEPS if isinstance(schedule.source, Online) else schedule.n_steps


def in_arenas(limits: Limits, chosen: Schedules) -> Schedules:
    """``chosen``, with `mixed_bytes` for the loops where a budget was asked for and that saves
    steps. A run that can be gone on with has states in memory of their own."""
    if not limits.is_limited or limits.resumes or not limits.overlaps:
        return chosen
    for x in limits.outer:
        before = chosen[x.name]
        repeats = before.weight > x.n_steps and x.state_bytes and not x.is_open
        if repeats and x.n_steps <= MOST_STEPS:
            chosen = _in_arena(limits, chosen, x)
    return chosen


def _in_arena(limits: Limits, chosen: Schedules, x: TapedLoop) -> Schedules:
    slots = slots_of(chosen)
    step = max(1, step_bytes(limits.loops, slots, x.name))
    held = slots[x.name].nbytes(x.state_bytes, step)
    room = limits.budget - limits.measured(chosen) + held
    for _ in range(TRIES):
        made = _made(x, room - step, step)
        if made is None or made.weight >= chosen[x.name].weight:
            return chosen
        found = {**chosen, x.name: made}
        over = limits.measured(found) - limits.budget
        if over <= 0:
            return found
        room -= max(over, min(x.state_bytes, step))  # less makes it no smaller
    return chosen


def _made(x: TapedLoop, nbytes: int, step: int) -> Schedule | None:
    if nbytes < x.state_bytes:
        return None
    with suppress(ScheduleError):  # a table that is too long
        made = mixed_bytes(x.n_steps, nbytes, x.state_bytes, step)
        return made if made.n_slots <= MOST_STATES else None
    return None
