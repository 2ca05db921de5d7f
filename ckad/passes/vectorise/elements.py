"""Elements of rows, read and written in the flattened array, in the loops that stay.

Where `unflatten` has made ``a[i, j]`` one element of the row ``a[i]``, and the loop around it stays a
loop, each of its steps would copy that row. `unflatten` takes what is made here apart again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ckad.passes.cse import Sharing
from ckad.passes.rewrite import rebuild
from ckad.passes.simplify import simplify
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape

#: The longest row that is copied: registers hold it.
SHORT = 64


class Place(NamedTuple):
    """An element of two axes side by side, the first of them at ``axis``."""

    axis: int
    first: int
    second: int


def flattened(tape: Tape) -> Tape:
    """``tape`` without rows that are copied for one of their elements, not so in its bodies."""
    if not any(_may_be(tape, row) for row in tape.rows):
        return tape
    return simplify(rebuild(tape, _flattened, lambda body: body, Sharing()))


def _may_be(tape: Tape, row: Row) -> bool:
    if row.op is Op.GATHER:
        return tape.rows[row.operands[0]].op is Op.GATHER
    return row.op is Op.SCATTER and tape.rows[row.operands[2]].op is Op.SCATTER


def _flattened(b: Builder, row: Row, env: list[int]) -> int | None:
    if row.op not in (Op.GATHER, Op.SCATTER):
        return None
    x, index, axis = env[row.operands[0]], env[row.operands[1]], row.attrs[0]
    if row.op is Op.GATHER:
        taken = b.rows[x]
        place = _place(b, taken, index, axis) if taken.op is Op.GATHER else None
        if place is None:
            return None
        return b.gather(*_merged(b, taken.operands[0], place), attrs=(place.axis,))
    put = b.rows[env[row.operands[2]]]
    part = b.rows[put.operands[0]] if put.op is Op.SCATTER else put
    if part.op is not Op.GATHER or (part.operands, part.attrs) != ((x, index), (axis,)):
        return None
    place = _place(b, part, put.operands[1], put.attrs[0])
    if place is None:
        return None
    done = b.scatter(*_merged(b, x, place), put.operands[2], attrs=(place.axis, 1))
    return b.reshape_to(done, row.type.shape)


def _place(b: Builder, taken: Row, second: int, axis: int) -> Place | None:
    """The place of element ``second`` along ``axis`` of a row that was taken from an array."""
    x, first = taken.operands
    shape, own = b.type(x).shape, taken.attrs[0]
    other = axis if axis < own else axis + 1
    if abs(other - own) != 1 or _size(taken.type.shape) <= SHORT:
        return None
    if not (_within(b, first, shape[own]) and _within(b, second, shape[other])):
        return None
    return Place(own, first, second) if own < other else Place(other, second, first)


def _merged(b: Builder, x: int, place: Place) -> tuple[int, int]:
    """``x`` with two axes as one, and the place along it."""
    axis, shape = place.axis, b.type(x).shape
    d = shape[axis + 1]
    flat = b.reshape_to(x, (*shape[:axis], shape[axis] * d, *shape[axis + 2 :]))
    return flat, b.add(b.mul(place.first, b.full_like(place.first, d)), place.second)


def _within(b: Builder, index: int, d: int) -> bool:
    """Whether an index is one number of 0, …, d - 1, whatever it is."""
    row = b.rows[index]
    if b.type(index).shape:
        return False
    if row.op is Op.CONST:
        return 0 <= int(b.constants[row.attrs[0]]) < d
    return row.op is Op.WRAP and row.attrs[0] <= d


def _size(shape: Sequence[int]) -> int:
    total = 1
    for d in shape:
        total *= d
    return total
