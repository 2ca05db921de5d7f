"""Moments, means and correlations of samples by ``scipy.stats``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.stats
from scipy import special

from ckad.place import at_place
from ckad.trace.arrays import Array, doubles, own, retyped, traced
from ckad.trace.dispatch import implements, reject

_Correlation: Any = type(scipy.stats.pearsonr([0.0, 1.0, 1.0], [0.0, 1.0, 2.0]))


def _sample(a: Any, axis: Any, nan_policy: str) -> tuple[Array, Any]:
    """Floats, and the axis; all of them as one line where that is None."""
    reject(nan_policy != "propagate", f"samples of scipy.stats with nan_policy={nan_policy!r}")
    array = traced(a)
    x = array if array.dtype.kind == "f" else retyped(array, np.float64)
    return (np.reshape(x, -1), 0) if axis is None else (x, axis)


def _central(x: Array, order: int, axis: Any, keepdims: bool = False) -> Any:
    return np.mean((x - np.mean(x, axis, keepdims=True)) ** order, axis, keepdims=keepdims)


@implements(scipy.stats.moment)
def moment(
    a: Any, order: int = 1, axis: Any = 0, nan_policy: str = "propagate", *, center: Any = None,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    reject(np.ndim(order) != 0, "scipy.stats.moment of several orders")
    x, k = _sample(a, axis, nan_policy)
    if center is not None:
        return own(np.mean((x - center) ** order, k, keepdims=keepdims))
    return own(_central(x, order, k, keepdims))


@implements(scipy.stats.skew)
def skew(
    a: Any, axis: Any = 0, bias: bool = True, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    x, k = _sample(a, axis, nan_policy)
    n = x.shape[k]
    found = _central(x, 3, k, keepdims) / _central(x, 2, k, keepdims) ** 1.5
    return own(found if bias or n < 3 else found * (math.sqrt(n * (n - 1.0)) / (n - 2.0)))


@implements(scipy.stats.kurtosis)
def kurtosis(
    a: Any, axis: Any = 0, fisher: bool = True, bias: bool = True, nan_policy: str = "propagate",
    *, keepdims: bool = False,
) -> Array:  # fmt: skip
    x, k = _sample(a, axis, nan_policy)
    n = x.shape[k]
    found = _central(x, 4, k, keepdims) / _central(x, 2, k, keepdims) ** 2
    if not bias and n > 3:
        found = ((n * n - 1.0) * found - 3.0 * (n - 1.0) ** 2) / ((n - 2.0) * (n - 3.0)) + 3.0
    return own(found - 3.0 if fisher else found)


@implements(scipy.stats.zmap)
def zmap(
    scores: Any, compare: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate"
) -> Array:
    _sample(compare, axis, nan_policy)
    x, by = traced(scores) * 1.0, traced(compare) * 1.0
    return own((x - np.mean(by, axis, keepdims=True)) / np.std(by, axis, ddof=ddof, keepdims=True))


@implements(scipy.stats.zscore)
def zscore(a: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Array:
    return zmap(a, a, axis, ddof, nan_policy)


@implements(scipy.stats.gmean)
def gmean(
    a: Any, axis: Any = 0, dtype: Any = None, weights: Any = None, *,
    nan_policy: str = "propagate", keepdims: bool = False,
) -> Array:  # fmt: skip
    x, k = _sample(a if dtype is None else retyped(traced(a), dtype), axis, nan_policy)
    reject(weights is not None and keepdims, "scipy.stats.gmean with weights= and keepdims=")
    if weights is not None:
        return own(np.exp(np.average(np.log(x), k, weights)))
    return own(np.exp(np.mean(np.log(x), k, keepdims=keepdims)))


@implements(scipy.stats.hmean)
def hmean(
    a: Any, axis: Any = 0, dtype: Any = None, *, weights: Any = None,
    nan_policy: str = "propagate", keepdims: bool = False,
) -> Array:  # fmt: skip
    x, k = _sample(a if dtype is None else retyped(traced(a), dtype), axis, nan_policy)
    reject(weights is not None, "scipy.stats.hmean with weights=")
    below = np.any(x < 0.0, k, keepdims=keepdims)
    return own(np.where(below, np.nan, 1.0 / np.mean(1.0 / x, k, keepdims=keepdims)))


@implements(scipy.stats.sem)
def sem(
    a: Any, axis: Any = 0, ddof: int = 1, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    x, k = _sample(a, axis, nan_policy)
    return own(np.std(x, k, ddof=ddof, keepdims=keepdims) / math.sqrt(x.shape[k]))


@implements(scipy.stats.variation)
def variation(
    a: Any, axis: Any = 0, nan_policy: str = "propagate", ddof: int = 0, *,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    x, k = _sample(a, axis, nan_policy)
    return own(np.std(x, k, ddof=ddof, keepdims=keepdims) / np.mean(x, k, keepdims=keepdims))


@implements(scipy.stats.iqr)
def iqr(
    x: Any, axis: Any = None, rng: Any = (25, 75), scale: Any = 1.0,
    nan_policy: str = "propagate", interpolation: str = "linear", keepdims: bool = False,
) -> Array:  # fmt: skip
    reject(interpolation != "linear", f"scipy.stats.iqr with interpolation={interpolation!r}")
    reject(isinstance(scale, str), "scipy.stats.iqr with a named scale=")
    array, k = _sample(x, axis, nan_policy)
    low, high = sorted(rng)
    between = np.percentile(array, high, k) - np.percentile(array, low, k)
    reject(keepdims, "scipy.stats.iqr with keepdims=")
    return own(between / scale)


@implements(scipy.stats.median_abs_deviation)
def median_abs_deviation(
    x: Any, axis: Any = 0, center: Any = None, scale: Any = 1.0, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    other = center is not None and center is not np.median
    reject(other, "scipy.stats.median_abs_deviation with center=")
    reject(isinstance(scale, str), "scipy.stats.median_abs_deviation with a named scale=")
    reject(keepdims, "scipy.stats.median_abs_deviation with keepdims=")
    array, k = _sample(x, axis, nan_policy)
    apart = np.abs(array - np.median(array, k, keepdims=True))
    return own(np.median(apart, k) / scale)


@implements(scipy.stats.entropy)
def entropy(
    pk: Any, qk: Any = None, base: Any = None, axis: Any = 0, *, nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:  # fmt: skip
    p, k = _sample(pk, axis, nan_policy)
    p = p / np.sum(p, k, keepdims=True)
    if qk is None:
        terms = special.entr(p)
    else:
        q = _sample(qk, axis, nan_policy)[0]
        p, q = np.broadcast_arrays(p, q / np.sum(q, k, keepdims=True))
        terms = special.rel_entr(p, q)
    total = np.sum(terms, k, keepdims=keepdims)
    return own(total if base is None else total / np.log(base))


@implements(scipy.stats.pearsonr)
def pearsonr(x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None,
             axis: Any = 0) -> Any:  # fmt: skip
    reject(alternative != "two-sided" or method is not None,
           "scipy.stats.pearsonr with alternative= or method=")  # fmt: skip
    x, y = doubles(x), doubles(y)
    if x.ndim != 1 or x.shape != y.shape or x.size < 3:
        raise ValueError(
            at_place(f"pearsonr takes two lines of 3 numbers or more, not {x.shape}, {y.shape}")
        )
    dx, dy = x - np.mean(x), y - np.mean(y)
    r = np.clip(np.sum(dx * dy) / np.sqrt(np.sum(dx * dx) * np.sum(dy * dy)), -1.0, 1.0)
    half = 0.5 * x.size - 1.0
    both = 2.0 * special.betainc(half, half, 0.5 * (1.0 - np.abs(r)))
    return _Correlation(
        statistic=r, pvalue=both, alternative=alternative, n=x.size, x=x, y=y, axis=axis
    )
