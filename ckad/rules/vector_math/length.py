"""The length of a vector of two numbers.

C. F. Borges, An improved algorithm for hypot(a, b) (2019): a root of the sum of squares, and what
that root's own square lacks of the sum.
"""

from __future__ import annotations

from ckad.rules import ir
from ckad.rules.vector_math.definition import function
from ckad.rules.vector_math.real import Bits, Real, fma, where

INFINITY = float("inf")
_EXPONENT = 0x7FF << 52  # its bits
#: The scale of a number of exponent e has this less e, which is kept from where that would be 0.
_OPPOSITE, _LARGEST = 2045 << 52, 2044 << 52


def root(x: Real) -> Real:
    return Real(x.b, ir.intrinsic("llvm.sqrt")(x.b, x.value))


def _scales(x: Real) -> tuple[Real, Real]:
    """A power of two that brings a finite x near to 1, and what brings it back."""
    b, exponent = x.b, x.bits() & _EXPONENT
    largest = exponent._of(_LARGEST)
    is_larger = b.icmp_signed(">", exponent.value, largest)
    exponent = Bits(b, b.select(is_larger, largest, exponent.value))
    return (Bits(b, exponent._of(_OPPOSITE)) - exponent).real(), (exponent + (1 << 52)).real()


@function
def hypot(x: Real, y: Real) -> Real:
    """At most 1 ulp. What is 0 or not finite is computed of 1, so that no flag is raised."""
    x, y = abs(x), abs(y)
    large, small = where(x > y, x, y), where(x > y, y, x)
    usual = (large > 0.0) & (large < INFINITY)
    unusual = (large.bits() | small.bits()).real()  # NaN if one of them is
    scale, back = _scales(large)
    large, small = where(usual, large * scale, 1.0), where(usual, small * scale, 0.0)
    square, rest = large * large, small * small
    h = root(fma(large, large, rest))
    excess = fma(-small, small, h * h - square) + fma(h, h, -(h * h)) - fma(large, large, -square)
    found = (h - excess / (h + h)) * back
    infinite = x.equals(INFINITY) | y.equals(INFINITY)
    return where(usual, found, where(infinite, INFINITY, unusual))
