"""Spectral estimates of ``scipy.signal``: the spectra of windows of a line, and their means."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from ckad.place import at_place
from ckad.trace.arrays import Array, copied, sliding, traced
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import STATIC, implements, reject
from ckad.trace.numpy.scipy.signals import detrend as detrended
from ckad.trace.numpy.scipy.signals import line


def _window(window: Any, nperseg: Any, length: int) -> tuple[np.ndarray, int]:
    """The window's numbers and how many they are, at most as many as there are in all."""
    if isinstance(window, (str, tuple)):
        n = min(256 if nperseg is None else int(nperseg), length)
        return scipy.signal.get_window(window, n), n
    numbers = np.asarray(window)
    if numbers.ndim != 1 or numbers.size > length or nperseg not in (None, numbers.size):
        raise ValueError(
            at_place(f"window has shape {numbers.shape}; it has one axis of nperseg numbers, at "
                     f"most {length}")
        )  # fmt: skip
    return numbers, numbers.size


def _spectra(
    x: Any, y: Any, fs: float, window: Any, nperseg: Any, noverlap: Any, nfft: Any, detrend: Any,
    return_onesided: bool, scaling: str, axis: int,
) -> tuple[np.ndarray, np.ndarray, Array]:  # fmt: skip
    """Frequencies, times, and the cross spectra [..., time, frequency] of windows."""
    dtype = np.result_type(np.float32, traced(x).dtype, traced(x if y is None else y).dtype)
    x = line(x, axis)
    y = x if y is None else line(y, axis)
    reject(x.dtype.kind == "c" or y.dtype.kind == "c", "spectral estimates of complex numbers")
    reject(x.shape[-1] != y.shape[-1], "spectral estimates of lines of different lengths")
    numbers, n = _window(window, nperseg, x.shape[-1])
    step, length = _step(n, noverlap), _length(n, nfft, n)
    numbers = numbers.astype(dtype)
    found = [_of_windows(z, numbers, step, length, detrend, return_onesided)
             for z in ((x,) if y is x else (x, y))]  # fmt: skip
    product = np.conj(found[0]) * found[-1]
    scale = {"density": fs * np.sum(numbers**2), "spectrum": np.sum(numbers) ** 2}
    if scaling not in scale:
        raise ValueError(at_place(f"Unknown scaling: {scaling!r}"))
    weights = np.full(product.shape[-1], 1 / scale[scaling], dtype)
    if return_onesided:
        weights[1 : -1 if length % 2 == 0 else None] *= 2
    times = (np.arange(product.shape[-2]) * step + n / 2) / fs
    product = product * weights
    f = _frequencies(length, fs, return_onesided)
    return f, times, product.real if y is x else product


def _step(n: int, noverlap: Any) -> int:
    """From one window of ``n`` numbers to the next."""
    overlap = n // 2 if noverlap is None else int(noverlap)
    if not 0 <= overlap < n:
        raise ValueError(at_place(f"noverlap is {overlap}; it has to be less than nperseg, {n}."))
    return n - overlap


def _length(n: int, nfft: Any, default: int) -> int:
    """Of the transform of a window."""
    length = default if nfft is None else int(nfft)
    if length < n:
        raise ValueError(at_place(f"nfft is {length}; it has to be at least nperseg, {n}."))
    return length


def _frequencies(length: int, fs: float, half: bool) -> np.ndarray:
    return (np.fft.rfftfreq if half else np.fft.fftfreq)(length, 1 / fs)


def _scale(numbers: np.ndarray, fs: float, scaling: str) -> Any:
    """What a window multiplies a line's spectrum by."""
    if scaling not in ("spectrum", "psd"):
        raise ValueError(at_place(f"Parameter scaling={scaling!r} not in ['spectrum', 'psd']!"))
    return np.sum(numbers) if scaling == "spectrum" else np.sqrt(fs * np.sum(numbers**2))


def _of_windows(
    x: Array, window: np.ndarray, step: int, length: int, detrend: Any, half: bool
) -> Array:
    parts = sliding(x.astype(window.dtype), (x.ndim - 1,), (window.size,))[..., ::step, :]
    if callable(detrend):
        parts = detrend(parts)
    elif detrend:
        parts = detrended(parts, -1, detrend)
    parts = parts * window
    return np.fft.rfft(parts, length) if half else np.fft.fft(parts, length)


def _mean(spectra: Array, average: str) -> Array:
    if average not in ("mean", "median"):
        raise ValueError(at_place(f'average must be "median" or "mean", got {average}'))
    reject(average == "median", "spectral estimates with average='median'")
    return np.mean(spectra, -2)


@implements(scipy.signal.csd, kind=STATIC)
def csd(
    x: Any, y: Any, fs: float = 1.0, window: Any = "hann", nperseg: Any = None,
    noverlap: Any = None, nfft: Any = None, detrend: Any = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1, average: str = "mean",
) -> tuple[np.ndarray, Array]:  # fmt: skip
    other = None if y is x else y
    f, _, found = _spectra(x, other, fs, window, nperseg, noverlap, nfft, detrend,
                           return_onesided, scaling, axis)  # fmt: skip
    return f, np.moveaxis(_mean(found, average), -1, axis)


@implements(scipy.signal.welch, kind=STATIC)
def welch(x: Any, *args: Any, **options: Any) -> tuple[np.ndarray, Array]:
    f, found = csd(x, x, *args, **options)
    return f, found


@implements(scipy.signal.periodogram, kind=STATIC)
def periodogram(
    x: Any, fs: float = 1.0, window: Any = "boxcar", nfft: Any = None, detrend: Any = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1,
) -> tuple[np.ndarray, Array]:  # fmt: skip
    n = np.shape(x)[axis]
    if nfft is not None and nfft < n:
        x, n = np.moveaxis(np.moveaxis(traced(x), axis, -1)[..., :nfft], -1, axis), nfft
    window = "boxcar" if window is None else window
    size = n if isinstance(window, (str, tuple)) else None
    return csd(x, x, fs, window, size, 0, nfft, detrend, return_onesided, scaling, axis)


@implements(scipy.signal.spectrogram, kind=STATIC)
def spectrogram(
    x: Any, fs: float = 1.0, window: Any = ("tukey", 0.25), nperseg: Any = None,
    noverlap: Any = None, nfft: Any = None, detrend: Any = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1, mode: str = "psd",
) -> tuple[np.ndarray, np.ndarray, Array]:  # fmt: skip
    """Frequencies along ``axis``, times along the last one."""
    reject(mode != "psd", f"scipy.signal.spectrogram with mode={mode!r}")
    if noverlap is None:
        noverlap = _window(window, nperseg, np.shape(x)[axis])[1] // 8
    f, times, found = _spectra(x, None, fs, window, nperseg, noverlap, nfft, detrend,
                               return_onesided, scaling, axis)  # fmt: skip
    # [..., time, frequency] -> [..., frequency, ..., time]
    found = np.moveaxis(found, -1, axis - 1 if axis < 0 else axis)
    return f, times, found


@implements(scipy.signal.coherence, kind=STATIC)
def coherence(
    x: Any, y: Any, fs: float = 1.0, window: Any = "hann", nperseg: Any = None,
    noverlap: Any = None, nfft: Any = None, detrend: Any = "constant", axis: int = -1,
) -> tuple[np.ndarray, Array]:  # fmt: skip
    options = {"fs": fs, "window": window, "nperseg": nperseg, "noverlap": noverlap, "nfft": nfft,
               "detrend": detrend, "axis": axis}  # fmt: skip
    f, both = csd(x, y, **options)
    return f, np.abs(both) ** 2 / csd(x, x, **options)[1] / csd(y, y, **options)[1]


@implements(scipy.signal.stft, kind=STATIC)
def stft(
    x: Any, fs: float = 1.0, window: Any = "hann", nperseg: Any = 256, noverlap: Any = None,
    nfft: Any = None, detrend: Any = False, return_onesided: bool = True, boundary: Any = "zeros",
    padded: bool = True, axis: int = -1, scaling: str = "spectrum",
) -> tuple[np.ndarray, np.ndarray, Array]:  # fmt: skip
    """Frequencies along ``axis``, times along the last one."""
    reject(boundary not in ("zeros", None), f"scipy.signal.stft with boundary={boundary!r}")
    x = line(x, axis)
    reject(x.dtype.kind == "c", "scipy.signal.stft of complex numbers")
    numbers, n = _window(window, nperseg, x.shape[-1])
    step, size = _step(n, noverlap), _length(n, nfft, n)
    half = n // 2 if boundary else 0
    length = x.shape[-1] + 2 * half
    more = -(length - n) % step % n if padded else 0
    x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(half, half + more)])
    numbers = (numbers / _scale(numbers, fs, scaling)).astype(np.result_type(np.float32, x.dtype))
    found = _of_windows(x, numbers, step, size, detrend, return_onesided)
    f = _frequencies(size, fs, return_onesided)
    times = (np.arange(found.shape[-2]) * step + (0.0 if boundary else n / 2)) / fs
    return f, times, np.moveaxis(found, -1, axis - 1 if axis < 0 else axis)


@implements(scipy.signal.istft, kind=STATIC)
def istft(
    Zxx: Any, fs: float = 1.0, window: Any = "hann", nperseg: Any = None, noverlap: Any = None,
    nfft: Any = None, input_onesided: bool = True, boundary: bool = True, time_axis: int = -1,
    freq_axis: int = -2, scaling: str = "spectrum",
) -> tuple[np.ndarray, Array]:  # fmt: skip
    """Windows from their spectra, added where they overlap and divided by their weights."""
    spectra = traced(Zxx)
    at, of = axis_of(time_axis, spectra.ndim), axis_of(freq_axis, spectra.ndim)
    if at == of:
        raise ValueError(at_place("Must specify differing time and frequency axes!"))
    spectra = np.moveaxis(spectra, (at, of), (-2, -1))
    likely = 2 * (spectra.shape[-1] - 1) if input_onesided else spectra.shape[-1]
    n = likely if nperseg is None else int(nperseg)
    odd = input_onesided and n == likely + 1
    length, step = _length(n, nfft, n if odd else likely), _step(n, noverlap)
    numbers, size = _window(window, n, n)
    if size != n:
        raise ValueError(at_place(f"window must have length of {n}"))
    back = np.fft.irfft if input_onesided else np.fft.ifft
    parts = back(spectra, length)[..., :n] * (numbers * _scale(numbers, fs, scaling))
    starts = np.arange(parts.shape[-2]) * step
    places = starts[:, None] + np.arange(n)
    weights = np.zeros(int(starts[-1]) + n)
    np.add.at(weights, places, np.broadcast_to(numbers**2, places.shape))
    total = np.zeros((weights.size, *parts.shape[:-2]), parts.dtype, like=parts)
    np.add.at(total, places, np.moveaxis(parts, (-2, -1), (0, 1)))
    inside = slice(n // 2, -(n // 2)) if boundary else slice(None)
    weights = np.where(weights > 1e-10, weights, 1.0)[inside]
    found = np.moveaxis(total[inside], 0, -1) / weights
    if found.ndim > 1:
        found = np.moveaxis(found, -1, at - (of < at))
    return np.arange(found.shape[0]) / fs, copied(found)
