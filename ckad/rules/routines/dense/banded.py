"""Banded systems by LAPACK, differentiable in every diagonal."""

from __future__ import annotations

import numpy as np

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.lapack import turned
from ckad.rules.routines.dense.matrices import add, matrices, need, part, placed
from ckad.rules.routines.memory import (
    HEAD,
    compiled,
    copy,
    doubles,
    external,
    from_code,
    integers,
    letters,
    short_integers,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes, Failure
from ckad.tape.types import Type

_dgttrf = external("dgttrf", 7)
_dgbtrf = external("dgbtrf", 8)
_dgbtrs = external("dgbtrs", 11)
_SINGULAR = 1
#: What a singular matrix is: an error of ``solve_banded``, NaN as ``spsolve`` gives, an error of
#: SuperLU's.
RAISES, NAN, RAISES_LATE = range(3)
_SINGULAR_FACTOR = 2
_FAILURES: dict[int, Failure] = {
    _SINGULAR: (np.linalg.LinAlgError, "singular matrix"),
    _SINGULAR_FACTOR: (RuntimeError, "Factor is exactly singular"),
}
_N, _T = ord("N"), ord("T")

# banded_lu(D [b, l + u + 1, n]; l, u) -> [b, 2 l + u + 2, n]: the factors of A, A[i, j] =
# D[u + i - j, j], as LAPACK keeps them (of three diagonals in four rows, of others in columns), and
# its row exchanges. To derivatives it is the diagonals, in its first rows.


def _need_diagonals(attrs: Attributes, diagonals: Type) -> None:
    need(len(attrs) == 2 and min(attrs) >= 0, f"banded_lu with attributes {tuple(attrs)}")
    matrices("banded_lu", diagonals)
    rows = sum(attrs) + 1
    need(diagonals.shape[1] == rows, f"banded_lu of {diagonals}: {rows} diagonals are needed")


def _factors_shape(attrs: Attributes, diagonals: Type) -> Type:
    _need_diagonals(attrs, diagonals)
    batch, rows, n = diagonals.shape
    return diagonals.with_shape((batch, rows + attrs[0] + 1, n))


def _factored(words: int, arrays: int, work: int) -> int:
    lower, upper, batch, rows, n = integers(words, 5)
    out, diagonals = integers(arrays, 2)
    if n == 0:
        return 0
    exchanges = short_integers(work + HEAD, n)
    height = rows + lower
    for k in range(batch):
        given = doubles(diagonals + 8 * k * rows * n, rows * n)
        at = out + 8 * k * (height + 1) * n
        if lower == 1 and upper == 1:
            _factor_three(work, given, at, n)
        else:
            _factor(work, given, at, n, lower, upper)
        last = doubles(at + 8 * height * n, n)
        for i in range(n):
            last[i] = exchanges[i] - 1
    return 0


@kernel
def _factor_three(work: int, given: np.ndarray, at: int, n: int) -> None:
    """Rows: below the diagonal, the diagonal, the two above it; each begins with its first row."""
    to, sizes = doubles(at, 4 * n), short_integers(work, 2)
    for i in range(n):
        to[i] = given[2 * n + i] if i < n - 1 else 0.0
        to[n + i] = given[n + i]
        to[2 * n + i] = given[i + 1] if i < n - 1 else 0.0
        to[3 * n + i] = 0.0
    sizes[0] = n
    _dgttrf(work, at, at + 8 * n, at + 16 * n, at + 24 * n, work + HEAD, work + 4)


@kernel
def _factor(work: int, given: np.ndarray, at: int, n: int, lower: int, upper: int) -> None:
    """Columns of diagonals, with ``lower`` more for what row exchanges fill."""
    rows, height = lower + upper + 1, 2 * lower + upper + 1
    a, sizes = doubles(at, height * n), short_integers(work, 5)
    for j in range(n):
        a[j * height : j * height + lower] = 0.0
        for i in range(rows):
            a[j * height + lower + i] = given[i * n + j]
    sizes[0], sizes[1], sizes[2], sizes[3] = n, lower, upper, height
    _dgbtrf(work, work, work + 4, work + 8, at, work + 12, work + HEAD, work + 16)


_FACTORED = compiled(_factored, lambda attrs, diagonals: 4 * diagonals.shape[2])


def _of_diagonals(b: Builder, x: int, lower: int) -> int:
    """The part of a tangent or cotangent of factors that is the matrix's."""
    batch, rows, n = b.type(x).shape
    return part(b, x, (0, 0, 0), (batch, rows - lower - 1, n))


def _of_factors(b: Builder, x: int, lower: int) -> int:
    """The way back."""
    batch, rows, n = b.type(x).shape
    return placed(b, x, (0, 0, 0), (batch, rows + lower + 1, n))


banded_lu = from_code(
    "banded_lu",
    _factors_shape,
    _FACTORED,
    jvp=lambda b, tangents, out, d, attrs: _of_factors(b, tangents[0], attrs[0]),
    vjp=lambda b, ct, out, d, attrs: (_of_diagonals(b, ct, attrs[0]),),
    flops=lambda attrs, d: 4.0 * d.size * (attrs[0] + 1),
)

# banded(banded_lu(D), B [b, n, m]; l, u, transposed, singular) -> X with A X = B or A^T X = B;
# ``singular`` says what a singular matrix gives


def _banded_shape(attrs: Attributes, factors: Type, right: Type) -> Type:
    fits = len(attrs) == 4 and min(attrs) >= 0 and attrs[2] <= 1 and attrs[3] <= RAISES_LATE
    need(fits, f"banded with attributes {tuple(attrs)}")
    matrices("banded", factors, right)
    rows = 2 * attrs[0] + attrs[1] + 2
    need(factors.shape[1] == rows, f"banded of {factors}: factors have {rows} rows")
    need(factors.shape[2] == right.shape[1], f"banded of {factors} and {right}")
    return right


def _banded(words: int, arrays: int, work: int) -> int:
    lower, upper, transposed, singular, batch, rows, n, _, _, m = integers(words, 10)
    out, factors, right = integers(arrays, 3)
    if n == 0 or m == 0:
        return 0
    for k in range(batch):
        at, x = factors + 8 * k * rows * n, out + 8 * k * n * m
        to, is_three = doubles(x, n * m), lower == 1 and upper == 1
        copy(to, doubles(right + 8 * k * n * m, n * m))
        if _has_zero(at, n, lower, upper, is_three):
            if singular != NAN:
                return _SINGULAR if singular == RAISES else _SINGULAR_FACTOR
            to[:] = np.nan
        elif is_three:
            _solve_three(work, at, x, n, m, transposed)
        else:
            _solve(work, at, x, n, m, lower, upper, transposed)
    return 0


@kernel
def _has_zero(at: int, n: int, lower: int, upper: int, is_three: bool) -> bool:
    """Whether the second factor has a zero on its diagonal."""
    height = 2 * lower + upper + 1
    a = doubles(at, height * n)
    first, step = (n, 1) if is_three else (lower + upper, height)
    zeros = 0
    for j in range(n):
        zeros += a[first + j * step] == 0.0
    return zeros > 0


@kernel
def _solve_three(work: int, at: int, x: int, n: int, m: int, transposed: int) -> None:
    if m == 1:
        _solve_column(at, doubles(x, n), n, transposed)
        return
    turned(work + HEAD, x, n, m)
    for c in range(m):
        _solve_column(at, doubles(work + HEAD + 8 * c * n, n), n, transposed)
    turned(x, work + HEAD, m, n)


@kernel
def _solve_column(at: int, x: np.ndarray, n: int, transposed: int) -> None:
    """x <- A^-1 x or A^-T x, in registers; divisions do not wait for what is before them."""
    a = doubles(at, 5 * n)
    before = further = 0.0
    if transposed:
        for i in range(n):
            scale = 1.0 / a[n + i]
            if i > 1:
                further = a[3 * n + i - 2] * further
            value = x[i] - further
            if i > 0:
                value -= a[2 * n + i - 1] * before
            further, before = before, value * scale
            x[i] = before
        for i in range(n - 2, -1, -1):
            value = x[i]
            if a[4 * n + i] != i:
                x[i + 1] = value - a[i] * before
            else:
                before = value - a[i] * before
            x[i] = before
        return
    before = x[0]
    for i in range(n - 1):
        value = x[i + 1]
        if a[4 * n + i] != i:
            before, value = value, before
        x[i] = before
        before = value - a[i] * before
    x[n - 1] = before
    before = 0.0
    for i in range(n - 1, -1, -1):
        scale = 1.0 / a[n + i]
        value = (x[i] - a[3 * n + i] * further) - a[2 * n + i] * before
        further, before = before, value * scale
        x[i] = before


@kernel
def _solve(
    work: int, at: int, x: int, n: int, m: int, lower: int, upper: int, transposed: int
) -> None:
    """By LAPACK, which takes columns."""
    height, space = 2 * lower + upper + 1, work + HEAD + 4 * (n + n % 2)
    exchanges, last = short_integers(work + HEAD, n), doubles(at + 8 * height * n, n)
    for i in range(n):
        exchanges[i] = int(last[i]) + 1
    turned(space, x, n, m)
    sizes, text = short_integers(work, 6), letters(work + 32, 1)
    sizes[0], sizes[1], sizes[2], sizes[3], sizes[4] = n, lower, upper, height, m
    text[0] = _T if transposed else _N
    _dgbtrs(work + 32, work, work + 4, work + 8, work + 16, at, work + 12, work + HEAD, space, work,
            work + 20)  # fmt: skip
    turned(x, space, m, n)


_BANDED = compiled(
    _banded,
    lambda attrs, factors, right: 8 * right.shape[1] * (right.shape[2] + 1) + 8,
    _FAILURES,
)


def _rows_of(k: int, n: int, upper: int) -> tuple[int, int, int]:
    """Diagonal k of a matrix: its first column and row, and how many elements it has."""
    offset = upper - k
    length = max(n - abs(offset), 0)
    return max(offset, 0), max(-offset, 0), length


def _product(b: Builder, diagonals: int, x: int, attrs: Attributes) -> int:
    """A X, or A^T X"""
    lower, upper, transposed, _ = attrs
    batch, n, m = b.type(x).shape
    terms = []
    for k in range(lower + upper + 1):
        column, row, length = _rows_of(k, n, upper)
        from_, to = (row, column) if transposed else (column, row)
        entries = part(b, diagonals, (0, k, column), (batch, 1, length))
        spread = b.broadcast_to(b.reshape_to(entries, (batch, length, 1)), (batch, length, m))
        change = b.mul(spread, part(b, x, (0, from_, 0), (batch, length, m)))
        terms.append(placed(b, change, (0, to, 0), (batch, n, m)))
    total = add(b, terms)
    assert total is not None
    return total


def _banded_jvp(
    b: Builder, tangents: Tangents, out: int, factors: int, right: int, attrs: Attributes
) -> int | None:
    by_matrix, by_right = tangents
    terms = [] if by_right is None else [by_right]
    if by_matrix is not None:
        terms.append(b.neg(_product(b, _of_diagonals(b, by_matrix, attrs[0]), out, attrs)))
    total = add(b, terms)
    return None if total is None else b.call(factors, total, attrs=(banded.number, *attrs))


def _banded_vjp(
    b: Builder, ct: int, out: int, factors: int, right: int, attrs: Attributes
) -> tuple[int, int]:
    lower, upper, transposed, singular = attrs
    of_right = b.call(factors, ct, attrs=(banded.number, lower, upper, 1 - transposed, singular))
    batch, n, m = b.type(out).shape
    of_rows, of_columns = (out, of_right) if transposed else (of_right, out)
    rows = []
    for k in range(lower + upper + 1):
        column, row, length = _rows_of(k, n, upper)
        pair = b.mul(
            part(b, of_rows, (0, row, 0), (batch, length, m)),
            part(b, of_columns, (0, column, 0), (batch, length, m)),
        )
        total = b.reshape_to(b.neg(b.sum(pair, attrs=(2,))), (batch, 1, length))
        rows.append(placed(b, total, (0, 0, column), (batch, 1, n)))
    of_diagonals = rows[0] if len(rows) == 1 else b.concat(*rows, attrs=(1,))
    return _of_factors(b, of_diagonals, lower), of_right


banded = from_code(
    "banded",
    _banded_shape,
    _BANDED,
    _banded_jvp,
    _banded_vjp,
    lambda attrs, f, x: 2.0 * x.size * f.shape[1],
)
