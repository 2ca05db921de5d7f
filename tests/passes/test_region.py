"""Regions of arrays: what is said of two of them holds for their elements."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ckad.passes.vectorise.region import Known, Places, Range, Region, contains

#: Iterations, and the length of every axis.
N, LENGTH = 5, 8


def _range(start: int, step: int, count: int) -> Range:
    places = range(start, LENGTH, step)[:count]
    return Range(start, step if len(places) > 1 else 1, len(places))


ranges = st.builds(_range, st.integers(0, LENGTH - 1), st.integers(1, 3), st.integers(1, 4))
vectors = st.one_of(
    st.builds(lambda a, s: (a + s * np.arange(N)) % LENGTH, st.integers(0, 7), st.integers(-2, 2)),
    st.lists(st.integers(0, LENGTH - 1), min_size=N, max_size=N).map(np.array),
)
axes = st.one_of(ranges, vectors)


def elements(known: Known, region: Region, i: int) -> set[tuple[int, ...]]:
    """The elements that iteration i touches."""
    places = [
        range(a.start, a.start + a.step * a.length, a.step)
        if isinstance(a, Range)
        else [int(known.vectors[a.vector][i])]
        for a in region
        if isinstance(a, (Range, Places))
    ]
    return set(product(*places))


@given(st.lists(axes, min_size=2, max_size=2), st.lists(axes, min_size=2, max_size=2))
def test_regions_that_meet_are_found(one: list[object], other: list[object]) -> None:
    known = Known(N)
    x, y = (
        tuple(known.axis(a) if isinstance(a, np.ndarray) else a for a in region)
        for region in (one, other)
    )
    found = known.meeting(x, y)
    for i, j in product(range(N), repeat=2):
        if elements(known, x, i) & elements(known, y, j):
            assert found.before if i < j else found.after if i > j else found.same


@given(st.lists(axes, min_size=1, max_size=1), st.lists(axes, min_size=1, max_size=1))
def test_what_is_contained_lies_inside(one: list[object], other: list[object]) -> None:
    known = Known(N)
    x, y = (
        tuple(known.axis(a) if isinstance(a, np.ndarray) else a for a in region)
        for region in (one, other)
    )
    for i in range(N):
        inside = elements(known, y, i) <= elements(known, x, i)
        assert inside or not (contains(x, y) or known.covers(x, y, (LENGTH,)))


def test_shifted_places_meet_only_where_they_do() -> None:
    known = Known(N)
    here, ahead = known.axis(np.arange(N)), known.axis(np.arange(N) + 1)
    assert known.meeting((here,), (here,)) == (False, True, False)
    # iteration i + 1 writes what iteration i has read
    assert known.meeting((here,), (ahead,)) == (False, False, True)
    assert known.meeting((here, ahead), (ahead, here)) == (False, False, False)
