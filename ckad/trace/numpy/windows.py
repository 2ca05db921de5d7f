"""Functions of Python applied to parts of an array, and windows that move over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace import filled
from ckad.trace.arrays import (
    Array,
    called,
    copied,
    is_traced,
    matched,
    reshaped,
    retyped,
    sliding,
    spread,
    taken,
    traced,
)
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import always, implements, put, reject

#: So many calls of a Python function are recorded at most.
MOST_CALLS = 4096


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Array:
    reject(writeable, "np.lib.stride_tricks.sliding_window_view with writeable=True")
    x = traced(x)
    window = (window_shape,) if np.ndim(window_shape) == 0 else tuple(window_shape)
    axes = range(x.ndim) if axis is None else (axis,) if np.ndim(axis) == 0 else axis
    if len(window) != len(axes):
        raise ValueError(at_place(f"{len(window)} window lengths for {len(axes)} axes"))
    for n, k in zip(window, [axis_of(k, x.ndim) for k in axes], strict=True):
        if n < 0 or n > x.shape[k]:
            raise ValueError(at_place("window shape cannot be larger than input array shape"))
        x = sliding(x, k, n)
    return x


def _few(count: int, what: str) -> None:
    reject(count > MOST_CALLS, f"{what} with {count} calls, more than {MOST_CALLS}: use a loop")


@implements(np.apply_along_axis)
def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Array:
    x = traced(arr)
    k = axis_of(axis, x.ndim)
    rest = np.moveaxis(x, k, -1)
    lead = rest.shape[:-1]
    _few(int(np.prod(lead)), "np.apply_along_axis")
    lines = reshaped(rest, (int(np.prod(lead)), x.shape[k]))
    first = traced(called(func1d, lines[0], *args, **kwargs))
    shape = first.shape
    together = np.zeros((lines.shape[0], *shape), dtype=first.dtype, like=first)
    together[0] = first
    together = called(filled.rows, func1d, together, lines, args, kwargs)
    places = range(len(lead), len(lead) + len(shape))
    whole = reshaped(together, (*lead, *shape))
    return np.moveaxis(copied(whole), tuple(places), tuple(range(k, k + len(shape))))


def vectorized(function: np.vectorize, *args: Any, **options: Any) -> Any:
    """``np.vectorize(f)(...)``: f is called on every element, and before on the first, as there."""
    reject(function.signature is not None, "np.vectorize with signature=")
    xs = matched(*map(traced, args))
    shape = xs[0].shape
    count = int(np.prod(shape))
    columns = [reshaped(x, (count,)) for x in xs]
    first = called(function.pyfunc, *[x[0] for x in columns], **options)
    if not isinstance(first, tuple):
        one = traced(first)
        dtype = np.dtype(function.otypes[0]) if function.otypes else one.dtype
        out = np.zeros(count, dtype=dtype, like=one)
        return reshaped(called(filled.elements, function.pyfunc, out, columns, options), shape)
    _few(count, "np.vectorize")
    later = [called(function.pyfunc, *[x[i] for x in columns], **options) for i in range(count)]
    return tuple(reshaped(np.stack(column), shape) for column in zip(*later, strict=True))


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """``np.ndenumerate``: every index with its element."""
    if not is_traced(arr):
        return iter(np.ndenumerate(arr))
    return ((i, arr[i]) for i in product(*map(range, arr.shape)))


put(np.vectorize, vectorized)
put(np.ndenumerate, ndenumerate)
always(np.ndenumerate)


@implements(np.fromfunction)
def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, **options: Any
) -> Any:
    result = called(function, *traced(np.indices(shape, dtype)), **options)
    return traced(result) if isinstance(result, np.ndarray) else result


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    points = traced(x)
    conditions = _conditions(points, condlist)
    if len(funclist) == len(conditions) + 1:
        rest = np.logical_not(np.logical_or.reduce(np.stack(conditions), axis=0))
        conditions.append(rest)
    if len(funclist) != len(conditions):
        raise ValueError(
            at_place(f"{len(conditions)} conditions need as many functions, or one more")
        )
    result = np.zeros_like(points)
    for condition, function in zip(conditions, funclist, strict=True):
        piece = function
        if callable(function):
            piece = called(function, _where_it_holds(points, condition), *args, **kw)
        result = np.where(condition, retyped(piece, points.dtype), result)
    return result


def _conditions(points: Array, condlist: Any) -> list[Any]:
    if points.ndim and not traced(condlist[0]).shape:
        condlist = [condlist]
    masks = [retyped(c, bool) for c in condlist]
    if any(m.shape != points.shape[: m.ndim] for m in masks):
        raise IndexError(at_place(f"a condition does not fit an array of shape {points.shape}"))
    return [reshaped(m, (*m.shape, *[1] * (points.ndim - m.ndim))) for m in masks]


def _where_it_holds(points: Array, condition: Array) -> Array:
    """The points, those outside of the condition replaced by one inside of it.

    A function may have no finite derivative where it is not meant to be taken.
    """
    if not points.size:
        return points
    inside = taken(
        reshaped(points, (points.size,)),
        np.argmax(spread(condition, points.shape)),
        0,
    )
    return np.where(condition, points, inside)
