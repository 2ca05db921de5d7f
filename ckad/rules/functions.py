"""Rule blocks of exponentials, logarithms, trigonometric, hyperbolic and special functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.rules import ir, vector_math
from ckad.rules.elementwise import elementwise, like
from ckad.rules.registry import Over
from ckad.rules.vector_math.zeta import emit_hurwitz_zeta
from ckad.tape.builder import Builder
from ckad.tape.ops import Op


def _one_minus_square(b: Builder, x: int) -> int:
    return b.sub(like(b, x, 1.0), b.mul(x, x))


def _one_plus_square(b: Builder, x: int) -> int:
    return b.add(like(b, x, 1.0), b.mul(x, x))


# --- exponentials and logarithms ---------------------------------------------------------------

elementwise(Op.EXP, np.exp, vector_math.exp, [lambda b, out, x: out])
elementwise(
    Op.EXPM1, np.expm1, vector_math.expm1, [lambda b, out, x: b.add(out, like(b, out, 1.0))]
)
elementwise(
    Op.EXP2,
    np.exp2,
    vector_math.exp2,
    [lambda b, out, x: b.mul(out, like(b, out, math.log(2.0)))],
)
elementwise(Op.LOG, np.log, vector_math.log, [lambda b, out, x: Over(x)])
elementwise(
    Op.LOG1P, np.log1p, vector_math.log1p, [lambda b, out, x: Over(b.add(like(b, x, 1.0), x))]
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

elementwise(Op.SIN, np.sin, vector_math.sin, [lambda b, out, x: b.cos(x)])
elementwise(Op.COS, np.cos, vector_math.cos, [lambda b, out, x: b.neg(b.sin(x))])
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
        lambda b, out, y, x: b.div(x, b.add(b.mul(x, x), b.mul(y, y))),
        lambda b, out, y, x: b.neg(b.div(y, b.add(b.mul(x, x), b.mul(y, y)))),
    ],
)
elementwise(Op.SINH, np.sinh, vector_math.sinh, [lambda b, out, x: b.cosh(x)])
elementwise(Op.COSH, np.cosh, vector_math.cosh, [lambda b, out, x: b.sinh(x)])
elementwise(Op.TANH, np.tanh, vector_math.tanh, [lambda b, out, x: _one_minus_square(b, out)])
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

# --- special functions -------------------------------------------------------------------------


def _special(name: str) -> Callable[..., np.ndarray]:
    """A function of SciPy, which is loaded when it is first called: that takes a while."""

    def evaluate(*arrays: np.ndarray) -> np.ndarray:
        import scipy.special

        result: np.ndarray = getattr(scipy.special, name)(*arrays)
        return result

    return evaluate


elementwise(
    Op.ERF,
    _special("erf"),
    vector_math.erf,
    [lambda b, out, x: b.mul(like(b, x, 2.0 / math.sqrt(math.pi)), b.exp(b.neg(b.mul(x, x))))],
)
elementwise(
    Op.LGAMMA,
    _special("gammaln"),
    ir.libm("lgamma"),
    [lambda b, out, x: b.polygamma(like(b, x, 0.0), x)],
)


@ir.scalar_only
def _emit_polygamma(b: Any, n: Any, x: Any) -> Any:
    # psi, and for n >= 1: (-1)**(n + 1) n! zeta(n + 1, x)   (DLMF 5.15.2)
    is_psi = b.fcmp_ordered("==", n, ir.constant(n, 0.0))
    # zeta(1, x) is not finite: where psi is wanted, any other order will do
    order = b.select(is_psi, ir.constant(n, 2.0), b.fadd(n, ir.constant(n, 1.0)))
    sign = ir.libm("pow")(b, ir.constant(n, -1.0), order)
    factorial = ir.libm("tgamma")(b, order)
    series = b.fmul(b.fmul(sign, factorial), emit_hurwitz_zeta(b, order, x))
    return b.select(is_psi, ir.libm("ckad_psi")(b, x), series)


elementwise(
    Op.POLYGAMMA,
    _special("polygamma"),
    _emit_polygamma,
    [None, lambda b, out, n, x: b.polygamma(b.add(n, like(b, n, 1.0)), x)],
)
