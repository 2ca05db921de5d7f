"""Linear systems, determinants and factorisations, by elimination on the tape.

Stacks of matrices are eliminated together. A matrix of more than ``UNROLLED`` rows is eliminated by
a loop, so that the tape does not grow with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import (
    Array,
    copied,
    fori_loop,
    is_traced,
    own,
    promoted,
    reshaped,
    retyped,
    routine,
    safe_sqrt,
    spread,
    traced,
)
from ckad.trace.axes import common_shape
from ckad.trace.dispatch import REAL, STATIC, implements, reject

#: Matrices of so many rows are eliminated without a loop.
UNROLLED = 8


def _repeat(n: int, body: Callable[[Any, Any], Any], state: Any) -> Any:
    if n > UNROLLED:
        return fori_loop(0, n, body, state)
    for k in range(n):
        state = body(k, state)
    return state


def _matrices(a: Any, square: bool = True) -> Array:
    """``a`` in floats, as a stack with one axis before the matrices."""
    x = _float(a)
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


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Array:
    """Gauss-Jordan elimination with partial pivoting; infinite or NaN for singular matrices."""
    right = traced(b)
    vector = right.ndim == 1
    x, y = promoted(_float(a), _float(right))
    n = x.shape[-1] if x.ndim > 1 else 0
    _matrices(x)
    y = reshaped(y, (*y.shape, 1)) if vector else y
    if y.shape[-2] != n:
        raise ValueError(at_place(f"shapes {x.shape} and {right.shape} do not fit: {n} rows"))
    lead = common_shape(x.shape[:-2], y.shape[:-2])
    shape = (*lead, n) if vector else (*lead, n, y.shape[-1])
    if is_large(x):
        return copied(reshaped(_solved(_factors(x), y, lead), shape))
    both = np.concatenate([spread(v, (*lead, *v.shape[-2:])) for v in (x, y)], -1)
    reduced = _repeat(n, _eliminate_all, _matrices(both, square=False))[:, :, n:]
    return copied(reshaped(reduced, shape))


def is_large(x: Array) -> bool:
    """Whether matrices are left to LAPACK."""
    return bool(x.dtype.kind == "f" and min(x.shape[-2:]) > UNROLLED)


def _factors(x: Array) -> Array:
    """The LU factors of every matrix, for routines that take them: [..., n + 1, n]."""
    factors = routine("lu", _matrices(x))
    return reshaped(factors, (*x.shape[:-2], *factors.shape[1:]))


def _solved(factors: Array, y: Array, lead: tuple[int, ...]) -> Array:
    """The solutions of stacks of systems, in the dtype of the right sides."""
    stacks = [spread(v, (*lead, *v.shape[-2:])) for v in (factors, y)]
    solution = routine("lu_solve", *(_matrices(v, square=False) for v in stacks), attrs=(0,))
    return retyped(solution, y.dtype)


def _float(a: Any) -> Array:
    x = traced(a)
    return x if x.dtype.kind in "fc" else retyped(x, np.float64)


def _eliminate_all(k: Any, m: Array) -> Array:
    mask = _masks(m.shape[1], k)
    m, _ = _pivoted(m, k, mask)
    row = _row_of(m, mask.here)
    row = row / _column(row, k)
    return np.where(mask.here, row, m - _column(m, k) * row)


@implements(np.linalg.inv, kind=STATIC)
def inv(a: Any) -> Array:
    x = _float(a)
    n = _matrices(x).shape[-1]
    return np.linalg.solve(x, np.eye(n, dtype=x.dtype))


# --- determinants ------------------------------------------------------------------------------


class _Eliminated(NamedTuple):
    matrix: Array  # upper triangular in the end
    sign: Array  # of the row exchanges, [b, 1, 1]


def _eliminated(a: Any) -> tuple[Array, Array]:
    """The pivots of elimination, [b, n], and the sign of the row exchanges, [b]."""
    m = _matrices(a)
    start = _Eliminated(m, np.ones((m.shape[0], 1, 1), m.dtype, like=m))
    end = _repeat(m.shape[1], _eliminate_below, start)
    return np.diagonal(end.matrix, 0, 1, 2), reshaped(end.sign, (m.shape[0],))


def _eliminate_below(k: Any, state: _Eliminated) -> _Eliminated:
    mask = _masks(state.matrix.shape[1], k)
    m, exchanged = _pivoted(state.matrix, k, mask)
    row = _row_of(m, mask.here)
    factors = _column(m, k) / _column(row, k)
    matrix = np.where(mask.below, m - factors * row, m)
    return _Eliminated(matrix, np.where(exchanged, -state.sign, state.sign))


@implements(np.linalg.det)
def det(a: Any) -> Array:
    """Of a singular matrix of more than three rows the derivative is NaN."""
    x = _float(a)
    m = _matrices(x)
    if m.shape[1] <= 3:
        result = _by_cofactors(m)
    elif is_large(m):
        sign, logs = _signs_and_logs(m)
        result = retyped(sign * np.exp(logs), x.dtype)
    else:
        pivots, sign = _eliminated(m)
        singular = np.any(np.equal(pivots, 0), -1)
        product = sign * np.prod(pivots, -1)
        result = np.where(singular, np.zeros((), m.dtype), product)
    return _unstacked(result, x)


def _unstacked(x: Array, like: Array) -> Array:
    result = reshaped(x, like.shape[:-2])
    return result if result.shape else own(result)


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


def _signs_and_logs(m: Array) -> tuple[Array, Array]:
    """Of the determinants of a stack of matrices."""
    both = routine("slogdet", _factors(m))
    return both[:, 0], both[:, 1]


class SlogdetResult(NamedTuple):
    sign: Any
    logabsdet: Any


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> SlogdetResult:
    x = _float(a)
    if is_large(x):
        found = (retyped(v, x.dtype) for v in _signs_and_logs(_matrices(x)))
        return SlogdetResult(*(_unstacked(v, x) for v in found))
    pivots, sign = _eliminated(x)
    signs = sign * np.prod(np.sign(pivots), -1)
    logs = np.sum(np.log(np.abs(pivots)), -1)
    return SlogdetResult(_unstacked(signs, x), _unstacked(logs, x))


# --- factorisations ----------------------------------------------------------------------------


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Array:
    """Reads the lower triangle, as NumPy does; NaN if the matrix is not positive definite."""
    x = _float(a)
    m = _matrices(np.swapaxes(x, -1, -2) if upper else x)
    n = m.shape[1]
    if is_large(m):
        lower = reshaped(retyped(routine("cholesky", m), m.dtype), x.shape)
        return copied(np.swapaxes(lower, -1, -2)) if upper else copied(lower)

    def column(k: Any, lower: Array) -> Array:
        mask = _masks(n, k)
        rest = _column(m, k) - np.matmul(lower, np.swapaxes(_row_of(lower, mask.here), 1, 2))
        pivot = np.sqrt(_row_of(rest, mask.here))
        safe = np.where(mask.below, rest / pivot, np.zeros((), m.dtype))
        entries = np.where(mask.here, pivot, safe)
        return np.where(np.swapaxes(mask.here, 1, 2), entries, lower)

    lower = reshaped(_repeat(n, column, np.zeros_like(m)), x.shape)
    return copied(np.swapaxes(lower, -1, -2)) if upper else copied(lower)


class QRResult(NamedTuple):
    Q: Any
    R: Any


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """Householder reflections with LAPACK's signs; derivatives need full column rank."""
    reject(mode not in ("reduced", "complete", "r"), f"np.linalg.qr with mode={mode!r}")
    x = _float(a)
    stack = _matrices(x, square=False)
    rows, columns = stack.shape[1:]
    k = min(rows, columns)
    eye = spread(np.eye(rows, dtype=x.dtype), (stack.shape[0], rows, rows))
    r, q = _repeat(k, _reflect, (stack, traced(eye)))
    kept = rows if mode == "complete" else k
    upper = np.triu(r)[:, :kept]
    upper = copied(reshaped(upper, (*x.shape[:-2], kept, columns)))
    if mode == "r":
        return upper
    return QRResult(copied(reshaped(q[:, :, :kept], (*x.shape[:-2], rows, kept))), upper)


def _reflect(k: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
    r, q = state
    mask = _masks(r.shape[1], k)
    zero = np.zeros((), r.dtype)
    part = np.where(mask.from_here, _column(r, k), zero)
    first = _row_of(part, mask.here)
    below = np.sum(np.where(mask.below, part * part, zero), 1, keepdims=True)
    size = -np.copysign(safe_sqrt(reshaped(below + first * first, below.shape)), first)
    v = np.where(mask.here, part - size, part)
    # LAPACK leaves a column as it is that has nothing below. Here it is reflected and its sign
    # turned back, exactly since v is a unit vector: so the derivatives are those of the neighbours.
    kept = np.logical_and(np.equal(below, 0), np.not_equal(first, 0))
    one = np.ones((), r.dtype)
    v = v / np.where(kept, _row_of(v, mask.here), one)
    square = np.sum(v * v, 1, keepdims=True)
    scale = 2 / np.where(np.equal(square, 0), one, square)
    sign = np.where(np.logical_and(kept, mask.here), -one, one)
    turned = np.swapaxes(v, 1, 2)
    r, q = r - scale * v * np.matmul(turned, r), q - scale * np.matmul(q, v) * turned
    return sign * r, q * np.swapaxes(sign, 1, 2)


# --- compositions ------------------------------------------------------------------------------


@implements(np.linalg.matrix_power, kind=STATIC)
def matrix_power(a: Any, n: int) -> Array:
    x = traced(a)
    n_rows = _matrices(x).shape[-1]
    if n < 0:
        x, n = inv(x), -n
    result: Any = None
    while n:
        if n & 1:
            result = x if result is None else np.matmul(result, x)
        n >>= 1
        x = np.matmul(x, x) if n else x
    if result is None:
        result = spread(np.eye(n_rows, dtype=x.dtype), x.shape)
    return copied(result)


@implements(np.linalg.outer, kind=REAL)
def outer_of_vectors(x1: Any, x2: Any, /) -> Array:
    if traced(x1).ndim != 1 or traced(x2).ndim != 1:
        raise ValueError(at_place("np.linalg.outer takes one-dimensional arrays"))
    return np.outer(x1, x2)


implements(np.linalg.cross)(lambda x1, x2, /, *, axis=-1: np.cross(x1, x2, axis=axis))
implements(np.linalg.vecdot, kind=REAL)(
    # NumPy's stubs know no axis of np.vecdot
    lambda x1, x2, /, *, axis=-1: np.vecdot(x1, x2, axis=axis)  # type: ignore[call-overload]
)
implements(np.linalg.diagonal)(lambda x, /, *, offset=0: np.diagonal(x, offset, -2, -1))
implements(np.linalg.trace)(
    lambda x, /, *, offset=0, dtype=None: np.trace(x, offset, -2, -1, dtype)
)


# --- least squares -----------------------------------------------------------------------------


class _NotKnown:
    """Stands for singular values; any use of it is an error."""

    def __getattr__(self, name: str) -> Any:
        reject(True, "the singular values that np.linalg.lstsq returns")

    __getitem__ = __array__ = __iter__ = __len__ = __getattr__


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Any, ...]:
    """By QR: for matrices of full column rank that are not wide."""
    x, y = promoted(_float(a), _float(b))
    if x.ndim != 2 or x.shape[0] != y.shape[0]:
        raise np.linalg.LinAlgError(at_place(f"shapes {x.shape} and {y.shape} do not fit"))
    rows, columns = x.shape
    reject(rows < columns, "np.linalg.lstsq with fewer rows than columns")
    q, r = qr(x)
    solution = solve(r, np.matmul(q.T, y))
    gaps = y - np.matmul(x, solution)
    squares = np.sum(gaps * gaps, 0)
    residuals = reshaped(squares, (squares.size,)) if rows > columns else gaps[:0]
    return solution, copied(residuals), columns, _NotKnown()


@implements(np.polyfit)
def polyfit(
    x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None
) -> Array:
    reject(full, "np.polyfit with full=True")
    at, values = _float(x), _float(y)
    powers = np.vander(at, deg + 1)
    if w is not None:
        powers, values = powers * traced(w)[:, None], (values.T * traced(w)).T
    scale = np.sqrt(np.sum(powers * powers, 0))
    return (lstsq(powers / scale, values)[0].T / scale).T
