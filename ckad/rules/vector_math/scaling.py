"""Integers in doubles, and powers of two.

Adding 1.5 2**52 to a number below 2**51 rounds it to an integer, which then stands in the lowest
bits of the sum: Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed., section 10.2. This
needs no conversion instruction, which few CPUs have for vectors.
"""

from __future__ import annotations

from typing import NamedTuple

from ckad.rules.vector_math.real import Bits, Real, fma, where

ROUNDER = 1.5 * 2.0**52
BIAS = 1023
_EXPONENT = 52  # the exponent's lowest bit
_ONE = BIAS << _EXPONENT
_TWO_TO_52 = (BIAS + 52) << _EXPONENT
_SQRT_HALF = 0x3FE6A09E667F3BCD  # the bits of the double above sqrt(1/2)
_SMALLEST_NORMAL = 2.0**-1022


class Integer(NamedTuple):
    """An integer below 2**51 in magnitude, as a double and in the lowest bits of another."""

    real: Real
    bits: Bits


def nearest(x: Real, factor: float = 1.0) -> Integer:
    """The integer nearest to x times ``factor``."""
    shifted = fma(x, factor, ROUNDER)
    return Integer(shifted - ROUNDER, shifted.bits())


def power_of_two(n: Real, offset: int = 0) -> Real:
    """2**(n + offset) for an integer n, if that is a normal number."""
    return ((n + (ROUNDER + BIAS + offset)).bits() << _EXPONENT).real()


def scaled(x: Real, n: Real) -> Real:
    """x 2**n for an integer n between -2000 and 2000, rounded once if |x| is about 1."""
    shifted = fma(n, 0.5, ROUNDER + BIAS)
    first = (shifted.bits() << _EXPONENT).real()
    second = power_of_two(n - (shifted - (ROUNDER + BIAS)))
    return x * first * second


def split(x: Real) -> tuple[Real, Real]:
    """k, m with x = 2**k m for x > 0 and finite, k an integer, m from sqrt(1/2) to sqrt(2)."""
    tiny = x < _SMALLEST_NORMAL
    factor = where(tiny, Real(x.b, x._of(2.0**54)), 1.0)  # a large x times 2**54 would overflow
    bits = (x * factor).bits()
    raised = bits + (_ONE - _SQRT_HALF)
    k = ((raised >> _EXPONENT) | _TWO_TO_52).real() - (2.0**52 + BIAS)
    m = (bits - ((raised & (-1 << _EXPONENT)) - _ONE)).real()
    return where(tiny, k - 54.0, k), m
