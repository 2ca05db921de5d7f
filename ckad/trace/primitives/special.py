"""SciPy's special functions on tracers; loaded when the first one of them is called."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from ckad.tape.ops import Op
from ckad.trace.arrays import Array
from ckad.trace.dispatch import implements
from ckad.trace.primitives.elementwise import by_op, constant_like, register
from ckad.trace.values.apply import apply, astype, broadcast
from ckad.trace.values.tracer import Tracer, lift

#: Those whose op has their name, and those that have ops of other names.
_OF_ONE_NAME = """erf erfc erfcx erfinv erfcinv log_ndtr gamma rgamma betaln gammainc gammaincc
    betainc stdtr stdtrit gammaincinv gammainccinv betaincinv expi exp1 ellipkm1 ellipe
    ellipkinc ellipeinc log1p expm1"""
for _function, _op in {
    **{getattr(scipy.special, name): Op[name.upper()] for name in _OF_ONE_NAME.split()},
    scipy.special.gammaln: Op.LGAMMA,
    scipy.special.jv: Op.BESSEL_J,
    scipy.special.iv: Op.BESSEL_I,
    scipy.special.ive: Op.BESSEL_IE,
    scipy.special.kv: Op.BESSEL_K,
    scipy.special.kve: Op.BESSEL_KE,
    scipy.special.yv: Op.BESSEL_Y,
}.items():
    register(_function, by_op(_op))


# --- gamma and beta functions ------------------------------------------------------------------


def _polygamma(n: Any, x: Any) -> Tracer:
    x = lift(x)
    x = x if x.type.is_float else astype(x, np.float64)
    return apply(Op.POLYGAMMA, *broadcast(astype(n, x.dtype), x))


def _gammasgn(x: Tracer) -> Array:
    """The sign of the gamma function, NaN at its poles below 0."""
    whole = np.floor(x)
    below = np.where(np.equal(whole, x), np.nan, 1.0 - 2.0 * np.remainder(whole, 2.0))
    sign = np.where(x < 0, below, np.copysign(1.0, x))
    return np.where(np.isnan(x), x, sign)


def _is_pole(x: Tracer) -> Array:
    return np.logical_and(x <= 0.0, np.equal(x, np.floor(x)))


def _beta(a: Tracer, b: Tracer) -> Array:
    """Finite between two whole numbers only where gamma functions have poles in both parts."""
    size, total = apply(Op.BETALN, a, b), a + b
    sign = _gammasgn(a) * _gammasgn(b) * np.where(_is_pole(total), 1.0, _gammasgn(total))
    for pole, other in ((b, a), (a, b)):
        is_odd = np.logical_and(total < 1.0, np.equal(np.remainder(other, 2.0), 1.0))
        sign = np.where(_is_pole(pole), np.where(is_odd, -1.0, 1.0), sign)
    return sign * np.exp(size)


implements(scipy.special.polygamma)(_polygamma)
register(scipy.special.digamma, lambda x: _polygamma(0.0, x))
register(scipy.special.gammasgn, _gammasgn)
register(scipy.special.beta, _beta)
register(scipy.special.ellipk, lambda m: apply(Op.ELLIPKM1, 1.0 - m))

# --- Bessel functions of one order, and of whole ones ------------------------------------------

#: Where SciPy's functions of any order give up, and those of order 0 and 1 do not; half of a
#: number's logarithm and Euler's constant.
_FAR, _NEAR, _EULER = 1e9, 1e-150, float(np.euler_gamma) - math.log(2.0)
_Formula = Callable[[Any], Any]


def _of_order(
    op: Op, order: int, near: _Formula, far: Callable[[Any, float], Any] | None
) -> _Formula:
    """A Bessel function of order 0 or 1; by its leading terms where it is ``near`` 0 or ``far``."""

    def function(x: Tracer) -> Array:
        is_odd = order == 1 and op in (Op.BESSEL_I, Op.BESSEL_IE)
        size = np.abs(x) if op in (Op.BESSEL_I, Op.BESSEL_IE) else x
        is_near = np.logical_and(size > 0.0, size < _NEAR)
        is_far = size > _FAR if far else np.zeros_like(is_near)
        ends = np.logical_or(is_near, is_far)
        inside = apply(op, constant_like(x, float(order)), lift(np.where(ends, 1.0, x)))
        found = np.where(is_near, near(np.where(is_near, x, 1.0)), inside)
        if far is None:
            return found
        at_end = far(np.where(is_far, x, 1.0), (4.0 * order - 1.0) / 8.0)
        return np.where(is_far, np.sign(x) * at_end if is_odd else at_end, found)

    return function


for _function, _order in ((scipy.special.j0, 0.0), (scipy.special.j1, 1.0)):
    register(_function, lambda x, v=_order: apply(Op.BESSEL_J, constant_like(x, v), x))
for _names, _op, _near, _far in (
    (
        "y0 y1",
        Op.BESSEL_Y,
        (lambda x: 2.0 / math.pi * (np.log(x) + _EULER), lambda x: -2.0 / math.pi / x),
        None,
    ),
    (
        "i0 i1",
        Op.BESSEL_I,
        (lambda x: 1.0 + 0.25 * x * x, lambda x: 0.5 * x),
        lambda x, c: np.where(np.isinf(x), np.nan, np.exp(np.abs(x))),  # as SciPy's
    ),
    (
        "i0e i1e",
        Op.BESSEL_IE,
        (lambda x: (1.0 + 0.25 * x * x) * np.exp(-np.abs(x)), lambda x: 0.5 * x),
        lambda x, c: math.sqrt(0.5 / math.pi) / np.sqrt(np.abs(x)) * (1.0 - c / np.abs(x)),
    ),
    (
        "k0 k1",
        Op.BESSEL_K,
        (lambda x: -np.log(x) - _EULER, lambda x: 1.0 / x),
        lambda x, c: np.exp(-x),
    ),
    (
        "k0e k1e",
        Op.BESSEL_KE,
        (lambda x: -np.log(x) - _EULER, lambda x: 1.0 / x),
        lambda x, c: math.sqrt(0.5 * math.pi) / np.sqrt(x) * (1.0 + c / x),
    ),
):
    for _order, _name in enumerate(_names.split()):
        register(getattr(scipy.special, _name), _of_order(_op, _order, _near[_order], _far))


def _of_whole_order(op: Op) -> Any:
    def lowered(n: Tracer, x: Tracer) -> Array:
        order = astype(n, x.dtype)
        return apply(op, np.trunc(order) if n.type.is_float else order, x)  # as SciPy takes it

    return lowered


for _function, _op in (
    (scipy.special.yn, Op.BESSEL_Y),
    (scipy.special.kn, Op.BESSEL_K),
    (scipy.special.expn, Op.EXPN),
):
    register(_function, _of_whole_order(_op))

# --- distributions -----------------------------------------------------------------------------


def _expit(x: Tracer) -> Array:
    """``1 / (1 + exp(-x))``, and ``exp(x) / (1 + exp(x))`` where the square of the former's
    denominator would overflow, which its derivative divides by."""
    low = x < -0.42 * math.log(np.finfo(x.dtype).max)
    power = np.exp(np.where(low, x, -x))
    return np.where(low, power, 1.0) / (1.0 + power)


def _logit(x: Tracer) -> Array:
    """log(x / (1 - x)), around 1/2 by what is left of it there."""
    near = np.logical_and(x > 0.3, x < 0.65)
    s = 2.0 * np.where(near, x, 0.5) - 1.0
    far = np.where(near, 0.25, x)
    return np.where(near, np.log1p(s) - np.log1p(-s), np.log(far / (1.0 - far)))


def _xlogy(x: Tracer, y: Tracer) -> Array:
    """0 where x is 0, also where the logarithm is not finite; else derivatives of the product."""
    nothing = np.equal(x, 0)
    outside = np.logical_or(np.less_equal(y, 0), np.equal(y, np.inf))
    product = x * np.log(np.where(np.logical_and(nothing, outside), 1.0, y))
    return np.where(nothing, product + 0.0, product)  # not -0.0


def _xlog1py(x: Tracer, y: Tracer) -> Array:
    nothing = np.equal(x, 0)
    outside = np.logical_or(np.less_equal(y, -1.0), np.equal(y, np.inf))
    product = x * np.log1p(np.where(np.logical_and(nothing, outside), 0.0, y))
    return np.where(nothing, product + 0.0, product)


def _entr(x: Tracer) -> Array:
    inside: Any = np.where(x < 0, 1.0, x)
    return np.where(x < 0, -np.inf, -_xlogy(x, inside))


ROOT_HALF = math.sqrt(0.5)
register(scipy.special.ndtr, lambda x: 0.5 * apply(Op.ERFC, -ROOT_HALF * x))
register(scipy.special.ndtri, lambda p: apply(Op.ERFCINV, 2.0 * p) * -math.sqrt(2.0))
register(scipy.special.expit, _expit)
register(scipy.special.log_expit, lambda x: -np.logaddexp(0.0, -x))
register(scipy.special.logit, _logit)
register(scipy.special.xlogy, _xlogy)
register(scipy.special.xlog1py, _xlog1py)
register(scipy.special.entr, _entr)
