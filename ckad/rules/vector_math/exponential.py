"""exp, expm1 and exp2.

The argument is n log(2) + r with an integer n and |r| <= log(2)/2, and exp(x) = 2**n exp(r)
(Muller, Elementary Functions, 3rd ed., chapter 11: Cody and Waite's reduction).
"""

from __future__ import annotations

from typing import NamedTuple

from ckad.rules.vector_math.definition import function
from ckad.rules.vector_math.double_double import Pair, fast_two_sum, two_product, two_sum
from ckad.rules.vector_math.polynomial import polynomial
from ckad.rules.vector_math.real import Real, at_least, at_most, fma, where
from ckad.rules.vector_math.scaling import nearest, power_of_two, scaled

LOG2_E = 1.4426950408889634
LOG_2 = 0.6931471805599453, 2.3190468138462996e-17
#: (exp(r) - 1 - r - r**2 / 2) / r**3 for |r| <= 0.3467: minimax, 2**-58.9 relative to exp(r) - 1
_CUBIC = (
    0.16666666666666677,
    0.041666666666666574,
    0.008333333333322136,
    0.0013888888888942757,
    0.00019841269885011897,
    2.480158719811655e-05,
    2.755724521574442e-06,
    2.755738705727718e-07,
    2.5108716525280175e-08,
    2.0878933127325146e-09,
)


class Reduced(NamedTuple):
    """n log(2) + r + low: an integer and a pair."""

    n: Real
    r: Real
    low: Real


def reduced(x: Real, low: Real | None = None) -> Reduced:
    """x + low for |x| up to some thousand; r is x if n and ``low`` are 0."""
    n = nearest(x, LOG2_E).real
    # exact: the last bit of the product is not below that of x
    near = fma(-n, LOG_2[0], x)
    rest = n * LOG_2[1] if low is None else fma(n, LOG_2[1], -low)
    return Reduced(n, *fast_two_sum(near, -rest))


def beyond_linear(r: Real, low: Real) -> Real:
    """exp(r + low) - 1 - r for |r| <= 0.3467."""
    # the polynomial with 1/2 inside would round twice at its size
    return fma(r * r, fma(r, polynomial(r, _CUBIC), 0.5), fma(r, low, low))


def exp_of_pair(x: Real, low: Real | None = None) -> Real:
    """exp(x + low) for -800 <= x <= 800."""
    n, r, low = reduced(x, low)
    return scaled(1.0 + (r + beyond_linear(r, low)), n)


def expm1_pair(n: Real, r: Real, low: Real, offset: int = 0) -> Pair:
    """2**offset times exp(n log(2) + r + low) - 1; 2**(n + offset) must be a normal number."""
    scale, one = power_of_two(n, offset), 2.0**offset
    less_one, lost = two_sum(scale, -one)
    high, rest = fast_two_sum(less_one, scale * r)
    return fast_two_sum(high, fma(scale, beyond_linear(r, low), rest + lost))


@function
def exp(x: Real) -> Real:
    """At most 1 ulp."""
    return exp_of_pair(at_least(at_most(x, 800.0), -800.0))


@function
def expm1(x: Real) -> Real:
    """At most 1 ulp."""
    # halved, so that 2**1024 is in range; 709.9 overflows
    half = expm1_pair(*reduced(at_least(at_most(x, 709.9), -50.0)), offset=-1)
    return where(abs(x) < 2.0**-55, x, half.high * 2.0)


@function
def exp2(x: Real) -> Real:
    """At most 1 ulp; exact for integers."""
    x = at_least(at_most(x, 1100.0), -1100.0)
    n = nearest(x).real
    fraction = x - n
    r, low = two_product(fraction, LOG_2[0])
    return scaled(1.0 + (r + beyond_linear(r, fma(fraction, LOG_2[1], low))), n)
