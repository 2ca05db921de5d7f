"""Error functions of complex numbers, by SciPy (S. G. Johnson's Faddeeva package).

error_function(real, imaginary; which) -> [2, ...], both parts of the result. They are analytic: one
complex derivative says both partial ones (DLMF 7.2, 7.10).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ckad.errors import TapeError
from ckad.rules.registry import Tangents
from ckad.tape.builder import Builder
from ckad.tape.routines import Routine, define
from ckad.tape.types import DType, Type

TWO_OVER_ROOT_OF_PI = 2.0 / math.sqrt(math.pi)


class Pair(NamedTuple):
    """The rows of the two parts of complex numbers."""

    real: int
    imag: int


def _times(b: Builder, x: Pair, y: Pair) -> Pair:
    real = b.sub(b.mul(x.real, y.real), b.mul(x.imag, y.imag))
    return Pair(real, b.add(b.mul(x.real, y.imag), b.mul(x.imag, y.real)))


def _scaled(b: Builder, x: Pair, factor: float) -> Pair:
    return Pair(*(b.mul(part, b.full_like(part, factor)) for part in x))


def _gauss(b: Builder, z: Pair, sign: float) -> Pair:
    """exp(sign z^2)"""
    square = _scaled(b, _times(b, z, z), sign)
    size = b.exp(square.real)
    return Pair(b.mul(size, b.cos(square.imag)), b.mul(size, b.sin(square.imag)))


def _plus(b: Builder, x: Pair, real: float, imag: float) -> Pair:
    return Pair(b.add(x.real, b.full_like(x.real, real)), b.add(x.imag, b.full_like(x.imag, imag)))


Derivative = Callable[[Builder, Pair, Pair], Pair]


def _by_gauss(factor: float, sign: float) -> Derivative:
    return lambda b, w, z: _scaled(b, _gauss(b, z, sign), factor)


def _by_itself(factor: float, real: float, imag: float) -> Derivative:
    """factor z w + a constant"""
    return lambda b, w, z: _plus(b, _scaled(b, _times(b, z, w), factor), real, imag)


#: SciPy's names and the derivatives, from the result and the operand.
FUNCTIONS: tuple[tuple[str, Derivative], ...] = (
    ("erf", _by_gauss(TWO_OVER_ROOT_OF_PI, -1.0)),
    ("erfc", _by_gauss(-TWO_OVER_ROOT_OF_PI, -1.0)),
    ("erfi", _by_gauss(TWO_OVER_ROOT_OF_PI, 1.0)),
    ("erfcx", _by_itself(2.0, -TWO_OVER_ROOT_OF_PI, 0.0)),
    ("wofz", _by_itself(-2.0, 0.0, TWO_OVER_ROOT_OF_PI)),
    ("dawsn", _by_itself(-2.0, 1.0, 0.0)),
)


def _shape(attrs: Sequence[int], real: Type, imag: Type) -> Type:
    if len(attrs) != 1 or not 0 <= attrs[0] < len(FUNCTIONS):
        raise TapeError(f"error_function with attributes {tuple(attrs)}")
    if real != imag or real.dtype is not DType.F64:
        raise TapeError(f"error_function of {real} and {imag}; it needs two float64 of one shape")
    return real.with_shape((2, *real.shape))


def _run(attrs: Sequence[int], real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    import scipy.special

    result = getattr(scipy.special, FUNCTIONS[attrs[0]][0])(real + 1j * imag)
    return np.stack([result.real, result.imag])


def _parts(b: Builder, x: int) -> Pair:
    """The two halves of an array [2, ...]."""
    type = b.type(x)
    rank, shape = len(type.shape), type.shape[1:]
    ones = (1,) * rank
    halves = (
        b.slice(x, attrs=(k, *[0] * (rank - 1), *ones), type=type.with_shape((1, *shape)))
        for k in (0, 1)
    )
    return Pair(*(b.reshape_to(half, shape) for half in halves))


def _slope(b: Builder, out: int, z: Pair, attrs: Sequence[int]) -> Pair:
    return FUNCTIONS[attrs[0]][1](b, _parts(b, out), z)


def _jvp(
    b: Builder, tangents: Tangents, out: int, real: int, imag: int, attrs: Sequence[int]
) -> int:
    moves = Pair(*(b.full_like(real, 0.0) if t is None else t for t in tangents))
    change = _times(b, _slope(b, out, Pair(real, imag), attrs), moves)
    rows = (b.reshape_to(part, (1, *b.type(part).shape)) for part in change)
    return b.concat(*rows, attrs=(0,), type=b.type(out))


def _vjp(b: Builder, ct: int, out: int, real: int, imag: int, attrs: Sequence[int]) -> Pair:
    """The transpose: times the conjugate of the derivative."""
    slope = _slope(b, out, Pair(real, imag), attrs)
    return _times(b, Pair(slope.real, b.neg(slope.imag)), _parts(b, ct))


error_function = define(Routine("error_function", _shape, _run, jvp=_jvp, vjp=_vjp))
