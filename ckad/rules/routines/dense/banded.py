"""Banded systems by LAPACK, differentiable in every diagonal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.matrices import add, matrices, need, part, placed, type_of_array
from ckad.rules.routines.memory import (
    HEAD,
    compiled,
    copy,
    doubles,
    external,
    integers,
    letters,
    run,
    short_integers,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import Failure, Routine, define
from ckad.tape.types import Type

Attributes = Sequence[int]

_dgtsv = external("dgtsv", 8)
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

# banded(D [b, l + u + 1, n], B [b, n, m]; l, u, transposed, singular) -> X with A X = B or
# A^T X = B, where A[i, j] = D[u + i - j, j]; ``singular`` says what a singular matrix gives


def _banded_shape(attrs: Attributes, diagonals: Type, right: Type) -> Type:
    fits = len(attrs) == 4 and min(attrs) >= 0 and attrs[2] <= 1 and attrs[3] <= RAISES_LATE
    need(fits, f"banded with attributes {tuple(attrs)}")
    matrices("banded", diagonals, right)
    rows = attrs[0] + attrs[1] + 1
    need(diagonals.shape[1] == rows, f"banded of {diagonals}: {rows} diagonals are needed")
    need(diagonals.shape[2] == right.shape[1], f"banded of {diagonals} and {right}")
    return right


def _banded(words: int, arrays: int, work: int) -> int:
    lower, upper, transposed, singular, batch, rows, n, _, _, m = integers(words, 10)
    out, diagonals, right = integers(arrays, 3)
    if n == 0 or m == 0:
        return 0
    x = work + HEAD
    space = x + 8 * n * m
    for k in range(batch):
        given, to = doubles(right + 8 * k * n * m, n * m), doubles(x, n * m)
        for i in range(n):
            for c in range(m):
                to[c * n + i] = given[i * m + c]
        at = diagonals + 8 * k * rows * n
        if lower == 1 and upper == 1:
            failed = _tridiagonal(work, at, x, space, n, m, transposed)
        else:
            failed = _by_lu(work, at, x, space, n, m, lower, upper, transposed)
        if failed and singular != NAN:
            return _SINGULAR if singular == RAISES else _SINGULAR_FACTOR
        if failed:
            to[:] = np.nan
        result = doubles(out + 8 * k * n * m, n * m)
        for i in range(n):
            for c in range(m):
                result[i * m + c] = to[c * n + i]
    return 0


@kernel
def _tridiagonal(
    work: int, diagonals: int, x: int, space: int, n: int, m: int, transposed: int
) -> bool:
    given, d = doubles(diagonals, 3 * n), doubles(space, 3 * n)
    copy(d, given)
    above, below = space + 8, space + 16 * n
    sizes = short_integers(work, 4)
    sizes[0], sizes[1], sizes[2] = n, m, 0
    if transposed:
        above, below = below, above
    _dgtsv(work, work + 4, below, space + 8 * n, above, x, work, work + 8)
    return bool(sizes[2] != 0)


@kernel
def _by_lu(
    work: int, diagonals: int, x: int, space: int, n: int, m: int, lower: int, upper: int,
    transposed: int,
) -> bool:  # fmt: skip
    """LAPACK's columns of diagonals, with ``lower`` more for what row exchanges fill."""
    rows, height = lower + upper + 1, 2 * lower + upper + 1
    given, a = doubles(diagonals, rows * n), doubles(space, height * n)
    for j in range(n):
        a[j * height : j * height + lower] = 0.0
        for i in range(rows):
            a[j * height + lower + i] = given[i * n + j]
    sizes, text, pivots = short_integers(work, 8), letters(work + 32, 1), space + 8 * height * n
    sizes[0], sizes[1], sizes[2], sizes[3] = n, lower, upper, height
    sizes[4], sizes[5], text[0] = m, 0, _T if transposed else _N
    _dgbtrf(work, work, work + 4, work + 8, space, work + 12, pivots, work + 20)
    if sizes[5] != 0:
        return True
    _dgbtrs(work + 32, work, work + 4, work + 8, work + 16, space, work + 12, pivots, x, work,
            work + 20)  # fmt: skip
    return False


def _workspace(attrs: Attributes, diagonals: Type, right: Type) -> int:
    n, m = right.shape[1:]
    return 8 * n * (m + 2 * attrs[0] + attrs[1] + 2) + 24 * n


_BANDED = compiled(_banded, _workspace, _FAILURES)


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
    b: Builder, tangents: Tangents, out: int, diagonals: int, right: int, attrs: Attributes
) -> int | None:
    by_matrix, by_right = tangents
    terms = [] if by_right is None else [by_right]
    if by_matrix is not None:
        terms.append(b.neg(_product(b, by_matrix, out, attrs)))
    total = add(b, terms)
    return None if total is None else b.call(diagonals, total, attrs=(banded.number, *attrs))


def _banded_vjp(
    b: Builder, ct: int, out: int, diagonals: int, right: int, attrs: Attributes
) -> tuple[int, int]:
    lower, upper, transposed, singular = attrs
    of_right = b.call(diagonals, ct, attrs=(banded.number, lower, upper, 1 - transposed, singular))
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
    return (rows[0] if len(rows) == 1 else b.concat(*rows, attrs=(1,))), of_right


banded = define(
    Routine(
        "banded",
        _banded_shape,
        lambda attrs, d, x: run(_BANDED, type_of_array(x), attrs, d, x),
        _banded_jvp,
        _banded_vjp,
        lambda attrs, d, x: 6.0 * d.size * (attrs[0] + 1) + 2.0 * x.size * d.shape[1],
        compiled=_BANDED,
    )
)
