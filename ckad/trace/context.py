"""A trace in progress: the stack of open traces, and the storages their tracers name.

Every function or loop body being recorded has a Trace with its own builder. A Storage is what
NumPy calls an array's memory: it holds the row of its current value; a write gives it another.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ckad.errors import AliasError, TraceError
from ckad.tape.builder import Builder
from ckad.tape.tape import Tape
from ckad.tape.types import Type
from ckad.trace.where import at_place, user_place

_local = threading.local()
FOREIGN = (
    "a traced value of another function or loop body is used here. Return it from there (from a "
    "loop body through the carry), or pass it as an argument."
)


class Trace:
    """One function or loop body being recorded."""

    def __init__(self, parent: Trace | None) -> None:
        self.parent = parent
        self.builder = Builder()
        self.captured: dict[int, int] = {}  # row of the parent -> input row here
        self.mirrors: dict[int, Storage] = {}  # row of the parent -> read-only storage here

    def capture(self, outer: int) -> Storage:
        """The read-only storage here that shows row ``outer`` of the parent trace."""
        if outer not in self.mirrors:
            assert self.parent is not None
            row = self.builder.input(self.parent.builder.type(outer))
            self.captured[outer] = row
            self.mirrors[outer] = Storage(self, row, read_only=True)
        return self.mirrors[outer]

    def tape(self, outputs: list[int]) -> Tape:
        return self.builder.tape(outputs)


class Storage:
    """The memory that one or more tracers view."""

    __slots__ = ("cache", "plain", "read_only", "row", "shared", "trace")

    def __init__(self, trace: Trace, row: int, *, read_only: bool = False, plain: bool = True):
        self.trace = trace
        self.row = row
        self.read_only = read_only
        self.plain = plain  # known to be C-contiguous in NumPy
        self.shared: str | None = None  # what else may lie in the same memory in NumPy
        self.cache: dict[Any, int] = {}

    @property
    def type(self) -> Type:
        return self.trace.builder.type(self.row)

    def write(self, row: int) -> None:
        """Give the storage its next value."""
        self.row = row
        self.cache.clear()

    def check_writable(self) -> None:
        if self.read_only:
            raise AliasError(
                at_place(
                    "a loop body writes into an array that it did not get through its carry. "
                    "Pass the array through the carry and return it, or write into a copy."
                )
            )
        if self.shared is not None:
            raise AliasError(
                at_place(
                    f"this array and {self.shared} may share memory in NumPy, so the effect of "
                    "this write is not known. Write into a .copy(), or copy the other one first."
                )
            )


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


def is_open(trace: Trace) -> bool:
    """Whether ``trace`` is being recorded now, by this thread."""
    return trace in _stack()


def is_tracing() -> bool:
    return bool(_stack())


@contextmanager
def open_trace() -> Iterator[Trace]:
    """Record into a new trace, nested in the current one."""
    stack = _stack()
    trace = Trace(stack[-1] if stack else None)
    stack.append(trace)
    try:
        yield trace
    finally:
        stack.pop()


def local_storage(storage: Storage) -> Storage:
    """``storage`` as the current trace sees it: itself, or a read-only mirror."""
    trace = current()
    if storage.trace is trace:
        return storage
    return _mirror(storage, trace)


def _mirror(storage: Storage, trace: Trace) -> Storage:
    if trace.parent is None:
        raise TraceError(at_place(FOREIGN))
    outer = storage if storage.trace is trace.parent else _mirror(storage, trace.parent)
    return trace.capture(outer.row)


def mark_place(trace: Trace) -> None:
    trace.builder.where = user_place()
