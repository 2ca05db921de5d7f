"""Covariances, and reductions that leave NaN out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.dispatch import implements, reject
from ckad.trace.numpy.norms import norm
from ckad.trace.primitives.cumulative import cumprod, cumsum
from ckad.trace.primitives.join import concatenate
from ckad.trace.primitives.products import dot
from ckad.trace.primitives.reduce import (
    all_,
    argmax,
    argmin,
    average,
    max_,
    min_,
    prod,
    safe_sqrt,
    sum_,
    var,
)
from ckad.trace.primitives.shape import atleast_2d, diagonal, squeeze, transpose
from ckad.trace.values.apply import astype, finish, promote, reshape_value
from ckad.trace.values.tracer import Tracer, fresh, lift, value

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
) -> Tracer:
    reject(fweights is not None, "np.cov with fweights=")
    x = _variables(m, y, rowvar, dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    n = x.shape[1]
    if aweights is None:
        centred = x - np.mean(x, 1, keepdims=True)
        scatter, freedom = dot(centred, transpose(centred)), max(n - ddof, 0)
    else:
        w = astype(aweights, x.dtype)
        mean, total = average(x, 1, w, returned=True)
        total = total[0]
        centred = x - reshape_value(mean, (x.shape[0], 1))
        scatter = dot(centred * w, transpose(centred))
        freedom = total - ddof * sum_(w * w) / total if ddof else total
    return squeeze(np.true_divide(scatter, freedom))


def _variables(m: Any, y: Any, rowvar: bool, dtype: Any) -> Tracer:
    """One variable per row."""
    parts = [atleast_2d(lift(v)) for v in (m, y) if v is not None]
    if any(p.ndim > 2 for p in parts):
        raise ValueError(at_place("np.cov takes arrays of at most 2 dimensions"))
    parts = [
        transpose(p) if not rowvar and lift(v).ndim > 1 else p
        for p, v in zip(parts, (m, y), strict=False)
    ]
    *parts, _ = promote(*parts, np.zeros((), np.float64))
    x = concatenate(parts, 0)
    return x if dtype is None else astype(x, dtype)


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Tracer:
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.shape:
        return c / c
    spread = np.sqrt(diagonal(c))
    return np.clip(c / reshape_value(spread, (spread.size, 1)) / spread, -1, 1)


# --- without NaN -------------------------------------------------------------------------------


def _without_nan(function: Callable[..., Tracer], neutral: float) -> Callable[..., Tracer]:
    def reduce(a: Any, *args: Any, **options: Any) -> Tracer:
        x = lift(a)
        kept = np.where(np.isnan(x), np.asarray(neutral, x.dtype), x) if x.type.is_float else x
        return function(kept, *args, **options)

    return reduce


implements(np.nanprod)(_without_nan(prod, 1))
implements(np.nancumsum)(_without_nan(cumsum, 0))
implements(np.nancumprod)(_without_nan(cumprod, 1))


def _nan_extremum(function: Callable[..., Tracer], worst: float) -> Callable[..., Tracer]:
    def reduce(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Tracer:
        x = lift(a)
        if not x.type.is_float:
            return function(x, axis, out, keepdims)
        best = _without_nan(function, worst)(x, axis, keepdims=keepdims)
        nothing = all_(np.isnan(x), axis, keepdims=keepdims)
        return finish(_like(np.where(nothing, np.asarray(np.nan, x.dtype), best)), out)

    return reduce


def _like(x: Tracer) -> Tracer:
    return x if x.shape else fresh(value(x))


implements(np.nanmax)(_nan_extremum(max_, -np.inf))
implements(np.nanmin)(_nan_extremum(min_, np.inf))


@implements(np.nanvar)
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
) -> Tracer:
    x = lift(a)
    if not x.type.is_float:
        return var(x, axis, dtype, out, ddof, keepdims)
    there = np.logical_not(np.isnan(x))
    kept = np.where(there, x, np.asarray(0, x.dtype))
    spread = var(kept, axis, dtype, None, ddof, keepdims, where=there)
    count = sum_(there, axis, keepdims=keepdims)
    return finish(_like(np.where(count > ddof, spread, np.asarray(np.nan, spread.dtype))), out)


@implements(np.nanstd)
def nanstd(a: Any, *args: Any, out: Any = None, **options: Any) -> Tracer:
    return finish(safe_sqrt(nanvar(a, *args, **options)), out)


# --- other names -------------------------------------------------------------------------------


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tracer:
    return norm(x, ord, (-2, -1), keepdims)


def _nan_position(function: Callable[..., Tracer], worst: float) -> Callable[..., Tracer]:
    def position(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Tracer:
        return _without_nan(function, worst)(a, axis, out, keepdims=keepdims)

    return position


implements(np.nanargmax)(_nan_position(argmax, -np.inf))
implements(np.nanargmin)(_nan_position(argmin, np.inf))
