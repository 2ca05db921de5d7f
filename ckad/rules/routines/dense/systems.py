"""Linear systems and determinants by LAPACK's LU, on stacks of matrices in C order.

LAPACK counts by columns and so sees every matrix transposed. Nothing is transposed for it: a
product or a solution of transposes, from the other side, is the same bytes.

Formulas of derivatives: M. B. Giles, "An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation", 2008.
"""

from __future__ import annotations

import numpy as np

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.lapack import (
    SINGULAR,
    dgetrf,
    divided,
    gathered,
    parted_to,
    set_sizes,
    zgetrf,
)
from ckad.rules.routines.dense.matrices import (
    Matrix,
    add,
    matrices,
    matrix,
    need,
    part,
    placed,
    square_stack,
    stacks,
)
from ckad.rules.routines.memory import (
    HEAD,
    compiled,
    doubles,
    from_code,
    integers,
    short_integers,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes
from ckad.tape.types import Type

_SINGULAR = 1

# --- LU ------------------------------------------------------------------------------------------

# lu(A [b, n, n]; complex) -> [b, n + 1, n]: the factors of each matrix and its row exchanges, which
# only routines read that take both. To derivatives it is the matrix itself: the tangent of factors
# has that of A in its first n rows, and so has the cotangent. Factors of complex matrices are
# complex numbers in memory.


def _lu_shape(attrs: Attributes, a: Type) -> Type:
    square_stack("lu", attrs, 1, a)
    batch, n, _ = a.shape
    return a.with_shape((batch, n + 1, n))


def _lu(words: int, arrays: int, work: int) -> int:
    is_complex, planes, n = integers(words, 3)
    out, a = integers(arrays, 2)
    _sizes, exchanges = set_sizes(work, n, n), short_integers(work + HEAD, n)
    batch, width = planes >> is_complex, 1 + is_complex
    for k in range(batch):
        at = out + 8 * k * (n + 1) * n * width
        gathered(at, a, k, batch, n * n, is_complex)
        if is_complex:
            zgetrf(work, work, at, work + 4, work + HEAD, work + 8)
        else:
            dgetrf(work, work, at, work + 4, work + HEAD, work + 8)
        last = doubles(at + 8 * width * n * n, width * n)
        last[:] = 0.0
        for i in range(n):
            last[width * i] = exchanges[i] - 1
    return 0


_LU = compiled(_lu, lambda attrs, a: 4 * a.shape[1])


def of_matrix(b: Builder, x: int) -> int:
    """The part of a tangent or cotangent of factors that is the matrix's."""
    batch, _, n = b.type(x).shape
    return part(b, x, (0, 0, 0), (batch, n, n))


def of_factors(b: Builder, x: int, factors: int) -> int:
    """The way back."""
    return placed(b, x, (0, 0, 0), b.type(factors).shape)


lu = from_code(
    "lu",
    _lu_shape,
    _LU,
    jvp=lambda b, tangents, out, a, attrs: of_factors(b, tangents[0], out),
    vjp=lambda b, ct, out, a, attrs: (of_matrix(b, ct),),
    flops=lambda attrs, a: 2 / 3 * (1 + attrs[0]) * a.size * a.shape[1],
)

# --- solutions by LU -----------------------------------------------------------------------------

# lu_solve(lu(A), B [b, n, m]; adjoint, complex) -> X with A X = B, or A^H X = B


def solution(name: str, factors: Type, right: Type, n: int) -> Type:
    matrices(name, factors, right)
    need(right.shape[1] == n, f"{name} of {factors} and {right}: {n} rows are needed")
    return right


def _lu_solve_shape(attrs: Attributes, factors: Type, right: Type) -> Type:
    stacks("lu_solve", attrs, 2, factors, right)
    return solution("lu_solve", factors, right, factors.shape[2])


def _lu_solve(words: int, arrays: int, work: int) -> int:
    adjoint, is_complex, planes, _, n, _, _, m = integers(words, 8)
    out, factors, right = integers(arrays, 3)
    batch, width = planes >> is_complex, 1 + is_complex
    for k in range(batch):
        f = factors + 8 * k * (n + 1) * n * width
        pivots, last = doubles(f, n * n * width), doubles(f + 8 * n * n * width, n * width)
        for i in range(n):
            at = width * i * (n + 1)
            if pivots[at] == 0.0 and pivots[at + is_complex] == 0.0:
                return _SINGULAR
        x = work + HEAD if is_complex else out + 8 * k * n * m
        gathered(x, right, k, batch, n * m, is_complex)
        _substitute(work, f, x, last, n, m, adjoint, is_complex)
        if is_complex:
            parted_to(out, x, k, batch, n * m, 1)
    return 0


@kernel
def _substitute(
    work: int, f: int, x: int, last: np.ndarray, n: int, m: int, adjoint: int, is_complex: int
) -> None:
    width = 1 + is_complex
    to = doubles(x, n * m * width)
    if adjoint:
        substitute_unit(work, f, x, n, m, is_complex)
        divided(work, f, x, n, m, 0, 1, 0, is_complex)
    else:
        divided(work, f, x, n, m, 0, 0, 0, is_complex)
        divided(work, f, x, n, m, 1, 0, 1, is_complex)
        for i in range(n - 1, -1, -1):
            _exchange(to, m * width, i, int(last[width * i]))


@kernel
def substitute_unit(work: int, f: int, x: int, n: int, m: int, is_complex: int) -> int:
    """The first half for the adjoint: rows exchanged, of which it tells whether they were an odd
    number, and what has a unit diagonal."""
    width, odd = 1 + is_complex, 0
    to, last = doubles(x, n * m * width), doubles(f + 8 * n * n * width, n * width)
    for i in range(n):
        other = int(last[width * i])
        odd ^= other != i
        _exchange(to, m * width, i, other)
    divided(work, f, x, n, m, 1, 1, 1, is_complex)
    return odd


@kernel
def _exchange(x: np.ndarray, m: int, i: int, j: int) -> None:
    """Two rows of ``m`` elements."""
    if i != j:
        for c in range(m):
            x[i * m + c], x[j * m + c] = x[j * m + c], x[i * m + c]


_LU_SOLVE = compiled(
    _lu_solve, lambda attrs, f, x: 16 * x.shape[1] * x.shape[2] * attrs[1], {_SINGULAR: SINGULAR}
)


def _lu_solve_jvp(
    b: Builder, tangents: Tangents, out: int, factors: int, right: int, attrs: Attributes
) -> int | None:
    """dX = A^-1 (dB - dA X)"""
    by_factors, by_right = tangents
    terms = [] if by_right is None else [by_right]
    if by_factors is not None:
        change = matrix(b, of_matrix(b, by_factors), attrs[1])
        change = (change.H if attrs[0] else change) @ matrix(b, out, attrs[1])
        terms.append((-change).stacked(attrs[1]))
    total = add(b, terms)
    return None if total is None else b.call(factors, total, attrs=(lu_solve.number, *attrs))


def _lu_solve_vjp(
    b: Builder, ct: int, out: int, factors: int, right: int, attrs: Attributes
) -> tuple[int, int]:
    """ct_B = A^-H ct, ct_A = -ct_B X^H"""
    adjoint, is_complex = attrs
    of_right = b.call(factors, ct, attrs=(lu_solve.number, 1 - adjoint, is_complex))
    x, y = matrix(b, out, is_complex), matrix(b, of_right, is_complex)
    change = -(x @ y.H if adjoint else y @ x.H)
    return of_factors(b, change.stacked(is_complex), factors), of_right


lu_solve = from_code(
    "lu_solve",
    _lu_solve_shape,
    _LU_SOLVE,
    jvp=_lu_solve_jvp,
    vjp=_lu_solve_vjp,
    flops=lambda attrs, f, x: 2.0 * (1 + attrs[1]) * x.size * x.shape[1],
)


def inverse_times(a: Matrix, x: Matrix, adjoint: bool = False) -> Matrix:
    """A^-1 X, or A^-H X."""
    b, is_complex = a.b, int(a.im is not None)
    factors = b.call(a.stacked(is_complex), attrs=(lu.number, is_complex))
    return solved(b, factors, x, adjoint, is_complex)


def solved(b: Builder, factors: int, x: Matrix, adjoint: bool, is_complex: int) -> Matrix:
    right = x.stacked(is_complex)
    found = b.call(factors, right, attrs=(lu_solve.number, adjoint, is_complex))
    return matrix(b, found, is_complex)
