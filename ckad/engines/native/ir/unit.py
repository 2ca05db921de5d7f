"""One function of IR in the making, and what it can reach: state, memory, constants.

Writers of code are handed the `Unit`; `Buffer` is memory that it may use, counted by rows that name
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from llvmlite import ir

from ckad.engines.native.ir.element import I32, I64, POINTER, Value, whole
from ckad.engines.native.ir.state import DEEPEST, Cell, Status

#: status f(state, start, stop, slot)
STEPS = ir.FunctionType(I32, [POINTER, I64, I64, I64])


def cell(b: ir.IRBuilder, state: Value, number: int) -> Value:
    """The address of a cell of the state."""
    return b.bitcast(b.gep(state, [whole(8 * number)]), I64.as_pointer())


def internal(module: ir.Module, name: str, type: ir.FunctionType) -> ir.Function:
    """A new function for this module alone, which stays a function of its own."""
    function = ir.Function(module, type, name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    return function


class Shared(Protocol):
    """Memory that is freed when nobody names any part of it."""

    users: set[tuple[int, int]]  # (the id of a tape's code, row)

    def leave(self, writer: Any, user: tuple[int, int]) -> None: ...


@dataclass(eq=False)
class Buffer:
    """Bytes that hold an array. ``users`` are the rows of tapes that name it.

    ``offset`` is its place in the arena, None if it lies elsewhere; ``pool`` the memory that it is
    a part of, if it cannot be freed alone.
    """

    pointer: Value
    nbytes: int
    offset: int | None = None
    writable: bool = True
    pool: Shared | None = None
    users: set[int] = field(default_factory=set)


class Unit:
    """A function being written.

    What it reads from the state is loaded in its first block, so that it is there everywhere.
    """

    def __init__(self, module: ir.Module, name: str) -> None:
        self.module = module
        self.function = internal(module, name, STEPS)
        self.state, self.start, self.stop, self.slot = self.function.args
        self.entry = self.function.append_basic_block("entry")
        self.b = ir.IRBuilder(self.function.append_basic_block("start"))
        self._top = ir.IRBuilder(self.entry)
        self._loaded: dict[int, Value] = {}
        self._pointers: dict[int, Value] = {}
        self.steps: list[Value] = []  # the indices of the loops around the present place
        self.depth = 0  # loops of other functions around this one
        self.branches = 0  # branches around the present place

    def finish(self, status: int = Status.DONE) -> None:
        self.b.ret(ir.Constant(I32, int(status)))
        self._top.branch(self.function.blocks[1])

    # --- the state ------------------------------------------------------------------------------

    def get(self, number: int) -> Value:
        """A cell as it is now."""
        return self.b.load(cell(self.b, self.state, number))

    def put(self, number: int, value: Value) -> None:
        self.b.store(value, cell(self.b, self.state, number))

    def fixed(self, number: int) -> Value:
        """A cell that does not change while the function runs."""
        if number not in self._loaded:
            self._loaded[number] = self._top.load(cell(self._top, self.state, number))
        return self._loaded[number]

    def address(self, number: int) -> Value:
        """The address that a fixed cell holds."""
        key = -1 - number
        if key not in self._loaded:
            self._loaded[key] = self._top.inttoptr(self.fixed(number), POINTER)
        return self._loaded[key]

    def pointer_at(self, offset: int) -> Value:
        """The address at a place of the arena, which does not change while the function runs."""
        if offset not in self._pointers:
            place = self._top.bitcast(self.at(offset), I64.as_pointer())
            self._pointers[offset] = self._top.inttoptr(self._top.load(place), POINTER)
        return self._pointers[offset]

    def at(self, offset: int) -> Value:
        """A place of the arena."""
        return self._top.gep(self.address(Cell.ARENA), [whole(offset)])

    def alloca(self, type: ir.Type, n: int = 1) -> Value:
        return self._top.alloca(type, n)

    # --- control --------------------------------------------------------------------------------

    def check(self, status: Value) -> None:
        """Return at once if a call did not succeed."""
        with self.b.if_then(self.b.icmp_signed("!=", status, ir.Constant(I32, 0)), likely=False):
            self._note_steps()
            self.b.ret(status)

    def fail(self, status: Status, place: int) -> None:
        """Give up, at a place of the user's program; what follows is not reached."""
        self.put(Cell.PLACE, whole(place))
        self._note_steps()
        self.b.ret(ir.Constant(I32, int(status)))

    def _note_steps(self) -> None:
        for k, step in enumerate(self.steps):
            self.put(Cell.STEP + min(self.depth + k, DEEPEST - 1), step)

    @property
    def runs_again(self) -> bool:
        """Whether what is written now may run several times: in a loop, or in a branch.

        Both sweeps of a branch's adjoint run the loops in it forward.
        """
        return bool(self.depth or self.steps or self.branches)

    @contextmanager
    def branch(self) -> Iterator[None]:
        """The code inside is in a branch."""
        self.branches += 1
        yield
        self.branches -= 1

    @contextmanager
    def step(self, index: Value) -> Iterator[None]:
        """The code inside is in a loop at ``index``."""
        self.steps.append(index)
        yield
        self.steps.pop()
