"""Running a Program: fill the cells, interpret in time slices, copy the results out."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from math import prod
from time import perf_counter
from typing import Any

import numpy as np

from ckad.engines import arena, blas, flags
from ckad.engines.actions import Feed, TooManySteps, closing_courses
from ckad.engines.origin import located, not_finite, stopped
from ckad.engines.stops import Seen, Stops
from ckad.engines.vm.isa import Status
from ckad.engines.vm.kernels import table
from ckad.engines.vm.kernels.interpreter import MOST
from ckad.engines.vm.program import CELL, Place, Program
from ckad.engines.vm.tables import NO_TABLES, NoTables, Tables
from ckad.errors import NonFiniteError
from ckad.tape.routines import ROUTINES
from ckad.tape.types import DType

#: The interpreter returns at least this often, in its own rough nanoseconds of work.
SLICE = 30_000_000
#: Seconds after which it had better return: what an op really costs is only known when it runs.
PAUSE = 0.05
#: The interpreter runs without the GIL.
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 5, *[ctypes.c_int64] * 2)
CHECK_WORDS, CALL_WORDS = 4, 2
#: Bytes from which on programs share what the arena keeps.
SHARED = 2**18
#: Workspaces that a program keeps, for as many threads as call it at once.
MOST_IDLE = 4


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
DONE = int(Status.DONE)


@cache
def _interpreter() -> Callable[..., int]:
    return _RUN(table.run())


class Runner:
    """A program with its actions, ready to run again and again, from several threads."""

    def __init__(self, program: Program, feeds: Mapping[int, Feed]) -> None:
        self.program, self.feeds = program, feeds
        self._nbytes = CELL * program.n_cells
        self._idle: list[Workspace] = []  # threads take from it and give back, each in one step

    def __call__(
        self,
        inputs: Sequence[np.ndarray],
        on_progress: Callable[[int], None] | None = None,
        stops: Stops | None = None,
        longest: dict[int, int] | None = None,
    ) -> list[np.ndarray]:
        """Run on plain arrays; returns one new array per output, none if it was stopped.

        Between time slices Ctrl-C is answered and ``on_progress`` is told the steps done so far.
        ``longest`` gets the steps that guarded loops ran at the most. Raises TracedIndexError and
        NonFiniteError with the user's place.
        """
        if self._nbytes >= SHARED:
            memory = arena.take(self._nbytes)
            results = Workspace(self, memory).run(inputs, on_progress, stops, longest)
            arena.give(memory)
            return results
        try:  # with what is known of its memory, which takes long beside a short run
            space = self._idle.pop()
        except IndexError:
            space = Workspace(self, arena.aligned(self._nbytes))
        results = space.run(inputs, on_progress, stops, longest)
        if len(self._idle) < MOST_IDLE:
            self._idle.append(space)
        return results


class Workspace:
    """The memory of one run at a time, and what is known of it before a run begins."""

    def __init__(self, runner: Runner, memory: np.ndarray) -> None:
        program = self.program = runner.program
        self.feeds = runner.feeds
        self.f = memory[: CELL * program.n_cells].view(np.float64)
        self.i = self.f.view(np.int64)
        self.address = int(self.f.ctypes.data)
        self.constants = [(self.i[at : at + x.size], x) for at, x in program.whole]
        self.scattered = program.scattered if program.scattered[0].size else None
        self.inputs = [(x.offset, None if x.far else self._place(x)) for x in program.inputs]
        self.outputs = [self._reader(x) for x in program.outputs]
        self.calls = _Calls(program, self.f, self.i)
        self.report = (ctypes.c_int64 * 4)()
        are_same = all(feed.is_same for feed in self.feeds.values())
        own = Tables(program, self.feeds, self.f, ()) if are_same else None
        self.tables = own if self.feeds else NO_TABLES
        self.entry = None if self.tables is None else self._entry(self.tables)

    def _place(self, place: Place) -> np.ndarray:
        cells, size = self.f if place.type.is_float else self.i, prod(place.type.shape)
        return cells[place.offset : place.offset + size].reshape(place.type.shape)

    def _reader(self, place: Place) -> Callable[[], np.ndarray]:
        if place.type.dtype is DType.F64:  # as it lies there, and most are
            return self._place(place).copy
        return partial(get, self.f, self.i, place)

    def _entry(self, tables: NoTables) -> Callable[..., int]:
        addresses = self.address, *tables.addresses, ctypes.addressof(self.report)
        return partial(_interpreter(), self.program.address, *addresses)

    def run(
        self,
        inputs: Sequence[np.ndarray],
        on_progress: Callable[[int], None] | None,
        stops: Stops | None,
        longest: dict[int, int] | None,
    ) -> list[np.ndarray]:
        self.f[0] = 0.0
        if self.scattered is not None:
            at, numbers = self.scattered
            self.i[at] = numbers
        for view, values in self.constants:
            view[...] = values
        lent: list[np.ndarray] = []
        for x, (offset, place) in zip(inputs, self.inputs, strict=True):
            if place is not None:
                place[...] = x
            else:
                lent.append(_in_cells(np.asarray(x)))
                self.i[offset] = (lent[-1].ctypes.data - self.address) // CELL
        told = on_progress, stops, longest
        if not self.program.calls_blas:
            return self._with_tables(inputs, *told)
        with blas.one_thread():
            return self._with_tables(inputs, *told)

    def _with_tables(
        self,
        inputs: Sequence[np.ndarray],
        on_progress: Callable[[int], None] | None,
        *told: Any,
    ) -> list[np.ndarray]:
        if self.tables is not None and self.entry is not None:
            self.tables.begin()
            return self._slices(self.entry, self.tables, on_progress, *told)
        tables = Tables(self.program, self.feeds, self.f, inputs)
        with closing_courses(tables.courses):
            tables.fill()
            return self._slices(self._entry(tables), tables, on_progress, *told)

    def _slices(
        self,
        run: Callable[..., int],
        tables: NoTables,
        on_progress: Callable[[int], None] | None,
        stops: Stops | None,
        longest: dict[int, int] | None,
    ) -> list[np.ndarray]:
        """Time slice after time slice until the program stops."""
        program, report, f, i = self.program, self.report, self.f, self.i
        report[2] = 0  # the steps done, which the interpreter counts
        pc, fuel = 0, SLICE // 16
        watched = flags.is_watching()
        while True:
            began = perf_counter()
            if watched:
                flags.begin()
            pc = run(pc, fuel)
            if watched:
                flags.note()
            code = report[0]
            if code == DONE and on_progress is None and not program.loops:
                return [read() for read in self.outputs]
            status = STATUS[code]
            if status is Status.PAUSED:
                fuel = min(SLICE, 1 + int(fuel * PAUSE / (perf_counter() - began)))
            if on_progress is not None:
                on_progress(report[2])
            if status is Status.DONE:
                if longest is not None and program.loops:
                    ran = tables.table[:, MOST].tolist()
                    longest.update({name: ran[number] for name, number in program.loops.items()})
                return [read() for read in self.outputs]
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
                self.calls.run(report[1])
                pc += CALL_WORDS
            elif status is Status.FAILED:
                raise self.calls.failure(report[1], report[3])
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
