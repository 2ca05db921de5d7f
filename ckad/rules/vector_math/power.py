"""pow with all special cases of C's (ISO C, annex F.10.4.4).

exp(y log(x)) multiplies the relative error of the logarithm by up to 745, so the logarithm and its
product with y are pairs of doubles (Muller, Elementary Functions, 3rd ed., section 11.4).
"""

from __future__ import annotations

import math

from ckad.rules import ir
from ckad.rules.vector_math.definition import function
from ckad.rules.vector_math.double_double import Pair, fast_two_sum, two_product
from ckad.rules.vector_math.exponential import exp_of_pair
from ckad.rules.vector_math.polynomial import polynomial
from ckad.rules.vector_math.real import Bits, Mask, Real, at_least, at_most, fma, where
from ckad.rules.vector_math.scaling import split

#: log(2) in a number with 42 bits, whose products with exponents are exact, and the rest
_LOG_2 = 0.6931471805598903, 5.497923018708371e-14
_TWO_THIRDS = 0.6666666666666666, 3.700743415417188e-17
#: (2 artanh(s) / s - 2 - 2/3 z) / z**2 at z = s**2 up to 0.0295: minimax, 2**-65.8 of artanh(s)
_ARTANH = (
    0.40000000000002256,
    0.2857142857009922,
    0.2222222251998011,
    0.18181784362505238,
    0.1538675752934796,
    0.13256813411514337,
    0.13196366819626174,
)


def _log(x: Real, no_value: Mask) -> Pair:
    """log(x) for x > 0 and finite, with a relative error of about 2**-65."""
    k, m = split(x)
    high, low = _log_of(m, no_value)
    total, rest = fast_two_sum(k * _LOG_2[0], high)
    return fast_two_sum(total, rest + fma(k, _LOG_2[1], low))


def _log_of(m: Real, no_value: Mask) -> Pair:
    """log(m) = s (2 + 2/3 z + c z**2 + ...) with s = (m - 1) / (m + 1), z = s**2, as a pair."""
    s, s_low = _ratio(m, no_value)
    z, z_low = two_product(s, s)
    z_low = fma(s + s, s_low, z_low)
    w, w_low = fast_two_sum(_TWO_THIRDS[0], z * polynomial(z, _ARTANH))
    v, v_low = two_product(z, w)
    v_low = v_low + fma(z, w_low + _TWO_THIRDS[1], z_low * w)
    t, t_low = two_product(s, v)
    t_low = t_low + fma(s, v_low, s_low * v)
    high, low = fast_two_sum(s + s, t)
    return fast_two_sum(high, low + (t_low + (s_low + s_low)))


def _ratio(m: Real, no_value: Mask) -> Pair:
    """(m - 1) / (m + 1) for m from sqrt(1/2) to sqrt(2).

    Where there is no value it divides by zero, so that the processor notes it.
    """
    f, below = m - 1.0, where(no_value, 0.0, m + 1.0)
    below_low = m - (below - 1.0)
    inverse = 1.0 / below
    s = f * inverse
    remainder = fma(-s, below, f) - s * below_low
    return Pair(s, remainder * inverse)


def _is_integer(x: Real) -> Mask:
    return Real(x.b, ir.intrinsic("llvm.trunc")(x.b, x.value)).equals(x)


def _magnitude(x: Real, y: Real, no_value: Mask) -> Real:
    """x**y for x >= 0, or NaN; 0 and infinity included."""
    log, log_low = _log(x, no_value)
    y = at_least(at_most(y, 1e300), -1e300)  # 0 times infinity would be NaN for x = 1
    high = y * log
    low = fma(y, log, -high) + y * log_low
    # 0 and infinity have no logarithm to multiply: the processor would note 0**2 as not finite
    unit = where(y < 0.0, -1.0, where(y > 0.0, 1.0, y))
    high = where(x.equals(0.0), unit * -800.0, where(x < math.inf, high, x * unit))
    inside = abs(high) < 800.0
    return exp_of_pair(at_least(at_most(high, 800.0), -800.0), where(inside, low, 0.0))


def _sign(x: Real, y: Real) -> Bits:
    """The sign of x where y is an odd integer, else plus."""
    odd = _is_integer(y) & ~_is_integer(y * 0.5)
    return where(odd, x, abs(x)).sign()


def _few_factors(x: Real, y: Real) -> tuple[Mask, Real]:
    """Where y is 2, 3, 4, 5 or 6, and x**y there: a product of two pairs, rounded once.

    No part of it is larger than the result, so that the processor notes no overflow but its own.
    """
    second, third, fourth, fifth, sixth = (y.equals(n) for n in (2.0, 3.0, 4.0, 5.0, 6.0))
    few = second | third | fourth | fifth | sixth
    x = where(few, x, 1.0)
    square, low = two_product(x, x)
    factor = where(fifth | sixth, x, 1.0)
    cube, rest = two_product(square, factor)
    left, left_low = cube, fma(low, factor, rest)
    right = where(second, 1.0, where(third, x, where(sixth, cube, square)))
    right_low = where(second | third, 0.0, where(sixth, left_low, low))
    value = left * right
    rounded = fma(left, right, fma(left, right_low, left_low * right))
    # a pair of 0 or infinity is none
    return few, where((abs(rounded) < math.inf) & (abs(rounded) > 0.0), rounded, value)


@function
def pow(x: Real, y: Real) -> Real:
    """At most 1.5 ulp; about half an ulp of powers by 2, 3, 4, 5 and 6."""
    few, value = _few_factors(x, y)
    return few.or_else(value, lambda: _any_power(x, y))


def _any_power(x: Real, y: Real) -> Real:
    no_value = (x < 0.0) & (x > -math.inf) & ~_is_integer(y) & (abs(y) < math.inf)
    value = _magnitude(abs(x), y, no_value).flipped(_sign(x, y))
    always_one = x.equals(1.0) | y.equals(0.0)
    return where(always_one, 1.0, where(no_value, math.nan, value))
