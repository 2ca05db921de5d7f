"""``x[index]`` and ``x[index] = y``: basic slices are views, integer and boolean arrays gather."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ckad.errors import ConcreteValueError
from ckad.tape.ops import Op
from ckad.trace.apply import apply, astype, broadcast, broadcast_to, is_plain, reshape_value
from ckad.trace.context import current
from ckad.trace.tracer import Tracer, assign, concrete, fresh, lift, localise, value
from ckad.trace.views import ItemView, ReshapeView, SliceView, TransposeView
from ckad.trace.where import at_place


def getitem(x: Tracer, index: Any) -> Tracer:
    x = localise(x)
    if x.scalar:
        x = fresh(value(x), scalar=False)  # an index of a NumPy scalar makes an array of its own
    entries = _expand(index, x.shape)
    if not _is_advanced(entries):
        return _view(x, entries, snapshot=not _has_ellipsis(index))
    base, idx, axis = _gather_plan(x, entries)
    result = apply(Op.GATHER, base, idx, attrs=(axis,))
    # NumPy puts the indexed axes first in memory, whatever their place in the result
    result.storage.plain = axis == 0 and is_plain(x) and is_plain(idx)
    return result


def _has_ellipsis(index: Any) -> bool:
    return any(i is Ellipsis for i in (index if isinstance(index, tuple) else (index,)))


def setitem(x: Tracer, index: Any, new: Any) -> None:
    x = localise(x)
    new = lift(_from_list(new))
    mask = _sole_mask(index)
    if mask is not None and isinstance(mask, Tracer):
        return _write_masked(x, mask, new)
    index = _expand(index, x.shape)
    if not _is_advanced(index):
        return write_into(_view(x, index, snapshot=False), new)
    return _scatter(x, index, new)


def write_into(target: Tracer, new: Tracer) -> None:
    """Assign by NumPy's ``unsafe`` casting, as ``x[...] = y`` does."""
    new = _drop_leading_ones(astype(new, target.dtype), len(target.shape))
    assign(target, value(broadcast_to(new, target.shape)))


def _drop_leading_ones(x: Tracer, rank: int) -> Tracer:
    extra = len(x.shape) - rank
    if extra > 0 and all(d == 1 for d in x.shape[:extra]):
        return reshape_value(x, x.shape[extra:])
    return x


def _from_list(new: Any) -> Any:
    if isinstance(new, (list, tuple)) and any(isinstance(v, Tracer) for v in new):
        return np.stack(new)
    return new


# --- reading the index -------------------------------------------------------------------------


def _expand(index: Any, shape: tuple[int, ...]) -> list[Any]:
    """One entry per axis (and per newaxis): slice, integer, array or None; ``...`` filled in."""
    items = list(index) if isinstance(index, tuple) else [index]
    items = [np.asarray(i) if isinstance(i, list) else i for i in items]
    if any(i is Ellipsis for i in items):
        at = next(k for k, i in enumerate(items) if i is Ellipsis)
    else:
        at = len(items)
        items.append(Ellipsis)
    used = sum(_axes_used(i) for i in items if i is not Ellipsis)
    if used > len(shape):
        raise IndexError(
            at_place(f"too many indices: the array has {len(shape)} axes, {used} were indexed")
        )
    return [*items[:at], *[slice(None)] * (len(shape) - used), *items[at + 1 :]]


def _axes_used(item: Any) -> int:
    if item is None:
        return 0
    if _is_mask(item):
        return np.ndim(item) if not isinstance(item, Tracer) else len(item.shape)
    return 1


def _is_mask(item: Any) -> bool:
    if isinstance(item, (bool, np.bool_)):
        return True
    return getattr(item, "dtype", None) == np.dtype(bool)


def _sole_mask(index: Any) -> Any:
    if isinstance(index, tuple):
        masks = [i for i in index if _is_mask(i)]
        return masks[0] if len(index) == 1 and masks else None
    return index if _is_mask(index) else None


def _is_scalar_index(item: Any) -> bool:
    if isinstance(item, Tracer):
        return not item.shape and item.dtype != bool
    return (
        not isinstance(item, slice)
        and item is not None
        and np.ndim(item) == 0
        and not _is_mask(item)
    )


def _is_advanced(index: list[Any]) -> bool:
    return not all(i is None or isinstance(i, slice) or _is_scalar_index(i) for i in index)


# --- basic indexing: a view --------------------------------------------------------------------


def _view(x: Tracer, index: list[Any], snapshot: bool = True) -> Tracer:
    """The view of ``x`` that a basic index picks; a whole set of integers picks a scalar."""
    starts, steps, lengths, traced = [], [], [], []
    shape: list[int] = []
    axis = 0
    for item in index:
        if item is None:
            shape.append(1)
            continue
        n = x.shape[axis]
        if isinstance(item, slice):
            start, step, length = _slice_of(item, n)
            shape.append(length)
        elif isinstance(item, Tracer):
            start, step, length = 0, 1, n
            traced.append((axis, item))
        else:
            start, step, length = _position(item, n, axis), 1, 1
        starts.append(start), steps.append(step), lengths.append(length)
        axis += 1
    path = list(x.path)
    if tuple(lengths) != x.shape or any(s != 1 for s in steps):
        path.append(SliceView((*starts, *steps), tuple(lengths)))
    path.extend(_item_views(traced, lengths))
    kept = tuple(n for k, n in enumerate(lengths) if k not in {a for a, _ in traced})
    if tuple(shape) != kept:
        path.append(ReshapeView(tuple(shape)))
    view = Tracer(x.storage, tuple(path))
    picks_scalar = not shape and all(_is_scalar_index(i) for i in index)
    return fresh(value(view)) if picks_scalar and snapshot else view


def _item_views(traced: list[tuple[int, Tracer]], lengths: list[int]) -> list[ItemView]:
    views = []
    for gone, (axis, index) in enumerate(traced):
        row = wrapped(index, lengths[axis])
        views.append(ItemView(value(row), axis - gone))
    return views


def wrapped(index: Any, n: int) -> Tracer:
    """An index in [0, n): constants are checked now, traced ones when the program runs."""
    if isinstance(index, Tracer):
        return apply(Op.WRAP, astype(index, np.int64), attrs=(n,))
    array = concrete(index)
    if array.size and (array.min() < -n or array.max() >= n):
        wrong = int(array.min() if array.min() < -n else array.max())
        raise IndexError(at_place(f"index {wrong} is out of bounds for an axis of size {n}"))
    return lift(np.where(array < 0, array + n, array).astype(np.int64))


def _slice_of(item: slice, n: int) -> tuple[int, int, int]:
    try:
        start, stop, step = item.indices(n)
    except ConcreteValueError as error:
        raise ConcreteValueError(
            at_place(
                "a slice bound is a traced value, so the part's length is not known while the "
                "program is recorded. Use Python ints for bounds, or np.where with a mask."
            )
        ) from error
    return start, step, len(range(start, stop, step))


def _position(item: Any, n: int, axis: int) -> int:
    i = operator.index(item)
    if not -n <= i < n:
        raise IndexError(at_place(f"index {i} is out of bounds for axis {axis} with size {n}"))
    return i % n


# --- advanced indexing: gather and scatter -----------------------------------------------------


def _gather_plan(x: Tracer, index: list[Any]) -> tuple[Tracer, Tracer, int]:
    """Bring the indexed axes together and index them as one: (array, flat index, its axis)."""
    x, index, arrays = _split_slices(x, index)
    axes = [a for a, _ in arrays]
    together = axes == list(range(axes[0], axes[-1] + 1)) and _adjacent(index)
    place = axes[0] if together else 0
    rest = [a for a in range(len(x.shape)) if a not in axes]
    order = [*rest[:place], *axes, *rest[place:]]
    if order != list(range(len(order))):
        x = Tracer(x.storage, (*x.path, TransposeView(tuple(order))))
    dims = [x.shape[place + k] for k in range(len(axes))]
    flat = _flat_index([i for _, i in arrays], dims)
    merged = (*x.shape[:place], int(np.prod(dims)), *x.shape[place + len(axes) :])
    if len(dims) > 1:
        x = Tracer(x.storage, (*x.path, ReshapeView(merged)))
    return x, flat, place


def _adjacent(index: list[Any]) -> bool:
    """Whether no slice or newaxis stands between the advanced indices."""
    at = [k for k, i in enumerate(index) if i is not None and not isinstance(i, slice)]
    return at == list(range(at[0], at[-1] + 1))


def _split_slices(x: Tracer, index: list[Any]) -> tuple[Tracer, list[Any], list[tuple[int, Any]]]:
    """Apply the slices and newaxes as a view; what is left are arrays per axis of the result."""
    index = _masks_as_integers(index)
    basic = [slice(None) if not (i is None or isinstance(i, slice)) else i for i in index]
    view = _view(x, basic, snapshot=False)
    arrays = [(k, i) for k, i in enumerate(index) if not (i is None or isinstance(i, slice))]
    return view, index, arrays


def _masks_as_integers(index: list[Any]) -> list[Any]:
    out: list[Any] = []
    for item in index:
        if not _is_mask(item):
            out.append(item)
        elif isinstance(item, Tracer):
            raise ConcreteValueError(
                at_place(
                    "a traced boolean array is used as an index, so the length of the result is "
                    "not known while the program is recorded. Use np.where(mask, x, 0)."
                )
            )
        else:
            out.extend(np.nonzero(item))
    return out


def _flat_index(arrays: list[Any], dims: list[int]) -> Tracer:
    checked = broadcast(*[wrapped(i, n) for i, n in zip(arrays, dims, strict=True)])
    flat = checked[0]
    for i, n in zip(checked[1:], dims[1:], strict=True):
        flat = flat * n + i
    return flat


def _scatter(x: Tracer, index: list[Any], new: Tracer) -> None:
    base, idx, axis = _gather_plan(x, index)
    shape = (*base.shape[:axis], *idx.shape, *base.shape[axis + 1 :])
    new = _drop_leading_ones(astype(new, x.dtype), len(shape))
    row = current().builder.scatter(
        value(base),
        value(idx),
        value(broadcast_to(new, shape)),
        attrs=(axis, _is_unique(index, idx)),
    )
    assign(base, row)


def _is_unique(index: list[Any], idx: Tracer) -> int:
    if idx.size <= 1:
        return 1
    arrays = [i for i in index if i is not None and not isinstance(i, slice)]
    if any(isinstance(i, Tracer) for i in arrays):
        return 0
    if any(_is_mask(i) for i in arrays):
        return int(len(arrays) == 1)
    stacked = np.stack(np.broadcast_arrays(*arrays)).reshape(len(arrays), -1)
    return int(np.all(stacked >= 0) and len(np.unique(stacked, axis=1).T) == stacked.shape[1])


def add_at(x: Tracer, index: Any, new: Any) -> None:
    """``np.add.at``: every occurrence of a repeated index counts."""
    x, new = localise(x), lift(new)
    index = _expand(index, x.shape)
    if not _is_advanced(index):
        view = _view(x, index, snapshot=False)
        return write_into(view, np.add(view, new))
    base, idx, axis = _gather_plan(x, index)
    shape = (*base.shape[:axis], *idx.shape, *base.shape[axis + 1 :])
    fitted = value(broadcast_to(astype(new, x.dtype), shape))
    assign(base, current().builder.scatter_add(value(base), value(idx), fitted, attrs=(axis,)))
    return None


def _write_masked(x: Tracer, mask: Tracer, new: Tracer) -> None:
    """``x[mask] = scalar`` (or something that broadcasts against x) with a traced mask."""
    if new.size != 1:
        raise ConcreteValueError(
            at_place(
                "values are written where a traced mask is true, and how many there are is not "
                "known while the program is recorded. Use x[:] = np.where(mask, values, x)."
            )
        )
    shape = (*mask.shape, *[1] * (len(x.shape) - len(mask.shape)))
    chosen = broadcast_to(reshape_value(mask, shape), x.shape)
    filled = broadcast_to(reshape_value(astype(new, x.dtype), ()), x.shape)
    assign(x, value(apply(Op.SELECT, chosen, filled, x)))
