"""Kernels of the batched matrix product.

Large products go to BLAS, in the precision of their numbers. Others are written as loops whose
results are added up in registers, in the order of the summed index (rows) or in eight lanes (dots);
no multiplication is fused with an addition, and a float32 is added up as a double and rounded once.
Of middle size are products of float32, and of few rows by a transpose, that loops do as BLAS would:
added up as such, and fused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from llvmlite import ir

from ckad.engines.native.ir.element import (
    I32,
    STORED,
    Array,
    Value,
    lanes_of,
    load,
    load_stored,
    store,
    store_stored,
    whole,
)
from ckad.engines.native.ir.flow import carry, count
from ckad.engines.native.kernels.blas import Product, emit_blocks, n_blocks, product_of
from ckad.engines.native.kernels.reductions import fold_row
from ckad.engines.native.kernels.rows import (
    LANES,
    emit_zeros,
    every,
    further,
    halves,
    moved,
    nest,
    number,
    offset,
    packed,
    pieces,
    plus,
    splat,
    times,
)
from ckad.rules.ir import intrinsic
from ckad.tape.ops import Op
from ckad.tape.types import DType, Type

#: Results that are added up at the same time, in vectors: with more, registers run out.
ACCUMULATORS = 8
#: Rows of a tile where there are enough.
ROWS = 4


def _emit(b: ir.IRBuilder, attrs: Sequence[int], out: Array, x: Array, y: Array) -> None:
    product = product_of(attrs, out.type, x.type)
    if out.type.size == 0:
        return
    if product.k == 0:
        emit_zeros(b, out)
        return
    if product.is_large(out.type.dtype):
        emit_parts(b, attrs, (out, x, y), whole(0), whole(n_parts(attrs, out.type, x.type)))
        return
    with nest(b, out.type.shape[:1]) as (page,):
        _page(b, product, WIDE, *_pages(b, product, (out, x, y), page))


def n_parts(attrs: Sequence[int], out: Type, x: Type) -> int:
    """How many parts of a large product may be done by themselves."""
    is_middle = product_of(attrs, out, x).is_middle(out.dtype)
    return out.shape[0] if is_middle else n_blocks(attrs, out, x)


def emit_parts(
    b: ir.IRBuilder, attrs: Sequence[int], arrays: Sequence[Array], first: Value, last: Value
) -> None:
    """The parts [first, last) of a large product, the first of the arrays: pages or blocks."""
    out, x = arrays[:2]
    product = product_of(attrs, out.type, x.type)
    if not product.is_middle(out.type.dtype):
        emit_blocks(b, attrs, arrays, first, last)
        return
    with count(b, first, last) as page:
        _page(b, product, SINGLE, *_pages(b, product, arrays, page))


def _pages(b: ir.IRBuilder, p: Product, arrays: Sequence[Array], page: Value) -> Iterator[Array]:
    """One matrix of each stack."""
    sizes = p.m * p.n, p.m * p.k, p.k * p.n
    for array, size in zip(arrays, sizes, strict=True):
        yield moved(b, array, offset(b, [page], [size]))


class Numbers(NamedTuple):
    """How numbers are read, added up and written."""

    load: Callable[..., Value]
    start: Callable[[DType, int], Value]
    add: Callable[[ir.IRBuilder, DType, Value, Value, Value], Value]
    store: Callable[[ir.IRBuilder, Array, Value, Value], None]


def _add_product(b: ir.IRBuilder, dtype: DType, total: Value, u: Value, v: Value) -> Value:
    return plus(b, dtype, total, times(b, dtype, u, v))


def _fused(b: ir.IRBuilder, dtype: DType, total: Value, u: Value, v: Value) -> Value:
    return intrinsic("llvm.fma")(b, u, v, total)


def _zeros(dtype: DType, lanes: int) -> Value:
    return ir.Constant(lanes_of(STORED[dtype], lanes), None)


WIDE = Numbers(load, lambda dtype, lanes: number(dtype, 0, lanes), _add_product, store)
SINGLE = Numbers(load_stored, _zeros, _fused, store_stored)


def _page(b: ir.IRBuilder, p: Product, how: Numbers, out: Array, x: Array, y: Array) -> None:
    if p.n == 1:
        # a column is written as the row it is in memory
        p, x, y = Product(1, p.k, p.m, 0, 1 - p.tx), y, x
    if p.m == 1 or p.k == 1:
        p = p._replace(tx=0)
    if p.k == 1:
        p = p._replace(ty=0)
    if not p.ty:
        _by_rows(b, p, how, out, x, y)
    else:
        _by_dots(b, p, how, out, x, y)


# --- rows: results of neighbouring columns side by side ------------------------------------------


def _by_rows(b: ir.IRBuilder, p: Product, how: Numbers, out: Array, x: Array, y: Array) -> None:
    rows = min(p.m, ROWS)
    full = p.m - p.m % rows
    with every(b, full, rows) as r:
        _row_tiles(b, p, how, out, x, y, r, rows)
    if p.m > full:
        # one by one: fewer instructions to compile than a tile of their number
        with count(b, whole(full), whole(p.m)) as r:
            _row_tiles(b, p, how, out, x, y, r, 1)


def _row_tiles(
    b: ir.IRBuilder,
    p: Product,
    how: Numbers,
    out: Array,
    x: Array,
    y: Array,
    r: Value,
    rows: int,
) -> None:
    """Rows r to r + rows of the result, in tiles of as many columns as there are accumulators."""
    width = ACCUMULATORS // rows * LANES
    full = p.n - p.n % width
    if full:
        with every(b, full, width) as c:
            _row_tile(b, p, how, out, x, y, (r, rows), (c, pieces(width)))
    if p.n > full:
        _row_tile(b, p, how, out, x, y, (r, rows), (whole(full), pieces(p.n - full)))


def _row_tile(
    b: ir.IRBuilder,
    p: Product,
    how: Numbers,
    out: Array,
    x: Array,
    y: Array,
    rows: tuple[Value, int],
    columns: tuple[Value, Sequence[tuple[int, int]]],
) -> None:
    dtype, (c, parts) = out.type.dtype, columns
    strides = (1, p.m) if p.tx else (p.k, 1)
    at_rows = [further(b, rows[0], i) for i in range(rows[1])]
    start = [how.start(dtype, lanes) for _ in at_rows for _, lanes in parts]
    with carry(b, whole(0), whole(p.k), start) as (q, totals, put):
        left = [how.load(b, x, offset(b, [r, q], strides)) for r in at_rows]
        y_row = moved(b, y, offset(b, [q, c], [p.n, 1]))
        right = [how.load(b, y_row, whole(part), lanes) for part, lanes in parts]
        factors = [
            (splat(b, u, n), v) for u in left for v, (_, n) in zip(right, parts, strict=True)
        ]
        put([how.add(b, dtype, t, *f) for t, f in zip(totals, factors, strict=True)])
    places = [offset(b, [r, further(b, c, part)], [p.n, 1]) for r in at_rows for part, _ in parts]
    for place, total in zip(places, totals, strict=True):
        how.store(b, out, place, total)


# --- dots: the right factor lies transposed, so that the summed index is contiguous in it --------


def _by_dots(b: ir.IRBuilder, p: Product, how: Numbers, out: Array, x: Array, y: Array) -> None:
    rows, columns = (1, LANES) if p.m == 1 else (2, LANES // 2)
    full_m, full_n = p.m - p.m % rows, p.n - p.n % columns
    if p.tx or p.k < LANES or not full_n:
        _lone_dots(b, p, how, out, x, y)
        return
    with every(b, full_m, rows) as r:
        with every(b, full_n, columns) as c:
            _dot_tile(b, p, how, out, x, y, (r, rows), (c, columns))
        if p.n > full_n:
            with nest(b, [rows, p.n - full_n]) as (i, j):
                _dot_tile(b, p, how, out, x, y, (further(b, r, i), 1), (further(b, j, full_n), 1))
    if p.m > full_m:
        with nest(b, [p.n]) as (c,):
            _dot_tile(b, p, how, out, x, y, (whole(full_m), 1), (c, 1))


def _lone_dots(b: ir.IRBuilder, p: Product, how: Numbers, out: Array, x: Array, y: Array) -> None:
    """One result after the other; each as a row is summed where both factors are contiguous."""
    dtype = out.type.dtype
    add = partial(plus, b, dtype)
    with nest(b, [p.m, p.n]) as (r, c):
        row = moved(b, x, offset(b, [r], [1 if p.tx else p.k]))
        column = moved(b, y, offset(b, [c], [p.k]))

        def term(at: Value, lanes: int) -> Value:
            u = how.load(b, row, offset(b, [at], [p.m if p.tx else 1]), lanes)
            return times(b, dtype, u, how.load(b, column, at, lanes))

        if p.tx:
            with carry(b, whole(0), whole(p.k), [how.start(dtype, 1)]) as (q, (total,), put):
                put([add(total, term(q, 1))])
        else:
            total = fold_row(b, p.k, term, add, how.start(dtype, 1))
        how.store(b, out, offset(b, [r, c], [p.n, 1]), total)


def _dot_tile(
    b: ir.IRBuilder,
    p: Product,
    how: Numbers,
    out: Array,
    x: Array,
    y: Array,
    rows: tuple[Value, int],
    columns: tuple[Value, int],
) -> None:
    """The dots of some rows with some columns, eight in all or a single one."""
    dtype = out.type.dtype
    lefts = [moved(b, x, offset(b, [further(b, rows[0], i)], [p.k])) for i in range(rows[1])]
    rights = [moved(b, y, offset(b, [further(b, columns[0], i)], [p.k])) for i in range(columns[1])]

    def dots(first: int, stop: int, lanes: int) -> Sequence[Value]:
        start = [how.start(dtype, lanes)] * (len(lefts) * len(rights))
        with carry(b, whole(first), whole(stop), start, lanes) as (q, totals, put):
            left, right = ([how.load(b, a, q, lanes) for a in side] for side in (lefts, rights))
            factors = [(u, v) for u in left for v in right]
            put([how.add(b, dtype, t, *f) for t, f in zip(totals, factors, strict=True)])
        return totals

    vectors = p.k - p.k % LANES
    total = _lane_sums(b, dtype, dots(0, vectors, LANES))
    if p.k > vectors:
        total = plus(b, dtype, total, packed(b, dots(vectors, p.k, 1)))
    parts = [total] if rows[1] == 1 else halves(b, total)
    for i, part in enumerate(parts):
        how.store(b, out, offset(b, [further(b, rows[0], i), columns[0]], [p.n, 1]), part)


def _lane_sums(b: ir.IRBuilder, dtype: DType, vectors: Sequence[Value]) -> Value:
    """Lane j of the result is the sum of the lanes of vector j, as if each was folded in halves."""
    if len(vectors) == 1:
        total = vectors[0]
        while isinstance(total.type, ir.VectorType):
            total = plus(b, dtype, *halves(b, total))
        return total
    width = LANES
    while len(vectors) > 1:
        half = width // 2
        low = [g + i for g in range(0, 2 * LANES, width) for i in range(half)]
        masks = [ir.Constant(ir.VectorType(I32, LANES), [i + h for i in low]) for h in (0, half)]
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [plus(b, dtype, *[b.shuffle_vector(u, v, m) for m in masks]) for u, v in pairs]
        width = half
    return vectors[0]


PRODUCTS = {Op.MATMUL: _emit}
