"""Writes into parts of run-time extent, and of such parts into others."""

from __future__ import annotations

from typing import Any

from ckad.tape.ops import Op
from ckad.trace.integers.affine import form_of, form_of_row
from ckad.trace.memory.views import ItemView, Path, WindowView
from ckad.trace.primitives.index import from_list, write_into
from ckad.trace.primitives.part.alignment import Operand, align
from ckad.trace.primitives.part.extents import inside
from ckad.trace.values.apply import apply, astype, broadcast_to, reshape_value
from ckad.trace.values.part import Extent, Padded, Part
from ckad.trace.values.tracer import Tracer, assign, lift, value


def write_part(target: Any, new: Any) -> None:
    """Assign by NumPy's ``unsafe`` casting, as ``x[:k] = y`` does."""
    if is_same(target, new):
        return
    if not isinstance(target, Padded) and not isinstance(new, Part):
        return write_into(target, lift(from_list(new)))
    goal, given = Operand(target), Operand(new if isinstance(new, Part) else from_list(new))
    _drop_leading_ones(given, goal.rank)
    for axis in range(1, given.rank + 1):  # a whole axis takes what is as long
        if goal.extents[-axis] is None and given.extents[-axis] is not None:
            goal.extents[-axis] = Extent(0, goal.data.shape[-axis])
    extents = align([goal, given])
    old = goal.data
    fitted = broadcast_to(astype(given.data, old.dtype), old.shape)
    assign(old, value(apply(Op.SELECT, inside(extents, old.shape), fitted, old)))


def _drop_leading_ones(x: Operand, rank: int) -> None:
    extra = x.rank - rank
    if extra > 0 and all(d == 1 for d in x.data.shape[:extra]):
        x.data = reshape_value(x.data, x.data.shape[extra:])
        x.extents = x.extents[extra:]


def is_same(target: Any, new: Any) -> bool:
    """Whether ``new`` is what already stands at ``target``, as after ``x[:k] += y``."""
    if type(target) is not type(new):
        return False
    if isinstance(target, Tracer):
        return target.storage is new.storage and _same_path(target.path, new.path)
    return (
        isinstance(target, Padded)
        and is_same(target.base, new.base)
        and all(map(_same_extent, target.extents, new.extents))
    )


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
