"""Small arrays in registers: elements in C order, cut into parts of eight lanes and less.

Ops that move elements become shuffles: which element goes where is found by evaluating the op on
the elements' numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from ckad.engines.native.ir.apply import apply
from ckad.engines.native.ir.element import (
    I32,
    I64,
    Array,
    Value,
    load,
    register_type,
    store,
    whole,
)
from ckad.tape.ops import Op
from ckad.tape.types import DType, Type

LANES = 8
#: Arrays of at most this many elements are kept in registers; if their last axis is short, which
#: makes loops over them slow, also larger ones.
SMALL = 64
SHORT, SMALL_IF_SHORT = 16, 256
ZERO = -1


class Registers(NamedTuple):
    """A small array; the parts have the widths that ``widths`` gives for its size."""

    type: Type
    parts: tuple[Value, ...]


def is_small(type: Type) -> bool:
    """Whether values of the type are kept in registers."""
    if type.size <= SMALL:
        return True
    return type.size <= SMALL_IF_SHORT and type.shape[-1] < SHORT


def widths(n: int) -> list[int]:
    """How many lanes the parts of n elements have."""
    if n <= 4:
        return [1] * n
    rest = n % LANES
    return [LANES] * (n // LANES) + [4] * (rest // 4) + [1] * (rest % 4)


def places(n: int) -> list[tuple[int, int]]:
    """(part, lane) of each of n elements."""
    return [(part, lane) for part, width in enumerate(widths(n)) for lane in range(width)]


def constant(array: np.ndarray, type: Type) -> Registers:
    numbers = array.ravel().tolist()
    element = register_type(type.dtype)
    parts, at = [], 0
    for width in widths(type.size):
        some = [ir.Constant(element, int(x) if element is I64 else x) for x in numbers[at:][:width]]
        parts.append(some[0] if width == 1 else ir.Constant(register_type(type.dtype, width), some))
        at += width
    return Registers(type, tuple(parts))


def splat(b: ir.IRBuilder, scalar: Value, lanes: int) -> Value:
    """``scalar`` in every lane."""
    if lanes == 1:
        return scalar
    type = ir.VectorType(scalar.type, lanes)
    if isinstance(scalar, ir.Constant):
        return ir.Constant(type, [scalar] * lanes)
    one = b.insert_element(ir.Constant(type, ir.Undefined), scalar, ir.Constant(I32, 0))
    mask = ir.Constant(ir.VectorType(I32, lanes), [0] * lanes)
    return b.shuffle_vector(one, ir.Constant(type, ir.Undefined), mask)


def read(b: ir.IRBuilder, array: Array) -> Registers:
    """Load a small array."""
    parts, at = [], 0
    for width in widths(array.type.size):
        parts.append(load(b, array, whole(at), width))
        at += width
    return Registers(array.type, tuple(parts))


def write(b: ir.IRBuilder, array: Array, value: Registers) -> None:
    at = 0
    for width, part in zip(widths(array.type.size), value.parts, strict=True):
        store(b, array, whole(at), part)
        at += width


def elementwise(b: ir.IRBuilder, op: int, out: Type, operands: Sequence[Registers]) -> Registers:
    dtypes = [x.type.dtype for x in operands]
    parts = zip(*(x.parts for x in operands), strict=True)
    return Registers(out, tuple(apply(b, op, dtypes, out.dtype, values) for values in parts))


def moved(
    b: ir.IRBuilder, out: Type, sources: Sequence[Registers], evaluate: Callable[..., np.ndarray]
) -> Registers:
    """An op that only moves elements: ``evaluate`` does to numbers what it does to the elements.

    It is given arrays of the elements' numbers, counted through all sources from 1; 0 is zero.
    """
    numbers, first = [], 1
    for x in sources:
        numbers.append(np.arange(first, first + x.type.size).reshape(x.type.shape))
        first += x.type.size
    return shuffled(b, out, sources, (evaluate(*numbers) - 1).ravel().tolist())


def shuffled(
    b: ir.IRBuilder, out: Type, sources: Sequence[Registers], picks: Sequence[int]
) -> Registers:
    """The elements ``picks`` of all sources, counted one source after the other."""
    table: list[tuple[Value, int]] = []
    for x in sources:
        table += [(x.parts[part], lane) for part, lane in places(x.type.size)]
    parts, at = [], 0
    for width in widths(out.size):
        chosen = [None if p == ZERO else table[p] for p in picks[at : at + width]]
        parts.append(_part(b, out.dtype, chosen))
        at += width
    return Registers(out, tuple(parts))


def _part(b: ir.IRBuilder, dtype: DType, chosen: list[tuple[Value, int] | None]) -> Value:
    element, width = register_type(dtype), len(chosen)
    if width == 1:
        return ir.Constant(element, 0) if chosen[0] is None else lane_of(b, *chosen[0])
    first = chosen[0]
    if first and _lanes(first[0]) == width and chosen == [(first[0], k) for k in range(width)]:
        return first[0]
    sources = list(dict.fromkeys(c[0] if c else None for c in chosen))
    vectors = [v for v in sources if v is not None]
    sizes = {_lanes(v) for v in vectors}
    if len(sources) <= 2 and len(sizes) == 1 and sizes != {1}:
        (lanes,) = sizes
        type = ir.VectorType(element, lanes)
        two = [ir.Constant(type, None) if v is None else v for v in sources]
        two += [ir.Constant(type, ir.Undefined)] * (2 - len(two))
        mask = [sources.index(c[0]) * lanes + c[1] if c else sources.index(None) * lanes
                for c in chosen]  # fmt: skip
        return b.shuffle_vector(*two, ir.Constant(ir.VectorType(I32, width), mask))
    if len(sources) == 1 and vectors:
        return splat(b, vectors[0], width)
    result = _gathered(b, element, chosen)
    for k, c in enumerate(chosen):
        if c and _lanes(c[0]) == 1:
            result = b.insert_element(result, c[0], ir.Constant(I32, k))
    return result


def _gathered(b: ir.IRBuilder, element: ir.Type, chosen: list[tuple[Value, int] | None]) -> Value:
    """A vector whose elements come from vectors: from two at a time, then two by two in a tree."""
    type = ir.VectorType(element, len(chosen))
    sources = dict.fromkeys(c[0] for c in chosen if c and _lanes(c[0]) > 1)
    pieces: list[list[tuple[Value, int] | None]] = []
    for lanes in dict.fromkeys(map(_lanes, sources)):
        alike = [v for v in sources if _lanes(v) == lanes]
        for k in range(0, len(alike), 2):
            pair = alike[k : k + 2]
            pieces.append(_placed(b, [c if c and c[0] in pair else None for c in chosen], pair))
    if None in chosen:
        zeros = ir.Constant(type, None)
        pieces.append([None if c else (zeros, k) for k, c in enumerate(chosen)])
    while len(pieces) > 1:
        odd = pieces[len(pieces) & ~1 :]
        both = zip(pieces[::2], pieces[1::2], strict=False)
        pieces = [_joined(b, one, other) for one, other in both] + odd
    return next((c[0] for c in pieces[0] if c), None) if pieces else ir.Constant(type, ir.Undefined)


def _joined(
    b: ir.IRBuilder, one: list[tuple[Value, int] | None], other: list[tuple[Value, int] | None]
) -> list[tuple[Value, int] | None]:
    both = [x or y for x, y in zip(one, other, strict=True)]
    return _placed(b, both, list(dict.fromkeys(c[0] for c in both if c)))


def _placed(
    b: ir.IRBuilder, chosen: list[tuple[Value, int] | None], pair: Sequence[Value]
) -> list[tuple[Value, int] | None]:
    """The elements of two vectors at their places in one; None: whatever is there."""
    lanes = _lanes(pair[0])
    two = [*pair, ir.Constant(pair[0].type, ir.Undefined)][:2]
    mask = [pair.index(c[0]) * lanes + c[1] if c else k % lanes for k, c in enumerate(chosen)]
    made = b.shuffle_vector(*two, ir.Constant(ir.VectorType(I32, len(chosen)), mask))
    return [c and (made, k) for k, c in enumerate(chosen)]


def _lanes(value: Value) -> int:
    return value.type.count if isinstance(value.type, ir.VectorType) else 1


def lane_of(b: ir.IRBuilder, part: Value, lane: int) -> Value:
    if not isinstance(part.type, ir.VectorType):
        return part
    return b.extract_element(part, ir.Constant(I32, lane))


def scalar(b: ir.IRBuilder, value: Registers) -> Value:
    """The only element."""
    return value.parts[0]


# --- reductions and products -------------------------------------------------------------------


def add(b: ir.IRBuilder, dtype: DType, x: Value, y: Value) -> Value:
    return apply(b, Op.ADD, (dtype, dtype), dtype, (x, y))


def in_pairs(b: ir.IRBuilder, dtype: DType, values: Sequence[Value]) -> Value:
    """A sum as a tree; the order depends on the number of values alone."""
    values = list(values)
    while len(values) > 1:
        odd = values[len(values) & ~1 :]
        values = [add(b, dtype, x, y) for x, y in zip(values[::2], values[1::2], strict=False)]
        values += odd
    return values[0]


def total(b: ir.IRBuilder, dtype: DType, vector: Value) -> Value:
    """The sum of the lanes: halves are added until two lanes are left."""
    lanes = _lanes(vector)
    while lanes > 2:
        lanes //= 2
        low, high = (
            b.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(I32, lanes), mask))
            for mask in (list(range(lanes)), list(range(lanes, 2 * lanes)))
        )
        vector = add(b, dtype, low, high)
    return add(b, dtype, *(lane_of(b, vector, k) for k in range(2)))


def summed(b: ir.IRBuilder, out: Type, x: Registers, axes: Sequence[int]) -> Registers:
    """SUM over some axes."""
    dtype = out.dtype
    numbers = np.arange(x.type.size).reshape(x.type.shape)
    kept = [k for k in range(numbers.ndim) if k not in axes]
    if x.type.size == 0:
        return constant(np.zeros(out.shape), out)
    lists = numbers.transpose(*kept, *axes).reshape(out.size, -1)
    if out.size == 1:
        wide = [p for p in x.parts if _lanes(p) == LANES]
        sums = [total(b, dtype, in_pairs(b, dtype, wide))] if wide else []
        for part in x.parts[len(wide) :]:
            sums.append(part if _lanes(part) == 1 else total(b, dtype, part))
        return Registers(out, (in_pairs(b, dtype, sums),))
    terms = [shuffled(b, out, [x], lists[:, k].tolist()) for k in range(lists.shape[1])]
    parts = zip(*(t.parts for t in terms), strict=True)
    return Registers(out, tuple(in_pairs(b, dtype, p) for p in parts))


def product(
    b: ir.IRBuilder, out: Type, x: Registers, y: Registers, attrs: Sequence[int]
) -> Registers:
    """MATMUL: for each inner index a column of x times a row of y, added in order."""
    left = np.arange(x.type.size).reshape(x.type.shape)
    right = np.arange(y.type.size).reshape(y.type.shape)
    left = left.swapaxes(1, 2) if attrs[0] else left
    right = right.swapaxes(1, 2) if attrs[1] else right

    def term(k: int) -> Registers:
        shape = out.shape
        a = shuffled(b, out, [x], np.broadcast_to(left[:, :, k, None], shape).ravel().tolist())
        c = shuffled(b, out, [y], np.broadcast_to(right[:, None, k, :], shape).ravel().tolist())
        return elementwise(b, Op.MUL, out, (a, c))

    terms = [term(k) for k in range(left.shape[2])]
    if not terms:
        return constant(np.zeros(out.shape), out)
    return reduce(lambda s, t: elementwise(b, Op.ADD, out, (s, t)), terms)
