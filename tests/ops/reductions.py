"""The rows of the case table for reductions, cumulative ops and the matrix product."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from ckad.tape.ops import Op

from .arrays import ALL, named, one_operand
from .case import F32, F64, I64, SHORT, Case, one_row, shape_word
from .elementwise import rng_of

NUMBERS = (F64, F32, I64)

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
        yield from one_operand(Op.SUM, shape, NUMBERS, total, axes, ulp=2, floor=floor)


def prod_cases() -> Iterator[Case]:
    for shape, (axis,) in (*ALONG, ((0,), (0,)), ((3, 0), (1,))):
        for dtype in NUMBERS:
            name = named(Op.PROD, SHORT[dtype], shape_word(shape), axis)
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
            for case in one_operand(op, shape, ALL, reduced, axes, complex=False):
                x = case.arrays[0]
                if x.dtype.kind == "f":
                    # no two elements within the reach of a difference quotient
                    x = (0.1 * np.argsort(x, None).reshape(shape)).astype(x.dtype)
                yield replace(case, arrays=(x,))
        yield from _special_reduction(op, lambda x, f=f: f(x, 1), (1,))


def position_cases() -> Iterator[Case]:
    for op, f in ((Op.ARGMAX, np.argmax), (Op.ARGMIN, np.argmin)):
        for shape, (axis,) in ALONG:
            found = lambda x, f=f, a=axis: f(x, a)  # noqa: E731
            yield from one_operand(op, shape, NUMBERS, found, (axis,), smooth=False)
        ties = np.array([[1.0, 3.0, 3.0, 1.0], [2.0, 2.0, 2.0, 2.0], [-0.0, 0.0, -0.0, 0.0]])
        first = lambda x, f=f: f(x, 1)  # noqa: E731
        for dtype in NUMBERS:
            name = named(op, SHORT[dtype], "ties")
            yield Case(name, op, (ties.astype(dtype),), one_row(op, (1,)), first, smooth=False)
        yield from _special_reduction(op, first, (1,))


def _special_reduction(
    op: Op, expected: Callable[..., Any], attrs: Sequence[int]
) -> Iterator[Case]:
    inf, nan = np.inf, np.nan
    rows = [[1.0, nan, 2.0], [nan, nan, 1.0], [inf, -inf, 0.0], [3.0, 1.0, nan], [-inf, -inf, -inf]]
    x = np.array(rows)
    for dtype in (F64, F32):
        name = named(op, SHORT[dtype], "special")
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
        yield from one_operand(Op.CUMSUM, shape, NUMBERS, summed, attrs, ulp=2, floor=floor)


def _recurrence(a: np.ndarray, x: np.ndarray, axis: int) -> np.ndarray:
    a, out = np.moveaxis(a, axis, 0), np.moveaxis(x.copy(), axis, 0)
    for k in range(1, len(out)):
        out[k] = out[k] + a[k] * out[k - 1]
    return np.moveaxis(out, 0, axis)


def recurrence_cases() -> Iterator[Case]:
    for (shape, (axis,)), backward, dtype in product(CUMULATED, (0, 1), NUMBERS):
        name = named(Op.RECURRENCE, SHORT[dtype], shape_word(shape), axis, backward)
        rng = rng_of(name)
        a, x = rng.uniform(-0.9, 0.9, shape), rng.uniform(-1.0, 1.0, shape)
        if dtype == I64:
            a, x = rng.integers(-1, 2, shape), rng.integers(-9, 10, shape)
        expected = _turned(lambda a, x, k=axis: _recurrence(a, x, k), axis, backward)
        build = one_row(Op.RECURRENCE, (axis, backward))
        arrays = (a.astype(dtype), x.astype(dtype))
        yield Case(name, Op.RECURRENCE, arrays, build, expected, ulp=8, floor=4.0)


# --- linalg ------------------------------------------------------------------------------------


#: batch, m, k, n
SIZES = ((1, 2, 3, 4), (3, 2, 3, 4), (1, 1, 5, 1), (2, 1, 1, 1), (1, 37, 41, 29), (2, 3, 130, 1))
SIZES += ((1, 2, 0, 3),)


def matmul_cases() -> Iterator[Case]:
    for (batch, m, k, n), tx, ty, dtype in product(SIZES, (0, 1), (0, 1), NUMBERS):
        name = named(Op.MATMUL, SHORT[dtype], batch, m, k, n, f"{tx}{ty}")
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


def all_reductions() -> Iterator[Case]:
    for family in (
        sum_cases,
        prod_cases,
        extremum_cases,
        position_cases,
        cumsum_cases,
        recurrence_cases,
        matmul_cases,
    ):
        yield from family()
