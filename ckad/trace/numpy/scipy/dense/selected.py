"""Eigenvalues of banded matrices, all or some, and what relates two sets of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from ckad.trace.arrays import Array
from ckad.trace.dispatch import PLAIN, reject
from ckad.trace.numpy.linalg import floats
from ckad.trace.numpy.scipy.dense.factors import orth, polar
from ckad.trace.numpy.scipy.dense.matrices import linalg_eigh, of_scipy
from ckad.trace.numpy.spectra import svd


def _selected(name: str, whole: Array, only: bool, select: Any, places: Any) -> Any:
    """Of all of them, of which the lower triangle is read, those at places from one to another."""
    some = select in ("i", 2)
    reject(not some and select not in ("a", 0), f"scipy.linalg.{name} with select={select!r}")
    return linalg_eigh(whole, eigvals_only=only, subset_by_index=places if some else None)


def _of_two(d: Any, e: Any) -> Array:
    return np.diag(floats(d)) + np.diag(floats(e), -1)


@of_scipy(scipy.linalg.eigh_tridiagonal, kind=(PLAIN,))
def eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool = False, select: Any = "a",
                     select_range: Any = None, tol: Any = 0.0) -> Any:  # fmt: skip
    return _selected("eigh_tridiagonal", _of_two(d, e), eigvals_only, select, select_range)


@of_scipy(scipy.linalg.eigvalsh_tridiagonal, kind=(PLAIN,))
def eigvalsh_tridiagonal(
    d: Any, e: Any, select: Any = "a", select_range: Any = None, tol: Any = 0.0
) -> Any:
    return _selected("eigvalsh_tridiagonal", _of_two(d, e), True, select, select_range)


def _of_bands(bands: Any, lower: bool) -> Array:
    """The matrix whose lower diagonals these are, or, from the last on, its upper ones."""
    rows = floats(bands)
    n = rows.shape[1]
    at = range(min(rows.shape[0], n))
    if lower:
        return sum((np.diag(rows[k][: n - k], -k) for k in at), np.zeros((n, n), like=rows))
    upper = rows[::-1]
    return sum((np.diag(upper[k][k:], -k) for k in at), np.zeros((n, n), like=rows))


@of_scipy(scipy.linalg.eig_banded, kind=(PLAIN,))
def eig_banded(
    a_band: Any, lower: bool = False, eigvals_only: bool = False, overwrite_a_band: bool = False,
    select: Any = "a", select_range: Any = None, max_ev: Any = 0,
) -> Any:  # fmt: skip
    whole = _of_bands(a_band, lower)
    return _selected("eig_banded", whole, eigvals_only, select, select_range)


@of_scipy(scipy.linalg.eigvals_banded, kind=(PLAIN,))
def eigvals_banded(
    a_band: Any, lower: bool = False, overwrite_a_band: bool = False, select: Any = "a",
    select_range: Any = None,
) -> Any:  # fmt: skip
    return _selected("eigvals_banded", _of_bands(a_band, lower), True, select, select_range)


@of_scipy(scipy.linalg.orthogonal_procrustes, kind=(PLAIN,))
def orthogonal_procrustes(A: Any, B: Any) -> tuple[Array, Array]:
    """The orthogonal factor of A^T B, and the trace of the other one."""
    rotation, stretch = polar(floats(A).T @ floats(B))
    return rotation, np.trace(stretch)


@of_scipy(scipy.linalg.subspace_angles, kind=(PLAIN,))
def subspace_angles(A: Any, B: Any) -> Array:
    """By sines where these are small, and by cosines (Knyazev and Argentati, 2002)."""
    one, other = orth(A), orth(B)
    if one.shape[1] < other.shape[1]:
        one, other = other, one
    inner = one.T @ other
    cosines = svd(inner, compute_uv=False)
    sines = svd(other - one @ inner, compute_uv=False)
    near = cosines**2 >= 0.5
    by_sines = np.arcsin(np.where(near, np.clip(sines, -1.0, 1.0), 0.0))
    by_cosines = np.arccos(np.where(near, 0.5, np.clip(cosines[::-1], -1.0, 1.0)))
    return np.where(near, by_sines, by_cosines)
