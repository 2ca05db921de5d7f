"""Eigenvalues and eigenvectors of matrices of any kind, on stacks in C order.

Formulas of derivatives: C. Boeddeker et al., "On the computation of complex-valued gradients with
application to statistically optimum beamforming", 2017. Where eigenvalues are equal, ``gaps`` says
what becomes of the derivatives of eigenvectors; a defective matrix, which has too few of them, has
no derivatives of eigenvalues either, and stops the program.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.gaps import Divisor, closeness, divided, gaps_between
from ckad.rules.routines.dense.matrices import (
    Matrix,
    flags,
    joined,
    matrices,
    matrix,
    need,
    parted,
    square,
)
from ckad.rules.routines.dense.spectral import below_nothing, first_rows
from ckad.tape.builder import Builder
from ckad.tape.routines import Routine, define
from ckad.tape.types import Type

Attributes = Sequence[int]

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
    return below_nothing(matrix(b, tangents[0], attrs[0]), out, 1)


def _eig_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    of_matrix = first_rows(b, ct, 1)
    return ((of_matrix if attrs[0] else of_matrix.real).stacked(attrs[0]),)


eig = define(
    Routine(
        "eig", _eig_shape, _eig, _eig_jvp, _eig_vjp, lambda attrs, a: 25.0 * a.size * a.shape[1]
    )
)


# left_vectors(V [2 b, n, n]) -> V^-H, of whose columns left eigenvectors are


def _left_vectors_shape(attrs: Attributes, v: Type) -> Type:
    flags("left_vectors", attrs, 0)
    matrices("left_vectors", v)
    square("left_vectors", v)
    return v


def _left_vectors(attrs: Attributes, v: np.ndarray) -> np.ndarray:
    left = np.linalg.inv(joined(v, 1).conj().swapaxes(1, 2))
    # an eigenvalue changes by this much more than the matrix does
    most = np.max(np.linalg.norm(left, axis=1), initial=0.0)
    if most * closeness(v.shape[1]) >= 1.0:
        raise np.linalg.LinAlgError(
            f"eigenvectors are the same to rounding (condition {most:.1e}): there are fewer than "
            "rows, and the eigenvalues have no derivative. np.trace of powers of the matrix, or "
            "np.linalg.det, have one"
        )
    return parted(left, 1)


def _left_vectors_jvp(
    b: Builder, tangents: Tangents, out: int, v: int, attrs: Attributes
) -> int | None:
    assert tangents[0] is not None
    left = matrix(b, out, 1)
    return (-(left @ (matrix(b, tangents[0], 1).H @ left))).stacked(1)


def _left_vectors_vjp(b: Builder, ct: int, out: int, v: int, attrs: Attributes) -> tuple[int]:
    left = matrix(b, out, 1)
    return ((-(left @ (matrix(b, ct, 1).H @ left))).stacked(1),)


left_vectors = define(
    Routine(
        "left_vectors",
        _left_vectors_shape,
        _left_vectors,
        _left_vectors_jvp,
        _left_vectors_vjp,
        lambda attrs, v: 4.0 * v.size * v.shape[1],
    )
)

# eig_gaps(w [2 b, 1, n], V^-H) -> w_j - w_i [2 b, n, n], 0 where they are equal to rounding, which
# moves them the more, the less their vectors differ from others


def _eig_gaps_shape(attrs: Attributes, w: Type, left: Type) -> Type:
    flags("eig_gaps", attrs, 0)
    matrices("eig_gaps", w, left)
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


# eig_values(eig(A)) -> [2 b, 1, n]


def _eig_values_shape(attrs: Attributes, pairs: Type) -> Type:
    flags("eig_values", attrs, 0)
    matrices("eig_values", pairs)
    return pairs.with_shape((pairs.shape[0], 1, pairs.shape[2]))


def _columns(b: Builder, pairs: int) -> Matrix:
    return matrix(b, b.call(pairs, attrs=(eig_vectors.number,)), 1)


def _left_columns(b: Builder, pairs: int) -> Matrix:
    """V^-H, which left eigenvectors are the columns of"""
    return matrix(b, b.call(_columns(b, pairs).stacked(1), attrs=(left_vectors.number,)), 1)


def _eig_values_jvp(b: Builder, tangents: Tangents, out: int, pairs: int, attrs: Attributes) -> int:
    """dw = diag(V^-1 dA V)"""
    assert tangents[0] is not None
    change = first_rows(b, tangents[0], 1) @ _columns(b, pairs)
    return (_left_columns(b, pairs).conj * change).sum(1).stacked(1)


def _eig_values_vjp(b: Builder, ct: int, out: int, pairs: int, attrs: Attributes) -> tuple[int]:
    """ct_A = V^-H diag(ct) V^H"""
    found = (_left_columns(b, pairs) * matrix(b, ct, 1)) @ _columns(b, pairs).H
    return (below_nothing(found, pairs, 1),)


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


def _by_eig_gaps(b: Builder, x: Matrix, pairs: int, left: Matrix, raises: bool) -> Matrix:
    """F * x, or, to raise, that with F conjugated: the gaps are"""
    values = b.call(pairs, attrs=(eig_values.number,))
    gaps = matrix(b, b.call(values, left.stacked(1), attrs=(eig_gaps.number,)), 1)
    squares = (gaps * gaps.conj).real
    return divided(x, squares, Divisor.ELEMENTS, raises) * (gaps if raises else gaps.conj)


def _eig_vectors_jvp(
    b: Builder, tangents: Tangents, out: int, pairs: int, attrs: Attributes
) -> int:
    """dV = V (F * (V^-1 dA V)) without what changes the length and the phase of a column"""
    assert tangents[0] is not None
    v, left = matrix(b, out, 1), _left_columns(b, pairs)
    inner = left.H @ (first_rows(b, tangents[0], 1) @ v)
    change = v @ _by_eig_gaps(b, inner.off_diagonal(), pairs, left, False)
    length = (v.conj * change).sum(1).real
    largest = _largest(v)
    phase = (change.imaginary() * largest).sum(1).over((v.real * largest).sum(1))
    return (change - v * (length + phase.times_i())).stacked(1)


def _eig_vectors_vjp(b: Builder, ct: int, out: int, pairs: int, attrs: Attributes) -> tuple[int]:
    v, z, left = matrix(b, out, 1), matrix(b, ct, 1), _left_columns(b, pairs)
    along = (v.conj * z).sum(1)
    largest = _largest(v)
    phase = along.imaginary().over((v.real * largest).sum(1))
    z = z - (v * along.real + (largest * phase).times_i())
    inner = _by_eig_gaps(b, (v.H @ z).off_diagonal(), pairs, left, True)
    return (below_nothing(left @ (inner @ v.H), pairs, 1),)


eig_vectors = define(
    Routine(
        "eig_vectors",
        _eig_vectors_shape,
        lambda attrs, pairs: np.ascontiguousarray(pairs[:, :-1]),
        _eig_vectors_jvp,
        _eig_vectors_vjp,
    )
)
