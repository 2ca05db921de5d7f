"""Keep the residuals of every step: nothing is computed again."""

from __future__ import annotations

from ckad.checkpoint.schedules.generators import taping
from ckad.checkpoint.schedules.schedule import Family, Generated, Schedule, at_least


def forward_steps(n_steps: int) -> int:
    """n: each step runs once."""
    return at_least(0, "n_steps", n_steps)


def store_all(n_steps: int) -> Schedule:
    """Tape the whole loop, then reverse it: ``n_steps`` residual slots, no restart slot.

    The initial state needs no restart slot either, as no step is ever run again.

    Raises:
        ScheduleError: ``n_steps`` is negative, above 2**62, or not an integer.

    >>> from ckad.schedules import store_all
    >>> schedule = store_all(1000)
    >>> schedule.forward_steps, schedule.n_slots, schedule.n_tape_slots
    (1000, 0, 1000)
    """
    n_steps = at_least(0, "n_steps", n_steps)
    source = Generated(taping.fill, taping.registers(n_steps, max(n_steps, 1)), 0, 3)
    return Schedule("store_all", n_steps, 0, n_steps, n_steps, source)


FAMILY = Family("store_all", store_all, forward_steps, examples=((0,), (1,), (2,), (97,)))
