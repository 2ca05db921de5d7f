"""What an engine is given for each taped loop: how many slots, and its actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np

ACTION_BYTES = 32
#: Rows of a table that is refilled while the program runs: each time takes some 20 µs.
CHUNK = 8192

#: What is said of actions that run out.
NO_END = "the schedule has no more actions, and END was not among them."

#: Columns kind, start, stop, slot; one action per row.
Rows = np.ndarray


def filled(room: Rows, stream: Iterator[Rows], learns: bool) -> int:
    """How many rows have been put into ``room``: the next pieces, as many as there is room for.

    Of a loop that ``learns`` how long it is that is one piece: what is far may take long to find.
    """
    n = 0
    while n < len(room) and (piece := next(stream, None)) is not None:
        room[n : n + len(piece)] = piece
        n += len(piece)
        if learns:
            break
    return n


class Kind(IntEnum):
    """The kinds of actions, in the order of checkpoint.schedules.Action."""

    ADVANCE = 0
    STORE = 1
    RESTORE = 2
    DROP = 3
    TAPE = 4
    REVERSE = 5
    END = 6


class Slots(NamedTuple):
    """How many restart states and residuals of steps a loop's token holds.

    ``n_steps`` is what the actions are made for: an open loop cannot run more. Where both may share
    their memory, ``arena`` says how many steps' residuals lie in the last slots at the most beside
    0, 1, 2 … states in the first ones.
    """

    n_slots: int
    n_tape_slots: int
    n_steps: int = 0
    arena: tuple[int, ...] = ()

    def nbytes(self, state: int, residual: int) -> int:
        """Bytes of states and residuals of such sizes."""
        if not self.arena:
            return self.n_slots * state + self.n_tape_slots * residual
        return max(k * state + n * residual for k, n in enumerate(self.arena))


class TooManySteps(Exception):
    """An open loop runs longer than its actions are made for: for the loop driver.

    ``wanted`` is how many steps it runs, 0 if that is not known.
    """

    def __init__(self, loop: int, wanted: int = 0) -> None:
        super().__init__(f"loop {loop} runs {wanted or 'on'}")
        self.loop, self.wanted = loop, wanted


class BegunWith(TooManySteps):
    """A run that is to be gone on with has thought its open loops to run so many steps, by name."""

    def __init__(self, loop: int, lengths: Mapping[int, int]) -> None:
        super().__init__(loop)
        self.lengths = dict(lengths)


class Window(Protocol):
    """What can be seen of an outermost loop between two pieces of its actions."""

    @property
    def n_steps(self) -> int:
        """How many steps the loop runs, as far as that is known."""

    def end_at(self, n_steps: int) -> None:
        """Let a guarded loop run so many steps, no more than it does otherwise."""

    def slot(self, number: int) -> Sequence[memoryview]:
        """The memory of a restart slot, in parts."""

    def live(self, reverse: bool) -> Sequence[memoryview]:
        """What lives from piece to piece in a sweep beside the token and the carry: in the forward
        one what each step gives, in the reverse one all cotangents."""


class Course(Protocol):
    """The actions of one run of a loop, if something is to be done between their pieces."""

    def following(self, n_steps: int | None) -> Rows | None:
        """The next piece, asked for when the last one has been carried out, the first one when the
        loop begins.

        ``n_steps`` is given once, when the forward sweep of a loop has ended that learns it.
        """

    def close(self, keep: bool) -> None:
        """The run is over; or it has failed, and ``keep`` what it can be resumed from."""


class Feed(NamedTuple):
    """The actions of one loop: all rows at once, or a stream of pieces.

    ``reverse`` is the row at which the reverse phase begins; a stream is used for loops that run
    once, which simply go on. Where the number of steps is learnt on the way, ``pieces`` are those
    of the forward phase, which may go on for ever, and ``after`` makes those of the reverse phase.
    What a loop has to do between its pieces, the course does that ``begin`` makes for each run on
    its inputs.
    """

    pieces: Callable[[], Iterator[Rows]]
    n_rows: int  # room that the table needs
    reverse: int
    after: Callable[[int], Iterator[Rows]] | None = None
    begin: Callable[[Window, Sequence[np.ndarray]], Course] | None = None
    fixed: Rows | None = None  # all rows, if they are few: a table keeps them from run to run

    @property
    def is_same(self) -> bool:
        """Whether the actions are the same in every run."""
        return self.fixed is not None and self.after is None and self.begin is None


class Bare(NamedTuple):
    """A program that any thread may run, with the GIL or without it, in memory of its own.

    A run copies the cells, writes into them the addresses of its memory, of inputs and of results,
    and calls ``i32 entry(cells)``, which gives 0 or what it failed with.
    """

    entry: int
    cells: np.ndarray  # int64, at the beginning of a run
    inputs: Sequence[int]  # the cells of addresses
    outputs: Sequence[int]
    memory: int
    tokens: Sequence[tuple[int, int]]  # cells of addresses within the memory, bytes from its start
    nbytes: int  # of the memory, which begins at a multiple of 64
    kept: object  # what the cells point to


@contextmanager
def closing_courses(courses: Mapping[int, Course]) -> Iterator[None]:
    """Close what was begun meanwhile. A run that failed may be resumed, but for one that had too
    few actions: it begins anew with others."""
    keep = True
    try:
        yield
        keep = False
    except BegunWith:
        raise
    except TooManySteps:
        keep = False
        raise
    finally:
        for course in courses.values():
            course.close(keep)
