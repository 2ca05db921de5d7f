"""New parts: of a computed length, joined from several, sorted or rolled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.errors import ConcreteValueError
from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import LENGTH, PART, cell, implements, put
from ckad.trace.integers.spans import at_most, larger, least_zero, minus, number, plus
from ckad.trace.memory.context import current
from ckad.trace.primitives.index import from_list
from ckad.trace.primitives.part.alignment import Operand, align, align_axis, moved
from ckad.trace.primitives.part.elements import written
from ckad.trace.primitives.part.extents import inside, only
from ckad.trace.primitives.part.growth import made_longer
from ckad.trace.primitives.part.mask import packed
from ckad.trace.primitives.part.reductions import only_axis
from ckad.trace.values.apply import apply, astype, promote
from ckad.trace.values.part import Extent, Extents, Part, unsupported
from ckad.trace.values.tracer import Number, Tracer, fresh, known, known_by_running, lift, value

#: An array of computed length has space for at most so many elements.
LONGEST = 1 << 24

# --- of a computed length ----------------------------------------------------------------------


def is_sized(callee: Any, args: Sequence[Any]) -> bool:
    """Whether ``callee`` makes an array whose length is only known when the program runs."""
    if not args or cell(callee, LENGTH) is None:
        return False
    lengths = args if callee is np.arange else args[1:2] if callee is np.resize else args[:1]
    return any(map(_is_unknown, lengths))


def _is_unknown(x: Any) -> bool:
    if isinstance(x, (tuple, list)):
        return any(map(_is_unknown, x))
    return isinstance(x, Tracer) and known(x) is None


def _space(length: Number) -> int:
    """How many elements ``length`` can be at most."""
    most = at_most(length)
    if math.isinf(most) or most > LONGEST:
        raise ConcreteValueError.here(
            "the length of a new array is a traced value, and no bound of it is known while "
            "the program is recorded. Make the array as long as it can become, and use a "
            "slice of it: np.zeros(most)[:k]."
        )
    return max(0, int(most))


def _counted(x: Number) -> Number:
    """A number that has no bound, as an int if loops make it of constants alone: they are run."""
    if isinstance(x, int) or not math.isinf(at_most(x)):
        return x
    found = known_by_running(x)
    return x if found is None else int(found)


def _sized(function: Any) -> None:
    def create(shape: Any, *args: Any, **options: Any) -> Part | Tracer:
        dims = shape if isinstance(shape, (tuple, list)) else (shape,)
        lengths = [least_zero(_counted(number(d))) for d in dims]
        make = cell(function)
        assert make is not None
        if all(isinstance(n, int) for n in lengths):
            known_now: Tracer = make(lengths, *args, **options)
            return known_now
        base = make([_space(n) for n in lengths], *args, **options)
        own = Operand(base).data
        return Part(own, Extents(None if isinstance(n, int) else Extent(0, n) for n in lengths))

    put(function, create, LENGTH)


for _function in (np.zeros, np.ones, np.empty, np.full):
    _sized(_function)


def _of_floats(start: Any, stop: Any, step: Any, dtype: Any) -> Tracer:
    """As NumPy fills it, in its dtype: the first two numbers, then multiples of their distance."""
    kind = dtype or np.float64
    first, second = astype(lift(start), kind), astype(np.add(start, step), kind)
    count = known(astype(np.ceil(np.divide(np.subtract(stop, start), step)), np.int64))
    if count is None:
        raise ConcreteValueError.here(
            "an argument of np.arange is a traced value, and the shape of the result depends "
            "on it. Pass Python numbers."
        )
    places = np.arange(max(int(count), 0))
    found = first + places.astype(kind) * np.subtract(second, first)
    return astype(np.where(places == 1, second, found), kind)


def _arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Part | Tracer:
    if stop is None:
        start, stop = 0, start
    if any(lift(x).dtype.kind == "f" for x in (start, stop, step)):
        return _of_floats(start, stop, step, dtype)
    if isinstance(step, Tracer) or step != 1:
        unsupported("np.arange with a traced end and a step other than 1")
    first = _counted(number(start))
    length = least_zero(minus(_counted(number(stop)), first))
    places = astype(np.add(lift(np.arange(_space(length))), first), dtype or np.int64)
    if isinstance(length, int):  # as of arange(i - 1, i + 3)
        return places
    return Part(places, Extents([Extent(0, length)]), tame=True)


put(np.arange, _arange, LENGTH)


def _shortened(a: Any, new_shape: Any) -> Any:
    """``np.resize`` to fewer elements."""
    length, *others = new_shape if isinstance(new_shape, (tuple, list)) else (new_shape,)
    flat = np.ravel(lift(a))
    if others or at_most(number(length)) > flat.size:
        raise ConcreteValueError.here(
            "the shape that np.resize is given is a traced value, and may be larger than the "
            "array. Use a slice of the array: x[:k]."
        )
    return flat[: least_zero(number(length))]


put(np.resize, _shortened, LENGTH)


# --- joined ------------------------------------------------------------------------------------


@implements(np.concatenate, kind=PART)
def concatenate(
    arrays: Any, axis: Any = 0, out: Any = None, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    if casting != "same_kind":
        unsupported(f"np.concatenate with casting={casting!r}")
    if isinstance(arrays, Part):
        return written(_one_behind_the_other(arrays, axis), out)
    grown = made_longer(arrays, axis) if out is None and dtype is None else None
    if grown is not None:
        return grown
    parts = [Operand(from_list(x)) for x in arrays]
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
        return written(Part(np.concatenate(arrays, k), Extents(extents)), out)
    size = sum(x.shape[k] for x in arrays)
    shape = [size if a == k else n for a, n in enumerate(arrays[0].shape)]
    whole = fresh(current().builder.full(arrays[0].type.with_shape(tuple(shape)), 0), scalar=False)
    stop: Number = 0
    for part, data in zip(parts, arrays, strict=True):
        own = part.extents[k] or Extent(0, data.shape[k])
        place = Extent(stop, own.length)
        where = Extents(place if a == k else None for a in range(len(shape)))
        mask = inside(where, shape)
        whole = apply(Op.SELECT, mask, moved(data, k, own.origin, stop, size), whole)
        stop = plus(stop, own.length)
    extents[k] = Extent(0, stop)
    return written(Part(whole, Extents(extents)), out)


def _one_behind_the_other(rows: Part, axis: Any) -> Part:
    """What the items of a list join to that are rows of a buffer."""
    others = list(rows.where)[1:]
    if rows.ndim < 2 or axis not in (0, None) or any(e is not None for e in others):
        unsupported(f"np.concatenate of a list with axis={axis}")
    base, merged = rows.base, 2 if axis == 0 else rows.ndim
    many = math.prod(base.shape[1:merged])
    flat = fresh(value(np.reshape(base, (-1, *base.shape[merged:]))), scalar=False)
    own = Operand(rows).extents[0] or Extent(0, base.shape[0])
    longer = Extent(own.origin * many, own.length * many)
    return Part(flat, Extents([longer, *[None] * (len(flat.shape) - 1)]))


def _check_others(parts: Sequence[Operand], axis: int) -> None:
    for a in range(parts[0].rank):
        if a != axis and len({x.data.shape[a] for x in parts}) > 1:
            raise ValueError(at_place("the arrays to join have different lengths of other axes"))


@implements(np.stack, kind=PART)
def stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    if isinstance(arrays, Part):  # a list whose items are rows of a buffer
        k = axis_of(axis, arrays.ndim)
        order = range(1, arrays.ndim)
        return np.copy(np.transpose(arrays, [*order[:k], 0, *order[k:]]))
    operands = [Operand(x) for x in arrays]
    extents = align(operands)
    k = axis_of(axis, len(extents) + 1)
    where = Extents([*extents[:k], None, *extents[k:]])
    return Part(np.stack([x.data for x in operands], k), where)


# --- in another order --------------------------------------------------------------------------


@implements(np.sort, kind=PART)
def sort(a: Any, axis: Any = -1) -> Part:
    """The elements come first where those outside are greater than all."""
    a = packed(a)
    k = only_axis(a, axis, "np.sort")
    if a.where[k] is None:
        return Part(np.sort(a.base, k), a.where, a.tame)
    if a.dtype.kind != "f":
        unsupported("np.sort of integers")
    where = Extents(Extent(0, e.length) if i == k and e else e for i, e in enumerate(a.where))
    return Part(np.sort(only(a, np.inf), k), where)


@implements(np.roll, kind=PART)
def roll(a: Any, shift: Any, axis: Any = None) -> Part:
    a = packed(a)
    k = only_axis(a, axis, "np.roll")
    extent, n = a.where[k], a.base.shape[k]
    if extent is None:
        return Part(np.roll(a.base, shift, k), a.where, a.tame)
    length = larger(extent.length, 1)
    moved_by = np.remainder(np.subtract(np.arange(n), plus(extent.origin, number(shift))), length)
    places = np.clip(moved_by + extent.origin, 0, max(n - 1, 0))
    return Part(apply(Op.GATHER, a.base, places, attrs=(k,)), a.where, a.tame)
