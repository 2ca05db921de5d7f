"""Regions of all iterations at once: read as one array, its first axis the iterations; put back.

The canonical value of a region has its ranges as axes, in the array's order; that of all iterations
has one axis before them, unless they all touch the same elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ckad.passes.vectorise import region as regions
from ckad.passes.vectorise.region import Places, Range, Region, Unknown
from ckad.tape.builder import Builder
from ckad.tape.ops import Op

#: Runs of places in even steps that are read and written as slices; more are indexed one by one.
MOST_RUNS = 3


class Value(NamedTuple):
    """A row, and whether its first axis is that of the iterations."""

    row: int
    varies: bool


class Access:
    """Reads and writes regions in the tape that ``b`` makes."""

    def __init__(self, b: Builder, vectors: Sequence[np.ndarray], n: int) -> None:
        self.b, self.vectors, self.n = b, vectors, n

    # --- read ----------------------------------------------------------------------------------

    def read(self, x: int, region: Region, index: Mapping[int, Value]) -> Value:
        """The canonical value of a region of ``x``; ``index`` has the values of unknown places."""
        b = self.b
        for axis in reversed(_fixed(region)):
            x = b.gather(x, self._place(region[axis], index).row, attrs=(axis,))
        left = tuple(a for a in region if not (isinstance(a, Unknown) and not a.varies))
        moving = [k for k, a in enumerate(left) if not isinstance(a, Range)]
        if len(moving) == 1:
            run = self._run(left[moving[0]])
            if run is not None:
                part = self._sliced(x, left, {moving[0]: run})
                return Value(self._to_front(part, moving[0]), True)
        part = self._sliced(x, left, {})
        if not moving:
            return Value(part, False)
        merged, places = self._merged(part, left, moving, index)
        return Value(
            b.reshape_to(self._picked(merged, places), (self.n, *regions.lengths(left))), True
        )

    def _sliced(self, x: int, region: Region, runs: Mapping[int, Range]) -> int:
        """The ranges of a region; its other axes whole, but those that ``runs`` has."""
        starts, steps, shape = self._attrs(x, region, runs)
        type = self.b.type(x)
        if tuple(shape) == type.shape and not any(starts) and all(s == 1 for s in steps):
            return x
        return self.b.slice(x, attrs=(*starts, *steps), type=type.with_shape(tuple(shape)))

    def _attrs(
        self, x: int, region: Region, runs: Mapping[int, Range]
    ) -> tuple[list[int], list[int], list[int]]:
        ranges = [
            runs[k] if k in runs else (a if isinstance(a, Range) else Range(0, 1, d))
            for k, (a, d) in enumerate(zip(region, self.b.type(x).shape, strict=True))
        ]
        return [r.start for r in ranges], [r.step for r in ranges], [r.length for r in ranges]

    def _to_front(self, x: int, axis: int) -> int:
        rank = len(self.b.type(x).shape)
        return self._turned(x, [axis, *(k for k in range(rank) if k != axis)])

    def _turned(self, x: int, order: Sequence[int]) -> int:
        if list(order) == sorted(order):
            return x
        shape = self.b.type(x).shape
        kept = [a for a in order if shape[a] != 1]
        if kept == sorted(kept):
            return self.b.reshape_to(x, [shape[a] for a in order])
        return self.b.transpose(x, attrs=order)

    def _merged(
        self, x: int, region: Region, moving: Sequence[int], index: Mapping[int, Value]
    ) -> tuple[int, np.ndarray | int]:
        """The axes with a place per iteration as one axis, the first; the places along it."""
        shape = self.b.type(x).shape
        rest = [k for k in range(len(shape)) if k not in moving]
        turned = self._turned(x, [*moving, *rest])
        dims = [shape[k] for k in moving]
        merged = self.b.reshape_to(turned, (int(np.prod(dims)), *(shape[k] for k in rest)))
        return merged, self._flat([region[k] for k in moving], dims, index)

    def _flat(
        self,
        axes: Sequence[Range | Places | Unknown],
        dims: Sequence[int],
        index: Mapping[int, Value],
    ) -> np.ndarray | int:
        """Places along axes taken as one: known, or a row."""
        if all(isinstance(a, Places) for a in axes):
            vectors = [self.vectors[a.vector] for a in axes if isinstance(a, Places)]
            return np.asarray(np.ravel_multi_index(vectors, tuple(dims)), np.int64)
        b, total = self.b, None
        for a, d in zip(axes, dims, strict=True):
            place = self._places(a, index)
            if total is None:
                total = place
            else:
                total = b.add(b.mul(total, b.full_like(total, d)), place)
        assert total is not None
        return total

    def _places(self, axis: Range | Places | Unknown, index: Mapping[int, Value]) -> int:
        if isinstance(axis, Places):
            return self.b.const(self.vectors[axis.vector])
        value = self._place(axis, index)
        return value.row if value.varies else self.b.broadcast_to(value.row, (self.n,))

    def _place(self, axis: Range | Places | Unknown, index: Mapping[int, Value]) -> Value:
        assert isinstance(axis, Unknown)
        b, (row, varies) = self.b, index[axis.row]
        if axis.scale != 1:
            row = b.mul(row, b.full_like(row, axis.scale))
        if axis.offset:
            row = b.add(row, b.full_like(row, axis.offset))
        return Value(row, varies)

    def _picked(self, x: int, places: np.ndarray | int) -> int:
        """Elements of the first axis."""
        b = self.b
        if isinstance(places, int):
            return b.gather(x, places, attrs=(0,))
        runs = _runs(places)
        if runs is None:
            return b.gather(x, b.const(places), attrs=(0,))
        parts = [self._sliced(x, self._lead(x), {0: run}) for run in runs]
        return parts[0] if len(parts) == 1 else b.concat(*parts, attrs=(0,))

    def _lead(self, x: int) -> Region:
        return regions.everything(self.b.type(x).shape)

    def _run(self, axis: Range | Places | Unknown) -> Range | None:
        if not isinstance(axis, Places):
            return None
        runs = _runs(self.vectors[axis.vector])
        return runs[0] if runs is not None and len(runs) == 1 else None

    # --- write ---------------------------------------------------------------------------------

    def put(self, x: int, region: Region, new: Value, index: Mapping[int, Value]) -> int:
        """``x`` with the canonical value of a region put there, iteration after iteration."""
        return self._put(x, region, index, lambda x, left: self._put_moving(x, left, new, index))

    def add(self, x: int, region: Region, new: int, index: Mapping[int, Value]) -> int:
        """``x`` with a canonical value of all iterations added to a region."""

        def scatter_add(merged: int, places: int, rows: int) -> int:
            return self.b.scatter_add(merged, places, rows, attrs=(0,))

        return self._put(
            x, region, index, lambda x, left: self._indexed(x, left, new, index, scatter_add)
        )

    def _put(
        self, x: int, region: Region, index: Mapping[int, Value], put: Callable[[int, Region], int]
    ) -> int:
        """``put`` in the part of ``x`` that the same unknown places of all iterations pick."""
        fixed = _fixed(region)
        if not fixed:
            return put(x, region)
        axis, b = fixed[-1], self.b
        place = self._place(region[axis], index).row
        part = b.gather(x, place, attrs=(axis,))
        done = self._put(part, (*region[:axis], *region[axis + 1 :]), index, put)
        return b.scatter(x, place, done, attrs=(axis, 1))

    def _put_moving(self, x: int, region: Region, new: Value, index: Mapping[int, Value]) -> int:
        moving = [k for k, a in enumerate(region) if not isinstance(a, Range)]
        if not moving:
            return self._update(x, region, {}, new.row)
        row = (
            new.row
            if new.varies
            else self.b.broadcast_to(new.row, (self.n, *regions.lengths(region)))
        )
        run = self._run(region[moving[0]])
        if len(moving) == 1 and run is not None:
            before, rank = moving[0], len(region)
            order = [*range(1, before + 1), 0, *range(before + 1, rank)]
            return self._update(x, region, {moving[0]: run}, self._turned(row, order))
        return self._indexed(x, region, row, index, self._scatter)

    def _update(self, x: int, region: Region, runs: Mapping[int, Range], new: int) -> int:
        starts, steps, shape = self._attrs(x, region, runs)
        part = self.b.reshape_to(new, shape)
        if tuple(shape) == self.b.type(x).shape and all(s == 1 for s in steps):
            return part
        return self.b.update(x, part, attrs=(*starts, *steps))

    def _scatter(self, x: int, places: int, new: int) -> int:
        known = self._known(places)
        unique = known is not None and len(np.unique(known)) == len(known)
        runs = _runs(known) if known is not None and unique else None
        if runs is None:
            return self.b.scatter(x, places, new, attrs=(0, int(unique)))
        at = 0
        for run in runs:
            rows = Range(at, 1, run.length)
            x = self._update(
                x, self._lead(x), {0: run}, self._sliced(new, self._lead(new), {0: rows})
            )
            at += run.length
        return x

    def _known(self, row: int) -> np.ndarray | None:
        made = self.b.rows[row]
        return self.b.constants[made.attrs[0]] if made.op is Op.CONST else None

    def _indexed(
        self,
        x: int,
        region: Region,
        new: int,
        index: Mapping[int, Value],
        put: Callable[[int, int, int], int],
    ) -> int:
        """``put(array, places along its first axis, values)`` in the ranges of a region."""
        b = self.b
        moving = [k for k, a in enumerate(region) if not isinstance(a, Range)]
        part = self._sliced(x, region, {})
        shape = b.type(part).shape
        order = [*moving, *(k for k in range(len(shape)) if k not in moving)]
        merged, places = self._merged(part, region, moving, index)
        row = places if isinstance(places, int) else b.const(places)
        tail = b.type(merged).shape[1:]
        done = put(merged, row, b.reshape_to(new, (self.n, *tail)))
        back = self._turned(
            b.reshape_to(done, [shape[k] for k in order]), [int(a) for a in np.argsort(order)]
        )
        ranges = tuple(
            a if isinstance(a, Range) else Range(0, 1, d)
            for a, d in zip(region, b.type(x).shape, strict=True)
        )
        return self._update(x, ranges, {}, back)


def _fixed(region: Region) -> list[int]:
    """The axes at an unknown place that is the same in every iteration."""
    return [k for k, a in enumerate(region) if isinstance(a, Unknown) and not a.varies]


def _runs(places: np.ndarray) -> list[Range] | None:
    """The places as runs in even steps; None if those are many."""
    runs: list[Range] = []
    at = 0
    while at < len(places):
        if len(runs) == MOST_RUNS:
            return None
        step = int(places[at + 1] - places[at]) if at + 1 < len(places) else 1
        breaks = np.flatnonzero(np.diff(places[at:]) != step) if step else np.zeros(1, int)
        length = int(breaks[0]) + 1 if len(breaks) else len(places) - at
        runs.append(Range(int(places[at]), step or 1, length))
        at += length
    return runs
