"""Quotients by the gaps of a spectrum, in which derivatives of its vectors are written.

Vectors of eigenvalues or singular values that are equal have no derivative, and numbers that
differ by rounding alone tell no gap: a quotient by it has no correct digit. So values of matrices
of n rows count as equal if they differ by at most ``closeness(n)`` of the largest one.
"""

from __future__ import annotations

from enum import IntEnum
from functools import partial

import numpy as np

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.matrices import (
    Matrix,
    joined,
    matrices,
    matrix,
    need,
    parted,
    square,
    stacks,
)
from ckad.rules.routines.memory import compiled, doubles, from_code, integers
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes, Failure, Routine, define
from ckad.tape.types import Type


class Divisor(IntEnum):
    """What an element in row i and column j is divided by."""

    GAPS = 0  # w_j - w_i
    SQUARES = 1  # w_j^2 - w_i^2 of numbers that are not negative
    VALUES = 2  # w_j
    ELEMENTS = 3  # its own divisor


#: What of the values is equal, or zero, as ``_apart`` fails with it.
_FAILURES: dict[int, Failure] = {
    1 + Divisor.GAPS: (
        np.linalg.LinAlgError,
        "eigenvalues are equal to rounding, and their eigenvectors, which any rotation of them "
        "could replace, have no derivative. Use eigenvalues only, or eigenvectors of others, or "
        "give a function of the matrix that has a derivative its own one by ckad.custom_jvp",
    ),
    1 + Divisor.SQUARES: (
        np.linalg.LinAlgError,
        "singular values are equal to rounding, and their vectors, which any rotation of them "
        "could replace, have no derivative. Use singular values only, or vectors of others, or "
        "give a function of the matrix that has a derivative its own one by ckad.custom_jvp",
    ),
    1 + Divisor.VALUES: (
        np.linalg.LinAlgError,
        "a singular value is zero to rounding, and the vectors that belong to it have no "
        "derivative. Use singular values only, or vectors of others, or np.linalg.pinv",
    ),
}
_FAILURES[1 + Divisor.ELEMENTS] = _FAILURES[1 + Divisor.GAPS]


def closeness(n: int) -> float:
    """LAPACK gives the values of matrices that are rounded so well, and some times better."""
    return 2.0**-51 * (8 + n)


_closeness = kernel(closeness)

# apart(x [p, m, n], w; divisor, raises) -> [p, m, n]: x divided, 0 where it is 0 and, by gaps, on
# the diagonal; w is [b, 1, n], or [b, m, n] of ELEMENTS, p is b, or twice that of complex x. Where
# values are equal, an element that is not 0 stops the program if it ``raises``, and else is NaN.


def _apart_shape(attrs: Attributes, x: Type, w: Type) -> Type:
    fits = len(attrs) == 2 and attrs[0] in tuple(Divisor) and attrs[1] in (0, 1)
    need(fits, f"apart with attributes {tuple(attrs)}")
    matrices("apart", x)
    matrices("apart", w)
    planes, rows, n = x.shape
    fits = w.shape[1:] == (rows if attrs[0] == Divisor.ELEMENTS else 1, n)
    need(fits and planes in (w.shape[0], 2 * w.shape[0]), f"apart of {x} by {w}")
    need(attrs[0] >= Divisor.VALUES or rows == n, f"apart of {x}; it has to be square")
    return x


_GAPS, _SQUARES, _VALUES = Divisor.GAPS + 0, Divisor.SQUARES + 0, Divisor.VALUES + 0


def _apart(words: int, arrays: int, work: int) -> int:
    divisor, raises, planes, rows, n, batch, per_matrix, _ = integers(words, 8)
    out, at, by = integers(arrays, 3)
    x, to, w = doubles(at, planes * rows * n), doubles(out, planes * rows * n), by
    for p in range(planes):
        values = doubles(w + 8 * (p % batch) * per_matrix * n, per_matrix * n)
        close = _close(values, divisor, max(rows, n))
        for i in range(rows):
            for j in range(n):
                k = (p * rows + i) * n + j
                number = x[k]
                if number == 0.0 or (divisor <= _SQUARES and i == j):
                    to[k] = 0.0
                    continue
                gap = values[j] if per_matrix == 1 else values[i * n + j]
                if divisor <= _SQUARES:
                    gap = gap - values[i]
                if abs(gap) <= close and number == number:
                    if raises:
                        return int(1 + divisor)
                    infinite = number / (gap - gap)
                    to[k] = infinite - infinite
                    continue
                # as a product, which keeps what small differences have of digits
                to[k] = number / (gap * (values[i] + values[j]) if divisor == _SQUARES else gap)
    return 0


@kernel
def _close(values: np.ndarray, divisor: int, n: int) -> float:
    largest = 0.0
    if divisor <= _VALUES:
        for value in values:
            largest = max(largest, abs(value))
    return _closeness(n) * largest


_APART = compiled(_apart, lambda attrs, *types: 0, _FAILURES, calls_blas=False)


def divided(x: Matrix, w: Matrix, divisor: Divisor, raises: bool) -> Matrix:
    """``x`` by real ``w``."""
    is_complex = int(x.im is not None)
    attrs = (apart.number, divisor, int(raises))
    found = x.b.call(x.stacked(is_complex), w.plain().re, attrs=attrs)
    return matrix(x.b, found, is_complex)


def _apart_jvp(
    b: Builder, tangents: Tangents, out: int, x: int, w: int, attrs: Attributes
) -> int | None:
    """d(x / g) = (dx - x / g dg) / g"""
    (dx, dw), (divisor, raises) = tangents, attrs
    if dw is not None:
        is_complex = int(b.type(x).shape[0] != b.type(w).shape[0])
        change = matrix(b, out, is_complex) * _gaps_of(Matrix(b, dw), Matrix(b, w), divisor)
        less = change.stacked(is_complex)
        dx = b.neg(less) if dx is None else b.sub(dx, less)
    return None if dx is None else b.call(dx, w, attrs=(apart.number, divisor, raises))


def _gaps_of(change: Matrix, w: Matrix, divisor: int) -> Matrix:
    if divisor == Divisor.GAPS:
        return gaps_between(change)
    if divisor == Divisor.SQUARES:
        return gaps_between(change * w + change * w)
    return change


def _apart_vjp(b: Builder, ct: int, out: int, x: int, w: int, attrs: Attributes) -> tuple[int, int]:
    is_complex = int(b.type(x).shape[0] != b.type(w).shape[0])
    by_x = b.call(ct, w, attrs=(apart.number, *attrs))
    inner, found = (matrix(b, v, is_complex) for v in (by_x, out))
    by_gap = -(inner.conj * found).real
    if attrs[0] == Divisor.ELEMENTS:
        return by_x, by_gap.re
    by_w = by_gap.sum(1)
    if attrs[0] <= Divisor.SQUARES:
        by_w = by_w - by_gap.sum(2).T
    if attrs[0] == Divisor.SQUARES:
        by_w = by_w * Matrix(b, w)
        by_w = by_w + by_w
    return by_x, by_w.plain().re


apart = from_code(
    "apart",
    _apart_shape,
    _APART,
    _apart_jvp,
    _apart_vjp,
    lambda attrs, x, w: 4.0 * x.size,
)


def gaps_between(x: Matrix) -> Matrix:
    """x_j - x_i for rows ``x``"""
    n = x.shape[2]
    rows, columns = (_repeated(v, (x.shape[0], n, n)) for v in (x, x.T.plain()))
    return rows - columns


def _repeated(x: Matrix, shape: tuple[int, int, int]) -> Matrix:
    return x.mapped(partial(x.b.broadcast_to, shape=shape))


# eig_gaps(w [2 b, 1, n], V^-H) -> w_j - w_i [2 b, n, n], 0 where they are equal to rounding, which
# moves them the more, the less their vectors differ from others


def _eig_gaps_shape(attrs: Attributes, w: Type, left: Type) -> Type:
    stacks("eig_gaps", attrs, 0, w, left)
    square("eig_gaps", left)
    need(w.shape[1:] == (1, left.shape[2]), f"eig_gaps of {w} and {left}")
    return left


def _eig_gaps(attrs: Attributes, w: np.ndarray, left: np.ndarray) -> np.ndarray:
    rows = joined(w, 1)
    gaps = rows - rows.swapaxes(1, 2)
    reach = np.linalg.norm(joined(left, 1), axis=1, keepdims=True)
    # the part of the matrix that an eigenvalue makes is so large
    largest = np.max(np.abs(rows) * reach, axis=2, keepdims=True, initial=0.0)
    close = closeness(w.shape[2]) * largest * (reach + reach.swapaxes(1, 2)) / 2
    equal = np.abs(gaps) <= close
    return parted(np.where(equal, 0.0, gaps), 1)


def _eig_gaps_jvp(
    b: Builder, tangents: Tangents, out: int, w: int, left: int, attrs: Attributes
) -> int | None:
    if tangents[0] is None:
        return None
    return gaps_between(matrix(b, tangents[0], 1)).stacked(1)


def _eig_gaps_vjp(
    b: Builder, ct: int, out: int, w: int, left: int, attrs: Attributes
) -> tuple[int, None]:
    z = matrix(b, ct, 1)
    return (z.sum(1) - z.sum(2).T).stacked(1), None


eig_gaps = define(Routine("eig_gaps", _eig_gaps_shape, _eig_gaps, _eig_gaps_jvp, _eig_gaps_vjp))
