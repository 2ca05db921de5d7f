"""What the iterations of a loop read and write, and whether they can run side by side.

The body is walked once. Integers that follow from the loop's index are known for every iteration,
views of carried arrays are kept as regions, and every write makes a new version of its array.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ckad.passes.vectorise import region as regions
from ckad.passes.vectorise.region import Known, Places, Range, Region, Unknown, View
from ckad.rules import RULES
from ckad.tape.control import Loop
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.types import DType

#: Longer loops are not looked at.
LONGEST = 1 << 20
#: Arrays with more elements are not watched for being filled.
MOST_FLAGS = 1 << 12
_INTEGERS = (DType.I64, DType.BOOL)


class Unfit(Exception):
    """The loop cannot, or should not, become array ops."""


class Write(NamedTuple):
    """``value`` put into a region of a version, which makes the next one."""

    parent: int
    region: Region
    dims: tuple[int, ...]
    value: int


@dataclass
class Cell:
    """A carried value that one iteration hands to the next: a whole carry, or a part of it."""

    carry: int
    region: Region | None  # None: the whole, rebound in every iteration
    dims: tuple[int, ...]
    out: int  # the row of the next value
    merged: bool = False  # elements of varying places are added to


class Initial(NamedTuple):
    """A region of an array as it was before the loop."""

    base: int
    region: Region


class Entered(NamedTuple):
    """A region of what a cell holds when the iteration starts."""

    cell: int
    region: Region


class Written(NamedTuple):
    """A region of what a write put there."""

    write: int
    region: Region


class Patched(NamedTuple):
    """A region of a larger one after a write into a part of that."""

    larger: Region
    before: Source
    write: int
    region: Region


class Blank(NamedTuple):
    """A region of which every element that is read was written before."""

    region: Region


Source = Initial | Entered | Written | Patched | Blank


class Missing:
    """Which elements of a region are yet to be found, the places of its single axes being given."""

    def __init__(self, shape: Sequence[int], region: Region) -> None:
        axes = [k for k, a in enumerate(region) if isinstance(a, Range)]
        size = math.prod(shape[k] for k in axes)
        self._axes = axes
        self._flags = None if size > MOST_FLAGS else np.zeros([shape[k] for k in axes], bool)
        self._mark(region, True)

    @property
    def is_empty(self) -> bool:
        return self._flags is not None and not self._flags.any()

    def take(self, region: Region) -> None:
        """A write to a part of the array has put these elements there."""
        self._mark(region, False)

    def _mark(self, region: Region, flag: bool) -> None:
        if self._flags is not None:
            ranges = [a for a in (region[k] for k in self._axes) if isinstance(a, Range)]
            self._flags[tuple(map(_slice, ranges))] = flag


def _slice(axis: Range) -> slice:
    stop = axis.start + axis.step * axis.length
    return slice(axis.start, None if stop < 0 else stop, axis.step)


class Survey:
    """The walk through a loop's body."""

    def __init__(self, loop: Loop) -> None:
        self.loop, self.body, self.n = loop, loop.body, loop.length
        self.rows = self.body.rows
        self.inputs = self.body.inputs.tolist()
        self.outputs = self.body.outputs.tolist()
        n_carry, n_xs = len(loop.carry), len(loop.xs)
        self.carries = {k: c for c, k in enumerate(self.inputs[1 : 1 + n_carry])}
        self.xs = {k: x for x, k in enumerate(self.inputs[1 + n_carry : 1 + n_carry + n_xs])}
        self.fixed = [False] * len(self.rows)
        self.values: dict[int, np.ndarray] = {}  # integers known for every iteration
        self.known = Known(self.n)
        self.views: dict[int, View] = {}
        self.writes: list[Write] = []
        self.uses: Counter[int] = Counter()  # of a row's value, not as a view
        self.cells: list[Cell] = []
        self.stored: dict[int, list[int]] = {}  # carry -> its writes, in order
        self._sources: dict[tuple[int, int, Region], Source] = {}
        self._walk()
        self._take_outputs()
        self._find_cells()
        self._check_writes()

    # --- the walk ------------------------------------------------------------------------------

    def _walk(self) -> None:
        for k, row in enumerate(self.rows):
            if row.type.is_array and not row.type.size:
                raise Unfit("an array without elements")
            if row.op is Op.INPUT:
                self._input(k)
                continue
            if row.op is Op.CONST:
                self._constant(k)
            self.fixed[k] = all(self.fixed[x] for x in row.operands)
            if self._follows_from_index(k):
                continue
            view = None if self.fixed[k] else self._view(k)
            if view is None:
                self.uses.update(row.operands)
            else:
                self.views[k] = view

    def _input(self, k: int) -> None:
        if k == self.inputs[0]:
            self.values[k] = np.arange(self.n)
        elif k in self.carries:
            self.views[k] = regions.whole(k, self.rows[k].type.shape)
        else:
            self.fixed[k] = k not in self.xs

    def _constant(self, k: int) -> None:
        row = self.rows[k]
        if not row.type.shape and row.type.dtype in _INTEGERS:
            value = self.body.constants[row.attrs[0]]
            self.values[k] = np.broadcast_to(value, (self.n,))

    def _follows_from_index(self, k: int) -> bool:
        op, operands, attrs, type, _ = self.rows[k]
        known = [self.values.get(x) for x in operands]
        if not operands or type.shape or type.dtype not in _INTEGERS or not is_elementwise(op):
            return False
        if any(v is None for v in known):
            return False
        evaluate = RULES[op].evaluate
        assert evaluate is not None
        if op in (Op.FLOORDIV, Op.MOD) and not np.all(known[1]):
            return False
        try:
            self.values[k] = np.asarray(evaluate(type.with_shape((self.n,)), attrs, *known))
        except IndexError:
            raise Unfit("an index is out of bounds") from None
        return True

    def _view(self, k: int) -> View | None:
        op, operands, attrs, type, _ = self.rows[k]
        if op is Op.GATHER:
            return self._element(operands[0], operands[1], attrs[0])
        view = self.views.get(operands[0]) if operands else None
        if view is None:
            return None
        if op is Op.SLICE:
            return regions.sliced(view, attrs, type.shape)
        if op is Op.TRANSPOSE:
            return regions.transposed(view, attrs)
        if op is Op.RESHAPE:
            return regions.reshaped(view, self.rows[operands[0]].type.shape, type.shape)
        if op is Op.UPDATE:
            part = regions.sliced(view, attrs, self.rows[operands[1]].type.shape)
            return self._put(view, part, operands[1])
        if op is Op.SCATTER:
            target = self._element(operands[0], operands[1], attrs[0])
            return None if target is None else self._put(view, target, operands[2])
        return None

    def _element(self, x: int, index: int, axis: int) -> View | None:
        if self.rows[index].type.shape:
            return None
        view = self.views.get(x)
        if view is None and self.fixed[x]:
            view = regions.whole(x, self.rows[x].type.shape)
        if view is None:
            return None
        if view.dims[axis] == regions.UNIT:
            if index not in self.values or np.any(self.values[index]):
                raise Unfit("an index that may not be zero into an axis of length one")
            return view._replace(dims=(*view.dims[:axis], *view.dims[axis + 1 :]))
        return regions.item(view, axis, self.placed(view.region[view.dims[axis]], index))

    def moving(self) -> list[int]:
        """The integers that are known, and not the same in all iterations."""
        return [k for k, places in self.values.items() if np.any(places != places[0])]

    def placed(self, axis: Range | Places | Unknown, index: int) -> Range | Places | Unknown:
        assert isinstance(axis, Range)
        if index in self.values:
            places = self.values[index]
            if np.any((places < 0) | (places >= axis.length)):
                raise Unfit("an index is out of bounds")
            return self.known.axis(axis.start + axis.step * places)
        self.uses[index] += 1
        return Unknown(index, axis.step, axis.start, not self.fixed[index])

    def _put(self, view: View, target: View, x: int) -> View:
        """The view after ``x`` was written to a part of it."""
        new = self.views.get(x)
        if new is not None and new.base == target.base and self._is_later(new, target):
            return view._replace(version=new.version)
        self.uses[x] += 1
        self.writes.append(Write(view.version, target.region, target.dims, x))
        return view._replace(version=len(self.writes) - 1)

    def _is_later(self, new: View, old: View) -> bool:
        """Whether ``new`` is the view ``old`` after writes that all lie in it."""
        if (new.region, new.dims) != (old.region, old.dims):
            return False
        shape = self.rows[old.base].type.shape
        for w in self._since(new.version):
            if w == old.version:
                return True
            if not self.known.covers(old.region, self.writes[w].region, shape):
                return False
        return old.version == -1

    def _since(self, version: int) -> Iterator[int]:
        """A version and those it was made of, latest first."""
        while version >= 0:
            yield version
            version = self.writes[version].parent

    # --- what is carried -----------------------------------------------------------------------

    def _take_outputs(self) -> None:
        n_carry = len(self.loop.carry)
        for c, out in enumerate(self.outputs[:n_carry]):
            base = self.inputs[1 + c]
            whole = regions.whole(base, self.rows[base].type.shape)
            view = self.views.get(out)
            if view is not None and view._replace(version=-1) == whole:
                self.stored[c] = [*self._since(view.version)][::-1]
            else:
                self.uses[out] += 1
                self.cells.append(Cell(c, None, whole.dims, out))
        self.uses.update(self.outputs[n_carry:])

    def _find_cells(self) -> None:
        """Parts of stored arrays that every iteration writes, and no other write touches."""
        for c, path in self.stored.items():
            last = {self.writes[w].region: w for w in path}
            for region, w in last.items():
                others = [self.writes[v].region for v in path if self.writes[v].region != region]
                apart = not any(any(self.known.meeting(region, other)) for other in others)
                write = self.writes[w]
                if apart and regions.is_fixed(region):
                    self.cells.append(Cell(c, region, write.dims, write.value))
                elif apart and len(path) == 1 and self._is_accumulated(c, region):
                    self.cells.append(Cell(c, region, write.dims, write.value, merged=True))

    def _is_accumulated(self, c: int, region: Region) -> bool:
        """Whether iterations add to places that another one may add to."""
        base = self.inputs[1 + c]
        read = {v.region for k, v in self.views.items() if v.base == base and self.uses[k]}
        return read == {region} and self.known.meeting(region, region).before

    def cell_at(self, c: int, region: Region) -> int | None:
        """The cell that a region of a carry lies in."""
        for k, cell in enumerate(self.cells):
            if cell.carry != c:
                continue
            if cell.region is None or regions.contains(cell.region, region):
                return k
            if any(self.known.meeting(cell.region, region)):
                raise Unfit("a part of what another iteration writes is read")
        return None

    def spread(self, c: int) -> list[int]:
        """The writes to a stored array that go to other places in every iteration."""
        held = {cell.region for cell in self.cells if cell.carry == c}
        return [w for w in self.stored[c] if self.writes[w].region not in held]

    def _check_writes(self) -> None:
        """Done one after the other for all iterations, the writes leave what the loop leaves."""
        for c in self.stored:
            path = self.spread(c)
            for at, w in enumerate(path):
                first = self.writes[w].region
                if regions.is_fixed(first) and any(self.known.meeting(first, first)):
                    raise Unfit("every iteration writes what others write too")
                for v in path[at + 1 :]:
                    if self.known.meeting(first, self.writes[v].region).after:
                        raise Unfit("iterations write to the same place")

    # --- what a view shows ---------------------------------------------------------------------

    def source(self, view: View) -> Source:
        """Where the elements of a view come from."""
        key = view.base, view.version, view.region
        if key not in self._sources:
            self._sources[key] = self._source(*key)
        return self._sources[key]

    def _source(
        self, base: int, version: int, region: Region, missing: Missing | None = None
    ) -> Source:
        """``missing`` are the elements of the array's ranges that no later write has put there."""
        if missing is None:
            missing = Missing(self.rows[base].type.shape, region)
        for w in self._since(version):
            write = self.writes[w]
            if regions.contains(write.region, region):
                return Written(w, region)
            if self.known.meeting(write.region, region).same:
                larger = self._larger(base, region, write.region)
                if not regions.contains(larger, write.region):
                    raise Unfit("a part of what was written is read")
                missing.take(write.region)
                before = self._source(base, write.parent, larger, missing)
                return Patched(larger, before, w, region)
        if missing.is_empty:
            return Blank(region)
        if base not in self.carries:
            return Initial(base, region)
        return self._from_before(base, region)

    def _larger(self, base: int, region: Region, part: Region) -> Region:
        """The region with all of the axes along which a part of it is another range."""
        shape = self.rows[base].type.shape
        return tuple(
            Range(0, 1, d) if isinstance(a, Range) and a != p else a
            for a, p, d in zip(region, part, shape, strict=True)
        )

    def _from_before(self, base: int, region: Region) -> Source:
        """What an iteration sees of a carry that earlier ones may have written to."""
        c = self.carries[base]
        cell = self.cell_at(c, region)
        if cell is not None:
            return Entered(cell, region)
        for w in self.spread(c):
            if self.known.meeting(self.writes[w].region, region).before:
                raise Unfit("an iteration reads what an earlier one writes")
        return Initial(base, region)
