"""Random programs for hypothesis: rows over the differentiable ops, and loops around them.

Values stay within a few units and smooth enough that rounding does not drown a comparison to 1e-11:
what could grow is damped by the row that follows it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import DType, Type

from .composites import cond, loop

Draw = Callable[..., int]
SCALAR, VECTOR, MATRIX = (Type(DType.F64, shape) for shape in ((), (4,), (3, 4)))
INPUTS = (VECTOR, MATRIX, SCALAR, VECTOR)

#: bounded by themselves, or on the bounded values that they get
SMOOTH = (Op.SIN, Op.COS, Op.TANH, Op.ATAN, Op.ERF, Op.ASINH, Op.NEG, Op.ABS)


class Pool:
    """The values made so far; ``pick`` draws one of a shape, converting another where need be."""

    def __init__(self, b: Builder, draw: Callable[..., int], values: list[int]) -> None:
        self.b, self.values = b, list(values)
        self._draw = draw

    def number(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def any(self) -> int:
        return self.values[self.number(0, len(self.values) - 1)]

    def pick(self, type: Type) -> int:
        """A value in the shape of ``type``: one drawn, broadcast or summed to it."""
        b, x = self.b, self.any()
        while len(b.type(x).shape) > len(type.shape):
            x = b.sin(b.sum(x, attrs=(0,)))
        return b.broadcast_to(x, type.shape)


def _unary(p: Pool, x: int) -> int:
    return p.b.emit(SMOOTH[p.number(0, len(SMOOTH) - 1)], (x,))


def _growing(p: Pool, x: int) -> int:
    """exp, cosh and their like, damped."""
    ops = (Op.EXP, Op.SINH, Op.COSH, Op.EXPM1, Op.EXP2)
    return p.b.tanh(p.b.emit(ops[p.number(0, len(ops) - 1)], (p.b.sin(x),)))


def _of_positive(p: Pool, x: int) -> int:
    """Roots and logarithms of 1 + x^2."""
    b = p.b
    ops = (Op.SQRT, Op.LOG, Op.LOG1P, Op.CBRT, Op.LOG2, Op.LGAMMA)
    above = b.add(b.full_like(x, 1.0), b.mul(x, x))
    return b.sin(b.emit(ops[p.number(0, len(ops) - 1)], (above,)))


def _sum_of_two(p: Pool, x: int) -> int:
    y = p.pick(p.b.type(x))
    return p.b.mul(p.b.full_like(x, 0.5), p.b.emit((Op.ADD, Op.SUB)[p.number(0, 1)], (x, y)))


def _product(p: Pool, x: int) -> int:
    return p.b.sin(p.b.mul(x, p.pick(p.b.type(x))))


def _quotient(p: Pool, x: int) -> int:
    b, y = p.b, p.pick(p.b.type(x))
    return b.div(x, b.add(b.full_like(y, 1.0), b.mul(y, y)))


def _power(p: Pool, x: int) -> int:
    b, y = p.b, p.pick(p.b.type(x))
    base = b.add(b.full_like(x, 1.0), b.mul(x, x))
    return b.tanh(b.pow(base, b.sin(y)))


def _length(p: Pool, x: int) -> int:
    b, y = p.b, p.pick(p.b.type(x))
    away = b.add(b.cos(y), b.full_like(y, 2.0))
    return b.emit((Op.HYPOT, Op.ATAN2)[p.number(0, 1)], (x, away))


def _extremum(p: Pool, x: int) -> int:
    return p.b.emit((Op.MAXIMUM, Op.MINIMUM)[p.number(0, 1)], (x, p.pick(p.b.type(x))))


def _select(p: Pool, x: int) -> int:
    b = p.b
    y, z = p.pick(b.type(x)), p.pick(b.type(x))
    return b.select(b.lt(y, z), x, y)


def _cumulated(p: Pool, x: int) -> int:
    b, axis = p.b, p.number(0, len(p.b.type(x).shape) - 1)
    attrs = (axis, p.number(0, 1))
    if p.number(0, 1):
        return b.sin(b.cumsum(x, attrs=attrs))
    return b.sin(b.recurrence(b.sin(p.pick(b.type(x))), x, attrs=attrs))


def _moved(p: Pool, x: int) -> int:
    """roll, reverse, transpose there and back around a row."""
    b, type = p.b, p.b.type(x)
    axis, kind = p.number(0, len(type.shape) - 1), p.number(0, 2)
    if kind == 0:
        return b.roll(x, attrs=(p.number(-2, 5), axis))
    if kind == 1:
        starts = [n - 1 if k == axis else 0 for k, n in enumerate(type.shape)]
        steps = [-1 if k == axis else 1 for k in range(len(starts))]
        return b.slice(x, attrs=(*starts, *steps), type=type)
    order = range(len(type.shape))[::-1]
    return b.transpose(b.cos(b.transpose(x, attrs=order)), attrs=order)


def _written(p: Pool, x: int) -> int:
    """A part of x replaced by, or increased by, a part of another value."""
    b, type = p.b, p.b.type(x)
    rank = len(type.shape)
    part = type.with_shape((*type.shape[:-1], 2))
    step = p.number(1, 2)
    attrs = (*[0] * (rank - 1), p.number(0, 1), *[1] * (rank - 1), step)
    new = b.slice(p.pick(type), attrs=(*[0] * rank, *[1] * rank), type=part)
    if p.number(0, 1):
        return b.update(x, new, attrs=attrs)
    return b.sin(b.slice_add(x, new, attrs=attrs))


def _indexed(p: Pool, x: int) -> int:
    """Gather with repeated indices, then scatter or scatter-add into another value."""
    b, n = p.b, p.b.type(x).shape[0]
    idx = b.const(np.array([p.number(0, n - 1) for _ in range(3)]))
    taken = b.gather(x, idx, attrs=(0,))
    target = p.pick(b.type(x))
    if p.number(0, 1):
        return b.scatter(target, idx, taken, attrs=(0, 0))
    return b.sin(b.scatter_add(target, idx, taken, attrs=(0,)))


def _joined(p: Pool, x: int) -> int:
    """Concatenated with another value, and every second element kept."""
    b, type = p.b, p.b.type(x)
    both = b.concat(x, p.pick(type), attrs=(0,))
    rest = len(type.shape) - 1
    return b.slice(both, attrs=(p.number(0, 1), *[0] * rest, 2, *[1] * rest), type=type)


def _multiplied(p: Pool, x: int) -> int:
    """x y^T z for matrices, from whatever values there are."""
    b = p.b
    rows, more = (b.reshape_to(p.pick(MATRIX), (1, 3, 4)) for _ in "yz")
    square = b.matmul(rows, more, attrs=(0, 1))
    product = b.matmul(b.sin(square), b.reshape_to(p.pick(MATRIX), (1, 3, 4)), attrs=(1, 0))
    return b.sin(b.reshape_to(product, (3, 4)))


def _reduced(p: Pool, x: int) -> int:
    b, axis = p.b, p.number(0, len(p.b.type(x).shape) - 1)
    op = (Op.SUM, Op.PROD, Op.REDUCE_MAX, Op.REDUCE_MIN)[p.number(0, 3)]
    reduced = b.sin(b.emit(op, (x,), (axis,)))
    return b.sin(b.sum(reduced, attrs=(0,))) if b.type(reduced).shape else reduced


def _chosen(p: Pool, x: int) -> int:
    """Either branch, by a comparison of a value that may itself be varied."""
    b = p.b
    y = p.pick(b.type(x))
    truth = b.lt(p.pick(SCALAR), b.const(0.1))
    (result,) = cond(
        b, truth, [x, y], lambda b, x, y: [b.sin(b.mul(x, y))], lambda b, x, y: [b.atan(y)]
    )
    return result


ANY_SHAPE = (_unary, _growing, _of_positive, _sum_of_two, _product, _quotient, _power, _length)
ANY_SHAPE += (_extremum, _select, _chosen)
ARRAYS = (_cumulated, _moved, _written, _indexed, _joined, _multiplied, _reduced)


def grow(p: Pool, n_rows: int) -> None:
    """Append ``n_rows`` drawn rows (each with what keeps its value bounded) to the pool."""
    for _ in range(n_rows):
        x = p.any()
        makers = ANY_SHAPE + (ARRAYS if p.b.type(x).shape else ())
        p.values.append(makers[p.number(0, len(makers) - 1)](p, x))


def _add_loop(p: Pool, depth: int) -> None:
    """A LOOP whose carry, xs and captures are drawn from the pool; its results join the pool."""
    b = p.b
    carry = [p.any() for _ in range(p.number(1, 2))]
    xs = [p.pick(MATRIX)] if p.number(0, 1) else []
    captured = [p.any() for _ in range(p.number(0, 2))]
    length = 3 if xs else p.number(1, 4)
    types = [b.type(c) for c in carry]

    def emit(inner: Builder, i: int, *values: int) -> list[int]:
        step = inner.mul(inner.convert(i, type=SCALAR), inner.const(0.1))
        q = Pool(inner, p._draw, [*values, step])
        grow(q, p.number(1, 6))
        if depth > 1 and p.number(0, 1):
            _add_loop(q, depth - 1)
        ys = [q.any() for _ in range(p.number(0, 1))]
        return [*(q.pick(t) for t in types), *ys]

    results = loop(b, emit, length, carry, xs, captured)
    p.values += [_fitted(b, r) for r in results]


def _fitted(b: Builder, x: int) -> int:
    """Stacked results have shapes that the pool does not know: sum them."""
    return x if b.type(x) in INPUTS else b.sin(b.sum(x, attrs=range(len(b.type(x).shape))))


class Generated(NamedTuple):
    tape: Tape
    arrays: tuple[np.ndarray, ...]


@st.composite
def programs(draw: Draw, loops: int) -> Generated:
    """A tape over four float64 inputs with one to three outputs, and inputs for it."""
    b = Builder()
    p = Pool(b, draw, [b.input(t) for t in INPUTS])
    grow(p, p.number(3, 12))
    for _ in range(loops):
        _add_loop(p, depth=2)
        grow(p, p.number(0, 3))
    outputs = [p.values[-1], *(p.any() for _ in range(p.number(0, 2)))]
    rng = np.random.default_rng(p.number(0, 2**32 - 1))
    arrays = tuple(np.asarray(rng.uniform(-1.5, 1.5, t.shape)) for t in INPUTS)
    return Generated(b.tape(outputs), arrays)
