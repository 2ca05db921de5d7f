"""Determinants by LU, real or complex, on stacks of matrices."""

from __future__ import annotations

import numpy as np

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.lapack import divided, parted_to
from ckad.rules.routines.dense.matrices import (
    Matrix,
    eye,
    matrix,
    need,
    part,
    placed,
    square_stack,
    stacks,
)
from ckad.rules.routines.dense.systems import (
    inverse_times,
    of_factors,
    of_matrix,
    solved,
    substitute_unit,
)
from ckad.rules.routines.memory import (
    HEAD,
    compiled,
    complexes,
    copy,
    doubles,
    from_code,
    integers,
)
from ckad.tape.builder import Builder
from ckad.tape.reasons import Reason
from ckad.tape.routines import Attributes, mark
from ckad.tape.types import DType, Type

# --- determinants by LU --------------------------------------------------------------------------

# slogdet(lu(A); complex) -> [b, 1, 2]: the sign of the determinant, and the logarithm of its size;
# [b, 1, 3] with both parts of the sign if it is complex


def _slogdet_shape(attrs: Attributes, factors: Type) -> Type:
    stacks("slogdet", attrs, 1, factors)
    return factors.with_shape((factors.shape[0] // (1 + attrs[0]), 1, 2 + attrs[0]))


def _slogdet(words: int, arrays: int, work: int) -> int:
    is_complex, planes, _, n = integers(words, 4)
    out, factors = integers(arrays, 2)
    for k in range(planes >> is_complex):
        to = doubles(out + 8 * k * (2 + is_complex), 2 + is_complex)
        sign, total = _sign_and_log(_factors(factors, k, n, is_complex), n, is_complex)
        to[is_complex], to[0], to[1 + is_complex] = sign.imag, sign.real, total
    return 0


@kernel
def _factors(factors: int, k: int, n: int, is_complex: int) -> np.ndarray:
    size = (n + 1) * n << is_complex
    return doubles(factors + 8 * k * size, size)


@kernel
def _number(x: np.ndarray, at: int, is_complex: int) -> complex:
    return complex(x[2 * at], x[2 * at + 1]) if is_complex else complex(x[at], 0.0)


@kernel
def _sign_and_log(f: np.ndarray, n: int, is_complex: int) -> tuple[complex, float]:
    """The sign of a determinant, and the logarithm of its size."""
    sign, total = 1.0 + 0.0j, 0.0
    for i in range(n):
        pivot = _number(f, i * (n + 1), is_complex)
        size = abs(pivot)
        if f[(n * n + i) << is_complex] != i:
            sign = -sign
        sign = sign * (pivot / size) if size != 0.0 else 0.0 + 0.0j
        total += np.log(size)
    return sign, total


_SLOGDET = compiled(_slogdet, lambda attrs, f: 0, calls_blas=False)


def _inverse_adjoint(b: Builder, factors: int, is_complex: int) -> Matrix:
    batch, _, n = b.type(factors).shape
    ones = eye(b, batch >> is_complex, n)
    return solved(b, factors, ones, True, is_complex)


def _slogdet_jvp(
    b: Builder, tangents: Tangents, out: int, factors: int, attrs: Attributes
) -> int | None:
    """d log det A = tr(A^-1 dA), of which the imaginary part turns the sign"""
    assert tangents[0] is not None
    (is_complex,) = attrs
    inverse = _inverse_adjoint(b, factors, is_complex)
    trace = (inverse.conj * matrix(b, of_matrix(b, tangents[0]), is_complex)).sum(1).sum(2)
    shape = b.type(out).shape
    size = placed(b, trace.re, (0, 0, 1 + is_complex), shape)
    if not is_complex:
        return size
    sign, angle = _sign(b, out), trace.imaginary()
    parts = -sign.imaginary() * angle, sign.real * angle
    return b.add(size, placed(b, b.concat(*(v.re for v in parts), attrs=(2,)), (0, 0, 0), shape))


def _sign(b: Builder, x: int) -> Matrix:
    batch = b.type(x).shape[0]
    re, im = (part(b, x, (0, 0, k), (batch, 1, 1)) for k in (0, 1))
    return Matrix(b, re, im)


def _slogdet_vjp(b: Builder, ct: int, out: int, factors: int, attrs: Attributes) -> tuple[int]:
    (is_complex,) = attrs
    inverse = _inverse_adjoint(b, factors, is_complex)
    batch = b.type(ct).shape[0]
    weight = Matrix(b, part(b, ct, (0, 0, 1 + is_complex), (batch, 1, 1)))
    if is_complex:
        along = _sign(b, out).conj * _sign(b, ct)
        weight = Matrix(b, weight.re, along.im)
    return (of_factors(b, (inverse * weight).stacked(is_complex), factors),)


slogdet = from_code(
    "slogdet",
    _slogdet_shape,
    _SLOGDET,
    jvp=_slogdet_jvp,
    vjp=_slogdet_vjp,
)


# regular(pivots [b, n, 1], pivots, flag) -> pivots, of matrices that are eliminated on the tape. To
# derive it stops the program where the flag is true: it is no matter of the value that a matrix is
# singular. As a mark it is derived by what follows its first operand.


def _regular_shape(attrs: Attributes, pivots: Type, again: Type, singular: Type) -> Type:
    fits = not attrs and pivots == again and singular == Type(DType.I64, ())
    need(fits, f"regular of {pivots}, {again} and {singular}")
    return pivots


def _checked(b: Builder, x: int, singular: int) -> int:
    """``x``, which is computed if the flag is false."""
    zero = b.convert(b.wrap(singular, attrs=(1, Reason.SINGULAR)), type=Type(DType.F64, ()))
    return b.sub(x, b.broadcast_to(zero, b.type(x).shape))


regular = mark(
    "regular",
    _regular_shape,
    lambda b, tangents, out, x, again, singular, attrs: _checked(b, tangents[1], singular),
    lambda b, ct, out, x, again, singular, attrs: (None, _checked(b, ct, singular), None),
)


# det(lu(A), A; complex) -> [b, 1, 1]: the factors are for the value, A is what is derived by


def _det_shape(attrs: Attributes, factors: Type, a: Type) -> Type:
    stacks("det", attrs, 1, factors, a)
    return a.with_shape((a.shape[0], 1, 1))


def _det(words: int, arrays: int, work: int) -> int:
    is_complex, planes, _, n = integers(words, 4)
    out, factors, _ = integers(arrays, 3)
    batch = planes >> is_complex
    to = doubles(out, planes)
    for k in range(batch):
        sign, total = _sign_and_log(_factors(factors, k, n, is_complex), n, is_complex)
        found = sign * np.exp(total)
        to[k] = found.real
        if is_complex:
            to[batch + k] = found.imag
    return 0


_DET = compiled(_det, lambda attrs, f, a: 0, calls_blas=False)


def _det_jvp(
    b: Builder, tangents: Tangents, out: int, factors: int, a: int, attrs: Attributes
) -> int | None:
    """d det A = tr(adj(A) dA)"""
    if tangents[1] is None:
        return None
    gradient = _gradient_of_det(b, factors, a, attrs)
    return (gradient.conj * matrix(b, tangents[1], attrs[0])).sum(1).sum(2).stacked(attrs[0])


def _gradient_of_det(b: Builder, factors: int, a: int, attrs: Attributes) -> Matrix:
    return matrix(b, b.call(factors, a, attrs=(adjugate.number, *attrs)), attrs[0])


def _det_vjp(
    b: Builder, ct: int, out: int, factors: int, a: int, attrs: Attributes
) -> tuple[None, int]:
    change = _gradient_of_det(b, factors, a, attrs) * matrix(b, ct, attrs[0])
    return None, change.stacked(attrs[0])


det = from_code(
    "det",
    _det_shape,
    _DET,
    _det_jvp,
    _det_vjp,
    lambda attrs, f, a: 30.0 * a.shape[0] * a.shape[1],
)


# adjugate(lu(A), A; complex) -> adj(A)^H: conj(det A) A^-H, but it is there for singular A, too


def _adjugate_shape(attrs: Attributes, factors: Type, a: Type) -> Type:
    square_stack("adjugate", attrs, 1, a)
    return a


#: A pivot of so small a part of the largest one is not divided by.
_SMALL = 1e-6


def _adjugate(words: int, arrays: int, work: int) -> int:
    """A = M N P^T with M lower, N upper of unit diagonal: adj(A)^H is +-adj(M)^H N^-H P^T."""
    is_complex, planes, _, n = integers(words, 4)
    out, factors, _ = integers(arrays, 3)
    batch, size = planes >> is_complex, n * n << is_complex
    for k in range(batch):
        f = _factors(factors, k, n, is_complex)
        space = work + HEAD
        at = space + 16 * size if is_complex else out + 8 * k * size
        x = doubles(at, size)
        x[:] = 0.0
        for i in range(n):
            x[i * (n + 1) << is_complex] = 1.0
        odd = substitute_unit(work, f.ctypes.data, at, n, n, is_complex)
        _times_lower(work, space, f, x, n, is_complex)
        if odd:
            for i in range(size):
                x[i] = -x[i]
        if is_complex:
            parted_to(out, at, k, batch, n * n, 1)
    return 0


@kernel
def _times_lower(
    work: int, space: int, f: np.ndarray, x: np.ndarray, n: int, is_complex: int
) -> None:
    """x <- adj(M)^H x"""
    adj, y = doubles(space, len(x)), doubles(space + 8 * len(x), len(x))
    adj[:] = 0.0
    copy(y, x)
    smallest, largest, product = np.inf, 0.0, 1.0 + 0.0j
    for i in range(n):
        pivot = _number(f, i * (n + 1), is_complex)
        smallest, largest = min(smallest, abs(pivot)), max(largest, abs(pivot))
        product *= pivot
    if smallest > _SMALL * largest:
        divided(work, f.ctypes.data, x.ctypes.data, n, n, 0, 1, 0, is_complex)
        if is_complex:
            _scale(complexes(x.ctypes.data, n * n), product.conjugate())
        else:
            _scale(x, product.real)
    elif is_complex:
        triangle, rows = complexes(f.ctypes.data, n * n), complexes(y.ctypes.data, n * n)
        z = complexes(x.ctypes.data, n * n)
        _times_adjugate(triangle, complexes(adj.ctypes.data, n * n), rows, z, n, 1.0 + 0.0j)
    else:
        _times_adjugate(f, adj, y, x, n, 1.0)


@kernel
def _scale(x: np.ndarray, factor: complex) -> None:
    for i in range(len(x)):
        x[i] *= factor


@kernel
def _times_adjugate(
    f: np.ndarray, adj: np.ndarray, y: np.ndarray, x: np.ndarray, n: int, product: complex
) -> None:
    """x <- adj(M)^H y, by growing M by rows, without a division:
    adj([[M, 0], [r, d]]) = [[d adj(M), 0], [-r adj(M), det M]], with ``product``, a 1, det M"""
    for k in range(n):
        for i in range(k):
            for j in range(i + 1):
                adj[k * n + j] -= f[k * n + i] * adj[i * n + j]
        _scale(adj[: k * n], f[k * (n + 1)])
        adj[k * (n + 1)] = product
        product *= f[k * (n + 1)]
    x[:] = 0.0
    for i in range(n):
        for j in range(i, n):
            for c in range(n):
                x[i * n + c] += np.conj(adj[j * n + i]) * y[j * n + c]


_ADJUGATE = compiled(_adjugate, lambda attrs, f, a: (16 + 32 * attrs[0]) * a.shape[1] ** 2)


def _adjugate_jvp(
    b: Builder, tangents: Tangents, out: int, factors: int, a: int, attrs: Attributes
) -> int | None:
    """dG = conj(tr(A^-1 dA)) G - A^-H dA^H G, which needs the inverse"""
    if tangents[1] is None:
        return None
    x, g, change = (matrix(b, v, attrs[0]) for v in (a, out, tangents[1]))
    trace = inverse_times(x, change).diagonal().sum(2)
    return (g * trace.conj - inverse_times(x, change.H @ g, adjoint=True)).stacked(attrs[0])


def _adjugate_vjp(
    b: Builder, ct: int, out: int, factors: int, a: int, attrs: Attributes
) -> tuple[None, int]:
    """ct_A = (tr(ct^H G) - G ct^H) A^-H"""
    x, g, c = (matrix(b, v, attrs[0]) for v in (a, out, ct))
    trace = (c.conj * g).sum(1).sum(2)
    inner = eye(b, x.shape[0], x.shape[1]) * trace - g @ c.H
    return None, inverse_times(x, inner.H).H.stacked(attrs[0])


adjugate = from_code(
    "adjugate",
    _adjugate_shape,
    _ADJUGATE,
    _adjugate_jvp,
    _adjugate_vjp,
    lambda attrs, f, a: 2.0 * (1 + attrs[0]) * a.size * a.shape[1],
)
