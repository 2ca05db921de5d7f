"""Triangles and diagonals of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import Array, diagonal_view, padded, reshaped, retyped, traced
from ckad.trace.dispatch import implements, reject


def _masked(m: Any, keeps: np.ndarray) -> Array:
    return np.where(keeps, m, np.zeros((), traced(m).dtype)[()])


@implements(np.tril)
def tril(m: Any, k: int = 0) -> Array:
    x = traced(m)
    return _masked(x, np.tri(*_matrix_shape(x), k=k, dtype=bool))


@implements(np.triu)
def triu(m: Any, k: int = 0) -> Array:
    x = traced(m)
    return _masked(x, ~np.tri(*_matrix_shape(x), k=k - 1, dtype=bool))


def _matrix_shape(x: Array) -> tuple[int, int]:
    return (x.shape[0], x.shape[0]) if x.ndim == 1 else x.shape[-2:]


@implements(np.diag)
def diag(v: Any, k: int = 0) -> Array:
    x = traced(v)
    if x.ndim == 2:
        return np.diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(at_place("Input must be 1- or 2-d."))
    n = x.size + abs(k)
    start = k if k >= 0 else -k * n
    flat = padded(x, (start if x.size else 0, n + 1), (n * n,))
    return reshaped(flat, (n, n))


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Array:
    x = traced(v)
    return diag(reshaped(x, (x.size,)), k)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    x, new = traced(a), traced(val)
    reject(wrap, "np.fill_diagonal with wrap=True")
    reject(x.ndim != 2, "np.fill_diagonal of an array that is not 2-D")
    target = diagonal_view(x, 0, 0, 1, True)
    reject(new.size not in (1, *target.shape), "np.fill_diagonal with values to be repeated")
    shape = () if new.size == 1 else target.shape
    target[...] = reshaped(retyped(new, x.dtype), shape)
