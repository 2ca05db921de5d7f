"""Running a native program: addresses into its state, one call, results out."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter

import numpy as np

from ckad.engines import arena
from ckad.engines.actions import Feed, Rows, Slots
from ckad.engines.native.layout import LINE
from ckad.engines.native.program import Program
from ckad.engines.native.state import DEEPEST, Cell, Control, Status
from ckad.errors import ScheduleError, TracedIndexError

#: Seconds between two calls into Python, about.
PAUSE = 0.05
FIRST_FUEL, MOST_FUEL = 2_000_000, 10**12
_ENTRY = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_WORKER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
_END = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Run:
    """One run of a program: its state, its memory, its action tables."""

    def __init__(
        self,
        program: Program,
        feeds: Mapping[int, Feed],
        slots: Mapping[int, Slots],
        on_progress: Callable[[int], None] | None,
    ) -> None:
        facts = program.facts
        self.program, self.on_progress = program, on_progress
        self.state = arena.aligned(8 * facts.n_cells).view(np.int64)
        self.state[: Cell.END] = 0
        homes = program.homes(slots)
        self.memory = arena.take(homes[-1])
        self.state[Cell.ARENA] = self.memory.ctypes.data
        self.state[Cell.LOOP] = -1
        self.state[Cell.FUEL] = self.fuel = FIRST_FUEL
        for cell, array in program.constants:
            self.state[cell] = array.ctypes.data
        self._tables(feeds, slots, homes)
        self.hook = self._hook  # a bound method is made anew at each look, this one stays
        self.state[Cell.HOOK] = id(self.hook)
        self.since = perf_counter()

    def _tables(
        self, feeds: Mapping[int, Feed], slots: Mapping[int, Slots], homes: Mapping[int, int]
    ) -> None:
        self.rows = np.empty((max(1, sum(feed.n_rows for feed in feeds.values())), 4), np.int64)
        self.streams: dict[int, tuple[Iterator[Rows], int]] = {}
        at = 0
        program = self.program
        for name, loop in program.taped.items():
            feed, own = feeds[name], slots[name]
            cells = self.state[loop.control : loop.control + Control.SIZE]
            cells[: Control.ROWS] = at, at, at, at + feed.reverse
            cells[Control.ROWS] = self.rows.ctypes.data
            cells[Control.RESIDUALS] = own.n_slots * loop.carry_bytes
            cells[Control.STRIDE] = program.stride(name, slots)
            if name in homes:
                cells[Control.TOKEN] = self.memory.ctypes.data + homes[name]
            offset = loop.residual_bytes
            for inner in loop.inner:
                self.state[program.taped[inner].control + Control.OFFSET] = offset
                offset += -(-program.token_bytes(inner, slots) // LINE) * LINE
            self.streams[name] = feed.pieces(), feed.n_rows
            at += feed.n_rows
            self.refill(name)

    def refill(self, name: int) -> None:
        """The next pieces, as many as there is room for: one of a stream, all of a whole table."""
        cells = self.state[self.program.taped[name].control :]
        stream, room = self.streams[name]
        first, n_rows = int(cells[Control.FIRST]), 0
        while n_rows < room and (piece := next(stream, None)) is not None:
            self.rows[first + n_rows : first + n_rows + len(piece)] = piece
            n_rows += len(piece)
        if not n_rows:
            raise ScheduleError("the schedule has no more actions, and END was not among them.")
        cells[Control.CURSOR], cells[Control.FILLED] = first, first + n_rows

    def _hook(self) -> None:
        """What compiled code calls now and then; Ctrl-C is answered on the way into here."""
        state = self.state
        if state[Cell.LOOP] >= 0:
            self.refill(int(state[Cell.LOOP]))
        if state[Cell.FUEL] <= 0:
            now = perf_counter()
            faster = PAUSE / max(now - self.since, 1e-6)
            self.fuel = int(min(MOST_FUEL, max(1, self.fuel * min(faster, 8.0))))
            state[Cell.FUEL] = self.fuel
            self.since = now
            if self.on_progress is not None:
                self.on_progress(int(state[Cell.STEPS]))


def execute(
    program: Program,
    inputs: Sequence[np.ndarray],
    feeds: Mapping[int, Feed] | None = None,
    slots: Mapping[int, Slots] | None = None,
    on_progress: Callable[[int], None] | None = None,
    n_threads: int = 1,
) -> list[np.ndarray]:
    """Run a program on plain arrays; returns one new array per output.

    Ctrl-C is answered while it runs, and ``on_progress`` told the steps done so far. Raises
    TracedIndexError with the user's place.
    """
    run = Run(program, feeds or {}, slots or {}, on_progress)
    types = program.tape.output_types
    results = [np.empty(t.shape, t.numpy) for t in types]
    kept = [np.ascontiguousarray(x) for x in inputs]
    for cell, array in zip(program.facts.inputs, kept, strict=True):
        run.state[cell] = array.ctypes.data
    for cell, array in zip(program.facts.outputs, results, strict=True):
        run.state[cell] = array.ctypes.data
    status = _call(program, run, n_threads)
    if on_progress is not None:
        on_progress(int(run.state[Cell.STEPS]))
    if status != Status.DONE:
        _fail(program, run)
    arena.give(run.memory)
    return results


def _call(program: Program, run: Run, n_threads: int) -> int:
    address = run.state.ctypes.data
    entry = _ENTRY(program.library.address("run"))
    run.state[Cell.N_THREADS] = n_threads
    if n_threads == 1:
        return int(entry(address))
    worker = _WORKER(program.library.address("worker"))
    end = _END(program.library.address("end"))
    helpers = [
        threading.Thread(target=worker, args=(address, k), daemon=True) for k in range(1, n_threads)
    ]
    for helper in helpers:
        helper.start()
    try:
        return int(entry(address))
    finally:
        end(address)
        for helper in helpers:
            helper.join()


def _fail(program: Program, run: Run) -> None:
    source, _ = program.facts.places[int(run.state[Cell.PLACE])]
    steps = [int(run.state[Cell.STEP + k]) for k in range(DEEPEST)]
    where = f" at step {', inner step '.join(map(str, steps[:1]))}"
    raise TracedIndexError(
        f"{source}: an index is out of range{where}. Keep computed indices within the axis, "
        "for example with np.clip(i, 0, n - 1) or i % n."
    )
