"""Kernels that move elements: slices, paddings, transposes, joins, rolls.

Each is one or more strided copies. Axes that lie together in both arrays are walked as one, so that
what can be copied in one go is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from llvmlite import ir

from ckad.engines.native.ir.element import Array, Value, load, nbytes, store, whole
from ckad.engines.native.kernels.rows import (
    LANES,
    add_row,
    along,
    backwards,
    copy_row,
    emit_copy,
    emit_zeros,
    fill_row,
    moved,
    nest,
    offset,
    packed,
    pieces,
    plus,
)
from ckad.tape.ops import Op
from ckad.tape.types import c_strides, part_strides


class Axis(NamedTuple):
    """An axis of a copy: how many places, and elements from one to the next in either array."""

    extent: int
    to: int
    source: int


def joined(extents: Sequence[int], to: Sequence[int], source: Sequence[int]) -> list[Axis]:
    """The axes of a copy, those of one place left out, neighbours merged where they can be."""
    axes: list[Axis] = []
    for axis in map(Axis, extents, to, source):
        if axis.extent == 1:
            continue
        before = axes[-1] if axes else None
        if before and before[1:] == (axis.to * axis.extent, axis.source * axis.extent):
            axes[-1] = axis._replace(extent=before.extent * axis.extent)
        else:
            axes.append(axis)
    return axes


def copy_strided(
    b: ir.IRBuilder,
    extents: Sequence[int],
    out: Array,
    to: tuple[int, Sequence[int]],
    x: Array,
    source: tuple[int, Sequence[int]],
    add: bool = False,
) -> None:
    """Copy or add elements; ``to`` and ``source`` are the first element and the strides."""
    if 0 in extents:
        return
    out, x = moved(b, out, whole(to[0])), moved(b, x, whole(source[0]))
    axes = joined(extents, to[1], source[1]) or [Axis(1, 1, 1)]
    turned = _turned(axes) if not add else None
    if turned is not None:
        _copy_turned(b, axes, turned, out, x)
        return
    *outer, row = axes
    with nest(b, [a.extent for a in outer]) as at:
        target = moved(b, out, offset(b, at, [a.to for a in outer]))
        _row(b, row, target, moved(b, x, offset(b, at, [a.source for a in outer])), add)


def _row(b: ir.IRBuilder, row: Axis, out: Array, x: Array, add: bool) -> None:
    if (row.to, row.source) == (1, 1):
        (add_row if add else copy_row)(b, out, x, row.extent)
    elif (row.to, row.source) == (1, 0) and not add:
        fill_row(b, out, load(b, x, whole(0)), row.extent)
    elif {row.to, row.source} == {1, -1}:
        _reversed_row(b, row, out, x, add)
    else:
        with nest(b, [row.extent]) as at:
            place = offset(b, at, [row.to])
            value = load(b, x, offset(b, at, [row.source]))
            if add:
                value = plus(b, out.type.dtype, load(b, out, place), value)
            store(b, out, place, value)


def _reversed_row(b: ir.IRBuilder, row: Axis, out: Array, x: Array, add: bool) -> None:
    """Eight elements at a time, which change their order in a register."""

    def move(at: Value, lanes: int) -> None:
        last = b.sub(whole(1 - lanes), at)  # of these places, downwards from the first
        to, source = (at, last) if row.to == 1 else (last, at)
        value = backwards(b, load(b, x, source, lanes))
        if add:
            value = plus(b, out.type.dtype, load(b, out, to, lanes), value)
        store(b, out, to, value)

    along(b, row.extent, move)


def _turned(axes: Sequence[Axis]) -> int | None:
    """The axis along which the source is contiguous, where the result is along the last one."""
    row = axes[-1]
    if row.to != 1 or abs(row.source) < LANES or row.extent < LANES:
        return None
    found = [k for k, a in enumerate(axes) if a.source == 1 and a.extent >= LANES]
    return found[0] if found else None


def _copy_turned(b: ir.IRBuilder, axes: Sequence[Axis], turned: int, out: Array, x: Array) -> None:
    """Eight rows of the source side by side, so that every cache line is read and written once."""
    row, column = axes[-1], axes[turned]
    others = [a for a in axes if a not in (row, column)]
    full = row.extent - row.extent % LANES
    strips = Axis(full // LANES, LANES, LANES * row.source)
    _rows_beside(b, [*others, strips, column], row.source, LANES, out, x)
    for first, lanes in pieces(row.extent - full):
        to = moved(b, out, whole(full + first))
        source = moved(b, x, whole((full + first) * row.source))
        _rows_beside(b, [*others, column], row.source, lanes, to, source)


def _rows_beside(
    b: ir.IRBuilder, axes: Sequence[Axis], step: int, lanes: int, out: Array, x: Array
) -> None:
    """At every place of ``axes``: elements that lie ``step`` apart become neighbours."""
    with nest(b, [a.extent for a in axes]) as at:
        first = moved(b, x, offset(b, at, [a.source for a in axes]))
        values = [load(b, first, whole(k * step)) for k in range(lanes)]
        store(b, out, offset(b, at, [a.to for a in axes]), packed(b, values))


# --- the ops -----------------------------------------------------------------------------------


def start_from(b: ir.IRBuilder, out: Array, x: Array) -> None:
    """``out`` begins as ``x``; nothing to do where it takes the place of ``x``."""
    if out.pointer is not x.pointer:
        emit_copy(b, out.pointer, x.pointer, nbytes(out.type))


def _whole(shape: Sequence[int]) -> tuple[int, list[int]]:
    return 0, c_strides(shape)


def _reshape(b: ir.IRBuilder, attrs: Sequence[int], out: Array, x: Array) -> None:
    emit_copy(b, out.pointer, x.pointer, nbytes(out.type))


def _broadcast(b: ir.IRBuilder, attrs: Sequence[int], out: Array, x: Array) -> None:
    shape, steps = x.type.shape, c_strides(x.type.shape)
    lead = len(out.type.shape) - len(shape)
    strides = [0] * lead + [s if d != 1 else 0 for s, d in zip(steps, shape, strict=True)]
    copy_strided(b, out.type.shape, out, _whole(out.type.shape), x, (0, strides))


def _transpose(b: ir.IRBuilder, attrs: Sequence[int], out: Array, x: Array) -> None:
    steps = c_strides(x.type.shape)
    shape = out.type.shape
    copy_strided(b, shape, out, _whole(shape), x, (0, [steps[a] for a in attrs]))


def _slice(b: ir.IRBuilder, attrs: Sequence[int], out: Array, x: Array) -> None:
    shape = out.type.shape
    copy_strided(b, shape, out, _whole(shape), x, part_strides(attrs, x.type.shape))


def _pad(b: ir.IRBuilder, attrs: Sequence[int], out: Array, x: Array) -> None:
    emit_zeros(b, out)
    _put(b, attrs, out, x)


def _put(b: ir.IRBuilder, attrs: Sequence[int], out: Array, y: Array, add: bool = False) -> None:
    shape = y.type.shape
    copy_strided(b, shape, out, part_strides(attrs, out.type.shape), y, _whole(shape), add)


def _update(b: ir.IRBuilder, attrs: Sequence[int], out: Array, x: Array, y: Array) -> None:
    start_from(b, out, x)
    _put(b, attrs, out, y)


def _slice_add(b: ir.IRBuilder, attrs: Sequence[int], out: Array, x: Array, y: Array) -> None:
    start_from(b, out, x)
    _put(b, attrs, out, y, add=True)


def _concat(b: ir.IRBuilder, attrs: Sequence[int], out: Array, *xs: Array) -> None:
    (axis,) = attrs
    strides, at = c_strides(out.type.shape), 0
    for x in xs:
        shape = x.type.shape
        copy_strided(b, shape, out, (at * strides[axis], strides), x, _whole(shape))
        at += shape[axis]


def _roll(b: ir.IRBuilder, attrs: Sequence[int], out: Array, x: Array) -> None:
    shift, axis = attrs
    shape, strides = out.type.shape, c_strides(out.type.shape)
    n = shape[axis]
    shift = shift % n if n else 0
    step = strides[axis]
    for length, to, source in ((n - shift, shift, 0), (shift, 0, n - shift)):
        part = (*shape[:axis], length, *shape[axis + 1 :])
        copy_strided(b, part, out, (to * step, strides), x, (source * step, strides))


COPIES: dict[Op, Callable[..., None]] = {
    Op.RESHAPE: _reshape,
    Op.BROADCAST: _broadcast,
    Op.TRANSPOSE: _transpose,
    Op.SLICE: _slice,
    Op.PAD: _pad,
    Op.UPDATE: _update,
    Op.SLICE_ADD: _slice_add,
    Op.CONCAT: _concat,
    Op.ROLL: _roll,
}
