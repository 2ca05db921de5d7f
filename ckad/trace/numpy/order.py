"""Sorting, and what follows from the sorted order: medians and quantiles.

Derivatives go through the gather that puts elements in order; the order itself is found by
comparisons that no derivative passes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import (
    Array,
    as_number,
    copied,
    flat_unless,
    known,
    reshaped,
    retyped,
    routine,
    spread,
    stored,
    traced,
)
from ckad.trace.axes import axes_of
from ckad.trace.dispatch import COMPLEX, implements, reject
from ckad.trace.numpy.table import take_along_axis

# --- argsort -----------------------------------------------------------------------------------


@implements(np.argsort, contiguous=True)
def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Array:
    """Equal elements keep their order, as with ``kind="stable"``."""
    reject(order is not None, "np.argsort with order=")
    x, k = flat_unless(traced(a), axis if traced(a).shape else None)
    numbers = known(x)
    if numbers is not None:
        return traced(np.argsort(numbers, k, kind="stable"))
    return copied(np.moveaxis(_order(np.moveaxis(x, k, -1)), -1, k))


@implements(np.lexsort, contiguous=True)
def lexsort(keys: Any, axis: Any = -1) -> Array:
    """By the last key; where that is equal, by the one before, and so on."""
    rows = list(keys)
    if not rows:
        raise TypeError(at_place("need sequence of keys with len > 0 in lexsort"))
    first, *others = (np.moveaxis(np.atleast_1d(traced(x)), axis, -1) for x in rows)
    places = argsort(first)
    for key in others:
        places = take_along_axis(places, argsort(take_along_axis(key, places, -1)), -1)
    return copied(np.moveaxis(places, -1, axis))


@implements(np.argsort, kind=COMPLEX)
def argsort_of_complex(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Array:
    """By the real part, then by the imaginary one."""
    reject(order is not None, "np.argsort with order=")
    x, k = flat_unless(traced(a), axis)
    return lexsort((x.imag, x.real), k)


@implements(np.sort, kind=COMPLEX)
def sort_of_complex(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Array:
    x, k = flat_unless(traced(a), axis)
    found: Array = np.take_along_axis(x, argsort_of_complex(x, k), k)
    return found


#: Up to so many elements a network sorts, in registers and for many rows at a time.
_NETWORK = 16


def _order(x: Array) -> Array:
    """The positions that sort the last axis."""
    n = x.shape[-1]
    if n <= _NETWORK or not x.size:
        return _by_network(x, n)
    whole = x.dtype.kind != "f"
    return reshaped(routine("order", np.reshape(x, (-1, n)), attrs=(int(whole),)), x.shape)


def _by_network(x: Array, n: int) -> Array:
    """Batcher's bitonic merge sort, all runs ascending.

    K. E. Batcher, Sorting networks and their applications, AFIPS 32 (1968), pp. 307-314.
    """
    places = spread(traced(np.arange(n)), x.shape)
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


def _filled_up(x: Array, places: Array, width: int) -> tuple[Array, Array]:
    """Elements that come last, to a power of two."""
    *lead, n = x.shape
    if n == width:
        return x, places
    last = np.nan if x.dtype.kind == "f" else np.iinfo(np.int64).max if x.dtype != bool else True
    more = (*lead, width - n)
    keys = np.concatenate([x, np.full(more, last, x.dtype)], -1)
    return keys, np.concatenate([places, np.broadcast_to(np.arange(n, width), more)], -1)


def _exchanged(keys: Array, places: Array, block: int, mirrored: bool) -> tuple[Array, Array]:
    """Each block's two halves compared element by element, the smaller ones put first."""
    shape = keys.shape
    split = (*shape[:-1], shape[-1] // block, 2, block // 2)
    turn = slice(None, None, -1 if mirrored else None)
    (key, other_key), (place, other) = (
        (halves[..., 0, :], halves[..., 1, turn])
        for halves in (reshaped(keys, split), reshaped(places, split))
    )
    swap = _comes_before(other_key, other, key, place)
    return tuple(
        reshaped(np.stack([np.where(swap, b, a), np.where(swap, a, b)[..., turn]], -2), shape)
        for a, b in ((key, other_key), (place, other))
    )


def _comes_before(key: Array, place: Array, other_key: Array, other: Array) -> Array:
    """By key, NaN last, then by place."""
    before, same = key < other_key, np.equal(key, other_key)
    if key.dtype.kind == "f":
        nan, other_nan = np.isnan(key), np.isnan(other_key)
        before = before | (other_nan & ~nan)
        same = same | (nan & other_nan)
    return before | (same & (place < other))


# --- sorted arrays -----------------------------------------------------------------------------


@implements(np.sort)
def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Array:
    reject(order is not None, "np.sort with order=")
    x, k = flat_unless(traced(a), axis)
    return copied(take_along_axis(x, argsort(x, k), k))


@implements(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Array:
    """A sorted array is partitioned at every place."""
    reject(order is not None, "np.partition with order=")
    return sort(a, axis)


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Array:
    reject(order is not None, "np.argpartition with order=")
    return argsort(a, axis)


# --- medians and quantiles ---------------------------------------------------------------------


def _sorted_last(a: Any, axis: Any) -> tuple[Array, tuple[int, ...]]:
    """The axes of ``axis`` as one last axis, in order; and which axes these were."""
    x = traced(a)
    axes = axes_of(axis, x.ndim)
    kept = [d for k, d in enumerate(x.shape) if k not in axes]
    last = np.moveaxis(x, axes, range(-len(axes), 0)) if axes else x
    flat = reshaped(last, (*kept, math.prod(x.shape[k] for k in axes)))
    return sort(retyped(flat, flat.dtype if flat.dtype.kind == "f" else np.float64)), axes


def _finished(result: Array, axes: tuple[int, ...], keepdims: Any, out: Any) -> Array:
    return stored(np.expand_dims(result, axes) if keepdims is True else as_number(result), out)


def _nan_if_any(result: Array, x: Array) -> Array:
    return np.where(np.any(np.isnan(x), -1), np.nan, result)


@implements(np.median)
def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Array:
    x, axes = _sorted_last(a, axis)
    n = x.shape[-1]
    middle = np.mean(x[..., (n - 1) // 2 : n // 2 + 1], -1)
    return _finished(_nan_if_any(middle, x), axes, keepdims, out)


@implements(np.quantile)
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
) -> Array:
    x, axes = _sorted_numbers("np.quantile", a, axis, method)
    if not x.shape[-1]:
        raise TypeError(at_place("np.quantile needs numbers, and there are none"))
    return _quantiles(x, None, q, axes, keepdims, out)


def _sorted_numbers(name: str, a: Any, axis: Any, method: str) -> tuple[Array, tuple[int, ...]]:
    reject(method != "linear", f"{name} with method={method!r}")
    if traced(a).dtype == bool and np.size(a):
        raise TypeError(at_place(f"{name} needs numbers that are not truth values"))
    return _sorted_last(a, axis)


def _quantiles(
    x: Array, present: Any, q: Any, axes: tuple[int, ...], keepdims: Any, out: Any
) -> Array:
    """Those of the sorted last axis, or of its first elements, of which some are ``present``."""
    # a Python number as q leaves the dtype of a as it is
    dtype = x.dtype if type(q) in (int, float) else np.promote_types(x.dtype, np.float64)
    at = _checked(q)
    parts = [_between(x, p, dtype, present) for p in reshaped(at, (at.size,))]
    # those without NaN NumPy puts one beside the other, and turns that
    beside = 0 if present is None else -1
    together = np.moveaxis(np.stack(parts, beside), beside, 0)
    if keepdims is True:
        together = np.expand_dims(together, [k + 1 for k in axes])
    if len(at.shape) != 1:
        together = reshaped(together, (*at.shape, *together.shape[1:]))
    return stored(as_number(together), out)


def _checked(q: Any) -> Array:
    numbers = known(q)
    if numbers is not None and not np.all((numbers >= 0) & (numbers <= 1)):
        raise ValueError(at_place("quantiles must be in the range [0, 1]"))
    return retyped(q, np.float64)


def _between(x: Array, q: Array, dtype: Any, present: Any = None) -> Array:
    """The quantile of the sorted last axis: between its neighbours, as NumPy rounds it."""
    last = np.maximum((x.shape[-1] if present is None else present) - 1, 0)
    place = q * last
    low = np.clip(np.floor(place), 0, np.maximum(last - 1, 0))
    first = retyped(low, np.int64)
    below, above = (_at(x, k) for k in (first, np.minimum(first + 1, last)))
    share, gap = retyped(place - low, dtype), above - below
    between = np.where(share < 0.5, below + gap * share, above - gap * (1 - share))
    return retyped(_nan_if_any(between, x) if present is None else between, dtype)


def _at(x: Array, place: Array) -> Array:
    """The elements at a place of the last axis, or at one in each row."""
    if not place.shape:
        return x[..., place]
    return take_along_axis(x, place[..., None], -1)[..., 0]


@implements(np.percentile)
def percentile(a: Any, q: Any, *args: Any, **options: Any) -> Array:
    return quantile(a, _share(q), *args, **options)


def _share(q: Any) -> Any:
    return q / 100 if type(q) in (int, float) else np.true_divide(traced(q), 100.0)


# --- the same without NaN ------------------------------------------------------------------------


@implements(np.nanmedian)
def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Array:
    x, axes = _sorted_last(a, axis)
    if not x.size:
        return np.nanmean(a, axis, out=out, keepdims=keepdims)
    last = _present(x) - 1
    both = np.stack([np.maximum(last, 0) // 2, np.minimum(last // 2 + last % 2, last)], -1)
    middle = np.mean(take_along_axis(x, np.maximum(both, 0), -1), -1)
    return _finished(middle, axes, keepdims, out)


def _present(x: Array) -> Array:
    """How many elements of a last axis are not NaN: where it is sorted, the first ones."""
    return np.sum(np.logical_not(np.isnan(x)), -1)


@implements(np.nanquantile)
def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
) -> Array:
    x, axes = _sorted_numbers("np.nanquantile", a, axis, method)
    if not x.size:
        return np.nanmean(a, axis, out=out, keepdims=keepdims)
    return _quantiles(x, _present(x), q, axes, keepdims, out)


@implements(np.nanpercentile)
def nanpercentile(a: Any, q: Any, *args: Any, **options: Any) -> Array:
    return nanquantile(a, _share(q), *args, **options)
