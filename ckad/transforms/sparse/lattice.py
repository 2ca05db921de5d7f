"""Colours of grids: those of a lattice, mended where the grid's ends meet.

A stencil's elements have colours ``(a i + b j + ...) mod p`` of their places i, j, ..., p as small
as their neighbourhood: five for that of five elements in a plane. Where a grid is periodic, and
its lengths are no multiples of p, the elements about its ends are coloured one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from ckad.kernel import kernel
from ckad.patterns import Pattern

#: Rows of a pattern that a lattice is tried on first, and lattices of one period.
SAMPLE, MOST = 64, 4096
#: The share of its rows in which a lattice may give two columns one colour.
FEW = 0.1


def lattices(
    pattern: Pattern, shape: Sequence[int], periods: range
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Colours of the columns, elements of an array of this shape, by the best lattice per period.

    With them: the columns that meet one of their colour in a row.
    """
    axes = [n for n in shape if n > 1]
    if not axes or not pattern.nnz:
        return
    places = np.indices(axes).reshape(len(axes), -1)
    sample = np.unique(np.linspace(0, pattern.shape[0] - 1, SAMPLE).astype(np.int64))
    for period in periods:
        factors = _factors(axes, period)
        if not len(factors):
            return
        missed = np.zeros(len(factors), np.int64)
        about = places, pattern.indptr, pattern.indices
        _misses(missed, np.full(period, -1, np.int64), factors, sample, *about)
        best = int(missed.argmin())
        if missed[best] <= FEW * len(sample):
            colours = factors[best] @ places % period
            yield colours, _met(pattern, colours, period)


def _factors(axes: Sequence[int], period: int) -> np.ndarray:
    """One factor per axis; that of the last one is 1 where all would be too many."""
    ranges = [range(period)] * len(axes)
    if np.prod([len(r) for r in ranges]) > MOST:
        ranges[-1] = range(1, 2)
    if np.prod([len(r) for r in ranges]) > MOST:
        return np.zeros((0, len(axes)), np.int64)
    return np.array(list(product(*ranges)), np.int64)


def _met(pattern: Pattern, colours: np.ndarray, period: int) -> np.ndarray:
    own = pattern.rows * period + colours[pattern.indices]
    counts = np.bincount(own, minlength=pattern.shape[0] * period)
    return np.unique(pattern.indices[counts[own] > 1])


@kernel
def _misses(
    missed: np.ndarray, last: np.ndarray, factors: np.ndarray, sample: np.ndarray,
    places: np.ndarray, indptr: np.ndarray, indices: np.ndarray,
) -> None:  # fmt: skip
    """In how many rows of the sample each lattice gives two columns one colour."""
    turn = 0
    for k in range(len(factors)):
        for i in sample:
            turn += 1
            for p in range(indptr[i], indptr[i + 1]):
                at = 0
                for axis in range(len(places)):
                    at += factors[k, axis] * places[axis, indices[p]]
                at %= len(last)
                if last[at] == turn:
                    missed[k] += 1
                    break
                last[at] = turn
