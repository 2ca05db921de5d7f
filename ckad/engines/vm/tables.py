"""The action tables of a run of the vm, and what is seen of a loop between its pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from ckad.engines.actions import NO_END, Course, Feed, filled
from ckad.engines.vm.kernels.interpreter import (
    ACTION_COLUMNS,
    COLUMNS,
    COUNT,
    CURSOR,
    FILLED,
    FIRST,
)
from ckad.engines.vm.program import MOST_CELLS, Program, Token
from ckad.errors import ScheduleError


class NoTables:
    """What stands for the tables of programs without taped loops: nobody reads it."""

    table, rows = np.zeros((1, COLUMNS), np.int64), np.zeros((1, ACTION_COLUMNS), np.int64)

    @cached_property
    def addresses(self) -> tuple[int, int]:
        return self.table.ctypes.data, self.rows.ctypes.data

    def begin(self) -> None:
        """Before a run: there is nothing to begin anew."""

    def refill(self, number: int) -> None:
        raise AssertionError(f"loop {number} has no actions")


NO_TABLES = NoTables()


class Tables(NoTables):
    """The action tables of a run."""

    def __init__(
        self,
        program: Program,
        feeds: Mapping[int, Feed],
        f: np.ndarray,
        inputs: Sequence[np.ndarray],
    ) -> None:
        self.table = np.zeros((len(program.loops), COLUMNS), np.int64)
        self.after: dict[int, Callable[[int], Iterator[np.ndarray]] | None] = {}
        n_rows = sum(feed.n_rows for feed in feeds.values())
        self.rows = np.zeros((n_rows, ACTION_COLUMNS), np.int64)
        self.streams: dict[int, Iterator[np.ndarray]] = {}
        self.room: dict[int, int] = {}
        self.courses: dict[int, Course] = {}
        at = 0
        for name, number in program.loops.items():
            feed = feeds[name]
            self.room[number] = feed.n_rows
            if feed.fixed is None:
                self.streams[number] = feed.pieces()
            else:
                self.rows[at : at + feed.n_rows] = feed.fixed
            self.after[number] = feed.after
            self.table[number] = (
                *(at, at if feed.fixed is None else at + feed.n_rows, at, at + feed.reverse),
                *(feed.after is not None, -1, 0),
            )
            at += feed.n_rows
            if feed.begin is not None:
                self.courses[number] = feed.begin(Window(f, program.tokens[name]), inputs)
        self._begun = self.table.copy()

    def begin(self) -> None:
        """The same actions once more."""
        self.table[...] = self._begun

    def fill(self) -> None:
        """The first pieces of all loops; a course is asked when its loop begins."""
        for number in self.streams.keys() - self.courses.keys():
            self.refill(number)

    def refill(self, number: int) -> None:
        """The next pieces, as many as there is room for: one of a stream, all of a whole table."""
        first, room = int(self.table[number, FIRST]), self.room[number]
        if number in self.courses:
            return self._follow(number, first)
        after, n_steps = self.after[number], int(self.table[number, COUNT])
        if after and n_steps >= 0:
            self.streams[number], self.after[number] = after(n_steps), None
        if number not in self.streams:
            raise ScheduleError(NO_END)
        stream, learns = self.streams[number], self.after[number] is not None
        n_rows = filled(self.rows[first : first + room], stream, learns)
        if not n_rows:
            raise ScheduleError(NO_END)
        self.table[number, CURSOR], self.table[number, FILLED] = first, first + n_rows

    def _follow(self, number: int, first: int) -> None:
        """The next piece of actions between which something is to be done."""
        n_steps = int(self.table[number, COUNT])
        learnt = self.after[number] is not None and n_steps >= 0
        if learnt:
            self.after[number] = None
        piece = self.courses[number].following(n_steps if learnt else None)
        if piece is None:
            raise ScheduleError(NO_END)
        self.rows[first : first + len(piece)] = piece
        self.table[number, CURSOR], self.table[number, FILLED] = first, first + len(piece)


class Window:
    """What can be seen of an outermost loop between its pieces; see actions.Window."""

    def __init__(self, f: np.ndarray, token: Token) -> None:
        self.f, self.token = f, token

    @property
    def n_steps(self) -> int:
        at = self.token.n_steps
        return MOST_CELLS if at is None else int(self.f[at : at + 1].view(np.int64)[0])

    def end_at(self, n_steps: int) -> None:
        at = self.token.n_steps
        assert at is not None
        self.f[at : at + 1].view(np.int64)[0] = n_steps

    def slot(self, number: int) -> list[memoryview]:
        return self._parts([(at + number * size, size) for at, size in self.token.carry])

    def live(self, reverse: bool) -> list[memoryview]:
        return self._parts(self.token.totals if reverse else self.token.given)

    def _parts(self, cells: Sequence[tuple[int, int]]) -> list[memoryview]:
        return [self.f[at : at + n].data.cast("B") for at, n in cells]
