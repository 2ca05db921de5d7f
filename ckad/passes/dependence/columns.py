"""What the elements of a value depend on: sets of columns, one per input element.

A set may be too large, never too small. What would take too much memory to tell apart is depended
on by every element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

#: Entries that are told apart, of one value.
LARGEST = 2**25


class Columns(NamedTuple):
    """The columns of each element: those of its row, and those that all elements have."""

    rows: Any  # a csr_array of bool, one row per element
    common: np.ndarray  # bool, per column

    @property
    def size(self) -> int:
        return int(self.rows.shape[0])

    @property
    def any(self) -> np.ndarray:
        """Whether any element has a column."""
        found = self.common.copy()
        found[self.rows.indices] = True
        return found

    def whole(self) -> Any:
        """All of them as one csr_array."""
        shared = np.flatnonzero(self.common)
        size, n_columns = self.rows.shape
        every = _csr(np.tile(shared, size), np.arange(size + 1) * len(shared), n_columns)
        return self.rows + every if len(shared) else self.rows.copy()

    def told_apart(self) -> Columns:
        """The common columns in the rows, unless these are too many."""
        if not self.common.any() or self.rows.nnz + self.size * int(self.common.sum()) > LARGEST:
            return self
        return Columns(self.whole(), np.zeros_like(self.common))

    def taken(self, places: np.ndarray) -> Columns:
        """Element k is the one at ``places[k]``; without own columns if negative."""
        places = places.ravel()
        if len(places) == self.size and np.array_equal(places, np.arange(self.size)):
            return self
        inside = places >= 0
        if not inside.all() and self.common.any():
            told = self.told_apart()
            return told.taken(places) if told is not self else self.everything(len(places))
        lengths = np.zeros(len(places), np.int64)
        lengths[inside] = np.diff(self.rows.indptr)[places[inside]]
        if lengths.sum() > LARGEST:
            return self.everything(len(places))
        picked = self.rows[places[inside]]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        return Columns(_csr(picked.indices, indptr, self.rows.shape[1]), self.common)

    def collected(self, incidence: Any) -> Columns:
        """Element k has the columns of all elements in row k of a sparse matrix of bools."""
        lengths = np.diff(self.rows.indptr).astype(np.float64)
        if (incidence @ lengths).sum() > LARGEST:
            return self.everything(incidence.shape[0])
        return Columns((incidence @ self.rows).tocsr(), self.common)

    def grouped(self, groups: np.ndarray, n: int) -> Columns:
        """Element k has the columns of all elements whose group is k, of ``n`` groups."""
        return self.collected(incidence(groups, np.arange(self.size), (n, self.size)))

    def everything(self, size: int) -> Columns:
        """``size`` elements, each with all columns of all elements."""
        return nothing(size, self.rows.shape[1])._replace(common=self.any)

    def same(self, other: Columns) -> bool:
        pairs = (self.rows.indptr, other.rows.indptr), (self.common, other.common)
        if not all(np.array_equal(a, b) for a, b in pairs):
            return False
        for each in (self, other):
            each.rows.sort_indices()
        return np.array_equal(self.rows.indices, other.rows.indices)


def nothing(size: int, n_columns: int) -> Columns:
    none = np.zeros(0, np.int32)
    return Columns(_csr(none, np.zeros(size + 1, np.int64), n_columns), np.zeros(n_columns, bool))


def units(first: int, size: int, n_columns: int) -> Columns:
    """Elements that are the columns from ``first`` on."""
    rows = _csr(np.arange(first, first + size), np.arange(size + 1), n_columns)
    return Columns(rows, np.zeros(n_columns, bool))


def union(parts: Sequence[Columns | None]) -> Columns | None:
    """What elements have that are made of those at the same place; None has no columns."""
    left = [x for k, x in enumerate(parts) if x is not None and not any(x is y for y in parts[:k])]
    if not left:
        return None
    out = left[0]
    for x in left[1:]:
        common = out.common | x.common
        if out.rows.nnz + x.rows.nnz > LARGEST:
            return out._replace(common=common).everything(out.size)._replace(common=out.any | x.any)
        out = Columns(out.rows + x.rows, common)
    return out


def stacked(parts: Sequence[Columns | None], size: int) -> Columns | None:
    """The elements of several values of one size, one value after the other."""
    from scipy import sparse

    parts = [None if x is None else x.told_apart() for x in parts]
    known = [x for x in parts if x is not None]
    if not known:
        return None
    n_columns = len(known[0].common)
    common = np.logical_or.reduce([x.common for x in known])
    if sum(x.rows.nnz for x in known) > LARGEST:
        all_of = np.logical_or.reduce([x.any for x in known])
        return nothing(size * len(parts), n_columns)._replace(common=all_of)
    empty = nothing(size, n_columns)
    rows = [(empty if x is None else x).rows for x in parts]
    return Columns(sparse.vstack(rows, format="csr"), common)


def incidence(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Any:
    """A sparse matrix of bools with these elements true."""
    from scipy import sparse

    return sparse.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=shape)


def _csr(indices: np.ndarray, indptr: np.ndarray, n_columns: int) -> Any:
    from scipy import sparse

    shape = (len(indptr) - 1, n_columns)
    return sparse.csr_array((np.ones(len(indices), bool), indices, indptr), shape=shape)
