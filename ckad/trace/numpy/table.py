"""Looking up: interpolation in tables, search in sorted arrays, and taking along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import (
    Array,
    by_elements,
    copied,
    flat_unless,
    in_order,
    is_static,
    is_traced,
    known,
    own,
    reshaped,
    retyped,
    stored,
    taken,
    traced,
)
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import REAL, implements, needs_numbers, reject

#: Tables up to this length are searched by comparing with all entries, longer ones by bisection.
LONGEST_SCAN = 32


# --- take --------------------------------------------------------------------------------------


@implements(np.take, contiguous=True)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Array:
    x = traced(a)
    if axis is None or not x.shape:
        x, axis = reshaped(x, (x.size,)), axis or 0
    k = axis_of(axis, x.ndim)
    index = indices if is_traced(indices) else np.asarray(indices)
    if mode == "wrap" and x.shape[k]:
        index = np.remainder(index, x.shape[k])
    elif mode == "clip" and x.shape[k]:
        index = np.clip(index, 0, x.shape[k] - 1)
    elif mode not in ("raise", "wrap", "clip"):
        raise ValueError(at_place(f"mode must be 'raise', 'wrap' or 'clip', not {mode!r}"))
    return stored(taken(x, index, k), out)


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Array:
    x, k = flat_unless(traced(arr), axis)
    return copied(x[_along_index(x, indices, k)])


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    x = traced(arr)
    reject(axis is None, "np.put_along_axis with axis=None")
    x[_along_index(x, indices, axis_of(axis, x.ndim))] = values


def _along_index(x: Array, indices: Any, axis: int) -> tuple[Any, ...]:
    if np.ndim(indices) != x.ndim:
        raise ValueError(at_place("indices and arr must have the same number of dimensions"))
    grid = [
        np.arange(n).reshape([-1 if i == k else 1 for i in range(x.ndim)])
        for k, n in enumerate(x.shape)
    ]
    return tuple(indices if k == axis else g for k, g in enumerate(grid))


@implements(np.compress, contiguous=True)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Array:
    if is_traced(condition):
        alone = out is None and (axis is None or np.ndim(a) == 1)
        reject(not alone, "np.compress with a traced condition and an axis= or out=")
        reject(
            np.size(condition) > np.size(a), "np.compress with a condition longer than the array"
        )
        return np.extract(condition, np.ravel(a)[: np.size(condition)])
    return take(a, np.flatnonzero(condition), axis, out)


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Array:
    x, k = flat_unless(traced(arr), axis)
    places = known(obj) if is_traced(obj) else obj
    refused = needs_numbers("np.delete", "Use np.where(condition, x, 0), or compute it outside.")
    if places is None:
        return refused()
    kept = taken(x, np.delete(np.arange(x.shape[k]), places), k)
    kept.storage.plain = k == 0  # NumPy indexes with an array, which puts that axis first in memory
    return kept


# --- search ------------------------------------------------------------------------------------


@implements(np.searchsorted, kind=REAL)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Array:
    if side not in ("left", "right"):
        raise ValueError(at_place(f"side must be 'left' or 'right', got {side!r}"))
    a, x = traced(a), traced(v)
    if a.ndim != 1:
        raise ValueError(at_place(f"the sorted array has to have one axis, not {a.ndim}"))
    table = a if sorter is None else taken(a, sorter, 0)
    goes_before = np.less if side == "left" else np.less_equal
    is_short = not is_static(table) or table.size <= LONGEST_SCAN
    search = _scan if is_short else _bisect
    if x.dtype.kind != "f":
        return by_elements(lambda v: search(table, v, goes_before), x)
    before = table.size if side == "right" else np.sum(table == table)  # NaN comes last
    return by_elements(lambda v: own(np.where(v == v, search(table, v, goes_before), before)), x)


def _scan(table: Array, x: Array, goes_before: Any) -> Array:
    return np.sum(goes_before(table, reshaped(x, (*x.shape, 1))), -1)


def _bisect(table: Array, x: Array, goes_before: Any) -> Array:
    """The number of entries that go before ``x``, bit by bit from the highest."""
    count = traced(np.zeros(x.shape, np.int64))
    for bit in range(table.size.bit_length())[::-1]:
        tried = count + (1 << bit)
        entry = taken(table, np.minimum(tried, table.size) - 1, 0)
        fits = np.logical_and(tried <= table.size, goes_before(entry, x))
        count = np.where(fits, tried, count)
    return own(count)


@implements(np.digitize, kind=REAL)
def digitize(x: Any, bins: Any, right: bool = False) -> Array:
    edges, side = known(bins), "left" if right else "right"
    if edges is None:
        rising = searchsorted(bins, x, side)
        falling = len(bins) - searchsorted(bins[::-1], x, side)
        return np.where(bins[0] <= bins[-1], rising, falling)
    steps = np.diff(edges)
    if np.any(steps > 0) and np.any(steps < 0):
        raise ValueError(at_place("bins must be monotonically increasing or decreasing"))
    if np.all(steps >= 0):
        return searchsorted(edges, x, side)
    return len(edges) - searchsorted(edges[::-1], x, side)


# --- interpolation -----------------------------------------------------------------------------


@implements(np.interp, kind=REAL)
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Array:
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, period)
        left = right = None
    points, nodes, values = (retyped(v, np.float64) for v in (x, xp, fp))
    if not (is_static(nodes) and is_static(values)):
        return by_elements(lambda v: _in_open_table(v, nodes, values, left, right), points)
    if nodes.ndim != 1 or nodes.shape != values.shape or not nodes.size:
        raise ValueError(
            at_place(f"xp {nodes.shape} and fp {values.shape} must be equally long sequences")
        )
    low = values[0] if left is None else left
    high = values[-1] if right is None else right
    return by_elements(lambda v: _looked_up(v, nodes, values, low, high), points)


def _looked_up(points: Array, nodes: Array, values: Array, low: Any, high: Any) -> Array:
    inside = _between(points, nodes, values) if nodes.size > 1 else values[0]
    # the last node belongs to the flat part: there the result is the last value, not a rounded one
    result = np.where(points >= nodes[-1], values[-1], inside)
    result = np.where(points > nodes[-1], high, result)
    return own(np.where(points < nodes[0], low, result))


def _in_open_table(points: Array, nodes: Array, values: Array, low: Any, high: Any) -> Array:
    """The same in tables of which only the program knows how long they are."""
    values = in_order(values + 0.0 * nodes)  # where their lengths differ, the program stops
    nodes, last = in_order(nodes), nodes.shape[0] - 1
    inside = np.logical_and(points >= nodes[0], points < nodes[last])
    bin = np.where(inside, searchsorted(nodes, points, "right") - 1, last)
    x0, x1 = nodes[bin], nodes[np.where(inside, bin + 1, 0)]
    y0, y1 = values[bin], values[np.where(inside, bin + 1, 0)]
    slope = (y1 - y0) / np.where(inside, x1 - x0, 1.0)
    result = np.where(inside, slope * (points - x0) + y0, values[last])
    result = np.where(points > nodes[last], values[last] if high is None else high, result)
    return own(np.where(points < nodes[0], values[0] if low is None else low, result))


def _between(x: Array, nodes: Array, values: Array) -> Array:
    bin = np.clip(searchsorted(nodes, x, "right") - 1, 0, nodes.size - 2)
    x0, x1, y0, y1 = (taken(v, bin + k, 0) for v in (nodes, values) for k in (0, 1))
    return (y1 - y0) / (x1 - x0) * (x - x0) + y0


def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, ...]:
    """The nodes of one period in order, with one more on each side."""
    reject(is_traced(period), "np.interp with a traced period=")
    period = abs(period)
    if period == 0:
        raise ValueError(at_place("period must be a non-zero value"))
    nodes, values = retyped(xp, np.float64), traced(fp)
    if nodes.ndim != 1 or nodes.shape != values.shape:
        raise ValueError(at_place(f"xp {nodes.shape} and fp {values.shape} must fit, by one axis"))
    nodes = np.remainder(nodes, period)
    order = np.argsort(nodes)
    order = np.concatenate([order[-1:], order, order[:1]])
    turns = np.concatenate([[-period], np.zeros(len(nodes)), [period]])
    return np.remainder(x, period), nodes[order] + turns, values[order]
