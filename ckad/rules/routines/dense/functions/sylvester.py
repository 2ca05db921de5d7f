"""Sylvester's equation, by LAPACK: Schur forms of both matrices, which the adjoint uses again.

LAPACK counts by columns and so sees transposes: of A X + X B = Q it solves B' X' + X' A' = Q'.
"""

from __future__ import annotations

import numpy as np

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.lapack import (
    BLOCK,
    NUMBERS,
    SIZES,
    C,
    N,
    V,
    dgemm,
    gathered,
    parted_to,
    set_sizes,
    zgemm,
)
from ckad.rules.routines.dense.matrices import Matrix, matrix, need, square_stack, stacks
from ckad.rules.routines.dense.systems import of_factors, of_matrix
from ckad.rules.routines.memory import (
    HEAD,
    compiled,
    doubles,
    external,
    from_code,
    integers,
    letters,
    short_integers,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes
from ckad.tape.types import Type

_dgees, _zgees = external("dgees", 15), external("zgees", 15)
_dtrsyl, _ztrsyl = external("dtrsyl", 13), external("ztrsyl", 13)
_NOT_FINITE, _NO_FORM, _SINGULAR = 1, 2, 1

# schur(A [b, n, n]; complex) -> [b, 2 n, n]: the triangle and the vectors of each transpose, by
# columns, which ``sylvester`` alone reads. To derivatives it is the matrix itself, as factors of
# ``lu`` are.


def _schur_shape(attrs: Attributes, a: Type) -> Type:
    square_stack("schur", attrs, 1, a)
    batch, n, _ = a.shape
    return a.with_shape((batch, 2 * n, n))


def _schur(words: int, arrays: int, work: int) -> int:
    is_complex, planes, n = integers(words, 3)
    out, a = integers(arrays, 2)
    if n == 0:
        return 0
    batch, size, width = planes >> is_complex, n * n, 1 + is_complex
    given = doubles(a, planes * size)
    for k in range(planes * size):
        if not abs(given[k]) < np.inf:
            return _NOT_FINITE
    text, sizes = letters(work + 48, 2), set_sizes(work, n, n)
    text[0], text[1] = V, N
    sizes[3] = _length_in_code(n)
    values = work + HEAD
    space = values + 16 * n
    reals = space + 8 * width * sizes[3]
    for k in range(batch):
        triangle = out + 16 * k * size * width
        vectors = triangle + 8 * size * width
        gathered(triangle, a, k, batch, size, is_complex)
        if is_complex:
            _zgees(work + 48, work + 49, work, work, triangle, work + 4, work + 16, values, vectors,
                   work + 4, space, work + 12, reals, reals, work + 8)  # fmt: skip
        else:
            _dgees(work + 48, work + 49, work, work, triangle, work + 4, work + 16, values,
                   values + 8 * n, vectors, work + 4, space, work + 12, reals,
                   work + 8)  # fmt: skip
        if sizes[2]:
            return _NO_FORM
    return 0


def _length(n: int) -> int:
    """The numbers that LAPACK wants as its workspace; it takes few columns one by one."""
    return 4 * n if n <= BLOCK else 2 * BLOCK * (n + 1)


_length_in_code = kernel(_length)


def _schur_workspace(attrs: Attributes, a: Type) -> int:
    n = a.shape[1]
    return 8 * (3 * n + (1 + attrs[0]) * _length(n))


_SCHUR = compiled(
    _schur,
    _schur_workspace,
    {
        _NOT_FINITE: (ValueError, "array must not contain infs or NaNs"),
        _NO_FORM: (np.linalg.LinAlgError, "Schur form not found. Possibly ill-conditioned."),
    },
)

schur = from_code(
    "schur",
    _schur_shape,
    _SCHUR,
    jvp=lambda b, tangents, out, a, attrs: of_factors(b, tangents[0], out),
    vjp=lambda b, ct, out, a, attrs: (of_matrix(b, ct),),
    flops=lambda attrs, a: 25.0 * a.size * a.shape[1],
)

# sylvester(schur(A), schur(B), Q [b, n, m]; adjoint, complex) -> X with A X + X B = Q, or
# A^H X + X B^H = Q


def _sylvester_shape(attrs: Attributes, a: Type, b: Type, q: Type) -> Type:
    stacks("sylvester", attrs, 2, a, b, q)
    need(q.shape[1:] == (a.shape[2], b.shape[2]), f"sylvester of {a}, {b} and {q}")
    return q


def _sylvester(words: int, arrays: int, work: int) -> int:
    adjoint, is_complex, planes, _, n, _, _, m = integers(words, 8)
    out, a, b, q = integers(arrays, 4)
    if n == 0 or m == 0:
        return 0
    batch, width = planes >> is_complex, 1 + is_complex
    sizes, text = set_sizes(work + SIZES, m, n), letters(work, 4)
    text[0], text[1], text[2] = N, C, C if adjoint else N
    numbers = doubles(work + NUMBERS, 5)
    numbers[0], numbers[1], numbers[2], numbers[3] = 1.0, 0.0, 0.0, 0.0
    number, info, plus = work + NUMBERS, work + SIZES + 8, work + SIZES + 12
    short_integers(plus, 1)[0] = 1
    x = work + HEAD
    y = x + 8 * n * m * width
    for k in range(batch):
        left, right = b + 16 * k * m * m * width, a + 16 * k * n * n * width
        of_left, of_right = left + 8 * m * m * width, right + 8 * n * n * width
        gathered(x, q, k, batch, n * m, is_complex)
        _times(work, 1, 0, m, of_left, x, y, m, n, is_complex)
        _times(work, 0, 0, n, y, of_right, x, m, n, is_complex)
        if is_complex:
            _ztrsyl(work + 2, work + 2, plus, work + SIZES, work + SIZES + 4, left, work + SIZES,
                    right, work + SIZES + 4, x, work + SIZES, number + 32, info)  # fmt: skip
        else:
            _dtrsyl(work + 2, work + 2, plus, work + SIZES, work + SIZES + 4, left, work + SIZES,
                    right, work + SIZES + 4, x, work + SIZES, number + 32, info)  # fmt: skip
        if sizes[2]:  # it has moved eigenvalues apart
            return _SINGULAR
        found = doubles(x, n * m * width)
        for i in range(n * m * width):
            found[i] /= numbers[4]
        _times(work, 0, 0, m, of_left, x, y, m, n, is_complex)
        _times(work, 0, 1, n, y, of_right, x, m, n, is_complex)
        parted_to(out, x, k, batch, n * m, is_complex)
    return 0


@kernel
def _times(
    work: int, first: int, second: int, inner: int, x: int, y: int, to: int, m: int, n: int,
    is_complex: int,
) -> None:  # fmt: skip
    """to <- x y of m rows and n columns, with one of both an adjoint if that is asked for."""
    number, rows, columns = work + NUMBERS, work + SIZES, work + SIZES + 4
    along = rows if inner == m else columns
    of_y = columns if second else along
    if is_complex:
        zgemm(work + first, work + second, rows, columns, along, number, x, rows, y, of_y,
              number + 16, to, rows)  # fmt: skip
    else:
        dgemm(work + first, work + second, rows, columns, along, number, x, rows, y, of_y,
              number + 16, to, rows)  # fmt: skip


_SYLVESTER = compiled(
    _sylvester,
    lambda attrs, a, b, q: 16 * (1 + attrs[1]) * q.shape[1] * q.shape[2],
    {
        _SINGULAR: (
            np.linalg.LinAlgError,
            "Singular matrix: eigenvalues of both matrices add up to zero, or nearly",
        )
    },
)


def _sylvester_jvp(
    b: Builder, tangents: Tangents, out: int, *operands: int, attrs: Attributes
) -> int | None:
    adjoint, is_complex = attrs
    x, total = matrix(b, out, is_complex), None
    for k, tangent in enumerate(tangents):
        if tangent is None:
            continue
        term = matrix(b, tangent if k == 2 else of_matrix(b, tangent), is_complex)
        if k < 2:
            change = term.H if adjoint else term
            term = -(x @ change if k else change @ x)
        total = term if total is None else total + term
    if total is None:
        return None
    right = total.stacked(is_complex)
    return b.call(operands[0], operands[1], right, attrs=(sylvester.number, *attrs))


def _sylvester_vjp(
    b: Builder, ct: int, out: int, *operands: int, attrs: Attributes
) -> tuple[int, ...]:
    """A^H Y + Y B^H = ct, ct_Q = Y, ct_A = -Y X^H, ct_B = -X^H Y"""
    adjoint, is_complex = attrs
    left, right, _ = operands
    of_q = b.call(left, right, ct, attrs=(sylvester.number, 1 - adjoint, is_complex))
    x, y = (matrix(b, v, is_complex) for v in (out, of_q))
    if adjoint:
        x, y = y, x
    of_left, of_right = (z.stacked(is_complex) for z in (-(y @ x.H), -(x.H @ y)))
    return of_factors(b, of_left, left), of_factors(b, of_right, right), of_q


sylvester = from_code(
    "sylvester",
    _sylvester_shape,
    _SYLVESTER,
    _sylvester_jvp,
    _sylvester_vjp,
    lambda attrs, a, b, q: 3.0 * (1 + attrs[1]) * q.size * (q.shape[1] + q.shape[2]),
)


def halved(p: Matrix, right: Matrix) -> Matrix:
    """X with P X + X P = right."""
    b, is_complex = p.b, int(right.im is not None)
    form = b.call(p.stacked(is_complex), attrs=(schur.number, is_complex))
    attrs = (sylvester.number, 0, is_complex)
    return matrix(b, b.call(form, form, right.stacked(is_complex), attrs=attrs), is_complex)
