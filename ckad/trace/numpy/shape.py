"""Triangles and diagonals of matrices, orders of axes, parts and turns."""

from __future__ import annotations

import operator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ckad.place import at_place
from ckad.trace.arrays import Array, diagonal_view, padded, reshaped, retyped, traced
from ckad.trace.axes import along, axis_of
from ckad.trace.dispatch import EVERY, REAL, implements, reject


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


# --- the order of the axes ---------------------------------------------------------------------


@implements(np.swapaxes, kind=EVERY)
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Array:
    x = traced(a)
    i, j = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return np.transpose(x, order)


@implements(np.moveaxis, kind=EVERY)
def moveaxis(a: Any, source: Any, destination: Any) -> Array:
    x = traced(a)
    sources = normalize_axis_tuple(source, x.ndim, "source")
    targets = normalize_axis_tuple(destination, x.ndim, "destination")
    if len(sources) != len(targets):
        raise ValueError(at_place("source and destination must have the same number of axes"))
    order = [k for k in range(x.ndim) if k not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return np.transpose(x, order)


@implements(np.rollaxis, kind=REAL)
def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    x = traced(a)
    k = axis_of(axis, x.ndim)
    before = axis_of(start, x.ndim + 1) if start >= 0 else start + x.ndim
    return np.moveaxis(x, k, before - 1 if k < before else before)


@implements(np.matrix_transpose, np.linalg.matrix_transpose, kind=REAL)
def matrix_transpose(x: Any) -> Array:
    x = traced(x)
    if x.ndim < 2:
        raise ValueError(at_place(f"a matrix transpose needs two axes, the array has {x.ndim}"))
    return np.swapaxes(x, -1, -2)


# --- parts and turns ---------------------------------------------------------------------------


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    x = traced(ary)
    k = axis_of(axis, x.ndim)
    cuts = _cuts(indices_or_sections, x.shape[k])
    return [x[along(k, slice(a, b))] for a, b in pairwise(cuts)]


def _cuts(sections: Any, n: int) -> list[Any]:
    if isinstance(sections, (tuple, list)) or np.ndim(sections) == 1:
        return [0, *[int(i) for i in sections], n]
    count = operator.index(sections)
    if count <= 0:
        raise ValueError(at_place(f"the number of sections must be larger than 0, got {count}"))
    small, longer = divmod(n, count)
    return [k * small + min(k, longer) for k in range(count + 1)]


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    x = traced(ary)
    if not (isinstance(indices_or_sections, (tuple, list)) or np.ndim(indices_or_sections) == 1):
        n, count = x.shape[axis_of(axis, x.ndim)], operator.index(indices_or_sections)
        if n % count:
            raise ValueError(at_place(f"{n} elements cannot be split into {count} equal parts"))
    return array_split(x, indices_or_sections, axis)


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    x = traced(ary)
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    _check_rank("vsplit", ary, 2)
    return split(ary, indices_or_sections, 0)


def _check_rank(name: str, ary: Any, least: int) -> None:
    if traced(ary).ndim < least:
        raise ValueError(at_place(f"{name} only works on arrays of {least} or more dimensions"))


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    _check_rank("dsplit", ary, 3)
    return split(ary, indices_or_sections, 2)


@implements(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    return tuple(np.moveaxis(x, axis, 0))


@implements(np.flip, kind=REAL)
def flip(m: Any, axis: Any = None) -> Array:
    x = traced(m)
    turned = range(x.ndim) if axis is None else normalize_axis_tuple(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if k in turned else slice(None) for k in range(x.ndim))]


@implements(np.flipud, kind=REAL)
def flipud(m: Any) -> Array:
    return flip(m, 0)


@implements(np.fliplr, kind=REAL)
def fliplr(m: Any) -> Array:
    return flip(m, 1)


@implements(np.rot90, kind=REAL)
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    x = traced(m)
    i, j = normalize_axis_tuple(axes, x.ndim)
    match k % 4:
        case 0:
            return x[...]
        case 1:
            return np.swapaxes(flip(x, j), i, j)
        case 2:
            return flip(x, (i, j))
        case _:
            return flip(np.swapaxes(x, i, j), j)
