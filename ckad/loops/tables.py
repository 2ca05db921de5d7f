"""The action tables of a run: which rows of a schedule the engine gets, and how many bytes of them.

A loop that runs once gets its rows piece by piece. A loop inside of another runs again and again,
so its rows are kept as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from ckad.checkpoint.schedules import codes
from ckad.checkpoint.schedules.online import Online
from ckad.checkpoint.schedules.schedule import Actions, Generated, Schedule
from ckad.engines.actions import ACTION_BYTES, CHUNK, Course, Feed, Window

#: The pieces of all loops together take no more than this part of the budget, or fewest rows each.
PIECE_PART = 32
FEWEST_ROWS = 32
#: The rows of an inner loop that are kept from run to run: to make them may take longer than a run.
FEW_ROWS = 256
#: Rows that are put in where something is to be done between pieces.
EXTRA_ROWS = 2
#: The rows of longer inner loops are estimated while schedules are compared, not counted.
LONGEST_COUNTED = 20_000


def piece_rows(budget: int) -> int:
    """Rows of a piece: few under a small budget, though each piece costs a return to Python."""
    return min(CHUNK, max(FEWEST_ROWS, budget // PIECE_PART // ACTION_BYTES))


def learnt(source: Online, most: int) -> Feed:
    """The rows of a loop that nobody knows the length of, the reverse phase when it is known."""

    def pieces() -> Iterator[np.ndarray]:
        return map(rows_of, source.sweep(most))

    def after(n_steps: int) -> Iterator[np.ndarray]:
        return map(rows_of, source.after(n_steps, most))

    return Feed(pieces, most, 0, after)


def streamed(schedule: Schedule, most: int) -> Feed:
    """The rows in pieces of ``most`` at the utmost; made once, if one piece holds them all."""
    if not _exceeds(schedule, most):
        first = next(chunks(schedule, most))
        if first[-1, 0] == codes.END:
            first.flags.writeable = False
            return Feed(lambda: iter((first,)), len(first), 0, fixed=first)

    def pieces() -> Iterator[np.ndarray]:
        return chunks(schedule, most)

    return Feed(pieces, streamed_rows(schedule, most), 0)


@lru_cache(maxsize=1024)
def streamed_rows(schedule: Schedule, most: int) -> int:
    """The rows of the first piece, and of the longest."""
    if isinstance(schedule.source, Generated) and _exceeds(schedule, most):
        return most
    return int(next(schedule.chunks(most)).kind.size)


def _exceeds(schedule: Schedule, most: int) -> bool:
    """Whether there are certainly more rows, since none reverses more steps than have residuals."""
    return schedule.n_steps >= most * max(1, schedule.n_tape_slots)


#: Makes the course of a run from its chunks of rows, those of a reverse phase that is learnt, and
#: what it sees of the loop, on inputs.
Between = Callable[[Iterator[np.ndarray], "After", Window, Sequence[np.ndarray]], Course]
After = Callable[[int], Iterator[np.ndarray]] | None


def between(schedule: Schedule, most: int, is_learnt: bool, course: Between) -> Feed:
    """The rows in pieces between which something is to be done."""
    source = schedule.source
    learns = is_learnt and isinstance(source, Online)

    def rows_after(n_steps: int) -> Iterator[np.ndarray]:
        assert isinstance(source, Online)
        return map(rows_of, source.after(n_steps, most))

    after = rows_after if learns else None

    def begin(window: Window, inputs: Sequence[np.ndarray]) -> Course:
        if isinstance(source, Online) and learns:
            return course(map(rows_of, source.sweep(most)), after, window, inputs)
        return course(chunks(schedule, most), after, window, inputs)

    n_rows = EXTRA_ROWS + (most if learns else streamed_rows(schedule, most))
    return Feed(lambda: iter(()), n_rows, 0, after, begin)


def whole(schedule: Schedule) -> Feed:
    """All rows, and the row at which the reverse phase begins."""
    n_rows, reverse = _count(schedule)
    if n_rows > FEW_ROWS:
        return Feed(lambda: chunks(schedule), n_rows, reverse)
    rows = np.concatenate(list(chunks(schedule)))
    rows.flags.writeable = False
    return Feed(lambda: iter((rows,)), n_rows, reverse, fixed=rows)


def whole_rows(schedule: Schedule) -> int:
    """The number of rows; about, for a long loop that is not taped in segments."""
    taped = schedule.n_tape_slots > 1 or schedule.n_slots == 0
    if taped or schedule.n_steps <= LONGEST_COUNTED:
        return _count(schedule)[0]
    return 5 * schedule.n_steps


@lru_cache(maxsize=512)
def _count(schedule: Schedule) -> tuple[int, int]:
    """(rows, rows of the forward phase)."""
    n_rows = reverse = 0
    for rows in schedule.chunks():
        if not reverse:
            forward = (rows.kind == codes.ADVANCE) | (rows.kind == codes.TAPE)
            last = np.flatnonzero(forward & (rows.stop == schedule.n_steps))
            reverse = n_rows + int(last[0]) + 1 if last.size else 0
        n_rows += rows.kind.size
    return n_rows, reverse


def chunks(schedule: Schedule, most: int = CHUNK) -> Iterator[np.ndarray]:
    """The rows of a schedule; residuals that share an arena with states lie in its last slots."""
    for rows in map(rows_of, schedule.chunks(most)):
        if schedule.arena:
            kind, start, stop, slot = rows.T
            kept = (kind == codes.TAPE) | (kind == codes.REVERSE)
            np.copyto(slot, schedule.n_tape_slots - (stop - start), where=kept)
        yield rows


def rows_of(actions: Actions) -> np.ndarray:
    """Actions as engines read them."""
    rows = np.empty((actions.kind.size, len(actions)), np.int64)
    columns: Sequence[np.ndarray] = actions
    for k, column in enumerate(columns):
        rows[:, k] = column
    return rows
