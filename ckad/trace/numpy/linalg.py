"""Linear systems, determinants and triangular factors.

Real matrices of up to ``UNROLLED`` rows are eliminated on the tape, a few of them together.
Larger ones, many and complex ones are left to LAPACK.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import (
    Array,
    as_number,
    copied,
    fori_loop,
    is_traced,
    paired,
    promoted,
    reshaped,
    retyped,
    routine,
    safe_sqrt,
    spread,
    stopping,
    traced,
)
from ckad.trace.axes import common_shape
from ckad.trace.dispatch import STATIC, implements, reject

#: Matrices of so many rows are eliminated on the tape, those of many matrices if they have so few.
UNROLLED, UNROLLED_IN_STACKS = 4, 2
#: So many matrices are many.
MANY = 16


def matrices(a: Any, square: bool = True) -> Array:
    """``a`` in floats, as a stack with one axis before the matrices."""
    x = floats(a)
    if x.ndim < 2:
        raise np.linalg.LinAlgError(
            at_place(f"{x.ndim}-dimensional array given. Array must be at least two-dimensional")
        )
    if square and x.shape[-1] != x.shape[-2]:
        raise np.linalg.LinAlgError(at_place("Last 2 dimensions of the array must be square"))
    count = int(np.prod(x.shape[:-2]))
    return reshaped(x, (count, *x.shape[-2:]))


# --- elimination -------------------------------------------------------------------------------


class _Row(NamedTuple):
    """Masks over the rows of a matrix, shape [1, n, 1]."""

    here: Any
    from_here: Any
    below: Any


def _masks(n: int, k: Any) -> _Row:
    rows = np.arange(n).reshape(1, n, 1)
    if is_traced(k):
        rows = traced(rows)
    return _Row(np.equal(rows, k), np.greater_equal(rows, k), np.greater(rows, k))


def _row_of(m: Array, chosen: Any) -> Array:
    """The one row of each matrix under the mask, shape [b, 1, columns]."""
    return np.sum(np.where(chosen, m, np.zeros((), m.dtype)), 1, keepdims=True)


def _column(m: Array, k: Any) -> Array:
    """Column k of each matrix, shape [b, n, 1]."""
    return m[:, :, k][..., None]


def _pivoted(m: Array, k: Any, mask: _Row) -> tuple[Array, Array]:
    """Row k exchanged with the one below that is largest in column k; and whether it was another.

    The choice is no matter of derivatives: row exchanges are exact.
    """
    n = m.shape[1]
    sizes = np.where(mask.from_here, np.abs(_column(m, k)), np.asarray(-1, m.dtype))
    pivot = np.argmax(sizes, 1, keepdims=True)
    there = np.equal(np.arange(n).reshape(1, n, 1), pivot)
    mine, other = _row_of(m, mask.here), _row_of(m, there)
    swapped = np.where(mask.here, other, np.where(there, mine, m))
    return swapped, np.not_equal(pivot, k)


@implements(np.linalg.solve, kind=STATIC)
def solve(a: Any, b: Any) -> Array:
    """Gauss-Jordan elimination with partial pivoting, of large matrices by LAPACK.

    The program stops at a pivot that is zero.
    """
    right = traced(b)
    vector = right.ndim == 1
    x, right = floats(a), floats(right)
    if x.dtype.kind != "c" and right.dtype.kind == "c":
        return _by_parts(x, right)
    x, y = promoted(x, right)
    n = x.shape[-1] if x.ndim > 1 else 0
    matrices(x)
    y = reshaped(y, (*y.shape, 1)) if vector else y
    if y.shape[-2] != n:
        raise ValueError(at_place(f"shapes {x.shape} and {right.shape} do not fit: {n} rows"))
    lead = common_shape(x.shape[:-2], y.shape[:-2])
    shape = (*lead, n) if vector else (*lead, n, y.shape[-1])
    if is_large(x):
        return copied(reshaped(_solved(x, y, lead), shape))
    both = np.concatenate([spread(v, (*lead, *v.shape[-2:])) for v in (x, y)], -1)
    m, pivots, _ = _eliminated(matrices(both, square=False), n, everywhere=True)
    pivots = stopping(pivots, _is_singular(pivots), "SINGULAR")
    return copied(reshaped(m[:, :, n:] / pivots, shape))


def _by_parts(x: Array, y: Array) -> Array:
    """A real matrix divides real and imaginary parts, as columns of one right side."""
    vector = y.ndim == 1
    columns = reshaped(y, (*y.shape, 1)) if vector else y
    m = columns.shape[-1]
    found = solve(x, np.concatenate([np.real(columns), np.imag(columns)], -1))
    found = paired(found[..., :m], found[..., m:])
    return copied(found[..., 0] if vector else found)


def is_large(x: Array) -> bool:
    """Whether matrices are left to LAPACK."""
    border = UNROLLED_IN_STACKS if int(np.prod(x.shape[:-2])) > MANY else UNROLLED
    return bool(x.dtype.kind == "c" or min(x.shape[-2:]) > border)


def adjoint(x: Array) -> Array:
    """The conjugate transposes."""
    turned = np.swapaxes(x, -1, -2)
    return np.conj(turned) if x.dtype.kind == "c" else turned


def planes(x: Array) -> Array:
    """A stack of matrices as routines take it: real parts first, if it is complex."""
    return np.concatenate([np.real(x), np.imag(x)]) if x.dtype.kind == "c" else x


def of_planes(x: Array, like: Array) -> Array:
    """The way back, in the dtype of ``like``."""
    if like.dtype.kind != "c":
        return retyped(x, like.dtype)
    half = x.shape[0] // 2
    return retyped(paired(x[:half], x[half:]), like.dtype)


def computed(name: str, x: Array, *attrs: int) -> Array:
    """What a routine makes of a stack of matrices; its last attribute tells complex ones."""
    return routine(name, planes(x), attrs=(*attrs, int(x.dtype.kind == "c")))


def floats(a: Any) -> Array:
    x = traced(a)
    return x if x.dtype.kind in "fc" else retyped(x, np.float64)


def _solved(x: Array, y: Array, lead: tuple[int, ...]) -> Array:
    """The solutions of stacks of systems. A matrix of several right sides is factored once."""
    n, is_complex = x.shape[-1], int(x.dtype.kind == "c")
    if is_complex:  # their factors are no matrices that could be repeated
        factors = computed("lu", matrices(spread(x, (*lead, n, n))))
    else:
        factors = computed("lu", matrices(x))
        factors = spread(reshaped(factors, (*x.shape[:-2], n + 1, n)), (*lead, n + 1, n))
        factors = matrices(factors, square=False)
    right = matrices(spread(y, (*lead, *y.shape[-2:])), square=False)
    return of_planes(routine("lu_solve", factors, planes(right), attrs=(0, is_complex)), y)


class _Eliminated(NamedTuple):
    matrix: Array
    pivots: Array  # [b, n, 1]
    sign: Array  # of the row exchanges, [b, 1, 1]


def _eliminated(m: Array, n: int, everywhere: bool) -> _Eliminated:
    """The first ``n`` columns made zero below the pivots, or ``everywhere`` but there.

    As LAPACK rounds, by the reciprocal of a pivot and with products by themselves: so what of a
    singular matrix is exactly zero there is so here. A column of zeros is left as it is.
    """
    sign = np.ones((m.shape[0], 1, 1), m.dtype, like=m)
    zero, pivots = np.zeros((), m.dtype), []
    for k in range(n):
        mask = _masks(m.shape[1], k)
        m, exchanged = _pivoted(m, k, mask)
        sign = np.where(exchanged, -sign, sign)
        row = _row_of(m, mask.here)
        pivots.append(_column(row, k))
        factors = _column(m, k) * (1 / np.where(np.equal(pivots[-1], 0), 1, pivots[-1]))
        others = np.logical_not(mask.here) if everywhere else mask.below
        m = m - np.where(others, factors * row, zero)
    return _Eliminated(m, np.concatenate([m[:, :0, :1], *pivots], 1), sign)


def _is_singular(pivots: Array) -> Array:
    return np.any(np.equal(pivots, 0))


@implements(np.linalg.inv, kind=STATIC)
def inv(a: Any) -> Array:
    x = floats(a)
    n = matrices(x).shape[-1]
    return np.linalg.solve(x, np.eye(n, dtype=x.dtype))


# --- determinants ------------------------------------------------------------------------------


@implements(np.linalg.det, kind=STATIC)
def det(a: Any) -> Array:
    x = floats(a)
    m = matrices(x)
    is_complex = int(m.dtype.kind == "c")
    if m.shape[1] <= 3:
        return _unstacked(_by_cofactors(m), x)
    found = routine("det", computed("lu", m), planes(m), attrs=(is_complex,))
    return _unstacked(of_planes(found, m), x)


def _unstacked(x: Array, like: Array) -> Array:
    return as_number(reshaped(x, like.shape[:-2]))


def _by_cofactors(m: Array) -> Array:
    """Exact derivatives, also of singular matrices."""
    n = m.shape[1]
    if n == 0:
        return np.ones(m.shape[0], m.dtype, like=m)
    if n == 1:
        return m[:, 0, 0]
    if n == 2:
        return m[:, 0, 0] * m[:, 1, 1] - m[:, 0, 1] * m[:, 1, 0]
    return np.sum(m[:, 0] * np.cross(m[:, 1], m[:, 2]), -1)


class SlogdetResult(NamedTuple):
    sign: Any
    logabsdet: Any


@implements(np.linalg.slogdet, kind=STATIC)
def slogdet(a: Any) -> SlogdetResult:
    x = floats(a)
    m = matrices(x)
    if is_large(x):
        found = routine("slogdet", computed("lu", m), attrs=(int(x.dtype.kind == "c"),))
        parts = [found[:, 0, k] for k in range(found.shape[-1])]
        sign = retyped(paired(*parts[:2]) if len(parts) == 3 else parts[0], x.dtype)
        logs = retyped(parts[-1], np.real(m).dtype)
        return SlogdetResult(_unstacked(sign, x), _unstacked(logs, x))
    if m.shape[1] == 0:
        ones = np.ones(m.shape[0], m.dtype, like=m)
        return SlogdetResult(_unstacked(ones, x), _unstacked(np.zeros_like(np.real(ones)), x))
    _, pivots, sign = _eliminated(m, m.shape[1], everywhere=False)
    pivots = apart(pivots, _is_singular(pivots))
    signs = np.prod(np.sign(pivots), 1) * sign[:, 0]
    logs = np.sum(np.log(np.abs(pivots)), 1)
    return SlogdetResult(_unstacked(signs, x), _unstacked(logs, x))


# --- factorisations ----------------------------------------------------------------------------


@implements(np.linalg.cholesky, kind=STATIC)
def cholesky(a: Any, /, *, upper: bool = False) -> Array:
    """Reads the lower triangle, as NumPy does."""
    x = floats(a)
    m = matrices(adjoint(x) if upper else x)
    n = m.shape[1]
    if is_large(m):
        lower = reshaped(of_planes(computed("cholesky", m), m), x.shape)
        return copied(adjoint(lower)) if upper else copied(lower)

    lower, squares = np.zeros_like(m), []
    for k in range(n):
        mask = _masks(n, k)
        rest = _column(m, k) - np.matmul(lower, np.swapaxes(_row_of(lower, mask.here), 1, 2))
        squares.append(_row_of(rest, mask.here))
        pivot = np.sqrt(squares[-1])
        safe = np.where(mask.below, rest / pivot, np.zeros((), m.dtype))
        entries = np.where(mask.here, pivot, safe)
        lower = np.where(np.swapaxes(mask.here, 1, 2), entries, lower)
    positive = np.concatenate([m[:, :0, :1], *squares], 1) > 0
    lower = stopping(lower, np.logical_not(np.all(positive)), "NOT_POSITIVE")
    lower = reshaped(lower, x.shape)
    return copied(np.swapaxes(lower, -1, -2)) if upper else copied(lower)


class QRResult(NamedTuple):
    Q: Any
    R: Any


@implements(np.linalg.qr, kind=STATIC)
def qr(a: Any, mode: str = "reduced") -> Any:
    """Householder reflections with LAPACK's signs; derivatives need full column rank."""
    reject(mode not in ("reduced", "complete", "r"), f"np.linalg.qr with mode={mode!r}")
    x = floats(a)
    stack = matrices(x, square=False)
    if is_large(stack) and (mode != "complete" or stack.shape[1] <= stack.shape[2]):
        q, r = (reshaped(v, (*x.shape[:-2], *v.shape[1:])) for v in _orthogonal(stack))
        return copied(r) if mode == "r" else QRResult(copied(q), copied(r))
    reject(x.dtype.kind == "c", "np.linalg.qr of complex matrices with mode='complete'")
    rows, columns = stack.shape[1:]
    k = min(rows, columns)
    eye = spread(np.eye(rows, dtype=x.dtype), (stack.shape[0], rows, rows))
    r, q = stack, traced(eye)
    if k > UNROLLED:
        r, q = fori_loop(0, k, _reflect, (r, q))
    else:
        for column in range(k):
            r, q = _reflect(column, (r, q))
    kept = rows if mode == "complete" else k
    # a column within those before it may go anywhere, and leaves those behind it no derivatives
    leading = np.diagonal(r, 0, 1, 2)[:, : min(k, rows - 1)]
    within = negligible(leading, np.max(np.abs(stack), 1)[:, : leading.shape[1]])
    r, q = apart(r, within), apart(q, within)
    upper = np.triu(r)[:, :kept]
    upper = copied(reshaped(upper, (*x.shape[:-2], kept, columns)))
    if mode == "r":
        return upper
    return QRResult(copied(reshaped(q[:, :, :kept], (*x.shape[:-2], rows, kept))), upper)


def negligible(x: Array, sizes: Array) -> Array:
    """Whether an element is none but for rounding, beside numbers of these sizes."""
    return np.any(np.abs(x) <= max(x.shape[-1], 1) * np.finfo(x.dtype).eps * sizes)


def apart(x: Array, singular: Array) -> Array:
    """``x``, whose derivatives stop the program where the flag is true."""
    given = retyped(x, np.float64)
    return retyped(routine("regular", given, given, retyped(singular, np.int64)), x.dtype)


def _orthogonal(x: Array) -> tuple[Array, Array]:
    """By LAPACK; of a wide matrix, the first columns are factored."""
    rows, columns = x.shape[1:]
    k = min(rows, columns)
    found = of_planes(computed("qr", x[:, :, :k]), x)
    q, r = found[:, :rows], found[:, rows:]
    if columns > k:
        r = np.concatenate([r, np.matmul(adjoint(q), x[:, :, k:])], -1)
    return q, r


def _reflect(k: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
    r, q = state
    v, scale, sign = reflection(r, k, k)
    turned = np.swapaxes(v, 1, 2)
    r, q = r - scale * v * np.matmul(turned, r), q - scale * np.matmul(q, v) * turned
    return sign * r, q * np.swapaxes(sign, 1, 2)


def reflection(m: Array, column: Any, k: Any) -> tuple[Array, Array, Array]:
    """v, s and signs of rows: 1 - s v v^T makes zeros below row ``k`` of a column of real ``m``."""
    mask = _masks(m.shape[1], k)
    zero = np.zeros((), m.dtype)
    part = np.where(mask.from_here, _column(m, column), zero)
    first = _row_of(part, mask.here)
    below = np.sum(np.where(mask.below, part * part, zero), 1, keepdims=True)
    size = -np.copysign(safe_sqrt(reshaped(below + first * first, below.shape)), first)
    v = np.where(mask.here, part - size, part)
    # LAPACK leaves a column as it is that has nothing below. Here it is reflected and its sign
    # turned back, exactly since v is a unit vector: so the derivatives are those of the neighbours.
    kept = np.logical_and(np.equal(below, 0), np.not_equal(first, 0))
    one = np.ones((), m.dtype)
    v = v / np.where(kept, _row_of(v, mask.here), one)
    square = np.sum(v * v, 1, keepdims=True)
    scale = 2 / np.where(np.equal(square, 0), one, square)
    return v, scale, np.where(np.logical_and(kept, mask.here), -one, one)
