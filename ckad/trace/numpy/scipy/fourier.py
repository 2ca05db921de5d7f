"""``scipy.fft`` and the transforms of ``scipy.fftpack``: NumPy's, and cosines and sines.

A transform of cosines or sines is half of a spectrum of a real array that is continued evenly or
oddly (M. Frigo & S. G. Johnson, "The design and implementation of FFTW3", 2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.fft
import scipy.fftpack

from ckad.place import at_place
from ckad.rules.routines.fourier.body import Norm
from ckad.trace.arrays import Array, retyped, traced
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import Function
from ckad.trace.numpy.fourier import (
    BODIES,
    axes_of,
    fftshift,
    half_spectrum,
    ifftshift,
    length_of,
    normed,
    resized,
    transforms,
    whole_transform,
)

# --- the same as NumPy's, but for options that change no numbers ---------------------------------


def _one_axis(function: Any, body: Function, inverse: bool) -> None:
    @transforms(function)
    def transformed(
        x: Any,
        n: Any = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Array:
        return body(x, *_listed(n, (axis,)), norm, inverse)


def _several_axes(function: Any, body: Function, default: Any, inverse: bool) -> None:
    @transforms(function)
    def transformed(
        x: Any,
        s: Any = None,
        axes: Any = default,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Array:
        lengths, axes = _listed(s, axes)
        if axes is not None and len({axis_of(axis, np.ndim(x)) for axis in axes}) < len(axes):
            raise ValueError(at_place("all axes must be unique"))
        return body(x, lengths, axes, norm, inverse)


def _listed(s: Any, axes: Any) -> tuple[Any, Any]:
    """Single numbers are lists of one."""
    first, second = ((v,) if v is not None and np.ndim(v) == 0 else v for v in (s, axes))
    return first, second


for _name, _body, _inverse in BODIES:
    _one_axis(getattr(scipy.fft, _name), _body, _inverse)
    _several_axes(getattr(scipy.fft, f"{_name}2"), _body, (-2, -1), _inverse)
    _several_axes(getattr(scipy.fft, f"{_name}n"), _body, None, _inverse)


def _older(name: str, inverse: bool) -> None:
    """``scipy.fftpack``: without ``norm``."""

    @transforms(getattr(scipy.fftpack, name))
    def one(x: Any, n: Any = None, axis: int = -1, overwrite_x: bool = False) -> Array:
        return whole_transform(x, *_listed(n, (axis,)), None, inverse)

    for over, default in (("n", None), ("2", (-2, -1))):

        @transforms(getattr(scipy.fftpack, name + over))
        def several(x: Any, shape: Any = None, axes: Any = default, overwrite_x: bool = False
                    ) -> Array:  # fmt: skip
            return whole_transform(x, *_listed(shape, axes), None, inverse)


_older("fft", inverse=False)
_older("ifft", inverse=True)

transforms(scipy.fft.fftshift)(fftshift)
transforms(scipy.fft.ifftshift)(ifftshift)

# --- cosines and sines ---------------------------------------------------------------------------

#: type -> that of the inverse
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
#: Lines of up to so many elements are multiplied by a matrix, which takes less time then; and of
#: how many, where no transform does eight lines at once: their length has other factors than these.
_SHORT, _UNEVEN, _FACTORS = 32, 200, (2, 3, 5)


def _on_last(x: Array, type: int, is_sine: bool) -> Array:
    """The sums of types 1 to 4 along the last axis, as SciPy defines them, not normalised.

    With the elements at places j + a, the frequencies at k + b, on a period of 2 m: all are the
    real or imaginary parts of exp(-i pi (j + a) (k + b) / m) summed.
    """
    n = x.shape[-1]
    if type == 1 and not is_sine:
        if n < 2:
            raise ValueError(at_place("DCT-I is not defined for size < 2"))
        even = np.concatenate([x, x[..., -2:0:-1]], -1)
        return _half(even).real
    if type == 1:
        zero = np.zeros_like(x[..., :1])
        odd = np.concatenate([zero, x, zero, -x[..., ::-1]], -1)
        return -_half(odd).imag[..., 1:-1]
    if type == 2:
        return _second(x, is_sine)
    if type == 3:
        return _third(x, is_sine)
    # elements and frequencies in the middle of their intervals
    turned = x * np.exp(-0.5j * np.pi * np.arange(n) / n)
    whole = np.fft.fft(turned, 2 * n)[..., :n]
    found = 2 * whole * np.exp(-0.25j * np.pi * (2 * np.arange(n) + 1) / n)
    return -found.imag if is_sine else found.real


def _half(x: Array) -> Array:
    return half_spectrum(x, [x.ndim - 1], -1, Norm.NONE)


def _second(x: Array, is_sine: bool) -> Array:
    """J. Makhoul, "A fast cosine transform in one and two dimensions", 1980."""
    n = x.shape[-1]
    if is_sine:  # a cosine transform of alternating signs, from behind
        return _second(x * (-1.0) ** np.arange(n), False)[..., ::-1]
    shuffled = np.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1)
    turned = 2 * _half(shuffled) * np.exp(-0.5j * np.pi * np.arange(n // 2 + 1) / n)
    return np.concatenate([turned.real, -turned.imag[..., (n - 1) // 2 : 0 : -1]], -1)


def _third(x: Array, is_sine: bool) -> Array:
    """The inverse of type 2, times 2 n."""
    n = x.shape[-1]
    if is_sine:
        return _third(x[..., ::-1], False) * (-1.0) ** np.arange(n)
    behind = np.concatenate([np.zeros_like(x[..., :1]), x[..., :0:-1]], -1)[..., : n // 2 + 1]
    turned = (x[..., : n // 2 + 1] - 1j * behind) * np.exp(0.5j * np.pi * np.arange(n // 2 + 1) / n)
    shuffled = np.fft.irfft(turned, n, norm="forward")
    found = np.zeros(x.shape, x.dtype, like=x)
    found[..., ::2] = shuffled[..., : (n + 1) // 2]
    found[..., 1::2] = shuffled[..., (n + 1) // 2 :][..., ::-1]
    return found


def _trigonometric(
    x: Array, type: int, axis: int, norm: Any, is_sine: bool, inverse: bool, orthogonalize: Any
) -> Array:
    """Along one axis; an orthogonal transform scales its first or last elements too."""
    orthogonal = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    x = np.moveaxis(x, axis, -1)
    n = x.shape[-1]
    kind = _INVERSE[type] if inverse else type
    if _is_by_matrix(kind, n, is_sine):
        name = f"{'i' if inverse else ''}{'dst' if is_sine else 'dct'}"
        about = {"norm": norm, "orthogonalize": orthogonalize}
        matrix = getattr(scipy.fft, name)(np.eye(n), type, **about)
        product = np.reshape(np.reshape(x, (-1, n)) @ matrix, x.shape)
        return np.moveaxis(product, -1, axis)
    before, after = _ends(kind, n, is_sine) if orthogonal else (None, None)
    found = _on_last(x if before is None else x * before, kind, is_sine)
    found = found if after is None else found * after
    period = 2 * (n + (1 if is_sine else -1) if type == 1 else n)
    by = {Norm.NONE: 1.0, Norm.FULL: 1 / period, Norm.ROOT: period**-0.5}[normed(norm, inverse)]
    return np.moveaxis(found * by, -1, axis)


def _is_by_matrix(type: int, n: int, is_sine: bool) -> bool:
    length = {1: 2 * (n + (1 if is_sine else -1)), 4: 2 * n}.get(type, n)
    if not 1 < n <= _UNEVEN:
        return False
    for factor in _FACTORS:
        while length % factor == 0:
            length //= factor
    return n <= _SHORT or length > 1


def _ends(type: int, n: int, is_sine: bool) -> tuple[np.ndarray | None, np.ndarray | None]:
    """What elements are multiplied by, before and after, so that the matrix is orthogonal."""
    scale = np.ones(n)
    if type == 1 and not is_sine:
        scale[[0, -1]] = np.sqrt(2)
        return scale, 1 / scale
    if type in (2, 3):
        scale[-1 if is_sine else 0] = np.sqrt(2)
    return (None, 1 / scale) if type == 2 else ((scale, None) if type == 3 else (None, None))


def _checked(x: Any, type: int) -> Array:
    if type not in _INVERSE:
        raise ValueError(at_place(f"Invalid type ({type}): it is 1, 2, 3 or 4"))
    x = traced(x)
    if x.dtype.kind == "c":
        raise TypeError(at_place("transforms of cosines and sines take real arrays"))
    return x if x.dtype.kind == "f" else retyped(x, np.float64)


def _cosines(name: str, is_sine: bool, inverse: bool) -> None:
    @transforms(getattr(scipy.fft, name))
    def one(
        x: Any,
        type: int = 2,
        n: Any = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        orthogonalize: Any = None,
    ) -> Array:
        return _over_axes(x, type, *_listed(n, (axis,)), norm, is_sine, inverse, orthogonalize)

    @transforms(getattr(scipy.fft, f"{name}n"))
    def several(
        x: Any,
        type: int = 2,
        s: Any = None,
        axes: Any = None,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        orthogonalize: Any = None,
    ) -> Array:
        return _over_axes(x, type, *_listed(s, axes), norm, is_sine, inverse, orthogonalize)

    @transforms(getattr(scipy.fftpack, name))
    def older(
        x: Any,
        type: int = 2,
        n: Any = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: bool = False,
    ) -> Array:
        # without a norm, the older inverse is as large as the transform
        norm = "ortho" if norm == "ortho" else "forward" if inverse else None
        return _over_axes(x, type, *_listed(n, (axis,)), norm, is_sine, inverse, None)


def _over_axes(
    x: Any,
    type: int,
    s: Any,
    axes: Sequence[int] | None,
    norm: Any,
    is_sine: bool,
    inverse: bool,
    orthogonalize: Any,
) -> Array:
    given = _checked(x, type)
    x = retyped(given, np.float64)
    found, lengths = axes_of(x, s, axes)
    for n, axis in zip(lengths, found, strict=True):
        x = resized(x, length_of(n, x.shape[axis]), axis)
        x = _trigonometric(x, type, axis, norm, is_sine, inverse, orthogonalize)
    return retyped(x, given.dtype)


for _name, _is_sine in (("dct", False), ("dst", True)):
    _cosines(_name, _is_sine, inverse=False)
    _cosines(f"i{_name}", _is_sine, inverse=True)
