"""Covariances, and reductions that leave NaN out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import (
    Array,
    as_number,
    copied,
    is_static,
    is_traced,
    own,
    promoted,
    reshaped,
    retyped,
    safe_sqrt,
    stored,
    traced,
)
from ckad.trace.axes import axes_of, axis_of, reduced_axes
from ckad.trace.dispatch import EVERY, REAL, given, implements, reject

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
    r = c / reshaped(spread, (spread.size, 1)) / spread
    # np.clip(r, -1, 1) without its derivative: what exceeds 1 is rounding, whole units of 2**-52
    excess = r - np.clip(r, -1, 1)
    return r - np.rint(excess * 2.0**52) / 2.0**52


# --- without NaN -------------------------------------------------------------------------------


def _without_nan(function: Callable[..., Array], neutral: float) -> Callable[..., Array]:
    def reduce(a: Any, *args: Any, **options: Any) -> Array:
        x = traced(a)
        if x.dtype.kind in "fc":
            x = np.where(np.isnan(x), np.asarray(neutral, x.dtype), x)
        return function(x, *args, **options)

    return reduce


implements(np.nansum, kind=EVERY)(_without_nan(np.sum, 0))
implements(np.nanprod, kind=EVERY)(_without_nan(np.prod, 1))
implements(np.nancumsum, kind=EVERY)(_without_nan(np.cumsum, 0))
implements(np.nancumprod, kind=EVERY)(_without_nan(np.cumprod, 1))
implements(np.nanargmax, kind=REAL)(_without_nan(np.argmax, -np.inf))
implements(np.nanargmin, kind=REAL)(_without_nan(np.argmin, np.inf))


def _nan_extremum(function: Callable[..., Array], worst: float) -> Callable[..., Array]:
    def reduce(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Array:
        x = traced(a)
        if x.dtype.kind != "f":
            return function(x, axis, out, keepdims)
        best = _without_nan(function, worst)(x, axis, keepdims=keepdims)
        nothing = np.all(np.isnan(x), axis, keepdims=keepdims)
        return stored(as_number(np.where(nothing, np.asarray(np.nan, x.dtype), best)), out)

    return reduce


implements(np.nanmax, kind=REAL)(_nan_extremum(np.max, -np.inf))
implements(np.nanmin, kind=REAL)(_nan_extremum(np.min, np.inf))


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
    return stored(as_number(np.where(count > ddof, spread, np.asarray(np.nan, spread.dtype))), out)


@implements(np.nanstd)
def nanstd(a: Any, *args: Any, out: Any = None, **options: Any) -> Array:
    return stored(safe_sqrt(nanvar(a, *args, **options)), out)


# --- other names -------------------------------------------------------------------------------


@implements(np.linalg.matrix_norm, kind=EVERY)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    return norm(x, ord, (-2, -1), keepdims)


# --- averages --------------------------------------------------------------------------------


@implements(np.mean, kind=REAL)
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Array:
    a = traced(a)
    total = np.sum(a, axis, _float_dtype(a, dtype), keepdims=keepdims, where=where)
    return stored(total / _how_many(a, axis, keepdims, where, total.dtype), out)


def _float_dtype(a: Array, dtype: Any) -> Any:
    if dtype is not None:
        reject(np.dtype(dtype).kind not in "fc", f"averages with dtype={np.dtype(dtype)}")
        return dtype
    return a.dtype if a.dtype.kind == "f" else np.float64


def _how_many(a: Array, axis: Any, keepdims: Any, where: Any, dtype: Any) -> Any:
    if where is True or where is np._NoValue:
        n = math.prod(a.shape[k] for k in axes_of(axis, a.ndim))
        return retyped(n, dtype) if is_traced(n) else n
    return retyped(np.sum(np.broadcast_to(where, a.shape), axis, keepdims=keepdims), dtype)


@implements(np.average, kind=REAL)
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    a = traced(a)
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        n = _how_many(a, axis, keepdims, True, result.dtype)
        scale = n if is_traced(n) else traced(np.asarray(n, result.dtype)[()])
    else:
        w = _weights_like(a, traced(weights), axis)
        dtype = np.result_type(a.dtype, w.dtype, np.float64 if a.dtype.kind != "f" else a.dtype)
        products = np.multiply(retyped(a, dtype), w)
        whole = w if is_static(products) else products * 0 + w  # of the lengths of both
        scale = np.sum(whole, axis, dtype, keepdims=keepdims)
        result = np.sum(products, axis, keepdims=keepdims) / scale
    if not returned:
        return result
    alike = is_static(result) and scale.shape == result.shape
    return result, scale if alike else copied(_spread_like(result, scale))


def _spread_like(a: Array, x: Array) -> Array:
    return np.broadcast_to(x, a.shape) if is_static(a) else np.zeros_like(a) + x


def _weights_like(a: Array, w: Array, axis: Any) -> Array:
    static = is_static(a) and is_static(w)
    if w.shape == a.shape if static else w.ndim == a.ndim:  # the program compares other lengths
        return w
    if axis is None:
        raise TypeError(at_place("axis= must be given when the shapes of a and weights differ"))
    axes = reduced_axes(axis, a.ndim)
    if not static and w.ndim == len(axes):
        return w[tuple(slice(None) if k in axes else None for k in range(a.ndim))]
    if w.shape != tuple(a.shape[k] for k in axes):
        raise ValueError(
            at_place(f"weights of shape {w.shape} do not fit axis={axis} of {a.shape}")
        )
    return np.broadcast_to(
        reshaped(w, [a.shape[k] if k in axes else 1 for k in range(a.ndim)]), a.shape
    )


@implements(np.var, kind=EVERY)
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Array:
    a = traced(a)
    if a.dtype.kind == "c":
        options = {"where": where, "mean": mean, "correction": correction}
        halves = [
            var(half, axis, None, None, ddof, keepdims, **options) for half in (a.real, a.imag)
        ]
        return stored(halves[0] + halves[1], out)
    ddof = correction if given(correction) else ddof
    x = retyped(a, _float_dtype(a, dtype))
    centred = x - (mean if given(mean) else np.mean(x, axis, keepdims=True, where=where))
    squares = np.sum(centred * centred, axis, keepdims=keepdims, where=where)
    freedom = _how_many(a, axis, keepdims, where, squares.dtype) - ddof
    at_least_zero = np.maximum(freedom, 0) if is_traced(freedom) else max(freedom, 0)
    return stored(squares / at_least_zero, out)


@implements(np.std, kind=EVERY)
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    **options: Any,
) -> Array:
    spread = np.var(traced(a), axis, dtype, None, ddof, keepdims, **options)
    return stored(safe_sqrt(spread), out)


@implements(np.ptp, kind=REAL)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Array:
    a = traced(a)
    return stored(np.max(a, axis, keepdims=keepdims) - np.min(a, axis, keepdims=keepdims), out)


@implements(np.count_nonzero, kind=EVERY)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Array:
    return np.sum(retyped(a, bool), axis, keepdims=keepdims)


@implements(np.nanmean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> Array:
    x = traced(a)
    if x.dtype.kind != "f":
        return mean(x, axis, dtype, out, keepdims)
    there = np.logical_not(np.isnan(x))
    return mean(np.where(there, x, 0), axis, dtype, out, keepdims, where=there)


# --- norms; at the origin the derivative is 0 ------------------------------------


def _floats(x: Any) -> Array:
    x = traced(x)
    if x.dtype.kind == "c":
        return np.abs(x)
    return x if x.dtype.kind == "f" else retyped(x, np.float64)


@implements(np.linalg.vector_norm, kind=EVERY)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    return _vector_norm(_floats(x), ord, axis, keepdims)


@implements(np.linalg.norm, kind=EVERY)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    if ord in (2, -2, "nuc") and (np.ndim(x) == 2 if axis is None else np.size(axis) == 2):
        row, column = (0, 1) if axis is None else (axis_of(k, np.ndim(x)) for k in axis)
        return _norm_of_singular_values(traced(x), ord, row, column, keepdims)
    x = _floats(x)
    if axis is None and (
        ord is None or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1)
    ):
        return _two_norm(x, None, keepdims)
    axes = axes_of(axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError(at_place(f"np.linalg.norm takes one or two axes, got {len(axes)}"))
    row, column = axes if axis is None else (axis_of(k, x.ndim) for k in axis)
    return _matrix_norm(x, ord, row, column, keepdims)


def _two_norm(x: Array, axis: Any, keepdims: bool) -> Array:
    return safe_sqrt(np.sum(x * x, axis, keepdims=keepdims))


def _vector_norm(x: Array, ord: Any, axis: Any, keepdims: bool) -> Array:
    options = {"axis": axis, "keepdims": keepdims}
    if ord is None or ord == 2:
        return _two_norm(x, axis, keepdims)
    if isinstance(ord, str):
        raise ValueError(at_place(f"invalid norm order {ord!r} for vectors"))
    if ord == np.inf:
        return np.max(np.abs(x), initial=0, **options)
    if ord == -np.inf:
        return np.min(np.abs(x), **options)
    if ord == 0:
        return np.sum(retyped(np.not_equal(x, 0), x.dtype), **options)
    if ord == 1:
        return np.sum(np.abs(x), **options)
    total = np.sum(np.power(np.abs(x), ord), **options)
    nothing = np.logical_and(np.equal(total, 0), ord > 0)
    root = np.power(np.where(nothing, 1, total), 1 / ord)
    return own(np.where(nothing, 0, root))


def _matrix_norm(x: Array, ord: Any, row: int, column: int, keepdims: bool) -> Array:
    if ord in (None, "f", "fro"):
        return _two_norm(x, (row, column), keepdims)
    reject(ord not in (1, -1, np.inf, -np.inf), f"np.linalg.norm of matrices with ord={ord!r}")
    sums = np.sum(np.abs(x), row if abs(ord) == 1 else column, keepdims=True)
    if ord < 0:
        return np.min(sums, axis=(row, column), keepdims=keepdims)
    return np.max(sums, axis=(row, column), keepdims=keepdims, initial=0)


def _norm_of_singular_values(x: Array, ord: Any, row: int, column: int, keepdims: bool) -> Array:
    values = np.linalg.svd(np.moveaxis(x, (row, column), (-2, -1)), compute_uv=False)
    if ord == "nuc":
        found = np.sum(values, -1)
    else:
        found = np.max(values, -1, initial=0) if ord == 2 else np.min(values, -1)
    return np.expand_dims(found, (row, column)) if keepdims else found
