"""Sorting, and what follows from the sorted order: medians and quantiles.

Derivatives go through the gather that puts elements in order; the order itself is found by
comparisons that no derivative passes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.axes import axes_of, axis_of
from ckad.trace.dispatch import implements, reject
from ckad.trace.numpy.table import take_along_axis
from ckad.trace.primitives.join import stack
from ckad.trace.primitives.reduce import any_, mean
from ckad.trace.primitives.shape import copied, expand_dims, moveaxis
from ckad.trace.values.apply import astype, broadcast_to, finish, reshape_value
from ckad.trace.values.tracer import Tracer, fresh, known, lift, value

# --- argsort -----------------------------------------------------------------------------------


@implements(np.argsort, contiguous=True)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None):
    """Equal elements keep their order, as with ``kind="stable"``."""
    reject(order is not None, "np.argsort with order=")
    x, k = _flat_unless(lift(a), axis if lift(a).shape else None)
    numbers = known(x)
    if numbers is not None:
        return lift(np.argsort(numbers, k, kind="stable"))
    return copied(moveaxis(_order(moveaxis(x, k, -1)), -1, k))


def _flat_unless(x: Tracer, axis: Any) -> tuple[Tracer, int]:
    if axis is None:
        return reshape_value(x, (x.size,)), 0
    return x, axis_of(axis, x.ndim)


def _order(x: Tracer) -> Tracer:
    """The positions that sort the last axis: Batcher's bitonic merge sort, all runs ascending.

    K. E. Batcher, Sorting networks and their applications, AFIPS 32 (1968), pp. 307-314.
    """
    n = x.shape[-1]
    places = broadcast_to(lift(np.arange(n)), x.shape)
    width = 1 << max(n - 1, 0).bit_length()
    keys, places = _filled_up(x, places, width)
    block = 2
    while block <= width:
        keys, places = _exchanged(keys, places, block, mirrored=True)
        step = block // 2
        while step > 1:
            keys, places = _exchanged(keys, places, step, mirrored=False)
            step //= 2
        block *= 2
    return places[..., :n]


def _filled_up(x: Tracer, places: Tracer, width: int) -> tuple[Tracer, Tracer]:
    """Elements that come last, to a power of two."""
    *lead, n = x.shape
    if n == width:
        return x, places
    last = np.nan if x.type.is_float else np.iinfo(np.int64).max if x.dtype != bool else True
    more = (*lead, width - n)
    keys = np.concatenate([x, np.full(more, last, x.dtype)], -1)
    return keys, np.concatenate([places, np.broadcast_to(np.arange(n, width), more)], -1)


def _exchanged(keys: Tracer, places: Tracer, block: int, mirrored: bool) -> tuple[Tracer, Tracer]:
    """Each block's two halves compared element by element, the smaller ones put first."""
    shape = keys.shape
    split = (*shape[:-1], shape[-1] // block, 2, block // 2)
    turn = slice(None, None, -1 if mirrored else None)
    (key, other_key), (place, other) = (
        (halves[..., 0, :], halves[..., 1, turn])
        for halves in (reshape_value(keys, split), reshape_value(places, split))
    )
    swap = _comes_before(other_key, other, key, place)
    return tuple(  # type: ignore[return-value]
        reshape_value(stack([np.where(swap, b, a), np.where(swap, a, b)[..., turn]], -2), shape)
        for a, b in ((key, other_key), (place, other))
    )


def _comes_before(key: Tracer, place: Tracer, other_key: Tracer, other: Tracer) -> Tracer:
    """By key, NaN last, then by place."""
    before, same = key < other_key, np.equal(key, other_key)
    if key.type.is_float:
        nan, other_nan = np.isnan(key), np.isnan(other_key)
        before = before | (other_nan & ~nan)
        same = same | (nan & other_nan)
    return before | (same & (place < other))


# --- sorted arrays -----------------------------------------------------------------------------


@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None):
    reject(order is not None, "np.sort with order=")
    x, k = _flat_unless(lift(a), axis)
    return copied(take_along_axis(x, argsort(x, k), k))


@implements(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Tracer:
    """A sorted array is partitioned at every place."""
    reject(order is not None, "np.partition with order=")
    return sort(a, axis)


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Tracer:
    reject(order is not None, "np.argpartition with order=")
    return argsort(a, axis)


# --- medians and quantiles ---------------------------------------------------------------------


def _sorted_last(a: Any, axis: Any) -> tuple[Tracer, tuple[int, ...]]:
    """The axes of ``axis`` as one last axis, in order; and which axes these were."""
    x = lift(a)
    axes = axes_of(axis, x.ndim)
    kept = [d for k, d in enumerate(x.shape) if k not in axes]
    last = moveaxis(x, axes, range(-len(axes), 0)) if axes else x
    flat = reshape_value(last, (*kept, math.prod(x.shape[k] for k in axes)))
    return sort(astype(flat, flat.dtype if flat.type.is_float else np.float64)), axes


def _finished(result: Tracer, x: Any, axes: tuple[int, ...], keepdims: Any, out: Any) -> Tracer:
    return finish(expand_dims(result, axes) if keepdims is True else _as_scalar(result), out)


def _as_scalar(x: Tracer) -> Tracer:
    return x if x.shape else fresh(value(x))


def _nan_if_any(result: Tracer, x: Tracer) -> Tracer:
    return np.where(any_(np.isnan(x), -1), np.nan, result)


@implements(np.median)
def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Tracer:
    x, axes = _sorted_last(a, axis)
    n = x.shape[-1]
    middle = mean(x[..., (n - 1) // 2 : n // 2 + 1], -1)
    return _finished(_nan_if_any(middle, x), a, axes, keepdims, out)


@implements(np.quantile)
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
) -> Tracer:
    reject(method != "linear", f"np.quantile with method={method!r}")
    x, axes = _sorted_last(a, axis)
    if not x.shape[-1] or lift(a).dtype == bool:
        raise TypeError(at_place("np.quantile needs numbers that are not truth values"))
    # a Python number as q leaves the dtype of a as it is
    dtype = x.dtype if type(q) in (int, float) else np.promote_types(x.dtype, np.float64)
    at = _checked(q)
    parts = [_between(x, p, dtype) for p in reshape_value(at, (at.size,))]
    if keepdims is True:
        parts = [expand_dims(p, axes) for p in parts]
    together = stack(parts)
    return finish(_as_scalar(reshape_value(together, (*at.shape, *together.shape[1:]))), out)


def _checked(q: Any) -> Tracer:
    numbers = known(q)
    if numbers is not None and not np.all((numbers >= 0) & (numbers <= 1)):
        raise ValueError(at_place("quantiles must be in the range [0, 1]"))
    return astype(q, np.float64)


def _between(x: Tracer, q: Tracer, dtype: Any) -> Tracer:
    """The quantile of the sorted last axis: between its neighbours, as NumPy rounds it."""
    place = q * (x.shape[-1] - 1)
    low = np.clip(np.floor(place), 0, max(x.shape[-1] - 2, 0))
    first = astype(low, np.int64)
    below, above = x[..., first], x[..., np.minimum(first + 1, x.shape[-1] - 1)]
    share, gap = astype(place - low, dtype), above - below
    between = np.where(share < 0.5, below + gap * share, above - gap * (1 - share))
    return astype(_nan_if_any(between, x), dtype)


@implements(np.percentile)
def percentile(a: Any, q: Any, *args: Any, **options: Any) -> Tracer:
    share = q / 100 if type(q) in (int, float) else np.true_divide(lift(q), 100.0)
    return quantile(a, share, *args, **options)
