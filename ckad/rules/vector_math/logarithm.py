"""log, log1p, log2 and log10.

x = 2**k m with m from sqrt(1/2) to sqrt(2), and with f = m - 1, s = f / (2 + f)

    log(m) = 2 artanh(s) = 2 s + 2/3 s**3 + ... = f - (f**2 / 2 - s (f**2 / 2 + R(s**2)))

(Muller, Elementary Functions, 3rd ed., chapter 11; the last form keeps f exact).
"""

from __future__ import annotations

import math

from ckad.rules.vector_math.definition import function
from ckad.rules.vector_math.double_double import Pair, fast_two_sum, two_product, two_sum
from ckad.rules.vector_math.exponential import LOG_2
from ckad.rules.vector_math.polynomial import polynomial
from ckad.rules.vector_math.real import Real, at_most, fma, where
from ckad.rules.vector_math.scaling import power_of_two, split

LOG2_E = 1.4426950408889634, 2.0355273740931033e-17
LOG10_E = 0.4342944819032518, 1.098319650216765e-17
LOG10_2 = 0.3010299956639812, -2.8037281277851704e-18
#: R(z) / z = (2 artanh(s) / s - 2) / z at z = s**2 up to 0.0295: minimax, 2**-58.9 of log(m)
_ARTANH = (
    0.6666666666666734,
    0.39999999999414304,
    0.28571428742475585,
    0.22222198563598564,
    0.1818356485381651,
    0.1531403629941129,
    0.1479609973777067,
)


def _log_of(f: Real, x: Real) -> Pair:
    """log(1 + f) for f from sqrt(1/2) - 1 to sqrt(2) - 1; what rounds is below f**3.

    Where x, whose logarithm this is a part of, has none, it divides by zero: the processor then
    notes that what follows is not finite.
    """
    s = f / where(x > 0.0, 2.0 + f, 0.0)
    z = s * s
    square, lost = two_product(0.5 * f, f)
    high, low = fast_two_sum(f, -square)
    return Pair(high, fma(s, fma(z, polynomial(z, _ARTANH), square), low - lost))


def _natural(k: Real, m: Pair) -> Real:
    """k log(2) + m."""
    return fma(k, LOG_2[0], m.high + fma(k, LOG_2[1], m.low))


def with_limits(x: Real, value: Real) -> Real:
    """``value`` for x > 0, the logarithm's limits at 0 and infinity, NaN where it has no value."""
    inside = where(x < math.inf, value, x)  # NaN stays NaN
    return where(x < 0.0, math.nan, where(x.equals(0.0), -math.inf, inside))


@function
def log(x: Real) -> Real:
    """At most 1 ulp."""
    k, m = split(x)
    return with_limits(x, _natural(k, _log_of(m - 1.0, x)))


@function
def log1p(x: Real) -> Real:
    """At most 1 ulp."""
    y, lost = two_sum(x, 1.0)
    k, m = split(y)
    # beyond 2**1000 what is lost does not matter, and 2**-k might not be normal
    lost = lost * power_of_two(-at_most(k, 1000.0))
    f, low = fast_two_sum(m - 1.0, lost)
    high, rest = _log_of(f, y)
    # log(1 + f + low) is log(1 + f) + low / (1 + f), and 1 - f is near enough to 1 / (1 + f)
    value = with_limits(y, _natural(k, Pair(high, fma(low, 1.0 - f, rest))))
    return where(x.equals(0.0), x, value)


def _in_base(k: Pair, m: Pair, factor: tuple[float, float]) -> Real:
    """k plus m times ``factor``."""
    product, low = two_product(m.high, factor[0])
    low = low + fma(m.high, factor[1], m.low * factor[0])
    total, rest = fast_two_sum(k.high, product)
    return total + (rest + (low + k.low))


@function
def log2(x: Real) -> Real:
    """At most 1 ulp; exact for powers of two."""
    k, m = split(x)
    return with_limits(x, _in_base(Pair(k, 0.0 * m), _log_of(m - 1.0, x), LOG2_E))


@function
def log10(x: Real) -> Real:
    """At most 1 ulp."""
    k, m = split(x)
    product, low = two_product(k, LOG10_2[0])
    exponent = Pair(product, fma(k, LOG10_2[1], low))
    return with_limits(x, _in_base(exponent, _log_of(m - 1.0, x), LOG10_E))
