"""Smoothing and derivatives of images along their axes, by ``scipy.ndimage``'s kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.ndimage

from ckad.place import at_place
from ckad.trace.arrays import Array, called, known, stored, traced
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import implements, reject
from ckad.trace.numpy.scipy.filters import correlate1d


def axes_of(x: Array, axes: Any) -> list[int]:
    """The axes that a filter runs along, from the front; all of them if none are named."""
    return (
        list(range(x.ndim)) if axes is None else [axis_of(k, x.ndim) for k in np.atleast_1d(axes)]
    )


def per_axis(given: Any, axes: Sequence[int]) -> list[Any]:
    """One for each axis of what may be one for all."""
    if isinstance(given, str) or not np.iterable(given):
        return [given] * len(axes)
    found = list(given)
    if len(found) != len(axes):
        raise RuntimeError(at_place(f"{len(found)} values for {len(axes)} axes of a filter"))
    return found


# --- means -------------------------------------------------------------------------------------


@implements(scipy.ndimage.uniform_filter1d)
def uniform_filter1d(
    input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect",
    cval: Any = 0.0, origin: int = 0,
) -> Array:  # fmt: skip
    return correlate1d(input, np.full(size, 1 / size), axis, output, mode, cval, origin)


@implements(scipy.ndimage.uniform_filter)
def uniform_filter(
    input: Any, size: Any = 3, output: Any = None, mode: Any = "reflect", cval: Any = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Array:  # fmt: skip
    x = traced(input)
    along = axes_of(x, axes)
    given = (per_axis(v, along) for v in (size, mode, origin))
    for k, n, outside, place in zip(along, *given, strict=True):
        x = uniform_filter1d(x, n, k, None, outside, cval, place)
    return stored(x, output)


def _gaussian(sigma: Any, order: int, radius: int) -> Any:
    """The weights of `gaussian_filter1d`: what it makes of a single one."""
    width = known(sigma)
    if width is not None:
        one = np.zeros(2 * radius + 1)
        one[radius] = 1.0
        options = {"order": order, "radius": radius, "mode": "constant"}
        return scipy.ndimage.gaussian_filter1d(one, float(width), **options)[::-1]
    reject(order, "scipy.ndimage.gaussian_filter with order= and a traced sigma")
    weights = np.exp(-0.5 / (sigma * sigma) * np.arange(-radius, radius + 1) ** 2)
    return weights / np.sum(weights)


@implements(scipy.ndimage.gaussian_filter1d)
def gaussian_filter1d(
    input: Any, sigma: Any, axis: int = -1, order: int = 0, output: Any = None,
    mode: str = "reflect", cval: Any = 0.0, truncate: float = 4.0, *, radius: int | None = None,
) -> Array:  # fmt: skip
    width = known(sigma)
    reject(radius is None and width is None, "scipy.ndimage.gaussian_filter with a traced sigma, "
           "which decides how long its weights are, and without radius=")  # fmt: skip
    if radius is None:
        assert width is not None
        radius = int(truncate * float(width) + 0.5)
    return correlate1d(input, _gaussian(sigma, order, radius), axis, output, mode, cval)


@implements(scipy.ndimage.gaussian_filter)
def gaussian_filter(
    input: Any, sigma: Any, order: Any = 0, output: Any = None, mode: Any = "reflect",
    cval: Any = 0.0, truncate: float = 4.0, *, radius: Any = None, axes: Any = None,
) -> Array:  # fmt: skip
    x = traced(input)
    along = axes_of(x, axes)
    widths = per_axis(traced(sigma) if known(sigma) is None else known(sigma), along)
    given = (per_axis(v, along) for v in (order, mode, radius))
    for k, width, turns, outside, reach in zip(along, widths, *given, strict=True):
        if known(width) is None or float(width) > 1e-15:
            x = gaussian_filter1d(x, width, k, turns, None, outside, cval, truncate, radius=reach)
    return stored(x, output)


# --- first derivatives -------------------------------------------------------------------------


def _across(function: Any, weights: Sequence[float]) -> None:
    """A difference along an axis of what is added up along the others."""

    @implements(function)
    def filtered(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect",
                 cval: Any = 0.0) -> Array:  # fmt: skip
        x = traced(input)
        k = axis_of(axis, x.ndim)
        outside = per_axis(mode, range(x.ndim))
        x = correlate1d(x, [-1.0, 0.0, 1.0], k, None, outside[k], cval)
        for other in (i for i in range(x.ndim) if i != k):
            x = correlate1d(x, weights, other, None, outside[other], cval)
        return stored(x, output)


_across(scipy.ndimage.sobel, [1.0, 2.0, 1.0])
_across(scipy.ndimage.prewitt, [1.0, 1.0, 1.0])

Derivative = Callable[..., Any]


def _by_axes(x: Array, derivative: Derivative, mode: Any, cval: Any, axes: Any, *more: Any,
             **options: Any) -> list[Any]:  # fmt: skip
    along = axes_of(x, axes)
    outside = per_axis(mode, along)
    pairs = zip(along, outside, strict=True)
    return [called(derivative, x, k, None, m, cval, *more, **options) for k, m in pairs]


def _length(parts: Sequence[Any]) -> Array:
    """Of the vectors with these parts, with derivative 0 where it is 0."""
    return np.linalg.norm(np.stack(parts), axis=0)


@implements(scipy.ndimage.generic_gradient_magnitude)
def generic_gradient_magnitude(
    input: Any, derivative: Derivative, output: Any = None, mode: Any = "reflect",
    cval: Any = 0.0, extra_arguments: Any = (), extra_keywords: Any = None, *, axes: Any = None,
) -> Array:  # fmt: skip
    more = {} if extra_keywords is None else extra_keywords
    parts = _by_axes(traced(input), derivative, mode, cval, axes, *extra_arguments, **more)
    return stored(_length(parts), output)


# --- second derivatives ------------------------------------------------------------------------


def _second(x: Any, axis: int, output: Any, mode: str, cval: Any) -> Array:
    return correlate1d(x, [1.0, -2.0, 1.0], axis, output, mode, cval)


@implements(scipy.ndimage.generic_laplace)
def generic_laplace(
    input: Any, derivative2: Derivative, output: Any = None, mode: Any = "reflect",
    cval: Any = 0.0, extra_arguments: Any = (), extra_keywords: Any = None, *, axes: Any = None,
) -> Array:  # fmt: skip
    more = {} if extra_keywords is None else extra_keywords
    parts = _by_axes(traced(input), derivative2, mode, cval, axes, *extra_arguments, **more)
    return stored(sum(parts[1:], parts[0]), output)


@implements(scipy.ndimage.laplace)
def laplace(
    input: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None
) -> Array:
    return generic_laplace(input, _second, output, mode, cval, axes=axes)


# --- of smoothed images ------------------------------------------------------------------------


def _of_gaussian(function: Any, order: int, join: Callable[[list[Array]], Array]) -> None:
    """What the derivatives of this order along each axis are together, of images smoothed along
    all."""

    @implements(function)
    def filtered(
        input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *,
        axes: Any = None, **options: Any,
    ) -> Array:  # fmt: skip
        x = traced(input)
        along = axes_of(x, axes)
        orders = [[order if i == k else 0 for i in along] for k in along]
        options |= {"mode": mode, "cval": cval, "axes": along}
        return stored(join([gaussian_filter(x, sigma, o, **options) for o in orders]), output)


_of_gaussian(scipy.ndimage.gaussian_gradient_magnitude, 1, _length)
_of_gaussian(scipy.ndimage.gaussian_laplace, 2, lambda parts: sum(parts[1:], parts[0]))
