"""Functions of ``scipy.special`` that are written in Python: formulas in its ufuncs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special

from ckad.trace.arrays import Array, own, retyped, traced
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
