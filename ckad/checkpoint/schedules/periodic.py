"""States in RAM at equal distances, and every segment between them taped whole."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt

from ckad.checkpoint.schedules import two_level
from ckad.checkpoint.schedules.schedule import Family, Schedule, at_least


def even_period(n_steps: int, n_slots: int) -> int:
    """The period of `two_level` with at most ``n_slots`` restart slots and segments of like length.

    The last segment is run once, the others twice, so that it should not be shorter than needed.
    """
    return max(1, -(-n_steps // (n_slots + 1)))


def fitting_slots(n_steps: int, restart_bytes: int, residual_bytes: int, memory: int) -> int | None:
    """The number of states with which the fewest steps are run within ``memory``, if any fits.

    k states and n / (k + 1) residuals fit where k lies between the roots of a parabola; the fewest
    steps are run near the lower one.
    """
    low, high = 1, max(1, isqrt(n_steps * residual_bytes // max(1, restart_bytes)))

    def used(k: int) -> int:
        return k * restart_bytes + even_period(n_steps, k) * residual_bytes

    if used(high) > memory:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if used(middle) <= memory else (middle + 1, high)
    some = [k for k in range(low, min(n_steps, low + 32) + 1) if used(k) <= memory]
    return min(some, key=lambda k: forward_steps(n_steps, k))


def _arguments(n_steps: int, n_slots: int) -> tuple[int, int]:
    n, s = at_least(0, "n_steps", n_steps), at_least(0, "n_slots", n_slots)
    return n, even_period(n, s)


def forward_steps(n_steps: int, n_slots: int) -> int:
    """n + the steps before the last segment."""
    return two_level.forward_steps(*_arguments(n_steps, n_slots))


def periodic(n_steps: int, n_slots: int) -> Schedule:
    """Keep at most ``n_slots`` states at equal distances; tape each segment whole, last first.

    That is `two_level` with the period that so many slots ask for: under 2 n forward steps, and
    n / (``n_slots`` + 1) residual slots.

    Raises:
        ScheduleError: ``n_steps`` or ``n_slots`` is negative, ``n_steps`` above 2**62, or one of
            them is not an integer.

    >>> from ckad.schedules import periodic
    >>> schedule = periodic(100, 9)
    >>> schedule.forward_steps, schedule.n_slots, schedule.n_tape_slots
    (190, 9, 10)
    """
    return replace(two_level.two_level(*_arguments(n_steps, n_slots)), family="periodic")


FAMILY = Family(
    "periodic",
    periodic,
    forward_steps,
    examples=((0, 2), (1, 1), (7, 0), (7, 3), (12, 3), (13, 20), (100, 9)),
)
