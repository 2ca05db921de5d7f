"""Which elements of an array an iteration touches, and whether two iterations touch the same.

A region has one entry per axis of the array: a range that is the same in every iteration, a place
that is known for each of them, or a place that only the program will know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

#: The axis of a view that stands for no axis of the array, its length being one.
UNIT = -1


class Range(NamedTuple):
    """Places of one axis, the same in every iteration."""

    start: int
    step: int
    length: int


class Places(NamedTuple):
    """One place per iteration, by the number of its vector in ``Known``."""

    vector: int


class Unknown(NamedTuple):
    """The place ``scale * i + offset``, i being a row of the loop's body."""

    row: int
    scale: int
    offset: int
    varies: bool


Region = tuple[Range | Places | Unknown, ...]


class View(NamedTuple):
    """A part of one version of an array, its axes in some order."""

    base: int  # the row of the whole array
    version: int  # the last write that counts, or -1
    region: Region
    dims: tuple[int, ...]  # per axis of the view the array's axis, or UNIT


class Meeting(NamedTuple):
    """Whether a region of iteration i and one of iteration j can have an element in common."""

    before: bool  # for some i < j
    same: bool  # for some i = j
    after: bool  # for some i > j


NEVER = Meeting(False, False, False)


class Known:
    """Vectors of places, one element per iteration; equal ones have one number."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.vectors: list[np.ndarray] = []
        self._numbers: dict[bytes, int] = {}

    def axis(self, places: np.ndarray) -> Range | Places:
        if np.all(places == places[0]):
            return Range(int(places[0]), 1, 1)
        number = self._numbers.setdefault(places.tobytes(), len(self.vectors))
        if number == len(self.vectors):
            self.vectors.append(places)
        return Places(number)

    def covers(self, outer: Region, inner: Region, shape: Sequence[int]) -> bool:
        """Whether ``inner`` surely lies in ``outer`` of the same iteration."""
        return all(self._covers(*axes) for axes in zip(outer, inner, shape, strict=True))

    def _covers(
        self, outer: Range | Places | Unknown, inner: Range | Places | Unknown, n: int
    ) -> bool:
        if _within(outer, inner):
            return True
        if not isinstance(outer, Range):
            return False
        if isinstance(inner, Places):
            return bool(np.all(_lies_in(self.vectors[inner.vector], outer)))
        return outer == Range(0, 1, n)

    def meeting(self, x: Region, y: Region) -> Meeting:
        """When iteration i touches x, and j touches y: where i = j, i < j, i > j may coincide."""
        first, second = np.ones(self.n, bool), np.ones(self.n, bool)
        pairs: list[tuple[np.ndarray, np.ndarray]] = []
        for a, b in zip(x, y, strict=True):
            if isinstance(a, Range) and isinstance(b, Range):
                if _apart(a, b):
                    return NEVER
            elif isinstance(a, Places) and isinstance(b, Range):
                first &= _lies_in(self.vectors[a.vector], b)
            elif isinstance(a, Range) and isinstance(b, Places):
                second &= _lies_in(self.vectors[b.vector], a)
            elif isinstance(a, Places) and isinstance(b, Places):
                pairs.append((self.vectors[a.vector], self.vectors[b.vector]))
        return _joint(first, second, pairs)


def _apart(x: Range, y: Range) -> bool:
    """Whether two ranges surely have no place in common."""
    (x0, x1), (y0, y1) = _ends(x), _ends(y)
    if x1 < y0 or y1 < x0:
        return True
    step = int(np.gcd(x.step, y.step)) if x.length > 1 and y.length > 1 else 0
    if x.length == 1 or y.length == 1:
        point, other = (x, y) if x.length == 1 else (y, x)
        return other.length > 1 and (point.start - other.start) % abs(other.step) != 0
    return (x.start - y.start) % step != 0


def _ends(x: Range) -> tuple[int, int]:
    last = x.start + x.step * (x.length - 1)
    return min(x.start, last), max(x.start, last)


def _lies_in(places: np.ndarray, x: Range) -> np.ndarray:
    low, high = _ends(x)
    inside: np.ndarray = (places >= low) & (places <= high) & ((places - x.start) % x.step == 0)
    return inside


def _joint(
    first: np.ndarray, second: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray]]
) -> Meeting:
    at, other = np.flatnonzero(first), np.flatnonzero(second)
    if not len(at) or not len(other):
        return NEVER
    matched = next((m for m in (_matches(*p) for p in pairs) if m is not None), None)
    if matched is None:
        common = bool(np.any(first & second & _everywhere(pairs, len(first))))
        return Meeting(bool(at[0] < other[-1]), common, bool(at[-1] > other[0]))
    i, j = matched
    keep = first[i] & second[j]
    for x, y in pairs:
        keep &= x[i] == y[j]
    i, j = i[keep], j[keep]
    return Meeting(bool(np.any(i < j)), bool(np.any(i == j)), bool(np.any(i > j)))


def _everywhere(pairs: list[tuple[np.ndarray, np.ndarray]], n: int) -> np.ndarray:
    """The iterations in which all pairs have the same place."""
    same = np.ones(n, bool)
    for x, y in pairs:
        same &= x == y
    return same


def _matches(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """All (i, j) with x[i] = y[j], if at least one of the two has no place twice."""
    if len(np.unique(x)) == len(x):
        return _looked_up(x, y)
    if len(np.unique(y)) == len(y):
        j, i = _looked_up(y, x)
        return i, j
    return None


def _looked_up(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(x, kind="stable")
    at = np.minimum(np.searchsorted(x[order], y), len(x) - 1)
    j = np.flatnonzero(x[order[at]] == y)
    return order[at[j]], j


# --- views -------------------------------------------------------------------------------------


def whole(base: int, shape: Sequence[int]) -> View:
    dims = tuple(UNIT if d == 1 else axis for axis, d in enumerate(shape))
    return View(base, -1, everything(shape), dims)


def everything(shape: Sequence[int]) -> Region:
    return tuple(Range(0, 1, d) for d in shape)


def sliced(view: View, attrs: Sequence[int], shape: Sequence[int]) -> View:
    """The slice of a view, ``attrs`` being starts and steps."""
    region, dims = list(view.region), list(view.dims)
    for k, (axis, length) in enumerate(zip(view.dims, shape, strict=True)):
        if axis != UNIT:
            old = region[axis]
            assert isinstance(old, Range)
            start, step = attrs[k], attrs[len(shape) + k]
            region[axis] = Range(
                old.start + old.step * start, old.step * step if length > 1 else 1, length
            )
            dims[k] = axis if length > 1 else UNIT
    return view._replace(region=tuple(region), dims=tuple(dims))


def reshaped(view: View, old: Sequence[int], new: Sequence[int]) -> View | None:
    """The view with axes of length one added or removed; None for any other shape."""
    if [d for d in old if d != 1] != [d for d in new if d != 1]:
        return None
    axes = iter([axis for axis in view.dims if axis != UNIT])
    return view._replace(dims=tuple(UNIT if d == 1 else next(axes) for d in new))


def transposed(view: View, order: Sequence[int]) -> View:
    return view._replace(dims=tuple(view.dims[a] for a in order))


def item(view: View, dim: int, place: Range | Places | Unknown) -> View:
    """The view at one place of an axis of the array."""
    region = list(view.region)
    region[view.dims[dim]] = place
    return view._replace(region=tuple(region), dims=(*view.dims[:dim], *view.dims[dim + 1 :]))


def lengths(region: Region) -> tuple[int, ...]:
    """The shape of a region's value: its ranges, in the array's order."""
    return tuple(a.length for a in region if isinstance(a, Range))


def is_fixed(region: Region) -> bool:
    """Whether every iteration touches the same elements."""
    return all(isinstance(a, Range) or (isinstance(a, Unknown) and not a.varies) for a in region)


def contains(outer: Region, inner: Region) -> bool:
    """Whether ``inner`` surely lies in ``outer``, the places of single elements being the same."""
    return all(_within(a, b) for a, b in zip(outer, inner, strict=True))


def _within(outer: Range | Places | Unknown, inner: Range | Places | Unknown) -> bool:
    if outer == inner:
        return True
    if not isinstance(outer, Range) or not isinstance(inner, Range):
        return False
    places = np.array(_ends(inner))
    fits = inner.length == 1 or inner.step % outer.step == 0
    return fits and bool(np.all(_lies_in(places, outer)))
