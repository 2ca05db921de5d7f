"""Functions of Python applied to parts of an array, and windows that move over it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import Array, called, copied, is_traced, matched, reshaped, sliding, traced
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
    parts = [traced(called(func1d, rest[i], *args, **kwargs)) for i in product(*map(range, lead))]
    shape = parts[0].shape
    together = reshaped(np.stack(parts), (*lead, *shape))
    places = range(len(lead), len(lead) + len(shape))
    return np.moveaxis(copied(together), tuple(places), tuple(range(k, k + len(shape))))


def vectorized(function: np.vectorize, *args: Any, **options: Any) -> Any:
    """``np.vectorize(f)(...)``: f is called on every element."""
    reject(function.signature is not None, "np.vectorize with signature=")
    xs = matched(*map(traced, args))
    shape = xs[0].shape
    _few(int(np.prod(shape)), "np.vectorize")
    results = [
        called(function.pyfunc, *[x[i] for x in xs], **options) for i in product(*map(range, shape))
    ]
    if isinstance(results[0], tuple):
        return tuple(reshaped(np.stack(column), shape) for column in zip(*results, strict=True))
    return reshaped(np.stack(results), shape)


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """``np.ndenumerate``: every index with its element."""
    if not is_traced(arr):
        return iter(np.ndenumerate(arr))
    return ((i, arr[i]) for i in product(*map(range, arr.shape)))


put(np.vectorize, vectorized)
put(np.ndenumerate, ndenumerate)
always(np.ndenumerate)
