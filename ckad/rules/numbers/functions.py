"""Rule blocks of exponentials, logarithms, trigonometric and hyperbolic functions."""

from __future__ import annotations

import math

import numpy as np

from ckad.rules import ir, vector_math
from ckad.rules.numbers.block import elementwise, like
from ckad.rules.registry import Over
from ckad.rules.vector_math import single
from ckad.tape.builder import Builder
from ckad.tape.ops import Op


def _one_minus_square(b: Builder, x: int) -> int:
    return b.sub(like(b, x, 1.0), b.mul(x, x))


def _square_of_radius(b: Builder, x: int, y: int) -> int:
    """x² + y², and 1 at the origin: no angle is there, and the derivative is taken as 0."""
    square = b.add(b.mul(x, x), b.mul(y, y))
    return b.select(b.eq(square, like(b, x, 0.0)), like(b, x, 1.0), square)


def _one_plus_square(b: Builder, x: int) -> int:
    return b.add(like(b, x, 1.0), b.mul(x, x))


# --- exponentials and logarithms ---------------------------------------------------------------

elementwise(Op.EXP, np.exp, vector_math.exp, [lambda b, out, x: out], single=single.single_exp)
elementwise(
    Op.EXPM1,
    np.expm1,
    vector_math.expm1,
    [lambda b, out, x: b.add(out, like(b, out, 1.0))],
    single=single.single_expm1,
)
elementwise(
    Op.EXP2,
    np.exp2,
    vector_math.exp2,
    [lambda b, out, x: b.mul(out, like(b, out, math.log(2.0)))],
)
elementwise(Op.LOG, np.log, vector_math.log, [lambda b, out, x: Over(x)], single=single.single_log)
elementwise(
    Op.LOG1P,
    np.log1p,
    vector_math.log1p,
    [lambda b, out, x: Over(b.add(like(b, x, 1.0), x))],
    single=single.single_log1p,
)
elementwise(
    Op.LOG2,
    np.log2,
    vector_math.log2,
    [lambda b, out, x: Over(b.mul(x, like(b, x, math.log(2.0))))],
)
elementwise(
    Op.LOG10,
    np.log10,
    vector_math.log10,
    [lambda b, out, x: Over(b.mul(x, like(b, x, math.log(10.0))))],
)

# --- trigonometric and hyperbolic functions ----------------------------------------------------

elementwise(Op.SIN, np.sin, vector_math.sin, [lambda b, out, x: b.cos(x)], single=single.single_sin)
elementwise(
    Op.COS, np.cos, vector_math.cos, [lambda b, out, x: b.neg(b.sin(x))], single=single.single_cos
)
elementwise(Op.TAN, np.tan, vector_math.tan, [lambda b, out, x: _one_plus_square(b, out)])
elementwise(
    Op.ASIN,
    np.arcsin,
    ir.libm("asin"),
    [lambda b, out, x: Over(b.sqrt(_one_minus_square(b, x)))],
)
elementwise(
    Op.ACOS,
    np.arccos,
    ir.libm("acos"),
    [lambda b, out, x: Over(b.neg(b.sqrt(_one_minus_square(b, x))))],
)
elementwise(Op.ATAN, np.arctan, ir.libm("atan"), [lambda b, out, x: Over(_one_plus_square(b, x))])
elementwise(
    Op.ATAN2,
    np.arctan2,
    ir.libm("atan2"),
    [
        lambda b, out, y, x: b.div(x, _square_of_radius(b, x, y)),
        lambda b, out, y, x: b.neg(b.div(y, _square_of_radius(b, x, y))),
    ],
)
elementwise(Op.SINH, np.sinh, vector_math.sinh, [lambda b, out, x: b.cosh(x)])
elementwise(Op.COSH, np.cosh, vector_math.cosh, [lambda b, out, x: b.sinh(x)])
elementwise(
    Op.TANH,
    np.tanh,
    vector_math.tanh,
    [lambda b, out, x: _one_minus_square(b, out)],
    single=single.single_tanh,
)
elementwise(
    Op.ASINH,
    np.arcsinh,
    ir.libm("asinh"),
    [lambda b, out, x: Over(b.sqrt(_one_plus_square(b, x)))],
)
elementwise(
    Op.ACOSH,
    np.arccosh,
    ir.libm("acosh"),
    [lambda b, out, x: Over(b.sqrt(b.sub(b.mul(x, x), like(b, x, 1.0))))],
)
elementwise(
    Op.ATANH, np.arctanh, ir.libm("atanh"), [lambda b, out, x: Over(_one_minus_square(b, x))]
)
