"""A large matrix by a vector, and its transpose by another one, in one pass over the matrix.

The rows are cut into blocks, which follow from the shape alone and which threads share. A row by
the vector is a dot in eight lanes, as among small products. The product of the transpose is added
up row after row within a block, and block after block. A float32 is added up as a double.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from llvmlite import ir

from ckad.engines.native.ir.element import Array, Value, load, rounded, store, whole
from ckad.engines.native.ir.flow import carry, count, smaller
from ckad.engines.native.kernels.rows import (
    LANES,
    along,
    emit_zeros,
    further,
    halves,
    moved,
    number,
    offset,
    plus,
    splat,
    times,
)
from ckad.tape.types import DType, Type, c_strides

#: Rows that are read at the same time; a block has a multiple of them.
GROUP = 8
#: Blocks are about so many, or of so many rows at the least.
BLOCKS, LEAST_ROWS = 32, 64


class Sweep(NamedTuple):
    """How a matrix is cut."""

    matrix: Type

    @property
    def block(self) -> int:
        """Rows of a block."""
        rows = max(LEAST_ROWS, -(-self.matrix.shape[0] // BLOCKS))
        return -(-rows // GROUP) * GROUP

    @property
    def n_blocks(self) -> int:
        return -(-self.matrix.shape[0] // self.block)

    @property
    def partial(self) -> Type:
        """What each block adds to the product of the transpose."""
        return Type(DType.F64, (self.n_blocks, self.matrix.shape[1]))


class Places(NamedTuple):
    """The arrays of a sweep; those that it does not need are None.

    With ``partial`` but without ``left`` the columns' factors are the dots of the same pass.
    """

    matrix: Array
    right: Array | None = None  # a row's factors, and the dots with them
    dots: Array | None = None
    left: Array | None = None  # a column's factors, and the sums of each block
    partial: Array | None = None


def emit_sweep(b: ir.IRBuilder, sweep: Sweep, places: Places, first: Value, last: Value) -> None:
    """The blocks [first, last)."""
    rows = whole(sweep.matrix.shape[0])
    with count(b, first, last) as block:
        start = b.mul(block, whole(sweep.block))
        stop = smaller(b, b.add(start, whole(sweep.block)), rows)
        if places.partial is not None:
            at = offset(b, [block], c_strides(sweep.partial.shape)[:1])
            own = moved(b, places.partial, at)
            own = own._replace(type=Type(DType.F64, sweep.partial.shape[1:]))
            emit_zeros(b, own)
            places = places._replace(partial=own)
        groups = b.add(start, b.and_(b.sub(stop, start), whole(-GROUP)))
        with count(b, start, groups, GROUP) as r:
            _rows(b, sweep, places, r, GROUP)
        with count(b, groups, stop) as r:
            _rows(b, sweep, places, r, 1)


def emit_total(b: ir.IRBuilder, out: Array, partial: Array) -> None:
    """The product of the transpose from what each block adds to it, block after block."""
    blocks, n = partial.type.shape

    def add(at: Value, lanes: int) -> None:
        start = [number(DType.F64, 0, lanes)]
        with carry(b, whole(0), whole(blocks), start) as (block, (total,), put):
            put([b.fadd(total, load(b, partial, offset(b, [block, at], [n, 1]), lanes))])
        store(b, out, at, total)

    along(b, n, add)


def _rows(b: ir.IRBuilder, sweep: Sweep, places: Places, r: Value, n: int) -> None:
    """Rows r to r + n, all that is wanted of them."""
    numbers = [further(b, r, i) for i in range(n)]
    lines = [moved(b, places.matrix, offset(b, [i], [sweep.matrix.shape[1]])) for i in numbers]
    left = None
    if places.left is not None:
        left = [load(b, places.left, i) for i in numbers]
    dots = _pass(b, places, lines, places.right is not None, left)
    if places.dots is None:
        return
    for i, dot in zip(numbers, dots, strict=True):
        store(b, places.dots, i, dot)
    if places.partial is not None and left is None:
        dtype = sweep.matrix.dtype
        _pass(b, places, lines, False, [rounded(b, dtype, dot) for dot in dots])


def _pass(
    b: ir.IRBuilder,
    places: Places,
    lines: Sequence[Array],
    by_rows: bool,
    left: Sequence[Value] | None,
) -> list[Value]:
    """Dots of the lines, if they are wanted; what they add to the sums, if ``left`` is given."""
    n = places.matrix.type.shape[1]
    vectors = n - n % LANES
    sums = _columns(b, places, lines, by_rows, left, (0, vectors), LANES)
    rest = _columns(b, places, lines, by_rows, left, (vectors, n), 1)
    dtype = places.matrix.type.dtype
    return [plus(b, dtype, _folded(b, dtype, s), t) for s, t in zip(sums, rest, strict=True)]


def _columns(
    b: ir.IRBuilder,
    places: Places,
    lines: Sequence[Array],
    by_rows: bool,
    left: Sequence[Value] | None,
    span: tuple[int, int],
    lanes: int,
) -> list[Value]:
    dtype = places.matrix.type.dtype
    start = [number(dtype, 0, lanes)] * len(lines) if by_rows else []
    if span[0] == span[1]:
        return start
    factors = [splat(b, v, lanes) for v in left or ()]
    with carry(b, whole(span[0]), whole(span[1]), start, lanes) as (at, dots, put):
        loaded = [load(b, line, at, lanes) for line in lines]
        if by_rows:
            assert places.right is not None
            right = load(b, places.right, at, lanes)
            products = [times(b, dtype, x, right) for x in loaded]
            put([plus(b, dtype, *pair) for pair in zip(dots, products, strict=True)])
        if left is not None:
            assert places.partial is not None
            total = load(b, places.partial, at, lanes)
            for factor, x in zip(factors, loaded, strict=True):
                total = plus(b, dtype, total, times(b, dtype, factor, x))
            store(b, places.partial, at, total)
    return dots


def _folded(b: ir.IRBuilder, dtype: DType, x: Value) -> Value:
    """The sum of the lanes, in halves."""
    while isinstance(x.type, ir.VectorType):
        x = plus(b, dtype, *halves(b, x))
    return x
