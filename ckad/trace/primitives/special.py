"""SciPy's special functions on tracers; loaded when the first one of them is called."""

from __future__ import annotations

import math

import numpy as np
import scipy.special

from ckad.tape.ops import Op
from ckad.trace.arrays import Array
from ckad.trace.primitives.elementwise import by_op, constant_like, register
from ckad.trace.values.apply import apply
from ckad.trace.values.tracer import Tracer


def _expit(x: Tracer) -> Array:
    """``1 / (1 + exp(-x))``, and ``exp(x) / (1 + exp(x))`` where the square of the former's
    denominator would overflow, which its derivative divides by."""
    low = x < -0.42 * math.log(np.finfo(x.dtype).max)
    power = np.exp(np.where(low, x, -x))
    return np.where(low, power, 1.0) / (1.0 + power)


def _xlogy(x: Tracer, y: Tracer) -> Array:
    """0 where x is 0, also where the logarithm is not finite; else derivatives of the product."""
    nothing = np.equal(x, 0)
    outside = np.logical_or(np.less_equal(y, 0), np.equal(y, np.inf))
    product = x * np.log(np.where(np.logical_and(nothing, outside), 1.0, y))
    return np.where(nothing, product + 0.0, product)  # not -0.0


register(scipy.special.erf, by_op(Op.ERF))
register(scipy.special.gammaln, by_op(Op.LGAMMA))
register(scipy.special.erfc, lambda x: 1.0 - apply(Op.ERF, x))
register(scipy.special.expit, _expit)
register(scipy.special.digamma, lambda x: apply(Op.POLYGAMMA, constant_like(x, 0.0), x))
register(scipy.special.xlogy, _xlogy)
register(scipy.special.log1p, by_op(Op.LOG1P))
register(scipy.special.expm1, by_op(Op.EXPM1))
