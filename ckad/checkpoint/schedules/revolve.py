"""Binomial checkpointing: the fewest forward steps for a number of restart slots."""

from __future__ import annotations

from ckad.checkpoint.schedules.generators import binomial
from ckad.checkpoint.schedules.schedule import Family, Generated, Schedule, at_least


def forward_steps(n_steps: int, n_slots: int) -> int:
    """n + r n - β(s + 1, r - 1) with the least r for which β(s, r) >= n."""
    n, s = at_least(0, "n_steps", n_steps), at_least(1, "n_slots", n_slots)
    return binomial.binomial_forward_steps(n, s)


def revolve(n_steps: int, n_slots: int) -> Schedule:
    """Reverse ``n_steps`` steps with at most ``n_slots`` restart slots and one residual slot.

    No schedule that tapes single steps runs fewer forward steps, and among those that run as few
    none stores fewer states. The initial state takes a slot, and its store counts as a write.
    A state is stored only if it is restored later: n steps never fill more than n - 1 slots, so
    ``Schedule.n_slots`` may be smaller than what was offered.

    Raises:
        ScheduleError: ``n_steps`` is negative or above 2**62, ``n_slots`` is below 1, or one of
            them is not an integer.

    Source: A. Griewank, A. Walther, "Algorithm 799: Revolve", ACM Trans. Math. Softw. 26 (2000).

    >>> from ckad.schedules import revolve
    >>> schedule = revolve(100, 5)
    >>> schedule.forward_steps, schedule.writes
    (416, 44)
    >>> print(revolve(1000, 10))
    revolve: n_steps=1000, n_slots=10, n_tape_slots=1, forward_steps=4636, recompute factor 4.636
    """
    n, s = at_least(0, "n_steps", n_steps), at_least(1, "n_slots", n_slots)
    useful = min(s, max(n - 1, 0))
    start = binomial.registers(n, period=max(n, 1), extra_slots=useful - 1, sweep=False)
    source = Generated(binomial.fill, start, useful, 7 * n + 1)
    return Schedule("revolve", n, useful, min(n, 1), binomial.binomial_forward_steps(n, s), source)


FAMILY = Family(
    "revolve",
    revolve,
    forward_steps,
    examples=((0, 1), (1, 1), (2, 1), (9, 1), (60, 2), (10, 3), (100, 5), (7, 6), (7, 50)),
)
