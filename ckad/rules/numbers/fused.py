"""x y + z rounded once, in NumPy, which has no such function.

For float64 the product and the sums are taken apart without error, and the last but one is rounded
to odd, so that the last rounding is the only one (Boldo & Melquiond, Emulation of a FMA and
correctly rounded sums, IEEE Trans. Computers 57, 2008). Operands whose product or its error leaves
the range of float64 go through exact fractions.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

#: Products within these bounds, factors and addends below the second, keep every part exact.
SMALLEST, LARGEST = 2.0**-960, 2.0**990
#: Veltkamp's constant: it splits 53 bits into 26 and 26 with a sign.
SPLITTER = 2.0**27 + 1.0


def multiply_add(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """``x * y + z`` of float64 rounded once; of float32 as the engines do it, through float64."""
    x, y, z = np.broadcast_arrays(x, y, z)
    if x.dtype == np.float32:
        # the product of two float32 is exact in float64
        wide: np.ndarray = np.multiply(x, y, dtype=np.float64) + z.astype(np.float64)
        return wide.astype(np.float32)
    result, safe = np.array(_error_free(x, y, z)), _is_safe(x, y, z)
    if not np.all(safe):
        rest = zip(*(w[~safe].tolist() for w in (x, y, z)), strict=True)
        result[~safe] = [_by_cases(*values) for values in rest]
    return result


def _is_safe(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    product = np.abs(x * y)
    largest = np.maximum(np.maximum(np.abs(x), np.abs(y)), np.maximum(np.abs(z), product))
    safe: np.ndarray = (product >= SMALLEST) & (largest <= LARGEST)
    return safe


def _error_free(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    product, product_error = _two_product(x, y)
    low, low_error = _two_sum(z, product_error)
    high, high_error = _two_sum(product, low)
    total: np.ndarray = high + _sum_to_odd(low_error, high_error)
    return total


def _two_sum(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rounded sum and its error (Knuth)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _two_product(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rounded product and its error (Dekker)."""
    product = x * y
    (x1, x2), (y1, y2) = _halves(x), _halves(y)
    return product, ((x1 * y1 - product) + x1 * y2 + x2 * y1) + x2 * y2


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high


def _sum_to_odd(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The sum; if it is inexact, of the two floats around it the one with an odd last bit."""
    total, error = _two_sum(x, y)
    even = np.asarray(total).view(np.int64) & 1 == 0
    return np.where(even & (error != 0), np.nextafter(total, np.copysign(np.inf, error)), total)


def _by_cases(x: float, y: float, z: float) -> float:
    if not (math.isfinite(x) and math.isfinite(y)) or x == 0 or y == 0:
        return x * y + z
    if not math.isfinite(z):
        return z  # a product that overflows float64 is still finite
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
