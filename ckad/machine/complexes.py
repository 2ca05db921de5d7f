"""Functions of complex numbers, written as kernels are and translated with those that call them."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np


def quotient(z: complex, w: complex) -> complex:
    """By the part of ``w`` that is larger, so that no square of it overflows (R. L. Smith, 1962).

    By zero it is NaN."""
    if abs(w.real) >= abs(w.imag):
        ratio = w.imag / w.real
        below = w.real + w.imag * ratio
        return complex((z.real + z.imag * ratio) / below, (z.imag - z.real * ratio) / below)
    ratio = w.real / w.imag
    below = w.real * ratio + w.imag
    return complex((z.real * ratio + z.imag) / below, (z.imag * ratio - z.real) / below)


def size(z: complex) -> float:
    return math.hypot(z.real, z.imag)


def exponential(z: complex) -> complex:
    """At infinities as C defines it."""
    x, y = z.real, z.imag
    turns = y - y == 0.0  # else the angle is no finite number
    if x - x == 0.0:
        if turns:
            return complex(math.exp(x) * math.cos(y), math.exp(x) * math.sin(y))
        return complex(math.nan, math.nan)
    if x != x:
        return complex(x, x if y != 0.0 else y)
    if x < 0.0:
        return complex(0.0 * math.cos(y), 0.0 * math.sin(y)) if turns else complex(0.0, 0.0)
    if not turns:
        return complex(x, math.nan)
    re, im = math.cos(y), math.sin(y)
    return complex(re * x if re != 0.0 else re, im * x if im != 0.0 else im)


def hyperbolic_sine(z: complex) -> complex:
    """Of finite numbers."""
    return complex(math.cos(z.imag) * math.sinh(z.real), math.sin(z.imag) * math.cosh(z.real))


#: What is called for functions of one number that is complex.
FUNCTIONS: dict[Any, Callable[[complex], Any]] = {
    abs: size,
    np.exp: exponential,
    cmath.exp: exponential,
    cmath.sinh: hyperbolic_sine,
}
