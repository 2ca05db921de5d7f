"""Running a Program: fill the cells, interpret in time slices, copy the results out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter

import numpy as np

from ckad.engines.actions import Feed
from ckad.engines.heap import LINE, too_much
from ckad.engines.vm.interpreter import CURSOR, FILLED, FIRST, run
from ckad.engines.vm.intrinsics import register_symbols
from ckad.engines.vm.isa import Status
from ckad.engines.vm.program import CELL, Place, Program
from ckad.errors import NonFiniteError, ScheduleError, TracedIndexError
from ckad.tape.types import DType

#: The interpreter returns at least this often, in its own rough nanoseconds of work.
SLICE = 30_000_000
#: Seconds after which it had better return: what an op really costs is only known when it runs.
PAUSE = 0.05


class _Tables:
    """The action tables of a run."""

    def __init__(self, program: Program, feeds: Mapping[int, Feed]) -> None:
        n = max(1, len(program.loops))
        self.table = np.zeros((n, 4), np.int64)
        self.rows = np.zeros((max(1, sum(feed.n_rows for feed in feeds.values())), 4), np.int64)
        self.streams: dict[int, Iterator[np.ndarray]] = {}
        self.room: dict[int, int] = {}
        at = 0
        for name, number in program.loops.items():
            feed = feeds[name]
            self.streams[number], self.room[number] = feed.pieces(), feed.n_rows
            self.table[number] = (at, at, at, at + feed.reverse)
            at += feed.n_rows
            self.refill(number)

    def refill(self, number: int) -> None:
        """The next pieces, as many as there is room for: one of a stream, all of a whole table."""
        first, room = int(self.table[number, FIRST]), self.room[number]
        n_rows = 0
        while n_rows < room and (piece := next(self.streams[number], None)) is not None:
            self.rows[first + n_rows : first + n_rows + len(piece)] = piece
            n_rows += len(piece)
        if not n_rows:
            raise ScheduleError("the schedule has no more actions, and END was not among them.")
        self.table[number, CURSOR], self.table[number, FILLED] = first, first + n_rows


def execute(
    program: Program,
    inputs: Sequence[np.ndarray],
    feeds: Mapping[int, Feed] | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> list[np.ndarray]:
    """Run ``program`` on plain arrays; returns one new array per output.

    Between time slices Ctrl-C is answered and ``on_progress`` is told the steps done so far.
    Raises TracedIndexError and NonFiniteError with the user's place.
    """
    register_symbols()
    f = aligned(program.n_cells)
    i = f.view(np.int64)
    f[0] = 0.0
    for offset, array in program.constants:
        put(f, i, offset, array)
    for place, array in zip(program.inputs, inputs, strict=True):
        put(f, i, place.offset, array)
    tables = _Tables(program, feeds or {})
    report = np.zeros(3, np.int64)
    pc, fuel = 0, SLICE // 16
    while True:
        began = perf_counter()
        pc = run(program.code, f, i, pc, fuel, tables.table, tables.rows, report)
        status = Status(report[0])
        if status is Status.PAUSED:
            fuel = min(SLICE, 1 + int(fuel * PAUSE / (perf_counter() - began)))
        if on_progress is not None:
            on_progress(int(report[2]))
        if status is Status.DONE:
            return [get(f, i, place) for place in program.outputs]
        if status is Status.ACTIONS:
            tables.refill(int(report[1]))
        elif status is not Status.PAUSED:
            _fail(program, status, int(report[1]), i)


def aligned(n: int) -> np.ndarray:
    """Fresh cells that begin at a cache line: vector loads across lines take twice as long."""
    try:
        f = np.empty(n + LINE)
    except (MemoryError, ValueError):  # ValueError: more than NumPy can count
        raise MemoryError(too_much(n * CELL)) from None
    skip = (-f.ctypes.data // CELL) % LINE
    return f[skip : skip + n]


def put(f: np.ndarray, i: np.ndarray, offset: int, array: np.ndarray) -> None:
    """Write an array into cells."""
    cells = f if array.dtype.kind == "f" else i
    cells[offset : offset + array.size].reshape(array.shape)[...] = array


def get(f: np.ndarray, i: np.ndarray, place: Place) -> np.ndarray:
    """Read an array out of cells."""
    type = place.type
    cells = f if type.is_float else i
    part = cells[place.offset : place.offset + type.size].reshape(type.shape)
    return part != 0 if type.dtype is DType.BOOL else part.astype(type.numpy)


def _fail(program: Program, status: Status, detail: int, i: np.ndarray) -> None:
    source, op = program.places[detail]
    steps = [f"step {i[cell]}" for cell in program.counters.get(detail, ())]
    where = f" at {', inner '.join(steps)}" if steps else ""
    if status is Status.INDEX:
        raise TracedIndexError(
            f"{source}: an index is out of range{where}. Keep computed indices within the axis, "
            "for example with np.clip(i, 0, n - 1) or i % n."
        )
    raise NonFiniteError(
        f"{source}: {op} gives a NaN or an infinity{where}. Look for a division by zero, the "
        "logarithm or root of a negative number, or a step that is too long to be stable."
    )
