"""Sums, extrema and products of arrays of run-time extent.

They are those of whole arrays, with the neutral element outside of the extents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.rules.facts import neutral
from ckad.tape.ops import Op
from ckad.trace.axes import axes_of, axis_of
from ckad.trace.dispatch import PART, given, implements, put
from ckad.trace.integers.spans import below
from ckad.trace.primitives.part.alignment import Operand
from ckad.trace.primitives.part.elements import as_array, written
from ckad.trace.primitives.part.extents import filled, inside
from ckad.trace.values.apply import apply, astype
from ckad.trace.values.part import Padded, unsupported
from ckad.trace.values.tracer import lift

# --- reductions --------------------------------------------------------------------------------


def _reduce(function: Any, a: Padded, op: Op, axis: Any, keepdims: Any, **options: Any) -> Any:
    """``function`` of the base, outside of the extents what changes nothing in ``op``."""
    data = filled(a.base, inside(a.extents, a.base.shape), neutral(op, a.dtype))
    keepdims = given(keepdims) and bool(keepdims)
    axes = axes_of(axis, a.ndim)
    result = function(data, axis=axis, keepdims=keepdims, **options)
    extents = [None if k in axes else e for k, e in enumerate(a.extents)]
    if not keepdims:
        extents = [e for k, e in enumerate(extents) if k not in axes]
    return result if all(e is None for e in extents) else Padded(result, extents)


@implements(np.sum, kind=PART)
def sum_(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
         initial: Any = None, where: Any = True) -> Any:  # fmt: skip
    _no_mask(where)
    total = _reduce(np.sum, a, Op.SUM, axis, keepdims, dtype=dtype)
    return written(total + initial if given(initial) else total, out)


@implements(np.prod, kind=PART)
def prod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
         initial: Any = None, where: Any = True) -> Any:  # fmt: skip
    _no_mask(where)
    product = _reduce(np.prod, a, Op.PROD, axis, keepdims, dtype=dtype)
    return written(product * initial if given(initial) else product, out)


def _no_mask(where: Any) -> None:
    if where is not True and where is not np._NoValue:
        unsupported("where=")


def _extremum(function: Any, op: Op) -> Any:
    @implements(function, kind=PART)
    def extremum(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
                 initial: Any = None, where: Any = True) -> Any:  # fmt: skip
        _no_mask(where)
        if not given(initial):
            a = _not_empty(a, axes_of(axis, a.ndim))
        options = {"initial": initial} if given(initial) else {}
        return written(_reduce(function, a, op, axis, keepdims, **options), out)

    return extremum


def _not_empty(a: Padded, axes: Sequence[int]) -> Padded:
    """``a``; the program stops if there is nothing along ``axes``."""
    extents = list(a.extents)
    for k in axes:
        extent = extents[k]
        if extent is not None and below(0, extent.length) is not True:
            empty = np.where(np.less(extent.length, 1), 1, 0)[()]
            stop = apply(Op.WRAP, lift(empty), attrs=(1,))
            extents[k] = extent._replace(length=extent.length + stop)
    return Padded(a.base, extents, a.tame)


np_max = _extremum(np.max, Op.REDUCE_MAX)
np_min = _extremum(np.min, Op.REDUCE_MIN)
put(np.amax, np_max, PART)
put(np.amin, np_min, PART)


def _truth(function: Any, op: Op) -> None:
    @implements(function, kind=PART)
    def truth(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        whole = Padded(astype(a.base, bool), a.extents)
        return written(_reduce(function, whole, op, axis, keepdims), out)


_truth(np.any, Op.OR)
_truth(np.all, Op.AND)


def _position(function: Any, op: Op) -> None:
    @implements(function, kind=PART)
    def position(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        if a.ndim > 1 and axis is None:
            unsupported(f"np.{function.__name__} without axis=")
        k = axis_of(axis or 0, a.ndim)
        found = _reduce(function, _not_empty(a, [k]), op, k, keepdims)
        return written(found if a.extents[k] is None else found - a.extents[k].origin, out)


_position(np.argmax, Op.REDUCE_MAX)
_position(np.argmin, Op.REDUCE_MIN)


def _running(function: Any, op: Op) -> None:
    @implements(function, kind=PART)
    def running(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        if a.ndim > 1 and axis is None:
            unsupported(f"np.{function.__name__} without axis=")
        data = filled(a.base, inside(a.extents, a.base.shape), neutral(op, a.dtype))
        result = function(data, axis=axis or 0, dtype=dtype)
        return written(Padded(result, a.extents), out)


_running(np.cumsum, Op.SUM)
_running(np.cumprod, Op.PROD)


# --- products ----------------------------------------------------------------------------------


@implements(np.dot, kind=PART)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    x, y = as_array(a), as_array(b)
    if not x.ndim or not y.ndim:
        return written(x * y, out)
    return written(matmul(x, y), out)


@implements(np.inner, np.vdot, kind=PART)
def inner(a: Any, b: Any, /) -> Any:
    x, y = as_array(a), as_array(b)
    return matmul(x, y) if x.ndim == y.ndim == 1 else unsupported("np.inner of matrices")


@implements(np.outer, kind=PART)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    x, y = as_array(a), as_array(b)
    if x.ndim != 1 or y.ndim != 1:
        unsupported("np.outer of matrices")
    return written(x[:, None] * y[None, :], out)


@implements(np.matmul, kind=PART)
def matmul(a: Any, b: Any) -> Any:
    """The product of vectors and matrices, zero outside of the extents."""
    x, y = Operand(as_array(a)), Operand(as_array(b))
    if not 1 <= x.rank <= 2 or not 1 <= y.rank <= 2:
        unsupported("the product of stacks of matrices")
    k = 0 if y.rank == 1 else y.rank - 2
    if x.extents[-1] is not None:
        x.extents[-1] = y.fit(k, x.extents[-1], x.data.shape[-1], repeats=False)
    elif (extent := y.extents[k]) is not None:
        y.extents[k] = x.fit(x.rank - 1, extent, y.data.shape[k], repeats=False)
    left, right = (filled(v.data, inside(v.extents, v.data.shape), 0) for v in (x, y))
    extents = [*x.extents[:-1], *(e for i, e in enumerate(y.extents) if i != k)]
    product = np.dot(left, right)  # of vectors it is a sum, which fuses with what is summed
    return product if all(e is None for e in extents) else Padded(product, extents, tame=True)


put(np.linalg.matmul, matmul, PART)
