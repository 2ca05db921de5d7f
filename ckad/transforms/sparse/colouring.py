"""Colours: columns of a matrix that are found from one product, since no row has two of them.

A. R. Curtis, M. J. D. Powell, J. K. Reid, IMA Journal of Applied Mathematics 13, 1974, 117-119; the
symmetric ones A. H. Gebremedhin, F. Manne, A. Pothen, SIAM Review 47, 2005, 629-705; more turns
J. C. Culberson, Iterated greedy graph coloring, TR 92-07, University of Alberta, 1992.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ckad.kernel import kernel
from ckad.patterns import Pattern
from ckad.transforms.sparse.lattice import lattices

#: How often all columns are coloured once more, and how large a pattern may be for that.
TURNS, MOST_WORK = 6, 50_000_000


def columns_coloured(pattern: Pattern, shape: Sequence[int]) -> np.ndarray:
    """A colour per column, from 0 on; columns that meet in a row differ.

    The columns are the elements of an array of this shape.
    """
    by_columns, least = transposed(pattern), max(bound(pattern), 1)

    def coloured(order: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
        colours, last = np.full((2, pattern.shape[1] + 1), -1, np.int64)
        if known is not None:
            colours[:-1] = known
            colours[order] = -1
        _greedy(colours, last, order, pattern.indptr, pattern.indices, *by_columns)
        return colours[:-1]

    best = _fewer(coloured, np.diff(by_columns[0]))
    found = [best]
    for colours, met in lattices(pattern, shape, range(least, n_colours(best))):
        found.append(coloured(met, colours))
        best = min(best, found[-1], key=n_colours)
        if n_colours(best) <= n_colours(colours):
            break
    if n_colours(best) > least and pattern.nnz * least < MOST_WORK:
        best = min((_again(coloured, colours, least) for colours in found), key=n_colours)
    return best


def _again(
    coloured: Callable[[np.ndarray], np.ndarray], colours: np.ndarray, least: int
) -> np.ndarray:
    """Greedily once more, colour by colour, which takes no more of them and may take fewer."""
    random = np.random.default_rng(0)
    for turn in range(TURNS):
        n = n_colours(colours)
        if n <= least:
            break
        ranks = np.arange(n)[::-1] if turn % 2 == 0 else random.permutation(n)
        colours = coloured(np.argsort(ranks[colours], kind="stable"))
    return colours


def symmetric_coloured(pattern: Pattern) -> np.ndarray:
    """A colour per column of a symmetric pattern: each path of four columns has three of them."""

    def coloured(order: np.ndarray) -> np.ndarray:
        colours, last, once, twice = np.full((4, pattern.shape[0] + 1), -1, np.int64)
        _star(colours, last, once, twice, order, pattern.indptr, pattern.indices)
        return colours[:-1]

    return _fewer(coloured, np.diff(pattern.indptr))


def _fewer(coloured: Callable[[np.ndarray], np.ndarray], degrees: np.ndarray) -> np.ndarray:
    """The better of two orders: as they come, and by degree."""
    orders = np.arange(len(degrees)), np.argsort(-degrees, kind="stable")
    return min(map(coloured, orders), key=n_colours)


def n_colours(colours: np.ndarray) -> int:
    return int(colours.max(initial=-1)) + 1


def bound(pattern: Pattern) -> int:
    """The most elements of a row: no fewer colours of columns will do."""
    return int(np.diff(pattern.indptr).max(initial=0))


def transposed(pattern: Pattern) -> tuple[np.ndarray, np.ndarray]:
    """``indptr`` and ``indices`` of the transpose."""
    counts = np.bincount(pattern.indices, minlength=pattern.shape[1])
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return indptr, pattern.rows[pattern.by_columns].astype(np.int32)


def turned(pattern: Pattern) -> Pattern:
    """The pattern of the transpose."""
    return Pattern(pattern.cls, pattern.shape[::-1], *transposed(pattern))


@kernel
def _greedy(
    colours: np.ndarray, last: np.ndarray, order: np.ndarray, indptr: np.ndarray,
    indices: np.ndarray, by_column: np.ndarray, rows: np.ndarray,
) -> None:  # fmt: skip
    """The least colour that no column with a common row has."""
    for j in order:
        for p in range(by_column[j], by_column[j + 1]):
            i = rows[p]
            for q in range(indptr[i], indptr[i + 1]):
                c = colours[indices[q]]
                if c >= 0:
                    last[c] = j
        c = 0
        while last[c] == j:
            c += 1
        colours[j] = c


@kernel
def _star(
    colours: np.ndarray, last: np.ndarray, once: np.ndarray, twice: np.ndarray,
    order: np.ndarray, indptr: np.ndarray, indices: np.ndarray,
) -> None:  # fmt: skip
    """The least colour with which no path of four columns through v has two colours alone.

    ``once`` and ``twice`` say of which v a colour has been met at one neighbour, and at another.
    """
    for v in order:
        for p in range(indptr[v], indptr[v + 1]):
            c = colours[indices[p]]
            if indices[p] != v and c >= 0:
                last[c] = v
                if once[c] == v:
                    twice[c] = v
                once[c] = v
        for p in range(indptr[v], indptr[v + 1]):
            w = indices[p]
            if w == v or colours[w] < 0:
                continue
            for q in range(indptr[w], indptr[w + 1]):
                x = indices[q]
                if colours[x] < 0 or last[colours[x]] == v or x == w:  # v has no colour yet
                    continue
                if twice[colours[w]] == v:  # x - w - v - another one like w
                    last[colours[x]] = v
                    continue
                for r in range(indptr[x], indptr[x + 1]):
                    y = indices[r]
                    if y != w and y != x and colours[y] == colours[w]:  # v - w - x - y
                        last[colours[x]] = v
                        break
        c = 0
        while last[c] == v:
            c += 1
        colours[v] = c


@kernel
def picked(out: np.ndarray, flat: np.ndarray, places: np.ndarray) -> None:
    """out <- flat[places]; all are in range."""
    for k in range(len(out)):
        out[k] = flat[np.uint64(places[k])]
