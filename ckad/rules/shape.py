"""Rule blocks of the ops that move elements: reshape, broadcast, slices, concatenation, roll."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckad.rules.registry import (
    Contribution,
    Lanes,
    Tangents,
    along_next_axis,
    batch,
    jvp,
    linear,
    rule,
    vjp,
)
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.types import Type

#: A slice that covers less than this part of its array is added in place in the reverse.
SMALL_PART = 0.25


def slices(attrs: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    """The NumPy index of a slice op: starts and steps from attrs, lengths from the part's shape."""
    n = len(shape)
    picked = []
    for start, step, length in zip(attrs[:n], attrs[n:], shape, strict=True):
        stop = start + step * length
        # An empty part may start where no element is, and a negative start means another place.
        picked.append(slice(start, None if stop < 0 else stop, step) if length else slice(0))
    return tuple(picked)


# --- reshape, broadcast, transpose -------------------------------------------------------------

rule(Op.RESHAPE, evaluate=lambda type, attrs, x: x.reshape(type.shape), cheap=True)
linear(Op.RESHAPE)


@vjp(Op.RESHAPE)
def _(b: Builder, ct: int, out: int, x: int, attrs: Sequence[int] = ()) -> tuple[Contribution, ...]:
    return (b.reshape_to(ct, b.type(x).shape),)


@batch(Op.RESHAPE)
def _(b: Builder, lanes: Lanes, x: int) -> int:
    return b.reshape_to(x, lanes.out.shape)


rule(
    Op.BROADCAST,
    evaluate=lambda type, attrs, x: np.broadcast_to(x, type.shape).copy(),
    cheap=True,
)
linear(Op.BROADCAST)


@vjp(Op.BROADCAST)
def _(b: Builder, ct: int, out: int, x: int, attrs: Sequence[int] = ()) -> tuple[Contribution, ...]:
    shape, target = b.type(x).shape, b.type(out).shape
    lead = len(target) - len(shape)
    stretched = [lead + k for k, d in enumerate(shape) if d != target[lead + k]]
    return (b.reshape_to(b.sum(ct, attrs=(*range(lead), *stretched)), shape),)


@batch(Op.BROADCAST)
def _(b: Builder, lanes: Lanes, x: int) -> int:
    shape = b.type(x).shape[1:]
    lead = len(lanes.type.shape) - len(shape)
    return b.broadcast_to(b.reshape_to(x, (lanes.n, *[1] * lead, *shape)), lanes.out.shape)


rule(
    Op.TRANSPOSE,
    shape=lambda x, attrs: x.with_shape(tuple(x.shape[a] for a in attrs)),
    evaluate=lambda type, attrs, x: np.ascontiguousarray(x.transpose(attrs)),
    cheap=True,
)
linear(Op.TRANSPOSE)


@vjp(Op.TRANSPOSE)
def _(b: Builder, ct: int, out: int, x: int, attrs: Sequence[int]) -> tuple[Contribution, ...]:
    return (b.transpose(ct, attrs=np.argsort(attrs)),)


@batch(Op.TRANSPOSE)
def _(b: Builder, lanes: Lanes, x: int) -> int:
    return b.transpose(x, attrs=(0, *(axis + 1 for axis in lanes.attrs)))


# --- slices ------------------------------------------------------------------------------------

rule(
    Op.SLICE,
    evaluate=lambda type, attrs, x: x[slices(attrs, type.shape)].copy(),
    cheap=True,
)
linear(Op.SLICE)


@vjp(Op.SLICE)
def _(b: Builder, ct: int, out: int, x: int, attrs: Sequence[int]) -> tuple[Contribution, ...]:
    type = b.type(x)
    if b.type(out).size >= SMALL_PART * type.size:
        return (b.pad(ct, attrs=attrs, type=type),)

    def add_in_place(b: Builder, so_far: int | None) -> int:
        total = b.full_like(x, 0.0) if so_far is None else so_far
        return b.slice_add(total, ct, attrs=attrs)

    return (add_in_place,)


def _pad(type: Type, attrs: Sequence[int], x: np.ndarray) -> np.ndarray:
    out = np.zeros(type.shape, x.dtype)
    out[slices(attrs, x.shape)] = x
    return out


rule(Op.PAD, evaluate=_pad, cheap=True)
linear(Op.PAD)


@vjp(Op.PAD)
def _(b: Builder, ct: int, out: int, x: int, attrs: Sequence[int]) -> tuple[Contribution, ...]:
    return (b.slice(ct, attrs=attrs, type=b.type(x)),)


def _first(x: Type, *rest: Type, attrs: Sequence[int]) -> Type:
    return x


def _update(type: Type, attrs: Sequence[int], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = x.copy()
    out[slices(attrs, y.shape)] = y
    return out


rule(Op.UPDATE, shape=_first, evaluate=_update, cheap=True)


@jvp(Op.UPDATE)
def _(
    b: Builder, tangents: Tangents, out: int, x: int, y: int, attrs: Sequence[int] = ()
) -> int | None:
    dx, dy = tangents
    if dx is None and dy is None:
        return None
    dx = b.full_like(x, 0.0) if dx is None else dx
    return b.update(dx, b.full_like(y, 0.0) if dy is None else dy, attrs=attrs)


@vjp(Op.UPDATE)
def _(
    b: Builder, ct: int, out: int, x: int, y: int, attrs: Sequence[int] = ()
) -> tuple[Contribution, ...]:
    kept = b.update(ct, b.full_like(y, 0.0), attrs=attrs)
    return kept, b.slice(ct, attrs=attrs, type=b.type(y))


def _slice_add(type: Type, attrs: Sequence[int], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = x.copy()
    out[slices(attrs, y.shape)] += y
    return out


rule(Op.SLICE_ADD, shape=_first, evaluate=_slice_add, cheap=True)


@jvp(Op.SLICE_ADD)
def _(
    b: Builder, tangents: Tangents, out: int, x: int, y: int, attrs: Sequence[int] = ()
) -> int | None:
    dx, dy = tangents
    if dy is None:
        return dx
    return b.slice_add(b.full_like(x, 0.0) if dx is None else dx, dy, attrs=attrs)


@vjp(Op.SLICE_ADD)
def _(
    b: Builder, ct: int, out: int, x: int, y: int, attrs: Sequence[int] = ()
) -> tuple[Contribution, ...]:
    return ct, b.slice(ct, attrs=attrs, type=b.type(y))


def _whole_members(op: int) -> None:
    """The batching rule of the slice family: every member from its start on, in steps of one."""

    @batch(op)
    def _(b: Builder, lanes: Lanes, *operands: int) -> int:
        rank = len(lanes.attrs) // 2
        attrs = (0, *lanes.attrs[:rank], 1, *lanes.attrs[rank:])
        return b.emit(op, lanes.all(b, operands), attrs, lanes.out)


for _op in (Op.SLICE, Op.PAD, Op.UPDATE, Op.SLICE_ADD):
    _whole_members(_op)


# --- concatenation and roll --------------------------------------------------------------------


def _concat_shape(*types: Type, attrs: Sequence[int]) -> Type:
    (axis,) = attrs
    shape = list(types[0].shape)
    shape[axis] = sum(t.shape[axis] for t in types)
    return types[0].with_shape(tuple(shape))


rule(
    Op.CONCAT,
    shape=_concat_shape,
    evaluate=lambda type, attrs, *xs: np.concatenate(xs, attrs[0]),
    cheap=True,
)


@jvp(Op.CONCAT)
def _(b: Builder, tangents: Tangents, out: int, *xs: int, attrs: Sequence[int] = ()) -> int | None:
    if all(t is None for t in tangents):
        return None
    full = [b.full_like(x, 0.0) if t is None else t for x, t in zip(xs, tangents, strict=True)]
    return b.concat(*full, attrs=attrs)


@vjp(Op.CONCAT)
def _(
    b: Builder, ct: int, out: int, *xs: int, attrs: Sequence[int] = ()
) -> tuple[Contribution, ...]:
    (axis,) = attrs
    rank, at, parts = len(b.type(out).shape), 0, []
    for x in xs:
        starts = [0] * rank
        starts[axis] = at
        parts.append(b.slice(ct, attrs=(*starts, *[1] * rank), type=b.type(x)))
        at += b.type(x).shape[axis]
    return tuple(parts)


along_next_axis(Op.CONCAT)

rule(
    Op.ROLL,
    shape=_first,
    evaluate=lambda type, attrs, x: np.roll(x, attrs[0], attrs[1]),
    cheap=True,
)
linear(Op.ROLL)


@vjp(Op.ROLL)
def _(b: Builder, ct: int, out: int, x: int, attrs: Sequence[int]) -> tuple[Contribution, ...]:
    shift, axis = attrs
    n = b.type(x).shape[axis]
    return (b.roll(ct, attrs=(-shift % n if n else 0, axis)),)


@batch(Op.ROLL)
def _(b: Builder, lanes: Lanes, x: int) -> int:
    shift, axis = lanes.attrs
    return b.roll(x, attrs=(shift, axis + 1))
