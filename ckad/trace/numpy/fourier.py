"""``np.fft`` while tracing: discrete Fourier transforms as products with small constant matrices.

A transform of length ``n = r m`` is ``m`` transforms of length ``r``, a multiplication by powers of
the root of unity, and ``r`` transforms of length ``m`` (Cooley & Tukey, Math. Comp. 19, 1965); a
large prime length is a convolution (Bluestein, IEEE Trans. AU 18, 1970).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import Array, complexed, is_traced, stored
from ckad.trace.axes import along, axis_of
from ckad.trace.dispatch import STATIC, Function, put

#: Transforms up to this length are one product with a matrix.
LONGEST_PRODUCT = 32
#: Longer ones of prime length are one up to this length.
LONGEST_PRIME = 128


# --- along the last axis -----------------------------------------------------------------------


def transform(x: Array, sign: int) -> Array:
    """The sums over ``j`` of ``x[j] exp(sign 2 pi i j k / n)`` along the last axis."""
    n = x.shape[-1]
    radix = _radix(n)
    if radix == n:
        return x @ _matrix(n, sign) if n <= LONGEST_PRIME else _convolved(x, sign)
    rest = n // radix
    lead = x.shape[:-1]
    # x[rest * a + b] as a matrix whose columns are transformed first
    columns = np.swapaxes(x.reshape((*lead, radix, rest)), -1, -2)
    inner = transform(columns, sign) * _twiddles(rest, radix, sign)
    outer = transform(np.swapaxes(inner, -1, -2), sign)
    return np.swapaxes(outer, -1, -2).reshape((*lead, n))


def _radix(n: int) -> int:
    """The largest divisor up to the longest product; ``n`` itself for primes beyond that."""
    return next((r for r in range(min(n, LONGEST_PRODUCT), 1, -1) if n % r == 0), n)


def _root(power: np.ndarray, n: int, sign: int) -> np.ndarray:
    """``exp(sign 2 pi i power / n)``, from a small angle."""
    turns = power % n / n
    root: np.ndarray = np.exp(sign * 2j * np.pi * turns)
    return root


def _matrix(n: int, sign: int) -> np.ndarray:
    k = np.arange(n)
    return _root(np.outer(k, k), n, sign)


def _twiddles(rest: int, radix: int, sign: int) -> np.ndarray:
    return _root(np.outer(np.arange(rest), np.arange(radix)), rest * radix, sign)


def _convolved(x: Array, sign: int) -> Array:
    """From ``2 j k = j**2 + k**2 - (k - j)**2``: a convolution with a chirp."""
    n = x.shape[-1]
    length = 1 << (2 * n - 2).bit_length()
    chirp = _root(np.arange(n) ** 2, 2 * n, sign)
    kernel = np.zeros(length, complex)
    kernel[:n] = chirp.conj()
    kernel[length - n + 1 :] = chirp[:0:-1].conj()
    padded = _resized(x * chirp, length)
    product = transform(padded, -1) * np.fft.fft(kernel)
    return transform(product, 1)[..., :n] * (chirp / length)


def _resized(x: Array, n: int) -> Array:
    """The last axis cut, or continued by zeros, to length ``n``."""
    have = x.shape[-1]
    if n <= have:
        return x[..., :n] if n < have else x
    return np.pad(x, [*[(0, 0)] * (x.ndim - 1), (0, n - have)])


# --- NumPy's functions -------------------------------------------------------------------------


def _factor(norm: Any, n: int, inverse: bool) -> float:
    """What a transform of ``n`` elements is multiplied by."""
    divided = {"backward": inverse, "forward": not inverse, "ortho": None}
    if norm is not None and norm not in divided:
        raise ValueError(
            at_place(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
        )
    by = divided["backward" if norm is None else norm]
    return 1 / np.sqrt(n) if by is None else (1 / n if by else 1.0)


def _length(n: Any, have: int) -> int:
    length = have if n is None else operator.index(n)
    if length < 1:
        raise ValueError(at_place(f"Invalid number of FFT data points ({length}) specified."))
    return length


def _along_axis(a: Any, n: Any, axis: int, norm: Any, inverse: bool) -> Array:
    given = complexed(a)
    x = complexed(given, np.float64)  # transforms of float32 are rounded once, at the end
    axis = axis_of(axis, x.ndim)
    x = np.moveaxis(x, axis, -1)
    length = _length(n, x.shape[-1])
    found = transform(_resized(x, length), 1 if inverse else -1)
    scale = _factor(norm, length, inverse)
    found = np.moveaxis(found if scale == 1.0 else found * scale, -1, axis)
    return found if given.dtype == found.dtype else found.astype(given.dtype)


def _transforms(*functions: Any) -> Callable[[Function], Function]:
    """Decorator: the counterpart of ``functions`` for real and complex tracers alike."""

    def register(handler: Function) -> Function:
        def call(a: Any, *args: Any, out: Any = None, **options: Any) -> Any:
            return stored(handler(a, *args, **options).copy(), out)

        for function in functions:
            for kind in STATIC:
                put(function, call, kind)
        return handler

    return register


def _one_axis(function: Any, inverse: bool) -> Function:
    @_transforms(function)
    def transformed(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Array:
        return _along_axis(a, n, axis, norm, inverse)

    return transformed


fft, ifft = _one_axis(np.fft.fft, inverse=False), _one_axis(np.fft.ifft, inverse=True)


@_transforms(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Array:
    if is_traced(a) and a.dtype.kind == "c":
        raise TypeError(at_place("np.fft.rfft takes real arrays; use np.fft.fft"))
    whole = fft(a, n, axis, norm)
    k = axis_of(axis, whole.ndim)
    return whole[along(k, slice(0, whole.shape[k] // 2 + 1))]


@_transforms(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Array:
    """The other half of the spectrum is the conjugate of what is given."""
    x = complexed(a)
    k = axis_of(axis, x.ndim)
    length = _length(n, 2 * (x.shape[k] - 1))
    half = np.moveaxis(_resized(np.moveaxis(x, k, -1), length // 2 + 1), -1, k)
    mirrored = np.conj(half[along(k, slice((length - 1) // 2, 0, -1))])
    # the imaginary parts of the mean and of the highest frequency do not count
    return ifft(np.concatenate([half, mirrored], k), None, k, norm).real


def _in_turn(one: Function, a: Any, s: Any, axes: Any, norm: Any) -> Array:
    rank = np.ndim(a)
    if axes is None:
        axes = range(rank) if s is None else range(rank - len(s), rank)
    lengths: Sequence[Any] = [None] * len(axes) if s is None else s
    result = complexed(a)
    for n, axis in reversed(list(zip(lengths, axes, strict=True))):
        result = one(result, n, axis, norm)
    return result


def _several_axes(function: Any, one: Function, default: Any) -> None:
    @_transforms(function)
    def transformed(a: Any, s: Any = None, axes: Any = default, norm: Any = None) -> Array:
        return _in_turn(one, a, s, axes, norm)


for _one, _all, _two in ((fft, np.fft.fftn, np.fft.fft2), (ifft, np.fft.ifftn, np.fft.ifft2)):
    _several_axes(_all, _one, None)
    _several_axes(_two, _one, (-2, -1))


# --- of real arrays: the last axis first, or last ----------------------------------------------


def _leading(a: Any, s: Any, axes: Any) -> tuple[list[int], list[Any]]:
    """The axes, and the length of each (None: as it is)."""
    rank = np.ndim(a)
    if axes is None:
        axes = range(rank) if s is None else range(rank - len(s), rank)
    found = [axis_of(axis, rank) for axis in axes]
    lengths = [None] * len(found) if s is None else list(s)
    if not found or len(lengths) != len(found):
        raise ValueError(at_place(f"{len(lengths)} lengths for {len(found)} axes"))
    return found, lengths


def _real_axes(function: Any, default: Any) -> None:
    @_transforms(function)
    def transformed(a: Any, s: Any = None, axes: Any = default, norm: Any = None) -> Array:
        axes, lengths = _leading(a, s, axes)
        half = rfft(a, lengths[-1], axes[-1], norm)
        return _in_turn(fft, half, lengths[:-1], axes[:-1], norm) if axes[:-1] else half


def _to_real_axes(function: Any, default: Any) -> None:
    @_transforms(function)
    def transformed(a: Any, s: Any = None, axes: Any = default, norm: Any = None) -> Array:
        axes, lengths = _leading(a, s, axes)
        whole = a
        for n, axis in zip(lengths[:-1], axes[:-1], strict=True):
            whole = ifft(whole, n, axis, norm)
        return irfft(whole, lengths[-1], axes[-1], norm)


_real_axes(np.fft.rfftn, None)
_real_axes(np.fft.rfft2, (-2, -1))
_to_real_axes(np.fft.irfftn, None)
_to_real_axes(np.fft.irfft2, (-2, -1))


@_transforms(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Array:
    """The transform of a signal that is Hermitian, of which one half is given."""
    x = complexed(a)
    length = _length(n, 2 * (x.shape[axis_of(axis, x.ndim)] - 1))
    return irfft(np.conj(x), length, axis, _INVERSE[norm])


@_transforms(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Array:
    return np.conj(rfft(a, n, axis, _INVERSE[norm]))


_INVERSE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _rolled(x: Any, axes: Any, half: Any) -> Any:
    rank = np.ndim(x)
    axes = range(rank) if axes is None else ([axes] if np.ndim(axes) == 0 else axes)
    shape = np.shape(x)
    return np.roll(x, [half(shape[k]) for k in axes], list(axes))


@_transforms(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    return _rolled(x, axes, lambda n: n // 2)


@_transforms(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    return _rolled(x, axes, lambda n: -(n // 2))
