"""The elements where a traced mask is true: ``a[a > 0]``, ``a[mask] *= b[mask]``.

They are kept at their places in the whole array, together with the mask: elementwise functions run
on the whole array, reductions leave out what the mask excludes, and an assignment under the same
mask goes back to the same places. Where their order counts they are packed, one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.trace import arrays
from ckad.trace.dispatch import PART, put
from ckad.trace.integers.spans import is_traced_slice
from ckad.trace.memory.context import current
from ckad.trace.primitives import index as indexing
from ckad.trace.primitives.part.extents import inside
from ckad.trace.values.apply import apply, astype, broadcast_to, reshape_value
from ckad.trace.values.part import Extent, Extents, Mask, Part, as_python_int, unsupported
from ckad.trace.values.tracer import Tracer, assign, fresh, known, lift, value

#: Operations that are followed to see whether two masks are one.
DEEPEST = 40

# --- reading and writing -----------------------------------------------------------------------


def read(x: Tracer, mask: Tracer, before: int = 0) -> Part:
    """``x[mask]``; ``before`` axes that follow the mask's stood before them."""
    _check_mask(x, mask)
    return Part(fresh(value(x), scalar=False), Mask(fresh(value(mask), scalar=False), before))


def write(x: Tracer, where: Mask, new: Any) -> None:
    """``x[mask] = new`` for a number, what broadcasts, or elements under the same mask."""
    _check_mask(x, where.mask)
    data = beside(new, where.mask, x.ndim - where.mask.ndim, where.before)
    fitted = broadcast_to(astype(data, x.dtype), x.shape)
    assign(x, value(apply(Op.SELECT, inside(where, x.shape), fitted, x)))


def _check_mask(x: Tracer, mask: Tracer) -> None:
    if x.shape[: mask.ndim] != mask.shape:
        raise IndexError(
            at_place(f"a mask of shape {mask.shape} does not fit an array of shape {x.shape}")
        )


def item(x: Part, index: Any, written: bool = False) -> Any:
    """``x[index]`` where that takes all elements under the mask; of some it is a copy."""
    where = x.where
    assert isinstance(where, Mask)
    entries = indexing.expand(index, (0,) * x.ndim)
    if all(indexing.is_scalar_index(i) for i in entries):
        return packed(x)[index]
    at = [k for k, i in enumerate(entries) if i is not None][where.before]
    traced = any(map(is_traced_slice, entries))
    # of numbers of places, which are constants, a copy does as well as the view that NumPy gives
    places = x.dtype.kind == "i" and known(x.base) is not None
    if places and not (written or traced or indexing.is_advanced(entries)) and _cuts(entries[at]):
        return packed(x)[index]
    picks = [i for i in entries if not (i is None or isinstance(i, slice))]
    # places along another axis are picked alike for each element, as a copy
    one_axis = len(picks) == 1 and np.ndim(picks[0]) == 1 and picks[0].dtype != bool
    if (
        traced
        or _cuts(entries[at])
        or (indexing.is_advanced(entries) and (written or not one_axis))
    ):
        unsupported("such an index")
    lead = (entries[at],) * where.mask.ndim
    before = sum(i is None or isinstance(i, slice) or np.ndim(i) > 0 for i in entries[:at])
    return Part(x.base[(*lead, *entries[:at], *entries[at + 1 :])], Mask(where.mask[lead], before))


def _cuts(entry: Any) -> bool:
    """Whether an index takes some elements under a mask, and not all in their order or turned."""
    ends = (slice(None), slice(None, None, 1), slice(None, None, -1))
    return not isinstance(entry, slice) or entry not in ends


# --- beside other operands ---------------------------------------------------------------------


def same_places(xs: Sequence[Any]) -> tuple[list[Tracer], Mask] | None:
    """Operands in shapes that broadcast to that of the whole array, and where its elements are;
    None where their elements lie at other places, and have to be packed."""
    widest = max((x for x in xs if isinstance(x, Part)), key=lambda x: x.ndim)
    if not isinstance(widest.where, Mask):
        return None
    mask, before = widest.where
    if not all(_is_beside(x, mask, widest.ndim - 1, before) for x in xs):
        return None
    return [beside(x, mask, widest.ndim - 1, before) for x in xs], Mask(mask, before)


def _is_beside(x: Any, mask: Tracer, n_rest: int, before: int) -> bool:
    """Whether the elements of an operand lie under the mask, or it is one for all of them."""
    if isinstance(x, Part):
        return is_same(x.where, Mask(mask, before - n_rest + x.ndim - 1))
    shape = lift(x).shape
    place = len(shape) - 1 - (n_rest - before)
    return place < 0 or not shape or shape[place] == 1


def beside(x: Any, mask: Tracer, n_rest: int, before: int) -> Tracer:
    """An operand in a shape that broadcasts to the mask's axes and ``n_rest`` others."""
    if isinstance(x, Part):
        return _under_same(x, mask, n_rest, before)
    array = lift(x)
    place = array.ndim - 1 - (n_rest - before)  # of the axis beside that of the elements
    if place < 0 or not array.ndim:
        return array
    if array.shape[place] != 1:
        unsupported(f"an array of shape {array.shape} beside")
    rest = array.shape[:place] + array.shape[place + 1 :]
    return reshape_value(array, (*[1] * (mask.ndim + n_rest - len(rest)), *rest))


def _under_same(x: Part, mask: Tracer, n_rest: int, before: int) -> Tracer:
    missing = n_rest - (x.ndim - 1)
    if not is_same(x.where, Mask(mask, before - missing)):
        unsupported("another mask than the one of the other elements")
    if not missing:
        return x.base
    return reshape_value(x.base, (*mask.shape, *[1] * missing, *x.base.shape[mask.ndim :]))


def is_same(one: Extents | Mask, other: Extents | Mask) -> bool:
    """Whether both are masks over the same places of axes at the same place."""
    return (
        isinstance(one, Mask)
        and isinstance(other, Mask)
        and one.before == other.before
        and same_rows(current().builder, value(one.mask), value(other.mask))
    )


def same_rows(b: Builder, one: int, other: int, depth: int = 0) -> bool:
    """Whether two rows are the same operations on the same values."""
    if one == other:
        return True
    x, y = b.rows[one], b.rows[other]
    if depth > DEEPEST or x.op is Op.INPUT or len(x.operands) != len(y.operands) or not x.operands:
        return False
    alike = x.op is y.op and x.attrs == y.attrs and x.type == y.type
    pairs = zip(x.operands, y.operands, strict=True)
    return alike and all(same_rows(b, i, k, depth + 1) for i, k in pairs)


# --- one after the other -----------------------------------------------------------------------


def packed(x: Any) -> Any:
    """A copy of elements under a mask in their order; any other operand as it is."""
    if not isinstance(x, Part) or not isinstance(x.where, Mask):
        return x
    mask, before = x.where
    size, rest = math.prod(mask.shape), x.base.shape[mask.ndim :]
    places = np.argsort(np.logical_not(reshape_value(mask, (size,))), kind="stable")
    taken: Any = apply(Op.GATHER, reshape_value(x.base, (size, *rest)), places, attrs=(0,))
    extents: list[Extent | None] = [None] * x.ndim
    extents[before] = Extent(0, as_python_int(np.sum(mask)))
    return Part(np.moveaxis(taken, 0, before), Extents(extents))


put(arrays.in_order, packed, PART)
