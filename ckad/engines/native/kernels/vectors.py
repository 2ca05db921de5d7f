"""Kernels of products of a vector with a part of a matrix between bounds.

    dots      out[r] = sum of matrix[r, c] * vector[c]
    combined  out[c] = sum of vector[r] * matrix[r, c]

for r and c between bounds; the rest of ``out`` is zero. The order of the additions depends on the
bounds alone: dots take whole vectors of lanes in turns from the first column on, then what is left;
columns add row after row. A float32 is added up as a double and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ckad.engines.native.ir.element import Array, Value, load, store, whole
from ckad.engines.native.ir.flow import carry, count
from ckad.engines.native.kernels.rows import (
    LANES,
    emit_zeros,
    further,
    halves,
    moved,
    number,
    plus,
    splat,
    times,
)
from ckad.tape.types import DType

#: The first place of an axis, and the first beyond.
Limits = tuple[Value, Value]
#: (first place, lanes) -> the terms there
Products = Callable[[Value, int], Value]
#: Vectors of lanes that are added up in turn.
TURNS = 4


def dots(
    b: ir.IRBuilder, out: Array, matrix: Array, vector: Array, rows: Limits, columns: Limits
) -> None:
    dtype, n = out.type.dtype, matrix.type.shape[1]
    emit_zeros(b, out)
    with count(b, *rows) as r:
        row = moved(b, matrix, b.mul(r, whole(n)))

        def products(at: Value, lanes: int) -> Value:
            return times(b, dtype, load(b, row, at, lanes), load(b, vector, at, lanes))

        store(b, out, r, _sum(b, dtype, columns, products))


def _sum(b: ir.IRBuilder, dtype: DType, columns: Limits, products: Products) -> Value:
    first, stop = columns
    zero = number(dtype, 0, LANES)
    for vectors in (TURNS, 1):
        width = vectors * LANES
        length = b.sub(stop, first)
        end = b.add(first, b.sub(length, b.srem(length, whole(width))))
        start = [zero] * vectors
        with carry(b, first, end, start, width) as (at, totals, put):
            more = [products(further(b, at, k * LANES), LANES) for k in range(vectors)]
            put([plus(b, dtype, *pair) for pair in zip(totals, more, strict=True)])
        if vectors == TURNS:
            zero = plus(b, dtype, *(plus(b, dtype, *totals[k : k + 2]) for k in (0, 2)))
        first = end
    total = totals[0]
    while isinstance(total.type, ir.VectorType):
        total = plus(b, dtype, *halves(b, total))
    with carry(b, first, stop, [total]) as (at, (total,), put):
        put([plus(b, dtype, total, products(at, 1))])
    return total


def combined(
    b: ir.IRBuilder, out: Array, matrix: Array, vector: Array, rows: Limits, columns: Limits
) -> None:
    dtype, n = out.type.dtype, matrix.type.shape[1]
    emit_zeros(b, out)
    first, stop = columns
    for vectors, lanes in ((2 * TURNS, LANES), (1, LANES), (1, 1)):
        width = vectors * lanes
        length = b.sub(stop, first)
        end = b.add(first, b.sub(length, b.srem(length, whole(width))))
        with count(b, first, end, width) as c:
            places = [further(b, c, k * lanes) for k in range(vectors)]
            start = [number(dtype, 0, lanes)] * vectors
            with carry(b, *rows, start) as (r, totals, put):
                row = moved(b, matrix, b.mul(r, whole(n)))
                factor = splat(b, load(b, vector, r), lanes)
                terms = [times(b, dtype, factor, load(b, row, p, lanes)) for p in places]
                put([plus(b, dtype, *pair) for pair in zip(totals, terms, strict=True)])
            for place, total in zip(places, totals, strict=True):
                store(b, out, place, total)
        first = end
