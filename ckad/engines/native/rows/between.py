"""Rows alone that are computed between bounds: elements picked or added, rows and columns."""

from __future__ import annotations

from ckad.engines.native.ir.element import ITEMSIZE, Array, Value, load, store, whole
from ckad.engines.native.ir.flow import count, larger, smaller
from ckad.engines.native.kernels.rows import add_lanes, emit_copy, moved
from ckad.engines.native.kernels.vectors import combined, dots
from ckad.engines.native.rows.places import Places
from ckad.engines.native.values import registers
from ckad.engines.native.values.between import limits, vector_limits
from ckad.engines.native.values.registers import LANES, is_small
from ckad.tape.ops import Op
from ckad.tape.tape import Row


def is_between(places: Places, k: int) -> bool:
    return places.fusion.is_alone(k) and places.fusion.spans(k) is not None


def limits_of(places: Places, k: int, n: int) -> tuple[Value, Value]:
    """The first of n places at which row k is computed, and the first beyond; whole vectors."""
    spans = places.fusion.spans(k)
    assert spans is not None
    (span,) = spans
    return vector_limits(places.b, span, n, places.number)


def lower_between(places: Places, k: int, row: Row) -> None:
    """A GATHER, SCATTER or SCATTER_ADD of which only a part is read, or added."""
    b = places.b
    written, small = row.op is not Op.GATHER, is_small(row.type)
    out = places.in_place(k, row) or (places.passing(row.type) if small else places.place(k))
    if written and (small or places.memory(row.operands[0]).pointer is not out.array.pointer):
        places.put_row(out.array, row.operands[0])
    large = out.array if written else places.memory(row.operands[0])
    index = places.rows[row.operands[1]]
    part = places.memory(row.operands[2]) if written else out.array
    if index.type.size > 1:
        _elements(places, k, row, large, part)
    else:
        at = registers.scalar(b, places.small(row.operands[1]))
        n, inner = part.type.shape[0], large.type.shape[1]
        if row.attrs[0] == 1:
            _column(places, k, row.op, moved(b, large, at), inner, part)
        else:
            _row(places, k, row.op, moved(b, large, b.mul(at, whole(n))), part)
    places.bind(k, registers.read(b, out.array) if small else out)


def _elements(places: Places, k: int, row: Row, large: Array, part: Array) -> None:
    b, idx = places.b, places.memory(row.operands[1])
    with count(b, *limits_of(places, k, part.type.shape[0])) as at:
        place = load(b, idx, at)
        if row.op is Op.GATHER:
            store(b, part, at, load(b, large, place))
        else:
            add_lanes(b, large, place, load(b, part, at))


def _row(places: Places, k: int, op: Op, large: Array, part: Array) -> None:
    """A row of an array of two axes, and the same as an array."""
    b, n = places.b, part.type.shape[0]
    first, end = limits_of(places, k, n)
    if op is not Op.SCATTER_ADD:
        to, source = (part, large) if op is Op.GATHER else (large, part)
        _copy(places, to, source, first, end)
        return
    full = whole(n - n % LANES)
    with count(b, first, smaller(b, end, full), LANES) as at:
        add_lanes(b, large, at, load(b, part, at, LANES), LANES)
    with count(b, larger(b, first, full), end) as at:
        add_lanes(b, large, at, load(b, part, at))


def _column(places: Places, k: int, op: Op, large: Array, inner: int, part: Array) -> None:
    """A column of an array of rows of ``inner`` elements, and the same as an array."""
    b = places.b
    with count(b, *limits_of(places, k, part.type.shape[0])) as at:
        place = b.mul(at, whole(inner))
        if op is Op.GATHER:
            store(b, part, at, load(b, large, place))
        elif op is Op.SCATTER:
            store(b, large, place, load(b, part, at))
        else:
            add_lanes(b, large, place, load(b, part, at))


def _copy(places: Places, to: Array, source: Array, first: Value, end: Value) -> None:
    b = places.b
    size = b.mul(larger(b, b.sub(end, first), whole(0)), whole(ITEMSIZE[to.type.dtype]))
    emit_copy(b, moved(b, to, first).pointer, moved(b, source, first).pointer, size)


def lower_product(places: Places, k: int, row: Row) -> None:
    """A product of a vector with a part of a matrix."""
    b, product = places.b, places.fusion.products[k]
    small = is_small(row.type)
    out = places.passing(row.type) if small else places.place(k)
    matrix, vector = places.memory(product.matrix), places.memory(product.vector)
    rows, columns = (
        (whole(0), whole(n)) if span is None else limits(b, span, n, places.number)
        for span, n in zip(product.spans, matrix.type.shape, strict=True)
    )
    kernel = dots if product.sums_rows else combined
    kernel(b, out.array, matrix, vector, rows, columns)
    places.bind(k, registers.read(b, out.array) if small else out)
