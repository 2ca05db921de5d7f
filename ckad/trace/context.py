"""A trace in progress: the stack of open traces, and the storages their tracers name.

Every function or loop body being recorded has a Trace with its own builder. A Storage is what
NumPy calls an array's memory: it holds the row of its current value; a write gives it another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ckad.errors import AliasError, TraceError
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Source, Tape
from ckad.tape.types import Type
from ckad.trace.views import Path
from ckad.trace.where import at_place, user_place

_local = threading.local()
#: Constants of at most so many elements are repeated in the bodies that read them.
SMALL = 64
#: A recording of more rows takes minutes, and is hardly what was meant.
MOST_ROWS = 200_000
FOREIGN = (
    "a traced value of another function or loop body is used here. Return it from there (from a "
    "loop body through the carry), or pass it as an argument."
)


class Written(BaseException):
    """A body that is being recorded from its source writes into an array from outside of it.

    It is recorded anew, with that array among what it changes. (No Exception: code of the user's
    between must not catch it.)
    """

    def __init__(self, root: Storage, trace: Trace) -> None:
        self.root = root
        self.trace = trace


class Trace:
    """One function or loop body being recorded.

    A body that is recorded from source (``adopts``) may write into storages from outside: those in
    ``adopted``, by the identity of their root, have a storage of their own here.
    """

    def __init__(self, parent: Trace | None, adopts: bool = False) -> None:
        self.parent = parent
        self.adopts = adopts
        self.builder = Builder()
        self.captured: dict[int, int] = {}  # row of the parent -> input row here
        # (row of the parent, root, which part of it) -> storage
        self.mirrors: dict[tuple[int, int, Path], Storage] = {}
        self.adopted: dict[int, Storage] = {}
        self.adopted_inputs: dict[int, int] = {}
        # statement -> roots it wrote into when it was last recorded: a nest of loops is recorded
        # again and again, and would find them anew as often as all loops around it together
        self.known_writes: dict[Any, dict[int, Storage]] = parent.known_writes if parent else {}
        # loop -> what it carried then: its own names, their structures and kinds
        self.known_carries: dict[Any, dict[str, Any]] = parent.known_carries if parent else {}
        self.index_range: tuple[int, int] | None = None  # of the step's number, half-open
        self.ranges: dict[int, tuple[int, int]] = {}  # integer row -> least and greatest number
        self.forms: dict[int, Any] = {}  # integer row -> its Form (``affine``)
        self.refuse: Callable[[], Any] | None = None  # called by a write, while a step is tried

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
        for k in range(len(rows)):
            if k not in env:
                env[k] = b.copy_row(frozen, k, env)
        return b.tape([env[k] for k in outputs])


class Storage:
    """The memory that one or more tracers view."""

    __slots__ = (
        "_root",
        "cache",
        "dense",
        "part",
        "plain",
        "read_only",
        "rivals",
        "row",
        "shared",
        "spoilt",
        "trace",
        "watched",
        "writes",
    )

    def __init__(
        self,
        trace: Trace,
        row: int,
        *,
        read_only: bool = False,
        plain: bool = True,
        dense: bool = True,
        root: Storage | None = None,
    ) -> None:
        self.trace = trace
        self.row = row
        self._root = root
        self.writes = 0
        self.watched = False  # seen after the function has ended, whatever its names are
        self.read_only = read_only
        self.plain = plain  # its axes are known to lie in memory in their order in NumPy
        self.dense = dense  # known to have no gaps there
        self.part: Path = ()  # which part of its root it shows, as seen from where that is
        self.shared: str | None = None  # what else may lie in the same memory in NumPy
        self.rivals: list[Storage] = []  # roots that may be this very memory in NumPy
        self.spoilt: Source | None = None  # where it may have changed in a way that is not known
        self.cache: dict[Any, int] = {}

    @property
    def root(self) -> Storage:
        """The memory itself, of which this may be what a body sees."""
        return self._root or self

    @property
    def type(self) -> Type:
        return self.trace.builder.type(self.row)

    def write(self, row: int) -> None:
        """Give the storage its next value."""
        if self.trace.refuse is not None:
            self.trace.refuse()
        self.row = row
        self.writes += 1
        self.cache.clear()

    def read_only_error(self) -> Exception:
        """What a write raises into what was captured; the trace around may adopt the whole."""
        if self.trace.adopts:
            return Written(self.root, self.trace)
        return AliasError(
            at_place(
                "a loop body writes into an array that it did not get through its carry. "
                "Pass the array through the carry and return it, or write into a copy."
            )
        )

    def check_writable(self) -> None:
        if self.read_only:
            raise self.read_only_error()
        if self.shared is not None:
            raise AliasError(
                at_place(
                    f"this array and {self.shared} may share memory in NumPy, so the effect of "
                    "this write is not known. Write into a .copy(), or copy the other one first."
                )
            )
        for rival in self.root.rivals:
            spoil(rival)


def _stack() -> list[Trace]:
    if not hasattr(_local, "stack"):
        _local.stack = []
    return _local.stack


def current() -> Trace:
    stack = _stack()
    if not stack:
        raise TraceError(
            at_place(
                "a traced value is used outside of the function that made it. "
                "Return it from the function instead of keeping it in a variable outside."
            )
        )
    return stack[-1]


# --- memory that may have two storages -----------------------------------------------------------
#
# A loop or a branch gives the arrays it has bound new storages, though in NumPy these may be memory
# that has other names too. As long as nothing writes, that does not show. A write into one of them
# spoils the others: what they hold then depends on what is only known when the program runs.


def _journal() -> list[Storage]:
    if not hasattr(_local, "spoilt"):
        _local.spoilt = []
    return _local.spoilt


def spoil(root: Storage) -> None:
    """What ``root`` holds is not known from here on: to read it is an error."""
    if root.spoilt is None and is_open(root.trace):
        root.spoilt = user_place()
        _journal().append(root)


def spoilt_so_far() -> int:
    return len(_journal())


def spoilt_since(count: int) -> list[Storage]:
    return _journal()[count:]


def restore_spoilt(count: int) -> list[Storage]:
    """Undo what was spoilt since there were ``count``; these."""
    undone = spoilt_since(count)
    del _journal()[count:]
    for root in undone:
        root.spoilt = None
    return undone


def spoilt_error(place: Source) -> AliasError:
    return AliasError(
        at_place(
            "what this array holds is not known here. In NumPy it may be the memory that is "
            f"written into at {place}, where a loop or branch may have bound a name to other "
            "memory meanwhile. Make a copy of one of them before: b = a.copy()."
        )
    )


def may_be(storage: Storage) -> list[Storage]:
    """The storages that may be the memory of ``storage``: its root first."""
    return [storage.root, *storage.root.rivals]


def are_one(one: Storage, other: Storage) -> bool:
    """Whether both may be the same memory in NumPy."""
    return one.root is other.root or other.root in one.root.rivals


def link(one: Storage, other: Storage) -> None:
    """Both may be the same memory in NumPy; nobody writes into that of a trace that is closed."""
    if one is other or not (is_open(one.trace) and is_open(other.trace)):
        return
    for root, rival in ((one, other), (other, one)):
        root.rivals = [x for x in root.rivals if is_open(x.trace)]
        if rival not in root.rivals:
            root.rivals.append(rival)


def watch(storage: Storage) -> None:
    """Note that what is in ``storage`` at the end of the function is wanted."""
    storage.root.watched = True


def is_open(trace: Trace) -> bool:
    """Whether ``trace`` is being recorded now, by this thread."""
    return trace in _stack()


def is_tracing() -> bool:
    return bool(_stack())


@contextmanager
def open_trace(adopts: bool = False) -> Iterator[Trace]:
    """Record into a new trace, nested in the current one."""
    stack = _stack()
    trace = Trace(stack[-1] if stack else None, adopts)
    stack.append(trace)
    try:
        yield trace
    finally:
        stack.pop()
        if not stack:
            _journal().clear()


def local_storage(storage: Storage) -> Storage:
    """``storage`` as the current trace sees it: itself, adopted, or a read-only mirror."""
    return storage_in(current(), storage)


@contextmanager
def resumed(trace: Trace) -> Iterator[Trace]:
    """Go on recording into a trace that was closed; the current one is the one around it."""
    stack = _stack()
    stack.append(trace)
    try:
        yield trace
    finally:
        stack.pop()


def storage_in(trace: Trace | None, storage: Storage) -> Storage:
    """``storage`` as ``trace`` sees it."""
    if trace is None:
        raise TraceError(at_place(FOREIGN))
    if storage.trace is trace:
        return storage
    adopted = trace.adopted.get(id(storage.root))
    if adopted is not None:
        return adopted
    outer = storage_in(trace.parent, storage)
    return trace.capture(outer.row, outer)


def mark_place(trace: Trace) -> None:
    trace.builder.where = user_place()
    if len(trace.builder.rows) > MOST_ROWS:
        raise TraceError(
            at_place(
                f"the program has more than {MOST_ROWS:,} operations, one after the other. Loops "
                "are recorded once where the source of their function can be read; in code that "
                "was typed at Python's prompt or made by exec use ckad.fori_loop or ckad.scan."
            )
        )
