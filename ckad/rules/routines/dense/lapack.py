"""What routines on matrices share in memory: numbers for LAPACK, triangles, complex numbers."""

from __future__ import annotations

import numpy as np

from ckad.kernel import kernel
from ckad.rules.routines.memory import copy, doubles, external, letters, short_integers
from ckad.tape.routines import Failure

dtrsm, ztrsm, dgemm = external("dtrsm", 11), external("ztrsm", 11), external("dgemm", 13)
zgemm = external("zgemm", 13)
dgetrf, zgetrf = external("dgetrf", 6), external("zgetrf", 6)
_dtrsv, _ztrsv = external("dtrsv", 8), external("ztrsv", 8)

#: What a body returns where an iteration of LAPACK's does not end.
NO_CONVERGENCE = 1
#: Columns that LAPACK takes together.
BLOCK = 64
#: So few rows are done one by one where loops are done in blocks.
FEW = 16
#: Where numbers and sizes for BLAS lie in their workspaces, beside letters at the start.
NUMBERS, SIZES = 64, 16
#: NumPy's words.
SINGULAR: Failure = (np.linalg.LinAlgError, "Singular matrix")
NOT_POSITIVE: Failure = (np.linalg.LinAlgError, "Matrix is not positive definite")

A, C, L, N, R, S, T, U, V = (ord(letter) for letter in "ACLNRSTUV")


@kernel
def set_sizes(work: int, m: int, n: int) -> np.ndarray:
    """``m`` and ``n``, which is also the distance of columns, at the start of a workspace.

    The third number is where LAPACK says how it ended.
    """
    sizes = short_integers(work, 8)
    sizes[0], sizes[1], sizes[2] = m, max(n, 1), 0
    return sizes


@kernel
def _conjugate(x: int, n: int) -> None:
    numbers = doubles(x, 2 * n)
    for i in range(n):
        numbers[2 * i + 1] = -numbers[2 * i + 1]


@kernel
def divided(
    work: int, a: int, x: int, n: int, m: int, lower: int, adjoint: int, unit: int, is_complex: int
) -> None:
    """x <- x a^-1 or x a^-H as LAPACK counts, where x has m rows and n columns."""
    if n == 0 or m == 0:
        return
    text, sizes, number = letters(work, 4), short_integers(work, 16), doubles(work, 8)
    uplo, diagonal = L if lower else U, U if unit else N
    sizes[1], sizes[2], sizes[3], number[3], number[4] = n, m, 1, 1.0, 0.0
    if m == 1:
        # the row x a^-1 is the column a^-T x; and x a^-H the conjugate of a^-1 conj(x)
        text[0], text[1], text[2] = uplo, N if adjoint else T, diagonal
        if not is_complex:
            _dtrsv(work, work + 1, work + 2, work + 4, a, work + 4, x, work + 12)
            return
        if adjoint:
            _conjugate(x, n)
        _ztrsv(work, work + 1, work + 2, work + 4, a, work + 4, x, work + 12)
        if adjoint:
            _conjugate(x, n)
        return
    text[0], text[1], text[2], text[3] = R, uplo, C if adjoint else N, diagonal
    if is_complex:
        ztrsm(work, work + 1, work + 2, work + 3, work + 8, work + 4, work + 24, a, work + 4,
               x, work + 8)  # fmt: skip
    else:
        dtrsm(work, work + 1, work + 2, work + 3, work + 8, work + 4, work + 24, a, work + 4,
               x, work + 8)  # fmt: skip


@kernel
def gathered(to: int, planes: int, k: int, batch: int, size: int, is_complex: int) -> None:
    """Array k of a stack; real and imaginary parts of complex ones beside each other."""
    if not is_complex:
        copy(doubles(to, size), doubles(planes + 8 * k * size, size))
        return
    z = doubles(to, 2 * size)
    re, im = doubles(planes + 8 * k * size, size), doubles(planes + 8 * (batch + k) * size, size)
    for i in range(size):
        z[2 * i], z[2 * i + 1] = re[i], im[i]


@kernel
def parted_to(planes: int, at: int, k: int, batch: int, size: int, is_complex: int) -> None:
    """The way back."""
    if not is_complex:
        copy(doubles(planes + 8 * k * size, size), doubles(at, size))
        return
    z = doubles(at, 2 * size)
    re, im = doubles(planes + 8 * k * size, size), doubles(planes + 8 * (batch + k) * size, size)
    for i in range(size):
        re[i], im[i] = z[2 * i], z[2 * i + 1]


#: Rows and columns that are copied together where a matrix is turned.
_TILE = 16


@kernel
def turned(to: int, x: int, rows: int, columns: int) -> None:
    """The transpose of a matrix: what has ``rows`` rows at ``x`` has as many columns at ``to``."""
    source, target = doubles(x, rows * columns), doubles(to, rows * columns)
    for first in range(0, rows, _TILE):
        for start in range(0, columns, _TILE):
            for i in range(first, min(first + _TILE, rows)):
                for j in range(start, min(start + _TILE, columns)):
                    target[j * rows + i] = source[i * columns + j]


@kernel
def turned_parts(to: int, re: int, im: int, rows: int, columns: int) -> None:
    """The same, to complex numbers from their real and imaginary parts."""
    size = rows * columns
    real, imag, target = doubles(re, size), doubles(im, size), doubles(to, 2 * size)
    for i in range(rows):
        for j in range(columns):
            at = 2 * (j * rows + i)
            target[at], target[at + 1] = real[i * columns + j], imag[i * columns + j]


@kernel
def turned_into_parts(re: int, im: int, x: int, rows: int, columns: int) -> None:
    """The way back, of ``rows`` times ``columns`` complex numbers at ``x``."""
    size = rows * columns
    real, imag, source = doubles(re, size), doubles(im, size), doubles(x, 2 * size)
    for i in range(rows):
        for j in range(columns):
            at = 2 * (i * columns + j)
            real[j * rows + i], imag[j * rows + i] = source[at], source[at + 1]
