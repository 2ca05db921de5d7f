"""Kernels that read and write along one axis at the places an index array names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ckad.engines.native.ir.element import Array, load
from ckad.engines.native.kernels.copies import start_from
from ckad.engines.native.kernels.rows import add_row, around, copy_row, moved, nest, offset
from ckad.tape.ops import Op


def _at_indices(
    b: ir.IRBuilder,
    axis: int,
    large: Array,
    idx: Array,
    part: Array,
    move: Callable[[Array, Array, int], None],
) -> None:
    """``move(row of large, row of part, length)`` for every index; in order, the last one wins."""
    outer, n, inner = around(large.type.shape, axis)
    n_indices = idx.type.size
    if part.type.size == 0:
        return
    with nest(b, [outer, n_indices]) as (o, k):
        place = offset(b, [o, load(b, idx, k)], [n * inner, inner])
        of_part = offset(b, [o, k], [n_indices * inner, inner])
        move(moved(b, large, place), moved(b, part, of_part), inner)


def _gather(b: ir.IRBuilder, attrs: Sequence[int], out: Array, x: Array, idx: Array) -> None:
    _at_indices(b, attrs[0], x, idx, out, lambda row, to, n: copy_row(b, to, row, n))


def _scatter(
    b: ir.IRBuilder, attrs: Sequence[int], out: Array, x: Array, idx: Array, y: Array
) -> None:
    start_from(b, out, x)
    _at_indices(b, attrs[0], out, idx, y, lambda row, source, n: copy_row(b, row, source, n))


def _scatter_add(
    b: ir.IRBuilder, attrs: Sequence[int], out: Array, x: Array, idx: Array, y: Array
) -> None:
    start_from(b, out, x)
    _at_indices(b, attrs[0], out, idx, y, lambda row, source, n: add_row(b, row, source, n))


INDEXING: dict[Op, Callable[..., None]] = {
    Op.GATHER: _gather,
    Op.SCATTER: _scatter,
    Op.SCATTER_ADD: _scatter_add,
}
