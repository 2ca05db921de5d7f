"""Where a traced mask is true: ``np.where(c)``, ``np.nonzero`` and others, and what they index.

The indices are those of all places, under the mask. So an array that they index as the mask would
is indexed by the mask; any other is looked up at all places, and written at those under the mask.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.trace.dispatch import PART, implements
from ckad.trace.primitives.part import mask as under_mask
from ckad.trace.primitives.part.extents import inside, only
from ckad.trace.primitives.places import wrapped
from ckad.trace.values.apply import apply, astype, broadcast_to, reshape_value
from ckad.trace.values.part import Mask, Part, unsupported
from ckad.trace.values.tracer import Tracer, assign, fresh, known, lift, value

# --- the indices -------------------------------------------------------------------------------


def _of_mask(function: Callable[..., Any], find: Callable[[Tracer], Any]) -> None:
    @implements(function)
    def found(a: Any) -> Any:
        x = astype(lift(a), bool)
        numbers = known(x)
        if numbers is None:
            return find(fresh(value(x), scalar=False))
        result = function(numbers)
        return tuple(map(lift, result)) if isinstance(result, tuple) else lift(result)


def _nonzero(mask: Tracer) -> tuple[Part, ...]:
    if not mask.ndim:
        raise ValueError(at_place("Calling nonzero on 0d arrays is not allowed."))
    places = np.indices(mask.shape)
    if mask.ndim > 1 and sorted(mask.shape)[-2] == 1 < mask.size:  # a column, used as a vector
        mask, places = reshape_value(mask, (mask.size,)), places.reshape((mask.ndim, mask.size))
    return tuple(Part(lift(k), Mask(mask), tame=True) for k in places)


_of_mask(np.nonzero, _nonzero)
_of_mask(np.flatnonzero, lambda mask: _nonzero(reshape_value(mask, (mask.size,)))[0])
_of_mask(
    np.argwhere,
    lambda mask: Part(lift(np.moveaxis(np.indices(mask.shape), 0, -1)), Mask(mask), tame=True),
)


@implements(np.nonzero, kind=PART)
def nonzero_of_part(a: Part) -> tuple[Part]:
    """The numbers of the elements that are true, counted within the part."""
    where, shape = a.where, a.base.shape
    if a.ndim != 1 or (isinstance(where, Mask) and len(shape) != where.mask.ndim):
        unsupported("where a part of several axes is true")
    held, chosen = inside(where, shape), astype(a.base, bool)
    if isinstance(where, Mask):
        numbers: Any = np.cumsum(reshape_value(held, (held.size,))) - 1
    else:
        (extent,) = where
        numbers = np.arange(shape[0]) - (0 if extent is None else extent.origin)
    found = reshape_value(lift(numbers), shape)
    return (Part(found, Mask(fresh(value(np.logical_and(held, chosen)), scalar=False))),)


@implements(np.flatnonzero, kind=PART)
def _flat(a: Part) -> Part:
    return nonzero_of_part(a)[0]


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    mask, x = astype(lift(condition), bool), lift(arr)
    numbers = known(mask)
    chosen = reshape_value(mask, (mask.size,)) if numbers is None else np.ravel(numbers)
    return reshape_value(x, (x.size,))[chosen]


# --- what they index ---------------------------------------------------------------------------


def holds_places(index: Any) -> bool:
    """Whether indices under a mask are among those of an index."""
    entries = index if isinstance(index, tuple) else (index,)
    return any(isinstance(i, Part) and isinstance(i.where, Mask) for i in entries)


def as_mask(index: Any, shape: Sequence[int]) -> Any:
    """The index with the mask in place of its own indices, if they are what it is made of."""
    entries = list(index) if isinstance(index, tuple) else [index]
    at = [k for k, i in enumerate(entries) if isinstance(i, Part)]
    where = entries[at[0]].where
    if at != list(range(at[0], at[0] + where.mask.ndim)) or any(i is None for i in entries):
        return index
    axis = at[0]
    if any(i is Ellipsis for i in entries[:axis]):
        axis = len(shape) - (len(entries) - axis)
    covered = tuple(shape[axis : axis + len(at)])
    if covered != where.mask.shape or not _are_own([entries[k] for k in at], where):
        return index
    return (*entries[: at[0]], where.mask, *entries[at[-1] + 1 :])


def _are_own(parts: Sequence[Part], where: Mask) -> bool:
    """Whether these are the indices of a mask's own axes, in their order."""
    places = np.indices(where.mask.shape)
    for part, own in zip(parts, places, strict=True):
        numbers = known(part.base)
        if numbers is None or not under_mask.is_same(part.where, where):
            return False
        if part.ndim != 1 or not np.array_equal(numbers, own):
            return False
    return True


def _first_axes(x: Tracer, index: Any) -> tuple[Tracer, Tracer, Mask]:
    """``x`` with the indexed axes as one, the place in it for each place of the mask, the mask."""
    entries = index if isinstance(index, tuple) else (index,)
    parts = [i for i in entries if isinstance(i, Part)]
    where = parts[0].where
    if len(parts) < len(entries) or any(p.ndim != 1 or p.dtype.kind != "i" for p in parts):
        unsupported("such an index beside the indices of a mask")
    assert isinstance(where, Mask)
    if not all(under_mask.is_same(p.where, where) for p in parts):
        unsupported("indices of different masks")
    place: Any = 0
    for part, n in zip(parts, x.shape, strict=False):
        place = place * n + wrapped(only(part, 0), n)
    rest = x.shape[len(parts) :]
    return reshape_value(x, (math.prod(x.shape[: len(parts)]), *rest)), lift(place), where


def read(x: Tracer, index: Any) -> Part:
    """``x[index]`` for indices under a mask that are not the mask's own."""
    flat, place, where = _first_axes(x, index)
    return Part(apply(Op.GATHER, flat, place, attrs=(0,)), where)


def read_part(x: Part, index: Part) -> Part:
    """``x[index]`` for a part of one axis and numbers of its elements under a mask."""
    if x.ndim != 1 or index.ndim != 1 or index.dtype.kind != "i":
        unsupported("such an index")
    packed = under_mask.packed(x)
    (extent,), shape = packed.where, index.base.shape
    number: Any = only(index, 0)
    n = packed.base.shape[0]
    number = np.where(np.less(number, 0), number + extent.length, number)
    within = np.logical_and(np.greater_equal(number, 0), np.less(number, extent.length))
    held = inside(index.where, shape)
    wrong = np.logical_and(held, np.logical_not(within))
    checked = apply(Op.WRAP, lift(np.where(wrong, n, np.where(held, number, 0))), attrs=(n,))
    place = np.minimum(checked + extent.origin, n - 1)
    return Part(apply(Op.GATHER, packed.base, lift(place), attrs=(0,)), index.where)


def write(x: Tracer, index: Any, new: Any) -> None:
    """``x[index] = new`` for such indices; the others write beside the array."""
    flat, place, where = _first_axes(x, index)
    n, rest = flat.shape[0], flat.shape[1:]
    data = under_mask.beside(new, where.mask, len(rest), where.before)
    fitted = broadcast_to(astype(data, x.dtype), (*where.mask.shape, *rest))
    target = fresh(value(np.concatenate([flat, flat[:1]])), scalar=False)
    beyond = broadcast_to(lift(n), place.shape)
    target[apply(Op.SELECT, inside(where, place.shape), place, beyond)] = fitted
    assign(x, value(reshape_value(target[:n], x.shape)))
