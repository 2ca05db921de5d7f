"""Where a nest is cut: boxes within which every index is one plain offset from the nest's own.

`walk` raises `Split` at a border; the nest is cut there and walked again. `emit` writes a loop for
each box, and a nest of too many boxes is not fused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import Any

from ckad.engines.native.nests.fusion import Fusion, Nest
from ckad.engines.native.nests.walk import Box, Index, Split, Walk, identity
from ckad.engines.native.nests.work import work_of
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape

#: Elements of one axis that are computed, summed and handed to a thread together.
BLOCK = 4096
#: Each box is code of its own.
MOST_BOXES = 128
_CUTTING = {Op.PAD, Op.CONCAT, Op.UPDATE, Op.SLICE_ADD, Op.ROLL}


class TooManyBoxes(Exception):
    """A nest would be cut into more pieces than are worth writing."""


class _Probe:
    """Walks to see where a box has to be cut, and which leaves are read out of place."""

    def __init__(self, rows: Sequence[Row], nest: Nest) -> None:
        self.rows, self.shape, self.own = rows, nest.shape, identity(nest.shape)
        self.straight, self.flops, self.loads = True, 0, 0
        self.leaves: set[tuple[int, Index]] = set()

    def leaf(self, k: int, index: Index) -> None:
        self.straight &= index == self.own and self.rows[k].type.shape == self.shape
        self.loads += 1
        self.leaves.add((k, index))

    def uniform(self, k: int) -> None:
        pass

    def zero(self, row: Row) -> None:
        self.straight = False

    def apply(self, op: Op, operands: Sequence[Row], out: Row, values: Sequence[Any]) -> None:
        self.flops += work_of(op)


@dataclass
class Shape:
    """How a nest is cut: borders per axis, or one flat axis."""

    flat: bool
    borders: list[list[int]]
    flops: int  # per element of the interior
    loads: int
    bases: dict[int, int]  # the array whose place an output can take: elsewhere it is not read
    updates: dict[int, int]  # the array that an output has to begin as: it is written in parts

    def in_place(self, k: int, leaves: Sequence[int]) -> Sequence[int]:
        """The arrays among what the nest reads whose place an output can take."""
        if k in self.bases:
            return [self.bases[k]]
        return leaves if self.flat and k not in self.updates else []

    @property
    def n_outer(self) -> int:
        """The length of the axis that is divided among threads."""
        if len(self.borders) > 1:
            return self.borders[0][-1]
        return -(-self.borders[0][-1] // BLOCK)


def roots(fusion: Fusion, nest: Nest) -> list[int]:
    return [*nest.outputs, *(fusion.rows[k].operands[0] for k in nest.sums)]


def fused(tape: Tape) -> tuple[Fusion, dict[int, Shape]]:
    """The nests of a tape, and how each is cut, by its id.

    Where one would be cut into too many boxes, the ops that cut it are done alone, in memory.
    """
    alone: set[int] = set()
    while True:
        fusion = Fusion(tape, alone)
        nests = [item for item in fusion.items if isinstance(item, Nest)]
        shapes: dict[int, Shape] = {}
        before = len(alone)
        for nest in nests:
            try:
                shapes[id(nest)] = cut(fusion, nest)
            except TooManyBoxes:
                alone |= {k for k in nest.rows if fusion.rows[k].op in _CUTTING}
        if len(alone) == before:
            return fusion, shapes


def cut(fusion: Fusion, nest: Nest) -> Shape:
    """The boxes of a nest; TooManyBoxes if there are more than MOST_BOXES."""
    borders = [{0, n} for n in nest.shape]
    straight, most, loads = True, 0, 0
    done: set[Box] = set()
    bases = _bases(fusion, nest)
    while True:
        try:
            for box in product(*(pairwise(sorted(b)) for b in borders)):
                if box in done:
                    continue
                walk = Walk(fusion, nest, box, probe := _Probe(fusion.rows, nest))
                for k in roots(fusion, nest):
                    walk.root(k)
                straight &= probe.straight
                most, loads = max(most, probe.flops), max(loads, probe.loads)
                if nest.spans:
                    _leave_out_moved(bases, probe, walk.own)
                elif bases:
                    _leave_out(bases, fusion, nest, box)
                done.add(box)
            break
        except Split as split:
            borders[split.axis].add(split.at)
            if prod(len(b) - 1 for b in borders) > MOST_BOXES:
                raise TooManyBoxes from None
    if nest.spans and len(borders[-1]) > 2:
        raise TooManyBoxes
    one_axis = len(nest.shape) == 1 or not (nest.sums or nest.spans)
    flat = straight and one_axis and all(len(b) == 2 for b in borders)
    size = [0, prod(nest.shape)]
    updates = {k: x for k, x in fusion.evaluated.updates.items() if k in nest.outputs}
    cuts = [size] if flat else [sorted(b) for b in borders]
    return Shape(flat, cuts, most, loads, bases, updates)


def _bases(fusion: Fusion, nest: Nest) -> dict[int, int]:
    """The arrays that outputs of a nest differ from in parts, each of one output."""
    found = {k: fusion.base(k, nest) for k in nest.outputs}
    all_bases = list(found.values())
    return {k: x for k, x in found.items() if x is not None and all_bases.count(x) == 1}


def _leave_out(bases: dict[int, int], fusion: Fusion, nest: Nest, box: Box) -> None:
    """Leave out the arrays that a box reads for more than to leave them as they are.

    The last vector of a box overlaps the one before, so that nothing may be read that is written.
    """
    changed = Walk(fusion, nest, box, reads := _Probe(fusion.rows, nest))
    for k in roots(fusion, nest):
        if not (k in bases and _stays(k, bases[k], fusion, nest, box)):
            changed.root(k)
    read = {x for x, _ in reads.leaves}
    for k in [k for k, x in bases.items() if x in read]:
        del bases[k]


def _leave_out_moved(bases: dict[int, int], probe: _Probe, own: Index) -> None:
    """Leave out the arrays that a nest between bounds reads at other places than it writes.

    It computes every element once.
    """
    moved = {x for x, index in probe.leaves if index != own}
    for k in [k for k, x in bases.items() if x in moved]:
        del bases[k]


def _stays(k: int, x: int, fusion: Fusion, nest: Nest, box: Box) -> bool:
    """Whether the elements of output k in a box are those of row x, at the same places."""
    walk = Walk(fusion, nest, box, probe := _Probe(fusion.rows, nest))
    walk.root(k)
    return not probe.flops and probe.leaves == {(x, walk.own)}
