"""Ufuncs of ``scipy.special`` that are formulas in NumPy's functions and in others of SciPy's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
from scipy.special import erf, gammaln, jv, wofz, yv

from ckad.trace.arrays import Array, complexed, doubles, known, own, retyped, traced
from ckad.trace.dispatch import implements, reject

Formula = Callable[..., Any]


def floats(*xs: Any) -> tuple[list[Array], Any]:
    """Operands as float64, and the dtype that SciPy's loops give for them."""
    arrays = [traced(x) for x in xs]
    # Python's numbers, and arrays without axes beside others, do not decide
    wide = any(x.dtype == np.float64 for x in arrays if x.ndim or all(not y.ndim for y in arrays))
    single = not wide and any(x.dtype == np.float32 for x in arrays)
    return [retyped(x, np.float64) for x in arrays], np.float32 if single else np.float64


def ufunc(function: Any) -> Callable[[Formula], Formula]:
    """A formula of float64 numbers is what a ufunc of SciPy's gives."""

    def decorator(formula: Formula) -> Formula:
        @implements(function)
        def call(*xs: Any, **options: Any) -> Any:
            reject(bool(options), f"scipy.special.{function.__name__} with {'=, '.join(options)}=")
            given, dtype = floats(*xs)
            found = formula(*given)
            if isinstance(found, tuple):
                return tuple(own(retyped(x, dtype)) for x in found)
            return found if found.dtype.kind == "c" else own(retyped(found, dtype))

        return formula

    return decorator


# --- powers and exponentials -------------------------------------------------------------------


def _divisor(x: Any, power: Any) -> tuple[Array, Array, Array]:
    """Where the power is 0, one to divide by there, and its product by ``x`` where finite."""
    zero = np.equal(power, 0.0)
    return zero, np.where(zero, 1.0, power), power * np.where(np.isfinite(x), x, 0.0)


def _box_cox(log: Any, power: Any) -> Array:
    """(exp(p log) - 1) / p, by its series where p is 0."""
    zero, divisor, size = _divisor(log, power)
    series = log * (1.0 + size * (0.5 + size / 6.0))
    return np.where(zero, series, np.expm1(divisor * log) / divisor)


def _from_box_cox(y: Any, power: Any) -> Array:
    """The logarithm of log1p(p y) / p, by its series where p is 0."""
    zero, divisor, size = _divisor(y, power)
    series = y * (1.0 - size * (0.5 - size / 3.0))
    return np.where(zero, series, np.log1p(np.where(zero, 0.0, divisor * y)) / divisor)


ufunc(scipy.special.boxcox)(lambda x, power: _box_cox(np.log(x), power))
ufunc(scipy.special.boxcox1p)(lambda x, power: _box_cox(np.log1p(x), power))
ufunc(scipy.special.inv_boxcox)(lambda y, power: np.exp(_from_box_cox(y, power)))
ufunc(scipy.special.inv_boxcox1p)(lambda y, power: np.expm1(_from_box_cox(y, power)))
ufunc(scipy.special.cosm1)(lambda x: -2.0 * np.sin(0.5 * x) ** 2)
ufunc(scipy.special.exp10)(lambda x: np.power(10.0, x))

#: 1 / (k + 1)!, from the last.
_SERIES = [1.0 / math.factorial(k) for k in range(9, 0, -1)]


@ufunc(scipy.special.exprel)
def _exprel(x: Array) -> Array:
    """(exp(x) - 1) / x, by its series where x is small, so that derivatives have no difference."""
    small = np.abs(x) < 0.02
    divisor = np.where(small, 1.0, x)
    divisor = np.where(np.equal(x, np.inf), 1.0, divisor)
    found = np.where(np.equal(x, np.inf), np.inf, np.expm1(divisor) / divisor)
    return np.where(small, np.polyval(_SERIES, np.where(small, x, 0.0)), found)


# --- divergences and losses --------------------------------------------------------------------


def _divergence(x: Array, y: Array, beside: bool) -> Array:
    """x log(x / y), and y - x ``beside`` it, where both are above 0; its limit where x is 0."""
    inside = np.logical_and(x > 0.0, y > 0.0)
    a, b = np.where(inside, x, 1.0), np.where(inside, y, 1.0)
    none = np.logical_and(np.equal(x, 0.0), y >= 0.0)
    limit = np.where(none, np.where(none, y, 0.0) if beside else 0.0, np.inf)
    value = a * np.log(a / b)
    value = np.where(inside, value - a + b if beside else value, limit)
    return np.where(np.logical_or(np.isnan(x), np.isnan(y)), np.nan, value)


ufunc(scipy.special.rel_entr)(lambda x, y: _divergence(x, y, beside=False))
ufunc(scipy.special.kl_div)(lambda x, y: _divergence(x, y, beside=True))


@ufunc(scipy.special.huber)
def _huber(delta: Array, r: Array) -> Array:
    size = np.abs(r)
    loss = np.where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return np.where(delta < 0.0, np.inf, loss)


@ufunc(scipy.special.pseudo_huber)
def _pseudo_huber(delta: Array, r: Array) -> Array:
    zero = np.equal(delta, 0.0)
    ratio = np.where(zero, 0.0, r) / np.where(zero, 1.0, delta)
    loss = delta * delta * np.expm1(0.5 * np.log1p(ratio * ratio))
    return np.where(delta < 0.0, np.inf, np.where(zero, 0.0, loss))


# --- gamma functions ---------------------------------------------------------------------------

ufunc(scipy.special.loggamma)(lambda x: np.where(x < 0.0, np.nan, gammaln(x)))


@ufunc(scipy.special.binom)
def binom(n: Array, k: Array) -> Array:
    """Of a known whole k a product, and else by the beta function   (DLMF 1.2.6, 5.12.1)"""
    is_pole = np.logical_and(n < 0.0, np.equal(n, np.floor(n)))
    return np.where(is_pole, np.nan, _binom(n, k))


def _binom(n: Array, k: Array) -> Array:
    order = known(k)
    if order is not None and order.size and np.all(order == order.flat[0]):
        k0 = float(order.flat[0])
        if k0 == round(k0) and 0 <= k0 <= 20:
            total: Any = np.ones_like(n)
            for i in range(1, int(k0) + 1):
                total = total * (n + (i - k0)) / i
            return total
    return 1.0 / ((n + 1.0) * scipy.special.beta(1.0 + n - k, 1.0 + k))


@implements(scipy.special.comb)
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Array:
    reject(exact, "scipy.special.comb with exact=True")
    if repetition:
        return comb(N + k - 1, k)
    n, k = doubles(N), doubles(k)
    there = np.logical_and(np.logical_and(k <= n, n >= 0.0), k >= 0.0)
    return own(np.where(there, scipy.special.binom(n, k), 0.0))


@implements(scipy.special.factorial)
def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Array:
    reject(exact or extend != "zero", "scipy.special.factorial with exact= or extend=")
    x = doubles(n)
    below = x < 0.0
    return own(np.where(below, 0.0, scipy.special.gamma(np.where(below, 0.0, x) + 1.0)))


# --- functions of complex numbers, for real ones -----------------------------------------------


@ufunc(scipy.special.fresnel)
def fresnel(z: Array) -> tuple[Array, ...]:
    """C + i S = (1 + i) / 2 erf(sqrt(pi) / 2 (1 - i) z)   (DLMF 7.5.8)"""
    both = 0.5 * (1.0 + 1.0j) * erf(0.5 * math.sqrt(math.pi) * (1.0 - 1.0j) * z)
    far = np.copysign(0.5, z)
    return tuple(np.where(np.isinf(z), far, part(both)) for part in (np.imag, np.real))


@ufunc(scipy.special.voigt_profile)
def voigt_profile(x: Array, sigma: Array, gamma: Array) -> Array:
    """DLMF 7.19.1 by 7.2.3; without a Gaussian the Cauchy distribution."""
    zero = np.equal(sigma, 0.0)
    width = np.where(zero, 1.0, sigma) * math.sqrt(2.0)
    found = np.real(wofz(x / width + 1.0j * (gamma / width))) / (width * math.sqrt(math.pi))
    alone = np.where(zero, gamma, 1.0)
    return np.where(zero, alone / (math.pi * (x * x + alone * alone)), found)


for _function, _sign in ((scipy.special.hankel1, 1.0j), (scipy.special.hankel2, -1.0j)):
    ufunc(_function)(lambda v, z, sign=_sign: complexed(jv(v, z) + sign * yv(v, z)))
