"""Reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.trace.arrays import safe_sqrt
from ckad.trace.axes import axes_of, axis_of, reduced_axes
from ckad.trace.dispatch import given, implements
from ckad.trace.memory.context import current
from ckad.trace.primitives.shape import copied
from ckad.trace.values.apply import apply, astype, broadcast, finish, reshape_value
from ckad.trace.values.tracer import Tracer, fresh, lift, value


def _reduce(op: int, x: Tracer, axes: Sequence[int], keepdims: bool) -> Tracer:
    result = apply(op, x, attrs=axes) if axes else fresh(value(x))
    return _keep(result, x.shape, axes, keepdims)


def _keep(result: Tracer, shape: Sequence[int], axes: Sequence[int], keepdims: Any) -> Tracer:
    """``result`` with the reduced axes of ``shape`` put back as ones if ``keepdims``."""
    if keepdims is np._NoValue or not keepdims:
        return result
    return reshape_value(result, [1 if k in axes else d for k, d in enumerate(shape)])


def _count(shape: Sequence[int], axes: Sequence[int]) -> int:
    return math.prod(shape[k] for k in axes)


def summable(a: Any, dtype: Any, out: Any = None) -> Tracer:
    """``a`` in the dtype in which NumPy sums it: that of ``out``, or bool as int64."""
    a = lift(a)
    if dtype is None and isinstance(out, Tracer) and np.can_cast(a.dtype, out.dtype, "same_kind"):
        dtype = out.dtype
    if dtype is None:
        dtype = np.int64 if a.dtype == bool else a.dtype
    return astype(a, dtype)


def _masked(x: Tracer, where: Any, neutral: Any) -> Tracer:
    if where is True or where is np._NoValue:
        return x
    return np.where(where, x, astype(neutral, x.dtype))


@implements(np.sum)
def sum_(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Tracer:
    x = _masked(summable(a, dtype, out), where, 0)
    total = _reduce(Op.SUM, x, reduced_axes(axis, x.ndim), keepdims)
    return finish(total + astype(initial, x.dtype) if given(initial) else total, out)


@implements(np.prod)
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Tracer:
    x = _masked(summable(a, dtype, out), where, 1)
    axes = reduced_axes(axis, x.ndim)
    product = fresh(value(x))
    if len(axes) == x.ndim > 1:
        product = apply(Op.PROD, reshape_value(x, (x.size,)), attrs=(0,))
    else:
        for k in reversed(axes):
            product = apply(Op.PROD, product, attrs=(k,))
    product = _keep(product, x.shape, axes, keepdims)
    return finish(product * astype(initial, x.dtype) if given(initial) else product, out)


@implements(np.mean)
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Tracer:
    a = lift(a)
    total = sum_(a, axis, _float_dtype(a, dtype), keepdims=keepdims, where=where)
    return finish(total / _how_many(a, axis, keepdims, where, total.dtype), out)


def _float_dtype(a: Tracer, dtype: Any) -> Any:
    if dtype is not None:
        return dtype
    return a.dtype if a.type.is_float else np.float64


def _how_many(a: Tracer, axis: Any, keepdims: Any, where: Any, dtype: Any) -> Any:
    if where is True or where is np._NoValue:
        return _count(a.shape, axes_of(axis, a.ndim))
    return astype(sum_(np.broadcast_to(where, a.shape), axis, keepdims=keepdims), dtype)


@implements(np.average)
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    a = lift(a)
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        scale = lift(np.asarray(_count(a.shape, axes_of(axis, a.ndim)), result.dtype)[()])
    else:
        w = _weights_like(a, lift(weights), axis)
        dtype = np.result_type(a.dtype, w.dtype, np.float64 if not a.type.is_float else a.dtype)
        scale = sum_(w, axis, dtype, keepdims=keepdims)
        result = sum_(np.multiply(astype(a, dtype), w), axis, keepdims=keepdims) / scale
    if scale.shape != result.shape:
        scale = copied(np.broadcast_to(scale, result.shape))
    return (result, scale) if returned else result


def _weights_like(a: Tracer, w: Tracer, axis: Any) -> Tracer:
    if w.shape == a.shape:
        return w
    if axis is None:
        raise TypeError(at_place("axis= must be given when the shapes of a and weights differ"))
    axes = reduced_axes(axis, a.ndim)
    if w.shape != tuple(a.shape[k] for k in axes):
        raise ValueError(
            at_place(f"weights of shape {w.shape} do not fit axis={axis} of {a.shape}")
        )
    return np.broadcast_to(
        reshape_value(w, [a.shape[k] if k in axes else 1 for k in range(a.ndim)]), a.shape
    )


@implements(np.var)
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Tracer:
    a = lift(a)
    ddof = correction if given(correction) else ddof
    x = astype(a, _float_dtype(a, dtype))
    centred = x - (mean if given(mean) else np.mean(x, axis, keepdims=True, where=where))
    squares = sum_(centred * centred, axis, keepdims=keepdims, where=where)
    freedom = _how_many(a, axis, keepdims, where, squares.dtype) - ddof
    at_least_zero = np.maximum(freedom, 0) if isinstance(freedom, Tracer) else max(freedom, 0)
    return finish(squares / at_least_zero, out)


@implements(np.std)
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    **options: Any,
) -> Tracer:
    return finish(safe_sqrt(var(a, axis, dtype, None, ddof, keepdims, **options)), out)


# --- extrema -----------------------------------------------------------------------------------


def _extremum(op: int, ufunc: Any, a: Any, axis: Any, keepdims: Any, initial: Any) -> Tracer:
    x = lift(a)
    axes = reduced_axes(axis, x.ndim)
    if _count(x.shape, axes) == 0 and axes:
        return _of_nothing(x, axes, keepdims, initial, ufunc)
    result = _reduce(op, x, axes, keepdims)
    return ufunc(result, astype(initial, x.dtype)) if given(initial) else result


def _of_nothing(x: Tracer, axes: Sequence[int], keepdims: Any, initial: Any, ufunc: Any) -> Tracer:
    shape = tuple(d for k, d in enumerate(x.shape) if k not in axes)
    if not given(initial) and math.prod(shape):
        raise ValueError(
            at_place(
                f"zero-size array to reduction operation {ufunc.__name__} which has no identity"
            )
        )
    number = np.asarray(initial if given(initial) else 0, x.dtype)[()]
    return _keep(
        fresh(current().builder.broadcast_to(value(number), shape)), x.shape, axes, keepdims
    )


def _under(where: Any, a: Any, initial: Any, name: str) -> Any:
    """``a`` with ``initial`` where it is not to be looked at."""
    if where is True or where is np._NoValue:
        return a
    if not given(initial):
        raise ValueError(
            at_place(f"reduction operation {name} with where= needs initial=, a least result")
        )
    return _masked(*broadcast(a, where), astype(initial, lift(a).dtype))


@implements(np.max, np.amax)
def max_(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Tracer:
    a = _under(where, a, initial, "max")
    return finish(_extremum(Op.REDUCE_MAX, np.maximum, a, axis, keepdims, initial), out)


@implements(np.min, np.amin)
def min_(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Tracer:
    a = _under(where, a, initial, "min")
    return finish(_extremum(Op.REDUCE_MIN, np.minimum, a, axis, keepdims, initial), out)


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Tracer:
    return finish(max_(a, axis, keepdims=keepdims) - min_(a, axis, keepdims=keepdims), out)


def _truth(op: int, of_nothing: bool, a: Any, axis: Any, keepdims: Any, where: Any) -> Tracer:
    x = _masked(astype(a, bool), where, of_nothing)
    axes = reduced_axes(axis, x.ndim)
    if _count(x.shape, axes) == 0 and axes:
        return _of_nothing(x, axes, keepdims, of_nothing, np.maximum)
    return _reduce(op, x, axes, keepdims)


@implements(np.any)
def any_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Tracer:
    return finish(_truth(Op.REDUCE_MAX, False, a, axis, keepdims, where), out)


@implements(np.all)
def all_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Tracer:
    return finish(_truth(Op.REDUCE_MIN, True, a, axis, keepdims, where), out)


def _position(op: int, a: Any, axis: Any, out: Any, keepdims: Any) -> Tracer:
    a = lift(a)
    x = reshape_value(a, (a.size,)) if axis is None or not a.shape else a
    k = 0 if axis is None else axis_of(axis, x.ndim)
    if not x.shape[k]:
        raise ValueError(
            at_place("attempt to get the position of an extremum of an empty sequence")
        )
    result = apply(op, x, attrs=(k,))
    return finish(_keep(result, a.shape, reduced_axes(axis, a.ndim), keepdims), out)


@implements(np.argmax)
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Tracer:
    return _position(Op.ARGMAX, a, axis, out, keepdims)


@implements(np.argmin)
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Tracer:
    return _position(Op.ARGMIN, a, axis, out, keepdims)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tracer:
    return sum_(astype(a, bool), axis, keepdims=keepdims)


# --- without NaN -------------------------------------------------------------------------------


@implements(np.nansum)
def nansum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> Tracer:
    return sum_(np.where(np.isnan(a), 0, a), axis, dtype, out, keepdims)


@implements(np.nanmean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> Tracer:
    if not lift(a).type.is_float:
        return mean(a, axis, dtype, out, keepdims)
    return mean(
        np.where(np.isnan(a), 0, a), axis, dtype, out, keepdims, where=np.logical_not(np.isnan(a))
    )
