"""``scipy.linalg`` on the diagonals of banded matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from ckad.place import at_place
from ckad.trace.arrays import (
    Array,
    copied,
    fori_loop,
    promoted,
    reshaped,
    retyped,
    routine,
    stopping,
)
from ckad.trace.dispatch import PLAIN, reject
from ckad.trace.numpy.linalg import floats
from ckad.trace.numpy.scipy.dense.matrices import of_scipy


@of_scipy(scipy.linalg.solve_banded)
def solve_banded(l_and_u: Any, ab: Any, b: Any) -> Array:
    """Derivatives in every diagonal."""
    lower, upper = l_and_u
    diagonals, right = promoted(floats(ab), floats(b))
    if diagonals.ndim != 2 or diagonals.shape[0] != lower + upper + 1:
        raise ValueError(at_place(f"{lower + upper + 1} diagonals are needed, not {np.shape(ab)}"))
    if diagonals.shape[1] != right.shape[0]:
        raise ValueError(at_place(f"shapes of ab {diagonals.shape} and b {right.shape} do not fit"))
    n = right.shape[0]
    if right.dtype.kind == "c":
        found = solve_banded((2 * lower + 1, 2 * upper + 1), _of_pairs(diagonals), _pairs(right))
        return found[0::2] + 1j * found[1::2]
    columns = reshaped(right, (1, n, right.size // max(n, 1)))
    stack = reshaped(diagonals, (1, *diagonals.shape))
    factors = routine("banded_lu", stack, attrs=(lower, upper))
    found = routine("banded", factors, columns, attrs=(lower, upper, 0, 0))
    return copied(reshaped(retyped(found, right.dtype), right.shape))


def _pairs(x: Array) -> Array:
    """Real and imaginary parts in turn, down the first axis."""
    return reshaped(np.stack([x.real, x.imag], axis=1), (2 * x.shape[0], *x.shape[1:]))


def _of_pairs(diagonals: Array) -> Array:
    """The diagonals of a matrix of real numbers, each element z as [[re, -im], [im, re]]."""
    re, im = diagonals.real, diagonals.imag
    rows, n = diagonals.shape
    none = np.zeros_like(re[0])
    left = [none, *(part[k] for k in range(rows) for part in (re, im))]
    right = [row for k in range(rows) for row in (-im[k], re[k])] + [none]
    return reshaped(np.stack([np.stack(left), np.stack(right)], axis=2), (2 * rows + 1, 2 * n))


@of_scipy(scipy.linalg.solveh_banded, kind=(PLAIN,))
def solveh_banded(ab: Any, b: Any, lower: bool = False) -> Array:
    """By LU of the whole band."""
    given = floats(ab)
    width, n = given.shape[0] - 1, given.shape[1]
    below = [given[k] if lower else _moved(given[width - k], -k) for k in range(width + 1)]
    above = [_moved(below[k], k) for k in range(width, 0, -1)]
    return solve_banded((width, width), np.stack([*above, *below]) if n else given, b)


def _moved(row: Array, k: int) -> Array:
    """Elements ``k`` places further along a row, zeros where none come from."""
    n = row.shape[0]
    zeros = np.zeros(min(abs(k), n), row.dtype)
    kept = row[: n - k] if k > 0 else row[-k:]
    return np.concatenate([zeros, kept] if k > 0 else [kept, zeros])


# --- Cholesky factors ----------------------------------------------------------------------------


@of_scipy(scipy.linalg.cholesky_banded)
def cholesky_banded(ab: Any, lower: bool = False) -> Array:
    """Column by column; what lies outside of the matrix is left as it is."""
    given = floats(ab)
    reject(given.ndim != 2, "scipy.linalg.cholesky_banded of stacks")
    rows, n = given.shape
    if n == 0:
        return copied(given)
    below = given if lower else _turned_down(given)
    inside = np.add.outer(np.arange(rows), np.arange(n)) < n
    band = np.where(inside, below, np.zeros((), given.dtype))
    wide = np.concatenate([band, np.zeros((rows, rows - 1), given.dtype)], 1)
    factor = fori_loop(0, n, _eliminate, wide)[:, :n]
    wrong = np.logical_not(np.all(np.real(factor[0]) > 0))
    factor = factor - stopping(np.zeros((), np.real(given).dtype), wrong, "NOT_POSITIVE")
    if lower:
        return np.where(inside, factor, given)
    return np.where(inside[::-1, ::-1], _turned_up(factor), given)


def _eliminate(j: Any, band: Array) -> Array:
    """One column of the factor, and what it leaves of those it meets."""
    rows = band.shape[0]
    pivot = np.sqrt(np.real(band[0, j]))
    column = band[1:, j] / pivot
    band[0, j], band[1:, j] = pivot, column
    for k in range(1, rows):
        band[: rows - k, j + k] -= column[k - 1 :] * np.conj(column[k - 1])
    return band


def _turned_down(upper: Array) -> Array:
    """The diagonals of the adjoint: those below the main one in place of those above it."""
    width = upper.shape[0] - 1
    return np.stack([_moved(np.conj(upper[width - k]), -k) for k in range(width + 1)])


def _turned_up(lower: Array) -> Array:
    width = lower.shape[0] - 1
    return np.stack([_moved(np.conj(lower[k]), k) for k in range(width, -1, -1)])


@of_scipy(scipy.linalg.cho_solve_banded)
def cho_solve_banded(cb_and_lower: Any, b: Any) -> Array:
    factor, lower = cb_and_lower
    c = floats(factor)
    width = c.shape[0] - 1
    below, above = (c, _turned_up(c)) if lower else (_turned_down(c), c)
    return solve_banded((0, width), above, solve_banded((width, 0), below, b))
