"""Norms of vectors and matrices. The derivative of a 2-norm at the origin is 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import Array, retyped, safe_sqrt, traced
from ckad.trace.axes import axes_of, axis_of
from ckad.trace.dispatch import implements, reject


def _floats(x: Any) -> Array:
    x = traced(x)
    return x if x.dtype.kind == "f" else retyped(x, np.float64)


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    return _vector_norm(_floats(x), ord, axis, keepdims)


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
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
    return np.power(np.sum(np.power(np.abs(x), ord), **options), 1 / ord)


def _matrix_norm(x: Array, ord: Any, row: int, column: int, keepdims: bool) -> Array:
    if ord in (None, "f", "fro"):
        return _two_norm(x, (row, column), keepdims)
    reject(ord not in (1, -1, np.inf, -np.inf), f"np.linalg.norm of matrices with ord={ord!r}")
    sums = np.sum(np.abs(x), row if abs(ord) == 1 else column, keepdims=True)
    if ord < 0:
        return np.min(sums, axis=(row, column), keepdims=keepdims)
    return np.max(sums, axis=(row, column), keepdims=keepdims, initial=0)
