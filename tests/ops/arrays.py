"""The rows of the case table for shape, index, reduce and linalg ops."""

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
NUMBERS = (F64, F32, I64)
Index = tuple[slice, ...]


def _name(op: Op, *words: object) -> str:
    return "-".join([op.name, *map(str, words)])


def _simple(
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
        name = _name(op, SHORT[dtype], *words, *attrs)
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
        yield from _simple(Op.RESHAPE, shape, ALL, lambda x, to=to: x.reshape(to), to=to)


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
        yield from _simple(Op.BROADCAST, shape, ALL, lambda x, to=to: np.broadcast_to(x, to), to=to)


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
        yield from _simple(Op.TRANSPOSE, shape, ALL, lambda x, o=order: x.transpose(o), order)


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
            _name(Op.SLICE, *words),
            Op.SLICE,
            (x,),
            one_row(Op.SLICE, attrs, small),
            lambda x, i=index: x[i],
        )
        yield Case(
            _name(Op.PAD, *words),
            Op.PAD,
            (y,),
            one_row(Op.PAD, attrs, whole),
            lambda y, s=shape, i=index: _padded(y, s, i),
        )
        yield Case(
            _name(Op.UPDATE, *words),
            Op.UPDATE,
            (x, y),
            one_row(Op.UPDATE, attrs),
            lambda x, y, i=index: _updated(x, y, i),
        )
        if dtype != BOOL:
            yield Case(
                _name(Op.SLICE_ADD, *words),
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
            name = _name(Op.CONCAT, SHORT[dtype], axis, *map(shape_word, shapes))
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
        yield from _simple(Op.ROLL, shape, ALL, rolled, (shift, axis))


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
        name = _name(Op.GATHER, SHORT[dtype], shape_word(shape), axis, shape_word(idx.shape))
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
                _name(Op.SCATTER, *words, "unique" if promised else "any"),
                Op.SCATTER,
                arrays,
                one_row(Op.SCATTER, (axis, promised)),
                lambda x, i, y, a=axis: _scattered(x, i, y, a, add=False),
            )
        if dtype != BOOL:
            yield Case(
                _name(Op.SCATTER_ADD, *words),
                Op.SCATTER_ADD,
                arrays,
                one_row(Op.SCATTER_ADD, (axis,)),
                lambda x, i, y, a=axis: _scattered(x, i, y, a, add=True),
                ulp=4,
                floor=4.0,
            )


# --- reduce ------------------------------------------------------------------------------------

REDUCED = (
    ((5,), (0,)),
    ((1,), (0,)),
    ((5,), ()),
    ((3, 4), (0,)),
    ((3, 4), (1,)),
    ((3, 4), (0, 1)),
    ((2, 3, 4), (0, 2)),
    ((2, 3, 4), (1,)),
    ((1300,), (0,)),
    ((37, 41), (0,)),
    ((37, 41), (1,)),
    ((37, 41), (0, 1)),
    ((13, 10, 11), (1, 2)),
)
ALONG = tuple((s, axes) for s, axes in REDUCED if len(axes) == 1)


def sum_cases() -> Iterator[Case]:
    for shape, axes in (*REDUCED, ((0,), (0,)), ((0, 3), (0,)), ((3, 0), (0,))):
        total = lambda x, a=axes: x.sum(a)  # noqa: E731
        floor = float(np.prod(shape))
        yield from _simple(Op.SUM, shape, NUMBERS, total, axes, ulp=2, floor=floor)


def prod_cases() -> Iterator[Case]:
    for shape, (axis,) in (*ALONG, ((0,), (0,)), ((3, 0), (1,))):
        for dtype in NUMBERS:
            name = _name(Op.PROD, SHORT[dtype], shape_word(shape), axis)
            rng = rng_of(name)
            spread = 1.0 / max(1.0, np.sqrt(shape[axis]))  # keeps long products near 1
            x = rng.choice([-1.0, 1.0], shape) * np.exp(rng.normal(0.0, spread, shape))
            x = rng.integers(-3, 4, shape) if dtype == I64 else x.astype(dtype)
            ulp = 2.0 * shape[axis]
            build = one_row(Op.PROD, (axis,))
            yield Case(name, Op.PROD, (x,), build, lambda x, a=axis: x.prod(a), ulp)


def extremum_cases() -> Iterator[Case]:
    for op, f in ((Op.REDUCE_MAX, np.max), (Op.REDUCE_MIN, np.min)):
        for shape, axes in REDUCED:
            reduced = lambda x, f=f, a=axes: f(x, a)  # noqa: E731
            for case in _simple(op, shape, ALL, reduced, axes, complex=False):
                # integers as floats: no two elements within the reach of a difference quotient
                floats = case.arrays[0].dtype.kind == "f"
                arrays = (np.argsort(case.arrays[0], None).reshape(shape) * 0.1,) if floats else case.arrays
                dtype = case.arrays[0].dtype
                yield Case(
                    case.name, op, (arrays[0].astype(dtype),), case.build, reduced, complex=False
                )
        yield from _special_reduction(op, lambda x, f=f: f(x, 1), (1,))


def position_cases() -> Iterator[Case]:
    for op, f in ((Op.ARGMAX, np.argmax), (Op.ARGMIN, np.argmin)):
        for shape, (axis,) in ALONG:
            found = lambda x, f=f, a=axis: f(x, a)  # noqa: E731
            yield from _simple(op, shape, NUMBERS, found, (axis,), smooth=False)
        ties = np.array([[1.0, 3.0, 3.0, 1.0], [2.0, 2.0, 2.0, 2.0], [-0.0, 0.0, -0.0, 0.0]])
        first = lambda x, f=f: f(x, 1)  # noqa: E731
        for dtype in NUMBERS:
            name = _name(op, SHORT[dtype], "ties")
            yield Case(name, op, (ties.astype(dtype),), one_row(op, (1,)), first, smooth=False)
        yield from _special_reduction(op, first, (1,))


def _special_reduction(op: Op, expected: Callable[..., Any], attrs: Sequence[int]) -> Iterator[Case]:
    inf, nan = np.inf, np.nan
    rows = [[1.0, nan, 2.0], [nan, nan, 1.0], [inf, -inf, 0.0], [3.0, 1.0, nan], [-inf, -inf, -inf]]
    x = np.array(rows)
    for dtype in (F64, F32):
        name = _name(op, SHORT[dtype], "special")
        yield Case(name, op, (x.astype(dtype),), one_row(op, attrs), expected, smooth=False)


def _turned(f: Callable[..., np.ndarray], axis: int, backward: int) -> Callable[..., np.ndarray]:
    """``f`` along an axis, from the end if ``backward``."""

    def turn(x: np.ndarray) -> np.ndarray:
        return np.flip(x, axis) if backward else x

    return lambda *xs: turn(f(*map(turn, xs)))


CUMULATED = (*ALONG, ((0,), (0,)), ((4, 5, 6), (1,)), ((3, 0), (0,)))


def cumsum_cases() -> Iterator[Case]:
    for (shape, (axis,)), backward in product(CUMULATED, (0, 1)):
        summed = _turned(lambda x, a=axis: np.cumsum(x, a), axis, backward)
        floor = float(max(shape[axis], 1))
        attrs = (axis, backward)
        yield from _simple(Op.CUMSUM, shape, NUMBERS, summed, attrs, ulp=2, floor=floor)


def _recurrence(a: np.ndarray, x: np.ndarray, axis: int) -> np.ndarray:
    a, out = np.moveaxis(a, axis, 0), np.moveaxis(x.copy(), axis, 0)
    for k in range(1, len(out)):
        out[k] = out[k] + a[k] * out[k - 1]
    return np.moveaxis(out, 0, axis)


def recurrence_cases() -> Iterator[Case]:
    for (shape, (axis,)), backward, dtype in product(CUMULATED, (0, 1), NUMBERS):
        name = _name(Op.RECURRENCE, SHORT[dtype], shape_word(shape), axis, backward)
        rng = rng_of(name)
        a, x = rng.uniform(-0.9, 0.9, shape), rng.uniform(-1.0, 1.0, shape)
        if dtype == I64:
            a, x = rng.integers(-1, 2, shape), rng.integers(-9, 10, shape)
        expected = _turned(lambda a, x, k=axis: _recurrence(a, x, k), axis, backward)
        build = one_row(Op.RECURRENCE, (axis, backward))
        arrays = (a.astype(dtype), x.astype(dtype))
        yield Case(name, Op.RECURRENCE, arrays, build, expected, ulp=8, floor=4.0)


# --- linalg ------------------------------------------------------------------------------------


def matmul_cases() -> Iterator[Case]:
    sizes = ((1, 2, 3, 4), (3, 2, 3, 4), (1, 1, 5, 1), (2, 1, 1, 1), (1, 37, 41, 29), (2, 3, 130, 1), (1, 2, 0, 3))
    for (batch, m, k, n), tx, ty, dtype in product(sizes, (0, 1), (0, 1), NUMBERS):
        name = _name(Op.MATMUL, SHORT[dtype], batch, m, k, n, f"{tx}{ty}")
        rng = rng_of(name)
        x, y = rng.uniform(-1, 1, (batch, m, k)), rng.uniform(-1, 1, (batch, k, n))
        if dtype == I64:
            x, y = np.rint(9 * x), np.rint(9 * y)
        x, y = x.swapaxes(1, 2) if tx else x, y.swapaxes(1, 2) if ty else y
        arrays = tuple(np.ascontiguousarray(a, dtype) for a in (x, y))

        def expected(x: np.ndarray, y: np.ndarray, tx: int = tx, ty: int = ty) -> np.ndarray:
            x, y = x.swapaxes(1, 2) if tx else x, y.swapaxes(1, 2) if ty else y
            return np.einsum("bmk,bkn->bmn", x, y)

        build = one_row(Op.MATMUL, (tx, ty))
        yield Case(name, Op.MATMUL, arrays, build, expected, ulp=4, floor=float(max(k, 1)))


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
        sum_cases,
        prod_cases,
        extremum_cases,
        position_cases,
        cumsum_cases,
        recurrence_cases,
        matmul_cases,
    ):
        yield from family()
