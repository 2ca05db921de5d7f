"""As many slots on disk as are of use, and some in RAM."""

from __future__ import annotations

import numpy as np

from ckad.checkpoint.schedules.generators import search, segments
from ckad.checkpoint.schedules.generators.search import Row
from ckad.checkpoint.schedules.generators.segments import Segment, Split
from ckad.checkpoint.schedules.hrevolve import Memory
from ckad.checkpoint.schedules.schedule import Family, Schedule, at_least

#: Who may be stored on disk: nothing more, or whatever lies behind.
NOTHING, BEHIND = 1, 2


def _pieces(memory: Memory, n: int, write: int, read: int) -> tuple[Row, Row, int]:
    """O₀ and O₁ of short segments, and the longest whose start alone is stored on disk.

    A piece is of no use if any two pieces of the same length together take less. Where none is in
    all the lengths from some length to twice as many, none is among those beyond.
    """
    length = min(n, 64)
    while True:
        search.checked(1, length, length)
        free = search.binomial_row(length, memory.slots, memory.step)
        row = search.restored(free, free, memory.step, read, 1)
        most = search.longest_useful(row, write + read)
        if length == n or 2 * most < length:
            return free, row, most
        length = min(n, 4 * length)


def disk_revolve(
    n_steps: int, ram_slots: int, *, step: int = 1, write: int = 2, read: int = 2
) -> Schedule:
    """The schedule that takes least time with ``ram_slots`` in RAM and a disk without limit.

    ``step`` is the time of one forward step, ``write`` and ``read`` of a restart state to disk and
    back: whole numbers of one unit, such as nanoseconds. Nothing overlaps. A state is stored on
    disk on the way to the end only, and may be restored several times.

    It is found by search, in time that grows with ``n_steps``: the distance between two states on
    disk has a bound that does not depend on it.

    Raises:
        ScheduleError: ``n_steps`` or a time is negative, ``ram_slots`` or ``step`` is below 1, one
            of them is not an integer, or the search would take minutes: where a write takes as long
            as a million steps.

    Source: G. Aupy, J. Herrmann, P. Hovland, Y. Robert, "Optimal multistage algorithm for adjoint
    computation", SIAM J. Sci. Comput. 38 (2016), theorem 3.

    >>> from ckad.schedules import disk_revolve
    >>> schedule = disk_revolve(1000, 10)
    >>> schedule.forward_steps, schedule.disk_writes
    (2903, 85)
    """
    n, ram = at_least(0, "n_steps", n_steps), at_least(1, "ram_slots", ram_slots)
    ram = min(ram, max(n - 1, 1))
    search.checked(2, n, 1, step=step, write=write, read=read)
    if n == 0:
        return segments.nothing("disk_revolve")
    memory = Memory(n, ram, step)
    free, held, most = _pieces(memory, n, write, read)
    search.checked(1, n, most)
    below = search.binomial_row(n, ram, step)
    before = np.zeros(most + 1, np.int64)
    before[1:] = write + read + step * np.arange(1, most + 1) + held[:most]
    least = search.written(below, before, most)

    def divide(segment: Segment) -> int | Split:
        n, who, on_disk, _ = segment
        if not on_disk:
            return memory.divide(segment)
        if who == BEHIND and least[n - 1] < below[n - 1]:
            j = np.arange(1, min(n - 2, most) + 1)
            first = 1 + int(np.argmin(before[j] + least[n - 1 - j]))
            behind = Segment(n - first, BEHIND, on_disk=True)
        elif who == NOTHING and held[n - 1] < free[n - 1]:
            first = search.first_split(n, held, free[:n], step, read)
            behind = Segment(n - first, ram)
        else:
            return memory.divide(Segment(n, ram))
        return Split(segment, first, behind, Segment(first, NOTHING, on_disk=True, held=True))

    return segments.Table(divide).schedule("disk_revolve", Segment(n, BEHIND, on_disk=True))


def forward_steps(n_steps: int, ram_slots: int, **times: int) -> int:
    """Those of the schedule: it has to be found for them."""
    return disk_revolve(n_steps, ram_slots, **times).forward_steps


FAMILY = Family(
    "disk_revolve",
    disk_revolve,
    forward_steps,
    examples=((0, 1), (1, 1), (2, 1), (9, 1), (60, 1), (10, 3), (100, 3), (150, 5), (7, 50)),
)
