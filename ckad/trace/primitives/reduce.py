"""Reductions over axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.trace.arrays import Array
from ckad.trace.axes import along, axis_of, reduced_axes
from ckad.trace.dispatch import given, implements
from ckad.trace.memory.context import current
from ckad.trace.values.apply import apply, astype, broadcast, finish, reshape_value
from ckad.trace.values.tracer import Tracer, fresh, lift, value

Reduce = Callable[..., Tracer]


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


def _masked(x: Tracer, where: Any, neutral: Any) -> Array:
    if where is True or where is np._NoValue:
        return x
    return np.where(where, x, astype(neutral, x.dtype))


def _total(function: Any, reduce: Reduce, combine: Any, neutral: int) -> None:
    @implements(function)
    def total(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
              initial: Any = None, where: Any = True) -> Tracer:  # fmt: skip
        x = _masked(summable(a, dtype, out), where, neutral)
        axes = reduced_axes(axis, x.ndim)
        result = _keep(reduce(x, axes), x.shape, axes, keepdims)
        return finish(combine(result, astype(initial, x.dtype)) if given(initial) else result, out)


def _sum(x: Tracer, axes: Sequence[int]) -> Tracer:
    return apply(Op.SUM, x, attrs=axes) if axes else fresh(value(x))


def _product(x: Tracer, axes: Sequence[int]) -> Tracer:
    if len(axes) == x.ndim > 1:
        return apply(Op.PROD, reshape_value(x, (x.size,)), attrs=(0,))
    product = fresh(value(x))
    for k in reversed(axes):
        product = apply(Op.PROD, product, attrs=(k,))
    return product


_total(np.sum, _sum, operator.add, 0)
_total(np.prod, _product, operator.mul, 1)


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
    if not given(initial) and math.prod(shape) > 0:
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
    x, mask = broadcast(a, where)
    return _masked(x, mask, astype(initial, lift(a).dtype))


def _extremum_of(function: Any, other_name: Any, op: Op, ufunc: Any) -> None:
    @implements(function, other_name)
    def extremum(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
                 initial: Any = None, where: Any = True) -> Tracer:  # fmt: skip
        a = _under(where, a, initial, function.__name__)
        return finish(_extremum(op, ufunc, a, axis, keepdims, initial), out)


_extremum_of(np.max, np.amax, Op.REDUCE_MAX, np.maximum)
_extremum_of(np.min, np.amin, Op.REDUCE_MIN, np.minimum)


def _truth(function: Any, op: Op, of_nothing: bool) -> None:
    @implements(function)
    def truth(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *,
              where: Any = True) -> Tracer:  # fmt: skip
        x = _masked(astype(a, bool), where, of_nothing)
        axes = reduced_axes(axis, x.ndim)
        if _count(x.shape, axes) == 0 and axes:
            return finish(_of_nothing(x, axes, keepdims, of_nothing, np.maximum), out)
        return finish(_reduce(op, x, axes, keepdims), out)


_truth(np.any, Op.REDUCE_MAX, False)
_truth(np.all, Op.REDUCE_MIN, True)


def _position(function: Any, op: Op) -> None:
    @implements(function)
    def position(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Tracer:
        a = lift(a)
        x = reshape_value(a, (a.size,)) if axis is None or not a.shape else a
        k = 0 if axis is None else axis_of(axis, x.ndim)
        if not x.shape[k]:
            raise ValueError(
                at_place("attempt to get the position of an extremum of an empty sequence")
            )
        result = apply(op, x, attrs=(k,))
        return finish(_keep(result, a.shape, reduced_axes(axis, a.ndim), keepdims), out)


_position(np.argmax, Op.ARGMAX)
_position(np.argmin, Op.ARGMIN)


# --- running sums and products ---------------------------------------------------------------


def _flat_unless(a: Any, axis: Any, dtype: Any, out: Any) -> tuple[Tracer, int]:
    x = summable(a, dtype, out)
    if axis is None or not x.shape:
        axis_of(axis or 0, 1)
        return reshape_value(x, (x.size,)), 0
    return x, axis_of(axis, x.ndim)


@implements(np.cumsum)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Tracer:
    x, k = _flat_unless(a, axis, dtype, out)
    return finish(apply(Op.CUMSUM, x, attrs=(k, 0)), out)


@implements(np.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Tracer:
    x, k = _flat_unless(a, axis, dtype, out)
    n = x.shape[k]
    if not x.type.is_float:
        return finish(_doubling_products(x, k), out)
    # p[i] = first[i] + rest[i] p[i - 1], with first = (x0, -0, ...) and rest = (0, x1, x2, ...)
    first, rest = -_only(-x, k, 0, 1 if n else 0), _only(x, k, 1 if n else 0, n)
    return finish(apply(Op.RECURRENCE, rest, first, attrs=(k, 0)), out)


def _doubling_products(x: Tracer, axis: int) -> Tracer:
    """Products of the last 1, 2, 4, ... elements; engines run RECURRENCE on floats only."""
    n, reach, product = x.shape[axis], 1, fresh(value(x))
    while reach < n:
        earlier = product[along(axis, slice(None, n - reach))]
        ones = np.ones_like(product[along(axis, slice(None, reach))])
        product = product * apply(Op.CONCAT, ones, earlier, attrs=(axis,))
        reach *= 2
    return product


def _only(x: Tracer, axis: int, start: int, stop: int) -> Tracer:
    """``x`` in [start, stop) of the axis, zero elsewhere."""
    starts = [start if k == axis else 0 for k in range(x.ndim)]
    part = x.type.with_shape(tuple(stop - start if k == axis else d for k, d in enumerate(x.shape)))
    attrs = (*starts, *[1] * x.ndim)
    return apply(Op.PAD, apply(Op.SLICE, x, attrs=attrs, type=part), attrs=attrs, type=x.type)


def _cumulative(function: Any, running: Reduce, first: int) -> None:
    @implements(function)
    def cumulative(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None,
                   include_initial: bool = False) -> Tracer:  # fmt: skip
        x = reshape_value(x, lift(x).shape or (1,))
        if axis is None and x.ndim != 1:
            raise ValueError(at_place("axis= must be given for arrays that have not one axis"))
        k = 0 if axis is None else axis_of(axis, x.ndim)
        result: Any = running(x, k, dtype)
        if include_initial:
            shape = (*result.shape[:k], 1, *result.shape[k + 1 :])
            start = np.full_like(result, first, shape=shape)
            result = np.concatenate([start, result], k)
        return finish(result, out)


_cumulative(np.cumulative_sum, cumsum, 0)
_cumulative(np.cumulative_prod, cumprod, 1)
