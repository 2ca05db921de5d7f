"""Cholesky factors as loops give them, in blocks by BLAS.

A pivot that is not positive makes NaN, as in those loops: nothing is said of it.
"""

from __future__ import annotations

import math

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.definite import cholesky_pull
from ckad.rules.routines.dense.functions.substitution import substituted
from ckad.rules.routines.dense.lapack import (
    FEW,
    NUMBERS,
    SIZES,
    L,
    N,
    T,
    U,
    dtrsm,
)
from ckad.rules.routines.dense.matrices import Matrix, square_stack
from ckad.rules.routines.memory import (
    compiled,
    doubles,
    external,
    from_code,
    integers,
    is_finite,
    letters,
    short_integers,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes
from ckad.tape.types import Type

_dsyrk = external("dsyrk", 10)

# rooted(A [b, n, n]) -> L, lower, with A = L L^T; reads the lower triangle


def _rooted_shape(attrs: Attributes, a: Type) -> Type:
    square_stack("rooted", attrs, 0, a)
    return a


def _rooted(words: int, arrays: int, work: int) -> int:
    batch, n = integers(words, 2)
    out, a = integers(arrays, 2)
    numbers = doubles(work + NUMBERS, 2)
    numbers[0], numbers[1] = -1.0, 1.0
    for k in range(batch):
        at = 8 * k * n * n
        _lower(out + at, a + at, n)
        _forward(work, out + at, n, n)
        if n > FEW and not is_finite(out + at, n * n):  # as in ``eliminated``
            _lower(out + at, a + at, n)
            _forward_rows(out + at, n, n)
    return 0


@kernel
def _lower(out: int, a: int, n: int) -> None:
    to, given = doubles(out, n * n), doubles(a, n * n)
    for i in range(n):
        for j in range(n):
            to[i * n + j] = given[i * n + j] if j <= i else 0.0


@kernel
def _forward(work: int, x: int, n: int, step: int) -> None:
    """The factor of n rows at ``x``, which lie ``step`` apart, in their place; in halves."""
    if n <= FEW:
        _forward_rows(x, n, step)
        return
    first = (n // 2 + 7) // 8 * 8
    rest = n - first
    below, corner = 8 * first * step, 8 * first * (step + 1)
    _forward(work, x, first, step)
    sizes, text, number = short_integers(work + SIZES, 8), letters(work, 4), work + NUMBERS
    sizes[0], sizes[1], sizes[2] = first, rest, step
    # A_21 <- A_21 L_11^-T, of which BLAS sees the transposes
    text[0], text[1], text[2], text[3] = L, U, T, N
    dtrsm(work, work + 1, work + 2, work + 3, work + 16, work + 20, number + 8, x, work + 24,
           x + below, work + 24)  # fmt: skip
    # A_22 -= A_21 A_21^T
    text[0], text[1] = U, T
    _dsyrk(work, work + 1, work + 20, work + 16, number, x + below, work + 24, number + 8,
           x + corner, work + 24)  # fmt: skip
    _forward(work, x + corner, rest, step)


@kernel
def _forward_rows(x: int, n: int, step: int) -> None:
    a = doubles(x, (n - 1) * step + n)
    for i in range(n):
        row = i * step
        for j in range(i):
            at = j * step
            total = a[row + j]
            for k in range(j):
                total -= a[row + k] * a[at + k]
            a[row + j] = total / a[at + j]
        total = a[row + i]
        for k in range(i):
            total -= a[row + k] * a[row + k]
        a[row + i] = math.sqrt(total)


_ROOTED = compiled(_rooted, lambda attrs, a: 0)


def _rooted_jvp(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
    """dL = L P(L^-1 dA L^-T), where P is the lower triangle with half of the diagonal"""
    assert tangents[0] is not None
    root, half = Matrix(b, out), Matrix(b, tangents[0]).lower(0.5)
    left = _divided(root, half + half.T)
    return (root @ _divided(root, left.T).lower(0.5)).plain().re


def _divided(root: Matrix, x: Matrix) -> Matrix:
    """L^-1 X"""
    attrs = (substituted.number, 1, 0, 0)
    return Matrix(root.b, root.b.call(root.re, x.plain().re, attrs=attrs))


def _rooted_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    return (b.call(out, ct, attrs=(cholesky_pull.number,)),)


rooted = from_code(
    "rooted",
    _rooted_shape,
    _ROOTED,
    _rooted_jvp,
    _rooted_vjp,
    lambda attrs, a: 1 / 3 * a.size * a.shape[1],
)
