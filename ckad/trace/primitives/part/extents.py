"""Which places of a base belong to a part, and slices of parts that lie between bounds.

What lies outside is no part of the value: it is filled with a harmless number before a function
could make a NaN of it, and left out of reductions and writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckad.rules.facts import harmless
from ckad.tape.ops import Op
from ckad.tape.types import DType
from ckad.trace.integers.affine import settled
from ckad.trace.integers.spans import (
    Span,
    at_most,
    below,
    minus,
    number,
    plus,
    same,
    smaller,
    span_of,
)
from ckad.trace.memory.context import current
from ckad.trace.memory.views import WindowView
from ckad.trace.primitives import index as indexing
from ckad.trace.values.apply import apply, broadcast_to, reshape_value
from ckad.trace.values.part import Extent, Extents, Mask, Part, unsupported
from ckad.trace.values.tracer import Number, Tracer, fresh, lift, localise, value

#: What elements outside of a part are filled with, so that every function of them is finite and
#: has a finite derivative.
HARMLESS = {DType.F64: harmless(), DType.F32: harmless(), DType.I64: 1, DType.BOOL: False}

# --- what is inside ----------------------------------------------------------------------------


def inside(where: Extents | Mask, shape: Sequence[int]) -> Tracer:
    """True at the places of an array of ``shape`` that belong to the part."""
    if isinstance(where, Mask):
        ones = [1] * (len(shape) - where.mask.ndim)
        return broadcast_to(reshape_value(where.mask, (*where.mask.shape, *ones)), shape)
    mask = None
    for axis, extent in enumerate(where):
        for side in () if extent is None else _sides(extent, shape[axis]):
            column = reshape_value(side, [n if k == axis else 1 for k, n in enumerate(shape)])
            spread = broadcast_to(column, shape)
            mask = spread if mask is None else apply(Op.AND, mask, spread)
    return broadcast_to(lift(np.True_), shape) if mask is None else mask


def _sides(extent: Extent, n: int) -> Iterator[Tracer]:
    places = lift(np.arange(n))
    stop = plus(extent.origin, extent.length)
    if below(0, extent.origin) is not False:
        yield apply(Op.GE, places, broadcast_to(lift(extent.origin), (n,)))
    if below(stop, n) is not False:
        yield apply(Op.LT, places, broadcast_to(lift(stop), (n,)))


def filled(x: Tracer, mask: Tracer, number: Any = None) -> Tracer:
    """``x`` where the mask is true, ``number`` elsewhere."""
    number = HARMLESS[x.type.dtype] if number is None else number
    rest = fresh(current().builder.full(x.type, number), scalar=False)
    return apply(Op.SELECT, mask, x, rest)


def only(part: Part, number: Any = None) -> Tracer:
    """The base of a part with ``number``, or one that does no harm, elsewhere."""
    if part.tame and number is None:
        return part.base
    return filled(part.base, inside(part.where, part.base.shape), number)


def gathered(x: Tracer, places: Part) -> Part:
    """``x[places]``: elements of the first axis, as many as ``places`` turns out to have."""
    where = places.where
    if not isinstance(where, Mask):
        where = Extents([*where, *[None] * (x.ndim - 1)])
    return Part(x[only(places, 0)], where)


# --- parts of parts ----------------------------------------------------------------------------


class _Pick(NamedTuple):
    """What an index does to one axis."""

    entry: Any  # what the base is indexed with
    flips: bool = False  # before that
    window: tuple[Number, int] | None = None  # after that: start and length
    extent: Extent | None = None


def part_of(
    base: Tracer, extents: Sequence[Extent | None], index: Any, snapshot: bool = True
) -> Any:
    """``part[index]`` for integers and slices: a tracer where all lengths are static."""
    base = localise(base)
    entries = indexing.expand(index, base.shape)
    if indexing.is_advanced(entries):
        return _rows_of(base, extents, entries)
    axes = iter(zip(base.shape, extents, strict=True))
    picks = [_Pick(None) if item is None else _pick(item, *next(axes)) for item in entries]
    flips = [slice(None, None, -1 if p.flips else None) for p in picks if p.entry is not None]
    if any(p.flips for p in picks):
        base = indexing.view_of(base, flips, snapshot=False)
    whole = all(p.window is None and p.extent is None for p in picks)
    view = indexing.view_of(base, [p.entry for p in picks], snapshot=snapshot and whole)
    kept = [p for p in picks if p.entry is None or isinstance(p.entry, slice)]
    for axis, pick in enumerate(kept):
        if pick.window is not None:
            view = _window(view, axis, *pick.window)
    if whole or all(p.extent is None for p in kept):
        return view
    return Part(view, Extents(p.extent for p in kept))


def _rows_of(base: Tracer, extents: Sequence[Extent | None], entries: Sequence[Any]) -> Tracer:
    """``part[places]``, an array of integers."""
    (extent, *others), (places, *rest) = extents, entries
    places = lift(places)
    plain = all(x is None for x in others) and all(x == slice(None) for x in rest)
    if extent is None or not plain or places.dtype.kind != "i":
        unsupported("such an index array, or a mask,")
    places = np.where(np.less(places, 0), places + extent.length, places)
    right = np.logical_and(np.greater_equal(places, 0), np.less(places, extent.length))
    n = base.shape[0]
    inside = apply(Op.WRAP, lift(np.where(right, places, n)), attrs=(n,))
    found: Tracer = base[inside + extent.origin]
    return found


def _window(x: Tracer, axis: int, start: Number, length: int) -> Tracer:
    first = apply(Op.WRAP, lift(start), attrs=(x.shape[axis] - length + 1,))
    return Tracer(x.storage, (*x.path, WindowView(value(first), axis, length)))


def _pick(item: Any, n: int, extent: Extent | None) -> _Pick:
    if isinstance(item, slice):
        return _pick_slice(item, n, extent)
    if extent is None:
        return _Pick(item)
    return _Pick(plus(extent.origin, checked_index(number(item), extent.length, n)))


def _pick_slice(item: slice, n: int, extent: Extent | None) -> _Pick:
    if extent is None and not any(isinstance(b, Tracer) for b in (item.start, item.stop)):
        return _Pick(item)
    origin, length = (0, n) if extent is None else extent
    span = span_of(item, length)
    start = plus(origin, span.start)
    if span.step < 0:
        start = minus(n - 1, start)
    if span.step > 1:
        return _strided(n, start, span)
    return _placed(n, start, span.length)._replace(flips=span.step < 0)


def _strided(n: int, origin: Number, span: Span) -> _Pick:
    """Each ``step``-th place from a known one on."""
    if not isinstance(origin, int):
        unsupported("such a slice with a step,")
    if isinstance(span.length, int):
        return _Pick(slice(origin, origin + span.length * span.step, span.step))
    return _Pick(slice(origin, n, span.step), extent=Extent(0, span.length))


def _placed(n: int, origin: Number, length: Number) -> _Pick:
    """``length`` places from ``origin`` on, as narrow as is known."""
    if isinstance(length, int) and isinstance(origin, int):
        return _Pick(slice(origin, origin + length))
    if isinstance(length, int):
        return _Pick(slice(None), window=(origin, length)) if length else _Pick(slice(0, 0))
    most = int(max(0, min(n, at_most(length))))
    if most > n // 2:  # parts of one axis that lie where they were need no moving
        return _Pick(slice(None), extent=Extent(origin, length))
    if same(origin, 0):
        return _Pick(slice(0, most), extent=Extent(0, length))
    start = smaller(origin, n - most)
    if isinstance(start, int):
        pick = _Pick(slice(start, start + most))
    else:
        pick = _Pick(slice(None), window=(start, most))
    return pick._replace(extent=Extent(settled(minus(origin, start)), length))


def checked_index(index: Number, length: Number, n: int) -> Number:
    """An index in [0, length) of an axis with space for n; IndexError when the program runs."""
    if below(index, 0) is not False:
        index = _either(below(index, 0), plus(index, length), index)
    right = np.logical_and(np.greater_equal(index, 0), np.less(index, length))
    if below(index, 0) is False and below(index, length) is True:
        return index
    return apply(Op.WRAP, lift(np.where(right, index, n)[()]), attrs=(n,))


def _either(condition: Any, x: Any, y: Any) -> Any:
    if isinstance(condition, bool):
        return x if condition else y
    return np.where(condition, x, y)[()]
