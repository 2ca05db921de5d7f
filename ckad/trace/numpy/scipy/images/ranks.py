"""SciPy's filters that order the elements of windows: medians, extrema; loaded when needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.ndimage

from ckad.place import at_place
from ckad.trace.arrays import Array, sliding, stored, traced
from ckad.trace.dispatch import implements, reject
from ckad.trace.numpy.scipy.filters import padded


def all_windows(x: Array, size: Sequence[int]) -> Array:
    """The windows of these lengths in what has been padded, each as one last axis."""
    x = sliding(x, range(len(size)), size)
    return np.reshape(x, (*x.shape[: len(size)], -1))


def _in_windows(x: Array, there: Any, added: Any, mode: str, cval: Any, origin: Any) -> Array:
    """Those elements of each window that are ``there``, along a last axis, with what is added to
    them."""
    reject(x.dtype.kind != "f", "filters of scipy.ndimage on integers")
    if there.ndim != x.ndim:
        raise RuntimeError(at_place(f"a window of {there.ndim} axes for an array of {x.ndim}"))
    origins = np.broadcast_to(origin, (x.ndim,)).tolist()
    before = [n // 2 + o for n, o in zip(there.shape, origins, strict=True)]
    widths = [(b, n - 1 - b) for b, n in zip(before, there.shape, strict=True)]
    windows = all_windows(padded(x, widths, mode, cval), there.shape)
    places = np.flatnonzero(there)
    if len(places) < windows.shape[-1]:
        windows = windows[..., places]
    return windows if added is None else windows + np.reshape(added, -1)[places]


def extreme(
    x: Array, there: Any, added: Any, mode: str, cval: Any, origin: Any, largest: bool
) -> Array:
    """The largest or smallest sum of an element of each window and what is added to it."""
    return (np.max if largest else np.min)(
        _in_windows(x, there, added, mode, cval, origin), axis=-1
    )


def _filtered(
    input: Any, ranks: Any, size: Any, footprint: Any, output: Any, mode: str, cval: Any,
    origin: Any,
) -> Array:  # fmt: skip
    """``ranks``: from the number of elements in a window to the place of one in their order."""
    x = traced(input)
    if footprint is None and size is None:
        raise RuntimeError(at_place("no footprint or filter size provided"))
    there = np.ones(np.broadcast_to(size, (x.ndim,))) if footprint is None else footprint
    windows = _in_windows(x, np.asarray(there, bool), None, mode, cval, origin)
    n = windows.shape[-1]
    rank = ranks(n)
    if rank in (0, n - 1):
        return stored((np.max if rank else np.min)(windows, axis=-1), output)
    return stored(np.sort(windows, axis=-1)[..., rank], output)


def _filter(function: Any, ranks: Any) -> None:
    @implements(function)
    def filtered(
        input: Any, size: Any = None, footprint: Any = None, output: Any = None,
        mode: str = "reflect", cval: Any = 0.0, origin: Any = 0,
    ) -> Array:  # fmt: skip
        return _filtered(input, ranks, size, footprint, output, mode, cval, origin)


_filter(scipy.ndimage.median_filter, lambda n: n // 2)
_filter(scipy.ndimage.minimum_filter, lambda n: 0)
_filter(scipy.ndimage.maximum_filter, lambda n: n - 1)


@implements(scipy.ndimage.rank_filter)
def rank_filter(
    input: Any, rank: int, size: Any = None, footprint: Any = None, output: Any = None,
    mode: str = "reflect", cval: Any = 0.0, origin: Any = 0,
) -> Array:  # fmt: skip
    def at(n: int) -> int:
        if not -n <= rank < n:
            raise RuntimeError(
                at_place(f"rank {rank} of {n} elements: not within filter footprint")
            )
        return rank % n

    return _filtered(input, at, size, footprint, output, mode, cval, origin)


@implements(scipy.ndimage.percentile_filter)
def percentile_filter(
    input: Any, percentile: float, size: Any = None, footprint: Any = None, output: Any = None,
    mode: str = "reflect", cval: Any = 0.0, origin: Any = 0,
) -> Array:  # fmt: skip
    share = percentile + 100.0 if percentile < 0 else percentile
    if not 0 <= share <= 100:
        raise RuntimeError(at_place(f"invalid percentile: {percentile}"))

    def at(n: int) -> int:
        return n - 1 if share == 100.0 else int(n * share / 100.0)

    return _filtered(input, at, size, footprint, output, mode, cval, origin)
