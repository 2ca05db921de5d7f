"""Pairwise designs: few rows of a table that show every pair of values which its rows show."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations, groupby

Row = tuple[Hashable, ...]
Pair = tuple[int, Hashable, int, Hashable]


def pairs(row: Row) -> list[Pair]:
    """The values of a row, two by two, each with its column."""
    return [(i, row[i], j, row[j]) for i, j in combinations(range(len(row)), 2)]


def pairwise(rows: Iterable[Row]) -> list[Row]:
    """Rows in which every pair of any row is: the same ones at every run.

    Greedy within the rows of one first value, which stand together: what shows most new pairs, the
    first of equals. Made for tables whose first column has far more values than the others.
    """
    seen: set[Pair] = set()
    picked: list[Row] = []
    for _, group in groupby(rows, key=lambda row: row[0]):
        left = [(row, pairs(row)) for row in group]
        while best := _with_most_new(left, seen):
            picked.append(best[0])
            seen.update(best[1])
    return picked


def _with_most_new(
    rows: Sequence[tuple[Row, list[Pair]]], seen: set[Pair]
) -> tuple[Row, list[Pair]] | None:
    best, most = None, 0
    for row in rows:
        new = sum(pair not in seen for pair in row[1])
        if new > most:
            best, most = row, new
    return best
