"""Indices read as NumPy reads them: basic slices are views, integer and boolean arrays gather."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ckad.errors import ConcreteValueError, UnsupportedFunctionError
from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.trace import arrays
from ckad.trace.dispatch import put
from ckad.trace.integers.spans import is_traced_slice, known_slice
from ckad.trace.memory.context import current
from ckad.trace.memory.layout import is_plain
from ckad.trace.memory.strided import StridedView
from ckad.trace.memory.views import Path, ReshapeView, SliceView, TransposeView, shape_of
from ckad.trace.primitives.places import at_places, position, wrapped
from ckad.trace.values.apply import apply, astype, broadcast, broadcast_to, reshape_value
from ckad.trace.values.tracer import Tracer, assign, fresh, known, lift, localise, value


def write_into(target: Tracer, new: Tracer) -> None:
    """Assign by NumPy's ``unsafe`` casting, as ``x[...] = y`` does."""
    new = _drop_leading_ones(astype(new, target.dtype), len(target.shape))
    assign(target, value(broadcast_to(new, target.shape)))


def _drop_leading_ones(x: Tracer, rank: int) -> Tracer:
    extra = len(x.shape) - rank
    if extra > 0 and all(d == 1 for d in x.shape[:extra]):
        return reshape_value(x, x.shape[extra:])
    return x


def from_list(new: Any) -> Any:
    if isinstance(new, (list, tuple)) and any(isinstance(v, Tracer) for v in new):
        return np.stack(new)
    return new


# --- reading the index -------------------------------------------------------------------------


def _index_array(index: list[Any]) -> Any:
    found = from_list(index)
    return found if isinstance(found, Tracer) else np.asarray(found)


def expand(index: Any, shape: tuple[int, ...]) -> list[Any]:
    """One entry per axis (and per newaxis): slice, integer, array or None; ``...`` filled in."""
    items = list(index) if isinstance(index, tuple) else [index]
    items = [_index_array(list(i)) if isinstance(i, (list, tuple)) else i for i in items]
    items = [_known(i) for i in items]
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


def _known(item: Any) -> Any:
    """An index without what is known of it while recording being traced."""
    if isinstance(item, Tracer):
        numbers = known(item)
        return item if numbers is None else numbers
    return known_slice(item) if is_traced_slice(item) else item


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


def traced_mask(entries: list[Any]) -> Tracer | None:
    """The mask among integers and slices, if it is traced."""
    masks = [i for i in entries if isinstance(i, Tracer) and i.dtype == bool and i.shape]
    return masks[0] if len(masks) == 1 and not is_advanced(_without(entries, masks[0])) else None


def _without(entries: list[Any], mask: Tracer) -> list[Any]:
    return [i for i in entries if i is not mask]


def mask_first(x: Tracer, entries: list[Any], mask: Tracer) -> tuple[Tracer, int]:
    """The view that the integers and slices beside ``mask`` pick, the axes of the mask first.

    Also how many axes stood before them.
    """
    at = next(k for k, i in enumerate(entries) if i is mask)
    basic = [*entries[:at], *[slice(None)] * len(mask.shape), *entries[at + 1 :]]
    view = view_of(x, basic, snapshot=False)
    before = len(_kept(entries[:at]))
    if not before:
        return view, 0
    covered = range(before, before + len(mask.shape))
    order = (*covered, *range(before), *range(covered.stop, len(view.shape)))
    # where integers are apart from the mask, NumPy puts what both index first
    return Tracer(view.storage, (*view.path, TransposeView(order))), before * _adjacent(entries)


def is_scalar_index(item: Any) -> bool:
    if isinstance(item, Tracer):
        return not item.shape and item.dtype != bool
    return (
        not isinstance(item, slice)
        and item is not None
        and np.ndim(item) == 0
        and not _is_mask(item)
    )


def is_advanced(index: list[Any]) -> bool:
    return not all(i is None or isinstance(i, slice) or is_scalar_index(i) for i in index)


# --- basic indexing: a view --------------------------------------------------------------------


def view_of(x: Tracer, index: list[Any], snapshot: bool = True) -> Tracer:
    """The view of ``x`` that a basic index picks; a whole set of integers picks a scalar."""
    path, per_axis = at_places(x, [item for item in index if item is not None])
    left = shape_of(x.storage.type, path)
    starts, steps, lengths = _slice_attrs(per_axis, left)
    if tuple(lengths) != left or any(s != 1 for s in steps):
        path = _cut(path, starts, steps, tuple(lengths))
    kept = iter(n for item, n in zip(per_axis, lengths, strict=True) if isinstance(item, slice))
    shape = [1 if item is None else next(kept) for item in _kept(index)]
    if shape != lengths:
        path = (*path, ReshapeView(tuple(shape)))
    view = Tracer(x.storage, path)
    picks_scalar = not shape and all(is_scalar_index(i) for i in index)
    return fresh(value(view)) if picks_scalar and snapshot else view


class _Cut(NamedTuple):
    """What known integers and slices pick of an array."""

    starts: list[int]
    steps: list[int]
    lengths: tuple[int, ...]
    is_all: bool
    shape: tuple[int, ...]


def known_view(x: Tracer, index: Any, snapshot: bool = True) -> Tracer | None:
    """``view_of`` for integers and slices of Python's numbers; None for any other index."""
    items = index if type(index) is tuple else (index,)
    key: list[Any] = []
    for item in items:
        if type(item) is slice:
            key.append((item.start, item.stop, item.step))
            if not (type(item.start) in _BOUNDS and type(item.stop) in _BOUNDS):
                return None
            if type(item.step) not in _BOUNDS:
                return None
        elif type(item) is int:
            key.append(item)
        else:
            return None
    cut = _known_cut(tuple(key), x.shape)
    path = x.path if cut.is_all else _cut(x.path, cut.starts, cut.steps, cut.lengths)
    if cut.shape != cut.lengths:
        path = (*path, ReshapeView(cut.shape))
    view = Tracer(x.storage, path)
    return fresh(value(view)) if snapshot and not cut.shape else view


_BOUNDS = frozenset({int, type(None)})


@lru_cache(maxsize=4096)
def _known_cut(key: tuple[Any, ...], shape: tuple[int, ...]) -> _Cut:
    entries = expand(tuple(slice(*k) if type(k) is tuple else k for k in key), shape)
    starts, steps, lengths = _slice_attrs(entries, shape)
    is_all = tuple(lengths) == shape and all(s == 1 for s in steps)
    kept = tuple(n for k, n in zip(entries, lengths, strict=True) if isinstance(k, slice))
    return _Cut(starts, steps, tuple(lengths), is_all, kept)


def _cut(path: Path, starts: list[int], steps: list[int], lengths: tuple[int, ...]) -> Path:
    if path and isinstance(path[-1], StridedView):
        return (*path[:-1], path[-1].then(starts, steps, lengths))
    return (*path, SliceView((*starts, *steps), lengths))


def _kept(index: list[Any]) -> list[Any]:
    """The entries that leave an axis: slices and newaxes."""
    return [item for item in index if item is None or isinstance(item, slice)]


def _slice_attrs(index: list[Any], shape: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Starts, steps and lengths of slices and Python ints."""
    starts, steps, lengths = [], [], []
    for axis, (item, n) in enumerate(zip(index, shape, strict=True)):
        start, step, length = (
            _slice_of(item, n) if isinstance(item, slice) else (position(item, n, axis), 1, 1)
        )
        starts.append(start)
        steps.append(step)
        lengths.append(length)
    return starts, steps, lengths


def _slice_of(item: slice, n: int) -> tuple[int, int, int]:
    start, stop, step = item.indices(n)
    return start, step, len(range(start, stop, step))


# --- advanced indexing: gather and scatter -----------------------------------------------------


def gather_plan(x: Tracer, index: list[Any]) -> tuple[Tracer, Tracer, int]:
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
    view = view_of(x, basic, snapshot=False)
    arrays = [(k, i) for k, i in enumerate(index) if not (i is None or isinstance(i, slice))]
    return view, index, arrays


def _masks_as_integers(index: list[Any]) -> list[Any]:
    out: list[Any] = []
    for item in index:
        if not _is_mask(item):
            out.append(item)
        elif isinstance(item, Tracer):
            raise ConcreteValueError.here(
                "a traced boolean array is used as an index, so the length of the result is "
                "not known while the program is recorded. Use np.where(mask, x, 0)."
            )
        elif not np.ndim(item):
            raise UnsupportedFunctionError.here(
                f"an array is indexed by {item}. Use an if, or a mask of its shape."
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


def gathered(x: Tracer, index: list[Any]) -> Tracer:
    """The elements at arrays of indices."""
    base, idx, axis = gather_plan(x, index)
    if not idx.size:  # of no elements nothing is read, and no derivative leads there
        shape = (*base.shape[:axis], *idx.shape, *base.shape[axis + 1 :])
        return lift(np.zeros(shape, x.dtype))
    result = apply(Op.GATHER, base, idx, attrs=(axis,))
    # NumPy puts the indexed axes first in memory, whatever their place in the result
    result.storage.plain = axis == 0 and is_plain(x) and is_plain(idx)
    return result


def scatter(x: Tracer, index: list[Any], new: Tracer) -> None:
    base, idx, axis = gather_plan(x, index)
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
    index = expand(index, x.shape)
    if not is_advanced(index):
        view = view_of(x, index, snapshot=False)
        return write_into(view, np.add(view, new))
    base, idx, axis = gather_plan(x, index)
    shape = (*base.shape[:axis], *idx.shape, *base.shape[axis + 1 :])
    fitted = value(broadcast_to(astype(new, x.dtype), shape))
    assign(base, current().builder.scatter_add(value(base), value(idx), fitted, attrs=(axis,)))
    return None


put(arrays.wrapped, wrapped)
