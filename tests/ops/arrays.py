"""The rows of the case table for shape and index ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from ckad.tape.ops import Op
from ckad.tape.types import Type

from .case import BOOL, F32, F64, I64, SHORT, Case, code, fill, one_row, shape_word
from .elementwise import rng_of

ALL = (F64, F32, I64, BOOL)
Index = tuple[slice, ...]


def named(op: Op, *words: object) -> str:
    return "-".join([op.name, *map(str, words)])


def one_operand(
    op: Op,
    shape: Sequence[int],
    dtypes: Sequence[np.dtype],
    expected: Callable[..., Any],
    attrs: Sequence[int] = (),
    to: Sequence[int] | None = None,
    **fields: Any,
) -> Iterator[Case]:
    """One operand of ``shape`` and every dtype; ``to``: the shape where the rule cannot know it."""
    for dtype in dtypes:
        words = [shape_word(shape), *(["to", shape_word(to)] if to is not None else [])]
        name = named(op, SHORT[dtype], *words, *attrs)
        type = None if to is None else Type(code(dtype), tuple(to))
        x = fill(rng_of(name), shape, dtype)
        yield Case(name, op, (x,), one_row(op, attrs, type), expected, **fields)


# --- shape -------------------------------------------------------------------------------------


def reshape_cases() -> Iterator[Case]:
    for shape, to in (
        ((12,), (3, 4)),
        ((3, 4), (2, 6)),
        ((), (1,)),
        ((1, 1), ()),
        ((37, 41), (41, 37)),
        ((0,), (3, 0)),
    ):
        yield from one_operand(Op.RESHAPE, shape, ALL, lambda x, to=to: x.reshape(to), to=to)


def broadcast_cases() -> Iterator[Case]:
    for shape, to in (
        ((), (5,)),
        ((), (37, 41)),
        ((1,), (1300,)),
        ((3, 1), (3, 4)),
        ((4,), (3, 4)),
        ((1, 4), (2, 3, 4)),
        ((37, 1), (37, 41)),
        ((41,), (37, 41)),
        ((2, 1, 3, 1), (2, 5, 3, 4)),
        ((1,), (0,)),
    ):
        yield from one_operand(
            Op.BROADCAST, shape, ALL, lambda x, to=to: np.broadcast_to(x, to), to=to
        )


def transpose_cases() -> Iterator[Case]:
    for shape, order in (
        ((5,), (0,)),
        ((3, 4), (1, 0)),
        ((37, 41), (1, 0)),
        ((2, 3, 4), (2, 0, 1)),
        ((2, 3, 4), (0, 2, 1)),
        ((13, 10, 11), (1, 2, 0)),
        ((2, 3, 4, 5), (3, 1, 0, 2)),
    ):
        yield from one_operand(Op.TRANSPOSE, shape, ALL, lambda x, o=order: x.transpose(o), order)


def _slices(*parts: str) -> Index:
    return tuple(slice(*(int(w) if w else None for w in part.split(":"))) for part in parts)


#: shape of the whole, the index that picks the part
PICKED = (
    ((5,), _slices("1:4")),
    ((5,), _slices("::-1")),
    ((10,), _slices("1::3")),
    ((10,), _slices("8:0:-3")),
    ((10,), _slices("4:4")),
    ((1300,), _slices("1:-1")),
    ((1300,), _slices("7:30")),
    ((1300,), _slices("::-7")),
    ((3, 4), _slices("1:", "::2")),
    ((3, 4), _slices("::-1", "::-2")),
    ((37, 41), _slices("1:-1", "1:-1")),
    ((37, 41), _slices("::2", "40:3:-3")),
    ((37, 41), _slices("5:6", ":")),
    ((37, 41), _slices(":", "5:6")),
    ((4, 5, 6), _slices("1:3", "::-2", "::3")),
)


def slice_attrs(shape: Sequence[int], index: Index) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Starts then steps, and the shape of the part."""
    ranges = [range(*s.indices(n)) for s, n in zip(index, shape, strict=True)]
    part = tuple(len(r) for r in ranges)
    return (*(r.start for r in ranges), *(r.step for r in ranges)), part


def _padded(x: np.ndarray, shape: Sequence[int], index: Index) -> np.ndarray:
    out = np.zeros(shape, x.dtype)
    out[index] = x
    return out


def _updated(x: np.ndarray, y: np.ndarray, index: Index) -> np.ndarray:
    out = x.copy()
    out[index] = y
    return out


def _added(x: np.ndarray, y: np.ndarray, index: Index) -> np.ndarray:
    out = x.copy()
    out[index] += y
    return out


def slice_cases() -> Iterator[Case]:
    for (shape, index), dtype in product(PICKED, ALL):
        attrs, part = slice_attrs(shape, index)
        words = (SHORT[dtype], shape_word(shape), *attrs)
        rng = rng_of(str(words))
        x, y = fill(rng, shape, dtype), fill(rng, part, dtype)
        small, whole = Type(code(dtype), part), Type(code(dtype), shape)
        yield Case(
            named(Op.SLICE, *words),
            Op.SLICE,
            (x,),
            one_row(Op.SLICE, attrs, small),
            lambda x, i=index: x[i],
        )
        yield Case(
            named(Op.PAD, *words),
            Op.PAD,
            (y,),
            one_row(Op.PAD, attrs, whole),
            lambda y, s=shape, i=index: _padded(y, s, i),
        )
        yield Case(
            named(Op.UPDATE, *words),
            Op.UPDATE,
            (x, y),
            one_row(Op.UPDATE, attrs),
            lambda x, y, i=index: _updated(x, y, i),
        )
        if dtype != BOOL:
            yield Case(
                named(Op.SLICE_ADD, *words),
                Op.SLICE_ADD,
                (x, y),
                one_row(Op.SLICE_ADD, attrs),
                lambda x, y, i=index: _added(x, y, i),
            )


def concat_cases() -> Iterator[Case]:
    for axis, shapes in (
        (0, ((3,), (1,), (4,))),
        (0, ((5,),)),
        (0, ((2,), (0,), (3,))),
        (0, ((2, 4), (3, 4), (1, 4))),
        (1, ((3, 2), (3, 1), (3, 5))),
        (1, ((37, 20), (37, 41), (37, 2))),
        (0, ((700,), (600,), (1,))),
        (2, ((2, 3, 1), (2, 3, 4))),
    ):
        for dtype in ALL:
            name = named(Op.CONCAT, SHORT[dtype], axis, *map(shape_word, shapes))
            rng = rng_of(name)
            arrays = tuple(fill(rng, s, dtype) for s in shapes)
            build = one_row(Op.CONCAT, (axis,))
            yield Case(name, Op.CONCAT, arrays, build, lambda *xs, a=axis: np.concatenate(xs, a))


def roll_cases() -> Iterator[Case]:
    for shape, shift, axis in (
        ((5,), 2, 0),
        ((5,), -1, 0),
        ((5,), 0, 0),
        ((5,), 13, 0),
        ((1,), 1, 0),
        ((0,), 1, 0),
        ((3, 4), 1, 1),
        ((3, 4), -2, 0),
        ((1300,), 1, 0),
        ((37, 41), -1, 1),
        ((37, 41), 30, 0),
        ((4, 5, 6), 2, 1),
    ):
        rolled = lambda x, s=shift, a=axis: np.roll(x, s, a)  # noqa: E731
        yield from one_operand(Op.ROLL, shape, ALL, rolled, (shift, axis))


# --- index -------------------------------------------------------------------------------------

#: shape, axis, indices
GATHERED = (
    ((5,), 0, [0, 4, 2]),
    ((5,), 0, 3),
    ((5,), 0, [[0, 1], [1, 1], [4, 0]]),
    ((5,), 0, []),
    ((3, 4), 0, [2, 2, 0]),
    ((3, 4), 1, [[3, 0], [1, 3]]),
    ((3, 4), 1, 2),
    ((1300,), 0, np.arange(1299, -1, -1) // 2),
    ((37, 41), 0, np.arange(50) * 7 % 37),
    ((37, 41), 1, np.arange(60).reshape(6, 10) % 41),
    ((4, 5, 6), 1, [4, 0, 0]),
)


def gather_cases() -> Iterator[Case]:
    for (shape, axis, indices), dtype in product(GATHERED, ALL):
        idx = np.asarray(indices, np.int64)
        name = named(Op.GATHER, SHORT[dtype], shape_word(shape), axis, shape_word(idx.shape))
        x = fill(rng_of(name), shape, dtype)
        build = one_row(Op.GATHER, (axis,))
        yield Case(name, Op.GATHER, (x, idx), build, lambda x, i, a=axis: np.take(x, i, a))


def _scattered(x: np.ndarray, idx: np.ndarray, y: np.ndarray, axis: int, add: bool) -> np.ndarray:
    out = x.copy()
    lead = (slice(None),) * axis
    for place in np.ndindex(idx.shape):
        target, source = (*lead, idx[place]), (*lead, *place)
        out[target] = out[target] + y[source] if add else y[source]
    return out


def scatter_cases() -> Iterator[Case]:
    for (shape, axis, indices), dtype in product(GATHERED, ALL):
        idx = np.asarray(indices, np.int64)
        unique = int(len(np.unique(idx)) == idx.size)
        part = (*shape[:axis], *idx.shape, *shape[axis + 1 :])
        words = (SHORT[dtype], shape_word(shape), axis, shape_word(idx.shape))
        rng = rng_of(str(words))
        arrays = (fill(rng, shape, dtype), idx, fill(rng, part, dtype))
        for promised in {0, unique}:
            yield Case(
                named(Op.SCATTER, *words, "unique" if promised else "any"),
                Op.SCATTER,
                arrays,
                one_row(Op.SCATTER, (axis, promised)),
                lambda x, i, y, a=axis: _scattered(x, i, y, a, add=False),
            )
        if dtype != BOOL:
            yield Case(
                named(Op.SCATTER_ADD, *words),
                Op.SCATTER_ADD,
                arrays,
                one_row(Op.SCATTER_ADD, (axis,)),
                lambda x, i, y, a=axis: _scattered(x, i, y, a, add=True),
                ulp=4,
                floor=4.0,
            )


def all_arrays() -> Iterator[Case]:
    for family in (
        reshape_cases,
        broadcast_cases,
        transpose_cases,
        slice_cases,
        concat_cases,
        roll_cases,
        gather_cases,
        scatter_cases,
    ):
        yield from family()
