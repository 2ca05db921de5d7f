"""Sums and products as a double and its rounding error, itself a double.

J.-M. Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed., chapters 4, 5 and 14.
"""

from __future__ import annotations

from typing import NamedTuple

from ckad.rules.vector_math.real import Real, fma


class Pair(NamedTuple):
    """The unevaluated sum of two doubles."""

    high: Real
    low: Real


def two_sum(x: Real, y: Real | float) -> Pair:
    """x + y, exact."""
    total = x + y
    part = total - x
    return Pair(total, (x - (total - part)) + (y - part))


def fast_two_sum(x: Real | float, y: Real) -> Pair:
    """x + y, exact if x is 0 or not smaller than y in magnitude."""
    total = x + y
    return Pair(total, (x - total) + y)


def two_product(x: Real, y: Real | float) -> Pair:
    """x y, exact unless it underflows."""
    product = x * y
    return Pair(product, fma(x, y, -product))


def quotient(x: Pair, y: Pair) -> Real:
    """x / y, nearly correctly rounded."""
    inverse = 1.0 / y.high
    ratio = x.high * inverse
    remainder = fma(-ratio, y.high, x.high) + (x.low - ratio * y.low)
    return fma(remainder, inverse, ratio)
