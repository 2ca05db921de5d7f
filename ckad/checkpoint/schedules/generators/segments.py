"""The generator for schedules that are found by search: a table of segments that name each other.

A segment of some length is either taped whole, or its start is kept, the steps to a second segment
are run, and when that is reversed the start is restored and what lies before is a third. Equal
segments are one row of the table, which so has few of them; whoever fills it says only how one
segment is divided.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckad.checkpoint.schedules.codes import (
    ADVANCE,
    DROP,
    END,
    FINISHED,
    RESTORE,
    REVERSE,
    STORE,
    TAPE,
)
from ckad.checkpoint.schedules.generators.filling import NEXT, filling
from ckad.checkpoint.schedules.schedule import Generated, Schedule
from ckad.errors import ScheduleError
from ckad.kernel import kernel

#: Columns of a row of the table.
LENGTH, FIRST, BEHIND, BEFORE, ON_DISK, HELD, N_COLUMNS = range(7)

# The registers of a generator state after NEXT; the table follows them, then the stack of
# checkpoints: step, slot and the segment before.
(
    HERE,
    FRONTIER,
    SEGMENT,
    TOP,
    IN_RAM,
    IN_DISK,
    N_SLOTS,
    N_ROWS,
    SWEEPING,
    PERIOD,
    N_BEFORE,
    LAST,
    EACH,
    TABLE,
) = range(NEXT + 1, 15)

#: A longer table takes more memory than is worth while: 48 bytes a row, and as much to make it.
MOST_ROWS = 2**18


class Segment(NamedTuple):
    """What tells segments apart."""

    n_steps: int
    n_slots: int
    """The slots that it may use, of those where its start is kept; its family may count others."""
    on_disk: bool = False
    held: bool = False
    """Whether its start is in a slot when it begins: that of the segment which it is part of."""


class Split(NamedTuple):
    """How a segment is divided: ``first`` steps, what lies ``behind`` them, then they themselves.

    Its start is kept where the segment says.
    """

    segment: Segment
    first: int
    behind: Segment
    before: Segment


class Totals(NamedTuple):
    """What a segment takes."""

    forward_steps: int
    n_actions: int
    n_slots: int
    n_disk_slots: int
    n_tape_slots: int


Divide = Callable[[Segment], int | Split]
"""How many steps of a segment to tape, namely all, or how it is divided.

A segment may be done as another, whose start is kept elsewhere or not yet."""


class Table:
    """Segments in the making: every one after those that it is divided into."""

    def __init__(self, divide: Divide) -> None:
        self._divide = divide
        self._number: dict[Segment, int] = {}
        self._rows: list[tuple[int, ...]] = []
        self._totals: list[Totals] = []

    def add(self, segment: Segment) -> int:
        """The number of a segment, which is divided as far as need be."""
        waiting = [(segment, self._divide(segment))]
        while waiting:
            segment, division = waiting[-1]
            if isinstance(division, Split):
                parts = (division.behind, division.before)
                unknown = next((part for part in parts if part not in self._number), None)
                if unknown:
                    if len(self._rows) + len(waiting) >= MOST_ROWS:
                        raise ScheduleError(
                            f"this schedule has more than {MOST_ROWS:,} different segments. Pass "
                            f"more slots, or take a family without a table of them: revolve, mixed."
                        )
                    waiting.append((unknown, self._divide(unknown)))
                    continue
            self._append(segment, division)
            waiting.pop()
        return self._number[segment]

    def _append(self, name: Segment, division: int | Split) -> None:
        self._number[name] = len(self._rows)
        if isinstance(division, int):
            self._rows.append((division, 0, -1, -1, 0, 0))
            self._totals.append(Totals(division, 2, 0, 0, division))
            return
        segment, first = division.segment, division.first
        on_disk, held = segment.on_disk, segment.held
        behind, before = self._number[division.behind], self._number[division.before]
        length = first + self._rows[behind][LENGTH]
        self._rows.append((length, first, behind, before, int(on_disk), int(held)))
        a, b = self._totals[behind], self._totals[before]
        stays = self._rows[before][HELD]
        self._totals.append(
            Totals(
                first + a.forward_steps + b.forward_steps,
                a.n_actions + b.n_actions + 2 + (not held) + (not stays),
                max(a.n_slots + (not on_disk), b.n_slots),
                max(a.n_disk_slots + on_disk, b.n_disk_slots),
                max(a.n_tape_slots, b.n_tape_slots),
            )
        )

    def schedule(
        self,
        family: str,
        last: Segment,
        period: int = 0,
        n_before: int = 0,
        each: Segment | None = None,
    ) -> Schedule:
        """``n_before`` times ``period`` steps, whose starts are kept on disk, then ``last``.

        ``each`` is how every one of the former is reversed.
        """
        end = self.add(last)
        again = self.add(each) if each else end
        a, b = self._totals[end], self._totals[again]
        n_slots = max(a.n_slots, b.n_slots if n_before else 0)
        n_disk = max(a.n_disk_slots, b.n_disk_slots) + n_before
        rows = np.array(self._rows, np.int64)
        n_steps = n_before * period + int(rows[end, LENGTH])
        first = STORE if n_before or rows[end, FIRST] else TAPE
        start = [first, 0, n_steps, end, 0, 0, 0, n_slots, len(rows)]
        start += [int(n_before > 0), period, n_before, end, again]
        n_actions = a.n_actions + 1 + n_before * (b.n_actions + 4)
        # every checkpoint on the stack fills a slot of its own
        stack = 3 * (n_slots + max(a.n_disk_slots, b.n_disk_slots) + 1)
        source = Generated(fill, tuple(start), stack, n_actions, rows.tobytes())
        return Schedule(
            family,
            n_steps,
            n_slots,
            max(a.n_tape_slots, b.n_tape_slots),
            a.forward_steps + n_before * (period + b.forward_steps),
            source,
            n_disk,
        )


def nothing(family: str) -> Schedule:
    """The schedule of no step."""
    start = (END, *(0 for _ in range(TABLE - 1)))
    return Schedule(family, 0, 0, 0, 0, Generated(fill, start, 3, 1))


@kernel
def column(state: NDArray[np.int64], segment: int, which: int) -> int:
    value: int = state[TABLE + N_COLUMNS * segment + which]
    return value


@kernel
def begin(state: NDArray[np.int64], segment: int) -> None:
    """Set what comes first in a segment that starts at the working state."""
    state[SEGMENT] = segment
    if column(state, segment, FIRST) == 0:
        state[NEXT] = TAPE
    elif column(state, segment, HELD):
        state[NEXT] = ADVANCE
    else:
        state[NEXT] = STORE


@kernel
def sweep(state: NDArray[np.int64]) -> tuple[int, int, int]:
    """STORE or ADVANCE on the way to the last segment."""
    here = state[HERE]
    if state[NEXT] == STORE:
        slot = state[N_SLOTS] + state[IN_DISK]
        state[IN_DISK] += 1
        state[NEXT] = ADVANCE
        return here, here, slot
    state[HERE] = here + state[PERIOD]
    if state[IN_DISK] == state[N_BEFORE]:
        state[SWEEPING] = 0
        begin(state, state[LAST])
    else:
        state[NEXT] = STORE
    return here, state[HERE], -1


@kernel
def back(state: NDArray[np.int64]) -> tuple[int, int, int]:
    """RESTORE or DROP of the start of a period."""
    slot = state[N_SLOTS] + state[N_BEFORE] - 1
    state[HERE] = (state[N_BEFORE] - 1) * state[PERIOD]
    if state[NEXT] == RESTORE:
        state[NEXT] = DROP
    else:
        state[N_BEFORE] -= 1
        state[IN_DISK] -= 1
        begin(state, state[EACH])
    return state[HERE], state[HERE], slot


@kernel
def store(state: NDArray[np.int64], top: int) -> int:
    """Put the start of the segment on the stack; return its slot."""
    segment = state[SEGMENT]
    state[TOP] += 1
    if column(state, segment, ON_DISK):
        slot = state[N_SLOTS] + state[IN_DISK]
        state[IN_DISK] += 1
    else:
        slot = state[IN_RAM]
        state[IN_RAM] += 1
    state[top + 3], state[top + 4] = state[HERE], slot
    state[NEXT] = ADVANCE
    number: int = slot
    return number


@kernel
def perform(state: NDArray[np.int64]) -> tuple[int, int, int]:
    """Carry out the next action on the state; return its start, stop and slot."""
    action, here, frontier, segment = state[NEXT], state[HERE], state[FRONTIER], state[SEGMENT]
    if state[SWEEPING]:
        return sweep(state)
    top = TABLE + N_COLUMNS * state[N_ROWS] + 3 * (state[TOP] - 1)
    if action == ADVANCE:
        state[top + 2] = column(state, segment, BEFORE)
        state[HERE] = here + column(state, segment, FIRST)
        begin(state, column(state, segment, BEHIND))
        return here, state[HERE], -1
    if action == STORE:
        return here, here, store(state, top)
    if action == TAPE:
        state[NEXT] = REVERSE
        return here, frontier, 0
    if action == REVERSE:
        state[FRONTIER] = here
        state[NEXT] = RESTORE if here > 0 else END
        return here, frontier, 0
    if action == END:
        state[NEXT] = FINISHED
        return 0, 0, -1
    if state[TOP] == 0:
        return back(state)
    slot = state[top + 1]
    state[HERE] = state[top]
    if action == RESTORE:
        state[SEGMENT] = state[top + 2]
        stays = column(state, state[SEGMENT], HELD)
        state[NEXT] = ADVANCE if stays else DROP
    else:
        state[TOP] -= 1
        if slot < state[N_SLOTS]:
            state[IN_RAM] -= 1
        else:
            state[IN_DISK] -= 1
        begin(state, segment)
    return state[HERE], state[HERE], slot


fill = filling(perform)
