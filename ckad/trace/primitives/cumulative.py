"""Cumulative sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.trace.axes import along, axis_of
from ckad.trace.dispatch import implements
from ckad.trace.primitives.reduce import summable
from ckad.trace.values.apply import apply, finish, reshape_value
from ckad.trace.values.tracer import Tracer, fresh, lift, value


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
    # p[i] = first[i] + rest[i] p[i - 1], with first = (x0, 0, ...) and rest = (0, x1, x2, ...)
    first, rest = _only(x, k, 0, 1 if n else 0), _only(x, k, 1 if n else 0, n)
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


@implements(np.cumulative_sum)
def cumulative_sum(
    x: Any,
    /,
    *,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Tracer:
    return _from_one_axis(cumsum, 0, x, axis, dtype, out, include_initial)


@implements(np.cumulative_prod)
def cumulative_prod(
    x: Any,
    /,
    *,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Tracer:
    return _from_one_axis(cumprod, 1, x, axis, dtype, out, include_initial)


def _from_one_axis(
    function: Any, first: int, x: Any, axis: Any, dtype: Any, out: Any, include_initial: bool
) -> Tracer:
    x = reshape_value(x, lift(x).shape or (1,))
    if axis is None and x.ndim != 1:
        raise ValueError(at_place("axis= must be given for arrays that have not one axis"))
    k = 0 if axis is None else axis_of(axis, x.ndim)
    result = function(x, k, dtype)
    if include_initial:
        shape = (*result.shape[:k], 1, *result.shape[k + 1 :])
        start = np.full_like(result, first, shape=shape)
        result = np.concatenate([start, result], k)
    return finish(result, out)
