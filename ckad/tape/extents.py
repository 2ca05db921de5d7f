"""Masks that are true between bounds that a program computes, and rows that vanish outside of them.

A part ``x[i:j]`` is recorded as the whole axis under the mask ``i <= place < j``. An engine that
knows the bounds can leave out what lies outside: there a row is zero, or stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ckad.tape.ops import Op
from ckad.tape.row import Row
from ckad.tape.types import DType


class Bound(NamedTuple):
    """The number ``sign * (scalar row) + shift``."""

    row: int
    sign: int
    shift: int


class Span(NamedTuple):
    """Places of one axis: from the largest of ``lows`` on, and below the smallest of ``highs``."""

    axis: int
    lows: tuple[Bound, ...]
    highs: tuple[Bound, ...]


#: The attribute of a SELECT of which nobody looks at what its mask does not choose.
PART = 1

#: The spans of some axes, in order; the others are whole.
Spans = tuple[Span, ...]

#: place < s, as (bound above?, shift) for places that grow with the axis; ``x > s`` is below
_UPPER = {Op.LT: 0, Op.LE: 1}
_LOWER = {Op.GE: 0, Op.GT: 1}
_TURNED = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GE: Op.LE, Op.GT: Op.LT, Op.EQ: Op.EQ}


def bounds_in(spans: Iterable[Span]) -> set[int]:
    """The scalar rows that spans are computed from."""
    return {b.row for span in spans for b in (*span.lows, *span.highs)}


class Masks:
    """The masks among rows in the making, or of a tape."""

    def __init__(self, rows: Sequence[Row], constants: Sequence[np.ndarray]) -> None:
        self.rows, self.constants = rows, constants
        self.known: dict[int, Spans | None] = {}

    def spans(self, k: int) -> Spans | None:
        """Where the mask k can be true, None if no bounds are known."""
        if k not in self.known:
            self.known[k] = self._spans(k)
        return self.known[k]

    def is_exact(self, k: int) -> bool:
        """Whether a mask with spans is true everywhere between them."""
        row = self.rows[k]
        if row.op in (Op.AND, Op.BROADCAST, Op.RESHAPE):
            return all(map(self.is_exact, row.operands))
        return row.op in _TURNED and self.spans(k) is not None

    def _spans(self, k: int) -> Spans | None:
        row = self.rows[k]
        if row.type.dtype is not DType.BOOL or row.type.size == 1:
            return None
        if row.op is Op.AND:
            return _both(*map(self.spans, row.operands))
        if row.op in _TURNED:
            return self._comparison(row)
        if row.op in (Op.BROADCAST, Op.RESHAPE):
            axes = self._axes(row)
            spans = self.spans(row.operands[0])
            if axes is None or spans is None:
                return None
            return tuple(span._replace(axis=axes[span.axis]) for span in spans)
        return None

    def _axes(self, row: Row) -> dict[int, int] | None:
        """Where the axes of the operand of a BROADCAST, or a RESHAPE to unit axes, come to lie."""
        source, shape = self.rows[row.operands[0]].type.shape, row.type.shape
        if row.op is Op.BROADCAST:
            return {a: len(shape) - len(source) + a for a in range(len(source))}
        long = [[a for a, d in enumerate(s) if d != 1] for s in (source, shape)]
        if [source[a] for a in long[0]] != [shape[a] for a in long[1]]:
            return None
        return dict(zip(*long, strict=True))

    def _comparison(self, row: Row) -> Spans | None:
        (x, y), op = row.operands, row.op
        place, scalar = self._place(x), self._scalar(y)
        if place is None or scalar is None:
            place, scalar, op = self._place(y), self._scalar(x), _TURNED[op]
        if place is None or scalar is None:
            return None
        axis, first, step = place
        if op is Op.EQ:
            at = Bound(scalar, step, -step * first)
            return (Span(axis, (at,), (at._replace(shift=at.shift + 1),)),)
        # step * place + first < s is place < s - first, or place > first - s
        if step < 0:
            op = _TURNED[op]
        shift = -step * first
        if op in _UPPER:
            return (Span(axis, (), (Bound(scalar, step, shift + _UPPER[op]),)),)
        return (Span(axis, (Bound(scalar, step, shift + _LOWER[op]),), ()),)

    def _scalar(self, k: int) -> int | None:
        """The integer that row k repeats."""
        while self.rows[k].type.size != 1 and self.rows[k].op in (Op.BROADCAST, Op.RESHAPE):
            (k,) = self.rows[k].operands
        return k if self.rows[k].type.size == 1 and self.rows[k].type.dtype is DType.I64 else None

    def _place(self, k: int) -> tuple[int, int, int] | None:
        """(axis, first, step) of a row whose elements count the places of one axis up or down."""
        row = self.rows[k]
        if row.type.dtype is not DType.I64:
            return None
        if row.op is Op.CONST:
            return _progression(self.constants[row.attrs[0]])
        if row.op in (Op.BROADCAST, Op.RESHAPE):
            axes, place = self._axes(row), self._place(row.operands[0])
            if axes is not None and place is not None:
                return axes[place[0]], *place[1:]
        return None

    def shift(self, k: int, n: int) -> Bound | None:
        """The number b of a row that counts ``clip(place + b, 0, n - 1)`` along its only axis.

        It is what brings the parts of two arrays to the same places (`trace/primitives/part`).
        """
        row, limits = self.rows[k], [0, 0]
        for at, op in enumerate((Op.MINIMUM, Op.MAXIMUM)):
            numbers = [self._number(x) for x in row.operands]
            if row.op is not op or numbers.count(None) != 1:
                return None
            k = row.operands[numbers.index(None)]
            limits[at] = next(x for x in numbers if x is not None)
            row = self.rows[k]
        if len(row.type.shape) != 1 or row.op not in (Op.ADD, Op.SUB) or limits != [n - 1, 0]:
            return None
        (x, y), sign = row.operands, 1 if row.op is Op.ADD else -1
        place, scalar = self._place(x), self._scalar(y)
        if (place is None or scalar is None) and sign > 0:
            place, scalar = self._place(y), self._scalar(x)
        if place is None or scalar is None or place[2] != 1:
            return None
        return Bound(scalar, sign, place[1])

    def _number(self, k: int) -> int | None:
        """The number that row k repeats, if it is known."""
        scalar = self._scalar(k)
        if scalar is None or self.rows[scalar].op is not Op.CONST:
            return None
        return int(self.constants[self.rows[scalar].attrs[0]].reshape(-1)[0])

    def vanishing(self, k: int) -> Spans | None:
        """Spans outside of which row k is zero."""
        row = self.rows[k]
        if row.op is Op.SELECT:
            mask, x, y = row.operands
            if not self.is_zero(y):
                return None
            return self.spans(mask) or self.vanishing(x)
        if row.op in (Op.MUL, Op.ADD, Op.SUB):
            left, right = map(self.vanishing, row.operands)
            if left == right:
                return left
            return self._vanishing_product(*row.operands) if row.op is Op.MUL else None
        return self.vanishing(row.operands[0]) if row.op in (Op.NEG, Op.CONVERT) else None

    def _vanishing_product(self, x: int, y: int) -> Spans | None:
        """Zero times a finite number is zero."""
        for one, other in ((x, y), (y, x)):
            spans = self.vanishing(one)
            if spans is not None and self._is_tame(other, spans):
                return spans
        return None

    def _is_tame(self, k: int, spans: Spans) -> bool:
        """Whether row k is one finite number outside of spans."""
        row = self.rows[k]
        if row.op is Op.SELECT and self.spans(row.operands[0]) == spans:
            k = row.operands[2]
        while self.rows[k].op in (Op.BROADCAST, Op.RESHAPE):
            (k,) = self.rows[k].operands
        row = self.rows[k]
        return (
            row.op is Op.CONST
            and row.type.size == 1
            and bool(np.isfinite(self.constants[row.attrs[0]]).all())
        )

    def is_zero(self, k: int) -> bool:
        """Whether row k is the number zero throughout."""
        while self.rows[k].op in (Op.BROADCAST, Op.RESHAPE):
            (k,) = self.rows[k].operands
        row = self.rows[k]
        return row.op is Op.CONST and not np.any(self.constants[row.attrs[0]])


def _both(x: Spans | None, y: Spans | None) -> Spans | None:
    """Where two masks can both be true."""
    if x is None or y is None:
        return y if x is None else x
    found = {span.axis: span for span in x}
    for span in y:
        other = found.get(span.axis, Span(span.axis, (), ()))
        found[span.axis] = Span(span.axis, other.lows + span.lows, other.highs + span.highs)
    return tuple(found[axis] for axis in sorted(found))


def _progression(numbers: np.ndarray) -> tuple[int, int, int] | None:
    long = [a for a, d in enumerate(numbers.shape) if d != 1]
    if len(long) != 1 or numbers.size < 2:
        return None
    flat = numbers.reshape(-1)
    step = int(flat[1]) - int(flat[0])
    if abs(step) != 1 or not np.array_equal(flat, flat[0] + step * np.arange(flat.size)):
        return None
    return long[0], int(flat[0]), step
