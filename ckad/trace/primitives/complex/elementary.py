"""Elementary functions of complex numbers, from those of their real and imaginary parts."""

from __future__ import annotations

import math

import numpy as np

from ckad.trace.arrays import Array
from ckad.trace.primitives.complex.ufuncs import (
    Complex,
    Lowering,
    absolute,
    equal,
    lowers,
    multiply,
    square,
)
from ckad.trace.values.complex import as_complex

# --- exponentials and powers -------------------------------------------------------------------


@lowers(np.exp)
def exp(x: Complex) -> Complex:
    size = np.exp(x.parts[0])
    return Complex(size * np.cos(x.parts[1]), size * np.sin(x.parts[1]))


@lowers(np.exp2)
def exp2(x: Complex) -> Complex:
    return exp(scaled(x, math.log(2.0)))


@lowers(np.expm1)
def expm1(x: Complex) -> Complex:
    a, b = x.parts
    half = np.sin(b / 2.0)
    return Complex(np.expm1(a) * np.cos(b) - 2.0 * half * half, np.exp(a) * np.sin(b))


def angle(x: Complex) -> Array:
    return np.arctan2(x.parts[1], x.parts[0])


@lowers(np.log)
def log(x: Complex) -> Complex:
    return Complex(np.log(absolute(x)), angle(x))


@lowers(np.log1p)
def log1p(x: Complex) -> Complex:
    return log(Complex(x.parts[0] + 1.0, x.parts[1]))


def scaled(x: Complex, factor: float) -> Complex:
    return Complex(*(part * factor for part in x.parts))


lowers(np.log2)(lambda x: scaled(log(x), 1 / math.log(2.0)))
lowers(np.log10)(lambda x: scaled(log(x), 1 / math.log(10.0)))


def _without_sign(x: Array) -> tuple[Array, Array]:
    """``|x|`` with the one-sided derivative of its sign at both zeros, and where it is negative."""
    negative = np.signbit(x)
    return np.where(negative, -x, x), negative


@lowers(np.sqrt)
def sqrt(x: Complex) -> Complex:
    """The root with a real part >= 0; its derivative at 0 is infinite, as that of the real root."""
    a, b = x.parts
    left = np.less(a, 0)
    root = np.sqrt((np.where(left, -a, a) + np.hypot(a, b)) / 2.0)
    width, below = _without_sign(b)
    other = width / np.where(np.equal(root, 0), 1.0, 2.0 * root)
    real, imag = np.where(left, other, root), np.where(left, root, other)
    return Complex(real, np.where(below, -imag, imag))


@lowers(np.power, np.float_power)
def power(x: Complex, y: Complex) -> Complex:
    """The principal value; 0 to a power is 0 where that has a positive real part."""
    nothing = equal(x, as_complex(np.zeros_like(x.parts[0])))
    safe = Complex(np.where(nothing, 1.0, x.parts[0]), x.parts[1])
    general = exp(multiply(y, log(safe)))
    c, d = y.parts
    none, one = np.zeros_like(c), np.ones_like(c)
    at_zero = np.where(c > 0, none, math.nan * one)
    # small whole powers, which are smooth there
    known = (one, none), x.parts, square(x).parts
    real, imag = at_zero, at_zero
    for n, parts in enumerate(known):
        is_n = np.logical_and(np.equal(c, n), np.equal(d, 0))
        real, imag = (
            np.where(is_n, part, rest) for part, rest in zip(parts, (real, imag), strict=True)
        )
    return Complex(
        *(np.where(nothing, *pair) for pair in zip((real, imag), general.parts, strict=True))
    )


# --- circular and hyperbolic functions ---------------------------------------------------------


@lowers(np.sin)
def sin(x: Complex) -> Complex:
    a, b = x.parts
    return Complex(np.sin(a) * np.cosh(b), np.cos(a) * np.sinh(b))


@lowers(np.cos)
def cos(x: Complex) -> Complex:
    a, b = x.parts
    return Complex(np.cos(a) * np.cosh(b), -(np.sin(a) * np.sinh(b)))


@lowers(np.sinh)
def sinh(x: Complex) -> Complex:
    a, b = x.parts
    return Complex(np.sinh(a) * np.cos(b), np.cosh(a) * np.sin(b))


@lowers(np.cosh)
def cosh(x: Complex) -> Complex:
    a, b = x.parts
    return Complex(np.cosh(a) * np.cos(b), np.sinh(a) * np.sin(b))


@lowers(np.tanh)
def tanh(x: Complex) -> Complex:
    """From ``e = exp(-2 |re|)``, which does not overflow."""
    a, b = x.parts
    size, negative = _without_sign(a)
    lost = np.expm1(-2.0 * size)
    e = np.exp(-2.0 * size)
    cosine = np.cos(b)
    below = lost * lost + 4.0 * e * cosine * cosine
    real = -np.expm1(-4.0 * size) / below
    return Complex(np.where(negative, -real, real), 4.0 * e * np.sin(b) * cosine / below)


def _turned(function: Lowering) -> Lowering:
    """``f(ix) / i``, which makes hyperbolic functions of circular ones and the other way round."""

    def turned(x: Complex) -> Complex:
        real, imag = function(Complex(-x.parts[1], x.parts[0])).parts
        return Complex(imag, -real)

    return turned


lowers(np.tan)(_turned(tanh))


# --- their inverses ----------------------------------------------------------------------------


def _roots(x: Complex) -> tuple[Complex, Complex]:
    """The roots of ``1 - x`` and ``1 + x``, on the right sides of their cuts."""
    a, b = x.parts
    return sqrt(Complex(1.0 - a, -b)), sqrt(Complex(1.0 + a, b))


@lowers(np.arcsin)
def arcsin(x: Complex) -> Complex:
    """W. Kahan, Branch cuts for complex elementary functions (1987)."""
    (a, b), (c, d) = (root.parts for root in _roots(x))
    return Complex(np.arctan2(x.parts[0], a * c - b * d), np.arcsinh(a * d - b * c))


@lowers(np.arccos)
def arccos(x: Complex) -> Complex:
    (a, b), (c, d) = (root.parts for root in _roots(x))
    return Complex(2.0 * np.arctan2(a, c), np.arcsinh(b * c - a * d))


lowers(np.arcsinh)(_turned(arcsin))


@lowers(np.arctanh)
def arctanh(x: Complex) -> Complex:
    a, b = x.parts
    size, negative = _without_sign(a)
    real = np.log1p(4.0 * size / ((1.0 - size) * (1.0 - size) + b * b)) / 4.0
    imag = (np.arctan2(b, 1.0 + a) - np.arctan2(-b, 1.0 - a)) / 2.0
    return Complex(np.where(negative, -real, real), imag)


lowers(np.arctan)(_turned(arctanh))


@lowers(np.arccosh)
def arccosh(x: Complex) -> Complex:
    (a, b), (c, d) = (sqrt(Complex(x.parts[0] + shift, x.parts[1])).parts for shift in (-1.0, 1.0))
    return Complex(np.arcsinh(a * c + b * d), 2.0 * np.arctan2(b, c))
