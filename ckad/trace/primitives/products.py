"""Products of vectors and matrices: everything comes down to the batched MATMUL."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.tape.reasons import Reason
from ckad.tape.routines import named
from ckad.trace import arrays
from ckad.trace.arrays import Array
from ckad.trace.axes import axis_of, common_shape
from ckad.trace.dispatch import implements, put, reject
from ckad.trace.memory.layout import plain_layout
from ckad.trace.primitives.shape import copied, diagonal, expand_dims, transpose
from ckad.trace.values.apply import (
    apply,
    astype,
    broadcast_to,
    finish,
    promote,
    reshape_value,
    resolve,
    without_lists,
)
from ckad.trace.values.tracer import Tracer, decided, lift, tried_as_run


def batched(x: Tracer, y: Tracer) -> Tracer:
    """[b, m, k] @ [b, k, n] in the common dtype of ``x`` and ``y``."""
    if x.type.is_float:
        return apply(Op.MATMUL, x, y, attrs=(0, 0))
    # engines multiply matrices of floats only
    return _sum_of_products(expand_dims(x, 3), expand_dims(y, 1), 2)


def _in_common(*xs: Any) -> list[Tracer]:
    """The operands in one dtype; a Python number counts as an array here, not as a weak scalar."""
    arrays = map(lift, xs)
    return promote(*[Tracer(x.storage, x.path, x.scalar) if x.weak else x for x in arrays])


# --- matmul ------------------------------------------------------------------------------------


def matmul(x: Any, y: Any, out: Any = None, dtype: Any = None, **options: Any) -> Tracer:
    """``np.matmul``: matrices in the last two axes, the axes before them broadcast."""
    reject(bool(options), f"np.matmul with {min(options, default='')}=")
    x, y = without_lists((x, y))
    dtypes = resolve(np.matmul, (x, y), dtype)
    a, b = (astype(v, d) for v, d in zip((x, y), dtypes, strict=False))
    if not a.shape or not b.shape:
        raise ValueError(at_place("np.matmul does not take scalars; use * instead"))
    _check_inner(a.shape[-1], b.shape[-2 if b.ndim > 1 else 0], a.shape, b.shape)
    left = reshape_value(a, (1, *a.shape)) if a.ndim == 1 else a
    right = reshape_value(b, (*b.shape, 1)) if b.ndim == 1 else b
    product = _stacked_product(left, right)
    shape = list(product.shape)
    shape = [*shape[:-2], *shape[-2:][a.ndim == 1 :]]
    shape = shape[:-1] if b.ndim == 1 else shape
    return finish(plain_layout([x, y], reshape_value(product, shape)), out)


def _check_inner(k: int, also_k: int, *shapes: Any) -> None:
    if k != also_k:
        raise ValueError(
            at_place(
                f"shapes {shapes[0]} and {shapes[1]} do not fit: {k} != {also_k}. The last axis of "
                "the first is summed with the last but one of the second; x.T turns a matrix."
            )
        )


def _stacked_product(x: Tracer, y: Tracer) -> Tracer:
    """The product of stacks of matrices, [..., m, k] @ [..., k, n]."""
    (m, k), n = x.shape[-2:], y.shape[-1]
    lead = common_shape(x.shape[:-2], y.shape[:-2])
    if y.ndim == 2:
        # the stack is only more rows of one matrix
        rows = math.prod(x.shape[:-1])
        product = batched(reshape_value(x, (1, rows, k)), reshape_value(y, (1, k, n)))
    else:
        count = math.prod(lead)
        left = reshape_value(broadcast_to(x, (*lead, m, k)), (count, m, k))
        right = reshape_value(broadcast_to(y, (*lead, k, n)), (count, k, n))
        product = batched(left, right)
    return reshape_value(product, (*lead, m, n))


put(np.matmul, matmul)


def _vecdot(x: Any, y: Any, out: Any = None, dtype: Any = None, axis: int = -1) -> Tracer:
    xs: list[Any] = [lift(x), lift(y)]
    a, b = (np.moveaxis(v, axis, -1) for v in xs)
    _check_inner(a.shape[-1], b.shape[-1], a.shape, b.shape)
    return finish(_sum_of_products(a, b, -1, dtype), out)


def _sum_of_products(a: Tracer, b: Tracer, axis: int, dtype: Any = None) -> Tracer:
    a, b = promote(a, b)
    total = np.sum(np.multiply(a, b), axis, dtype)
    # in NumPy a product of truth values is one
    return astype(total, bool) if a.dtype == bool and dtype is None else total


put(np.vecdot, _vecdot)
if hasattr(np, "matvec"):  # NumPy 2.2
    put(np.matvec, lambda x, y, out=None: finish(matmul(x, lift(y)[..., None])[..., 0], out))
    put(
        np.vecmat,
        lambda x, y, out=None: finish(matmul(lift(x)[..., None, :], y)[..., 0, :], out),
    )


# --- dot and its relatives ---------------------------------------------------------------------


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Tracer:
    x, y = _in_common(a, b)
    if not x.shape or not y.shape:
        return finish(x * y, out)
    if x.ndim == y.ndim == 1:
        _check_inner(x.size, y.size, x.shape, y.shape)
        return finish(_sum_of_products(x, y, 0), out)
    if y.ndim <= 2:
        return finish(matmul(x, y), out)
    return finish(tensordot(x, y, ((-1,), (-2,))), out)


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Tracer:
    x, y = lift(a), lift(b)
    return dot(reshape_value(x, (x.size,)), reshape_value(y, (y.size,)))


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Array:
    x, y = _in_common(a, b)
    if not x.shape or not y.shape:
        return np.multiply(x, y)
    return dot(x, y) if x.ndim == y.ndim == 1 else tensordot(x, y, ((-1,), (-1,)))


@implements(np.outer, contiguous=True)
def outer(a: Any, b: Any, out: Any = None) -> Tracer:
    x, y = lift(a), lift(b)
    return finish(reshape_value(x, (x.size, 1)) * reshape_value(y, (y.size,)), out)


@implements(np.tensordot, contiguous=True)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Tracer:
    x, y = _in_common(a, b)
    summed_x, summed_y = _tensordot_axes(axes, x.ndim, y.ndim)
    if [x.shape[i] for i in summed_x] != [y.shape[j] for j in summed_y]:
        raise ValueError(at_place(f"shapes {x.shape} and {y.shape} do not fit along axes {axes}"))
    free_x = [i for i in range(x.ndim) if i not in summed_x]
    free_y = [j for j in range(y.ndim) if j not in summed_y]
    shape = [*(x.shape[i] for i in free_x), *(y.shape[j] for j in free_y)]
    k = math.prod(x.shape[i] for i in summed_x)
    left = reshape_value(
        transpose(x, (*free_x, *summed_x)), (1, math.prod(x.shape[i] for i in free_x), k)
    )
    right = reshape_value(
        transpose(y, (*summed_y, *free_y)), (1, k, math.prod(y.shape[j] for j in free_y))
    )
    return copied(reshape_value(batched(left, right), shape))


def _tensordot_axes(axes: Any, rank_x: int, rank_y: int) -> tuple[list[int], list[int]]:
    if isinstance(axes, (int, np.integer)):
        axes = (range(-int(axes), 0), range(int(axes)))
    pair = [list(a) if isinstance(a, (tuple, list, range)) else [a] for a in axes]
    if len(pair[0]) != len(pair[1]):
        raise ValueError(at_place("axes= must name as many axes of a as of b"))
    return [axis_of(i, rank_x) for i in pair[0]], [axis_of(j, rank_y) for j in pair[1]]


@implements(np.kron)
def kron(a: Any, b: Any) -> Tracer:
    x, y = lift(a), lift(b)
    rank = max(x.ndim, y.ndim)
    rows, cells = (*[1] * (rank - x.ndim), *x.shape), (*[1] * (rank - y.ndim), *y.shape)
    left = reshape_value(x, [d for n in rows for d in (n, 1)])
    right = reshape_value(y, [d for n in cells for d in (1, n)])
    product = np.multiply(left, right)
    return reshape_value(product, [m * n for m, n in zip(rows, cells, strict=True)])


@implements(np.cross)
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Array:
    if axis is not None:
        axisa = axisb = axisc = axis
    left: Any = lift(a)
    right: Any = lift(b)
    x, y = np.moveaxis(left, axisa, -1), np.moveaxis(right, axisb, -1)
    lengths = x.shape[-1], y.shape[-1]
    if not {2, 3}.issuperset(lengths):
        what = f"np.cross needs vectors of 2 or 3 elements, got shapes {x.shape} and {y.shape}"
        raise ValueError(at_place(what))
    (a0, a1, *third), (b0, b1, *other) = ([v[..., k] for k in range(v.shape[-1])] for v in (x, y))
    if lengths == (2, 2):
        return a0 * b1 - a1 * b0
    a2, b2 = third[0] if third else 0, other[0] if other else 0
    parts = [a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0]
    return np.moveaxis(np.stack(parts, -1), -1, axisc)


@implements(np.linalg.cross)
def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    shapes = np.shape(x1), np.shape(x2)
    if any(shape[axis] != 3 for shape in shapes):
        raise ValueError(at_place(f"np.linalg.cross needs 3-vectors, got shapes {shapes}"))
    return cross(x1, x2, axis=axis)


@implements(np.trace)
def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Array:
    return np.sum(diagonal(a, offset, axis1, axis2), -1, dtype, out)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Tracer:
    if any(lift(x).ndim != 2 for x in arrays[1:-1]) or any(not lift(x).ndim for x in arrays):
        raise ValueError(at_place("np.linalg.multi_dot takes matrices, and vectors at the ends"))
    return finish(functools.reduce(dot, arrays), out)


implements(np.linalg.matmul)(matmul)
implements(np.linalg.tensordot, contiguous=True)(tensordot)


def routine(name: str, attrs: Sequence[int], *operands: Any) -> Tracer:
    xs = [lift(x) for x in operands]
    xs = [astype(x, np.float64 if x.type.is_float else np.int64) for x in xs]
    found = apply(Op.CALL, *xs, attrs=(named(name).number, *attrs))
    tried_as_run(found)
    return found


#: What NumPy says of matrices.
_FAILURES = {
    Reason.NOT_POSITIVE: "Matrix is not positive definite",
    Reason.SINGULAR: "Singular matrix",
}


def stopping(x: Any, wrong: Any, reason: str) -> Tracer:
    """What is less by a zero that is there if the check has passed is the same bits."""
    if Reason[reason] in _FAILURES and decided(wrong):
        raise np.linalg.LinAlgError(at_place(_FAILURES[Reason[reason]]))
    flag = astype(lift(wrong), np.int64)
    zero = astype(apply(Op.WRAP, flag, attrs=(1, Reason[reason])), lift(x).dtype)
    found: Tracer = np.subtract(x, zero)
    return found


put(arrays.batched, batched)
put(arrays.stopping, stopping)
put(arrays.routine, routine)
