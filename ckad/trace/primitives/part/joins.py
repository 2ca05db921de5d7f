"""New arrays of run-time extent: of a computed length, joined from several, sorted or rolled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.errors import ConcreteValueError
from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.trace.arrays import Array
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import LENGTH, PART, cell, implements, put
from ckad.trace.integers.spans import at_most, larger, least_zero, minus, number, plus
from ckad.trace.memory.context import current
from ckad.trace.primitives.part.alignment import Operand, align, align_axis, moved
from ckad.trace.primitives.part.elements import written
from ckad.trace.primitives.part.extents import filled, inside
from ckad.trace.values.apply import apply, astype, promote
from ckad.trace.values.part import Extent, Padded, unsupported
from ckad.trace.values.tracer import Number, Tracer, fresh, known, lift

#: An array of computed length has space for at most so many elements.
LONGEST = 1 << 24

# --- of a computed length ----------------------------------------------------------------------


def is_sized(callee: Any, args: Sequence[Any]) -> bool:
    """Whether ``callee`` makes an array whose length is only known when the program runs."""
    if not args or cell(callee, LENGTH) is None:
        return False
    lengths = args if callee is np.arange else args[:1]
    return any(map(_is_unknown, lengths))


def _is_unknown(x: Any) -> bool:
    if isinstance(x, (tuple, list)):
        return any(map(_is_unknown, x))
    return isinstance(x, Tracer) and known(x) is None


def _space(length: Number) -> int:
    """How many elements ``length`` can be at most."""
    most = at_most(length)
    if math.isinf(most) or most > LONGEST:
        raise ConcreteValueError(
            at_place(
                "the length of a new array is a traced value, and no bound of it is known while "
                "the program is recorded. Make the array as long as it can become, and use a "
                "slice of it: np.zeros(most)[:k]."
            )
        )
    return max(0, int(most))


def _sized(function: Any) -> None:
    def create(shape: Any, *args: Any, **options: Any) -> Padded:
        dims = shape if isinstance(shape, (tuple, list)) else (shape,)
        lengths = [least_zero(number(d)) for d in dims]
        make = cell(function)
        assert make is not None
        base = make([_space(n) for n in lengths], *args, **options)
        own = Operand(base).data
        return Padded(own, [None if isinstance(n, int) else Extent(0, n) for n in lengths])

    put(function, create, LENGTH)


for _function in (np.zeros, np.ones, np.empty, np.full):
    _sized(_function)


def _arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Padded:
    if stop is None:
        start, stop = 0, start
    if isinstance(step, Tracer) or step != 1:
        unsupported("np.arange with a traced end and a step other than 1")
    first = number(start)
    length = least_zero(minus(number(stop), first))
    places = np.add(lift(np.arange(_space(length))), first)
    return Padded(astype(places, dtype or np.int64), [Extent(0, length)], tame=True)


put(np.arange, _arange, LENGTH)


# --- joined ------------------------------------------------------------------------------------


@implements(np.concatenate, kind=PART)
def concatenate(
    arrays: Any, axis: Any = 0, out: Any = None, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    if casting != "same_kind":
        unsupported(f"np.concatenate with casting={casting!r}")
    parts = [Operand(x) for x in arrays]
    if axis is None or any(x.rank != parts[0].rank for x in parts):
        unsupported("np.concatenate of arrays of different numbers of axes, or without an axis")
    rank = parts[0].rank
    k = axis_of(axis, rank)
    extents = [None if a == k else align_axis(parts, a, repeats=False) for a in range(rank)]
    _check_others(parts, k)
    arrays = (
        promote(*(x.data for x in parts))
        if dtype is None
        else [astype(x.data, dtype) for x in parts]
    )
    if all(x.extents[k] is None for x in parts):
        joined: Array = np.concatenate(arrays, k)
        return written(Padded(joined, extents), out)
    size = sum(x.shape[k] for x in arrays)
    shape = [size if a == k else n for a, n in enumerate(arrays[0].shape)]
    whole = fresh(current().builder.full(arrays[0].type.with_shape(tuple(shape)), 0), scalar=False)
    stop: Number = 0
    for part, data in zip(parts, arrays, strict=True):
        own = part.extents[k] or Extent(0, data.shape[k])
        place = Extent(stop, own.length)
        mask = inside([place if a == k else None for a in range(len(shape))], shape)
        whole = apply(Op.SELECT, mask, moved(data, k, own.origin, stop, size), whole)
        stop = plus(stop, own.length)
    extents[k] = Extent(0, stop)
    return written(Padded(whole, extents), out)


def _check_others(parts: Sequence[Operand], axis: int) -> None:
    for a in range(parts[0].rank):
        if a != axis and len({x.data.shape[a] for x in parts}) > 1:
            raise ValueError(at_place("the arrays to join have different lengths of other axes"))


@implements(np.stack, kind=PART)
def stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    operands = [Operand(x) for x in arrays]
    extents = align(operands)
    k = axis_of(axis, len(extents) + 1)
    stacked: Array = np.stack([x.data for x in operands], k)
    return Padded(stacked, [*extents[:k], None, *extents[k:]])


# --- in another order --------------------------------------------------------------------------


def _only_axis(a: Padded, axis: Any, name: str) -> int:
    if axis is None and a.ndim > 1:
        unsupported(f"{name} of a matrix without axis=")
    return axis_of(-1 if axis is None else axis, a.ndim)


@implements(np.sort, kind=PART)
def sort(a: Padded, axis: Any = -1) -> Padded:
    """The elements come first where those outside are greater than all."""
    k = _only_axis(a, axis, "np.sort")
    extent = a.extents[k]
    if extent is None:
        whole: Array = np.sort(a.base, k)
        return Padded(whole, a.extents, a.tame)
    if a.dtype.kind != "f":
        unsupported("np.sort of integers")
    data = filled(a.base, inside(a.extents, a.base.shape), np.inf)
    extents = [Extent(0, e.length) if i == k and e else e for i, e in enumerate(a.extents)]
    ordered: Array = np.sort(data, k)
    return Padded(ordered, extents)


@implements(np.roll, kind=PART)
def roll(a: Padded, shift: Any, axis: Any = None) -> Padded:
    k = _only_axis(a, axis, "np.roll")
    extent, n = a.extents[k], a.base.shape[k]
    if extent is None:
        whole: Array = np.roll(a.base, shift, k)
        return Padded(whole, a.extents, a.tame)
    length = larger(extent.length, 1)
    moved_by = np.remainder(np.subtract(np.arange(n), plus(extent.origin, number(shift))), length)
    places = np.clip(moved_by + extent.origin, 0, max(n - 1, 0))
    return Padded(apply(Op.GATHER, a.base, places, attrs=(k,)), a.extents, a.tame)
