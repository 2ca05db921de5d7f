"""Restart states and residuals in the same slots: what is left is taped as soon as it fits."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from ckad.checkpoint.schedules.codes import END, STORE, TAPE
from ckad.checkpoint.schedules.generators import binomial
from ckad.checkpoint.schedules.generators.binomial import repetitions, scaled
from ckad.checkpoint.schedules.generators.filling import NEXT
from ckad.checkpoint.schedules.generators.stack import FRONTIER, HERE, OWN, TOP, on_a_stack
from ckad.checkpoint.schedules.schedule import Family, Generated, Schedule, at_least
from ckad.kernel import kernel

SLOTS, STACK = OWN, OWN + 1


def forward_steps(n_steps: int, n_slots: int) -> int:
    """p(n, s), whose increments p(n + 1) - p(n) are s ones, then repetitions r = 2, 3, ….

    Each of them has phases k = s … 1, of C(s - k + r - 2, r - 2) times the increments r + 1 and
    k - 1 times r, so that repetition r ends at n = β(s, r) = C(s + r, s).
    """
    n, s = at_least(0, "n_steps", n_steps), at_least(1, "n_slots", n_slots)
    if n <= s + 1:
        return n
    if s == 1:
        return n * (n + 1) // 2 - 1
    r = binomial.least_repetitions(n, s)
    rest = n - comb(s + r - 1, s)
    d, blocks = _whole_phases(rest, s, r)  # phases k = s … s - d + 1, and the steps in them
    k = s - d
    full, partial = divmod(rest - blocks, k) if k else (0, 0)
    n_blocks = comb(d + r - 2, r - 1) + full + (partial > 0)
    return s * comb(s + r - 1, s + 1) + comb(s + r - 2, r - 2) + r * rest + n_blocks


def _whole_phases(rest: int, s: int, r: int) -> tuple[int, int]:
    """How many phases of repetition r fit into ``rest`` steps, and how many steps they have."""

    def steps(d: int) -> int:  # the sum over j < d of (s - j) C(j + r - 2, r - 2)
        return s * comb(d + r - 2, r - 1) - (r - 1) * comb(d + r - 2, r)

    low, high = 0, s
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if steps(middle) <= rest else (low, middle - 1)
    return low, steps(low)


@kernel
def split(n: int, s: int) -> int:
    """How far to advance from a checkpoint where n > s + 1 steps are left, with s slots in all.

    The increments of the two parts, those of the first with one repetition less, are together
    those of the whole. Whole phases are known to be in one part or the other; what is left of the
    last phase can be in any, and goes to the second part first.
    """
    if s == 1:
        return n - 1
    r, before = repetitions(n, s)
    first = scaled(before, r - 1, s + r - 1)  # β(s, r - 2)
    rest, count, d = n - before, 1, 0
    while True:
        k = s - d
        # of C(d + r - 2, r - 2) blocks of k steps C(d + r - 3, r - 3) are in the first part
        left = scaled(count, r - 2, d + r - 2) if d + r > 2 else 1
        if rest <= count * k or k == 1:
            return first + max(0, rest - (count - left) * k)
        first += left * k
        rest -= count * k
        count = scaled(count, d + r - 1, d + 1)
        d += 1


@kernel
def advance(state: NDArray[np.int64]) -> int:
    """Where the next ADVANCE stops; sets what follows it."""
    here, frontier = state[HERE], state[FRONTIER]
    n_free = state[SLOTS] - state[TOP] - 1  # for what lies behind
    stop: int = here + split(frontier - here, n_free + 1)
    state[NEXT] = TAPE if frontier - stop <= n_free + 1 else STORE
    return stop


@kernel
def is_taped(state: NDArray[np.int64]) -> bool:
    """Whether the slots that are free hold what is left."""
    fits: bool = state[FRONTIER] - state[HERE] <= state[SLOTS] - state[TOP] + 1
    return fits


fill = on_a_stack(advance, is_taped, STACK)


def most_used(n: int, s: int) -> tuple[int, int]:
    """The most restart slots that are filled at once, and the most steps that are taped at once."""
    if n <= s + 1:
        return 0, n
    r = binomial.least_repetitions(n, s)
    rest = n - comb(s + r - 1, s)
    if r > 2:
        return s, s + (rest >= s)
    d, blocks = _whole_phases(rest, s, r)
    return d + (rest > blocks), s + (rest >= s)


def mixed(n_steps: int, n_slots: int) -> Schedule:
    """Reverse ``n_steps`` steps with ``n_slots`` slots for restart states or residuals.

    A slot holds either a restart state or the residuals of one step; besides them the residuals of
    one more step are held, as by `revolve`. So it runs fewer steps than `revolve` where the two
    take about the same memory (`mixed_bytes` is for others). The start is stored only if it is
    restored later, and freed when it is restored for the last time.

    No schedule that uses slots in this way runs fewer forward steps. Both kinds of slots are used
    as stacks: `Schedule.shared_bytes` says what one arena for both takes.

    Raises:
        ScheduleError: ``n_steps`` is negative or above 2**62, ``n_slots`` is below 1, or one of
            them is not an integer.

    Source: J. R. Maddison, "Step-based checkpointing with high-level algorithmic differentiation",
    J. Comput. Sci. 82 (2024), section 4; the closed form is our own.

    >>> from ckad.schedules import mixed, revolve
    >>> mixed(1000, 20).forward_steps, revolve(1000, 20).forward_steps
    (2823, 3747)
    """
    n, s = at_least(0, "n_steps", n_steps), at_least(1, "n_slots", n_slots)
    s = min(s, max(n - 1, 0))
    held, taped = most_used(n, s)
    count = forward_steps(n, n_slots)
    first = END if n == 0 else STORE if held else TAPE
    arena = tuple(min(taped, s - k + 1) for k in range(held + 1))
    start = (first, 0, n, -1, s)
    source = Generated(fill, start, held, 7 * n + 1)
    return Schedule("mixed", n, held, taped, count, source, arena=arena)


FAMILY = Family(
    "mixed",
    mixed,
    forward_steps,
    examples=((0, 1), (1, 1), (2, 1), (9, 1), (60, 2), (10, 3), (100, 5), (7, 6), (7, 50)),
)
