"""Ops as maps of places: which elements of its operands an element of the result is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.passes.dependence.columns import LARGEST, Columns, incidence, union
from ckad.rules import RULES
from ckad.rules.routines import sparse as products
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of
from ckad.tape.row import Row
from ckad.tape.types import DType, Type

#: What is known of a row's operands: columns (None: none), numbers (None: unknown), types.
Known = np.ndarray | None
Rule = Callable[[Row, Sequence[Columns | None], Sequence[Known], Sequence[Type]], Columns | None]


def chosen(
    row: Row, parts: Sequence[Columns | None], numbers: Sequence[Known], types: Sequence[Type]
) -> Columns | None:
    """SELECT: one of two where the mask is known."""
    mask, (_, x, y) = numbers[0], parts
    if mask is None:
        return union((x, y))
    at = np.arange(mask.size)
    sides = (x, mask.ravel()), (y, ~mask.ravel())
    return union([None if c is None else c.taken(np.where(m, at, -1)) for c, m in sides])


def moved(
    row: Row, parts: Sequence[Columns | None], numbers: Sequence[Known], types: Sequence[Type]
) -> Columns | None:
    """What the op does to places: it is run on numbers that count the elements."""
    found = []
    for k, part in enumerate(parts):
        if part is not None:
            about = enumerate(zip(types, numbers, strict=True))
            counts = [_counted(t, n, j == k) for j, (t, n) in about]
            found.append(part.taken(_run(row, counts) - 1))
    return union(found)


def _counted(type: Type, known: Known, own: bool) -> np.ndarray:
    """The places of an operand from 1 on, or zeros; an operand of integers as it is."""
    if known is not None and not type.is_float:
        return known
    count = np.arange(1, type.size + 1) if own else np.zeros(type.size, np.int64)
    return count.reshape(type.shape)


def _run(row: Row, operands: Sequence[np.ndarray]) -> np.ndarray:
    evaluator = RULES[row.op].evaluate
    assert evaluator is not None
    type = Type(DType.I64, row.type.shape)
    return np.asarray(evaluator(type, row.attrs, *operands), np.int64)


def reduced(
    row: Row, parts: Sequence[Columns | None], numbers: Sequence[Known], types: Sequence[Type]
) -> Columns | None:
    """Sums, products, extrema over the axes in the attributes."""
    (x,) = parts
    return None if x is None else _over(x, types[0].shape, row.attrs)


def _over(x: Columns, shape: Sequence[int], axes: Sequence[int]) -> Columns:
    """The union over some axes."""
    left = [1 if a in axes else d for a, d in enumerate(shape)]
    n = int(np.prod(left))
    groups = np.broadcast_to(np.arange(n).reshape(left), tuple(shape))
    return x.grouped(groups.ravel(), n)


def _along(x: Columns, shape: Sequence[int], axes: Sequence[int], out: Sequence[int]) -> Columns:
    """The union over some axes, for all elements along the axes that stand in their place.

    ``out`` is a shape that fits ``shape`` with ones at ``axes`` by NumPy's rules.
    """
    left = [1 if a in axes else d for a, d in enumerate(shape)]
    where = np.broadcast_to(np.arange(int(np.prod(left))).reshape(left), tuple(out))
    return _over(x, shape, axes).taken(where)


def running(
    row: Row, parts: Sequence[Columns | None], numbers: Sequence[Known], types: Sequence[Type]
) -> Columns | None:
    """CUMSUM, RECURRENCE: everything along the axis."""
    shape, axes = row.type.shape, row.attrs[:1]
    return union([None if x is None else _along(x, shape, axes, shape) for x in parts])


def gathered(
    row: Row, parts: Sequence[Columns | None], numbers: Sequence[Known], types: Sequence[Type]
) -> Columns | None:
    x, idx = parts[0], types[1]
    if x is None:
        return None
    if numbers[1] is not None:
        return moved(row, (x, None), numbers, types)
    (axis,), shape = row.attrs, types[0].shape
    groups = _over(x, shape, (axis,))
    left = (*shape[:axis], *[1] * len(idx.shape), *shape[axis + 1 :])
    where = np.broadcast_to(np.arange(groups.size).reshape(left), row.type.shape)
    return groups.taken(where)


def scattered(
    row: Row, parts: Sequence[Columns | None], numbers: Sequence[Known], types: Sequence[Type]
) -> Columns | None:
    """SCATTER and SCATTER_ADD: what was there before, and what is written or added."""
    x, _, y = parts
    if y is None:
        return x
    axis, out, idx = row.attrs[0], row.type, types[1]
    if numbers[1] is not None:
        places = np.take(np.arange(out.size).reshape(out.shape), numbers[1], axis)
        return union((x, y.grouped(places.ravel(), out.size)))
    own = (*out.shape[:axis], *idx.shape, *out.shape[axis + 1 :])
    groups = _over(y, own, range(axis, axis + len(idx.shape)))
    left = (*out.shape[:axis], 1, *out.shape[axis + 1 :])
    where = np.broadcast_to(np.arange(groups.size).reshape(left), out.shape)
    return union((x, groups.taken(where)))


def multiplied(
    row: Row, parts: Sequence[Columns | None], numbers: Sequence[Known], types: Sequence[Type]
) -> Columns | None:
    """MATMUL: rows by columns; where the other factor is known, its elements that are not zero."""
    batch, m, n = row.type.shape
    found = []
    for k, (x, turned) in enumerate(zip(parts, row.attrs, strict=True)):
        if x is None:
            continue
        shape = types[k].shape
        at = np.arange(types[k].size).reshape(shape)
        at = at.swapaxes(1, 2) if turned else at
        other = numbers[1 - k]
        if other is not None and np.count_nonzero(other) * (n, m)[1 - k] <= LARGEST:
            other = other.swapaxes(1, 2) if row.attrs[1 - k] else other
            found.append(x.collected(_by_factor(at, other, k, row.type)))
        else:
            x = x.taken(at)
            axis = 2 - k  # the axis that is summed over
            found.append(_along(x, at.shape, (axis,), (batch, m, n)))
    return union(found)


def _by_factor(at: np.ndarray, other: np.ndarray, k: int, out: Type) -> Any:
    """Which elements of factor k each element of a product reads, if the other one is known."""
    _, m, n = out.shape
    b, i, j = np.nonzero(other)
    free = np.arange(m if k == 0 else n)[:, None]
    if k == 0:  # out[b, :, j] reads x[b, :, i]
        rows, read = (b * m + free) * n + j, at[b, free, i]
    else:  # out[b, i, :] reads y[b, j, :]
        rows, read = (b * m + i) * n + free, at[b, j, free]
    return incidence(rows.ravel(), read.ravel(), (out.size, at.size))


def called(
    row: Row, parts: Sequence[Columns | None], numbers: Sequence[Known], types: Sequence[Type]
) -> Columns | None:
    """A routine: a product with a sparse matrix by its pattern, of any other every element."""
    if routine_of(row) is products.dot and numbers[2] is not None and numbers[3] is not None:
        return _sparse_product(row, parts, numbers, types)
    found = [x.everything(row.type.size) for x in parts if x is not None]
    return union(found)


def _sparse_product(
    row: Row, parts: Sequence[Columns | None], numbers: Sequence[Known], types: Sequence[Type]
) -> Columns | None:
    transposed, m, _ = row.attrs[1:]
    assert numbers[2] is not None
    assert numbers[3] is not None
    nnz, (height, k) = types[0].size, row.type.shape
    indptr = products.unpacked(numbers[2], m + 1)
    i = np.repeat(np.arange(m), np.diff(indptr))
    j = products.unpacked(numbers[3], nnz).astype(np.int64)
    to, read = (j, i) if transposed else (i, j)
    free = np.arange(k)[:, None]
    out = (to * k + free).ravel()
    data, x = parts[:2]
    found = []
    if data is not None:
        at = np.broadcast_to(np.arange(nnz), (k, nnz)).ravel()
        found.append(data.collected(incidence(out, at, (height * k, nnz))))
    if x is not None:
        at = (read * k + free).ravel()
        found.append(x.collected(incidence(out, at, (height * k, types[1].size))))
    return union(found)


RULES_OF_PLACES: dict[Op, Rule] = {
    **dict.fromkeys((Op.RESHAPE, Op.BROADCAST, Op.TRANSPOSE, Op.SLICE, Op.PAD, Op.ROLL), moved),
    **dict.fromkeys((Op.CONCAT,), moved),
    **dict.fromkeys((Op.SUM, Op.PROD, Op.REDUCE_MAX, Op.REDUCE_MIN), reduced),
    **dict.fromkeys((Op.CUMSUM, Op.RECURRENCE), running),
    **dict.fromkeys((Op.SCATTER, Op.SCATTER_ADD), scattered),
    Op.UPDATE: moved,
    Op.SLICE_ADD: moved,
    Op.SELECT: chosen,
    Op.GATHER: gathered,
    Op.MATMUL: multiplied,
    Op.CALL: called,
}
