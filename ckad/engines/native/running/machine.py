"""Running a native program: addresses into its state, one call, results out.

A `Runner` is a program with its schedules; each run borrows a `Workspace`, which has all memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from weakref import proxy, ref

import numpy as np

from ckad.engines import arena, blas, flags
from ckad.engines.actions import (
    NO_END,
    Course,
    Feed,
    Rows,
    Slots,
    TooManySteps,
    closing_courses,
    filled,
)
from ckad.engines.native.ir.state import DEEPEST, LEARNT, Cell, Control, Status
from ckad.engines.native.running.gate import OTHER, Gate, opened
from ckad.engines.native.running.helpers import Sharing, started
from ckad.engines.native.running.program import Program
from ckad.engines.native.running.tokens import place_tokens
from ckad.engines.native.running.window import Window
from ckad.engines.origin import located, stopped
from ckad.engines.routines import failure
from ckad.errors import ScheduleError
from ckad.tape.types import Type

#: Seconds between two calls into Python, about.
PAUSE = 0.05
FIRST_FUEL, MOST_FUEL = 2_000_000, 10**12
#: Inputs and results of at most this many elements are copied to places of their own, which takes
#: less time than to find out where an array lies.
FEW = 16
#: Workspaces that a program keeps, for as many threads as call it at once.
MOST_IDLE = 4
#: Times that a workspace gets a gate, of which each knows where the memory of its runs lies.
OPENS = 8
#: Runs before that: the first gate of a process takes as long as hundreds of runs gain by it.
RUNS = 12
_ENTRY = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_PLAIN = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
#: The cells that every run sets, as plain numbers, which index faster than members of an enum.
_ARENA, _FUEL, _HOOK, _LOOP, _STEPS, _N_THREADS = map(
    int, (Cell.ARENA, Cell.FUEL, Cell.HOOK, Cell.LOOP, Cell.STEPS, Cell.N_THREADS)
)


class Runner:
    """A program with its schedules, ready to run again and again, from several threads."""

    def __init__(
        self, program: Program, feeds: Mapping[int, Feed], slots: Mapping[int, Slots]
    ) -> None:
        self.program, self.feeds, self.slots = program, feeds, slots
        self.homes = program.homes(slots)
        self.entry = _ENTRY(program.library.address("run"))
        self.guarded = [(k, v.control) for k, v in program.taped.items() if v.head_bytes]
        self.has_courses = any(feed.begin is not None for feed in feeds.values())
        self.longest: dict[int, int] = {}
        self.sharing = Sharing()
        self._idle: list[Workspace] = []  # threads take from it and give back, each in one step

    def __call__(
        self,
        inputs: Sequence[np.ndarray],
        on_progress: Callable[[int], None] | None = None,
        n_threads: int = 1,
    ) -> list[np.ndarray]:
        """Run on plain arrays; returns one new array per output.

        Ctrl-C is answered while it runs, and ``on_progress`` told the steps done so far. Raises
        TracedIndexError with the user's place.
        """
        try:
            space = self._idle.pop()
        except IndexError:
            space = Workspace(self)
        results = space.run(inputs, on_progress, n_threads)
        if self.guarded:
            cells = space.state
            self.longest = {k: int(cells[at + Control.MOST]) for k, at in self.guarded}
        if len(self._idle) < MOST_IDLE:
            self._idle.append(space)
        return results


class Workspace:
    """The state of one run at a time: cells, action tables, memory, places of small arrays."""

    def __init__(self, runner: Runner) -> None:
        facts = runner.program.facts
        self.runner, self.program, self.entry = runner, runner.program, runner.entry
        self.state = arena.aligned(8 * facts.n_cells).view(np.int64)
        self.state[: Cell.END] = 0
        self.cells = self.state.data  # the same cells: one of them is set in half the time
        self.address = self.state.ctypes.data
        for cell, array in runner.program.constants:
            self.state[cell] = array.ctypes.data
        types = runner.program.tape.input_types, runner.program.tape.output_types
        self.inputs = self._places(facts.inputs, types[0])
        self.outputs = self._places(facts.outputs, types[1])
        self.large = [(cell, type) for cell, type, own in self.outputs if own is None]
        self.copies = [own.copy for _, _, own in self.outputs if own is not None]
        self.nbytes = runner.homes[-1]
        # what is not worth being kept by the arena is kept here
        self.memory = arena.aligned(self.nbytes) if self.nbytes < arena.LEAST else None
        if self.memory is not None:
            self.state[Cell.ARENA] = self.memory.ctypes.data
        # nothing is to be done for a run beside putting numbers and addresses into cells
        is_plain = all(feed.is_same for feed in runner.feeds.values()) and not facts.calls_blas
        self.opens = OPENS + RUNS if is_plain and self.nbytes <= arena.MOST else 0
        self.placed: Callable[[], np.ndarray | None] = lambda: None  # memory of the last run
        self.gate: Gate | None = None
        self.on_progress: Callable[[int], None] | None = None
        self.hook = partial(Workspace._hook, proxy(self))  # outlives each call, but not this
        self.courses: dict[int, Course] = {}
        self.begun: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # see _begin
        self.rows = np.empty((max(1, sum(f.n_rows for f in runner.feeds.values())), 4), np.int64)

    def _places(
        self, cells: Sequence[int], types: Sequence[Type]
    ) -> list[tuple[int, Type, np.ndarray | None]]:
        """Cell, type, and for few elements the array that the cell points to."""
        found: list[tuple[int, Type, np.ndarray | None]] = []
        for cell, type in zip(cells, types, strict=True):
            own = np.empty(type.shape, type.numpy) if type.size <= FEW else None
            if own is not None:
                self.state[cell] = own.ctypes.data
            found.append((cell, type, own))
        return found

    def run(
        self,
        inputs: Sequence[np.ndarray],
        on_progress: Callable[[int], None] | None,
        n_threads: int,
    ) -> list[np.ndarray]:
        if self.gate is not None:
            if on_progress is None and not flags.is_watching():
                results = self._through(self.gate, inputs)
                if results is not None:
                    return results
            for cell, address in self.small:  # they held addresses of other arrays
                self.cells[cell] = address
        if not self.runner.has_courses:
            results = self._run(inputs, on_progress, n_threads)
            if (
                self.gate is None
                and self.opens
                and not (self.program.facts.shares and n_threads > 1)
            ):
                self._open()
            return results
        self.courses = {}
        with closing_courses(self.courses):
            return self._run(inputs, on_progress, n_threads)

    def _through(self, gate: Gate, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Run the program through its gate; None if it cannot."""
        memory = None
        if self.memory is None:
            memory = arena.take(self.nbytes)
            if memory is not self.placed():
                arena.give(memory)
                self.gate = None  # its table knows addresses in the memory
                return None
        results = [np.empty(shape, dtype) for shape, dtype in self.shapes]
        self.fuel, self.since, self.on_progress = FIRST_FUEL, 0.0, None
        status = gate(*inputs, *results)
        if status > 0:
            self._fail(status)
        if memory is not None:
            arena.give(memory)
        return None if status == OTHER else results

    def _run(
        self,
        inputs: Sequence[np.ndarray],
        on_progress: Callable[[int], None] | None,
        n_threads: int,
    ) -> list[np.ndarray]:
        memory = self.begin(on_progress, inputs)
        kept = []
        for x, (cell, _, own) in zip(inputs, self.inputs, strict=True):
            if own is None:
                kept.append(self._taken(x, cell))
            else:
                own[...] = x
        results = [self._room(cell, type) for cell, type in self.large]
        self.cells[_HOOK] = id(self.hook)
        facts = self.program.facts
        if facts.calls_blas:
            with blas.one_thread():
                status = self._shared(n_threads) if facts.shares else self._call(1)
        else:
            status = self._shared(n_threads) if facts.shares else self._call(1)
        del kept
        if on_progress is not None:
            on_progress(int(self.state[Cell.STEPS]))
        if status:
            self._fail(status)
        if memory is not None:
            arena.give(memory)
        if not self.large:
            return [copied() for copied in self.copies]
        given = iter(results)
        return [own.copy() if own is not None else next(given) for _, _, own in self.outputs]

    def _open(self) -> None:
        """Let later runs go through a gate."""
        self.opens -= 1
        if self.opens >= OPENS:
            return
        fixed = {_LOOP: -1, _STEPS: 0, _FUEL: FIRST_FUEL, _N_THREADS: 1, _HOOK: id(self.hook)}
        begun = [(control.ctypes.data, values) for control, values in self.begun.values()]
        entry = self.program.library.address("run")
        found = opened(entry, self.address, fixed, begun, self.inputs, self.outputs)
        if found is not None:
            self.gate, self.table = found
            small = [x for x in (*self.inputs, *self.outputs) if x[2] is not None]
            self.small = [(cell, int(self.state[cell])) for cell, _, _ in small]
            self.shapes = [(type.shape, type.numpy) for _, type, _ in self.outputs]

    def begin(
        self, on_progress: Callable[[int], None] | None, inputs: Sequence[np.ndarray]
    ) -> np.ndarray | None:
        """Set the cells that a run changes; the memory, if it is to be given back."""
        self.on_progress = on_progress
        cells, memory, own = self.cells, None, self.memory
        if own is None:
            own = memory = arena.take(self.nbytes)
            cells[_ARENA] = memory.ctypes.data
        cells[_LOOP], cells[_STEPS] = -1, 0
        cells[_FUEL] = self.fuel = FIRST_FUEL
        self.since = perf_counter()
        if self.program.taped:
            self._fill_tables(own, inputs)
        if memory is not None:
            self.placed = ref(memory)
        return memory

    def _taken(self, x: np.ndarray, cell: int) -> np.ndarray:
        x = np.ascontiguousarray(x)
        self.state[cell] = x.ctypes.data
        return x

    def _room(self, cell: int, type: Type) -> np.ndarray:
        result = np.empty(type.shape, type.numpy)
        self.state[cell] = result.ctypes.data
        return result

    # --- action tables --------------------------------------------------------------------------

    def _fill_tables(self, memory: np.ndarray, inputs: Sequence[np.ndarray]) -> None:
        """Begin the actions of every taped loop anew, and say where its token lies."""
        self.streams: dict[int, tuple[Iterator[Rows], int]] = {}
        if not self.begun or (memory is not self.memory and memory is not self.placed()):
            runner = self.runner
            plan = runner.feeds, runner.slots, runner.homes
            place_tokens(self.program, plan, self.state, self.rows, memory)
            self.begun = {name: self._begin(name) for name in self.program.taped}
        for name, (cells, begun) in self.begun.items():
            cells[...] = begun
            feed, loop = self.runner.feeds[name], self.program.taped[name]
            if feed.fixed is not None:
                continue
            self.streams[name] = feed.pieces(), feed.n_rows
            if feed.begin is None:
                self._refill(name)
            else:
                home = self.runner.homes[name] + loop.head_bytes
                self.courses[name] = feed.begin(Window(cells, memory, home, loop), inputs)

    def _begin(self, name: int) -> tuple[np.ndarray, np.ndarray]:
        """The cells that control a loop, and what they hold at its start; few rows are put into its
        table for all runs."""
        at, rows = self.program.taped[name].control, self.runner.feeds[name].fixed
        cells = self.state[at : at + Control.SIZE]
        if rows is not None:
            first = int(cells[Control.FIRST])
            self.rows[first : first + len(rows)] = rows
            cells[Control.CURSOR], cells[Control.FILLED] = first, first + len(rows)
        return cells, cells.copy()

    def _refill(self, name: int) -> None:
        """The next pieces, as many as there is room for: one of a stream, all of a whole table."""
        cells = self.state[self.program.taped[name].control :]
        if name in self.courses:
            return self._follow(self.courses[name], cells)
        after, count = self.runner.feeds[name].after, int(cells[Control.COUNT])
        if after and cells[Control.LEARNS] == LEARNT:
            self.streams[name] = after(count), self.streams[name][1]
            cells[Control.LEARNS] = 0
        if name not in self.streams:
            raise ScheduleError(NO_END)
        stream, room = self.streams[name]
        first, learns = int(cells[Control.FIRST]), bool(after) and cells[Control.LEARNS] != 0
        n_rows = filled(self.rows[first : first + room], stream, learns)
        if not n_rows:
            raise ScheduleError(NO_END)
        cells[Control.CURSOR], cells[Control.FILLED] = first, first + n_rows

    def _follow(self, course: Course, cells: np.ndarray) -> None:
        """The next piece of actions between which something is to be done."""
        learnt = cells[Control.LEARNS] == LEARNT
        if learnt:
            cells[Control.LEARNS] = 0
        piece = course.following(int(cells[Control.COUNT]) if learnt else None)
        if piece is None:
            raise ScheduleError(NO_END)
        first = int(cells[Control.FIRST])
        self.rows[first : first + len(piece)] = piece
        cells[Control.CURSOR], cells[Control.FILLED] = first, first + len(piece)

    # --- the call -------------------------------------------------------------------------------

    def _hook(self) -> None:
        """What compiled code calls now and then; Ctrl-C is answered on the way into here."""
        flags.note()
        state = self.state
        if state[Cell.LOOP] >= 0:
            self._refill(int(state[Cell.LOOP]))
        if state[Cell.FUEL] <= 0:
            now = perf_counter()
            faster = PAUSE / max(now - self.since, 1e-6) if self.since else 1.0
            self.fuel = int(min(MOST_FUEL, max(1, self.fuel * min(faster, 8.0))))
            state[Cell.FUEL] = self.fuel
            self.since = now
            if self.on_progress is not None:
                self.on_progress(int(state[Cell.STEPS]))
        flags.begin()

    def _shared(self, n_threads: int) -> int:
        sharing = self.runner.sharing
        shared, start = sharing.next(), perf_counter()
        status = self._call(n_threads if shared else 1)
        sharing.note(shared, perf_counter() - start)
        return status

    def _call(self, n_threads: int) -> int:
        if n_threads == 1:
            self.cells[_N_THREADS] = 1
            return self._enter()
        self.state[Cell.N_THREADS : Cell.END] = 0
        self.state[Cell.N_THREADS] = n_threads
        worker = flags.helping(_PLAIN(self.program.library.address("worker")))
        end = _PLAIN(self.program.library.address("end"))
        busy = []
        try:
            for _ in range(1, n_threads):
                busy.append(started(worker, self.address))
            return self._enter()
        finally:
            end(self.address)
            for helper in busy:
                helper.acquire()

    def _enter(self) -> int:
        if flags.is_watching():
            flags.begin()
            status = int(self.entry(self.address))
            flags.note()
            return status
        found: int = self.entry(self.address)
        return found

    def _fail(self, status: int) -> None:
        if status == Status.LENGTH:
            name = int(self.state[Cell.LOOP])
            count = int(self.state[self.program.taped[name].control + Control.COUNT])
            raise TooManySteps(name, max(0, count))
        source, reason, depth = self.program.facts.places[int(self.state[Cell.PLACE])]
        steps = [int(self.state[Cell.STEP + k]) for k in range(min(depth, DEEPEST))]
        if status == Status.CALL:
            error = failure(int(reason), int(self.state[Cell.DETAIL]))
            raise located(error, source, steps) from None
        raise stopped(source, reason, steps)
