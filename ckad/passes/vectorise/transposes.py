"""Transposes move behind what can be computed before them, to meet others that undo them.

A loop over the columns of arrays becomes ops on transposed parts, and its results are transposed
back. An elementwise op on transposed arrays is the transposed op on the arrays themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckad.passes.cse import Sharing
from ckad.passes.rewrite import rebuild
from ckad.tape.builder import Builder
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.tape import Row, Tape

#: So many elementwise ops of repeated operands, one of the other, are done on transposed arrays.
_DEPTH = 4
_REDUCTIONS = (Op.SUM, Op.REDUCE_MAX, Op.REDUCE_MIN)


def transposes_last(tape: Tape) -> Tape:
    """``tape`` with its transposes as late as they can be, not so in its bodies."""
    if Op.TRANSPOSE not in tape.ops:
        return tape
    return rebuild(tape, _moved, lambda body: body, Sharing())


def _moved(b: Builder, row: Row, env: list[int]) -> int | None:
    xs = [env[x] for x in row.operands]
    if not any(b.rows[x].op is Op.TRANSPOSE for x in xs):
        return None
    if is_elementwise(row.op):
        return _elementwise(b, row, xs)
    rule = _RULES.get(row.op)
    if rule is None:
        return None
    made: int = rule(b, row, b.rows[xs[0]])
    return made


def _elementwise(b: Builder, row: Row, xs: Sequence[int]) -> int | None:
    order = next(b.rows[x].attrs for x in xs if b.rows[x].op is Op.TRANSPOSE)
    made = _computed_before(b, row, xs, order, _DEPTH)
    return None if made is None else _transposed(b, made, order)


def _computed_before(
    b: Builder, row: Row, xs: Sequence[int], order: Sequence[int], depth: int
) -> int | None:
    """An elementwise op on what its operands are the transposes of."""
    known = []
    for x in xs:
        before = _undone(b, x, order, depth)
        if before is None:
            return None
        known.append(before)
    return b.append(row.op, tuple(known), row.attrs, row.type.with_shape(b.type(known[0]).shape))


def _undone(b: Builder, x: int, order: Sequence[int], depth: int) -> int | None:
    """What ``x`` is the transpose of, where that costs nothing."""
    row = b.rows[x]
    if row.op is Op.TRANSPOSE:
        return row.operands[0] if row.attrs == tuple(order) else None
    if is_elementwise(row.op) and depth:
        return _computed_before(b, row, row.operands, order, depth - 1)
    if row.op is not Op.BROADCAST:
        return None
    small, back = row.operands[0], [int(a) for a in np.argsort(order)]
    shape = b.type(small).shape
    wide = (1,) * (len(order) - len(shape)) + shape
    if sum(d != 1 for d in wide) > 1:
        return None
    turned = b.reshape_to(small, [wide[a] for a in back])
    return b.broadcast_to(turned, [row.type.shape[a] for a in back])


def _transposed(b: Builder, x: int, order: Sequence[int]) -> int:
    row = b.rows[x]
    if row.op is Op.TRANSPOSE:
        x, order = row.operands[0], [row.attrs[a] for a in order]
    if list(order) == sorted(order):
        return x
    return b.transpose(x, attrs=order)


def _of_transpose(b: Builder, row: Row, inner: Row) -> int:
    return _transposed(b, inner.operands[0], [inner.attrs[a] for a in row.attrs])


def _of_slice(b: Builder, row: Row, inner: Row) -> int:
    order, rank = inner.attrs, len(inner.attrs)
    back = [int(a) for a in np.argsort(order)]
    attrs = [row.attrs[half + a] for half in (0, rank) for a in back]
    type = row.type.with_shape(tuple(row.type.shape[a] for a in back))
    return _transposed(b, b.slice(inner.operands[0], attrs=attrs, type=type), order)


def _of_reduction(b: Builder, row: Row, inner: Row) -> int:
    order = inner.attrs
    axes = sorted(order[a] for a in row.attrs)
    made = b.emit(row.op, (inner.operands[0],), axes)
    kept = [order[a] for a in range(len(order)) if a not in row.attrs]
    return _transposed(b, made, [sorted(kept).index(a) for a in kept])


_RULES = {
    Op.TRANSPOSE: _of_transpose,
    Op.SLICE: _of_slice,
    **dict.fromkeys(_REDUCTIONS, _of_reduction),
}
