"""LU factors as SciPy shows them: both in one matrix, and the order of its rows."""

from __future__ import annotations

import numpy as np

from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.lapack import (
    dgetrf,
    set_sizes,
    turned,
    turned_into_parts,
    turned_parts,
    zgetrf,
)
from ckad.rules.routines.dense.matrices import Matrix, flags, matrix, need, square_stack
from ckad.rules.routines.dense.triangles import triangular
from ckad.rules.routines.memory import (
    HEAD,
    compiled,
    doubles,
    from_code,
    integers,
    short_integers,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes
from ckad.tape.types import DType, Type

_NOT_FINITE = 1

# lu_compact(A; complex) -> [b, n + 1, n]: U, and below its diagonal L, of A with its rows in the
# order that the last row says


def _compact_shape(attrs: Attributes, a: Type) -> Type:
    square_stack("lu_compact", attrs, 1, a)
    batch, n, _ = a.shape
    return a.with_shape((batch, n + 1, n))


def _compact(words: int, arrays: int, work: int) -> int:
    is_complex, planes, n = integers(words, 3)
    out, a = integers(arrays, 2)
    batch, size, step = planes >> is_complex, n * n, 8 * (n + 1) * n
    given = doubles(a, planes * size)
    for k in range(planes * size):
        if not abs(given[k]) < np.inf:
            return _NOT_FINITE
    _sizes, exchanges, z = (
        set_sizes(work, n, n),
        short_integers(work + HEAD, n),
        work + HEAD + 8 * n,
    )
    for k in range(batch):
        at, im = a + 8 * k * size, a + 8 * (batch + k) * size
        to, to_im = out + k * step, out + (batch + k) * step
        if is_complex:
            turned_parts(z, at, im, n, n)
            zgetrf(work, work, z, work + 4, work + HEAD, work + 8)
            turned_into_parts(to, to_im, z, n, n)
            doubles(to_im + 8 * size, n)[:] = 0.0
        else:
            turned(z, at, n, n)
            dgetrf(work, work, z, work + 4, work + HEAD, work + 8)
            turned(to, z, n, n)
        order = doubles(to + 8 * size, n)
        for i in range(n):
            order[i] = i
        for i in range(n):
            j = exchanges[i] - 1
            order[i], order[j] = order[j], order[i]
    return 0


_COMPACT = compiled(
    _compact,
    lambda attrs, a: 8 * (a.shape[1] + (1 + attrs[0]) * a.shape[1] ** 2),
    {_NOT_FINITE: (ValueError, "array must not contain infs or NaNs")},
)


def _parts_of(b: Builder, out: int, is_complex: int) -> tuple[Matrix, Matrix]:
    """The factors in one matrix, and the permutation as a matrix."""
    both = matrix(b, out, is_complex)
    batch, _, n = both.shape
    order = both.block((n, 0), (1, n)).re
    rows = b.broadcast_to(b.reshape_to(order, (batch, n, 1)), (batch, n, n))
    columns = b.broadcast_to(b.const(np.arange(n, dtype=float).reshape(1, 1, n)), (batch, n, n))
    one, zero = b.full_like(rows, 1.0), b.full_like(rows, 0.0)
    return both.block((0, 0), (n, n)), Matrix(b, b.select(b.eq(rows, columns), one, zero))


def _upper(x: Matrix) -> Matrix:
    return x.weighted(np.triu(np.ones(x.shape[1:])))


def _solve(x: Matrix, y: Matrix, lower: int, adjoint: int) -> Matrix:
    """By one of the factors of ``x``; L has ones on its diagonal."""
    is_complex = int(x.im is not None)
    attrs = (triangular.number, lower, adjoint, lower, is_complex)
    found = x.b.call(x.stacked(is_complex), y.stacked(is_complex), attrs=attrs)
    return matrix(x.b, found, is_complex)


def _compact_jvp(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
    """M = L^-1 P dA U^-1, dL = L M below the diagonal, dU = M U from it on"""
    assert tangents[0] is not None
    (is_complex,) = attrs
    lu, p = _parts_of(b, out, is_complex)
    left = _solve(lu, p @ matrix(b, tangents[0], is_complex), 1, 0)
    m = _solve(lu, left.H, 0, 1).H
    n = lu.shape[1]
    unit_lower = lu.lower(0.0) + Matrix(b, b.broadcast_to(b.const(np.eye(n)[None]), lu.shape))
    total = unit_lower @ m.lower(0.0) + _upper(m) @ _upper(lu)
    return total.within((0, 0), (n + 1, n)).stacked(is_complex)


def _compact_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    (is_complex,) = attrs
    lu, p = _parts_of(b, out, is_complex)
    n = lu.shape[1]
    z = matrix(b, ct, is_complex).block((0, 0), (n, n))
    unit_lower = lu.lower(0.0) + Matrix(b, b.broadcast_to(b.const(np.eye(n)[None]), lu.shape))
    m = (unit_lower.H @ z.lower(0.0)).lower(0.0) + _upper(_upper(z) @ _upper(lu).H)
    left = _solve(lu, m, 1, 1)
    return ((p.T @ _solve(lu, left.H, 0, 0).H).stacked(is_complex),)


lu_compact = from_code(
    "lu_compact",
    _compact_shape,
    _COMPACT,
    _compact_jvp,
    _compact_vjp,
    lambda attrs, a: 2 / 3 * (1 + attrs[0]) * a.size * a.shape[1],
)

# exchanged(rows [b, n]; back) -> the order of the rows after row i was exchanged with row rows[i],
# one after the other, as LAPACK says it; or the way back from the order

_NO_ROWS = 1


def _exchanged_shape(attrs: Attributes, rows: Type) -> Type:
    flags("exchanged", attrs, 1)
    need(rows.dtype is DType.I64 and len(rows.shape) == 2, f"exchanged of {rows}")
    return rows


def _exchanged(words: int, arrays: int, work: int) -> int:
    back, batch, n = integers(words, 3)
    out, rows = integers(arrays, 2)
    for k in range(batch):
        given, found = integers(rows + 8 * k * n, n), integers(out + 8 * k * n, n)
        order = integers(work + HEAD, n) if back else found
        for i in range(n):
            order[i] = i
        for i in range(n):
            j = given[i]
            if back:
                j = i
                while j < n and order[j] != given[i]:
                    j += 1
            if j < 0 or j >= n:
                return _NO_ROWS
            order[i], order[j] = order[j], order[i]
            if back:
                found[i] = j
    return 0


_EXCHANGED = compiled(
    _exchanged,
    lambda attrs, rows: 8 * rows.shape[1],
    {
        _NO_ROWS: (
            ValueError,
            "the second array of LU factors does not say which rows are exchanged",
        )
    },
    calls_blas=False,
)
exchanged = from_code(
    "exchanged",
    _exchanged_shape,
    _EXCHANGED,
)
