"""SciPy's filters, convolutions, integrals of samples and linear solves; loaded when needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Literal

import numpy as np
import scipy.integrate
import scipy.ndimage
import scipy.signal

from ckad.place import at_place
from ckad.trace.arrays import Array, copied, known, stored, traced
from ckad.trace.axes import along, axis_of
from ckad.trace.dispatch import implements, reject
from ckad.trace.numpy.calculus import trapezoid

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
#: Kernels of more elements are refused: each is a row of the tape.
MOST_TAPS = 1024


# --- sums of shifted arrays --------------------------------------------------------------------


def _taps(x: Array, weights: Any, shape: Sequence[int]) -> Array:
    """The sum over j of ``weights[j] * x[j : j + shape]``."""
    w = traced(weights)
    reject(w.size > MOST_TAPS, f"a kernel of {w.size} elements, more than {MOST_TAPS}")
    numbers = known(w)
    total: Any = None
    for j in product(*map(range, w.shape)):
        if numbers is not None and numbers[j] == 0:
            continue
        part = x[tuple(slice(k, k + n) for k, n in zip(j, shape, strict=True))]
        term = part * (w[j] if numbers is None else numbers[j])
        total = term if total is None else total + term
    return np.zeros(tuple(shape), x.dtype, like=x) if total is None else total


def _reversed(w: Array) -> Array:
    return w[(slice(None, None, -1),) * w.ndim]


def _padded(x: Array, widths: Any, mode: str, cval: Any) -> Array:
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
        w = _reversed(w)
        origins = [-o - (n % 2 == 0) for o, n in zip(origins, w.shape, strict=True)]
    before = [n // 2 + o for n, o in zip(w.shape, origins, strict=True)]
    widths = [(b, n - 1 - b) for b, n in zip(before, w.shape, strict=True)]
    return stored(_taps(_padded(x, widths, mode, cval), w, x.shape), output)


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
        return _filtered(x, on_axis, output, mode, cval, origins, flip=False)

    return filtered


correlate1d = _filter_on_axis(scipy.ndimage.correlate1d, flip=False)
_filter_on_axis(scipy.ndimage.convolve1d, flip=True)


@implements(scipy.ndimage.laplace)
def laplace(input: Any, output: Any = None, mode: str = "reflect", cval: Any = 0.0) -> Array:
    x = traced(input)
    parts = [correlate1d(x, [1.0, -2.0, 1.0], k, None, mode, cval) for k in range(x.ndim)]
    return stored(sum(parts[1:], parts[0]), output)


@implements(scipy.ndimage.uniform_filter)
def uniform_filter(
    input: Any, size: Any = 3, output: Any = None, mode: str = "reflect", cval: Any = 0.0
) -> Array:
    x = traced(input)
    for k, n in enumerate(np.broadcast_to(size, (x.ndim,)).tolist()):
        x = correlate1d(x, np.full(n, 1 / n), k, None, mode, cval)
    return stored(x, output)


@implements(scipy.ndimage.gaussian_filter)
def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
) -> Array:
    reject(np.any(order), "scipy.ndimage.gaussian_filter with order=")
    widths = known(sigma)
    reject(widths is None, "scipy.ndimage.gaussian_filter with a traced sigma")
    assert widths is not None
    x = traced(input)
    for k, s in enumerate(np.broadcast_to(widths, (x.ndim,)).tolist()):
        places = np.arange(-int(truncate * s + 0.5), int(truncate * s + 0.5) + 1)
        weights = np.exp(-0.5 / (s * s) * places**2) if s > 1e-15 else np.ones(1)
        x = correlate1d(x, weights / weights.sum(), k, None, mode, cval)
    return stored(x, output)


# --- scipy.signal ------------------------------------------------------------------------------


def _full(x: Array, w: Array, outside: str = "constant", cval: Any = 0) -> Array:
    widths = [(n - 1, n - 1) for n in w.shape]
    shape = [a + b - 1 for a, b in zip(x.shape, w.shape, strict=True)]
    return _taps(_padded(x, widths, outside, cval), _reversed(w), shape)


def _convolved(x: Any, w: Any, mode: str, outside: str = "constant", cval: Any = 0) -> Array:
    x, w = traced(x), traced(w)
    if x.ndim != w.ndim:
        raise ValueError(at_place(f"arrays of {x.ndim} and {w.ndim} axes cannot be convolved"))
    if mode == "valid" and all(a < b for a, b in zip(x.shape, w.shape, strict=True)):
        x, w = w, x
    swap = mode == "full" and outside == "constant" and w.size > x.size
    full = _full(w, x) if swap else _full(x, w, outside, cval)
    if mode == "full":
        return full
    reject(mode not in ("same", "valid"), f"a convolution with mode={mode!r}")
    pairs = list(zip(x.shape, w.shape, strict=True))
    if mode == "same":
        return copied(full[tuple(slice((m - 1) // 2, (m - 1) // 2 + n) for n, m in pairs)])
    return copied(full[tuple(slice(m - 1, n) for n, m in pairs)])


@implements(scipy.signal.convolve, scipy.signal.fftconvolve, scipy.signal.oaconvolve)
def signal_convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Array:
    return _convolved(in1, in2, mode)


_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "reflect"}


@implements(scipy.signal.convolve2d)
def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Array:
    return _convolved(in1, in2, mode, _BOUNDARIES[boundary], fillvalue)


# --- scipy.integrate ---------------------------------------------------------------------------

implements(scipy.integrate.trapezoid)(trapezoid)


@implements(scipy.integrate.cumulative_trapezoid)
def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, *, initial: Any = None
) -> Array:
    reject(initial not in (None, 0), "scipy.integrate.cumulative_trapezoid with initial= not 0")
    y = traced(y)
    k = axis_of(axis, y.ndim)
    width = dx if x is None else np.diff(x, axis=0 if np.ndim(x) == 1 else k)
    if x is not None and np.ndim(x) == 1:
        width = width.reshape([-1 if i == k else 1 for i in range(y.ndim)])
    sums = (y[along(k, slice(1, None))] + y[along(k, slice(None, -1))]) / 2.0
    result = np.cumsum(width * sums, k)
    if initial is None:
        return result
    return np.concatenate([np.zeros_like(y[along(k, slice(0, 1))]), result], k)
