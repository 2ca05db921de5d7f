"""sinh, cosh and tanh, from the parts of the exponential."""

from __future__ import annotations

from typing import NamedTuple

from ckad.rules.vector_math.definition import function
from ckad.rules.vector_math.double_double import Pair, fast_two_sum, quotient
from ckad.rules.vector_math.exponential import expm1_pair, reduced
from ckad.rules.vector_math.polynomial import polynomial
from ckad.rules.vector_math.real import Real, at_most, fma, where
from ckad.rules.vector_math.scaling import power_of_two

#: (sinh(r) / r - 1) / z at z = r**2, |r| <= 0.3467: minimax, 2**-60.7 relative to sinh(r)
_SINH = (
    0.16666666666666677,
    0.008333333333321591,
    0.0001984126988623187,
    2.7557244100380898e-06,
    2.5109075759328662e-08,
)
#: (cosh(r) - 1 - z / 2) / z**2: minimax, 2**-67.9
_COSH = (
    0.041666666666666685,
    0.0013888888888873427,
    2.4801587348870852e-05,
    2.7557252133393423e-07,
    2.0921664858223827e-09,
)


@function
def tanh(x: Real) -> Real:
    """At most 1 ulp: -e / (2 + e) with e = expm1(-2 |x|)."""
    e = expm1_pair(*reduced(at_most(abs(x), 22.0) * -2.0))
    total, rest = fast_two_sum(2.0, e.high)
    value = quotient(Pair(-e.high, -e.low), Pair(total, rest + e.low))
    return value.flipped(x.sign())


class _Parts(NamedTuple):
    """sinh(x) / 2 and cosh(x) / 2 as sums of products: cosh(x) = 2 (plus cosh(r) + minus sinh(r)).

    |x| = n log(2) + r; plus and minus are (2**n + 2**-n) / 4 and (2**n - 2**-n) / 4.
    """

    plus: Pair
    minus: Pair
    r: Real
    sinh: Real  # of r, less r
    cosh: Real  # of r, less 1


def _parts(x: Real) -> _Parts:
    n, r, low = reduced(at_most(abs(x), 710.5))  # where both overflow
    up, down = power_of_two(n, -2), power_of_two(-at_most(n, 100.0), -2)
    z = r * r
    sinh = fma(r * z, polynomial(z, _SINH), low)
    cosh = z * fma(z, polynomial(z, _COSH), 0.5)
    return _Parts(fast_two_sum(up, down), fast_two_sum(up, -down), r, sinh, cosh)


@function
def sinh(x: Real) -> Real:
    """At most 1 ulp."""
    plus, minus, r, sinh, cosh = _parts(x)
    small = fma(minus.high, cosh, fma(plus.high, sinh, fma(plus.low, r, minus.low)))
    value = 2.0 * (minus.high + fma(plus.high, r, small))
    return where(abs(x) < 2.0**-28, x, value.flipped(x.sign()))


@function
def cosh(x: Real) -> Real:
    """At most 1 ulp."""
    plus, minus, r, sinh, cosh = _parts(x)
    small = fma(plus.high, cosh, fma(minus.high, sinh, fma(minus.low, r, plus.low)))
    return 2.0 * (plus.high + fma(minus.high, r, small))
