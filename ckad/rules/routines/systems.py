"""Linear systems and determinants by LAPACK's LU, on stacks of matrices in C order.

LAPACK counts by columns and so sees every matrix transposed. Nothing is transposed for it: a
product or a solution of transposes, from the other side, is the same bytes.

Formulas of derivatives: M. B. Giles, "An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation", 2008.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.lapack import (
    SINGULAR,
    divided,
    gathered,
    parted_to,
    set_sizes,
)
from ckad.rules.routines.matrices import (
    Matrix,
    add,
    eye,
    flags,
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
from ckad.rules.routines.memory import HEAD, compiled, doubles, external, integers, run, short_integers
from ckad.tape.builder import Builder
from ckad.tape.routines import Routine, define
from ckad.tape.types import Type

Attributes = Sequence[int]

_dgetrf = external("dgetrf", 6)
_zgetrf = external("zgetrf", 6)
_SINGULAR = 1

# --- LU ------------------------------------------------------------------------------------------

# lu(A [b, n, n]; complex) -> [b, n + 1, n]: the factors of each matrix and its row exchanges, which
# only routines read that take both. To derivatives it is the matrix itself: the tangent of factors
# has that of A in its first n rows, and so has the cotangent. Factors of complex matrices are
# complex numbers in memory.


def _lu_shape(attrs: Attributes, a: Type) -> Type:
    flags("lu", attrs, 1)
    matrices("lu", a)
    square("lu", a)
    batch, n, _ = a.shape
    return a.with_shape((batch, n + 1, n))


def _lu(words: int, arrays: int, work: int) -> int:
    is_complex, planes, n = integers(words, 3)
    out, a = integers(arrays, 2)
    sizes, exchanges = set_sizes(work, n, n), short_integers(work + HEAD, n)
    batch, width = planes >> is_complex, 1 + is_complex
    for k in range(batch):
        at = out + 8 * k * (n + 1) * n * width
        if is_complex:
            gathered(at, a, k, batch, n * n)
            _zgetrf(work, work, at, work + 4, work + HEAD, work + 8)
        else:
            doubles(at, n * n)[:] = doubles(a + 8 * k * n * n, n * n)
            _dgetrf(work, work, at, work + 4, work + HEAD, work + 8)
        last = doubles(at + 8 * width * n * n, width * n)
        last[:] = 0.0
        for i in range(n):
            last[width * i] = exchanges[i] - 1
    return 0


_LU = compiled(_lu, lambda attrs, a: 4 * a.shape[1])


def of_matrix(b: Builder, x: int) -> int:
    """The part of a tangent or cotangent of factors that is the matrix's."""
    batch, rows, n = b.type(x).shape
    return part(b, x, (0, 0, 0), (batch, rows - 1, n))


def of_factors(b: Builder, x: int) -> int:
    """The way back."""
    batch, n, m = b.type(x).shape
    return placed(b, x, (0, 0, 0), (batch, n + 1, m))


lu = define(
    Routine(
        "lu",
        _lu_shape,
        lambda attrs, a: run(_LU, _lu_shape(attrs, type_of_array(a)), attrs, a),
        jvp=lambda b, tangents, out, a, attrs: of_factors(b, tangents[0]),
        vjp=lambda b, ct, out, a, attrs: (of_matrix(b, ct),),
        flops=lambda attrs, a: 2 / 3 * (1 + attrs[0]) * a.size * a.shape[1],
        compiled=_LU,
    )
)

# --- solutions by LU -----------------------------------------------------------------------------

# lu_solve(lu(A), B [b, n, m]; adjoint, complex) -> X with A X = B, or A^H X = B


def solution(name: str, factors: Type, right: Type, n: int) -> Type:
    matrices(name, factors, right)
    need(right.shape[1] == n, f"{name} of {factors} and {right}: {n} rows are needed")
    return right


def _lu_solve_shape(attrs: Attributes, factors: Type, right: Type) -> Type:
    flags("lu_solve", attrs, 2)
    matrices("lu_solve", factors, right)
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
        x = out + 8 * k * n * m
        if is_complex:
            x = work + HEAD
            gathered(x, right, k, batch, n * m)
        else:
            doubles(x, n * m)[:] = doubles(right + 8 * k * n * m, n * m)
        _substitute(work, f, x, last, n, m, adjoint, is_complex)
        if is_complex:
            parted_to(out, x, k, batch, n * m)
    return 0


@kernel
def _substitute(
    work: int, f: int, x: int, last: np.ndarray, n: int, m: int, adjoint: int, is_complex: int
) -> None:
    width = 1 + is_complex
    to = doubles(x, n * m * width)
    if adjoint:
        for i in range(n):
            _exchange(to, m * width, i, int(last[width * i]))
        divided(work, f, x, n, m, 1, 1, 1, is_complex)
        divided(work, f, x, n, m, 0, 1, 0, is_complex)
    else:
        divided(work, f, x, n, m, 0, 0, 0, is_complex)
        divided(work, f, x, n, m, 1, 0, 1, is_complex)
        for i in range(n - 1, -1, -1):
            _exchange(to, m * width, i, int(last[width * i]))


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
    return of_factors(b, change.stacked(is_complex)), of_right


lu_solve = define(
    Routine(
        "lu_solve",
        _lu_solve_shape,
        lambda attrs, f, x: run(_LU_SOLVE, type_of_array(x), attrs, f, x),
        jvp=_lu_solve_jvp,
        vjp=_lu_solve_vjp,
        flops=lambda attrs, f, x: 2.0 * (1 + attrs[1]) * x.size * x.shape[1],
        compiled=_LU_SOLVE,
    )
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


# --- determinants by LU --------------------------------------------------------------------------

# slogdet(lu(A); complex) -> [b, 1, 2]: the sign of the determinant, and the logarithm of its size;
# [b, 1, 3] with both parts of the sign if it is complex


def _slogdet_shape(attrs: Attributes, factors: Type) -> Type:
    flags("slogdet", attrs, 1)
    matrices("slogdet", factors)
    return factors.with_shape((factors.shape[0] // (1 + attrs[0]), 1, 2 + attrs[0]))


def _slogdet(words: int, arrays: int, work: int) -> int:
    is_complex, planes, _, n = integers(words, 4)
    out, factors = integers(arrays, 2)
    batch, width = planes >> is_complex, 1 + is_complex
    for k in range(batch):
        f = doubles(factors + 8 * k * (n + 1) * n * width, (n + 1) * n * width)
        to = doubles(out + 8 * k * (2 + is_complex), 2 + is_complex)
        sign, total = 1.0 + 0.0j, 0.0
        for i in range(n):
            at = width * i * (n + 1)
            pivot = complex(f[at], f[at + 1] if is_complex else 0.0)
            size = abs(pivot)
            if f[width * (n * n + i)] != i:
                sign = -sign
            sign = sign * (pivot / size) if size != 0.0 else 0.0 + 0.0j
            total += np.log(size)
        to[is_complex], to[0], to[1 + is_complex] = sign.imag, sign.real, total
    return 0


_SLOGDET = compiled(_slogdet, lambda attrs, f: 0)


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
    return (of_factors(b, (inverse * weight).stacked(is_complex)),)


slogdet = define(
    Routine(
        "slogdet",
        _slogdet_shape,
        lambda attrs, f: run(_SLOGDET, _slogdet_shape(attrs, type_of_array(f)), attrs, f),
        jvp=_slogdet_jvp,
        vjp=_slogdet_vjp,
        compiled=_SLOGDET,
    )
)


# det(lu(A), A; complex) -> [b, 1, 1]: the factors are for the value, A is what is derived by

def _det_shape(attrs: Attributes, factors: Type, a: Type) -> Type:
    flags("det", attrs, 1)
    matrices("det", factors, a)
    return a.with_shape((a.shape[0], 1, 1))


def _det(attrs: Attributes, factors: np.ndarray, a: np.ndarray) -> np.ndarray:
    found = run(_SLOGDET, _slogdet_shape(attrs, type_of_array(factors)), attrs, factors)
    sign = joined(found[..., : 1 + attrs[0]].swapaxes(0, 2), attrs[0]).swapaxes(0, 2)
    return parted(sign * np.exp(found[..., -1:]), attrs[0])


def _det_jvp(b: Builder, tangents: Tangents, out: int, factors: int, a: int, attrs: Attributes) -> int | None:
    """d det A = tr(adj(A) dA)"""
    if tangents[1] is None:
        return None
    gradient = _gradient_of_det(b, a, attrs)
    return (gradient.conj * matrix(b, tangents[1], attrs[0])).sum(1).sum(2).stacked(attrs[0])


def _gradient_of_det(b: Builder, a: int, attrs: Attributes) -> Matrix:
    return matrix(b, b.call(a, attrs=(adjugate.number, *attrs)), attrs[0])


def _det_vjp(b: Builder, ct: int, out: int, factors: int, a: int, attrs: Attributes) -> tuple[None, int]:
    change = _gradient_of_det(b, a, attrs) * matrix(b, ct, attrs[0])
    return None, change.stacked(attrs[0])


det = define(Routine("det", _det_shape, _det, _det_jvp, _det_vjp))


# adjugate(A; complex) -> adj(A)^H, which is conj(det A) A^-H, but also there if A is singular


def _adjugate_shape(attrs: Attributes, a: Type) -> Type:
    flags("adjugate", attrs, 1)
    matrices("adjugate", a)
    square("adjugate", a)
    return a


def _adjugate(attrs: Attributes, a: np.ndarray) -> np.ndarray:
    """By singular values: adj(U S V^H) = conj(det U det V^H) V adj(S) U^H."""
    x = joined(a, attrs[0])
    u, s, vh = np.linalg.svd(x)
    n = s.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1.0, s[:, None, :]).prod(-1)
    phase = np.linalg.det(u) * np.linalg.det(vh)
    return parted(phase.conj()[:, None, None] * (u * others[:, None, :]) @ vh, attrs[0])


def _adjugate_jvp(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
    """dG = conj(tr(A^-1 dA)) G - A^-H dA^H G, which needs the inverse"""
    assert tangents[0] is not None
    x, g, change = (matrix(b, v, attrs[0]) for v in (a, out, tangents[0]))
    trace = inverse_times(x, change).diagonal().sum(2)
    return (g * trace.conj - inverse_times(x, change.H @ g, adjoint=True)).stacked(attrs[0])


def _adjugate_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    """ct_A = (tr(ct^H G) - G ct^H) A^-H"""
    x, g, c = (matrix(b, v, attrs[0]) for v in (a, out, ct))
    trace = (c.conj * g).sum(1).sum(2)
    inner = eye(b, x.shape[0], x.shape[1]) * trace - g @ c.H
    return (inverse_times(x, inner.H).H.stacked(attrs[0]),)


adjugate = define(Routine("adjugate", _adjugate_shape, _adjugate, _adjugate_jvp, _adjugate_vjp))
