"""Determinants by LU, real or complex, on stacks of matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.matrices import (
    Matrix,
    eye,
    flags,
    joined,
    matrices,
    matrix,
    part,
    parted,
    placed,
    square,
    type_of_array,
)
from ckad.rules.routines.dense.systems import inverse_times, of_factors, of_matrix, solved
from ckad.rules.routines.memory import (
    compiled,
    doubles,
    integers,
    run,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import Routine, define
from ckad.tape.types import Type

Attributes = Sequence[int]

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


def _det_jvp(
    b: Builder, tangents: Tangents, out: int, factors: int, a: int, attrs: Attributes
) -> int | None:
    """d det A = tr(adj(A) dA)"""
    if tangents[1] is None:
        return None
    gradient = _gradient_of_det(b, a, attrs)
    return (gradient.conj * matrix(b, tangents[1], attrs[0])).sum(1).sum(2).stacked(attrs[0])


def _gradient_of_det(b: Builder, a: int, attrs: Attributes) -> Matrix:
    return matrix(b, b.call(a, attrs=(adjugate.number, *attrs)), attrs[0])


def _det_vjp(
    b: Builder, ct: int, out: int, factors: int, a: int, attrs: Attributes
) -> tuple[None, int]:
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
