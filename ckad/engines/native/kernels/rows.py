"""Building stones of the kernels: rows of neighbouring elements, and nests of loops around them.

A row is walked eight lanes at a time; what is left is taken by pieces of four, two and one lanes,
so that no loop over single elements remains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from llvmlite import ir

from ckad.engines.native.ir.element import (
    BYTE,
    I32,
    I64,
    ITEMSIZE,
    POINTER,
    Array,
    Value,
    address,
    lanes_of,
    load,
    nbytes,
    register_type,
    store,
    whole,
)
from ckad.engines.native.ir.flow import carry, count
from ckad.tape.types import DType

LANES = 8
#: Columns that are carried through a loop over rows: eight vectors.
TILE = 64

# --- numbers -----------------------------------------------------------------------------------


def number(dtype: DType, value: float, lanes: int = 1) -> Value:
    """A constant register of ``dtype``."""
    type = register_type(dtype, lanes)
    value = float(value) if dtype <= DType.F32 else int(value)
    return ir.Constant(type, [value] * lanes if lanes > 1 else value)


def plus(b: ir.IRBuilder, dtype: DType, x: Value, y: Value) -> Value:
    """The sum as NumPy defines it for ``dtype``: of bools, the disjunction."""
    if dtype <= DType.F32:
        return b.fadd(x, y)
    return b.or_(x, y) if dtype is DType.BOOL else b.add(x, y)


def times(b: ir.IRBuilder, dtype: DType, x: Value, y: Value) -> Value:
    return b.fmul(x, y) if dtype <= DType.F32 else b.mul(x, y)


def splat(b: ir.IRBuilder, value: Value, lanes: int) -> Value:
    if lanes == 1:
        return value
    type = ir.VectorType(value.type, lanes)
    first = b.insert_element(ir.Constant(type, ir.Undefined), value, ir.Constant(I32, 0))
    return b.shuffle_vector(first, ir.Constant(type, ir.Undefined), _places([0] * lanes))


def halves(b: ir.IRBuilder, x: Value) -> tuple[Value, Value]:
    """The lower and the upper lanes of a vector; scalars if there are two."""
    n = x.type.count // 2
    if n == 1:
        return tuple(b.extract_element(x, ir.Constant(I32, k)) for k in range(2))
    parts = (range(n), range(n, 2 * n))
    return tuple(b.shuffle_vector(x, x, _places(part)) for part in parts)


def packed(b: ir.IRBuilder, values: Sequence[Value]) -> Value:
    """Scalars as the lanes of one vector."""
    if len(values) == 1:
        return values[0]
    vector = ir.Constant(ir.VectorType(values[0].type, len(values)), ir.Undefined)
    for k, value in enumerate(values):
        vector = b.insert_element(vector, value, ir.Constant(I32, k))
    return vector


def backwards(b: ir.IRBuilder, x: Value) -> Value:
    """The lanes of a vector in the other order."""
    if not isinstance(x.type, ir.VectorType):
        return x
    return b.shuffle_vector(x, x, _places(range(x.type.count - 1, -1, -1)))


def _places(places: Sequence[int]) -> Value:
    return ir.Constant(lanes_of(I32, len(places)), list(places))


# --- places ------------------------------------------------------------------------------------


def around(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """The shape as (what is before the axis, the axis, what is after it)."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def offset(b: ir.IRBuilder, indices: Sequence[Value], strides: Sequence[int]) -> Value:
    """The element that ``indices`` name."""
    total = whole(0)
    for index, stride in zip(indices, strides, strict=True):
        if stride and not _is_zero(index):
            total = further(b, total, b.mul(index, whole(stride)) if stride != 1 else index)
    return total


def further(b: ir.IRBuilder, at: Value, by: Value | int) -> Value:
    """``at + by``, folded where both are known."""
    by = whole(by) if isinstance(by, int) else by
    if _is_zero(by):
        return at
    return by if _is_zero(at) else b.add(at, by)


def _is_zero(value: Value) -> bool:
    return isinstance(value, ir.Constant) and value.constant == 0


def moved(b: ir.IRBuilder, array: Array, by: Value) -> Array:
    """The array as seen from element ``by``; what remains of its type is the dtype."""
    if _is_zero(by):
        return array
    return array._replace(pointer=b.bitcast(address(b, array, by), POINTER))


# --- loops -------------------------------------------------------------------------------------


@contextmanager
def every(b: ir.IRBuilder, n: int, step: int = 1) -> Iterator[Value]:
    """A loop over 0, step, ... below n; no loop where there is one turn."""
    if 0 < n <= step:
        yield whole(0)
        return
    with count(b, whole(0), whole(n), step) as at:
        yield at


@contextmanager
def nest(b: ir.IRBuilder, extents: Sequence[int]) -> Iterator[list[Value]]:
    """A loop per extent, the last one innermost."""
    with ExitStack() as loops:
        yield [loops.enter_context(every(b, n)) for n in extents]


def fold(
    b: ir.IRBuilder,
    extents: Sequence[int],
    initial: Sequence[Value],
    body: Callable[[list[Value], Sequence[Value]], Sequence[Value]],
) -> Sequence[Value]:
    """Values carried through a nest of loops: ``body(indices, values)`` gives the next ones."""

    def level(indices: list[Value], values: Sequence[Value]) -> Sequence[Value]:
        if len(indices) == len(extents):
            return body(indices, values)
        with carry(b, whole(0), whole(extents[len(indices)]), values) as (at, now, put):
            put(level([*indices, at], now))
        return now

    return level([], initial)


def pieces(n: int) -> list[tuple[int, int]]:
    """(first place, lanes) of vectors that cover n places."""
    found, at = [], 0
    for lanes in (*[LANES] * (n // LANES), 4, 2, 1):
        if at + lanes <= n:
            found.append((at, lanes))
            at += lanes
    return found


def along(b: ir.IRBuilder, n: int, body: Callable[[Value, int], None]) -> None:
    """``body(at, lanes)`` for all places below n."""
    full = n - n % LANES
    if full:
        with every(b, full, LANES) as at:
            body(at, LANES)
    for first, lanes in pieces(n - full):
        body(whole(full + first), lanes)


def tiles(
    b: ir.IRBuilder, n: int, body: Callable[[Value, Sequence[tuple[int, int]]], None]
) -> None:
    """``body(first, pieces)`` for tiles of columns that together cover n."""
    full = n - n % TILE
    if full:
        with every(b, full, TILE) as at:
            body(at, pieces(TILE))
    if n > full:
        body(whole(full), pieces(n - full))


# --- rows --------------------------------------------------------------------------------------


def emit_copy(b: ir.IRBuilder, out_pointer: Value, in_pointer: Value, nbytes: Value | int) -> None:
    """Copy ``nbytes`` bytes between places that do not overlap."""
    if nbytes == 0:
        return
    size = whole(nbytes) if isinstance(nbytes, int) else nbytes
    copy = b.module.declare_intrinsic("llvm.memcpy", [POINTER, POINTER, I64])
    b.call(copy, [out_pointer, in_pointer, size, ir.Constant(ir.IntType(1), 0)])


def emit_zeros(b: ir.IRBuilder, out: Array) -> None:
    """All bytes of ``out`` zero, which is the number 0 in every dtype."""
    if out.type.size:
        fill = b.module.declare_intrinsic("llvm.memset", [POINTER, I64])
        size = whole(nbytes(out.type))
        b.call(fill, [out.pointer, ir.Constant(BYTE, 0), size, ir.Constant(ir.IntType(1), 0)])


def emit_fill(b: ir.IRBuilder, out: Array, value: Value) -> None:
    """Every element of ``out`` the scalar register ``value``."""
    fill_row(b, out, value, out.type.size)


def fill_row(b: ir.IRBuilder, to: Array, value: Value, n: int) -> None:
    vector = splat(b, value, LANES)
    values = {LANES: vector, 1: value}

    def write(at: Value, lanes: int) -> None:
        if lanes not in values:
            values[lanes] = splat(b, value, lanes)
        store(b, to, at, values[lanes])

    along(b, n, write)


def copy_row(b: ir.IRBuilder, to: Array, source: Array, n: int) -> None:
    emit_copy(b, to.pointer, source.pointer, n * ITEMSIZE[to.type.dtype])


def add_lanes(b: ir.IRBuilder, to: Array, at: Value, more: Value, lanes: int = 1) -> None:
    store(b, to, at, plus(b, to.type.dtype, load(b, to, at, lanes), more))


def add_row(b: ir.IRBuilder, to: Array, source: Array, n: int) -> None:
    def add(at: Value, lanes: int) -> None:
        add_lanes(b, to, at, load(b, source, at, lanes), lanes)

    along(b, n, add)
