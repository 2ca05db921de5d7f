"""LU factors without an order of rows, as elimination by loops gives them, in blocks by BLAS.

A zero on the diagonal is divided by, as those loops do: nothing is said of it. BLAS multiplies by
reciprocals, which may overflow, and by zeros beside what is infinite: what does not come out finite
is done again row by row.
"""

from __future__ import annotations

import numpy as np

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.lapack import (
    FEW,
    NUMBERS,
    SIZES,
    L,
    N,
    R,
    T,
    U,
    dgemm,
    dtrsm,
)
from ckad.rules.routines.dense.matrices import (
    Matrix,
    add,
    eye,
    matrices,
    need,
    square,
    square_stack,
)
from ckad.rules.routines.dense.triangles import triangle, triangular
from ckad.rules.routines.memory import (
    HEAD,
    compiled,
    copy,
    doubles,
    from_code,
    integers,
    is_finite,
    letters,
    short_integers,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes
from ckad.tape.types import Type

#: Rows of which both triangles of a product are computed together.
_STRIP = 32
# eliminated(A [b, n, n]) -> U, and below its diagonal L, with A = L U


def _eliminated_shape(attrs: Attributes, a: Type) -> Type:
    square_stack("eliminated", attrs, 0, a)
    return a


def _eliminated(words: int, arrays: int, work: int) -> int:
    batch, n = integers(words, 2)
    out, a = integers(arrays, 2)
    copy(doubles(out, batch * n * n), doubles(a, batch * n * n))
    numbers = doubles(work + NUMBERS, 2)
    numbers[0], numbers[1] = -1.0, 1.0
    for k in range(batch):
        at = 8 * k * n * n
        _forward(work, out + at, n, n)
        if n > FEW and not is_finite(out + at, n * n):
            copy(doubles(out + at, n * n), doubles(a + at, n * n))
            _forward_rows(out + at, n, n)
    return 0


@kernel
def _forward(work: int, x: int, n: int, step: int) -> None:
    """The factors of n rows at ``x``, which lie ``step`` apart, in their place; in halves."""
    if n <= FEW:
        _forward_rows(x, n, step)
        return
    first = (n // 2 + 7) // 8 * 8
    rest = n - first
    beside, below, corner = 8 * first, 8 * first * step, 8 * first * (step + 1)
    _forward(work, x, first, step)
    _halves(work, first, rest, step)
    text, number = letters(work, 4), work + NUMBERS
    # A_12 <- L_11^-1 A_12, of which BLAS sees the transposes
    text[0], text[1], text[2], text[3] = R, U, N, U
    dtrsm(work, work + 1, work + 2, work + 3, work + 20, work + 16, number + 8, x, work + 24,
           x + beside, work + 24)  # fmt: skip
    # A_21 <- A_21 U_11^-1
    text[0], text[1], text[2], text[3] = L, L, N, N
    dtrsm(work, work + 1, work + 2, work + 3, work + 16, work + 20, number + 8, x, work + 24,
           x + below, work + 24)  # fmt: skip
    # A_22 -= A_21 A_12
    text[0], text[1] = N, N
    dgemm(work, work + 1, work + 20, work + 20, work + 16, number, x + beside, work + 24,
           x + below, work + 24, number + 8, x + corner, work + 24)  # fmt: skip
    _forward(work, x + corner, rest, step)


@kernel
def _halves(work: int, first: int, rest: int, step: int) -> None:
    sizes = short_integers(work + SIZES, 8)
    sizes[0], sizes[1], sizes[2] = first, rest, step


@kernel
def _forward_rows(x: int, n: int, step: int) -> None:
    a = doubles(x, (n - 1) * step + n)
    for k in range(n - 1):
        pivot = a[k * step + k]
        for i in range(k + 1, n):
            factor = a[i * step + k] / pivot
            a[i * step + k] = factor
            for j in range(k + 1, n):
                a[i * step + j] -= factor * a[k * step + j]


_ELIMINATED = compiled(_eliminated, lambda attrs, a: 0)


def _upper(x: Matrix) -> Matrix:
    return triangle(x, 0)


def _with_ones(x: Matrix) -> Matrix:
    return x.lower(0.0) + eye(x.b, *x.shape[:2])


def _by_lower(lu: Matrix, x: Matrix, adjoint: int) -> Matrix:
    """L^-1 X or L^-T X."""
    return _solved(lu, x, 1, adjoint)


def _by_upper(lu: Matrix, x: Matrix, adjoint: int) -> Matrix:
    """U^-1 X or U^-T X, by the diagonal and what is left with ones there: a zero is no error.

    The last pivot divides nothing in an elimination and may be zero: one stands for it, as what is
    asked here does not depend on it.
    """
    b = lu.b
    last = b.const(np.arange(lu.shape[1]) == lu.shape[1] - 1)
    pivots = b.reshape_to(lu.diagonal().plain().re, lu.shape[:2])
    pivots = b.select(b.broadcast_to(last, lu.shape[:2]), b.full_like(pivots, 1.0), pivots)
    column = b.reshape_to(pivots, (*lu.shape[:2], 1))
    unit = Matrix(b, b.div(lu.plain().re, b.broadcast_to(column, lu.shape)))
    across = b.broadcast_to(column, x.shape)
    if adjoint:
        return Matrix(b, b.div(_solved(unit, x, 0, 1).re, across))
    return _solved(unit, Matrix(b, b.div(x.plain().re, across)), 0, 0)


def _solved(x: Matrix, y: Matrix, lower: int, adjoint: int) -> Matrix:
    attrs = (triangular.number, lower, adjoint, 1, 0)
    return Matrix(x.b, x.b.call(x.plain().re, y.plain().re, attrs=attrs))


def _over_upper(x: Matrix, lu: Matrix, adjoint: int) -> Matrix:
    """X U^-1 or X U^-T."""
    return _by_upper(lu, x.T, 1 - adjoint).T


def _pushed(lu: Matrix, change: Matrix) -> Matrix:
    """dL = L M, where M is L^-1 dA U^-1 below the diagonal, and dU is L^-1 dA - M U from it on."""
    left = _by_lower(lu, change, 0)
    m = _over_upper(left, lu, 0).lower(0.0)
    return _with_ones(lu) @ m + _upper(left - m @ _upper(lu))


def _eliminated_jvp(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
    assert tangents[0] is not None
    return _pushed(Matrix(b, out), Matrix(b, tangents[0])).plain().re


def _eliminated_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    return (b.call(out, ct, attrs=(eliminated_pull.number,)),)


eliminated = from_code(
    "eliminated",
    _eliminated_shape,
    _ELIMINATED,
    _eliminated_jvp,
    _eliminated_vjp,
    lambda attrs, a: 2 / 3 * a.size * a.shape[1],
)

# eliminated_pull(LU [b, n, n], ct [b, n, n]) -> ct_A: four thirds of n^3 operations, where the
# formula takes 4 n^3


def _eliminated_pull_shape(attrs: Attributes, factors: Type, ct: Type) -> Type:
    matrices("eliminated_pull", factors, ct)
    square("eliminated_pull", factors)
    need(not attrs and factors == ct, f"eliminated_pull of {factors} and {ct}")
    return ct


def _eliminated_pull(words: int, arrays: int, work: int) -> int:
    batch, n = integers(words, 2)
    out, factors, ct = integers(arrays, 3)
    copy(doubles(out, batch * n * n), doubles(ct, batch * n * n))
    numbers = doubles(work + NUMBERS, 3)
    numbers[0], numbers[1], numbers[2] = -1.0, 1.0, 0.0
    for k in range(batch):
        at = 8 * k * n * n
        _reverse(work, factors + at, out + at, n, n)
        if n > FEW and not is_finite(out + at, n * n):
            copy(doubles(out + at, n * n), doubles(ct + at, n * n))
            _reverse_rows(factors + at, out + at, n, n)
    return 0


@kernel
def _reverse(work: int, x: int, y: int, n: int, step: int) -> None:
    """A cotangent at ``y`` of factors at ``x`` to that of A, in halves as these are computed."""
    if n <= FEW:
        _reverse_rows(x, y, n, step)
        return
    first = (n // 2 + 7) // 8 * 8
    rest = n - first
    beside, below, corner = 8 * first, 8 * first * step, 8 * first * (step + 1)
    _reverse(work, x + corner, y + corner, rest, step)
    _halves(work, first, rest, step)
    text, number = letters(work, 4), work + NUMBERS
    # ct_21 -= ct_22 U_12^T; BLAS sees ct_21^T -= U_12 ct_22^T, the first of which it has turned
    text[0], text[1] = T, N
    dgemm(work, work + 1, work + 16, work + 20, work + 20, number, x + beside, work + 24,
           y + corner, work + 24, number + 8, y + below, work + 24)  # fmt: skip
    # ct_12 -= L_21^T ct_22
    text[0], text[1] = N, T
    dgemm(work, work + 1, work + 20, work + 16, work + 20, number, y + corner, work + 24,
           x + below, work + 24, number + 8, y + beside, work + 24)  # fmt: skip
    # ct_12 <- L_11^-T ct_12
    text[0], text[1], text[2], text[3] = R, U, T, U
    dtrsm(work, work + 1, work + 2, work + 3, work + 20, work + 16, number + 8, x, work + 24,
           y + beside, work + 24)  # fmt: skip
    # ct_21 <- ct_21 U_11^-T
    text[0], text[1], text[2], text[3] = L, L, T, N
    dtrsm(work, work + 1, work + 2, work + 3, work + 16, work + 20, number + 8, x, work + 24,
           y + below, work + 24)  # fmt: skip
    # ct_11 -= ct_12 U_12^T below the diagonal, L_21^T ct_21 from it on
    for start in range(0, first, _STRIP):
        _strip(work, x, y, first, step, start, min(_STRIP, first - start))
    _reverse(work, x, y, first, step)


@kernel
def _strip(work: int, x: int, y: int, first: int, step: int, start: int, rows: int) -> None:
    """Rows of ct_11 from ``start`` on."""
    sizes, text, number = short_integers(work + SIZES, 8), letters(work, 4), work + NUMBERS
    beside, below, behind = 8 * first, 8 * first * step, start + rows
    row = 8 * start * step
    corner = work + HEAD
    sizes[3], sizes[4] = start, rows
    text[0], text[1] = T, N
    if start:
        dgemm(work, work + 1, work + 28, work + 32, work + 20, number, x + beside, work + 24,
               y + row + beside, work + 24, number + 8, y + row, work + 24)  # fmt: skip
    dgemm(work, work + 1, work + 32, work + 32, work + 20, number + 8, x + row + beside, work + 24,
           y + row + beside, work + 24, number + 16, corner, work + 32)  # fmt: skip
    to, both = doubles(y + row + 8 * start, (rows - 1) * step + rows), doubles(corner, rows * rows)
    for i in range(rows):
        for j in range(i):
            to[i * step + j] -= both[i * rows + j]
    text[0], text[1] = N, T
    dgemm(work, work + 1, work + 32, work + 32, work + 20, number + 8, y + below + 8 * start,
           work + 24, x + below + 8 * start, work + 24, number + 16, corner,
           work + 32)  # fmt: skip
    for i in range(rows):
        for j in range(i, rows):
            to[i * step + j] -= both[i * rows + j]
    if behind < first:
        sizes[3] = first - behind
        dgemm(work, work + 1, work + 28, work + 32, work + 20, number, y + below + 8 * behind,
               work + 24, x + below + 8 * start, work + 24, number + 8, y + row + 8 * behind,
               work + 24)  # fmt: skip


@kernel
def _reverse_rows(x: int, y: int, n: int, step: int) -> None:
    m = (n - 1) * step + n
    lu, ct = doubles(x, m), doubles(y, m)
    for k in range(n - 2, -1, -1):
        row = k * step
        pivot = lu[row + k]
        total = 0.0
        for i in range(k + 1, n):
            at = i * step
            factor, of_factor = lu[at + k], ct[at + k]
            for j in range(k + 1, n):
                of_factor -= ct[at + j] * lu[row + j]
                ct[row + j] -= factor * ct[at + j]
            of_factor /= pivot
            ct[at + k] = of_factor
            total += of_factor * factor
        ct[row + k] -= total


_ELIMINATED_PULL = compiled(_eliminated_pull, lambda attrs, factors, ct: 8 * _STRIP * _STRIP)


def _eliminated_pull_jvp(
    b: Builder, tangents: Tangents, out: int, factors: int, given: int, attrs: Attributes
) -> int | None:
    """G = L^-T (Z + S U^-T), where ct is Z from the diagonal on, and S is L^T ct - Z U^T below it:
    dG = L^-T (dZ - dL^T G + (dS - (S U^-T) dU^T) U^-T)"""
    by_factors, by_ct = (None if t is None else Matrix(b, t) for t in tangents)
    lu, z, g = Matrix(b, factors), Matrix(b, given), Matrix(b, out)
    lower, upper = _with_ones(lu), _upper(lu)
    terms, of_s = [], []
    if by_ct is not None:
        terms.append(_upper(by_ct))
        of_s.append((lower.T @ by_ct.lower(0.0) - _upper(by_ct) @ upper.T).lower(0.0))
    if by_factors is not None:
        of_l, of_u = by_factors.lower(0.0), _upper(by_factors)
        terms.append(-(of_l.T @ g))
        of_s.append((of_l.T @ z.lower(0.0) - _upper(z) @ of_u.T).lower(0.0))
        of_s.append(-(_over(lu, z, g) @ of_u.T))
    total = add(b, [x.plain().re for x in of_s])
    if total is None:
        return None
    terms.append(_over_upper(Matrix(b, total), lu, 1))
    total = add(b, [x.plain().re for x in terms])
    assert total is not None
    return _by_lower(lu, Matrix(b, total), 1).plain().re


def _over(lu: Matrix, z: Matrix, g: Matrix) -> Matrix:
    """S U^-T"""
    return _with_ones(lu).T @ g - _upper(z)


def _eliminated_pull_vjp(
    b: Builder, ct: int, out: int, factors: int, given: int, attrs: Attributes
) -> tuple[int, int]:
    """By ct the push of what is given; by L and U what the tangent does with dL and dU, turned."""
    lu, z, g, w = (Matrix(b, k) for k in (factors, given, out, ct))
    left = _by_lower(lu, w, 0)  # L^-1 W
    p = _over_upper(left, lu, 0)
    below = p.lower(0.0)
    of_l = z.lower(0.0) @ below.T - g @ left.T
    of_u = -(p.T @ _over(lu, z, g) + below.T @ _upper(z))
    of_ct = _with_ones(lu) @ below + _upper(left - below @ _upper(lu))
    return (of_l.lower(0.0) + _upper(of_u)).plain().re, of_ct.plain().re


eliminated_pull = from_code(
    "eliminated_pull",
    _eliminated_pull_shape,
    _ELIMINATED_PULL,
    _eliminated_pull_jvp,
    _eliminated_pull_vjp,
    lambda attrs, factors, ct: 4 / 3 * factors.size * factors.shape[1],
)
