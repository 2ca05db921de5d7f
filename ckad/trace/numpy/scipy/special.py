"""Functions of ``scipy.special`` that are written in Python: formulas in its ufuncs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special

from ckad.trace.arrays import Array, own, paired, retyped, traced
from ckad.trace.dispatch import implements, reject


def _floats(x: Any) -> Array:
    array = traced(x)
    return array if array.dtype.kind == "f" else retyped(array, np.float64)


def _largest(x: Array, axis: Any) -> Array:
    """The largest elements along ``axis``, 0 in place of infinities."""
    top = np.max(x, axis=axis, keepdims=True)
    return np.where(np.isfinite(top), top, 0.0)


@implements(scipy.special.logsumexp)
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Array:
    reject(return_sign, "scipy.special.logsumexp with return_sign=")
    x = _floats(a)
    if b is None:
        weights: Any = 1.0
    else:
        x, weights = np.broadcast_arrays(x, traced(b))
        x = np.where(np.equal(weights, 0), -np.inf, x)
    top = _largest(x, axis)
    total = np.log(np.sum(weights * np.exp(x - top), axis=axis, keepdims=True)) + top
    return own(total if keepdims else np.squeeze(total, _axes(x, axis)))


def _axes(x: Array, axis: Any) -> Any:
    return tuple(range(x.ndim)) if axis is None else axis


@implements(scipy.special.softmax)
def softmax(x: Any, axis: Any = None) -> Array:
    array = _floats(x)
    power = np.exp(array - _largest(array, axis))
    return power / np.sum(power, axis=axis, keepdims=True)


@implements(scipy.special.log_softmax)
def log_softmax(x: Any, axis: Any = None) -> Array:
    array = _floats(x)
    shifted = array - _largest(array, axis)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@implements(scipy.special.multigammaln)
def multigammaln(a: Any, d: Any) -> Array:
    """NaN where SciPy raises ValueError."""
    x = _floats(a)
    total: Any = 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(int(d)):
        total = total + scipy.special.gammaln(x - 0.5 * j)
    return own(np.where(x > 0.5 * (d - 1), total, np.nan))


@implements(scipy.special.lambertw)
def lambertw(z: Any, k: Any = 0, tol: float = 1e-8) -> Array:
    """Of real numbers, the branches 0 and -1: NaN where their values are complex.

    Halley's steps (Corless et al., 1996, eq. 5.9), each of which cubes the error, from the series
    at the branch point (4.22) or from logarithms (4.18; Iacono and Boyd, 2017).
    """
    x = _floats(z)
    reject(
        not isinstance(k, (int, np.integer)) or k not in (0, -1),
        "scipy.special.lambertw of other branches",
    )
    inside = np.greater_equal(x, -1 / math.e)
    if k == 0:
        near = np.less(x, 0.25)
        size = np.log1p(np.where(near, 1.0, x))
        far = size * (1 - np.log1p(size) / (2 + size))
    else:
        inside, near = np.logical_and(inside, np.less(x, 0)), np.less(x, -0.25)
        size = np.log(-np.where(near | ~inside, -0.1, x))
        far = size - np.log(-size)
    p = np.sqrt(2 * np.maximum(math.e * np.where(near & inside, x, 0.0) + 1, 0)) * (1 + 2 * k)
    w = np.where(near, -1 + p - p**2 / 3 + 11 / 72 * p**3, far)
    for _ in range(5):
        power = np.exp(w)
        error = w * power - x
        w = w - error / (power * (w + 1) - (w + 2) * error / (2 * w + 2))
    return paired(np.where(inside, w, np.nan), np.where(inside, np.zeros_like(x), np.nan))
