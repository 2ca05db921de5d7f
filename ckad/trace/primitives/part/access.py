"""``x[index]`` and ``x[index] = y`` where the array, the index or what is written may be a part."""

from __future__ import annotations

import operator
from typing import Any

from ckad.tape.ops import Op
from ckad.trace.dispatch import MASK, PART, put
from ckad.trace.integers.spans import is_traced_slice
from ckad.trace.primitives import index as indexing
from ckad.trace.primitives.part import masked
from ckad.trace.primitives.part.alignment import Operand, align
from ckad.trace.primitives.part.extents import gathered, inside, part_of
from ckad.trace.primitives.part.writes import is_same, write_part
from ckad.trace.values.apply import apply
from ckad.trace.values.part import Masked, Padded, unsupported, unsupported_under_mask
from ckad.trace.values.tracer import Tracer, fresh, lift, localise, value

# --- of tracers --------------------------------------------------------------------------------


def getitem(x: Tracer, index: Any) -> Any:
    x = localise(x)
    if x.scalar:
        x = fresh(value(x), scalar=False)  # an index of a NumPy scalar makes an array of its own
    if isinstance(index, Padded) and index.dtype.kind == "i":
        return gathered(x, index)
    entries = indexing.expand(index, x.shape)
    if any(map(is_traced_slice, entries)):
        return part_of(x, [None] * len(x.shape), tuple(entries))
    if not indexing.is_advanced(entries):
        return indexing.view_of(x, entries, snapshot=not _has_ellipsis(index))
    mask = indexing.traced_mask(entries)
    if mask is not None:
        view, before = indexing.mask_first(x, entries, mask)
        return masked.read(view, mask, before)
    return indexing.gathered(x, entries)


def _has_ellipsis(index: Any) -> bool:
    return any(i is Ellipsis for i in (index if isinstance(index, tuple) else (index,)))


def setitem(x: Tracer, index: Any, new: Any) -> None:
    x = localise(x)
    entries = indexing.expand(index, x.shape)
    if any(map(is_traced_slice, entries)) or isinstance(new, Padded):
        target = part_of(x, [None] * len(x.shape), tuple(entries), snapshot=False)
        return write_part(target, new)
    mask = indexing.traced_mask(entries)
    if mask is not None:
        view, before = indexing.mask_first(x, entries, mask)
        return masked.write(view, mask, indexing.from_list(new), before)
    if indexing.is_advanced(entries):
        return indexing.scatter(x, entries, lift(indexing.from_list(new)))
    target = indexing.view_of(x, entries, snapshot=False)
    if not is_same(target, new):
        indexing.write_into(target, lift(indexing.from_list(new)))
    return None


# --- of parts ----------------------------------------------------------------------------------


def _chosen(x: Padded, mask: Padded) -> tuple[Tracer, Tracer]:
    """The base of a part under a mask of the same extents, and the mask of its elements."""
    if mask.dtype != bool or mask.ndim != x.ndim:
        unsupported("an index array, or a mask of other axes,")
    operands = [Operand(x), Operand(mask)]
    extents = align(operands)
    return x.base, apply(Op.AND, operands[1].data, inside(extents, x.base.shape))


def _getitem(x: Any, index: Any) -> Any:
    if isinstance(x, Masked):
        return _under_mask(x, index)
    if not isinstance(x, Padded):
        return getitem(x, index)
    if isinstance(index, Padded):
        return masked.read(*_chosen(x, index))
    return part_of(x.base, x.extents, index)


def _under_mask(x: Masked, index: Any) -> Any:
    entries = index if isinstance(index, tuple) else (index,)
    if not x.before and isinstance(entries[0], slice) and entries[0] == slice(None):
        lead = (slice(None),) * x.mask.ndim
        return Masked(x.data[(*lead, *entries[1:])], x.mask)
    return unsupported_under_mask("an index")


def _setitem(x: Any, index: Any, new: Any) -> None:
    if isinstance(x, Masked):  # a copy
        if not (isinstance(index, slice) and index == slice(None)):
            unsupported_under_mask("an index")
        return masked.write(x.data, x.mask, new, x.before)
    if not isinstance(x, Padded):
        return setitem(x, index, new)
    if isinstance(index, Padded):
        return masked.write(*_chosen(x, index), new)
    return write_part(part_of(x.base, x.extents, index, snapshot=False), new)


put(operator.getitem, getitem)
put(operator.setitem, setitem)
for _kind in (PART, MASK):
    put(operator.getitem, _getitem, _kind)
    put(operator.setitem, _setitem, _kind)
