"""Running a Program: fill the cells, interpret in time slices, copy the results out."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cache, cached_property, partial
from math import prod
from time import perf_counter

import numpy as np

from ckad.engines import arena, blas, flags
from ckad.engines.actions import NO_END, Course, Feed, TooManySteps, closing_courses, filled
from ckad.engines.origin import located, not_finite, stopped
from ckad.engines.stops import Seen, Stops
from ckad.engines.vm.isa import Status
from ckad.engines.vm.kernels import table
from ckad.engines.vm.kernels.interpreter import (
    ACTION_COLUMNS,
    COLUMNS,
    COUNT,
    CURSOR,
    FILLED,
    FIRST,
    MOST,
)
from ckad.engines.vm.program import CELL, MOST_CELLS, Place, Program, Token
from ckad.errors import NonFiniteError, ScheduleError
from ckad.tape.routines import ROUTINES
from ckad.tape.types import DType

#: The interpreter returns at least this often, in its own rough nanoseconds of work.
SLICE = 30_000_000
#: Seconds after which it had better return: what an op really costs is only known when it runs.
PAUSE = 0.05
#: The interpreter runs without the GIL.
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 5, *[ctypes.c_int64] * 2)
CHECK_WORDS, CALL_WORDS = 4, 2
_AS_IT_IS = nullcontext()


class _NoTables:
    """What stands for the tables of programs without taped loops: nobody reads it."""

    table, rows = np.zeros((1, COLUMNS), np.int64), np.zeros((1, ACTION_COLUMNS), np.int64)

    @cached_property
    def addresses(self) -> tuple[int, int]:
        return self.table.ctypes.data, self.rows.ctypes.data

    def refill(self, number: int) -> None:
        raise AssertionError(f"loop {number} has no actions")


_NO_TABLES = _NoTables()


class _Tables(_NoTables):
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


class _Calls:
    """The routines that a run calls."""

    def __init__(self, program: Program, f: np.ndarray, i: np.ndarray) -> None:
        self.program, self.f, self.i = program, f, i

    def run(self, at: int) -> None:
        """Run the routine of a place in Python; what it raises says where."""
        call = self.program.calls[at]
        operands = [get(self.f, self.i, place) for place in call.operands]
        try:
            result = ROUTINES[call.attrs[0]].run(call.attrs[1:], *operands)
            put(self.f, self.i, call.out.offset, result)
        except Exception as error:
            raise self._located(at, error) from None

    def failure(self, at: int, status: int) -> BaseException:
        """What machine code has failed with."""
        body = ROUTINES[self.program.calls[at].attrs[0]].compiled
        assert body is not None
        error, message = body.errors[status]
        return self._located(at, error(message))

    def _located(self, at: int, error: BaseException) -> BaseException:
        numbers = [int(self.i[cell]) for cell in self.program.counters.get(at, ())]
        return located(error, str(self.program.places[at].source), numbers)


#: By their numbers; much faster than calling the enumeration.
STATUS = tuple(Status)


@cache
def _interpreter() -> Callable[..., int]:
    return _RUN(table.run())


def execute(
    program: Program,
    inputs: Sequence[np.ndarray],
    feeds: Mapping[int, Feed] | None = None,
    on_progress: Callable[[int], None] | None = None,
    stops: Stops | None = None,
    longest: dict[int, int] | None = None,
) -> list[np.ndarray]:
    """Run ``program`` on plain arrays; returns one new array per output, none if it was stopped.

    Between time slices Ctrl-C is answered and ``on_progress`` is told the steps done so far.
    ``longest`` gets the steps that guarded loops ran at the most. Raises TracedIndexError and
    NonFiniteError with the user's place.
    """
    memory = arena.take(CELL * program.n_cells)
    f = memory[: CELL * program.n_cells].view(np.float64)
    i = f.view(np.int64)
    f[0] = 0.0
    at, numbers = program.scattered
    i[at] = numbers
    for offset, array in program.whole:
        put(f, i, offset, array)
    lent = []
    for place, array in zip(program.inputs, inputs, strict=True):
        if place.far:
            lent.append(_in_cells(array))
            i[place.offset] = (lent[-1].ctypes.data - f.ctypes.data) // CELL
        else:
            put(f, i, place.offset, array)
    calls, told = _Calls(program, f, i), (on_progress, stops, longest)
    with blas.one_thread() if program.calls_blas else _AS_IT_IS:
        if feeds:
            tables = _Tables(program, feeds, f, inputs)
            with closing_courses(tables.courses):
                tables.fill()
                results = _slices(program, f, i, calls, tables, *told)
        else:
            results = _slices(program, f, i, calls, _NO_TABLES, *told)
    arena.give(memory)
    return results


def _slices(
    program: Program,
    f: np.ndarray,
    i: np.ndarray,
    calls: _Calls,
    tables: _NoTables,
    on_progress: Callable[[int], None] | None,
    stops: Stops | None,
    longest: dict[int, int] | None,
) -> list[np.ndarray]:
    """Time slice after time slice until the program stops."""
    report = (ctypes.c_int64 * 4)()
    run = partial(_interpreter(), program.address, f.ctypes.data, *tables.addresses, report)
    pc, fuel = 0, SLICE // 16
    while True:
        began = perf_counter()
        flags.begin()
        pc = run(pc, fuel)
        flags.note()
        status = STATUS[report[0]]
        if status is Status.PAUSED:
            fuel = min(SLICE, 1 + int(fuel * PAUSE / (perf_counter() - began)))
        if on_progress is not None:
            on_progress(report[2])
        if status is Status.DONE:
            if longest is not None:
                longest.update({k: int(tables.table[x, MOST]) for k, x in program.loops.items()})
            return [get(f, i, place) for place in program.outputs]
        if status is Status.ACTIONS:
            tables.refill(report[1])
        elif status is Status.LENGTH:
            (name,) = (k for k, number in program.loops.items() if number == report[1])
            raise TooManySteps(name, report[3])
        elif status is Status.NOT_FINITE and stops is not None:
            at = report[1]
            numbers = tuple(int(i[cell]) for cell in program.counters[at])
            seen = Seen(program.places[at], numbers, get(f, i, program.results[at]))
            if stops.see(at, seen):
                return []
            pc += CHECK_WORDS
        elif status is Status.CALL:
            calls.run(report[1])
            pc += CALL_WORDS
        elif status is Status.FAILED:
            raise calls.failure(report[1], report[3])
        elif status is not Status.PAUSED:
            _fail(program, status, report[1], f)


def _in_cells(array: np.ndarray) -> np.ndarray:
    """An array whose elements lie as cells do: itself, or a copy."""
    lies = array.flags.c_contiguous and array.ctypes.data % CELL == 0
    return array if lies else np.array(array, order="C")


def put(f: np.ndarray, i: np.ndarray, offset: int, array: np.ndarray) -> None:
    """Write an array into cells."""
    cells = f if array.dtype.kind == "f" else i
    cells[offset : offset + array.size] = array.ravel()


def get(f: np.ndarray, i: np.ndarray, place: Place) -> np.ndarray:
    """Read an array out of cells."""
    type, at = place.type, place.offset
    dtype, shape = type
    size = prod(shape)
    if dtype is DType.F64:  # as it lies there, and most are
        return f[at : at + size].reshape(shape).copy()
    cells = f if type.is_float else i
    part = cells[at : at + size].reshape(shape)
    return part != 0 if type.dtype is DType.BOOL else part.astype(type.numpy)


def _fail(program: Program, status: Status, detail: int, f: np.ndarray) -> None:
    origin, i = program.places[detail], f.view(np.int64)
    numbers = [int(i[cell]) for cell in program.counters.get(detail, ())]
    if status is Status.INDEX:
        raise stopped(str(origin.source), origin.op, numbers)
    value = get(f, i, program.results[detail])
    raise NonFiniteError(not_finite(origin, numbers, value), origin.row, origin.reverse)
