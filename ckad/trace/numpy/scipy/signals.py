"""Digital filters of ``scipy.signal`` by recurrences, and what its other functions do to a line.

A filter is a sum over lags and a recurrence; its state lies behind the end of its result.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.signal

from ckad.place import at_place
from ckad.trace.arrays import Array, copied, known, reshaped, retyped, routine, traced
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import STATIC, implements, reject
from ckad.trace.numpy.scipy.filters import convolve1d

# --- one filter ----------------------------------------------------------------------------------


def _polynomial(c: Any, name: str) -> Array:
    found = np.atleast_1d(traced(c))
    if found.ndim != 1 or not found.size:
        raise ValueError(at_place(f"{name} has shape {found.shape}; coefficients have one axis"))
    return found


def _extended(c: Array, n: int) -> Array:
    return np.concatenate([c, np.zeros(n - c.size, c.dtype)]) if c.size < n else c


def _coefficients(b: Any, a: Any) -> tuple[Array, Array]:
    """Both polynomials at one length, divided by what stands before the present result."""
    b, a = _polynomial(b, "b"), _polynomial(a, "a")
    numbers = known(a)
    if numbers is not None and numbers[0] == 0:
        raise ValueError(at_place("the first coefficient of a is 0; nothing can be divided by it"))
    n = max(b.size, a.size)
    return _extended(b / a[0], n), _extended(a / a[0], n)


def _filtered(b: Array, a: Array, x: Array, state: Array | None) -> tuple[Array, Array]:
    """Along the last axis, and the state at the end; coefficients as `_coefficients` gives them."""
    k, n = b.size - 1, x.shape[-1]
    if not k or not x.size:
        return b[0] * x, np.zeros((*x.shape[:-1], k)) if state is None else state
    rows = np.reshape(x, (-1, n))
    found = routine("lagged", b, rows, attrs=(0, 0))
    if state is not None:
        later = np.zeros((len(rows), n))
        found = found + np.concatenate([np.reshape(state, (-1, k)), later], -1)
    poles = known(a[1:])
    if poles is None or poles.any():
        found = routine("recurrence", a[1:], found, attrs=(0,))
    found = reshaped(found, (*x.shape[:-1], n + k))
    return copied(found[..., :n]), copied(found[..., n:])


def line(x: Any, axis: int) -> Array:
    """``x`` with an axis as its last one."""
    x = traced(x)
    return np.moveaxis(x, axis_of(axis, x.ndim), -1)


def _real(call: str, *arrays: Any) -> None:
    complex_ = any(np.result_type(traced(x).dtype).kind == "c" for x in arrays if x is not None)
    reject(complex_, f"{call} of complex numbers")


@implements(scipy.signal.lfilter, kind=STATIC)
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    _real("scipy.signal.lfilter", b, a, x, zi)
    dtype = _common(b, a, x, zi)
    b, a = _coefficients(b, a)
    x = line(x, axis)
    state = zi
    if zi is not None:
        state = np.moveaxis(traced(zi), axis, -1)
        if state.shape[-1] != b.size - 1:
            raise ValueError(
                at_place(f"zi has shape {np.shape(zi)}; a filter of {b.size} coefficients needs "
                         f"{b.size - 1} along axis {axis}")
            )  # fmt: skip
        state = np.broadcast_to(state, (*x.shape[:-1], b.size - 1))
    y, end = (retyped(found, dtype) for found in _filtered(b, a, x * 1.0, state))
    y = np.moveaxis(y, -1, axis)
    return y if zi is None else (y, np.moveaxis(end, -1, axis))


def _common(*arrays: Any) -> Any:
    """The floats of a result: single precision if all that it is made of are."""
    return np.result_type(np.float32, *(traced(x).dtype for x in arrays if x is not None))


@implements(scipy.signal.lfilter_zi, kind=STATIC)
def lfilter_zi(b: Any, a: Any) -> Array:
    """The state in which a step of the input is a step of the result."""
    b, a = _coefficients(b, a)
    k = b.size - 1
    right = b[1:] - a[1:] * b[0]
    # z[i] = z[i + 1] + right[i] - a[i + 1] z[0]
    first = np.zeros((k, k))
    first[:, 0] = 1.0
    return np.linalg.solve(np.eye(k) - np.eye(k, k=1) + a[1:, None] * first, right)


@implements(scipy.signal.lfiltic, kind=STATIC)
def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Array:
    """The state that earlier results and inputs, the latest first, leave behind."""
    b, a = _coefficients(b, a)
    k = b.size - 1
    y = _extended(np.atleast_1d(traced(y)), k)[:k]
    x = np.zeros(k) if x is None else _extended(np.atleast_1d(traced(x)), k)[:k]
    sums = [np.sum(b[m + 1 :] * x[: k - m] - a[m + 1 :] * y[: k - m]) for m in range(k)]
    return np.stack(sums) if sums else np.zeros(0)


# --- filters in sequence, forwards and backwards -------------------------------------------------


def _sections(sos: Any) -> Array:
    s = traced(sos)
    if s.ndim != 2 or s.shape[1] != 6:
        raise ValueError(at_place(f"sos has shape {s.shape}; it has to be (n_sections, 6)"))
    return s


@implements(scipy.signal.sosfilt, kind=STATIC)
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    _real("scipy.signal.sosfilt", sos, x, zi)
    sections, dtype = _sections(sos), _common(sos, x, zi)
    x = line(x, axis)
    x, ends = x * 1.0, []
    if zi is not None:
        zi = np.moveaxis(traced(zi), axis + 1 if axis >= 0 else axis, -1)
    for k in range(len(sections)):
        b, a = _coefficients(sections[k, :3], sections[k, 3:])
        x, end = _filtered(b, a, x, None if zi is None else zi[k])
        ends.append(end)
    y = np.moveaxis(retyped(x, dtype), -1, axis)
    if zi is None:
        return y
    return y, np.moveaxis(retyped(np.stack(ends), dtype), -1, axis + 1 if axis >= 0 else axis)


@implements(scipy.signal.sosfilt_zi, kind=STATIC)
def sosfilt_zi(sos: Any) -> Array:
    sections, scale, found = _sections(sos), 1.0, []
    for k in range(len(sections)):
        b, a = sections[k, :3], sections[k, 3:]
        found.append(scale * lfilter_zi(b, a))
        scale = scale * (np.sum(b) / np.sum(a))
    return np.stack(found)


def _continued(x: Array, kind: Any, n: int) -> Array:
    """``n`` more numbers on both sides of the last axis."""
    if n == 0 or kind is None:
        return x
    if n >= x.shape[-1]:
        raise ValueError(
            at_place(f"The length of the input vector x ({x.shape[-1]}) must be greater than "
                     f"padlen, which is {n}.")
        )  # fmt: skip
    first, last = x[..., :1], x[..., -1:]
    before, after = x[..., n:0:-1], x[..., -2 : -n - 2 : -1]
    if kind == "odd":
        before, after = 2 * first - before, 2 * last - after
    elif kind == "constant":
        before, after = np.repeat(first, n, -1), np.repeat(last, n, -1)
    elif kind != "even":
        raise ValueError(at_place(f"Unknown value '{kind}' given to padtype."))
    return np.concatenate([before, x, after], -1)


@implements(scipy.signal.filtfilt, kind=STATIC)
def filtfilt(
    b: Any,
    a: Any,
    x: Any,
    axis: int = -1,
    padtype: Any = "odd",
    padlen: Any = None,
    method: str = "pad",
    irlen: Any = None,
) -> Array:
    reject(method != "pad", f"scipy.signal.filtfilt with method={method!r}")
    _real("scipy.signal.filtfilt", b, a, x)
    b, a = _coefficients(b, a)
    x = line(x, axis)
    n = 0 if padtype is None else (3 * b.size if padlen is None else padlen)
    found, state = _continued(x * 1.0, padtype, n), lfilter_zi(b, a)
    for _ in range(2):
        found = _filtered(b, a, found, found[..., :1] * state)[0][..., ::-1]
    return np.moveaxis(copied(found[..., n : n + x.shape[-1]]), -1, axis)


@implements(scipy.signal.sosfiltfilt, kind=STATIC)
def sosfiltfilt(
    sos: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: Any = None
) -> Array:
    sections = _sections(sos)
    x = line(x, axis)
    n = 0
    if padtype is not None and padlen is not None:
        n = padlen
    elif padtype is not None:
        numbers = known(sections)
        reject(numbers is None, "scipy.signal.sosfiltfilt with a traced sos and without padlen=")
        assert numbers is not None
        zeros = min((numbers[:, 2] == 0).sum(), (numbers[:, 5] == 0).sum())
        n = int(3 * (2 * len(numbers) + 1 - zeros))
    found, state = _continued(x * 1.0, padtype, n), sosfilt_zi(sections)
    state = np.reshape(state, (len(sections), *[1] * (x.ndim - 1), 2))
    for _ in range(2):
        found = sosfilt(sections, found, zi=state * found[..., :1])[0][..., ::-1]
    return np.moveaxis(copied(found[..., n : n + x.shape[-1]]), -1, axis)


@implements(scipy.signal.savgol_filter, kind=STATIC)
def savgol_filter(
    x: Any,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: float = 0.0,
) -> Array:
    """A constant matrix: what SciPy makes of a line of one window says what it does at the ends."""
    options = {"deriv": deriv, "delta": delta}
    taps = scipy.signal.savgol_coeffs(window_length, polyorder, **options)
    if mode != "interp":
        return convolve1d(traced(x) * 1.0, taps, axis, None, mode, cval)
    x = line(x, axis)
    n, half = x.shape[-1], window_length // 2
    if window_length > n:
        raise ValueError(
            at_place("If mode is 'interp', window_length must be less than or equal to the size "
                     "of x.")
        )  # fmt: skip
    ends = scipy.signal.savgol_filter(np.eye(window_length), window_length, polyorder, axis=0,
                                      **options)  # fmt: skip
    rows = np.reshape(x * 1.0, (-1, n))
    inside = routine("lagged", taps[::-1].copy(), rows, attrs=(1, 0))
    before = rows[:, :window_length] @ ends[:half].T
    after = rows[:, n - window_length :] @ ends[window_length - half :].T
    inside = inside[:, 1 - window_length % 2 :]  # an even one begins behind what it is of
    found = np.concatenate([before, inside, after], -1)
    return np.moveaxis(retyped(reshaped(found, x.shape), _common(x)), -1, axis)


# --- trends and analytic signals -----------------------------------------------------------------


@implements(scipy.signal.detrend, kind=STATIC)
def detrend(
    data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False
) -> Array:
    if type not in ("linear", "l", "constant", "c"):
        raise ValueError(at_place("Trend type must be 'linear' or 'constant'."))
    x = line(data, axis)
    if type in ("constant", "c"):
        return np.moveaxis(x - np.mean(x, -1, keepdims=True), -1, axis)
    n = x.shape[-1]
    borders = np.unique([0, *np.atleast_1d(bp), n])
    parts = []
    for first, last in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        trend = np.stack([np.ones(last - first), np.arange(1, last - first + 1) / (last - first)])
        q = np.linalg.qr(trend.T)[0]
        part = x[..., first:last]
        parts.append(part - (part @ q) @ q.T)
    return np.moveaxis(np.concatenate(parts, -1), -1, axis)


@implements(scipy.signal.hilbert, kind=STATIC)
def hilbert(x: Any, N: Any = None, axis: int = -1) -> Array:
    _real("scipy.signal.hilbert", x)
    n = np.shape(x)[axis] if N is None else N
    weights = np.zeros(n)
    weights[0] = 1
    weights[1 : (n + 1) // 2] = 2
    if n % 2 == 0:
        weights[n // 2] = 1
    shape = [1] * np.ndim(x)
    shape[axis] = n
    weights = weights.reshape(shape).astype(_common(x))
    return np.fft.ifft(np.fft.fft(x, n, axis) * weights, axis=axis)


@implements(scipy.signal.resample, kind=STATIC)
def resample(
    x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time"
) -> Any:
    """By the Fourier method."""
    reject(window is not None, "scipy.signal.resample with window=")
    reject(t is not None, "scipy.signal.resample with t=")
    reject(domain != "time", f"scipy.signal.resample with domain={domain!r}")
    _real("scipy.signal.resample", x)
    x = line(x, axis)
    n, m = x.shape[-1], min(x.shape[-1], num)
    half = np.fft.rfft(x)[..., : m // 2 + 1]
    if m % 2 == 0 and num != n:  # the highest frequency of the shorter one stands for two
        scale = np.ones(m // 2 + 1)
        scale[-1] = 2.0 if num < n else 0.5
        half = half * scale
    return np.moveaxis(retyped(np.fft.irfft(half, num) * (num / n), _common(x)), -1, axis)


# --- lines at another rate -----------------------------------------------------------------------


@implements(scipy.signal.upfirdn, kind=STATIC)
def upfirdn(
    h: Any, x: Any, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant",
    cval: float = 0,
) -> Array:  # fmt: skip
    """Zeros between the numbers, a filter, and some of its results."""
    reject(mode != "constant" or cval != 0, f"scipy.signal.upfirdn with {mode=}, {cval=}")
    taps, x = traced(h), line(x, axis)
    reject(taps.dtype.kind == "c" or x.dtype.kind == "c", "scipy.signal.upfirdn, complex")
    dtype = _common(taps, x)
    apart = np.pad(x[..., None], [(0, 0)] * x.ndim + [(0, up - 1)])
    rows = np.reshape(apart, (-1, x.shape[-1] * up))[:, : (x.shape[-1] - 1) * up + 1]
    found = routine("lagged", taps * 1.0, rows * 1.0, attrs=(0, 0))[:, ::down]
    found = reshaped(retyped(found, dtype), (*x.shape[:-1], found.shape[1]))
    return np.moveaxis(found, -1, axis)


@implements(scipy.signal.resample_poly, kind=STATIC)
def resample_poly(
    x: Any, up: int, down: int, axis: int = 0, window: Any = ("kaiser", 5.0),
    padtype: str = "constant", cval: Any = None,
) -> Array:  # fmt: skip
    """By a filter of finite length, as SciPy designs it."""
    reject(padtype != "constant" or cval, f"scipy.signal.resample_poly with {padtype=}, {cval=}")
    common = math.gcd(up, down)
    up, down, x = up // common, down // common, traced(x)
    if up == down == 1:
        return copied(x)
    n = x.shape[axis]
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
    taps = np.pad(taps * up, (before, after)).astype(_common(x))
    found = upfirdn(taps, x, up, down, axis)
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
    return copied(np.moveaxis(retyped(found, _common(x)), -1, axis))
