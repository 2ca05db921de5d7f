"""Lines of ``scipy.signal`` at other rates, and medians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.ndimage
import scipy.signal

from ckad.place import at_place
from ckad.trace.arrays import Array, copied, reshaped, retyped, routine, sliding, traced
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import STATIC, implements, reject
from ckad.trace.numpy.scipy.signals import sosfiltfilt

# --- lines at another rate -----------------------------------------------------------------------


@implements(scipy.signal.upfirdn, kind=STATIC)
def upfirdn(
    h: Any, x: Any, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant",
    cval: float = 0,
) -> Array:  # fmt: skip
    """Zeros between the numbers, a filter, and some of its results."""
    reject(mode != "constant" or cval != 0, f"scipy.signal.upfirdn with {mode=}, {cval=}")
    taps, line = traced(h), np.moveaxis(traced(x), axis_of(axis, np.ndim(x)), -1)
    reject(taps.dtype.kind == "c" or line.dtype.kind == "c", "scipy.signal.upfirdn, complex")
    dtype = np.result_type(np.float32, taps.dtype, line.dtype)
    apart = np.pad(line[..., None], [(0, 0)] * line.ndim + [(0, up - 1)])
    rows = np.reshape(apart, (-1, line.shape[-1] * up))[:, : (line.shape[-1] - 1) * up + 1]
    found = routine("lagged", taps * 1.0, rows * 1.0, attrs=(0, 0))[:, ::down]
    found = reshaped(retyped(found, dtype), (*line.shape[:-1], found.shape[1]))
    return np.moveaxis(found, -1, axis)


@implements(scipy.signal.resample_poly, kind=STATIC)
def resample_poly(
    x: Any, up: int, down: int, axis: int = 0, window: Any = ("kaiser", 5.0),
    padtype: str = "constant", cval: Any = None,
) -> Array:  # fmt: skip
    """By a filter of finite length, as SciPy designs it."""
    reject(padtype != "constant" or cval, f"scipy.signal.resample_poly with {padtype=}, {cval=}")
    common = math.gcd(up, down)
    up, down, line = up // common, down // common, traced(x)
    if up == down == 1:
        return copied(line)
    n = line.shape[axis]
    length = -(-n * up // down)
    if isinstance(window, (str, tuple)):
        rate = max(up, down)
        taps = scipy.signal.firwin(20 * rate + 1, 1 / rate, window=window)
    else:
        taps = np.asarray(window)
    half = (taps.size - 1) // 2
    before = down - half % down
    first = (half + before) // down
    after = 0
    while ((n - 1) * up + taps.size + before + after - 1) // down + 1 < length + first:
        after += 1
    taps = np.pad(taps * up, (before, after)).astype(np.result_type(np.float32, line.dtype))
    found = upfirdn(taps, line, up, down, axis)
    return copied(np.moveaxis(np.moveaxis(found, axis, -1)[..., first : first + length], -1, axis))


@implements(scipy.signal.decimate, kind=STATIC)
def decimate(
    x: Any, q: int, n: Any = None, ftype: Any = "iir", axis: int = -1, zero_phase: bool = True
) -> Array:
    reject(not zero_phase or ftype not in ("iir", "fir"),
           f"scipy.signal.decimate with {ftype=}, {zero_phase=}")  # fmt: skip
    if ftype == "fir":
        taps = scipy.signal.firwin((20 * q if n is None else n) + 1, 1 / q, window="hamming")
        return resample_poly(x, 1, q, axis, taps)
    sections = scipy.signal.cheby1(8 if n is None else n, 0.05, 0.8 / q, output="sos")
    found = np.moveaxis(sosfiltfilt(sections, traced(x), axis), axis, -1)[..., ::q]
    dtype = np.result_type(np.float32, traced(x).dtype)
    return copied(np.moveaxis(retyped(found, dtype), -1, axis))


# --- medians -------------------------------------------------------------------------------------


def _medians(x: Array, size: Any) -> Array:
    """Of windows of odd lengths around each element of what has been padded."""
    for axis, n in enumerate(size):
        x = sliding(x, axis, n)
    return np.median(np.reshape(x, (*x.shape[: len(size)], -1)), -1)


def _sizes(name: str, size: Any, n_axes: int) -> list[int]:
    found: list[int] = np.broadcast_to(size, (n_axes,)).tolist()
    if not all(n % 2 for n in found):
        raise ValueError(at_place(f"{name}: windows of {found}; each length has to be odd"))
    return found


@implements(scipy.signal.medfilt, kind=STATIC)
def medfilt(volume: Any, kernel_size: Any = None) -> Array:
    x = traced(volume)
    sizes = _sizes("medfilt", 3 if kernel_size is None else kernel_size, x.ndim)
    return _medians(np.pad(x, [(n // 2, n // 2) for n in sizes]), sizes)
