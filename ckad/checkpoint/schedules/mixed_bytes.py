"""Restart states and residuals of different sizes in the same memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import comb

import numpy as np

from ckad.checkpoint.schedules.generators import search, segments
from ckad.checkpoint.schedules.generators.search import NEVER, Row
from ckad.checkpoint.schedules.generators.segments import Segment, Split
from ckad.checkpoint.schedules.schedule import Family, Schedule, at_least
from ckad.errors import ScheduleError

#: How often a step is run: the whole part, and the rank of what is beyond it among all such parts.
Slope = tuple[int, int]

#: Operations of a search; with more of them the division is estimated.
MOST_TRIED = 10**8


@dataclass(frozen=True)
class Arena:
    """How much fits beside k restart states, and where to divide what does not.

    To tape a step and then keep a restart state is never better than to keep that state first. So
    a segment is taped whole if it fits into what is free, T(k) steps, and else divided by a restart
    state: p_k(n) = min over i of i + p_k(i) + p_k+1(n - i).
    """

    n_steps: int
    nbytes: int
    restart: int
    residual: int

    @property
    def most_held(self) -> int:
        return min(self.nbytes // self.restart, max(self.n_steps - 1, 0))

    def taped(self, k: int) -> int:
        """T(k): as many steps as can be taped beside k restart states."""
        return (self.nbytes - k * self.restart) // self.residual + 1

    @property
    def divides(self) -> Callable[[int, int], int]:
        """The first part i of a segment of n steps beside k restart states: exact if the search is
        short, else by `estimated`."""
        few = self.n_steps**2 * self.most_held <= 2 * MOST_TRIED
        return self.searched if few else self.estimated

    @cached_property
    def _rows(self) -> list[Row]:
        """p_k(n) at n - 1, k = 0, 1, …"""
        n = np.arange(1, self.n_steps + 1)
        rows: list[Row] = []
        for k in range(self.most_held, -1, -1):
            whole = np.where(n <= self.taped(k), n, NEVER)
            rows.append(search.restored(whole, rows[-1], 1, 0, 0) if rows else whole)
        return rows[::-1]

    def searched(self, n: int, k: int) -> int:
        return search.first_split(n, self._rows[k], self._rows[k + 1], 1, 0, 0)

    # --- long loops ------------------------------------------------------------------------------

    @cached_property
    def _slopes(self) -> list[Slope]:
        """σ(d), not falling: of T(d + 1) steps that are run r times T(d) - T(d + 1) are run once
        more, as they give way to the restart state d. Those that no segment reaches are left out.
        """
        exact: list[Fraction] = []
        room = self.taped(0)
        for d in range(self.most_held):
            if room >= self.n_steps:
                break
            behind = self.taped(d + 1)
            slope = Fraction(self.taped(d) - behind, behind)
            exact.append(max(slope, exact[-1]) if exact else slope)
            room += behind
        ranks = {part: rank for rank, part in enumerate(sorted({x % 1 for x in exact} | {0}))}
        return [(x.__floor__(), ranks[x % 1]) for x in exact]

    def _room(self, k: int, slope: Slope, n: int) -> int:
        """How long a segment beside k restart states is when no more steps add less than ``slope``;
        or at least ``n``.

        There are C(d - k + r - 2, r - 2) blocks of T(d + 1) steps that are run r times.
        """
        room = self.taped(k)
        for d in range(k, len(self._slopes)):
            whole, rank = self._slopes[d]
            r = slope[0] - whole - (rank > slope[1])
            if r < 2 or room >= n:
                break
            room += self.taped(d + 1) * comb(d - k + r - 1, r - 2)
        return room

    def _around(self, n: int, k: int) -> tuple[Slope, Slope]:
        """Two neighbours among the slopes, between whose rooms ``n`` lies."""

        def short(slope: Slope) -> bool:
            return self._room(k, slope, n) < n

        low, high = 1, 2
        while short((high, 0)):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if short((middle, 0)) else (low, middle)
        first, last = 0, 1 + max(rank for _, rank in self._slopes)
        ranks = last
        while last - first > 1:
            middle = (first + last) // 2
            first, last = (middle, last) if short((low, middle)) else (first, middle)
        return (low, first), (low, last) if last < ranks else (high, 0)

    def estimated(self, n: int, k: int) -> int:
        """At most a block more than the least: both parts are as long as their slopes say."""
        if k + 1 == self.most_held or n <= self.taped(k) + self.taped(k + 1):
            return n - self.taped(k + 1)
        under, slope = self._around(n, k)
        least = self._room(k, (under[0] - 1, under[1]), n)
        most = min(self._room(k, (slope[0] - 1, slope[1]), n), n - 1)
        behind = min(n - least, self._room(k + 1, slope, n))
        return min(max(n - behind, 1), most)

    def divide(self, segment: Segment) -> int | Split:
        n, k, _, _ = segment
        if n <= self.taped(k):
            return n
        first = self.divides(n, k)
        stays = first > self.taped(k)
        before = Segment(first, k, held=stays)
        return Split(segment, first, Segment(n - first, k + 1), before)


def mixed_bytes(n_steps: int, nbytes: int, restart_bytes: int, residual_bytes: int) -> Schedule:
    """`mixed` for restart states of ``restart_bytes`` and residuals of ``residual_bytes`` a step.

    Both lie in one arena of ``nbytes``, besides the residuals of one more step: a state that is
    freed makes room for residuals and the other way round, as `Schedule.shared_bytes` says. With
    equal sizes it is `mixed`. No schedule for such an arena runs fewer forward steps where
    n² x states is at most 2 x 10⁸; for longer loops the division of a segment is estimated.

    Raises:
        ScheduleError: ``n_steps`` or ``nbytes`` is negative, a size is below 1, one of them is not
            an integer, or not even one restart state fits where it is needed.

    Source: J. R. Maddison, "Step-based checkpointing with high-level algorithmic differentiation",
    J. Comput. Sci. 82 (2024), section 4, with sizes.

    >>> from ckad.schedules import mixed_bytes
    >>> schedule = mixed_bytes(1000, nbytes=2000, restart_bytes=100, residual_bytes=400)
    >>> schedule.forward_steps, schedule.n_slots, schedule.n_tape_slots
    (3442, 20, 6)
    >>> schedule.shared_bytes(100, 400)
    2400
    """
    n, u = at_least(0, "n_steps", n_steps), at_least(0, "nbytes", nbytes)
    c, a = (
        at_least(1, "restart_bytes", restart_bytes),
        at_least(1, "residual_bytes", residual_bytes),
    )
    arena = Arena(n, u, c, a)
    if n == 0:
        return segments.nothing("mixed_bytes")
    if n > arena.taped(0) and u < c:
        raise ScheduleError(
            f"nbytes={u} holds neither the residuals of {n - 1} steps, {(n - 1) * a} bytes, nor a "
            f"restart state of {c}. Pass at least {min(c, (n - 1) * a)}."
        )
    made = segments.Table(arena.divide).schedule("mixed_bytes", Segment(n, 0))
    room = (min(made.n_tape_slots, arena.taped(k)) for k in range(made.n_slots + 1))
    return replace(made, arena=tuple(room))


def forward_steps(n_steps: int, nbytes: int, restart_bytes: int, residual_bytes: int) -> int:
    """Those of the schedule: it has to be found for them."""
    return mixed_bytes(n_steps, nbytes, restart_bytes, residual_bytes).forward_steps


FAMILY = Family(
    "mixed_bytes",
    mixed_bytes,
    forward_steps,
    examples=(
        *((0, 1, 1, 1), (1, 0, 3, 3), (2, 1, 1, 3), (9, 3, 3, 1), (60, 7, 3, 2), (60, 21, 2, 5)),
        *((100, 5, 1, 1), (97, 40, 8, 3), (7, 99, 2, 1)),
    ),
)
