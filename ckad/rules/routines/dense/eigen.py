"""Eigenvalues and eigenvectors of matrices of any kind, on stacks in C order.

Formulas of derivatives: C. Boeddeker et al., "On the computation of complex-valued gradients with
application to statistically optimum beamforming", 2017. Where eigenvalues are equal, ``gaps`` says
what becomes of the derivatives of eigenvectors; a defective matrix, which has too few of them, has
no derivatives of eigenvalues either, and stops the program.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.gaps import Divisor, closeness, divided, eig_gaps
from ckad.rules.routines.dense.lapack import (
    BLOCK,
    NO_CONVERGENCE,
    N,
    V,
    set_sizes,
    turned,
    turned_into_parts,
    turned_parts,
    zgetrf,
)
from ckad.rules.routines.dense.matrices import Matrix, matrix, part, square_stack, stacks
from ckad.rules.routines.dense.spectral import NO_EIGENVALUES, below_nothing, first_rows
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

_dgeev = external("dgeev", 14)
_zgeev = external("zgeev", 14)
_zgetri = external("zgetri", 7)
_NOT_FINITE, _DEFECTIVE = 2, 1
#: NumPy's words.
_NO_NUMBERS: Failure = (np.linalg.LinAlgError, "Array must not contain infs or NaNs")
_SAME_VECTORS: Failure = (
    np.linalg.LinAlgError,
    "eigenvectors are the same to rounding: there are fewer than rows, and the eigenvalues have no "
    "derivative. np.trace of powers of the matrix, or np.linalg.det, have one",
)

# eig(A; complex) -> [2 b, n + 1, n], complex: eigenvectors, and eigenvalues below them. Its
# derivatives, complex as well, are those of A.


def _eig_shape(attrs: Attributes, a: Type) -> Type:
    square_stack("eig", attrs, 1, a)
    batch, n, _ = a.shape
    return a.with_shape((batch * (2 - attrs[0]), n + 1, n))


def _eig(words: int, arrays: int, work: int) -> int:
    is_complex, planes, n = integers(words, 3)
    out, a = integers(arrays, 2)
    batch, size, step = planes >> is_complex, n * n, 8 * (n + 1) * n
    given = doubles(a, planes * size)
    for k in range(planes * size):
        if not abs(given[k]) < np.inf:
            return _NOT_FINITE
    text, sizes = letters(work + 48, 2), set_sizes(work, n, n)
    text[0], text[1] = N, V
    sizes[3] = 2 * BLOCK * (n + 1)
    z = work + HEAD
    vectors, values = z + 16 * size, z + 32 * size
    reals = values + 16 * n
    space = reals + 16 * n
    for k in range(batch):
        at, im = a + 8 * k * size, a + 8 * (batch + k) * size
        to, to_im = out + k * step, out + (batch + k) * step
        if is_complex:
            turned_parts(z, at, im, n, n)
            _zgeev(work + 48, work + 49, work, z, work + 4, values, vectors, work + 4, vectors,
                   work + 4, space, work + 12, reals, work + 8)  # fmt: skip
            turned_into_parts(to, to_im, vectors, n, n)
            turned_into_parts(to + 8 * size, to_im + 8 * size, values, n, 1)
        else:
            turned(z, at, n, n)
            _dgeev(work + 48, work + 49, work, z, work + 4, values, values + 8 * n, vectors,
                   work + 4, vectors, work + 4, space, work + 12, work + 8)  # fmt: skip
            copy(doubles(to + 8 * size, n), doubles(values, n))
            copy(doubles(to_im + 8 * size, n), doubles(values + 8 * n, n))
            _from_pairs(to, to_im, vectors, values + 8 * n, n)
        if sizes[2]:
            return NO_CONVERGENCE
    return 0


@kernel
def _from_pairs(re: int, im: int, vectors: int, imaginary: int, n: int) -> None:
    """Columns of a real matrix's eigenvectors; of two conjugate ones LAPACK gives both parts."""
    real, imag, source = doubles(re, n * n), doubles(im, n * n), doubles(vectors, n * n)
    of_values = doubles(imaginary, n)
    second = 0
    for j in range(n):
        own, other, sign = j * n, 0, 0.0
        if second:
            own, other, sign, second = j * n - n, j * n, -1.0, 0
        elif of_values[j] != 0.0:
            other, sign, second = j * n + n, 1.0, 1
        for i in range(n):
            real[i * n + j] = source[own + i]
            imag[i * n + j] = sign * source[other + i] if other else 0.0


def _eig_workspace(attrs: Attributes, a: Type) -> int:
    n = a.shape[1]
    return 8 * (4 * n * n + 4 * n + 4 * BLOCK * (n + 1))


_EIG = compiled(_eig, _eig_workspace, {NO_CONVERGENCE: NO_EIGENVALUES, _NOT_FINITE: _NO_NUMBERS})


def _eig_jvp(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
    assert tangents[0] is not None
    return below_nothing(matrix(b, tangents[0], attrs[0]), out, 1)


def _eig_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    of_matrix = first_rows(b, ct, 1)
    return ((of_matrix if attrs[0] else of_matrix.real).stacked(attrs[0]),)


eig = from_code(
    "eig",
    _eig_shape,
    _EIG,
    _eig_jvp,
    _eig_vjp,
    lambda attrs, a: 25.0 * a.size * a.shape[1],
)


# left_vectors(V [2 b, n, n]) -> V^-H, of whose columns left eigenvectors are


def _left_vectors_shape(attrs: Attributes, v: Type) -> Type:
    square_stack("left_vectors", attrs, 0, v)
    return v


_closeness = kernel(closeness)


def _left_vectors(words: int, arrays: int, work: int) -> int:
    planes, n = integers(words, 2)
    out, v = integers(arrays, 2)
    batch, size = planes >> 1, n * n
    sizes = set_sizes(work, n, n)
    sizes[3] = BLOCK * (n + 1)
    z, pivots = work + HEAD, work + HEAD + 16 * size
    space = pivots + 8 * n
    for k in range(batch):
        # the rows of conj(V) are, as LAPACK reads them, the columns of V^H
        target, re, im = doubles(z, 2 * size), doubles(v + 8 * k * size, size), v + 8 * batch * size
        imag = doubles(im + 8 * k * size, size)
        for i in range(size):
            target[2 * i], target[2 * i + 1] = re[i], -imag[i]
        zgetrf(work, work, z, work + 4, pivots, work + 8)
        if sizes[2]:
            return _DEFECTIVE
        _zgetri(work, z, work + 4, pivots, space, work + 12, work + 8)
        if _longest(z, n) * _closeness(n) >= 1.0:
            return _DEFECTIVE
        turned_into_parts(out + 8 * k * size, out + 8 * (batch + k) * size, z, n, n)
    return 0


@kernel
def _longest(z: int, n: int) -> float:
    """The largest norm of a left eigenvector: an eigenvalue changes by so much more than the matrix
    does."""
    longest = 0.0
    for j in range(n):
        column, squares = doubles(z + 16 * j * n, 2 * n), 0.0
        for i in range(2 * n):
            squares += column[i] * column[i]
        longest = max(longest, squares)
    return float(np.sqrt(longest))


def _left_vectors_workspace(attrs: Attributes, v: Type) -> int:
    n = v.shape[1]
    return 8 * (2 * n * n + n + 2 * BLOCK * (n + 1))


_LEFT_VECTORS = compiled(_left_vectors, _left_vectors_workspace, {_DEFECTIVE: _SAME_VECTORS})


def _left_vectors_jvp(
    b: Builder, tangents: Tangents, out: int, v: int, attrs: Attributes
) -> int | None:
    assert tangents[0] is not None
    left = matrix(b, out, 1)
    return (-(left @ (matrix(b, tangents[0], 1).H @ left))).stacked(1)


def _left_vectors_vjp(b: Builder, ct: int, out: int, v: int, attrs: Attributes) -> tuple[int]:
    left = matrix(b, out, 1)
    return ((-(left @ (matrix(b, ct, 1).H @ left))).stacked(1),)


left_vectors = from_code(
    "left_vectors",
    _left_vectors_shape,
    _LEFT_VECTORS,
    _left_vectors_jvp,
    _left_vectors_vjp,
    lambda attrs, v: 4.0 * v.size * v.shape[1],
)

# eig_values(eig(A)) -> [2 b, 1, n]


def _eig_values_shape(attrs: Attributes, pairs: Type) -> Type:
    stacks("eig_values", attrs, 0, pairs)
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


def _eig_values_rows(b: Builder, operands: Sequence[int], attrs: Attributes) -> int:
    type = b.type(operands[0])
    last = type.shape[1] - 1
    return part(b, operands[0], (0, last, 0), _eig_values_shape(attrs, type).shape)


eig_values = define(
    Routine(
        "eig_values",
        _eig_values_shape,
        lambda attrs, pairs: np.ascontiguousarray(pairs[:, -1:]),
        _eig_values_jvp,
        _eig_values_vjp,
        rows=_eig_values_rows,
    )
)


# eig_vectors(eig(A)) -> [2 b, n, n]: columns of length one, whose largest element is real


def _eig_vectors_shape(attrs: Attributes, pairs: Type) -> Type:
    stacks("eig_vectors", attrs, 0, pairs)
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


def _eig_vectors_rows(b: Builder, operands: Sequence[int], attrs: Attributes) -> int:
    (pairs,) = operands
    return part(b, pairs, (0, 0, 0), _eig_vectors_shape(attrs, b.type(pairs)).shape)


eig_vectors = define(
    Routine(
        "eig_vectors",
        _eig_vectors_shape,
        lambda attrs, pairs: np.ascontiguousarray(pairs[:, :-1]),
        _eig_vectors_jvp,
        _eig_vectors_vjp,
        rows=_eig_vectors_rows,
    )
)
