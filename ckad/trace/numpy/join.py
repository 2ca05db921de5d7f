"""Arrays put together from others, by concatenation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.trace.arrays import Array, Casting, is_traced, of_list, reshaped, traced
from ckad.trace.dispatch import REAL, call, implements


def _one_by_one(raise_rank: Any, arrays: Any) -> list[Array]:
    return [raise_rank(of_list(x)) for x in arrays]


@implements(np.hstack, kind=REAL)
def hstack(tup: Any, *, dtype: Any = None, casting: Casting = "same_kind") -> Array:
    if is_traced(tup) and tup.ndim < 3 and dtype is None:  # the items are its rows
        return call(np.concatenate, (tup,), {}) if tup.ndim == 2 else np.copy(tup)
    xs = _one_by_one(np.atleast_1d, tup)
    return np.concatenate(xs, 0 if xs and xs[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@implements(np.vstack, kind=REAL)
def vstack(tup: Any, *, dtype: Any = None, casting: Casting = "same_kind") -> Array:
    if is_traced(tup) and tup.ndim < 3 and dtype is None:
        return np.copy(tup if tup.ndim == 2 else tup[:, None])
    return np.concatenate(_one_by_one(np.atleast_2d, tup), 0, dtype=dtype, casting=casting)


@implements(np.dstack, kind=REAL)
def dstack(tup: Any) -> Array:
    return np.concatenate(_one_by_one(np.atleast_3d, tup), 2)


@implements(np.column_stack, kind=REAL)
def column_stack(tup: Any) -> Array:
    if is_traced(tup) and tup.ndim < 3:
        return np.copy(np.transpose(tup) if tup.ndim == 2 else tup[None, :])
    columns = [traced(x) for x in tup]
    if all(x.ndim == 1 for x in columns):  # whose lengths may be computed
        return np.stack(columns, axis=1)
    return np.concatenate([_column(x) for x in columns], 1)


def _column(x: Array) -> Array:
    return reshaped(x, (x.size, 1)) if x.ndim < 2 else x


@implements(np.append, kind=REAL)
def append(arr: Any, values: Any, axis: Any = None) -> Array:
    if axis is None:
        return np.concatenate([np.ravel(of_list(arr)), np.ravel(of_list(values))])
    return np.concatenate([of_list(arr), of_list(values)], axis)


@implements(np.block, kind=REAL)
def block(arrays: Any) -> Array:
    depth = _depth(arrays)
    rank = max(depth, *[traced(x).ndim for x in _leaves(arrays)], 0)
    return _block(arrays, rank, depth)


def _depth(x: Any) -> int:
    return 1 + max(map(_depth, x)) if isinstance(x, list) else 0


def _leaves(x: Any) -> list[Any]:
    return [leaf for item in x for leaf in _leaves(item)] if isinstance(x, list) else [x]


def _block(x: Any, rank: int, depth: int) -> Array:
    if isinstance(x, list):
        return np.concatenate([_block(item, rank, depth - 1) for item in x], -depth)
    leaf = traced(x)
    return leaf if leaf.ndim == rank else reshaped(leaf, (*[1] * (rank - leaf.ndim), *leaf.shape))
