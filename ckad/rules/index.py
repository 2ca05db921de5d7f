"""Rule blocks of indexing with integer arrays along one axis.

``idx`` has any shape; it takes the place of the axis. Indices are in range when these ops run:
the trace checks constant ones and puts a WRAP row before others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.rules.registry import Contribution, Lanes, Tangents, batch, jvp, linear, rule, vjp
from ckad.tape.builder import Builder
from ckad.tape.extents import Masks
from ckad.tape.ops import Op
from ckad.tape.types import Type


def _gather_shape(x: Type, idx: Type, attrs: Sequence[int]) -> Type:
    (axis,) = attrs
    return x.with_shape((*x.shape[:axis], *idx.shape, *x.shape[axis + 1 :]))


rule(
    Op.GATHER,
    shape=_gather_shape,
    evaluate=lambda type, attrs, x, idx: np.take(x, idx, attrs[0]),
)
linear(Op.GATHER)


@vjp(Op.GATHER)
def _(
    b: Builder, ct: int, out: int, x: int, idx: int, attrs: Sequence[int] = ()
) -> tuple[Contribution, ...]:
    def add_in_place(b: Builder, so_far: int | None) -> int:
        total = b.full_like(x, 0.0) if so_far is None else so_far
        return _added(b, total, idx, ct, attrs)

    return add_in_place, None


def _of_all(b: Builder, idx: int, size: int) -> int:
    """Indices of members [n, ...] as those into the members one behind the other."""
    shape = b.type(idx).shape
    first = np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1)) * size
    return b.add(idx, b.broadcast_to(b.const(first), shape))


def _axis_first(b: Builder, x: int, axis: int, n_axes: int = 1) -> int:
    """Members with ``n_axes`` axes from ``axis`` on before their others."""
    rank = len(b.type(x).shape)
    moved = range(axis + 1, axis + 1 + n_axes)
    order = (0, *moved, *(k for k in range(1, rank) if k not in moved))
    return x if order == tuple(range(rank)) else b.transpose(x, attrs=order)


def _axis_back(b: Builder, x: int, axis: int, n_axes: int = 1) -> int:
    """The inverse of `_axis_first`."""
    rank = len(b.type(x).shape)
    others = range(1 + n_axes, rank)
    order = (0, *others[:axis], *range(1, 1 + n_axes), *others[axis:])
    return x if order == tuple(range(rank)) else b.transpose(x, attrs=order)


@batch(Op.GATHER)
def _(b: Builder, lanes: Lanes, x: int, idx: int) -> int:
    (axis,) = lanes.attrs
    if not lanes.batched[1]:
        return b.gather(x, idx, attrs=(axis + 1,))
    x, idx = lanes.all(b, (x, idx))
    x = _axis_first(b, x, axis)
    n, size, *rest = b.type(x).shape
    picked = b.gather(b.reshape_to(x, (n * size, *rest)), _of_all(b, idx, size), attrs=(0,))
    return _axis_back(b, picked, axis, len(b.type(idx).shape) - 1)


def _added(b: Builder, total: int, idx: int, ct: int, attrs: Sequence[int]) -> int:
    """``total`` with ct added; where that place has just been set to zero, ct is put there."""
    op, operands, own, *_ = b.rows[total]
    if op is Op.SCATTER and operands[1] == idx and own[0] == attrs[0]:
        alone = own[1] or b.type(idx).size == 1
        if alone and Masks(b.rows, b.constants).is_zero(operands[2]):
            return b.scatter(operands[0], idx, ct, attrs=own)
    return b.scatter_add(total, idx, ct, attrs=attrs)


def _at(axis: int, idx: np.ndarray) -> tuple[Any, ...]:
    return (*[slice(None)] * axis, idx)


# SCATTER's second attribute says that no index occurs twice. With repeated ones the last wins.
def _scatter(
    type: Type, attrs: Sequence[int], x: np.ndarray, idx: np.ndarray, y: np.ndarray
) -> np.ndarray:
    out = x.copy()
    axis = attrs[0]
    part = np.moveaxis(out, axis, 0)
    flat = np.moveaxis(y.reshape(*x.shape[:axis], idx.size, *x.shape[axis + 1 :]), axis, 0)
    for k, i in enumerate(idx.ravel()):
        part[i] = flat[k]
    return out


def _keep_shape(x: Type, idx: Type, y: Type, attrs: Sequence[int]) -> Type:
    return x


rule(Op.SCATTER, shape=_keep_shape, evaluate=_scatter)


def _scattered(op: int) -> None:
    """The batching rule of an op that writes to places."""

    @batch(op)
    def _(b: Builder, lanes: Lanes, x: int, idx: int, y: int) -> int:
        axis, *more = lanes.attrs
        if not lanes.batched[1]:
            flags = lanes._replace(batched=(lanes.batched[0], lanes.batched[2]))
            x, y = flags.all(b, (x, y))
            return b.emit(op, (x, idx, y), (axis + 1, *more), lanes.out)
        x, idx, y = lanes.all(b, (x, idx, y))
        x = _axis_first(b, x, axis)
        shape = n, size, *rest = b.type(x).shape
        y = _axis_first(b, y, axis, len(b.type(idx).shape) - 1)
        flat = b.reshape_to(x, (n * size, *rest))
        written = b.emit(op, (flat, _of_all(b, idx, size), y), (0, *more), b.type(flat))
        return _axis_back(b, b.reshape_to(written, shape), axis)


_scattered(Op.SCATTER)


@jvp(Op.SCATTER)
def _(
    b: Builder, tangents: Tangents, out: int, x: int, idx: int, y: int, attrs: Sequence[int] = ()
) -> int | None:
    dx, _, dy = tangents
    if dx is None and dy is None:
        return None
    dx = b.full_like(x, 0.0) if dx is None else dx
    return b.scatter(dx, idx, b.full_like(y, 0.0) if dy is None else dy, attrs=attrs)


@vjp(Op.SCATTER)
def _(
    b: Builder, ct: int, out: int, x: int, idx: int, y: int, attrs: Sequence[int] = ()
) -> tuple[Contribution, ...]:
    # what is read comes first, so that the write can take the place of the cotangent
    axis, unique = attrs
    ct_y = b.gather(ct, idx, attrs=(axis,))
    kept = b.scatter(ct, idx, b.full_like(y, 0.0), attrs=attrs)
    return kept, None, ct_y if unique else _only_last(b, ct_y, idx, axis, b.type(x).shape[axis])


def _only_last(b: Builder, ct: int, idx: int, axis: int, n: int) -> int:
    """``ct`` where the write was the last one to its place, zero elsewhere."""
    type = b.type(idx)
    order = b.const(np.arange(type.size).reshape(type.shape))
    nobody = b.const(np.full(n, -1))
    winner = b.gather(b.scatter(nobody, idx, order, attrs=(0, 0)), idx, attrs=(0,))
    mask = b.eq(winner, order)
    shape = b.type(ct).shape
    tail = len(shape) - axis - len(type.shape)
    mask = b.broadcast_to(b.reshape_to(mask, (*type.shape, *[1] * tail)), shape)
    return b.select(mask, ct, b.full_like(ct, 0.0))


def _scatter_add(
    type: Type, attrs: Sequence[int], x: np.ndarray, idx: np.ndarray, y: np.ndarray
) -> np.ndarray:
    out = x.copy()
    np.add.at(out, _at(attrs[0], idx), y)
    return out


rule(Op.SCATTER_ADD, shape=_keep_shape, evaluate=_scatter_add)
_scattered(Op.SCATTER_ADD)


@jvp(Op.SCATTER_ADD)
def _(
    b: Builder, tangents: Tangents, out: int, x: int, idx: int, y: int, attrs: Sequence[int] = ()
) -> int | None:
    dx, _, dy = tangents
    if dy is None:
        return dx
    return b.scatter_add(b.full_like(x, 0.0) if dx is None else dx, idx, dy, attrs=attrs)


@vjp(Op.SCATTER_ADD)
def _(
    b: Builder, ct: int, out: int, x: int, idx: int, y: int, attrs: Sequence[int] = ()
) -> tuple[Contribution, ...]:
    return ct, None, b.gather(ct, idx, attrs=attrs)
