"""Functions of Python applied to parts of an array, and windows that move over it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import called
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import always, implements, put, reject
from ckad.trace.memory.views import SlidingView
from ckad.trace.primitives.join import stack
from ckad.trace.primitives.shape import copied, moveaxis, view
from ckad.trace.values.apply import broadcast, reshape_value
from ckad.trace.values.tracer import Tracer, lift

#: So many calls of a Python function are recorded at most.
MOST_CALLS = 4096


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Tracer:
    reject(writeable, "np.lib.stride_tricks.sliding_window_view with writeable=True")
    x = lift(x)
    window = (window_shape,) if np.ndim(window_shape) == 0 else tuple(window_shape)
    axes = range(x.ndim) if axis is None else (axis,) if np.ndim(axis) == 0 else axis
    if len(window) != len(axes):
        raise ValueError(at_place(f"{len(window)} window lengths for {len(axes)} axes"))
    for n, k in zip(window, [axis_of(k, x.ndim) for k in axes], strict=True):
        if n < 0 or n > x.shape[k]:
            raise ValueError(at_place("window shape cannot be larger than input array shape"))
        x = view(x, SlidingView(k, n))
    return x


def _few(count: int, what: str) -> None:
    reject(count > MOST_CALLS, f"{what} with {count} calls, more than {MOST_CALLS}: use a loop")


@implements(np.apply_along_axis)
def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Tracer:
    x = lift(arr)
    k = axis_of(axis, x.ndim)
    rest = moveaxis(x, k, -1)
    lead = rest.shape[:-1]
    _few(int(np.prod(lead)), "np.apply_along_axis")
    parts = [lift(called(func1d, rest[i], *args, **kwargs)) for i in product(*map(range, lead))]
    shape = parts[0].shape
    together = reshape_value(stack(parts), (*lead, *shape))
    places = range(len(lead), len(lead) + len(shape))
    return moveaxis(copied(together), tuple(places), tuple(range(k, k + len(shape))))


def vectorized(function: np.vectorize, *args: Any, **options: Any) -> Any:
    """``np.vectorize(f)(...)``: f is called on every element."""
    reject(function.signature is not None, "np.vectorize with signature=")
    xs = broadcast(*map(lift, args))
    shape = xs[0].shape
    _few(int(np.prod(shape)), "np.vectorize")
    results = [
        called(function.pyfunc, *[x[i] for x in xs], **options) for i in product(*map(range, shape))
    ]
    if isinstance(results[0], tuple):
        return tuple(reshape_value(stack(column), shape) for column in zip(*results, strict=True))
    return reshape_value(stack(results), shape)


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """``np.ndenumerate``: every index with its element."""
    if not isinstance(arr, Tracer):
        return iter(np.ndenumerate(arr))
    return ((i, arr[i]) for i in product(*map(range, arr.shape)))


put(np.vectorize, vectorized)
put(np.ndenumerate, ndenumerate)
always(np.ndenumerate)
