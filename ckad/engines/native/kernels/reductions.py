"""Kernels of reductions.

The order of the additions depends on the shape alone:

- a row of neighbouring elements: strips of 4096; in a strip four vectors of eight lanes take turns,
  they are added in pairs; the strips are added in order, then whole vectors that are left, then the
  lanes in halves, then what is left of the row, which is added up apart;
- columns: row after row, from the first to the last;
- several axes: as the above, the groups of neighbouring axes from the first to the last.

A float32 is added up as a double and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from llvmlite import ir

from ckad.engines.native.ir.element import Array, Value, load, nbytes, store, whole
from ckad.engines.native.ir.flow import carry
from ckad.engines.native.kernels.rows import (
    LANES,
    emit_copy,
    emit_fill,
    fold,
    further,
    halves,
    moved,
    nest,
    number,
    offset,
    plus,
    splat,
    tiles,
    times,
)
from ckad.tape.ops import Op
from ckad.tape.types import DType, c_strides

#: Vectors that a row is folded into in turn: an addition waits for the one before it.
TURNS = 4
#: Elements of a strip of a row.
STRIP = 4096

Combine = Callable[[Value, Value], Value]


class Fold(NamedTuple):
    """``combine(b, dtype, so far, next)``; without a neutral number it starts from an element."""

    combine: Callable[[ir.IRBuilder, DType, Value, Value], Value]
    neutral: float | None


class Axis(NamedTuple):
    """Neighbouring axes taken as one, all of them reduced or all of them kept."""

    extent: int
    reduced: bool
    stride: int  # elements from one place to the next


def emit_fold(b: ir.IRBuilder, how: Fold, axes: Sequence[int], out: Array, x: Array) -> None:
    groups = grouped(x.type.shape, axes)
    if out.type.size == 0:
        return
    if x.type.size == 0:
        assert how.neutral is not None  # a tape that chooses among no elements is not valid
        emit_fill(b, out, number(x.type.dtype, how.neutral))
    elif not any(g.reduced for g in groups):
        emit_copy(b, out.pointer, x.pointer, nbytes(out.type))
    elif groups[-1].reduced:
        _rows(b, how, groups, out, x)
    else:
        _columns(b, how, groups, out, x)


def grouped(shape: Sequence[int], axes: Sequence[int]) -> list[Axis]:
    """The axes of ``shape`` merged into as few as there can be."""
    flags = [(d, k in axes) for k, d in enumerate(shape) if d != 1]
    merged = [(r, math.prod(d for d, _ in part)) for r, part in groupby(flags, lambda f: f[1])]
    strides = c_strides([d for _, d in merged])
    return [Axis(d, r, s) for (r, d), s in zip(merged, strides, strict=True)]


def _rows(b: ir.IRBuilder, how: Fold, groups: Sequence[Axis], out: Array, x: Array) -> None:
    """The last axis is reduced: folds of whole rows."""
    dtype, kept = x.type.dtype, [g for g in groups if not g.reduced]
    *outer, last = [g for g in groups if g.reduced]
    combine = partial(how.combine, b, dtype)
    with nest(b, [g.extent for g in kept]) as at:
        base = moved(b, x, offset(b, at, [g.stride for g in kept]))
        start = _start(b, how, base, whole(0), 1)

        def row(indices: Sequence[Value], values: Sequence[Value]) -> list[Value]:
            first = moved(b, base, offset(b, indices, [g.stride for g in outer]))
            value = fold_row(b, last.extent, partial(load, b, first), combine, start)
            return [combine(values[0], value) if outer else value]

        (value,) = fold(b, [g.extent for g in outer], [start], row)
        store(b, out, offset(b, at, c_strides([g.extent for g in kept])), value)


def fold_row(
    b: ir.IRBuilder,
    n: int,
    element: Callable[[Value, int], Value],
    combine: Combine,
    start: Value,
) -> Value:
    """Fold n elements; ``element(at, lanes)`` gives those from ``at`` on, ``start`` is neutral."""
    vectors, total = n - n % LANES, start
    if vectors:
        total = _fold_lanes(b, _fold_vectors(b, vectors, element, combine, start), combine)
    if n == vectors:
        return total
    with carry(b, whole(vectors), whole(n), [start]) as (at, (rest,), put):
        put([combine(rest, element(at, 1))])
    return combine(total, rest) if vectors else rest


def _fold_vectors(
    b: ir.IRBuilder,
    n: int,
    element: Callable[[Value, int], Value],
    combine: Combine,
    start: Value,
) -> Value:
    """The fold of n elements, a multiple of eight, as a vector."""
    full = n - n % (TURNS * LANES)
    total = splat(b, start, LANES)
    if full:
        total = _fold_strips(b, full, element, combine, total)
    if n > full:
        with carry(b, whole(full), whole(n), [total], LANES) as (at, (total,), put):
            put([combine(total, element(at, LANES))])
    return total


def _fold_strips(
    b: ir.IRBuilder,
    n: int,
    element: Callable[[Value, int], Value],
    combine: Combine,
    start: Value,
) -> Value:
    def strip(first: Value, stop: Value) -> Value:
        with carry(b, first, stop, [start] * TURNS, TURNS * LANES) as (at, values, put):
            places = [further(b, at, k * LANES) for k in range(TURNS)]
            loaded = [element(place, LANES) for place in places]
            put([combine(v, x) for v, x in zip(values, loaded, strict=True)])
        return combine(combine(values[0], values[1]), combine(values[2], values[3]))

    if n <= STRIP:
        return strip(whole(0), whole(n))
    with carry(b, whole(0), whole(n), [start], STRIP) as (at, (total,), put):
        end = b.add(at, whole(STRIP))
        stop = b.select(b.icmp_signed("<", end, whole(n)), end, whole(n))
        put([combine(total, strip(at, stop))])
    return total


def _fold_lanes(b: ir.IRBuilder, x: Value, combine: Combine) -> Value:
    while isinstance(x.type, ir.VectorType):
        x = combine(*halves(b, x))
    return x


def _columns(b: ir.IRBuilder, how: Fold, groups: Sequence[Axis], out: Array, x: Array) -> None:
    """The last axis is kept: its elements side by side in vectors, row after row added to them."""
    dtype, reduced = x.type.dtype, [g for g in groups if g.reduced]
    *outer, last = [g for g in groups if not g.reduced]
    to = [last.extent * s for s in c_strides([g.extent for g in outer])]
    with nest(b, [g.extent for g in outer]) as at:
        base = moved(b, x, offset(b, at, [g.stride for g in outer]))
        target = moved(b, out, offset(b, at, to))

        def tile(first: Value, parts: Sequence[tuple[int, int]]) -> None:
            places = [further(b, first, part) for part, _ in parts]
            lanes = [n for _, n in parts]

            def add(indices: Sequence[Value], values: Sequence[Value]) -> list[Value]:
                row = moved(b, base, offset(b, indices, [g.stride for g in reduced]))
                loaded = [load(b, row, p, n) for p, n in zip(places, lanes, strict=True)]
                return [how.combine(b, dtype, *v) for v in zip(values, loaded, strict=True)]

            initial = [_start(b, how, base, p, n) for p, n in zip(places, lanes, strict=True)]
            values = fold(b, [g.extent for g in reduced], initial, add)
            for place, value in zip(places, values, strict=True):
                store(b, target, place, value)

        tiles(b, last.extent, tile)


def _start(b: ir.IRBuilder, how: Fold, x: Array, at: Value, lanes: int) -> Value:
    if how.neutral is None:
        return load(b, x, at, lanes)
    return number(x.type.dtype, how.neutral, lanes)


def _extreme(largest: bool) -> Fold:
    """The extreme element is taken twice, which changes nothing: it may be the start."""
    relation = ">" if largest else "<"

    def combine(b: ir.IRBuilder, dtype: DType, best: Value, x: Value) -> Value:
        if dtype > DType.F32:
            return b.select(b.icmp_signed(relation, x, best), x, best)
        ahead = b.or_(b.fcmp_ordered(relation, x, best), b.fcmp_unordered("uno", x, x))
        return b.select(ahead, x, best)

    return Fold(combine, None)


FOLDS = {
    Op.SUM: Fold(plus, 0.0),
    Op.PROD: Fold(times, 1.0),
    Op.REDUCE_MAX: _extreme(True),
    Op.REDUCE_MIN: _extreme(False),
}


def _emitter(how: Fold) -> Callable[..., None]:
    return lambda b, attrs, out, x: emit_fold(b, how, attrs, out, x)


REDUCTIONS = {op: _emitter(how) for op, how in FOLDS.items()}
