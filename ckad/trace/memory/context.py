"""A trace in progress, and the stack of open traces.

Every function or loop body being recorded has a Trace with its own builder.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

import numpy as np

from ckad.errors import CkadError, TraceError, UnrecordableError
from ckad.passes.liveness import Reads
from ckad.place import Source, user_place
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import Type
from ckad.trace.memory.opened import opened, stack
from ckad.trace.memory.storage import Storage, Written, forget_spoilt
from ckad.trace.memory.views import Path

#: Constants of at most so many elements are repeated in the bodies that read them.
SMALL = 64
#: What a body takes beside its rows: as much as so many of them.
BODY = 20
#: What is read from around a body is looked for through all bodies between.
DEEP = 16
#: A recording of more rows takes minutes, and is hardly what was meant; also one that is recorded
#: as it runs, which is done again for other numbers.
MOST_ROWS = 200_000
FOREIGN = (
    "a traced value of another function or loop body is used here. Return it from there (from a "
    "loop body through the carry), or pass it as an argument."
)


class Given(IntEnum):
    """How much of a recording may be as the numbers of one call decide."""

    NOTHING = 0
    SIZES = 1  # integers that shapes and indices depend on
    DECISIONS = 2  # conditions and masks, too: the side is recorded that is taken
    STEPS = 3  # the steps that loops make, each by itself, too


class Late(Protocol):
    """A row that becomes a constant later."""

    def forgo(self) -> None:
        """Be any constant, if it has become none: nothing needs it."""


class TooLong(TraceError):
    """A program is not recorded as it runs, since that is longer than what is run again and again
    should be."""


class TooMuch(TooLong):
    """Bodies are recorded so often, or so many of them, that another way may end sooner."""


class Laborious(BaseException):
    """What is raised then, since nothing between may take it for an error that can be mended."""

    def __init__(self, error: TooMuch) -> None:
        self.error = error


class Most(NamedTuple):
    """How much is recorded at most."""

    rows: int = MOST_ROWS  # one after the other, of a program as it runs
    in_bodies: float = math.inf  # of all bodies together, each as often as it is recorded


#: Whatever a recording takes.
ALL = Most()


class Spent:
    """The rows of all bodies that a recording has made, also those that were given up."""

    def __init__(self) -> None:
        self.rows, self.most = 0, math.inf

    def check(self) -> None:
        if self.rows > self.most:
            raise Laborious(
                TooMuch.here(
                    f"to record the bodies of loops and branches for all numbers takes more than "
                    f"{self.most:,.0f} operations: they stand so deep in each other that many are "
                    "recorded again and again. Make branches on traced conditions shorter; or let "
                    "it take its time, by warnings.simplefilter('error', ckad.errors.AsRunWarning)."
                )
            )


def effort() -> int:
    """How many rows have been made, of this recording and of all bodies that are done."""
    trace = current()
    return len(trace.builder.rows) + trace.spent.rows


@contextmanager
def tried_for(n_rows: float) -> Iterator[None]:
    """Give up what is done within, as soon as that has made so many rows."""
    spent = current().spent
    before, spent.most = spent.most, min(spent.most, spent.rows + n_rows)
    try:
        yield
    except Laborious:
        if spent.rows > before:
            raise
    finally:
        spent.most = before


class WrittenOut(BaseException):
    """A loop that was recorded once for all steps has to be written out: something is read that is
    of another kind in each of them. The program is recorded again."""

    def __init__(self, node: Any, error: CkadError) -> None:
        self.node, self.error = node, error


class Trace:
    """One function or loop body being recorded.

    A body that is recorded from source (``adopts``) may write into storages from outside: those in
    ``adopted``, by the identity of their root, have a storage of their own here.
    """

    def __init__(self, parent: Trace | None, adopts: bool = False) -> None:
        self.parent = parent
        self.adopts = adopts
        self.depth: int = parent.depth + 1 if parent else 0
        self.is_given = False  # the body of a loop whose carry the caller names
        self.builder = Builder()
        self.captured: dict[int, int] = {}  # row of the parent -> input row here
        # (row of the parent, root, which part of it) -> storage
        self.mirrors: dict[tuple[int, int, Path], Storage] = {}
        self.adopted: dict[int, Storage] = {}
        self.adopted_inputs: dict[int, int] = {}
        # roots that were written into without having been adopted; None: that is an error
        self.gathered: dict[int, Storage] | None = None
        # statement -> roots it wrote into when it was last recorded: a nest of loops is recorded
        # again and again, and would find them anew as often as all loops around it together
        self.known_writes: dict[Any, dict[int, Storage]] = parent.known_writes if parent else {}
        # loop -> what it carried then: its own names, their structures and kinds
        self.known_carries: dict[Any, dict[str, Any]] = parent.known_carries if parent else {}
        # source of a loop -> what one of it was found to do when it was recorded last, wherever
        self.known_loops: dict[Any, Any] = parent.known_loops if parent else {}
        # loops that are to be written out, and why
        self.written_out: dict[Any, CkadError] = parent.written_out if parent else {}
        # loops whose steps have copies of what can be changed: they put it into lists, or run over
        # lists of arrays
        self.filling: list[Any] = parent.filling if parent else []
        self.turns: Counter[Any] = Counter()  # how often a loop was met here
        # of which loops it is the body: their sources and turns; None for other bodies
        self.path: tuple[Any, ...] | None = None if parent else ()
        # whether loops here are begun as in a recording before: those around them are, too
        self.recalls: bool = parent.recalls if parent else True
        # loop -> how many steps it makes, if that decides how many random numbers are drawn
        self.steps_of_draws: dict[Any, int] = parent.steps_of_draws if parent else {}
        # what a call gives, by input row, and what may depend on it; and the rows that do
        self.decides: Given = parent.decides if parent else Given.NOTHING
        self.most_as_run: int = parent.most_as_run if parent else MOST_ROWS
        self.spent: Spent = parent.spent if parent else Spent()
        self.given: dict[int, np.ndarray] = parent.given if parent else {}
        self.shown: dict[int, int] = {}  # input that is an argument -> its row of the parent
        self.asked: dict[int, np.ndarray] = {}
        # handlers of exceptions that the program has: what stops a run may be met by one of them
        self.handlers: list[Any] = parent.handlers if parent else []
        # the arrays that are arguments, by their place; and those of them whose memory is also read
        # by a name from outside
        self.exposed: dict[int, np.ndarray] = parent.exposed if parent else {}
        self.met: dict[int, Source] = parent.met if parent else {}  # and where it is read
        # what names from outside are bound to, of which the numbers are arguments
        self.outside: dict[tuple[int, str], Any] = parent.outside if parent else {}
        self.recursions = 0  # deep calls of functions within themselves, under traced conditions
        self.apart: dict[int, tuple[Tape, Tape]] = {}  # body's number -> it, that by its results
        self.reads = Reads()  # what results of loops and branches depend on
        self.endless: set[Any] = set()  # functions that call themselves deeper than is recorded
        self.late: list[Late] = []  # rows of constants that are not known yet
        self.index_range: tuple[int, int] | None = None  # of the step's number, half-open
        self.ranges: dict[int, tuple[int, int]] = {}  # integer row -> least and greatest number
        self.large: set[int] = set()  # inputs that start as integers near the ends of 64 bits
        # what is known of rows (``known``), by the kind of question
        self.answers: tuple[dict[int, np.ndarray | None], ...] = ({}, {}, {})
        self.forms: dict[int, Any] = {}  # integer row -> its Form (``affine``)
        # Form, and how many of its minima and maxima are decided -> its least and greatest number
        self.bounds: dict[tuple[Any, int], tuple[float, float]] = {}
        self.tables: dict[tuple[int, ...], int] = {}  # rows of numbers -> that of a matrix of them
        self.tips: dict[int, Any] = {}  # buffer -> the longest array in it here (``values.grown``)

    def note_known(self, x: np.ndarray) -> None:
        """The numbers of an array from outside are read."""
        for k, array in self.exposed.items():
            if k not in self.met and np.may_share_memory(array, x):
                self.met[k] = user_place()

    def capture_row(self, outer: int) -> int:
        """The row here that shows row ``outer`` of the parent trace."""
        assert self.parent is not None
        b = self.parent.builder
        row = b.rows[outer]
        if row.op is Op.CONST and row.type.size <= SMALL:
            return self.builder.const(b.constants[row.attrs[0]])
        if outer not in self.captured:
            self.captured[outer] = self.builder.input(row.type)
        return self.captured[outer]

    def capture(self, outer: int, origin: Storage, path: Path = ()) -> Storage:
        """The read-only storage here that shows row ``outer`` of the parent trace.

        The row holds what ``path`` shows of ``origin``.
        """
        part = (*origin.part, *path)
        key = outer, id(origin.root), part
        if key not in self.mirrors:
            row = self.capture_row(outer)
            self.mirrors[key] = mirror = Storage(self, row, read_only=True, root=origin.root)
            mirror.plain, mirror.dense, mirror.part = origin.plain, origin.dense, part
        return self.mirrors[key]

    def is_inside(self, other: Trace) -> bool:
        """Whether this trace is ``other``, or is recorded within it."""
        trace: Trace | None = self
        while trace is not None and trace is not other:
            trace = trace.parent
        return trace is not None

    def may_write(self, root: Storage) -> bool:
        """Whether what is recorded here, or in a body within, writes into ``root`` as it is."""
        return root.trace is self or id(root) in self.adopted

    def adopt(self, root: Storage) -> Storage:
        """Give ``root`` a storage of its own here, with the value it has around this body."""
        outer = storage_in(self.parent, root)
        row = self.builder.input(outer.type)
        local = Storage(self, row, plain=outer.plain, dense=outer.dense, root=root)
        local.shared = outer.shared
        self.adopted[id(root)] = local
        self.adopted_inputs[id(root)] = local.row
        return local

    def tape(self, outputs: list[int], inputs: Sequence[int | Type] | None = None) -> Tape:
        """What was recorded; with ``inputs``, rows or types of inputs that nothing reads, these
        come first in this order."""
        for row in self.late:
            row.forgo()
        if inputs is None:
            return self.builder.tape(outputs)
        b, rows = Builder(), self.builder.rows
        frozen = self.builder.tape(outputs)
        env: dict[int, int] = {}
        for x in inputs:
            if isinstance(x, Type):
                b.input(x)
            else:
                b.where = frozen.sources[rows[x].source]
                env[x] = b.input(rows[x].type)
        b.copy_rows(frozen, (k for k in range(len(rows)) if k not in env), env)
        return b.tape([env[k] for k in outputs])


def current() -> Trace:
    traces: list[Trace] = opened.traces
    if traces:
        return traces[-1]
    raise TraceError.here(
        "a traced value is used outside of the function that made it. "
        "Return it from the function instead of keeping it in a variable outside."
    )


@contextmanager
def open_trace(adopts: bool = False) -> Iterator[Trace]:
    """Record into a new trace, nested in the current one."""
    traces = stack()
    trace = Trace(traces[-1] if traces else None, adopts)
    traces.append(trace)
    try:
        yield trace
    finally:
        traces.pop()
        trace.spent.rows += (len(trace.builder.rows) + BODY) * (1 + trace.depth // DEEP)
        if not traces:
            forget_spoilt()


@contextmanager
def gathering(trace: Trace, written: dict[int, Storage], again: type[Exception]) -> Iterator[None]:
    """Add to ``written`` all roots that a body writes into without having adopted them.

    From the first of these writes on it does not read what it should, so that nothing else that is
    found matters, however the body ends: it has to be recorded ``again``.
    """
    trace.gathered = {}
    try:
        yield
    except BaseException as error:
        if not trace.gathered or isinstance(error, (Written, Laborious, KeyboardInterrupt)):
            raise
    finally:
        found, trace.gathered = trace.gathered, None
        written.update(found)
    if found:
        raise again


@contextmanager
def not_carried() -> Iterator[None]:
    """What a loop's body writes now into what is around it is an error: nobody knows how often."""
    trace = current()
    before = trace.adopts, trace.gathered
    if trace.is_given:
        trace.adopts, trace.gathered = False, None
    try:
        yield
    finally:
        trace.adopts, trace.gathered = before


def local_storage(storage: Storage) -> Storage:
    """``storage`` as the current trace sees it: itself, adopted, or a read-only mirror."""
    return storage_in(current(), storage)


@contextmanager
def resumed(trace: Trace) -> Iterator[Trace]:
    """Go on recording into a trace that was closed; the current one is the one around it."""
    traces = stack()
    traces.append(trace)
    trace.bounds.clear()  # more may be known of rows around it
    try:
        yield trace
    finally:
        traces.pop()


def storage_in(trace: Trace | None, storage: Storage) -> Storage:
    """``storage`` as ``trace`` sees it."""
    if trace is None:
        raise UnrecordableError.here(FOREIGN)
    if storage.trace is trace:
        return storage
    adopted = trace.adopted.get(id(storage.root))
    if adopted is not None:
        return adopted
    outer = storage_in(trace.parent, storage)
    return trace.capture(outer.row, outer)


def mark_place(trace: Trace) -> None:
    trace.builder.where = user_place(2)
    trace.spent.check()
    if trace.decides >= Given.DECISIONS and len(trace.builder.rows) > trace.most_as_run:
        most = trace.most_as_run
        raise TooLong.here(f"the program has more than {most:,} operations as it runs.")
    if len(trace.builder.rows) > MOST_ROWS:
        raise TraceError.here(
            f"the program has more than {MOST_ROWS:,} operations, one after the other. Loops "
            "are recorded once where the source of their function can be read; in code that "
            "was typed at Python's prompt or made by exec use ckad.fori_loop or ckad.scan."
        )
