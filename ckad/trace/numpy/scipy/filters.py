"""Filters of ``scipy.ndimage``, and sums of shifted arrays; loaded when needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Literal

import numpy as np
import scipy.fft
import scipy.ndimage

from ckad.place import at_place
from ckad.trace.arrays import Array, copied, known, retyped, routine, stored, traced
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import implements, reject

#: SciPy's names of what lies outside of an array -> NumPy's
_OUTSIDE: dict[str, Literal["constant", "edge", "reflect", "symmetric", "wrap"]] = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}
#: Kernels of more elements are one routine where they have one axis, and else transforms: each
#: element of a smaller one is a row of the tape.
MOST_TAPS, MOST_IN_LINE = 1024, 16


# --- sums of shifted arrays --------------------------------------------------------------------


def taps(x: Array, weights: Any, shape: Sequence[int]) -> Array:
    """The sum over j of ``weights[j] * x[j : j + shape]``."""
    w = traced(weights)
    axes = [k for k, n in enumerate(w.shape) if n > 1]
    floats = x.dtype == np.float64 and w.dtype.kind in "fiu" and bool(x.size and w.size)
    if len(axes) == 1 and w.size > MOST_IN_LINE and floats:
        return _in_line(x, w, axes[0], shape)
    if w.size > MOST_TAPS:
        return _correlated(x, w, shape)
    numbers = known(w)
    total: Any = None
    for j in product(*map(range, w.shape)):
        if numbers is not None and numbers[j] == 0:
            continue
        part = x[tuple(slice(k, k + n) for k, n in zip(j, shape, strict=True))]
        term = part * (w[j] if numbers is None else numbers[j])
        total = term if total is None else total + term
    return np.zeros(tuple(shape), x.dtype, like=x) if total is None else total


def _in_line(x: Array, w: Array, axis: int, shape: Sequence[int]) -> Array:
    """By a routine, for weights along one axis."""
    found = np.moveaxis(x[tuple(slice(n) for n in _cut(x, shape, axis))], axis, -1)
    rows = np.reshape(found, (-1, x.shape[axis]))
    sums = routine("lagged", np.reshape(w, -1) * 1.0, rows, attrs=(1, 0))
    sums = np.reshape(sums, (*found.shape[:-1], -1))[..., : shape[axis]]
    return np.moveaxis(sums, -1, axis)


def _cut(x: Array, shape: Sequence[int], axis: int) -> list[int]:
    return [x.shape[k] if k == axis else n for k, n in enumerate(shape)]


def _correlated(x: Array, w: Array, shape: Sequence[int]) -> Array:
    """By transforms over the whole array: what goes round lies behind the sums that are wanted."""
    transform, back = transforms(x, w)
    axes = range(x.ndim)
    product = transform(x, x.shape, axes) * np.conj(transform(np.conj(w), x.shape, axes))
    found = back(product, x.shape, axes)[tuple(map(slice, shape))]
    return copied(found.astype(x.dtype) if x.dtype.kind == "f" else found)


def transforms(*arrays: Array) -> tuple[Any, Any]:
    if any(x.dtype.kind == "c" for x in arrays):
        return np.fft.fftn, np.fft.ifftn
    return np.fft.rfftn, np.fft.irfftn


def flipped(w: Array) -> Array:
    return w[(slice(None, None, -1),) * w.ndim]


def padded(x: Array, widths: Any, mode: str, cval: Any) -> Array:
    reject(not isinstance(mode, str), "filters of scipy.ndimage with a mode for each axis")
    if mode not in _OUTSIDE:
        raise RuntimeError(at_place(f"boundary mode not supported: {mode!r}"))
    options: dict[str, Any] = {"constant_values": cval} if _OUTSIDE[mode] == "constant" else {}
    return np.pad(x, widths, _OUTSIDE[mode], **options)


# --- scipy.ndimage -----------------------------------------------------------------------------


def _filtered(
    x: Array, w: Array, output: Any, mode: str, cval: Any, origin: Any, flip: bool
) -> Array:
    reject(x.dtype.kind != "f", "filters of scipy.ndimage on integers, which round")
    if w.ndim != x.ndim:
        raise RuntimeError(at_place(f"a kernel of {w.ndim} axes for an array of {x.ndim}"))
    origins = np.broadcast_to(origin, (x.ndim,)).tolist()
    if flip:
        w = flipped(w)
        origins = [-o - (n % 2 == 0) for o, n in zip(origins, w.shape, strict=True)]
    before = [n // 2 + o for n, o in zip(w.shape, origins, strict=True)]
    widths = [(b, n - 1 - b) for b, n in zip(before, w.shape, strict=True)]
    found = retyped(taps(padded(x, widths, mode, cval), w, x.shape), x.dtype)
    return stored(found, output)


def _filter(function: Any, flip: bool) -> None:
    @implements(function)
    def filtered(input: Any, weights: Any, output: Any = None, mode: str = "reflect",
                 cval: Any = 0.0, origin: Any = 0) -> Array:  # fmt: skip
        return _filtered(traced(input), traced(weights), output, mode, cval, origin, flip)


_filter(scipy.ndimage.correlate, flip=False)
_filter(scipy.ndimage.convolve, flip=True)


def _filter_on_axis(function: Any, flip: bool) -> Callable[..., Array]:
    @implements(function)
    def filtered(input: Any, weights: Any, axis: int = -1, output: Any = None,
                 mode: str = "reflect", cval: Any = 0.0, origin: int = 0) -> Array:  # fmt: skip
        x, w = traced(input), traced(weights)
        if flip:
            w, origin = w[::-1], -origin - (w.size % 2 == 0)
        k = axis_of(axis, x.ndim)
        on_axis = w[tuple(slice(None) if i == k else None for i in range(x.ndim))]
        origins = [origin if i == k else 0 for i in range(x.ndim)]
        outside = mode if isinstance(mode, str) else mode[k]  # of a filter along all axes
        return _filtered(x, on_axis, output, outside, cval, origins, flip=False)

    return filtered


correlate1d = _filter_on_axis(scipy.ndimage.correlate1d, flip=False)
convolve1d = _filter_on_axis(scipy.ndimage.convolve1d, flip=True)
