"""Covariances, and reductions that leave NaN out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import Array, own, promoted, reshaped, retyped, safe_sqrt, stored, traced
from ckad.trace.dispatch import implements, reject
from ckad.trace.numpy.norms import norm

# --- covariances -------------------------------------------------------------------------------


@implements(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Array:
    reject(fweights is not None, "np.cov with fweights=")
    x = _variables(m, y, rowvar, dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    n = x.shape[1]
    if aweights is None:
        centred = x - np.mean(x, 1, keepdims=True)
        scatter, freedom = np.dot(centred, np.transpose(centred)), max(n - ddof, 0)
    else:
        w = retyped(aweights, x.dtype)
        mean, total = np.average(x, 1, w, returned=True)
        total = total[0]
        centred = x - reshaped(mean, (x.shape[0], 1))
        scatter = np.dot(centred * w, np.transpose(centred))
        freedom = total - ddof * np.sum(w * w) / total if ddof else total
    return np.squeeze(np.true_divide(scatter, freedom))


def _variables(m: Any, y: Any, rowvar: bool, dtype: Any) -> Array:
    """One variable per row."""
    parts = [np.atleast_2d(traced(v)) for v in (m, y) if v is not None]
    if any(p.ndim > 2 for p in parts):
        raise ValueError(at_place("np.cov takes arrays of at most 2 dimensions"))
    parts = [
        np.transpose(p) if not rowvar and traced(v).ndim > 1 else p
        for p, v in zip(parts, (m, y), strict=False)
    ]
    *parts, _ = promoted(*parts, np.zeros((), np.float64))
    x = np.concatenate(parts, 0)
    return x if dtype is None else retyped(x, dtype)


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.shape:
        return c / c
    spread = np.sqrt(np.diagonal(c))
    return np.clip(c / reshaped(spread, (spread.size, 1)) / spread, -1, 1)


# --- without NaN -------------------------------------------------------------------------------


def _without_nan(function: Callable[..., Array], neutral: float) -> Callable[..., Array]:
    def reduce(a: Any, *args: Any, **options: Any) -> Array:
        x = traced(a)
        kept = np.where(np.isnan(x), np.asarray(neutral, x.dtype), x) if x.dtype.kind == "f" else x
        return function(kept, *args, **options)

    return reduce


implements(np.nanprod)(_without_nan(np.prod, 1))
implements(np.nancumsum)(_without_nan(np.cumsum, 0))
implements(np.nancumprod)(_without_nan(np.cumprod, 1))


def _nan_extremum(function: Callable[..., Array], worst: float) -> Callable[..., Array]:
    def reduce(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Array:
        x = traced(a)
        if x.dtype.kind != "f":
            return function(x, axis, out, keepdims)
        best = _without_nan(function, worst)(x, axis, keepdims=keepdims)
        nothing = np.all(np.isnan(x), axis, keepdims=keepdims)
        return stored(_like(np.where(nothing, np.asarray(np.nan, x.dtype), best)), out)

    return reduce


def _like(x: Array) -> Array:
    return x if x.shape else own(x)


implements(np.nanmax)(_nan_extremum(np.max, -np.inf))
implements(np.nanmin)(_nan_extremum(np.min, np.inf))


@implements(np.nanvar)
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
) -> Array:
    x = traced(a)
    if x.dtype.kind != "f":
        return np.var(x, axis, dtype, out, ddof, keepdims)
    there = np.logical_not(np.isnan(x))
    kept = np.where(there, x, np.asarray(0, x.dtype))
    spread = np.var(kept, axis, dtype, None, ddof, keepdims, where=there)
    count = np.sum(there, axis, keepdims=keepdims)
    return stored(_like(np.where(count > ddof, spread, np.asarray(np.nan, spread.dtype))), out)


@implements(np.nanstd)
def nanstd(a: Any, *args: Any, out: Any = None, **options: Any) -> Array:
    return stored(safe_sqrt(nanvar(a, *args, **options)), out)


# --- other names -------------------------------------------------------------------------------


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    return norm(x, ord, (-2, -1), keepdims)


def _nan_position(function: Callable[..., Array], worst: float) -> Callable[..., Array]:
    def position(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Array:
        return _without_nan(function, worst)(a, axis, out, keepdims=keepdims)

    return position


implements(np.nanargmax)(_nan_position(np.argmax, -np.inf))
implements(np.nanargmin)(_nan_position(np.argmin, np.inf))
