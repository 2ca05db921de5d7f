"""sin, cos and tan.

|x| = n pi/2 + r with |r| <= pi/4 by Cody and Waite's reduction with fused multiplications (Muller,
Elementary Functions, 3rd ed., section 11.2). Up to ``LARGE`` three doubles of pi/2 are enough: no
double there comes nearer than 2**-62 to a multiple of pi/2, and r loses 2**-130. If a lane
holds more than that, the C library is called for it.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from llvmlite import ir as llvm

from ckad.rules import ir
from ckad.rules.vector_math.definition import apart, function
from ckad.rules.vector_math.double_double import Pair, fast_two_sum, quotient, two_product, two_sum
from ckad.rules.vector_math.polynomial import polynomial
from ckad.rules.vector_math.real import Bits, Real, at_most, fma, where
from ckad.rules.vector_math.scaling import nearest

LARGE = 2.0**30
TWO_OVER_PI = 0.6366197723675814
HALF_PI = 1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33
#: (sin(r) / r - 1) / z at z = r**2 up to 0.618: minimax, 2**-56.9 relative to sin(r)
_SIN = (
    -0.1666666666666663,
    0.008333333333321974,
    -0.00019841269829469198,
    2.7557313578201827e-06,
    -2.505074079101061e-08,
    1.5895814513434242e-10,
)
#: (cos(r) - 1 + z / 2) / z**2: minimax, 2**-59.0 relative to cos(r)
_COS = (
    0.041666666666666595,
    -0.0013888888888872852,
    2.4801587288719902e-05,
    -2.755731414024938e-07,
    2.0875695408071526e-09,
    -1.1358248900114116e-11,
)


class Reduced(NamedTuple):
    """n pi/2 + r + low; ``quadrant`` has n in its lowest bits."""

    quadrant: Bits
    r: Real
    low: Real


def _reduced(x: Real) -> Reduced:
    """For 0 <= x <= LARGE, with a relative error of r + low below 2**-60."""
    n, quadrant = nearest(x, TWO_OVER_PI)
    # exact: the last bit of the product is not below that of x, or n is 0
    near = fma(-n, HALF_PI[0], x)
    product, lost = two_product(n, HALF_PI[1])
    total, low = two_sum(near, -product)
    r, low = fast_two_sum(total, low - fma(n, HALF_PI[2], lost))
    return Reduced(quadrant, r, low)


def _sin_and_cos(r: Real, low: Real) -> tuple[Pair, Pair]:
    """sin and cos of r + low, each a large and a small part."""
    z, lost = two_product(r, r)
    cos, rest = fast_two_sum(1.0, -0.5 * z)
    sin_rest = fma(r * z, polynomial(z, _SIN), low * cos)
    cos_rest = fma(z * z, polynomial(z, _COS), fma(lost, -0.5, rest) - r * low)
    return Pair(r, sin_rest), Pair(cos, cos_rest)


def _wave(x: Real, quarter: int, sign: Bits) -> Real:
    """sin(|x| + quarter pi/2) with the given sign."""
    quadrant, r, low = _reduced(at_most(abs(x), LARGE))
    sin, cos = (part.high + part.low for part in _sin_and_cos(r, low))
    quadrant = quadrant + quarter
    value = where((quadrant & 1).is_nonzero(), cos, sin)
    return value.flipped(((quadrant & 2) << 62) ^ sign)


@function
def sin(x: Real) -> Real:
    """At most 1 ulp."""
    return or_library("sin", x, _wave(x, 0, x.sign()))


@function
def cos(x: Real) -> Real:
    """At most 1 ulp."""
    return or_library("cos", x, _wave(x, 1, x.bits() & 0))


@function
def tan(x: Real) -> Real:
    """At most 1 ulp."""
    quadrant, r, low = _reduced(at_most(abs(x), LARGE))
    sin, cos = (fast_two_sum(*part) for part in _sin_and_cos(r, low))
    odd = (quadrant & 1).is_nonzero()
    above = Pair(where(odd, cos.high, sin.high), where(odd, cos.low, sin.low))
    below = Pair(where(odd, sin.high, cos.high), where(odd, sin.low, cos.low))
    value = quotient(above, below)
    return or_library("tan", x, value.flipped((quadrant << 63) ^ x.sign()))


def or_library(name: str, x: Real, value: Real) -> Real:
    """``value``, but the C library's where |x| is above LARGE."""
    library = apart(f"{name}_of_huge", partial(_per_lane, name))
    return (~(abs(x) > LARGE)).or_else(value, lambda: Real(x.b, library(x.b, x.value)), rarely=True)


def _per_lane(name: str, x: Real) -> Real:
    """The C library's function of every lane."""
    call, b = ir.libm(name), x.b
    if not isinstance(x.value.type, llvm.VectorType):
        return Real(b, call(b, x.value))
    result = x.value
    for k in range(x.value.type.count):
        lane = llvm.Constant(llvm.IntType(32), k)
        result = b.insert_element(result, call(b, b.extract_element(x.value, lane)), lane)
    return Real(b, result)
