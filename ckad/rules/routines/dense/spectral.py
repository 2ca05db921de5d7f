"""Eigenvalues and eigenvectors of Hermitian matrices, on stacks in C order.

Formulas of derivatives: M. B. Giles, "An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation", 2008. Where eigenvalues are
equal, ``gaps`` says what becomes of the derivatives of eigenvectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.gaps import Divisor, divided
from ckad.rules.routines.dense.lapack import (
    BLOCK,
    NO_CONVERGENCE,
    L,
    U,
    V,
    set_sizes,
    turned,
    turned_into_parts,
    turned_parts,
)
from ckad.rules.routines.dense.matrices import (
    Matrix,
    eye,
    joined,
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
    copy,
    doubles,
    external,
    from_code,
    integers,
    letters,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes, Failure, Routine, define
from ckad.tape.types import Type

_dsyevd = external("dsyevd", 11)
_zheevd = external("zheevd", 13)
#: NumPy's words.
NO_EIGENVALUES: Failure = (np.linalg.LinAlgError, "Eigenvalues did not converge")

# eigh(A [b, n, n]; upper, complex) -> [b, n + 1, n]: the eigenvectors as columns, and below them
# the eigenvalues; reads one triangle. The tangent of the result is V^H dA V, of which both are
# derived, and its cotangent what that of A is V ct V^H of.


def _eigh_shape(attrs: Attributes, a: Type) -> Type:
    square_stack("eigh", attrs, 2, a)
    batch, n, _ = a.shape
    return a.with_shape((batch, n + 1, n))


def _eigh(words: int, arrays: int, work: int) -> int:
    upper, is_complex, planes, n = integers(words, 4)
    out, a = integers(arrays, 2)
    batch, width, step = planes >> is_complex, 1 + is_complex, 8 * (n + 1) * n
    text, sizes = letters(work + 48, 2), set_sizes(work, n, n)
    text[0], text[1] = V, U if upper else L
    sizes[4], sizes[5], sizes[6] = _length_in_code(n, is_complex), 3 + 5 * n, 1 + 5 * n + 2 * n * n
    z = work + HEAD
    values = z + 8 * width * n * n
    space = values + 8 * n
    more = space + 8 * width * _length_in_code(n, is_complex)
    reals = more + 8 * (3 + 5 * n)
    for k in range(batch):
        at, im = a + 8 * k * n * n, a + 8 * (batch + k) * n * n
        to, to_im = out + k * step, out + (batch + k) * step
        if is_complex:
            turned_parts(z, at, im, n, n)
            _zheevd(work + 48, work + 49, work, z, work + 4, values, space, work + 16, reals,
                    work + 24, more, work + 20, work + 8)  # fmt: skip
            turned_into_parts(to, to_im, z, n, n)
            doubles(to_im + 8 * n * n, n)[:] = 0.0
        else:
            turned(z, at, n, n)
            _dsyevd(work + 48, work + 49, work, z, work + 4, values, space, work + 16, more,
                    work + 20, work + 8)  # fmt: skip
            turned(to, z, n, n)
        if sizes[2]:
            return NO_CONVERGENCE
        copy(doubles(to + 8 * n * n, n), doubles(values, n))
    return 0


def _length(n: int, is_complex: int) -> int:
    """The numbers that LAPACK wants as its workspace."""
    return max(2 * n + n * n if is_complex else 1 + 6 * n + 2 * n * n, BLOCK * (n + 2))


_length_in_code = kernel(_length)


def _eigh_workspace(attrs: Attributes, a: Type) -> int:
    n, is_complex = a.shape[1], attrs[1]
    numbers = (1 + is_complex) * (n * n + _length(n, is_complex)) + n
    return int(8 * (numbers + 3 + 5 * n + is_complex * (1 + 5 * n + 2 * n * n)))


_EIGH = compiled(_eigh, _eigh_workspace, {NO_CONVERGENCE: NO_EIGENVALUES})


def _eigh_jvp(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
    assert tangents[0] is not None
    upper, is_complex = attrs
    tangent, v = matrix(b, tangents[0], is_complex), _vectors_of(b, out, is_complex)
    half = (tangent.H if upper else tangent).lower(0.5, 0.0)
    return below_nothing(v.H @ ((half + half.H) @ v), out, is_complex)


def _eigh_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    upper, is_complex = attrs
    v = _vectors_of(b, out, is_complex)
    whole = (v @ first_rows(b, ct, is_complex)) @ v.H
    lower = (whole + whole.H).lower(0.5, 0.0)
    return ((lower.H if upper else lower).stacked(is_complex),)


eigh = from_code(
    "eigh",
    _eigh_shape,
    _EIGH,
    _eigh_jvp,
    _eigh_vjp,
    lambda attrs, a: 9.0 * a.size * a.shape[1],
)


# eigenvalues(eigh(A); complex) -> [b, 1, n]


def _eigenvalues_shape(attrs: Attributes, pairs: Type) -> Type:
    stacks("eigenvalues", attrs, 1, pairs)
    batch, _, n = pairs.shape
    return pairs.with_shape((batch // (1 + attrs[0]), 1, n))


def _vectors_of(b: Builder, pairs: int, is_complex: int) -> Matrix:
    return matrix(b, b.call(pairs, attrs=(eigenvectors.number, is_complex)), is_complex)


def first_rows(b: Builder, x: int, is_complex: int) -> Matrix:
    """The tangent of A in that of what holds its factors."""
    batch, _, n = b.type(x).shape
    return matrix(b, part(b, x, (0, 0, 0), (batch, n, n)), is_complex)


def below_nothing(x: Matrix, like: int, is_complex: int) -> int:
    """The way back."""
    return placed(x.b, x.stacked(is_complex), (0, 0, 0), x.b.type(like).shape)


def _eigenvalues_jvp(
    b: Builder, tangents: Tangents, out: int, pairs: int, attrs: Attributes
) -> int:
    """dw = diag(V^H dA V)"""
    assert tangents[0] is not None
    return first_rows(b, tangents[0], attrs[0]).diagonal().re


def _eigenvalues_vjp(b: Builder, ct: int, out: int, pairs: int, attrs: Attributes) -> tuple[int]:
    batch, _, n = b.type(ct).shape
    return (below_nothing(eye(b, batch, n) * Matrix(b, ct), pairs, attrs[0]),)


def _eigenvalues_rows(b: Builder, operands: Sequence[int], attrs: Attributes) -> int:
    type = b.type(operands[0])
    last = type.shape[1] - 1
    return part(b, operands[0], (0, last, 0), _eigenvalues_shape(attrs, type).shape)


eigenvalues = define(
    Routine(
        "eigenvalues",
        _eigenvalues_shape,
        lambda attrs, pairs: joined(pairs, attrs[0])[:, -1:].real.copy(),
        _eigenvalues_jvp,
        _eigenvalues_vjp,
        rows=_eigenvalues_rows,
    )
)


# eigenvectors(eigh(A); complex) -> [b, n, n]


def _eigenvectors_shape(attrs: Attributes, pairs: Type) -> Type:
    stacks("eigenvectors", attrs, 1, pairs)
    batch, rows, n = pairs.shape
    need(rows == n + 1, f"eigenvectors of {pairs}")
    return pairs.with_shape((batch, n, n))


def _by_gaps(b: Builder, x: Matrix, pairs: int, is_complex: int, raises: bool) -> Matrix:
    """F * x, F_ij = 1 / (w_j - w_i)"""
    values = Matrix(b, b.call(pairs, attrs=(eigenvalues.number, is_complex)))
    return divided(x, values, Divisor.GAPS, raises)


def _eigenvectors_jvp(
    b: Builder, tangents: Tangents, out: int, pairs: int, attrs: Attributes
) -> int:
    """dV = V (F * (V^H dA V))"""
    assert tangents[0] is not None
    (is_complex,) = attrs
    inner = _by_gaps(b, first_rows(b, tangents[0], is_complex), pairs, is_complex, False)
    return (matrix(b, out, is_complex) @ inner).stacked(is_complex)


def _eigenvectors_vjp(b: Builder, ct: int, out: int, pairs: int, attrs: Attributes) -> tuple[int]:
    """F * (V^H ct)"""
    (is_complex,) = attrs
    inner = matrix(b, out, is_complex).H @ matrix(b, ct, is_complex)
    return (below_nothing(_by_gaps(b, inner, pairs, is_complex, True), pairs, is_complex),)


def _eigenvectors_rows(b: Builder, operands: Sequence[int], attrs: Attributes) -> int:
    (pairs,) = operands
    return part(b, pairs, (0, 0, 0), _eigenvectors_shape(attrs, b.type(pairs)).shape)


eigenvectors = define(
    Routine(
        "eigenvectors",
        _eigenvectors_shape,
        lambda attrs, pairs: np.ascontiguousarray(pairs[:, :-1]),
        _eigenvectors_jvp,
        _eigenvectors_vjp,
        rows=_eigenvectors_rows,
    )
)
