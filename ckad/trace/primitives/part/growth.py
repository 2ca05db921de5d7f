"""Arrays that grow in a loop, made longer: rows are written behind the others in their buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.place import user_place
from ckad.tape.ops import Op
from ckad.tape.reasons import Reason
from ckad.trace.arrays import Array, traced
from ckad.trace.axes import axis_of
from ckad.trace.integers.spans import plus
from ckad.trace.memory.context import current
from ckad.trace.memory.views import ItemView, SliceView, View, WindowView
from ckad.trace.primitives.part.mask import packed
from ckad.trace.values.apply import apply, astype, promote
from ckad.trace.values.grown import Buffer, Grown
from ckad.trace.values.part import Extents, Mask, Part
from ckad.trace.values.tracer import Number, Tracer, assign, lift, localise, value


def made_longer(arrays: Any, axis: Any) -> Grown | None:
    """``np.concatenate((x, ...), axis)`` of an array that grows; None if that makes a new one."""
    if not isinstance(arrays, (tuple, list)) or not arrays or type(arrays[0]) is not Grown:
        return None
    first: Grown = arrays[0]
    if len(arrays) == 1:
        return first  # nothing can be written into it, so it needs no copy
    buffer, place = first.buffer, user_place()
    if axis is None or axis_of(axis, first.ndim) != buffer.axis or place in buffer.copied:
        return None
    given, count = _whole(arrays[1:], buffer.axis)
    rows = _rows(given, buffer)
    if rows is None or not _is_tip(first):
        return None
    many = rows.shape[0]
    if isinstance(first.count, int) and first.count + many > buffer.capacity:
        return None
    buffer.note(many)
    if many:
        target = _place(localise(buffer.rows), _checked(first, many), many)
        assign(target, value(astype(np.reshape(rows, target.shape), target.dtype)))
    longer = Grown(buffer, plus(first.count, many if count is None else count))
    longer.made = first, place
    buffer.set_tip(longer)
    return longer


def _checked(first: Grown, many: int) -> Number:
    """Where the next rows lie, if the buffer has space for them."""
    buffer, count = first.buffer, first.count
    if buffer.is_bounded or isinstance(count, int):
        return count
    most = buffer.capacity - many + 1
    return apply(Op.WRAP, localise(count), attrs=(most, int(Reason.SPACE)))


def _is_tip(grown: Grown) -> bool:
    """Whether an array is the longest in its buffer. If another was made of it, note where."""
    tip = grown.buffer.tip(current())
    while tip is not None and tip is not grown:
        before, place = tip.made
        if before is grown:
            grown.buffer.rival = place
        tip = before
    return grown.buffer.tip(current()) is grown


def _whole(others: Sequence[Any], axis: int) -> tuple[Sequence[Any], Number | None]:
    """What is put behind the others, and how many of its rows count where that is computed: what is
    written next lies over the rest."""
    if len(others) != 1 or not isinstance(others[0], Part):
        return others, None
    (part,) = others
    if isinstance(part.where, Mask) and part.ndim == 1:
        part = packed(part)
    if not isinstance(part.where, Extents):
        return others, None
    bounded = [k for k, extent in enumerate(part.where) if extent is not None]
    if bounded != [axis] or (extent := part.where[axis]) is None or not _is_zero(extent.origin):
        return others, None
    return [part.base], extent.length


def _is_zero(x: Number) -> bool:
    return isinstance(x, int) and x == 0


def _rows(others: Sequence[Any], buffer: Buffer) -> Tracer | None:
    """What is to be written, the axis that grows first; None if it is of another kind."""
    if any(isinstance(x, Part) for x in others):
        return None
    axis, shape = buffer.axis, buffer.rows.shape
    found = [lift(x) for x in others]
    if any(x.ndim != len(shape) for x in found):
        return None
    if promote(buffer.rows, *found)[0].dtype != buffer.rows.dtype:
        return None
    turned: list[Array] = [np.moveaxis(traced(x), axis, 0) for x in found]
    if any(x.shape[1:] != shape[1:] for x in turned):
        return None
    return lift(turned[0] if len(turned) == 1 else np.concatenate(turned))


def _place(rows: Tracer, first: Number, many: int) -> Tracer:
    """Where rows from ``first`` on lie."""
    shape = (many, *rows.shape[1:])
    views: tuple[View, ...]
    if isinstance(first, int):
        zeros, steps = (0,) * (rows.ndim - 1), (1,) * rows.ndim
        views = (SliceView((first, *zeros, *steps), shape),)
    elif many == 1:
        views = (ItemView(value(first), 0),)
    else:
        views = (WindowView(value(first), 0, many),)
    return Tracer(rows.storage, (*rows.path, *views))
