"""``x[index]`` and ``x[index] = y`` where the array, the index or what is written may be a part."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ckad.tape.ops import Op
from ckad.trace.dispatch import PART, put
from ckad.trace.integers.affine import form_of, form_of_row
from ckad.trace.integers.spans import is_traced_slice
from ckad.trace.memory.views import ItemView, Path, WindowView
from ckad.trace.primitives import index as indexing
from ckad.trace.primitives.index import from_list, write_into
from ckad.trace.primitives.part import beside, found
from ckad.trace.primitives.part import mask as under_mask
from ckad.trace.primitives.part.alignment import Operand, align, aligned, mismatch
from ckad.trace.primitives.part.extents import gathered, inside, part_of
from ckad.trace.values.apply import apply, astype, broadcast_to, reshape_value
from ckad.trace.values.part import Extent, Extents, Mask, Part, unsupported
from ckad.trace.values.tracer import (
    Tracer,
    assign,
    fresh,
    known_by_running,
    lift,
    localise,
    value,
)

# --- of tracers --------------------------------------------------------------------------------


def getitem(x: Tracer, index: Any) -> Any:
    x = localise(x)
    if x.scalar:
        x = fresh(value(x), scalar=False)  # an index of a NumPy scalar makes an array of its own
    picked = indexing.known_view(x, index)
    if picked is not None:
        return picked
    x, index = _with_axis(x, index)
    if found.holds_places(index):
        index = found.as_mask(index, x.shape)
        if found.holds_places(index):
            return found.read(x, index)
    if isinstance(index, Part) and index.dtype.kind == "i":
        return gathered(x, index)
    entries = indexing.expand(index, x.shape)
    if any(map(is_traced_slice, entries)):
        if indexing.is_advanced(entries):
            return beside.read(x, entries)
        return _own_if_by_array(index, part_of(x, [None] * x.ndim, tuple(entries)))
    if not indexing.is_advanced(entries):
        seen = indexing.view_of(x, entries, snapshot=not _has_ellipsis(index))
        return _own_if_by_array(index, seen)
    mask = indexing.traced_mask(entries)
    if mask is not None:
        if (numbers := known_by_running(mask)) is not None:
            return indexing.gathered(x, [numbers if i is mask else i for i in entries])
        view, before = indexing.mask_first(x, entries, mask)
        return under_mask.read(view, mask, before)
    return indexing.gathered(x, entries)


def _own_if_by_array(index: Any, picked: Any) -> Any:
    """A copy where one of the integers is an array of no axes, as in NumPy."""
    items = index if isinstance(index, tuple) else (index,)
    arrays = (i for i in items if isinstance(i, np.ndarray) or (type(i) is Tracer and not i.scalar))
    if not any(not i.shape and i.dtype.kind in "iu" for i in arrays) or not np.ndim(picked):
        return picked
    return np.copy(picked)


def _with_axis(x: Tracer, index: Any) -> tuple[Tracer, Any]:
    """A mask of no axes is one of a new axis of length 1."""
    if isinstance(index, (bool, np.bool_)):
        index = lift(index)
    if not isinstance(index, Tracer) or index.dtype != bool or index.shape:
        return x, index
    view = indexing.view_of(x, [None, *[slice(None)] * x.ndim], snapshot=False)
    return view, reshape_value(index, (1,))


def _has_ellipsis(index: Any) -> bool:
    return any(i is Ellipsis for i in (index if isinstance(index, tuple) else (index,)))


def setitem(x: Tracer, index: Any, new: Any) -> None:
    x = localise(x)
    if new is None and x.type.is_float:  # as float(None) in an array
        new = math.nan
    picked = indexing.known_view(x, index, snapshot=False)
    if picked is not None:
        return write_part(picked, new)
    x, index = _with_axis(x, index)
    if found.holds_places(index):
        index = found.as_mask(index, x.shape)
        if found.holds_places(index):
            return found.write(x, index, from_list(new))
    entries = indexing.expand(index, x.shape)
    one = not isinstance(new, (list, tuple)) and np.ndim(new) == 0
    if one and any(map(_is_nowhere, entries)):
        return None
    if any(map(is_traced_slice, entries)):
        if indexing.is_advanced(entries):
            return beside.write(x, entries, new)
        return write_part(part_of(x, [None] * x.ndim, tuple(entries), snapshot=False), new)
    mask = indexing.traced_mask(entries)
    if mask is not None:
        new = from_list(new)
        # one number for all is a choice between two arrays, which is faster than places
        if _has_items(new) and (numbers := known_by_running(mask)) is not None:
            entries = [numbers if i is mask else i for i in entries]
            return indexing.scatter(x, entries, lift(new))
        view, before = indexing.mask_first(x, entries, mask)
        return write_under(view, Mask(mask, before), new)
    if indexing.is_advanced(entries):
        return indexing.scatter(x, entries, lift(from_list(new)))
    return write_part(indexing.view_of(x, entries, snapshot=False), new)


def _is_nowhere(entry: Any) -> bool:
    """Whether it is a mask that is known to be true nowhere."""
    return isinstance(entry, np.ndarray) and entry.dtype == bool and not entry.any()


def _has_items(new: Any) -> bool:
    return not isinstance(new, Part) and np.ndim(new) > 0


# --- of parts ----------------------------------------------------------------------------------


def _chosen(x: Part, index: Part) -> tuple[Tracer, Mask]:
    """The base of a part, and where an element of it is under ``index``, a mask of its axes."""
    masked = isinstance(x.where, Mask)
    if index.dtype != bool or (index.ndim != x.ndim and not masked):
        unsupported("an index array, or a mask of other axes,")
    if not masked:
        (_, mask), where = aligned([x, index])
    elif under_mask.is_same(x.where, index.where):
        mask, where = index.base, x.where
    else:
        unsupported("another mask than that of the elements")
    return x.base, Mask(apply(Op.AND, mask, inside(where, mask.shape)))


def _getitem(x: Any, index: Any) -> Any:
    if not isinstance(x, Part):
        return getitem(x, index)
    if isinstance(index, Part):
        if index.dtype.kind == "i" and isinstance(index.where, Mask):
            return found.read_part(x, index)
        base, where = _chosen(x, index)
        return under_mask.read(base, *where)
    if isinstance(x.where, Mask):
        return under_mask.item(x, index)
    return _own_if_by_array(index, part_of(x.base, x.where, index))


def _setitem(x: Any, index: Any, new: Any) -> None:
    if not isinstance(x, Part):
        return setitem(x, index, new)
    if isinstance(index, Part):
        return write_under(*_chosen(x, index), from_list(new))
    if not isinstance(x.where, Mask):
        return write_part(part_of(x.base, x.where, index, snapshot=False), new)
    target = under_mask.item(x, index, written=True)
    return write_part(target if isinstance(target, Part) else unsupported("such an index"), new)


put(operator.getitem, getitem)
put(operator.setitem, setitem)
put(operator.getitem, _getitem, PART)
put(operator.setitem, _setitem, PART)


# --- writes -----------------------------------------------------------------------------------


def write_part(target: Any, new: Any) -> None:
    """Assign by NumPy's ``unsafe`` casting, as ``x[:k] = y`` does."""
    if _is_same(target, new):
        return
    new = from_list(new)
    if isinstance(target, Part) and isinstance(target.where, Mask):
        return write_under(target.base, target.where, new)
    if not isinstance(target, Part) and not isinstance(new, Part):
        return write_into(target, lift(new))
    goal, given = Operand(target), Operand(new)
    _drop_leading_ones(given, goal.rank)
    for axis in range(1, given.rank + 1):  # a whole axis takes what is as long
        if goal.extents[-axis] is None and given.extents[-axis] is not None:
            goal.extents[-axis] = Extent(0, goal.data.shape[-axis])
    extents = align([goal, given])
    old = goal.data
    fitted = broadcast_to(astype(given.data, old.dtype), old.shape)
    assign(old, value(apply(Op.SELECT, inside(Extents(extents), old.shape), fitted, old)))


def write_under(x: Tracer, where: Mask, new: Any) -> None:
    """Assign a number or what broadcasts under a mask, or as many items as there are places."""
    one_by_one = _in_order(new, where, x.ndim - where.mask.ndim + 1)
    if one_by_one is None:
        return under_mask.write(x, where, new)
    data, extent = one_by_one
    axis, size = where.before, where.mask.size
    number = np.cumsum(reshape_value(where.mask, (size,)))  # of the items up to each
    n_places = number[-1] if size else 0
    is_one = np.equal(extent.length, 1)  # which goes to all places
    zero = mismatch(lift(np.where(is_one, n_places, extent.length)), n_places)
    if zero is not None:
        number = number + zero
    places = np.clip(extent.origin + np.where(is_one, 0, number - 1), 0, data.shape[axis] - 1)
    items: Any = apply(Op.GATHER, data, lift(places), attrs=(axis,))
    first: Any = np.moveaxis(items, axis, 0)
    fitted = reshape_value(first, (*where.mask.shape, *first.shape[1:]))
    return under_mask.write(x, where, Part(fresh(value(fitted), scalar=False), where))


def _in_order(new: Any, where: Mask, rank: int) -> tuple[Tracer, Extent] | None:
    """Items for the places under a mask, and which part of their axis they are; None for what lies
    under the same mask, or is one for all."""
    if isinstance(new, Part):
        if new.ndim != rank or under_mask.is_same(new.where, where):
            return None
        packed = under_mask.packed(new)
        extents = list(packed.where)
        extent = extents.pop(where.before)
        if any(other is not None for other in extents):
            unsupported("such an array")
        return packed.base, extent or Extent(0, packed.base.shape[where.before])
    data = lift(new)
    if data.ndim != rank or data.shape[where.before] < 2:
        return None
    return data, Extent(0, data.shape[where.before])


def _drop_leading_ones(x: Operand, rank: int) -> None:
    extra = x.rank - rank
    if extra > 0 and all(d == 1 for d in x.data.shape[:extra]):
        x.data = reshape_value(x.data, x.data.shape[extra:])
        x.extents = x.extents[extra:]


def _is_same(target: Any, new: Any) -> bool:
    """Whether ``new`` is what already stands at ``target``, as after ``x[:k] += y``."""
    if type(target) is not type(new):
        return False
    if isinstance(target, Tracer):
        return target.storage is new.storage and _same_path(target.path, new.path)
    if (
        not isinstance(target, Part)
        or isinstance(target.where, Mask)
        or isinstance(new.where, Mask)
    ):
        return False
    return _is_same(target.base, new.base) and all(map(_same_extent, target.where, new.where))


def _same_extent(one: Extent | None, other: Extent | None) -> bool:
    if one is None or other is None:
        return one is other
    return all(form_of(x) == form_of(y) for x, y in zip(one, other, strict=True))


def _same_path(one: Path, other: Path) -> bool:
    return len(one) == len(other) and all(map(_same_view, one, other))


def _same_view(one: Any, other: Any) -> bool:
    if one == other:
        return True
    if type(one) is not type(other) or not isinstance(one, (ItemView, WindowView)):
        return False
    return one[1:] == other[1:] and form_of_row(one.row) == form_of_row(other.row)
