"""Which places of its arrays a tape reads and writes, those of its loops and branches included."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ckad.passes.integers.affine import Sum, Symbols
from ckad.passes.integers.ranges import Ranges
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape

WRITES = (Op.UPDATE, Op.SLICE_ADD, Op.SCATTER, Op.SCATTER_ADD)


class Place(NamedTuple):
    """Elements of an array one after the other in memory: one, or a row."""

    first: Sum
    size: int


class Touch(NamedTuple):
    """A read of, or a write to, an array that a tape was given."""

    position: int  # of the input
    row: int
    writes: bool
    place: Place | None  # None: anywhere


class Footprint(Ranges):
    """What a tape does to the arrays that it is given."""

    def __init__(self, tape: Tape, inputs: Sequence[Sum], symbols: Symbols) -> None:
        super().__init__(tape, inputs, symbols)
        self.touches: list[Touch] = []
        self._roots: dict[int, int | None] = {}
        self._bodies_of: dict[int, tuple[list[list[int]], Sequence[Footprint]]] = {}

    def copied(self, k: int, row: Row) -> int:
        at = super().copied(k, row)
        if row.op in (Op.INPUT, Op.CONST, Op.RESULT, Op.RESHAPE, Op.LOOP, Op.COND):
            return at
        for n, x in enumerate(row.operands):
            position = self.root(x)
            if position is not None:
                writes = row.op in WRITES and n == 0
                self.touches.append(Touch(position, k, writes, self._where(row, n)))
        return at

    def _where(self, row: Row, n: int) -> Place | None:
        """The place, also of a part of one element that is known beforehand."""
        if n or row.op not in (Op.SLICE, Op.UPDATE, Op.SLICE_ADD):
            return self.place(row, n)
        part = row.type if row.op is Op.SLICE else self.rows[row.operands[1]].type
        shape = self.rows[row.operands[0]].type.shape
        if part.size != 1:
            return None
        at = sum(s * prod(shape[a + 1 :]) for a, s in enumerate(row.attrs[: len(shape)]))
        return Place(Sum(at), 1)

    def place(self, row: Row, n: int = 0) -> Place | None:
        """The one element, or row, that a row reads or writes of its n-th operand."""
        if n or row.op not in (Op.GATHER, Op.SCATTER, Op.SCATTER_ADD):
            return None
        x, idx = (self.rows[k].type for k in row.operands[:2])
        if idx.shape or row.attrs[0] or not x.shape:
            return None
        size = prod(x.shape[1:])
        return Place(self.value(row.operands[1]).times(size), size)

    def seen(self, k: int, fed: list[list[int]], bodies: Sequence[Ranges]) -> None:
        found = [body for body in bodies if isinstance(body, Footprint)]
        self._bodies_of[k] = fed, found
        for operands, body in zip(fed, found, strict=True):
            for touch in body.touches:
                position = self.root(operands[touch.position])
                if position is not None:
                    self.touches.append(touch._replace(position=position, row=k))
        for number in range(len(found[0].tape.outputs)):
            if self._root_of_result(k, number) is None:
                self._note_handed_on(k, number)

    def _note_handed_on(self, k: int, number: int) -> None:
        """A result that may show an array by another name reads it anywhere."""
        for operands, body in zip(*self._bodies_of[k], strict=True):
            inner = body.root(int(body.tape.outputs[number]))
            position = None if inner is None else self.root(operands[inner])
            if position is not None:
                self.touches.append(Touch(position, k, False, None))

    def root(self, k: int) -> int | None:
        """The position of the input that an array is, changed in places or not."""
        if k not in self._roots:
            self._roots[k] = self._root(k)
        return self._roots[k]

    def _root(self, k: int) -> int | None:
        row = self.rows[k]
        if not row.type.is_array or row.type.size <= 1:
            return None
        if row.op is Op.INPUT:
            return row.attrs[0]
        if row.op is Op.RESHAPE or row.op in WRITES:
            return self.root(row.operands[0])
        if row.op is not Op.RESULT or row.operands[0] not in self._bodies_of:
            return None
        return self._root_of_result(row.operands[0], row.attrs[0])

    def _root_of_result(self, k: int, number: int) -> int | None:
        """The root of a loop's or branch's result."""
        sources = set()
        for operands, body in zip(*self._bodies_of[k], strict=True):
            inner = body.root(int(body.tape.outputs[number]))
            if inner is None:
                return None
            if self.rows[k].op is Op.LOOP and inner != 1 + number:
                return None
            sources.add(self.root(operands[inner]))
        return sources.pop() if len(sources) == 1 else None

    def before(self, k: int) -> int | None:
        """The row that has the array as it was before row k, if k is not an input."""
        row = self.rows[k]
        if row.op is Op.INPUT:
            return None
        if row.op is not Op.RESULT:
            return row.operands[0]
        (operands, *_), (body, *_) = self._bodies_of[row.operands[0]]
        inner = body.root(int(body.tape.outputs[row.attrs[0]]))
        return None if inner is None else operands[inner]

    def apart(self, x: Place, y: Place) -> bool:
        """Whether two places never have an element in common."""
        least, most = self.symbols.bounds(x.first.minus(y.first))
        return least >= y.size or most <= -x.size
