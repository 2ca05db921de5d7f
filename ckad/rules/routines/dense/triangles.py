"""Triangular systems by LAPACK, on stacks of matrices in C order."""

from __future__ import annotations

import numpy as np

from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.lapack import (
    SINGULAR,
    divided,
    gathered,
    parted_to,
)
from ckad.rules.routines.dense.matrices import Matrix, add, matrix, square, stacks
from ckad.rules.routines.dense.systems import solution
from ckad.rules.routines.memory import HEAD, compiled, doubles, from_code, integers
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes
from ckad.tape.types import Type

_SINGULAR = 1

# --- triangular systems --------------------------------------------------------------------------

# triangular(A [b, n, n], B [b, n, m]; lower, adjoint, unit, complex) -> X with A X = B or
# A^H X = B; only one triangle of A is read


def _triangular_shape(attrs: Attributes, a: Type, right: Type) -> Type:
    stacks("triangular", attrs, 4, a, right)
    square("triangular", a)
    return solution("triangular", a, right, a.shape[2])


def _solve_triangular(words: int, arrays: int, work: int) -> int:
    lower, adjoint, unit, is_complex, planes, n, _, _, _, m = integers(words, 10)
    out, a, right = integers(arrays, 3)
    batch = planes >> is_complex
    for k in range(batch):
        at, x = a + 8 * k * n * n, out + 8 * k * n * m
        re = doubles(at, n * n)
        im = doubles(at + 8 * batch * n * n, n * n) if is_complex else re
        for i in range(n):
            if not unit and re[i * (n + 1)] == 0.0 and im[i * (n + 1)] == 0.0:
                return _SINGULAR
        if is_complex:
            at, x = work + HEAD, work + HEAD + 16 * n * n
            gathered(at, a, k, batch, n * n, 1)
        gathered(x, right, k, batch, n * m, is_complex)
        divided(work, at, x, n, m, 1 - lower, adjoint, unit, is_complex)
        if is_complex:
            parted_to(out, x, k, batch, n * m, 1)
    return 0


def _workspace(attrs: Attributes, a: Type, x: Type) -> int:
    n, m = x.shape[1:]
    return 16 * n * (n + m) * attrs[3]


_TRIANGULAR = compiled(_solve_triangular, _workspace, {_SINGULAR: SINGULAR})


def triangle(x: Matrix, lower: int, unit: int = 0) -> Matrix:
    """One triangle of every matrix, without the diagonal if that is all ones; zeros elsewhere."""
    n = x.shape[1]
    ones = np.ones((n, n))
    return x.weighted(np.tril(ones, -unit) if lower else np.triu(ones, unit))


def _triangular_jvp(
    b: Builder, tangents: Tangents, out: int, a: int, right: int, attrs: Attributes
) -> int | None:
    lower, adjoint, unit, is_complex = attrs
    by_matrix, by_right = tangents
    terms = [] if by_right is None else [by_right]
    if by_matrix is not None:
        change = triangle(matrix(b, by_matrix, is_complex), lower, unit)
        change = (change.H if adjoint else change) @ matrix(b, out, is_complex)
        terms.append((-change).stacked(is_complex))
    total = add(b, terms)
    return None if total is None else b.call(a, total, attrs=(triangular.number, *attrs))


def _triangular_vjp(
    b: Builder, ct: int, out: int, a: int, right: int, attrs: Attributes
) -> tuple[int, int]:
    lower, adjoint, unit, is_complex = attrs
    turned = (triangular.number, lower, 1 - adjoint, unit, is_complex)
    of_right = b.call(a, ct, attrs=turned)
    x, y = matrix(b, out, is_complex), matrix(b, of_right, is_complex)
    change = triangle(-(x @ y.H if adjoint else y @ x.H), lower, unit)
    return change.stacked(is_complex), of_right


triangular = from_code(
    "triangular",
    _triangular_shape,
    _TRIANGULAR,
    jvp=_triangular_jvp,
    vjp=_triangular_vjp,
    flops=lambda attrs, a, x: (1.0 + attrs[3]) * x.size * x.shape[1],
)


def divide(a: Matrix, x: Matrix, lower: int, adjoint: int) -> Matrix:
    """A^-1 X or A^-H X with one triangle of A."""
    b, is_complex = a.b, int(a.im is not None)
    attrs = (triangular.number, lower, adjoint, 0, is_complex)
    found = b.call(a.stacked(is_complex), x.stacked(is_complex), attrs=attrs)
    return matrix(b, found, is_complex)
