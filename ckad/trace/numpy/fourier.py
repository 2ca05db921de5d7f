"""``np.fft`` while tracing: discrete Fourier transforms, by the routine over any axes.

Of a real array it makes the spectrum from half of the work, and stays real on the way back. Single
precision is rounded once, at the end.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.rules.routines.fourier.body import Kind, Norm
from ckad.rules.routines.fourier.transforms import Transform
from ckad.trace.arrays import (
    Array,
    complexed,
    copied,
    known,
    paired,
    retyped,
    routine,
    stored,
    traced,
)
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import STATIC, Function, put
from ckad.trace.numpy.linalg import floats

# --- over several axes at once -------------------------------------------------------------------


def spectrum(x: Any, axes: Iterable[int], sign: int, norm: Norm) -> Array:
    """The sums over the ``axes`` of x[j] exp(sign 2 pi i j k / n), times what ``norm`` says."""
    x, axes = floats(x), sorted(axes)
    is_real = x.dtype.kind != "c" or _is_zero(x.imag)
    kind = Kind.REAL_TO_COMPLEX if is_real else Kind.COMPLEX_TO_COMPLEX
    parts = [x.real] if is_real else [x.real, x.imag]
    found = _called(kind, parts, x.shape[axes[-1]], axes, sign, norm)
    return _of_packed(found, x)


def half_spectrum(x: Any, axes: Iterable[int], sign: int, norm: Norm) -> Array:
    """That of a real array, along the last of the axes up to half of its length."""
    x, axes = floats(x), sorted(axes)
    return _of_packed(_called(Kind.REAL_TO_HALF, [x], x.shape[axes[-1]], axes, sign, norm), x)


def from_half(x: Any, length: int, axes: Iterable[int], sign: int, norm: Norm) -> Array:
    """The real array, of ``length`` along the last of the axes, whose half spectrum ``x`` is."""
    x, axes = floats(complexed(x)), sorted(axes)
    found = _called(Kind.HALF_TO_REAL, [x.real, x.imag], length, axes, sign, norm)
    return retyped(found, x.real.dtype)


def _called(
    kind: Kind, parts: Sequence[Array], length: int, axes: Sequence[int], sign: int, norm: Norm
) -> Array:
    t = Transform(kind, sign, norm, 0, length, tuple(axes))
    if not prod(parts[0].shape):
        return traced(np.zeros(t.result_shape(parts[0].shape)))
    return routine("fourier", *parts, attrs=t.attrs(parts[0].ndim))


def _of_packed(packed: Array, x: Array) -> Array:
    real, imag = (retyped(copied(packed[k]), x.real.dtype) for k in (0, 1))
    return paired(real, imag)


def _is_zero(x: Array) -> bool:
    numbers = known(x)
    return numbers is not None and not numbers.any()


# --- lengths and factors -------------------------------------------------------------------------

_NORMS = {
    "backward": (Norm.NONE, Norm.FULL),
    "ortho": (Norm.ROOT, Norm.ROOT),
    "forward": (Norm.FULL, Norm.NONE),
}


def normed(norm: Any, inverse: bool) -> Norm:
    """What a transform is multiplied by."""
    name = "backward" if norm is None else norm
    if not isinstance(name, str) or name not in _NORMS:
        raise ValueError(
            at_place(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
        )
    return _NORMS[name][inverse]


def length_of(n: Any, have: int) -> int:
    length = have if n is None else operator.index(n)
    if length < 1:
        raise ValueError(at_place(f"Invalid number of FFT data points ({length}) specified."))
    return length


def resized(x: Array, n: int, axis: int) -> Array:
    """One axis cut, or continued by zeros, to length ``n``."""
    have = x.shape[axis]
    if n < have:
        return x[tuple(slice(n) if k == axis else slice(None) for k in range(x.ndim))]
    return np.pad(x, [(0, n - have if k == axis else 0) for k in range(x.ndim)]) if n > have else x


def axes_of(a: Any, s: Any, axes: Any) -> tuple[list[int], list[Any]]:
    """The axes, and the length of each (None: as it is)."""
    rank = np.ndim(a)
    if axes is None:
        axes = range(rank) if s is None else range(rank - len(s), rank)
    found = [axis_of(axis, rank) for axis in axes]
    # NumPy keeps the length of an axis for -1
    lengths = [None] * len(found) if s is None else [None if n == -1 else n for n in s]
    if len(lengths) != len(found):
        raise ValueError(at_place(f"{len(lengths)} lengths for {len(found)} axes"))
    return found, lengths


def _lengths(x: Array, lengths: Sequence[Any], axes: Sequence[int]) -> list[int]:
    """Those to which axes are brought, where None is what they have at first."""
    return [length_of(n, x.shape[axis]) for n, axis in zip(lengths, axes, strict=True)]


def _fitted(x: Array, lengths: Sequence[Any], axes: Sequence[int]) -> Array:
    for n, axis in zip(_lengths(x, lengths, axes), axes, strict=True):
        x = resized(x, n, axis)
    return x


# --- NumPy's functions ---------------------------------------------------------------------------


def transforms(*functions: Any) -> Callable[[Function], Function]:
    """Decorator: the counterpart of ``functions`` for real and complex tracers alike."""

    def register(handler: Function) -> Function:
        def call(a: Any, *args: Any, out: Any = None, **options: Any) -> Any:
            return stored(handler(a, *args, **options), out)

        for function in functions:
            for kind in STATIC:
                put(function, call, kind)
        return handler

    return register


def whole_transform(a: Any, s: Any, axes: Any, norm: Any, inverse: bool) -> Array:
    """``fftn`` and ``ifftn``; an axis that is named twice is transformed twice."""
    axes, lengths = axes_of(a, s, axes)
    x, sign, factor = traced(a), 1 if inverse else -1, normed(norm, inverse)
    if not axes:
        return copied(x)
    if len(set(axes)) == len(axes):
        return spectrum(_fitted(x, lengths, axes), axes, sign, factor)
    for n, axis in reversed(list(zip(_lengths(x, lengths, axes), axes, strict=True))):
        x = spectrum(_fitted(x, [n], [axis]), [axis], sign, factor)
    return x


def real_transform(a: Any, s: Any, axes: Any, norm: Any, inverse: bool = False) -> Array:
    """``rfftn``; and what its inverse would be of opposite sign, as ``ihfft`` needs it."""
    axes, lengths = axes_of(a, s, axes)
    x, sign, factor = traced(a), 1 if inverse else -1, normed(norm, inverse)
    if x.dtype.kind == "c":
        raise TypeError(at_place("np.fft.rfft takes real arrays; use np.fft.fft"))
    if not axes:
        raise ValueError(at_place("a transform of a real array needs an axis"))
    lengths = _lengths(x, lengths, axes)
    if axes[-1] == max(axes) and len(set(axes)) == len(axes):
        return half_spectrum(_fitted(x, lengths, axes), axes, sign, factor)
    found = half_spectrum(_fitted(x, lengths[-1:], axes[-1:]), axes[-1:], sign, factor)
    for n, axis in reversed(list(zip(lengths[:-1], axes[:-1], strict=True))):
        found = spectrum(_fitted(found, [n], [axis]), [axis], sign, factor)
    return found


def inverse_real_transform(a: Any, s: Any, axes: Any, norm: Any, inverse: bool = True) -> Array:
    """``irfftn``; and the same of opposite sign, as ``hfft`` needs it."""
    axes, lengths = axes_of(a, s, axes)
    x, sign, factor = complexed(floats(a)), 1 if inverse else -1, normed(norm, inverse)
    if not axes:
        raise ValueError(at_place("a transform to a real array needs an axis"))
    last = axes[-1]
    length = length_of(lengths[-1], 2 * (x.shape[last] - 1))
    lengths = _lengths(x, lengths[:-1], axes[:-1])
    if last == max(axes) and len(set(axes)) == len(axes):
        x = resized(_fitted(x, lengths, axes[:-1]), length // 2 + 1, last)
        return from_half(x, length, axes, sign, factor)
    for n, axis in zip(lengths, axes[:-1], strict=True):
        x = spectrum(_fitted(x, [n], [axis]), [axis], sign, factor)
    return from_half(resized(x, length // 2 + 1, last), length, [last], sign, factor)


def _one_axis(function: Any, body: Function, inverse: bool) -> None:
    @transforms(function)
    def transformed(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Array:
        return body(a, None if n is None else (n,), (axis,), norm, inverse)


def _several_axes(function: Any, body: Function, default: Any, inverse: bool) -> None:
    @transforms(function)
    def transformed(a: Any, s: Any = None, axes: Any = default, norm: Any = None) -> Array:
        return body(a, s, axes, norm, inverse)


#: Name, body, and whether it is an inverse; NumPy has the last two for one axis alone.
BODIES: list[tuple[str, Function, bool]] = [
    ("fft", whole_transform, False),
    ("ifft", whole_transform, True),
    ("rfft", real_transform, False),
    ("irfft", inverse_real_transform, True),
    ("hfft", inverse_real_transform, False),
    ("ihfft", real_transform, True),
]
for _name, _body, _inverse in BODIES:
    _one_axis(getattr(np.fft, _name), _body, _inverse)
    if "h" not in _name:
        _several_axes(getattr(np.fft, f"{_name}2"), _body, (-2, -1), _inverse)
        _several_axes(getattr(np.fft, f"{_name}n"), _body, None, _inverse)


def _rolled(x: Any, axes: Any, half: Any) -> Any:
    rank = np.ndim(x)
    axes = range(rank) if axes is None else ([axes] if np.ndim(axes) == 0 else axes)
    shape = np.shape(x)
    shifts = [half(shape[k]) for k in axes]
    return np.roll(x, shifts, list(axes)) if rank > 1 else np.roll(x, sum(shifts))


@transforms(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    return _rolled(x, axes, lambda n: n // 2)


@transforms(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    return _rolled(x, axes, lambda n: -(n // 2))
