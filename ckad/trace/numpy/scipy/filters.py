"""SciPy's filters, convolutions, integrals of samples and linear solves; loaded when needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Literal

import numpy as np
import scipy.fft
import scipy.integrate
import scipy.ndimage
import scipy.signal

from ckad.place import at_place
from ckad.trace.arrays import Array, copied, known, retyped, routine, stored, traced
from ckad.trace.axes import along, axis_of
from ckad.trace.dispatch import STATIC, implements, reject
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
#: Kernels of more elements are one routine where they have one axis, and else transforms: each
#: element of a smaller one is a row of the tape.
MOST_TAPS, MOST_IN_LINE = 1024, 16


# --- sums of shifted arrays --------------------------------------------------------------------


def _taps(x: Array, weights: Any, shape: Sequence[int]) -> Array:
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
    transform, back = _transforms(x, w)
    axes = range(x.ndim)
    product = transform(x, x.shape, axes) * np.conj(transform(np.conj(w), x.shape, axes))
    found = back(product, x.shape, axes)[tuple(map(slice, shape))]
    return copied(found.astype(x.dtype) if x.dtype.kind == "f" else found)


def _transforms(*arrays: Array) -> tuple[Any, Any]:
    if any(x.dtype.kind == "c" for x in arrays):
        return np.fft.fftn, np.fft.ifftn
    return np.fft.rfftn, np.fft.irfftn


def _reversed(w: Array) -> Array:
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
        w = _reversed(w)
        origins = [-o - (n % 2 == 0) for o, n in zip(origins, w.shape, strict=True)]
    before = [n // 2 + o for n, o in zip(w.shape, origins, strict=True)]
    widths = [(b, n - 1 - b) for b, n in zip(before, w.shape, strict=True)]
    found = retyped(_taps(padded(x, widths, mode, cval), w, x.shape), x.dtype)
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


# --- scipy.signal ------------------------------------------------------------------------------


def _full(x: Array, w: Array, outside: str = "constant", cval: Any = 0) -> Array:
    widths = [(n - 1, n - 1) for n in w.shape]
    shape = [a + b - 1 for a, b in zip(x.shape, w.shape, strict=True)]
    return _taps(padded(x, widths, outside, cval), _reversed(w), shape)


def _convolved(x: Any, w: Any, mode: str, outside: str = "constant", cval: Any = 0) -> Array:
    x, w, mode = _pair(x, w, mode)
    swap = mode == "full" and outside == "constant" and w.size > x.size
    full = _full(w, x) if swap else _full(x, w, outside, cval)
    return _part(full, x.shape, w.shape, mode)


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
    transform, back = _transforms(x, w)
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
    return signal_convolve(in1, np.conj(_reversed(traced(in2))), mode, method)


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
    turned = _reversed(traced(in2))
    if mode != "same":
        return _convolved(in1, turned, mode, _BOUNDARIES[boundary], fillvalue)
    full = _convolved(in1, turned, "full", _BOUNDARIES[boundary], fillvalue)
    # the middle of an even kernel is another one than that of a convolution
    pairs = zip(np.shape(in1), turned.shape, strict=True)
    return copied(full[tuple(slice(m // 2, m // 2 + n) for n, m in pairs)])


# --- scipy.integrate ---------------------------------------------------------------------------

implements(scipy.integrate.trapezoid)(trapezoid)


@implements(scipy.integrate.simpson)
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Array:
    """SciPy's own weights, which are what it gives for unit vectors, of known distances."""
    y, at = traced(y), None if x is None else known(traced(x))
    if x is not None and (at is None or np.ndim(at) != 1):
        k = axis_of(axis, y.ndim)
        places = traced(x) if np.ndim(x) == 1 else np.moveaxis(traced(x), k, -1)
        if places.shape[-1] != y.shape[k]:
            raise ValueError(at_place(f"{places.shape[-1]} places for {y.shape[k]} values"))
        return _parabolas(np.moveaxis(y, k, -1), np.diff(places, axis=-1))
    return _weighted(y, scipy.integrate.simpson, at, dx, axis)


def _weighted(y: Array, rule: Any, x: Any, dx: Any, axis: int) -> Array:
    """A rule of SciPy's, of which the weights are what it gives for unit vectors."""
    k = axis_of(axis, y.ndim)
    options = {} if x is None else {"x": x}
    weights = rule(np.eye(y.shape[k]), **options, axis=0)
    total = np.sum(y * weights.reshape([-1 if i == k else 1 for i in range(y.ndim)]), axis=k)
    return total if x is not None else total * dx


def _parabolas(y: Array, h: Array) -> Array:
    """The same with widths ``h``, which may be traced: parabolas through three points each; of an
    even number of points the last piece by the parabola through the last three."""
    n = y.shape[-1]
    if n == 2:
        return np.sum(h * (y[..., 1:] + y[..., :-1]), -1) / 2.0
    m = n - 1 + n % 2
    a, b = h[..., 0 : m - 1 : 2], h[..., 1 : m - 1 : 2]
    first, middle, last = y[..., 0 : m - 2 : 2], y[..., 1 : m - 1 : 2], y[..., 2:m:2]
    both = a + b
    ends = first * (2.0 - b / a) + last * (2.0 - a / b)
    total = np.sum(both / 6.0 * (ends + middle * both**2 / (a * b)), -1)
    if m == n:
        return total
    a, b = h[..., -2], h[..., -1]
    after = y[..., -1] * (2.0 * b**2 + 3.0 * a * b) / (6.0 * (a + b))
    beside = y[..., -2] * (b**2 + 3.0 * a * b) / (6.0 * a)
    return total + after + beside - y[..., -3] * b**3 / (6.0 * a * (a + b))


@implements(scipy.integrate.romb)
def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: bool = False) -> Array:
    reject(show, "scipy.integrate.romb with show=True")
    return _weighted(traced(y), scipy.integrate.romb, None, dx, axis)


@implements(scipy.integrate.cumulative_simpson)
def cumulative_simpson(
    y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Array:
    y, at = traced(y), None if x is None else known(traced(x))
    wrong = x is not None and (at is None or np.ndim(at) != 1)
    reject(wrong or np.ndim(dx) != 0, "scipy.integrate.cumulative_simpson of traced or 2-D x or dx")
    k = axis_of(axis, y.ndim)
    weights = scipy.integrate.cumulative_simpson(np.eye(y.shape[k]), x=at, axis=0)
    sums = np.moveaxis(np.tensordot(weights, y, (1, k)), 0, k)
    sums = sums if x is not None else sums * dx
    if initial is None:
        return sums
    first = np.zeros_like(sums[along(k, slice(0, 1))]) + initial
    return np.concatenate([first, sums + initial], k)


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
