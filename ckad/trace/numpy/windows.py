"""Functions of Python applied to parts of an array, and windows that move over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import (
    Array,
    called,
    is_traced,
    reshaped,
    retyped,
    sliding,
    spread,
    taken,
    traced,
)
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import always, implements, put, reject


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
    left = list(x.shape)
    axes = [axis_of(k, x.ndim) for k in axes]
    for n, k in zip(window, axes, strict=True):
        if n < 0 or n > left[k]:
            raise ValueError(at_place("window shape cannot be larger than input array shape"))
        left[k] -= n - 1
    return sliding(x, axes, window)


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """``np.ndenumerate``: every index with its element."""
    if not is_traced(arr):
        return iter(np.ndenumerate(arr))
    return ((i, arr[i]) for i in product(*map(range, arr.shape)))


class Together:
    """``np.broadcast``: the elements of arrays that are spread to one shape, side by side."""

    def __init__(self, *arrays: Any) -> None:
        self.shape = np.broadcast_shapes(*(np.shape(x) for x in arrays))
        self.ndim = self.nd = len(self.shape)
        self.size, self.numiter = prod(self.shape), len(arrays)
        self._arrays = arrays

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        flat = [np.ravel(spread(traced(x), self.shape)) for x in self._arrays]
        return (tuple(x[k] for x in flat) for k in range(self.size))


put(np.broadcast, Together)
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
