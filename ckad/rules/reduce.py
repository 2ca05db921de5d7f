"""Rule blocks of reductions and of cumulative ops.

Subgradient of max and min over an axis: the elements that attain it share the cotangent equally.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.rules.registry import Contribution, Tangents, along_next_axis, jvp, linear, rule, vjp
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.types import DType, Type


def _without_axes(x: Type, attrs: Sequence[int]) -> Type:
    return x.with_shape(tuple(d for k, d in enumerate(x.shape) if k not in attrs))


def spread(b: Builder, value: int, shape: Sequence[int], axes: Sequence[int]) -> int:
    """Put the reduced axes back: the value of each group at each of its elements."""
    kept = tuple(1 if k in axes else d for k, d in enumerate(shape))
    return b.broadcast_to(b.reshape_to(value, kept), shape)


rule(
    Op.SUM,
    shape=_without_axes,
    evaluate=lambda type, attrs, x: np.asarray(x.sum(tuple(attrs)), x.dtype),
)
linear(Op.SUM)
along_next_axis(Op.SUM)


@vjp(Op.SUM)
def _(b: Builder, ct: int, out: int, x: int, attrs: Sequence[int] = ()) -> tuple[Contribution, ...]:
    return (spread(b, ct, b.type(x).shape, attrs),)


def _extremum(op: int, numpy: Callable[..., Any]) -> None:
    def evaluate(type: Type, attrs: Sequence[int], x: np.ndarray) -> np.ndarray:
        return np.asarray(numpy(x, tuple(attrs)), x.dtype)

    rule(op, shape=_without_axes, evaluate=evaluate)
    along_next_axis(op)

    def shares(b: Builder, out: int, x: int, axes: Sequence[int]) -> int:
        type = b.type(x)
        hit = b.convert(b.eq(x, spread(b, out, type.shape, axes)), type=type)
        return b.div(hit, spread(b, b.sum(hit, attrs=axes), type.shape, axes))

    @jvp(op)
    def _(
        b: Builder, tangents: Tangents, out: int, x: int, attrs: Sequence[int] = ()
    ) -> int | None:
        return b.sum(b.mul(tangents[0], shares(b, out, x, attrs)), attrs=attrs)

    @vjp(op)
    def _(
        b: Builder, ct: int, out: int, x: int, attrs: Sequence[int] = ()
    ) -> tuple[Contribution, ...]:
        return (b.mul(spread(b, ct, b.type(x).shape, attrs), shares(b, out, x, attrs)),)


_extremum(Op.REDUCE_MAX, np.max)
_extremum(Op.REDUCE_MIN, np.min)


def _position(x: Type, attrs: Sequence[int]) -> Type:
    return _without_axes(x, attrs).with_dtype(DType.I64)


for _op, _numpy in ((Op.ARGMAX, np.argmax), (Op.ARGMIN, np.argmin)):
    rule(
        _op,
        shape=_position,
        evaluate=lambda type, attrs, x, f=_numpy: np.asarray(f(x, attrs[0]), np.int64),
    )
    along_next_axis(_op)


# --- cumulative: attrs are the axis, and 1 if the direction is from the end ---------------------


def _keep(x: Type, *rest: Type, attrs: Sequence[int]) -> Type:
    return x


def _cumsum(type: Type, attrs: Sequence[int], x: np.ndarray) -> np.ndarray:
    axis, backward = attrs
    turn: Callable[[np.ndarray], np.ndarray]
    turn = (lambda a: np.flip(a, axis)) if backward else (lambda a: a)
    return turn(np.cumsum(turn(x), axis, dtype=x.dtype)).copy()


rule(Op.CUMSUM, shape=_keep, evaluate=_cumsum)
linear(Op.CUMSUM)
along_next_axis(Op.CUMSUM, 1)


@vjp(Op.CUMSUM)
def _(b: Builder, ct: int, out: int, x: int, attrs: Sequence[int] = ()) -> tuple[Contribution, ...]:
    axis, backward = attrs
    return (b.cumsum(ct, attrs=(axis, 1 - backward)),)


def _recurrence(type: Type, attrs: Sequence[int], a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """s[i] = x[i] + a[i] s[i - 1], s before the first element being -0, which changes no sign."""
    axis, backward = attrs
    a, out = np.moveaxis(a, axis, 0), x.copy()
    s = np.moveaxis(out, axis, 0)
    order = range(len(s))[::-1] if backward else range(len(s))
    before = np.full_like(s[0], -0.0) if len(s) else None
    for i in order:
        s[i] = s[i] + a[i] * before
        before = s[i]
    return out


rule(Op.RECURRENCE, shape=_keep, evaluate=_recurrence)
along_next_axis(Op.RECURRENCE, 1)


def shifted(b: Builder, x: int, axis: int, by: int) -> int:
    """``x`` moved by one place along ``axis``, zero moved in."""
    type = b.type(x)
    n, rank = type.shape[axis], len(type.shape)
    if n == 0:
        return x
    part = tuple(n - 1 if k == axis else d for k, d in enumerate(type.shape))
    first = [0] * rank
    second = [0] * rank
    first[axis], second[axis] = (0, 1) if by > 0 else (1, 0)
    ones = [1] * rank
    kept = b.slice(x, attrs=(*first, *ones), type=type.with_shape(part))
    return b.pad(kept, attrs=(*second, *ones), type=type)


def _previous(b: Builder, s: int, attrs: Sequence[int]) -> int:
    axis, backward = attrs
    return shifted(b, s, axis, -1 if backward else 1)


@jvp(Op.RECURRENCE)
def _(
    b: Builder, tangents: Tangents, out: int, a: int, x: int, attrs: Sequence[int] = ()
) -> int | None:
    da, dx = tangents
    if da is None and dx is None:
        return None
    source = dx
    if da is not None:
        change = b.mul(da, _previous(b, out, attrs))
        source = change if dx is None else b.add(dx, change)
    return b.recurrence(a, source, attrs=attrs)


@vjp(Op.RECURRENCE)
def _(
    b: Builder, ct: int, out: int, a: int, x: int, attrs: Sequence[int] = ()
) -> tuple[Contribution, ...]:
    # the cotangent obeys l[i] = ct[i] + a[i + 1] l[i + 1]
    axis, backward = attrs
    following = shifted(b, a, axis, 1 if backward else -1)
    ct_x = b.recurrence(following, ct, attrs=(axis, 1 - backward))
    return b.mul(ct_x, _previous(b, out, attrs)), ct_x


# --- product: one axis -------------------------------------------------------------------------

rule(
    Op.PROD,
    shape=_without_axes,
    evaluate=lambda type, attrs, x: np.asarray(x.prod(attrs[0]), x.dtype),
)
along_next_axis(Op.PROD)


def _others(b: Builder, x: int, axis: int) -> int:
    """The product of all other elements along the axis; right where some are zero."""
    type = b.type(x)
    before = _exclusive(b, x, axis, type, 0)
    return b.mul(before, _exclusive(b, x, axis, type, 1))


def _exclusive(b: Builder, x: int, axis: int, type: Type, backward: int) -> int:
    """p[i] = x[i - 1] p[i - 1], p at the first element being 1."""
    seed = np.zeros(type.shape, type.numpy)
    if type.shape[axis]:
        np.moveaxis(seed, axis, 0)[-1 if backward else 0] = 1.0
    factors = shifted(b, x, axis, -1 if backward else 1)
    return b.recurrence(factors, b.const(seed), attrs=(axis, backward))


@jvp(Op.PROD)
def _(b: Builder, tangents: Tangents, out: int, x: int, attrs: Sequence[int] = ()) -> int | None:
    return b.sum(b.mul(tangents[0], _others(b, x, attrs[0])), attrs=attrs)


@vjp(Op.PROD)
def _(b: Builder, ct: int, out: int, x: int, attrs: Sequence[int] = ()) -> tuple[Contribution, ...]:
    return (b.mul(spread(b, ct, b.type(x).shape, attrs), _others(b, x, attrs[0])),)
