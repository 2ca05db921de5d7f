"""Functions of one number, and points at which a rule takes a special way though they are smooth.

Per function the points, and the function itself in mpmath's numbers, written so that it is smooth:
its derivatives along a line are the expected ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import scipy.special

Point = Sequence[float] | float


class Special(NamedTuple):
    """``function`` of an array, or of a number, and ``smooth`` of a list of its elements."""

    name: str
    function: Callable[[Any], Any]
    smooth: Callable[..., Any]
    points: Sequence[Point]


# --- of one number -----------------------------------------------------------------------------

_ENDS = (0.0, -0.0, 1.0, -1.0, 0.5)
_INSIDE = (0.0, -0.0, 0.5)
_ABOVE = (0.5, 1.0, 2.0)


def _sinc(x: Any) -> Any:
    return mp.sincpi(x)


def _softplus(x: Any) -> Any:
    return mp.log(1 + mp.exp(x))


def _expit(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


NUMBERS = (
    Special("exp", np.exp, mp.exp, _ENDS),
    Special("exp2", np.exp2, lambda x: mp.mpf(2) ** x, _ENDS),
    Special("expm1", np.expm1, mp.expm1, _ENDS),
    Special("log", np.log, mp.log, _ABOVE),
    Special("log2", np.log2, lambda x: mp.log(x, 2), _ABOVE),
    Special("log10", np.log10, mp.log10, _ABOVE),
    Special("log1p", np.log1p, mp.log1p, (0.0, -0.0, 1.0, -0.5)),
    Special("sqrt", np.sqrt, mp.sqrt, _ABOVE),
    Special("cbrt", np.cbrt, mp.cbrt, _ABOVE),
    Special("reciprocal", np.reciprocal, lambda x: 1 / x, (1.0, -1.0)),
    Special("square", np.square, lambda x: x * x, _ENDS),
    Special("sin", np.sin, mp.sin, _ENDS),
    Special("cos", np.cos, mp.cos, _ENDS),
    Special("tan", np.tan, mp.tan, _ENDS),
    Special("arcsin", np.arcsin, mp.asin, _INSIDE),
    Special("arccos", np.arccos, mp.acos, _INSIDE),
    Special("arctan", np.arctan, mp.atan, _ENDS),
    Special("sinh", np.sinh, mp.sinh, _ENDS),
    Special("cosh", np.cosh, mp.cosh, _ENDS),
    Special("tanh", np.tanh, mp.tanh, _ENDS),
    Special("arcsinh", np.arcsinh, mp.asinh, _ENDS),
    Special("arccosh", np.arccosh, mp.acosh, (1.5, 2.0)),
    Special("arctanh", np.arctanh, mp.atanh, _INSIDE),
    Special("deg2rad", np.deg2rad, mp.radians, (0.0,)),
    Special("rad2deg", np.rad2deg, mp.degrees, (0.0,)),
    Special("sinc", np.sinc, _sinc, (*_ENDS, 1e-12, 1e-6, 0.14, 0.15, 2.0)),
    Special("ldexp", lambda x: np.ldexp(x, 3), lambda x: 8 * x, _ENDS),
    Special("x**0", lambda x: x**0, lambda x: mp.mpf(1), _ENDS),
    Special("x**1", lambda x: x**1, lambda x: x, _ENDS),
    Special("x**2", lambda x: x**2, lambda x: x**2, _ENDS),
    Special("x**3", lambda x: x**3, lambda x: x**3, _ENDS),
    Special("x**4.0", lambda x: x**4.0, lambda x: x**4, _ENDS),
    Special("x**-1", lambda x: x**-1, lambda x: 1 / x, (1.0, -1.0)),
    Special("x**0.5", lambda x: x**0.5, mp.sqrt, _ABOVE),
    Special("float_power", lambda x: np.float_power(x, 2), lambda x: x**2, _ENDS),
    Special("0**x", lambda x: 0.0**x, lambda x: mp.mpf(0), (1.0, 2.0)),
    Special("2**x", lambda x: 2**x, lambda x: mp.mpf(2) ** x, _ENDS),
    Special("abs(x)**2", lambda x: np.abs(x) ** 2, lambda x: x**2, _ENDS),
    Special("abs(x)**2.0", lambda x: np.abs(x) ** np.float64(2), lambda x: x**2, _ENDS),
    Special("abs(x)**3", lambda x: np.abs(x) ** 3, lambda x: abs(x) ** 3, (0.0, -1.0)),
    Special("sign(x) abs(x)", lambda x: np.sign(x) * np.abs(x), lambda x: x, _ENDS),
    Special("cos(abs(x))", lambda x: np.cos(np.abs(x)), mp.cos, _ENDS),
    Special("cosh(abs(x))", lambda x: np.cosh(-2 * np.abs(x)), lambda x: mp.cosh(2 * x), _ENDS),
    Special("sqrt(x)**2", lambda x: np.sqrt(x) ** 2, lambda x: x, _ABOVE),
    Special("sqrt(1 + x x)", lambda x: np.sqrt(1 + x * x), lambda x: mp.sqrt(1 + x * x), _ENDS),
    Special("cbrt(1 + x x)", lambda x: np.cbrt(1 + x * x), lambda x: mp.cbrt(1 + x * x), _ENDS),
    Special("logcosh", lambda x: np.log(np.cosh(x)), lambda x: mp.log(mp.cosh(x)), _ENDS),
    Special(
        "logcosh by abs",
        lambda x: np.abs(x) + np.log1p(np.exp(-2 * np.abs(x))),
        lambda x: mp.log(2 * mp.cosh(x)),
        _ENDS,
    ),
    Special("erf", scipy.special.erf, mp.erf, _ENDS),
    Special("erfc", scipy.special.erfc, mp.erfc, _ENDS),
    Special("erfinv", scipy.special.erfinv, mp.erfinv, _INSIDE),
    Special("ndtr", scipy.special.ndtr, mp.ncdf, _ENDS),
    Special("log_ndtr", scipy.special.log_ndtr, lambda x: mp.log(mp.ncdf(x)), _ENDS),
    Special("logit", scipy.special.logit, lambda x: mp.log(x / (1 - x)), (0.3, 0.5, 0.65)),
    Special("gamma", scipy.special.gamma, mp.gamma, (1.0, 2.0, -0.5)),
    Special("rgamma", scipy.special.rgamma, mp.rgamma, (1.0, 2.0, -0.5)),
    Special("j0", scipy.special.j0, lambda x: mp.besselj(0, x), _ENDS),
    Special("j1", scipy.special.j1, lambda x: mp.besselj(1, x), _ENDS),
    Special("jv", lambda x: scipy.special.jv(2, x), lambda x: mp.besselj(2, x), _ENDS),
    Special("i0", scipy.special.i0, lambda x: mp.besseli(0, x), _ENDS),
    Special("i1", scipy.special.i1, lambda x: mp.besseli(1, x), _ENDS),
    Special("gammainc", lambda x: scipy.special.gammainc(1.0, x), lambda x: -mp.expm1(-x), _ABOVE),
    Special("betainc", lambda x: scipy.special.betainc(1.0, 1.0, x), lambda x: x, (0.5,)),
    Special(
        "stdtr",
        lambda x: scipy.special.stdtr(1.0, x),
        lambda x: mp.atan(x) / mp.pi,
        _ENDS,
    ),
    Special("softplus", lambda x: np.logaddexp(0, x), _softplus, _ENDS),
    Special("softplus by log1p", lambda x: np.log1p(np.exp(x)), _softplus, _ENDS),
    Special(
        "softplus by maximum",
        lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
        _softplus,
        _ENDS,
    ),
    Special(
        "cross entropy of logits",
        lambda x: np.maximum(x, 0) - 0.3 * x + np.log(1 + np.exp(-np.abs(x))),
        lambda x: _softplus(x) - mp.mpf(0.3) * x,
        _ENDS,
    ),
    Special("sigmoid", lambda x: 1 / (1 + np.exp(-x)), _expit, _ENDS),
    Special("sigmoid by tanh", lambda x: 0.5 * (1 + np.tanh(x / 2)), _expit, _ENDS),
    Special(
        "sigmoid by sides",
        lambda x: np.where(x >= 0, 1, np.exp(-np.abs(x))) / (1 + np.exp(-np.abs(x))),
        _expit,
        (1.0, -1.0),
    ),
    Special("swish", lambda x: x / (1 + np.exp(-x)), lambda x: x * _expit(x), _ENDS),
    Special("expit", lambda x: scipy.special.expit(x), _expit, (*_ENDS, -40.0, 40.0)),
    Special("erf", lambda x: scipy.special.erf(x), mp.erf, _ENDS),
    Special("erfc", lambda x: scipy.special.erfc(x), mp.erfc, _ENDS),
    Special("math.erf", lambda x: math.erf(x), mp.erf, _ENDS),
    Special("gammaln", lambda x: scipy.special.gammaln(x), mp.loggamma, (*_ABOVE, 3.0)),
    Special("digamma", lambda x: scipy.special.digamma(x), mp.digamma, (*_ABOVE, -0.5)),
    Special("math.gamma", lambda x: math.gamma(x), mp.gamma, (*_ABOVE, 3.0, -0.5)),
    Special("fmod", lambda x: np.fmod(x, 2.0), lambda x: x, (0.0, -0.0, 1.0, -1.0)),
    Special("remainder", lambda x: np.remainder(x, 2.0), lambda x: x, (0.5, 1.0)),
    Special("modf", lambda x: np.modf(x)[0], lambda x: x, (0.5, -0.5)),
    Special("math.remainder", lambda x: math.remainder(x, 2.0), lambda x: x, (0.0, 0.5)),
    Special("max + min", lambda x: np.maximum(x, 1) + np.minimum(x, 1), lambda x: x + 1, _ENDS),
    Special("clip", lambda x: np.clip(x, -2, 2), lambda x: x, _ENDS),
    Special("nan_to_num", lambda x: np.nan_to_num(x) ** 2, lambda x: x**2, _ENDS),
    Special("heaviside", lambda x: x * np.heaviside(x + 3, 0.5), lambda x: x, _ENDS),
    Special("where", lambda x: np.where(x > 2, np.sqrt(x - 2), x * x), lambda x: x * x, _ENDS),
    Special(
        "piecewise",
        lambda x: np.piecewise(x * 1.0, [x < 3, x >= 3], [lambda t: t * t, np.sqrt]),
        lambda x: x * x,
        _ENDS,
    ),
    Special(
        "interp on a line",
        lambda x: np.interp(x, [-2.0, 0.0, 1.0, 2.0], [-4.0, 0.0, 2.0, 4.0]) ** 2,
        lambda x: 4 * x * x,
        _ENDS,
    ),
    Special(
        "quantile on a line",
        lambda q: np.quantile(np.array([0.0, 1.0, 2.0, 3.0]), q) ** 2,
        lambda q: 9 * q * q,
        (0.5, 0.2),
    ),
)
