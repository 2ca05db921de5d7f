"""Factors of symmetric and Hermitian matrices with blocks of one and two rows, and the order in
which pivoting takes columns, by SciPy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.matrices import Matrix, joined, matrix, parted, square_stack, stacks
from ckad.rules.routines.dense.systems import inverse_times
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes, Routine, define
from ckad.tape.types import DType, Type

# ldl(A; lower, hermitian, complex) -> [b, 2 n + 1, n]: L with its rows as A has them, D, and the
# order of rows in which L is a triangle. A is whole, A = L D L^T, or L D L^H of Hermitian ones.


def _shape(attrs: Attributes, a: Type) -> Type:
    square_stack("ldl", attrs, 3, a)
    batch, n, _ = a.shape
    return a.with_shape((batch, 2 * n + 1, n))


def _ldl(attrs: Attributes, a: np.ndarray) -> np.ndarray:
    import scipy.linalg

    lower, hermitian, is_complex = attrs
    x = joined(a, is_complex)
    n = x.shape[1]
    found = np.empty((len(x), 2 * n + 1, n), x.dtype)
    for to, m in zip(found, x, strict=True):
        to[:n], to[n:-1], to[-1] = scipy.linalg.ldl(m, bool(lower), bool(hermitian))
    return parted(found, is_complex)


class _Factors(NamedTuple):
    lower: Matrix  # a triangle: L with its rows in order
    blocks: Matrix  # D
    order: Matrix  # the permutation as a matrix
    within: Matrix  # ones in the blocks
    beside: Matrix  # ones in the rest of the triangle


def _factors(b: Builder, out: int, attrs: Attributes) -> _Factors:
    is_lower, _, is_complex = attrs
    both = matrix(b, out, is_complex)
    batch, rows, n = both.shape
    d = both.block((n, 0), (n, n))
    places = b.reshape_to(both.block((rows - 1, 0), (1, n)).re, (batch, n, 1))
    counted = b.broadcast_to(b.const(np.arange(n, dtype=float).reshape(1, 1, n)), (batch, n, n))
    one, zero = b.full_like(d.re, 1.0), b.full_like(d.re, 0.0)
    chosen = b.select(b.eq(b.broadcast_to(places, (batch, n, n)), counted), one, zero)
    nothing = one
    for part in (d.re,) if d.im is None else (d.re, d.im):
        nothing = b.select(b.eq(part, zero), nothing, zero)
    at_rest = Matrix(b, nothing).weighted(1.0 - np.eye(n))
    half = np.tril(np.ones((n, n)), -1) if is_lower else np.triu(np.ones((n, n)), 1)
    p = Matrix(b, chosen)
    return _Factors(
        p @ both.block((0, 0), (n, n)), d, p, Matrix(b, one) - at_rest, at_rest.weighted(half)
    )


def _jvp(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
    """X = L^-1 P dA P^T L^-*, dD = X in the blocks, dL = P^T L (X D^-1 beside them)"""
    assert tangents[0] is not None
    _, hermitian, is_complex = attrs
    f, change = _factors(b, out, attrs), matrix(b, tangents[0], is_complex)
    left = inverse_times(f.lower, f.order @ change @ f.order.T)
    x = inverse_times(f.lower, left.H).H if hermitian else inverse_times(f.lower, left.T).T
    inner = inverse_times(f.blocks, (x * f.beside).H, True).H
    by_lower, by_blocks = f.order.T @ (f.lower @ inner), x * f.within
    n = x.shape[1]
    total = by_lower.within((0, 0), (2 * n + 1, n)) + by_blocks.within((n, 0), (2 * n + 1, n))
    return total.stacked(is_complex)


def _vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    _, hermitian, is_complex = attrs
    f, both = _factors(b, out, attrs), matrix(b, ct, is_complex)
    n = f.lower.shape[1]
    by_lower, by_blocks = (both.block((k, 0), (n, n)) for k in (0, n))
    inner = f.lower.H @ (f.order @ by_lower)
    x = inverse_times(f.blocks, inner.H).H * f.beside + by_blocks * f.within
    left = inverse_times(f.lower, x, True)
    if hermitian:
        right = inverse_times(f.lower, left.H, True).H
    else:
        right = inverse_times(f.lower, left.T, True).T
    return ((f.order.T @ right @ f.order).stacked(is_complex),)


ldl = define(
    Routine(
        "ldl",
        _shape,
        _ldl,
        _jvp,
        _vjp,
        lambda attrs, a: 1.0 * (1 + attrs[2]) * a.size * a.shape[1],
        calls_blas=True,
    )
)

# column_order(A [b, m, n]; complex) -> [b, n]: the columns as QR with pivoting takes them


def _order_shape(attrs: Attributes, a: Type) -> Type:
    stacks("column_order", attrs, 1, a)
    return Type(DType.I64, (a.shape[0] >> attrs[0], a.shape[2]))


def _column_order(attrs: Attributes, a: np.ndarray) -> np.ndarray:
    import scipy.linalg

    x = joined(a, attrs[0])
    found = np.empty((len(x), x.shape[2]), np.int64)
    for to, m in zip(found, x, strict=True):
        to[:] = scipy.linalg.qr(m, mode="r", pivoting=True)[1]
    return found


column_order = define(
    Routine(
        "column_order",
        _order_shape,
        _column_order,
        flops=lambda attrs, a: 2.0 * a.size * a.shape[2],
        calls_blas=True,
    )
)
