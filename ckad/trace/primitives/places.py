"""Elements at traced integers: ``a[i, j]``, ``a[i, 2]``, ``a[i - 1, :, k]``.

Neighbouring integers are one place of their axes taken as one, so that an element is read or
written without its row. A place in a slice, or in a row at a place, is one of the array behind it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.tape.types import Type
from ckad.trace.memory.views import ItemView, Path, SliceView, shape_of
from ckad.trace.values.apply import apply, astype
from ckad.trace.values.tracer import Tracer, concrete, fresh, lift, value


class _Axes(NamedTuple):
    """The axes that are indexed, as slices of the array behind."""

    sizes: Sequence[int]  # of the array behind
    starts: Sequence[int]
    steps: Sequence[int]
    lengths: Sequence[int]


def at_places(x: Tracer, index: Sequence[Any]) -> tuple[Path, list[Any]]:
    """The path to what the traced integers of ``index`` pick; the entries that are left."""
    if not any(isinstance(item, Tracer) for item in index):
        return x.path, list(index)
    path, axes = _behind_slice(x)
    views, kept = _item_views(index, axes)
    path = _joined(x.storage.type, path, views)
    attrs = (*(axes.starts[k] for k in kept), *(axes.steps[k] for k in kept))
    rest = SliceView(attrs, tuple(axes.lengths[k] for k in kept))
    if any(_is_cut(axes, k) for k in kept):
        path = (*path, rest)
    return path, [index[k] for k in kept]


def _behind_slice(x: Tracer) -> tuple[Path, _Axes]:
    n = len(x.shape)
    if not x.path or not isinstance(x.path[-1], SliceView):
        return x.path, _Axes(x.shape, [0] * n, [1] * n, x.shape)
    path, attrs = x.path[:-1], x.path[-1].attrs
    return path, _Axes(shape_of(x.storage.type, path), attrs[:n], attrs[n:], x.shape)


def _is_cut(axes: _Axes, k: int) -> bool:
    return (axes.starts[k], axes.steps[k], axes.lengths[k]) != (0, 1, axes.sizes[k])


def _item_views(index: Sequence[Any], axes: _Axes) -> tuple[list[ItemView], list[int]]:
    """Traced integers, with the integers beside them, as places; the axes that are left."""
    views: list[ItemView] = []
    kept: list[int] = []
    for is_slice, run in groupby(range(len(index)), lambda k: isinstance(index[k], slice)):
        here = list(run)
        if is_slice or not any(isinstance(index[k], Tracer) for k in here):
            kept.extend(here)
        else:
            place = _flat_place([index[k] for k in here], here, axes)
            views.append(ItemView(value(place), len(kept), len(here)))
    return views, kept


def _flat_place(items: Sequence[Any], here: Sequence[int], axes: _Axes) -> Any:
    """The index of one element in axes taken as one; what is known of it is folded."""
    known = 0
    place: Any = None
    for item, k in zip(items, here, strict=True):
        n, step = axes.sizes[k], axes.steps[k]
        known = known * n + axes.starts[k]
        if place is not None and n != 1:
            place = place * n
        if not isinstance(item, Tracer):
            known += step * position(item, axes.lengths[k], k)
            continue
        index = wrapped(item, axes.lengths[k])
        index = index if step == 1 else index * step
        place = index if place is None else place + index
    return place + known if known else place


def _joined(type: Type, path: Path, views: Sequence[ItemView]) -> Path:
    """``path`` and then ``views``; a place beside a place is one of the array behind both."""
    last = path[-1] if path else None
    if not isinstance(last, ItemView) or not views:
        return (*path, *views)
    first, shape = views[0], shape_of(type, path[:-1])
    if first.axis == last.axis:
        outer, inner, axis = last, first, last.axis
        stop = last.axis + last.n_axes + first.n_axes
        n = math.prod(shape[last.axis + last.n_axes : stop])
    elif first.axis + first.n_axes == last.axis:
        outer, inner, axis = first, last, first.axis
        n = math.prod(shape[last.axis : last.axis + last.n_axes])
    else:
        return (*path, *views)
    place = fresh(outer.row) * n + fresh(inner.row)
    both = ItemView(value(place), axis, first.n_axes + last.n_axes)
    return (*path[:-1], both, *views[1:])


def wrapped(index: Any, n: int) -> Tracer:
    """An index in [0, n): constants are checked now, traced ones when the program runs."""
    if isinstance(index, Tracer):
        _check_integers(index.dtype)
        return apply(Op.WRAP, astype(index, np.int64), attrs=(n,))
    array = concrete(index)
    if array.size:
        _check_integers(array.dtype)
    if array.size and (array.min() < -n or array.max() >= n):
        wrong = int(array.min() if array.min() < -n else array.max())
        raise IndexError(at_place(f"index {wrong} is out of bounds for an axis of size {n}"))
    return lift(np.where(array < 0, array + n, array).astype(np.int64))


def _check_integers(dtype: np.dtype) -> None:
    if dtype.kind not in "iub":
        raise IndexError(
            at_place(
                f"an index has dtype {dtype}; indices are integers. Convert it with .astype(int)"
            )
        )


def position(item: Any, n: int, axis: int) -> int:
    i = operator.index(item)
    if not -n <= i < n:
        raise IndexError(at_place(f"index {i} is out of bounds for axis {axis} with size {n}"))
    return i % n
