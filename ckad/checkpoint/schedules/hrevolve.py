"""Slots in RAM and slots on disk, whose writes and reads are weighed against steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ckad.checkpoint.schedules.generators import binomial, search, segments
from ckad.checkpoint.schedules.generators.search import NEVER, Row
from ckad.checkpoint.schedules.generators.segments import Segment, Split
from ckad.checkpoint.schedules.schedule import Family, Schedule, at_least


@dataclass(frozen=True)
class Memory:
    """Slots in RAM: P₀, and how a segment is divided that has no slot but these."""

    n_steps: int
    slots: int
    step: int
    write: int = 0
    read: int = 0

    @cached_property
    def held(self) -> list[Row]:
        """P₀(l, m) for m = 0 (none), 1, …: the start is in a slot. None are made for m > 1 if
        nothing but steps takes time, where the division is known."""
        rows = [np.full(self.n_steps, NEVER), search.one_slot(self.n_steps, self.step, self.read)]
        if self.write or self.read:
            for m in range(2, self.slots + 1):
                behind = self._free(rows[m - 1])
                rows.append(search.restored(rows[1], behind, self.step, self.read, 1))
        return rows

    def _free(self, held: Row) -> Row:
        free = held + self.write
        free[0] = 0
        return free

    @cached_property
    def free(self) -> Row:
        """O₀(l, c): all slots are free."""
        if self.write or self.read:
            return self._free(self.held[self.slots])
        return search.binomial_row(self.n_steps, self.slots, self.step)

    def divide(self, segment: Segment) -> int | Split:
        """A segment whose start is kept in RAM."""
        n, m, _, _ = segment
        if n == 1:
            return 1
        first, rest = n - 1, 1
        if m > 1 and not (self.write or self.read):
            first, rest = binomial.split(n, m), m
        elif m > 1 and self.held[m][n - 1] < self.held[1][n - 1]:
            behind = self._free(self.held[m - 1])
            first = search.first_split(n, self.held[m], behind, self.step, self.read)
            rest = m
        before = Segment(first, rest, held=True)
        return Split(segment, first, Segment(n - first, m - 1), before)


def _rows(memory: Memory, slots: int, write: int, read: int) -> list[Row]:
    """P₁(l, m), m = 0 … slots: the start is on disk, with m slots there, its own included."""
    below = memory.free
    rows, behind = [below], below
    for _ in range(slots):
        rows.append(search.restored(below, behind, memory.step, read, 1))
        behind = np.minimum(below, rows[-1] + write)
    return rows


def hrevolve(
    n_steps: int,
    ram_slots: int,
    disk_slots: int,
    *,
    step: int = 1,
    write: int = 2,
    read: int = 2,
    ram_write: int = 0,
    ram_read: int = 0,
) -> Schedule:
    """The schedule that takes least time with ``ram_slots`` in RAM and ``disk_slots`` on disk.

    ``step`` is the time of one forward step, ``write`` and ``read`` of a restart state to disk and
    back, ``ram_write`` and ``ram_read`` of one in RAM: whole numbers of one unit, such as
    nanoseconds. Nothing overlaps. What a reversal takes changes nothing, as there is one of each.

    It is found by search, in time that grows with the square of ``n_steps``: 10,000 steps with 10
    and 10 slots take a few tenths of a second.

    Raises:
        ScheduleError: ``n_steps`` or a time is negative, ``ram_slots`` or ``step`` is below 1, one
            of them is not an integer, or the search would take minutes (n_steps² x slots > 2**38).

    Source: J. Herrmann, G. Pallez (Aupy), "H-Revolve: a framework for adjoint computation on
    synchronous hierarchical platforms", ACM Trans. Math. Softw. 46 (2020), equations (3) to (6).

    >>> from ckad.schedules import hrevolve
    >>> schedule = hrevolve(1000, 5, 5, write=2, read=2)
    >>> schedule.forward_steps, schedule.disk_writes, schedule.disk_reads
    (4705, 35, 55)
    """
    n, ram = at_least(0, "n_steps", n_steps), at_least(1, "ram_slots", ram_slots)
    disk = min(at_least(0, "disk_slots", disk_slots), max(n - 1, 0))
    ram = min(ram, max(n - 1, 1))
    times = {"step": step, "write": write, "read": read}
    n_rows = disk + (ram if ram_write or ram_read else 1)
    search.checked(n_rows, n, n, **times, ram_write=ram_write, ram_read=ram_read)
    if n == 0:
        return segments.nothing("hrevolve")
    memory = Memory(n, ram, step, ram_write, ram_read)
    rows = _rows(memory, disk, write, read)

    def divide(segment: Segment) -> int | Split:
        n, m, on_disk, held = segment
        if not on_disk:
            return memory.divide(segment)
        kept = rows[m][n - 1] + (0 if held else write)
        if m == 0 or memory.free[n - 1] <= kept:
            return memory.divide(Segment(n, ram))
        behind = np.minimum(memory.free, rows[m - 1] + write) if m > 1 else memory.free
        first = search.first_split(n, rows[m], behind, step, read)
        before = Segment(first, m, on_disk=True, held=True)
        return Split(segment, first, Segment(n - first, m - 1, on_disk=True), before)

    return segments.Table(divide).schedule("hrevolve", Segment(n, disk, on_disk=True))


def forward_steps(n_steps: int, ram_slots: int, disk_slots: int, **times: int) -> int:
    """Those of the schedule: it has to be found for them."""
    return hrevolve(n_steps, ram_slots, disk_slots, **times).forward_steps


FAMILY = Family(
    "hrevolve",
    hrevolve,
    forward_steps,
    examples=(
        *((0, 1, 1), (1, 1, 1), (2, 1, 1), (9, 1, 0), (60, 1, 2), (10, 2, 1), (100, 3, 2)),
        *((100, 1, 40), (7, 6, 3)),
    ),
)
