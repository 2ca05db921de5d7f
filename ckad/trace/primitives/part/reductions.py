"""Sums, extrema and products of parts.

They are those of whole arrays, with the neutral element outside of the part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.rules.facts import neutral
from ckad.tape.ops import Op
from ckad.trace.axes import axes_of, axis_of
from ckad.trace.dispatch import PART, given, implements
from ckad.trace.integers.spans import below
from ckad.trace.primitives.part.alignment import Operand
from ckad.trace.primitives.part.elements import as_array, written
from ckad.trace.primitives.part.extents import filled, inside, only
from ckad.trace.primitives.part.mask import packed
from ckad.trace.values.apply import apply, astype, reshape_value
from ckad.trace.values.part import Extents, Mask, Part, unsupported
from ckad.trace.values.tracer import Tracer, lift

# --- reductions --------------------------------------------------------------------------------


def _reduce(function: Any, a: Part, op: Op, axis: Any, keepdims: Any, **options: Any) -> Any:
    """``function`` of the base, outside of the part what changes nothing in ``op``."""
    keepdims = given(keepdims) and bool(keepdims)
    axes = axes_of(axis, a.ndim)
    whole = only(a, neutral(op, a.dtype))
    result = function(whole, axis=a.where.base_axes(axes), keepdims=keepdims, **options)
    where = a.where.reduced(axes, keepdims)
    if where is not None:
        return Part(result, where)
    # the axes of a mask are one axis of the part, and may stand behind others
    return reshape_value(result, _kept(a, axes)) if keepdims else result


def _kept(a: Part, axes: Sequence[int]) -> list[int]:
    return [1 if k in axes else n for k, n in enumerate(a.shape)]


def _where(where: Any, a: Part, number: Any) -> Any:
    """``a`` with ``number`` where it is not to be looked at."""
    return a if where is True or where is np._NoValue else np.where(where, a, number)


def _total(function: Any, op: Op) -> None:
    @implements(function, kind=PART)
    def total(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
              initial: Any = None, where: Any = True) -> Any:  # fmt: skip
        options = {"initial": initial} if given(initial) else {}
        a = _where(where, a, neutral(op, a.dtype))
        return written(_reduce(function, a, op, axis, keepdims, dtype=dtype, **options), out)


_total(np.sum, Op.SUM)
_total(np.prod, Op.PROD)


def _extremum(op: Op, function: Any, *names: Any) -> None:
    @implements(function, *names, kind=PART)
    def extremum(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
                 initial: Any = None, where: Any = True) -> Any:  # fmt: skip
        if not given(initial):
            refuse_mask(where)
            a = not_empty(a, axes_of(axis, a.ndim))
            return written(_reduce(function, a, op, axis, keepdims), out)
        a = _where(where, a, initial)
        return written(_reduce(function, a, op, axis, keepdims, initial=initial), out)


def refuse_mask(where: Any) -> None:
    if where is not True and where is not np._NoValue:
        unsupported("where= without initial=")


def not_empty(a: Part, axes: Sequence[int]) -> Part:
    """``a``; the program stops if there is nothing along ``axes``."""
    if isinstance(a.where, Mask):
        return _not_false(a, a.where) if a.where.before in axes else a
    extents = list(a.where)
    for k in axes:
        extent = extents[k]
        if extent is not None and below(0, extent.length) is not True:
            length: Any = np.add(extent.length, _checked(np.where(np.less(extent.length, 1), 1, 0)))
            extents[k] = extent._replace(length=length)
    return Part(a.base, Extents(extents), a.tame)


def _not_false(a: Part, where: Mask) -> Part:
    mask = where.mask
    place = _checked(np.where(np.any(mask), 0, 1))
    kept = apply(Op.GATHER, reshape_value(mask, (1, mask.size)), place, attrs=(0,))
    return Part(a.base, where._replace(mask=reshape_value(kept, mask.shape)), a.tame)


def _checked(empty: Any) -> Tracer:
    """The number 0; the program stops at any other."""
    return apply(Op.WRAP, lift(empty[()]), attrs=(1,))


_extremum(Op.REDUCE_MAX, np.max, np.amax)
_extremum(Op.REDUCE_MIN, np.min, np.amin)


def _truth(function: Any, op: Op) -> None:
    @implements(function, kind=PART)
    def truth(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *,
              where: Any = True) -> Any:  # fmt: skip
        a = _where(where, a.over(astype(a.base, bool)), bool(neutral(op, a.dtype)))
        return written(_reduce(function, a, op, axis, keepdims), out)


_truth(np.any, Op.OR)
_truth(np.all, Op.AND)


def only_axis(a: Part, axis: Any, name: str) -> int:
    """The axis that ``None`` stands for, if there is one."""
    if axis is None and a.ndim > 1:
        unsupported(f"{name} of a matrix without axis=")
    return axis_of(axis or 0, a.ndim)


def _position(function: Any, op: Op) -> None:
    @implements(function, kind=PART)
    def position(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        a = packed(a)
        k = only_axis(a, axis, f"np.{function.__name__}")
        a = not_empty(a, [k])
        whole = only(a, neutral(op, a.dtype))
        keepdims = given(keepdims) and bool(keepdims)
        found, where = function(whole, axis=k, keepdims=keepdims), a.where.reduced([k], keepdims)
        found = found if where is None else Part(found, where)
        return written(found if a.where[k] is None else found - a.where[k].origin, out)


_position(np.argmax, Op.REDUCE_MAX)
_position(np.argmin, Op.REDUCE_MIN)


def _running(function: Any, op: Op) -> None:
    @implements(function, kind=PART)
    def running(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        k = only_axis(a, axis, f"np.{function.__name__}")
        axes = a.where.base_axes([k])
        if len(axes) > 1:  # of a mask over several axes
            return running(packed(a), axis, dtype, out)
        result = function(only(a, neutral(op, a.dtype)), axis=axes[0], dtype=dtype)
        return written(Part(result, a.where), out)


_running(np.cumsum, Op.SUM)
_running(np.cumprod, Op.PROD)


# --- products ----------------------------------------------------------------------------------


@implements(np.dot, kind=PART)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    x, y = as_array(a), as_array(b)
    if not x.ndim or not y.ndim:
        return written(x * y, out)
    return written(matmul(x, y), out)


@implements(np.inner, np.vdot, kind=PART)
def inner(a: Any, b: Any, /) -> Any:
    x, y = as_array(a), as_array(b)
    return dot(x, y) if x.ndim < 2 and y.ndim < 2 else unsupported("np.inner of matrices")


@implements(np.vecdot, kind=PART)
def vecdot(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    return np.sum(np.multiply(x1, x2), axis)


@implements(np.outer, kind=PART)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    x, y = packed(as_array(a)), packed(as_array(b))
    if x.ndim != 1 or y.ndim != 1:
        unsupported("np.outer of matrices")
    return written(x[:, None] * y[None, :], out)


@implements(np.matmul, np.linalg.matmul, kind=PART)
def matmul(a: Any, b: Any) -> Any:
    """The product of vectors and matrices, zero outside of the parts."""
    a, b = as_array(a), as_array(b)
    if not 1 <= a.ndim <= 2 or not 1 <= b.ndim <= 2:
        unsupported("the product of stacks of matrices")
    if a.ndim == b.ndim == 1 and any(isinstance(getattr(x, "where", None), Mask) for x in (a, b)):
        return np.sum(a * b)
    x, y = Operand(a), Operand(b)
    k = 0 if y.rank == 1 else y.rank - 2
    one, other = x.extents[-1], y.extents[k]
    if one is not None:
        x.extents[-1] = y.fit(k, one, x.data.shape[-1], repeats=False)
    elif other is not None:
        y.extents[k] = x.fit(x.rank - 1, other, y.data.shape[k], repeats=False)
    left, right = (filled(v.data, inside(Extents(v.extents), v.data.shape), 0) for v in (x, y))
    extents = [*x.extents[:-1], *(e for i, e in enumerate(y.extents) if i != k)]
    product = np.dot(left, right)  # of vectors it is a sum, which fuses with what is summed
    if all(e is None for e in extents):
        return product
    return Part(product, Extents(extents), tame=True)
