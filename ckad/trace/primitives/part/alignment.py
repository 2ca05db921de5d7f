"""Operands brought to the same places, so that they combine element by element.

Two parts of equal length may lie at different places of their bases: ``x[:k] + y[n - k:]``. The
first operand stays where it is, the others are moved. Whether lengths are equal is seen from their
forms, or else checked when the program runs. Elements under a mask stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.tape.reasons import Reason
from ckad.trace.integers.affine import settled
from ckad.trace.integers.spans import minus, same
from ckad.trace.memory.context import current
from ckad.trace.primitives.part.mask import packed, same_places
from ckad.trace.values.apply import apply, broadcast_to
from ckad.trace.values.part import Extent, Extents, Mask, Part
from ckad.trace.values.tracer import Number, Tracer, fresh, lift, value


class Operand:
    """An array on its way to the places of others; elements under a mask are packed."""

    def __init__(self, x: Any) -> None:
        whole = packed(x)
        self.data: Tracer = whole.base if isinstance(x, Part) else lift(x)
        n = self.data.ndim
        self.extents: list[Extent | None] = list(whole.where) if isinstance(x, Part) else [None] * n

    @property
    def rank(self) -> int:
        return len(self.extents)

    def fit(self, axis: int, to: Extent, size: int, *, repeats: bool = True) -> Extent:
        """Move ``axis`` to the places ``to`` of an axis of ``size``; ``to``, its length checked.

        A static axis of length 1 is repeated, as NumPy does in operations on elements.
        """
        n = self.data.shape[axis]
        own = self.extents[axis]
        if repeats and own is None and n == 1:
            return to
        own = own or Extent(0, n)
        zero = mismatch(to.length, own.length)
        self.data = moved(self.data, axis, own.origin, to.origin, size)
        if zero is not None:
            length: Any = np.add(lift(to.length), zero)
            to = to._replace(length=length)
            self.data = _after(self.data, zero)
        self.extents[axis] = to
        return to


def aligned(xs: Sequence[Any]) -> tuple[list[Tracer], Extents | Mask]:
    """The bases of operands with their elements at the same places, and which these are."""
    masked = any(isinstance(x, Part) and isinstance(x.where, Mask) for x in xs)
    if masked and (beside := same_places(xs)) is not None:
        return beside
    operands = [Operand(x) for x in xs]
    extents = align(operands)
    return [x.data for x in operands], Extents(extents)


def align(operands: Sequence[Operand]) -> list[Extent | None]:
    """Bring all operands to the places of the first that has an extent, axis by axis."""
    rank = max(x.rank for x in operands)
    found: list[Extent | None] = []
    for axis in range(rank):
        here = [(x, axis - rank + x.rank) for x in operands if axis - rank + x.rank >= 0]
        found.append(_align(here))
    return found


def align_axis(operands: Sequence[Operand], axis: int, *, repeats: bool) -> Extent | None:
    """The same for one axis of operands of the same number of axes."""
    return _align([(x, axis) for x in operands], repeats=repeats)


def _align(operands: list[tuple[Operand, int]], *, repeats: bool = True) -> Extent | None:
    first = next(((x, k) for x, k in operands if x.extents[k] is not None), None)
    if first is None:
        return None
    to, size = first[0].extents[first[1]], first[0].data.shape[first[1]]
    assert to is not None
    for x, k in operands:
        if x is not first[0]:
            to = x.fit(k, to, size, repeats=repeats)
    return to


def mismatch(length: Number, other: Number) -> Tracer | None:
    """Stop the program where lengths differ; the number 0, None if they are known not to."""
    if same(length, other):
        return None
    if isinstance(length, int) and isinstance(other, int):
        raise ValueError(
            at_place(f"operands of lengths {length} and {other} could not be broadcast together")
        )
    difference = np.abs(np.subtract(length, other))
    return apply(Op.WRAP, lift(difference), attrs=(1, Reason.LENGTH))


def _after(x: Tracer, zero: Tracer) -> Tracer:
    """``x``, computed after a check has passed: what is made of it may need no length."""
    return apply(Op.SELECT, broadcast_to(np.equal(zero, 0), x.shape), x, x)


def moved(x: Tracer, axis: int, origin: Number, to: Number, size: int) -> Tracer:
    """``x`` with what lies at ``origin`` of ``axis`` at ``to`` of an axis of ``size``."""
    n = x.shape[axis]
    shift = settled(minus(to, origin))
    if n and (not isinstance(shift, int) or (shift < 0 and n > size)):
        places = np.clip(np.subtract(np.arange(size), shift), 0, n - 1)
        return apply(Op.GATHER, x, places, attrs=(axis,))
    x = _resized(x, axis, size)
    return apply(Op.ROLL, x, attrs=(shift % size, axis)) if size and shift % size else x


def _resized(x: Tracer, axis: int, size: int) -> Tracer:
    n = x.shape[axis]
    if n == size:
        return x
    if n > size:
        first: Tracer = x[(*[slice(None)] * axis, slice(0, size))]
        return first
    shape = [size if k == axis else d for k, d in enumerate(x.shape)]
    starts, ones = [0] * len(shape), [1] * len(shape)
    zeros = fresh(current().builder.full(x.type.with_shape(tuple(shape)), 0), scalar=False)
    return fresh(
        current().builder.update(value(zeros), value(x), attrs=(*starts, *ones)), scalar=False
    )
