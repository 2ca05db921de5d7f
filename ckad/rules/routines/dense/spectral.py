"""Eigenvalues and eigenvectors, real or complex, on stacks of matrices in C order.

Formulas of derivatives: M. B. Giles, "An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation", 2008; and C. Boeddeker et al., "On the
computation of complex-valued gradients with application to statistically optimum beamforming",
2017. Eigenvectors of equal eigenvalues have no derivative: where it is asked for, it is not finite.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
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
    flags,
    gaps_between,
    joined,
    matrices,
    matrix,
    need,
    part,
    parted,
    placed,
    square,
    type_of_array,
)
from ckad.rules.routines.dense.systems import inverse_times
from ckad.rules.routines.memory import (
    HEAD,
    compiled,
    copy,
    doubles,
    external,
    integers,
    letters,
    run,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import Failure, Routine, define
from ckad.tape.types import Type

Attributes = Sequence[int]

_dsyevd = external("dsyevd", 11)
_zheevd = external("zheevd", 13)
#: NumPy's words.
NO_EIGENVALUES: Failure = (np.linalg.LinAlgError, "Eigenvalues did not converge")

# --- Hermitian matrices ---------------------------------------------------------------------------

# eigh(A [b, n, n]; upper, complex) -> [b, n + 1, n]: the eigenvectors as columns, and below them
# the eigenvalues; reads one triangle. The tangent of the result is V^H dA V, of which both are
# derived, and its cotangent what that of A is V ct V^H of.


def _eigh_shape(attrs: Attributes, a: Type) -> Type:
    flags("eigh", attrs, 2)
    matrices("eigh", a)
    square("eigh", a)
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
    return _below_nothing(v.H @ ((half + half.H) @ v), out, is_complex)


def _eigh_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    upper, is_complex = attrs
    v = _vectors_of(b, out, is_complex)
    whole = (v @ _first_rows(b, ct, is_complex)) @ v.H
    lower = (whole + whole.H).lower(0.5, 0.0)
    return ((lower.H if upper else lower).stacked(is_complex),)


eigh = define(
    Routine(
        "eigh",
        _eigh_shape,
        lambda attrs, a: run(_EIGH, _eigh_shape(attrs, type_of_array(a)), attrs, a),
        _eigh_jvp,
        _eigh_vjp,
        lambda attrs, a: 9.0 * a.size * a.shape[1],
        compiled=_EIGH,
    )
)


# eigenvalues(eigh(A); complex) -> [b, 1, n]


def _eigenvalues_shape(attrs: Attributes, pairs: Type) -> Type:
    flags("eigenvalues", attrs, 1)
    matrices("eigenvalues", pairs)
    batch, _, n = pairs.shape
    return pairs.with_shape((batch // (1 + attrs[0]), 1, n))


def _vectors_of(b: Builder, pairs: int, is_complex: int) -> Matrix:
    return matrix(b, b.call(pairs, attrs=(eigenvectors.number, is_complex)), is_complex)


def _first_rows(b: Builder, x: int, is_complex: int) -> Matrix:
    """The tangent of A in that of what holds its factors."""
    batch, _, n = b.type(x).shape
    return matrix(b, part(b, x, (0, 0, 0), (batch, n, n)), is_complex)


def _below_nothing(x: Matrix, like: int, is_complex: int) -> int:
    """The way back."""
    return placed(x.b, x.stacked(is_complex), (0, 0, 0), x.b.type(like).shape)


def _eigenvalues_jvp(
    b: Builder, tangents: Tangents, out: int, pairs: int, attrs: Attributes
) -> int:
    """dw = diag(V^H dA V)"""
    assert tangents[0] is not None
    return _first_rows(b, tangents[0], attrs[0]).diagonal().re


def _eigenvalues_vjp(b: Builder, ct: int, out: int, pairs: int, attrs: Attributes) -> tuple[int]:
    batch, _, n = b.type(ct).shape
    return (_below_nothing(eye(b, batch, n) * Matrix(b, ct), pairs, attrs[0]),)


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
    flags("eigenvectors", attrs, 1)
    matrices("eigenvectors", pairs)
    batch, rows, n = pairs.shape
    need(rows == n + 1, f"eigenvectors of {pairs}")
    return pairs.with_shape((batch, n, n))


def _gaps(b: Builder, pairs: int, is_complex: int) -> Matrix:
    """w_j - w_i"""
    return gaps_between(Matrix(b, b.call(pairs, attrs=(eigenvalues.number, is_complex))))


def _eigenvectors_jvp(
    b: Builder, tangents: Tangents, out: int, pairs: int, attrs: Attributes
) -> int:
    """dV = V (F * (V^H dA V)), F_ij = 1 / (w_j - w_i)"""
    assert tangents[0] is not None
    inner = _first_rows(b, tangents[0], attrs[0]).off_diagonal().over(_gaps(b, pairs, attrs[0]))
    return (matrix(b, out, attrs[0]) @ inner).stacked(attrs[0])


def _eigenvectors_vjp(b: Builder, ct: int, out: int, pairs: int, attrs: Attributes) -> tuple[int]:
    """F * (V^H ct)"""
    inner = (matrix(b, out, attrs[0]).H @ matrix(b, ct, attrs[0])).off_diagonal()
    return (_below_nothing(inner.over(_gaps(b, pairs, attrs[0])), pairs, attrs[0]),)


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

# --- matrices of any kind -------------------------------------------------------------------------

# eig(A; complex) -> [2 b, n + 1, n], complex: eigenvectors, and eigenvalues below them. Its
# derivatives, complex as well, are those of A.


def _eig_shape(attrs: Attributes, a: Type) -> Type:
    flags("eig", attrs, 1)
    matrices("eig", a)
    square("eig", a)
    batch, n, _ = a.shape
    return a.with_shape((batch * (2 - attrs[0]), n + 1, n))


def _eig(attrs: Attributes, a: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eig(joined(a, attrs[0]))
    return parted(np.concatenate([vectors, values[:, None]], 1).astype(complex), 1)


def _eig_jvp(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
    assert tangents[0] is not None
    return _below_nothing(matrix(b, tangents[0], attrs[0]), out, 1)


def _eig_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    of_matrix = _first_rows(b, ct, 1)
    return ((of_matrix if attrs[0] else of_matrix.real).stacked(attrs[0]),)


eig = define(
    Routine(
        "eig", _eig_shape, _eig, _eig_jvp, _eig_vjp, lambda attrs, a: 25.0 * a.size * a.shape[1]
    )
)


# eig_values(eig(A)) -> [2 b, 1, n]


def _eig_values_shape(attrs: Attributes, pairs: Type) -> Type:
    flags("eig_values", attrs, 0)
    matrices("eig_values", pairs)
    return pairs.with_shape((pairs.shape[0], 1, pairs.shape[2]))


def _columns(b: Builder, pairs: int) -> Matrix:
    return matrix(b, b.call(pairs, attrs=(eig_vectors.number,)), 1)


def _eig_values_jvp(b: Builder, tangents: Tangents, out: int, pairs: int, attrs: Attributes) -> int:
    """dw = diag(V^-1 dA V)"""
    assert tangents[0] is not None
    v = _columns(b, pairs)
    inner = inverse_times(v, _first_rows(b, tangents[0], 1) @ v)
    return inner.diagonal().stacked(1)


def _eig_values_vjp(b: Builder, ct: int, out: int, pairs: int, attrs: Attributes) -> tuple[int]:
    """ct_A = V^-H diag(ct) V^H"""
    v = _columns(b, pairs)
    inner = matrix(b, ct, 1).T * v.H
    return (_below_nothing(inverse_times(v, inner, adjoint=True), pairs, 1),)


eig_values = define(
    Routine(
        "eig_values",
        _eig_values_shape,
        lambda attrs, pairs: np.ascontiguousarray(pairs[:, -1:]),
        _eig_values_jvp,
        _eig_values_vjp,
    )
)


# eig_vectors(eig(A)) -> [2 b, n, n]: columns of length one, whose largest element is real


def _eig_vectors_shape(attrs: Attributes, pairs: Type) -> Type:
    flags("eig_vectors", attrs, 0)
    matrices("eig_vectors", pairs)
    return pairs.with_shape((pairs.shape[0], pairs.shape[1] - 1, pairs.shape[2]))


def _largest(v: Matrix) -> Matrix:
    """1 at the element of each column that LAPACK makes real, the largest; 0 elsewhere."""
    b, n = v.b, v.shape[1]
    assert v.im is not None
    size = b.add(b.mul(v.re, v.re), b.mul(v.im, v.im))
    is_real = b.eq(v.im, b.full_like(v.im, 0.0))
    place = b.argmax(b.select(is_real, size, b.full_like(size, -1.0)), attrs=(1,))
    batch = v.shape[0]
    chosen = b.broadcast_to(b.reshape_to(place, (batch, 1, n)), v.shape)
    rows = b.broadcast_to(b.const(np.arange(n).reshape(1, n, 1)), v.shape)
    return Matrix(b, b.select(b.eq(rows, chosen), b.full_like(size, 1.0), b.full_like(size, 0.0)))


def _eig_gaps(b: Builder, pairs: int) -> Matrix:
    return gaps_between(matrix(b, b.call(pairs, attrs=(eig_values.number,)), 1))


def _eig_vectors_jvp(
    b: Builder, tangents: Tangents, out: int, pairs: int, attrs: Attributes
) -> int:
    """dV = V (F * (V^-1 dA V)) without what changes the length and the phase of a column"""
    assert tangents[0] is not None
    v = matrix(b, out, 1)
    inner = inverse_times(v, _first_rows(b, tangents[0], 1) @ v).off_diagonal()
    change = v @ inner.over(_eig_gaps(b, pairs))
    length = (v.conj * change).sum(1).real
    largest = _largest(v)
    phase = (change.imaginary() * largest).sum(1).over((v.real * largest).sum(1))
    return (change - v * (length + phase.times_i())).stacked(1)


def _eig_vectors_vjp(b: Builder, ct: int, out: int, pairs: int, attrs: Attributes) -> tuple[int]:
    v, z = matrix(b, out, 1), matrix(b, ct, 1)
    along = (v.conj * z).sum(1)
    largest = _largest(v)
    phase = along.imaginary().over((v.real * largest).sum(1))
    z = z - (v * along.real + (largest * phase).times_i())
    # F conjugated: the gaps are
    inner = (v.H @ z).off_diagonal().over(_eig_gaps(b, pairs).conj)
    return (_below_nothing(inverse_times(v, inner @ v.H, adjoint=True), pairs, 1),)


eig_vectors = define(
    Routine(
        "eig_vectors",
        _eig_vectors_shape,
        lambda attrs, pairs: np.ascontiguousarray(pairs[:, :-1]),
        _eig_vectors_jvp,
        _eig_vectors_vjp,
    )
)
