"""Rows alone that move an array by a number of places: copies and sums of what lies together."""

from __future__ import annotations

from typing import NamedTuple

from ckad.engines.native.ir.element import ITEMSIZE, Array, Value, load, whole
from ckad.engines.native.ir.flow import count, larger, smaller
from ckad.engines.native.kernels.rows import add_lanes, add_row, copy_row, emit_copy, moved
from ckad.engines.native.rows.between import is_between, limits_of
from ckad.engines.native.rows.places import Places
from ckad.engines.native.values.between import number
from ckad.engines.native.values.registers import LANES
from ckad.tape.ops import Op
from ckad.tape.tape import Row


class Shift(NamedTuple):
    """Place i of ``part`` is place ``clip(i + by, 0, last)`` of ``large``, rows of ``inner``."""

    large: Array
    part: Array
    by: Value
    last: int
    inner: int


def lower_shifted(places: Places, k: int, row: Row) -> None:
    """A GATHER or SCATTER_ADD along the first axis: the part is the result, or what is added."""
    b, adds = places.b, row.op is Op.SCATTER_ADD
    out = places.in_place(k, row) or places.place(k)
    if adds and places.memory(row.operands[0]).pointer is not out.array.pointer:
        places.put_row(out.array, row.operands[0])
    large = out.array if adds else places.memory(row.operands[0])
    part = places.memory(row.operands[2]) if adds else out.array
    n, *rest = part.type.shape
    inner = 1
    for d in rest:
        inner *= d
    by = number(b, places.fusion.shifts[k], places.number)
    shift = Shift(large, part, by, large.type.shape[0] - 1, inner)
    # who reads a part may do so between bounds that are computed after it
    bounded = is_between(places, k) and all(x in places.held for x in places.fusion.bounds_of(k))
    _move(places, shift, *(limits_of(places, k, n) if bounded else (whole(0), whole(n))), adds)
    places.bind(k, out)


def _move(places: Places, shift: Shift, first: Value, end: Value, adds: bool) -> None:
    """Places from ``first`` on and before ``end``, in order: clipped, as they are, clipped."""
    b = places.b
    zero = whole(0)
    low = larger(b, first, smaller(b, end, b.sub(zero, shift.by)))
    high = larger(b, low, smaller(b, end, b.sub(whole(shift.last + 1), shift.by)))
    _repeat(places, shift, first, low, 0, adds)
    _together(places, shift, low, high, adds)
    _repeat(places, shift, high, end, shift.last, adds)


def _repeat(
    places: Places, shift: Shift, start: Value, stop: Value, place: int, adds: bool
) -> None:
    b, (large, part, _, _, inner) = places.b, shift
    row = moved(b, large, whole(place * inner))
    with count(b, start, stop) as at:
        own = moved(b, part, b.mul(at, whole(inner)))
        if adds:
            add_row(b, row, own, inner)
        else:
            copy_row(b, own, row, inner)


def _together(places: Places, shift: Shift, low: Value, high: Value, adds: bool) -> None:
    b, (large, part, by, _, inner) = places.b, shift
    n = b.mul(larger(b, b.sub(high, low), whole(0)), whole(inner))
    source = moved(b, large, b.mul(b.add(low, by), whole(inner)))
    own = moved(b, part, b.mul(low, whole(inner)))
    if not adds:
        size = b.mul(n, whole(ITEMSIZE[part.type.dtype]))
        emit_copy(b, own.pointer, source.pointer, size)
        return
    full = b.and_(n, whole(-LANES))
    with count(b, whole(0), full, LANES) as at:
        add_lanes(b, source, at, load(b, own, at, LANES), LANES)
    with count(b, full, n) as at:
        add_lanes(b, source, at, load(b, own, at))
