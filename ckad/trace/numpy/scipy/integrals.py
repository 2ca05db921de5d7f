"""SciPy's integrals of samples; loaded when needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.integrate

from ckad.place import at_place
from ckad.trace.arrays import Array, known, traced
from ckad.trace.axes import along, axis_of
from ckad.trace.dispatch import implements, reject
from ckad.trace.numpy.calculus import trapezoid

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
