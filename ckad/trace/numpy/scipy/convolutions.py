"""Convolutions and medians of ``scipy.signal``, which takes long to load; loaded when needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.fft
import scipy.signal

from ckad.place import at_place
from ckad.trace.arrays import Array, copied, traced
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import STATIC, implements, reject
from ckad.trace.numpy.scipy.filters import flipped, padded, taps, transforms
from ckad.trace.numpy.scipy.images.ranks import all_windows


def _full(x: Array, w: Array, outside: str = "constant", cval: Any = 0) -> Array:
    widths = [(n - 1, n - 1) for n in w.shape]
    shape = [a + b - 1 for a, b in zip(x.shape, w.shape, strict=True)]
    return taps(padded(x, widths, outside, cval), flipped(w), shape)


def _convolved(x: Any, w: Any, mode: str, outside: str = "constant", cval: Any = 0) -> Array:
    x, w, mode = _pair(x, w, mode)
    is_plain = x.ndim == 1 and outside == "constant" and "f" in (x.dtype.kind, w.dtype.kind)
    if is_plain and x.size and w.size and _is_nothing(cval):
        return _part(np.convolve(x, w), x.shape, w.shape, mode)
    swap = mode == "full" and outside == "constant" and w.size > x.size
    full = _full(w, x) if swap else _full(x, w, outside, cval)
    return _part(full, x.shape, w.shape, mode)


def _is_nothing(x: Any) -> bool:
    return isinstance(x, int | float) and x == 0


def _pair(x: Any, w: Any, mode: str) -> tuple[Array, Array, str]:
    """Both arrays; of those that lie in each other the larger one is the first."""
    x, w = traced(x), traced(w)
    if x.ndim != w.ndim:
        raise ValueError(at_place(f"arrays of {x.ndim} and {w.ndim} axes cannot be convolved"))
    reject(mode not in ("full", "same", "valid"), f"a convolution with mode={mode!r}")
    pairs = list(zip(x.shape, w.shape, strict=True))
    if mode == "valid" and not all(a >= b for a, b in pairs):
        if not all(a <= b for a, b in pairs):
            raise ValueError(
                at_place(f"For 'valid' mode, one must be at least as large as the other in every "
                         f"dimension; the shapes are {x.shape} and {w.shape}")
            )  # fmt: skip
        x, w = w, x
    return x, w, mode


def _part(full: Array, shape: Sequence[int], other: Sequence[int], mode: str) -> Array:
    """Of a full convolution what the mode asks for."""
    pairs = list(zip(shape, other, strict=True))
    if mode == "full":
        return full
    if mode == "same":
        return copied(full[tuple(slice((m - 1) // 2, (m - 1) // 2 + n) for n, m in pairs)])
    return copied(full[tuple(slice(m - 1, n) for n, m in pairs)])


def _by_fft(x: Any, w: Any, mode: str, axes: Any = None) -> Array:
    """By transforms; axes that are not among ``axes`` are broadcast."""
    x, w, mode = _pair(x, w, mode) if axes is None else (traced(x), traced(w), mode)
    if not x.ndim:
        return x * w
    over = range(x.ndim) if axes is None else [axis_of(k, x.ndim) for k in np.atleast_1d(axes)]
    lengths = [x.shape[k] + w.shape[k] - 1 for k in over]
    if 0 in x.shape or 0 in w.shape:
        return np.zeros(0)
    transform, back = transforms(x, w)
    fast = [scipy.fft.next_fast_len(n, transform is np.fft.rfftn) for n in lengths]
    product = transform(x * 1.0, fast, over) * transform(w * 1.0, fast, over)
    whole = [slice(None)] * x.ndim
    for k, n in zip(over, lengths, strict=True):
        whole[k] = slice(n)
    full = copied(back(product, fast, over)[tuple(whole)])
    others = [w.shape[k] if k in over else 1 for k in range(x.ndim)]
    return _part(full, [x.shape[k] if k in over else full.shape[k] for k in range(x.ndim)],
                 others, mode)  # fmt: skip


@implements(scipy.signal.fftconvolve, scipy.signal.oaconvolve, kind=STATIC)
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Array:
    return _by_fft(in1, in2, mode, axes)


@implements(scipy.signal.convolve, kind=STATIC)
def signal_convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Array:
    """Directly or by transforms, as SciPy chooses from the shapes."""
    if method not in ("auto", "fft", "direct"):
        raise ValueError(at_place("Acceptable method flags are 'auto', 'direct', or 'fft'."))
    x, w, _ = _pair(in1, in2, mode)
    floats = x.dtype.kind in "fc" or w.dtype.kind in "fc"
    if method == "auto":
        method = "direct"
        if floats and x.size and w.size and x.ndim:
            method = scipy.signal.choose_conv_method(np.empty(x.shape), np.empty(w.shape), mode)
    if method == "fft" or x.dtype.kind == "c" or w.dtype.kind == "c":
        return _by_fft(in1, in2, mode)
    return _convolved(in1, in2, mode)


@implements(scipy.signal.correlate, kind=STATIC)
def signal_correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Array:
    return signal_convolve(in1, np.conj(flipped(traced(in2))), mode, method)


@implements(scipy.signal.wiener)
def wiener(im: Any, mysize: Any = None, noise: Any = None) -> Array:
    """The local mean, and of what differs from it the share that is no noise."""
    x = traced(im) * 1.0
    ones = np.ones(np.broadcast_to(3 if mysize is None else mysize, (x.ndim,)))
    mean = signal_correlate(x, ones, "same") / float(ones.size)
    variance = signal_correlate(x**2, ones, "same") / float(ones.size) - mean**2
    if noise is None:
        noise = np.mean(variance)
    is_noise = variance < noise
    share = 1.0 - noise / np.where(is_noise, 1.0, variance)
    return np.where(is_noise, mean, mean + (x - mean) * share)


_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "reflect"}


@implements(scipy.signal.convolve2d)
def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Array:
    return _convolved(in1, in2, mode, _BOUNDARIES[boundary], fillvalue)


@implements(scipy.signal.correlate2d)
def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Array:
    turned = flipped(traced(in2))
    if mode != "same":
        return _convolved(in1, turned, mode, _BOUNDARIES[boundary], fillvalue)
    full = _convolved(in1, turned, "full", _BOUNDARIES[boundary], fillvalue)
    # the middle of an even kernel is another one than that of a convolution
    pairs = zip(np.shape(in1), turned.shape, strict=True)
    return copied(full[tuple(slice(m // 2, m // 2 + n) for n, m in pairs)])


@implements(scipy.signal.medfilt, kind=STATIC)
def medfilt(volume: Any, kernel_size: Any = None) -> Array:
    x = traced(volume)
    size = np.broadcast_to(3 if kernel_size is None else kernel_size, (x.ndim,)).tolist()
    if not all(n % 2 for n in size):
        raise ValueError(at_place(f"medfilt: windows of {size}; each length has to be odd"))
    return np.median(all_windows(np.pad(x, [(n // 2, n // 2) for n in size]), size), -1)
