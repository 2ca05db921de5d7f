"""The most frequent functions of float32, in doubles and shorter than those of float64.

Rounded to float32 they are within 0.51 ulp, flags included: what overflows there is noted when it
is rounded. Arguments are numbers of float32. The formulas are those of ``exponential``,
``logarithm`` and ``trigonometric``, without the second halves of their pairs; tanh and erf are
quotients of polynomials.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckad.rules import ir
from ckad.rules.vector_math import power
from ckad.rules.vector_math.definition import function
from ckad.rules.vector_math.exponential import LOG2_E, LOG_2
from ckad.rules.vector_math.length import INFINITY, root
from ckad.rules.vector_math.logarithm import with_limits
from ckad.rules.vector_math.polynomial import polynomial
from ckad.rules.vector_math.real import Bits, Real, at_least, at_most, fma, where
from ckad.rules.vector_math.scaling import nearest, power_of_two, split
from ckad.rules.vector_math.trigonometric import HALF_PI, LARGE, TWO_OVER_PI, or_library

#: (exp(r) - 1 - r - r**2 / 2) / r**3 for |r| <= 0.3467: minimax, 2**-31.2 relative to exp(r) - 1
_CUBIC = (
    0.16666666298529603,
    0.0416664824442957,
    0.008333419735380545,
    0.0013933276696091203,
    0.0001982411772409489,
)
#: (2 artanh(s) / s - 2) / z at z = s**2 up to 0.0295: minimax, 2**-37.5 of artanh(s)
_ARTANH = (0.6666666563656622, 0.4000033738556188, 0.2853715877488509, 0.23585173106389873)
#: (sin(r) / r - 1) / z at z = r**2 up to 0.618: minimax, 2**-37.4 relative to sin(r)
_SIN = (
    -0.16666666640602515,
    0.008333329282191309,
    -0.00019839304953574939,
    2.7180516171808458e-06,
)
#: (cos(r) - 1 + z / 2) / z**2: minimax, 2**-32.9 relative to cos(r)
_COS = (0.041666645563299715, -0.0013887310305121178, 2.443246400990172e-05)

#: tanh(x) / x: quotient of polynomials in x**2 up to 9.02, where it rounds to 1; minimax, 2**-34.6
_TANH = (
    0.9999999999641975,
    0.14099201496369676,
    0.004425937886029093,
    4.2273423032143264e-05,
    1.1117398177608846e-07,
    3.674284294468908e-11,
), (
    1.0,
    0.4743253479007338,
    0.029201054577454658,
    0.0005008319478978729,
    2.603823310342261e-06,
    2.9510928615154382e-09,
)  # fmt: skip
#: erf(x) / x in the same way up to 3.925; minimax, 2**-32.3
_ERF = (
    1.1283791670046754,
    0.38423779490481313,
    0.08601134451781428,
    0.013421783532605704,
    0.0010325163989903287,
    7.583241793492812e-05,
    9.563344987072668e-07,
    -3.0242198301305274e-09,
), (
    1.0,
    0.6738552068333353,
    0.20084403111116597,
    0.035266546927035854,
    0.004001086166807974,
    0.0002936965398621202,
    1.2452512842505679e-05,
)  # fmt: skip


def _parts(x: Real) -> tuple[Real, Real]:
    """2**n and exp(r) - 1 for x = n log(2) + r, |x| up to some hundred."""
    n = nearest(x, LOG2_E).real
    r = fma(-n, LOG_2[0], x)
    return power_of_two(n), fma(r * r, fma(r, polynomial(r, _CUBIC), 0.5), r)


@function
def single_exp(x: Real) -> Real:
    scale, rest = _parts(at_least(at_most(x, 120.0), -120.0))
    return fma(scale, rest, scale)


def _less_one(x: Real) -> Real:
    scale, rest = _parts(x)
    return fma(scale, rest, scale - 1.0)


@function
def single_expm1(x: Real) -> Real:
    return where(x.equals(0.0), x, _less_one(at_least(at_most(x, 120.0), -120.0)))


def _quotient(x: Real, most: float, parts: tuple[Sequence[float], Sequence[float]]) -> Real:
    x = at_least(at_most(x, most), -most)
    above, below = (polynomial(x * x, part) for part in parts)
    return x * above / below


@function
def single_tanh(x: Real) -> Real:
    return _quotient(x, 9.02, _TANH)


@function
def single_erf(x: Real) -> Real:
    return _quotient(x, 3.925, _ERF)


def _log(k: Real, f: Real, x: Real) -> Real:
    """k log(2) + log(1 + f) for f from sqrt(1/2) - 1 to sqrt(2) - 1.

    As in ``logarithm``, it divides by zero where x has no logarithm.
    """
    s = f / where(x > 0.0, 2.0 + f, 0.0)
    z = s * s
    value = fma(k, LOG_2[0], fma(s * z, polynomial(z, _ARTANH), s + s))
    return with_limits(x, value)


@function
def single_log(x: Real) -> Real:
    k, m = split(x)
    return _log(k, m - 1.0, x)


@function
def single_log1p(x: Real) -> Real:
    y = x + 1.0
    k, m = split(y)
    value = _log(k, where(k.equals(0.0), x, m - 1.0), y)
    return where(x.equals(0.0), x, value)


def _wave(x: Real, quarter: int, sign: Bits) -> Real:
    """sin(|x| + quarter pi/2) with the given sign; no float32 is as near to a multiple of pi/2 as
    two doubles of it might lose."""
    n, quadrant = nearest(at_most(abs(x), LARGE), TWO_OVER_PI)
    r = fma(-n, HALF_PI[1], fma(-n, HALF_PI[0], at_most(abs(x), LARGE)))
    z, quadrant = r * r, quadrant + quarter
    sin = fma(r * z, polynomial(z, _SIN), r)
    cos = fma(z * z, polynomial(z, _COS), fma(z, -0.5, 1.0))
    value = where((quadrant & 1).is_nonzero(), cos, sin)
    return value.flipped(((quadrant & 2) << 62) ^ sign)


@function
def single_sin(x: Real) -> Real:
    return or_library("sin", x, _wave(x, 0, x.sign()))


@function
def single_cos(x: Real) -> Real:
    return or_library("cos", x, _wave(x, 1, x.bits() & 0))


def single_pow(b: Any, x: Any, y: Any) -> Any:
    """By a small integer some products, which doubles hold or round far below an ulp of float32."""
    n = ir.number(y)
    if n not in (2.0, 3.0, 4.0):
        return power.pow(b, x, y)
    square = b.fmul(x, x)
    return square if n == 2.0 else b.fmul(square, x if n == 3.0 else square)


@function
def single_hypot(x: Real, y: Real) -> Real:
    """No square of a float32 is too large or too small for float64."""
    infinite = abs(x).equals(INFINITY) | abs(y).equals(INFINITY)
    return where(infinite, INFINITY, root(fma(x, x, y * y)))
