"""One row for all iterations of a loop: every value gets the iterations as its first axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ckad.passes.vectorise.access import Value
from ckad.passes.vectorise.survey import Unfit
from ckad.tape.builder import Builder
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.tape import Row
from ckad.tape.types import Type


def batched(b: Builder, n: int, row: Row, operands: Sequence[Value]) -> int:
    """The row of ``row`` in all ``n`` iterations; Unfit if there is no such op."""
    if is_elementwise(row.op):
        return _elementwise(b, n, row, operands)
    if row.op in _RULES:
        return _RULES[row.op](b, n, row, operands)
    raise Unfit(f"{row.op.name} has no form for all iterations")


def spread(b: Builder, n: int, x: Value) -> int:
    """The value of all iterations, also where it is the same in all."""
    if x.varies:
        return x.row
    row = b.rows[x.row]
    source = row.operands[0] if row.op is Op.BROADCAST else x.row
    return b.broadcast_to(source, (n, *row.type.shape))


def _elementwise(b: Builder, n: int, row: Row, operands: Sequence[Value]) -> int:
    xs = tuple(spread(b, n, x) for x in operands)
    return b.append(row.op, xs, row.attrs, _wider(row.type, n))


def _wider(type: Type, n: int) -> Type:
    return type.with_shape((n, *type.shape))


def _broadcast(b: Builder, n: int, row: Row, operands: Sequence[Value]) -> int:
    (x,) = operands
    shape = b.type(x.row).shape[1:]
    ones = [1] * (len(row.type.shape) - len(shape))
    return b.broadcast_to(b.reshape_to(x.row, (n, *ones, *shape)), (n, *row.type.shape))


def _reshape(b: Builder, n: int, row: Row, operands: Sequence[Value]) -> int:
    return b.reshape_to(operands[0].row, (n, *row.type.shape))


def _transpose(b: Builder, n: int, row: Row, operands: Sequence[Value]) -> int:
    return b.transpose(operands[0].row, attrs=(0, *(a + 1 for a in row.attrs)))


def _sliced(b: Builder, n: int, row: Row, operands: Sequence[Value]) -> int:
    """SLICE, PAD, UPDATE and SLICE_ADD: the first axis is taken whole."""
    rank = len(row.attrs) // 2
    attrs = (0, *row.attrs[:rank], 1, *row.attrs[rank:])
    xs = tuple(spread(b, n, x) for x in operands)
    return b.append(row.op, xs, attrs, _wider(row.type, n))


def _moved(axes: int) -> Callable[[Builder, int, Row, Sequence[Value]], int]:
    """Ops whose first ``axes`` attributes are axes, or all of them for -1."""

    def rule(b: Builder, n: int, row: Row, operands: Sequence[Value]) -> int:
        count = len(row.attrs) if axes < 0 else axes
        attrs = (*(a + 1 for a in row.attrs[:count]), *row.attrs[count:])
        xs = tuple(spread(b, n, x) for x in operands)
        return b.append(row.op, xs, attrs, _wider(row.type, n))

    return rule


def _roll(b: Builder, n: int, row: Row, operands: Sequence[Value]) -> int:
    shift, axis = row.attrs
    return b.roll(operands[0].row, attrs=(shift, axis + 1))


def _gather(b: Builder, n: int, row: Row, operands: Sequence[Value]) -> int:
    x, index = operands
    (axis,) = row.attrs
    if not index.varies:
        return b.gather(x.row, index.row, attrs=(axis + 1,))
    if not x.varies:
        taken = b.gather(x.row, index.row, attrs=(axis,))
        rank = len(b.type(taken).shape)
        order = [axis, *(k for k in range(rank) if k != axis)]
        return b.transpose(taken, attrs=order) if axis else taken
    return _gather_each(b, n, axis, x.row, index.row)


def _gather_each(b: Builder, n: int, axis: int, x: int, index: int) -> int:
    """Each iteration takes from its own array: both axes as one, the indices moved on."""
    if axis:
        raise Unfit("indices of each iteration into a later axis of its own array")
    d, shape = b.type(x).shape[1], b.type(x).shape[2:]
    many = b.type(index).shape
    firsts = b.cumsum(b.full(b.type(index).with_shape((n,)), d), attrs=(0, 0))
    firsts = b.sub(firsts, b.full_like(firsts, d))
    firsts = b.broadcast_to(b.reshape_to(firsts, (n, *[1] * (len(many) - 1))), many)
    return b.gather(b.reshape_to(x, (n * d, *shape)), b.add(index, firsts), attrs=(0,))


def _scatter(b: Builder, n: int, row: Row, operands: Sequence[Value]) -> int:
    x, index, new = operands
    if index.varies:
        raise Unfit("places of each iteration in its own array")
    axis, *rest = row.attrs
    xs = spread(b, n, x), index.row, spread(b, n, new)
    return b.append(row.op, xs, (axis + 1, *rest), _wider(row.type, n))


def _matmul(b: Builder, n: int, row: Row, operands: Sequence[Value]) -> int:
    x, y = operands
    tx, ty = row.attrs
    batch, m, p = row.type.shape
    if batch == 1 and not y.varies and not tx:
        rows = b.reshape_to(x.row, (1, n * m, b.type(x.row).shape[-1]))
        return b.reshape_to(b.matmul(rows, y.row, attrs=(0, ty)), (n, 1, m, p))
    xs = [spread(b, n, v) for v in operands]
    flat = [b.reshape_to(v, (n * batch, *b.type(v).shape[2:])) for v in xs]
    return b.reshape_to(b.matmul(*flat, attrs=row.attrs), (n, batch, m, p))


_RULES: dict[int, Callable[[Builder, int, Row, Sequence[Value]], int]] = {
    Op.BROADCAST: _broadcast,
    Op.RESHAPE: _reshape,
    Op.TRANSPOSE: _transpose,
    **dict.fromkeys((Op.SLICE, Op.PAD, Op.UPDATE, Op.SLICE_ADD), _sliced),
    Op.CONCAT: _moved(1),
    Op.ROLL: _roll,
    Op.GATHER: _gather,
    Op.SCATTER: _scatter,
    Op.SCATTER_ADD: _scatter,
    **{op: _moved(-1) for op in (Op.SUM, Op.REDUCE_MAX, Op.REDUCE_MIN)},
    **{op: _moved(1) for op in (Op.PROD, Op.ARGMAX, Op.ARGMIN, Op.CUMSUM, Op.RECURRENCE)},
    Op.MATMUL: _matmul,
}
