"""``scipy.linalg`` on the diagonals of banded matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from ckad.place import at_place
from ckad.trace.arrays import Array, copied, promoted, reshaped, retyped, routine
from ckad.trace.dispatch import PLAIN
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
