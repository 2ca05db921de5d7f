"""The rows that take the place of a loop: what the survey found, read, computed, put back."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ckad.passes.vectorise import region as regions
from ckad.passes.vectorise.access import Access, Value
from ckad.passes.vectorise.batch import batched, spread
from ckad.passes.vectorise.extremum import Record, kept
from ckad.passes.vectorise.order import Order
from ckad.passes.vectorise.reduction import Term, joined, masked, total
from ckad.passes.vectorise.region import Range, Region, View
from ckad.passes.vectorise.survey import (
    Blank,
    Cell,
    Entered,
    Initial,
    Source,
    Survey,
    Unfit,
    Written,
)
from ckad.tape.builder import Builder
from ckad.tape.control import Loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row
from ckad.tape.types import Type

#: Values of all iterations may be as large as this times what the loop reads and writes,
MOST_TIMES = 4
#: or as many bytes.
ALWAYS = 1 << 20


class TooLarge(Unfit):
    """All iterations at once would take too much memory."""


def side_by_side(b: Builder, loop: Loop, limited: bool = True) -> list[int]:
    """The results of a loop, as rows for all iterations at once; Unfit if there are none."""
    return _Rows(b, loop, limited).results()


def largest(b: Builder, loop: Loop) -> int:
    """The most bytes that a value of all iterations may have."""
    sizes = {x: b.type(x).nbytes for x in (*loop.carry, *loop.xs, *loop.captured)}
    results = sum(t.nbytes for t in loop.body.output_types[len(loop.carry) :])
    return max(ALWAYS, MOST_TIMES * (sum(sizes.values()) + loop.length * results))


class _Rows:
    """The rows that take the place of a loop."""

    def __init__(self, b: Builder, loop: Loop, limited: bool) -> None:
        self.b, self.n = b, loop.length
        self.survey = survey = Survey(loop)
        self.order = Order(survey)
        self.access = Access(b, survey.known.vectors, self.n)
        self.values: dict[int, Value] = {}
        self.most = largest(b, loop) if limited else sys.maxsize
        for x, k in zip(loop.captured, survey.inputs[-len(loop.captured) :], strict=False):
            self.values[k] = Value(x, False)

    def results(self) -> list[int]:
        survey, b = self.survey, self.b
        for k in self.order.rows:
            row = survey.rows[k]
            b.where = survey.body.sources[row.source]
            self.values.setdefault(k, self._value(k, row))
            self._check_size(self.values[k].row)
        carry = [
            self._stored(c) if c in survey.stored else -1 for c in range(len(survey.loop.carry))
        ]
        for at, cell in enumerate(survey.cells):
            if cell.region is None:
                carry[cell.carry] = self._last(at)
        ys = survey.outputs[len(carry) :]
        return [*carry, *(spread(b, self.n, self.values[y]) for y in ys)]

    def _check_size(self, row: int) -> None:
        type = self.b.type(row)
        if type.is_array and type.nbytes > self.most:
            raise TooLarge

    def _value(self, k: int, row: Row) -> Value:
        survey, b = self.survey, self.b
        if k in self.values:
            return self.values[k]
        if k in survey.values and not survey.fixed[k]:
            return Value(b.const(survey.values[k]), True)
        if k in survey.xs:
            return Value(survey.loop.xs[survey.xs[k]], True)
        if k in self.order.sources:
            return self._shown(survey.views[k], row.type)
        operands = [self.values[x] for x in row.operands]
        if any(x.varies for x in operands):
            return Value(batched(b, self.n, row, operands), True)
        env = {x: self.values[x].row for x in row.operands}
        return Value(b.copy_row(survey.body, k, env), False)

    # --- views ---------------------------------------------------------------------------------

    def _shown(self, view: View, type: Type) -> Value:
        """The value of a view: its region's, axes in the view's order."""
        canonical = self._canonical(view.base, self.survey.source(view))
        row, lead = canonical.row, int(canonical.varies)
        ranges = [k for k, a in enumerate(view.region) if isinstance(a, Range)]
        shown = [ranges.index(a) for a in view.dims if a != regions.UNIT]
        order = [*shown, *(k for k in range(len(ranges)) if k not in shown)]
        if order != sorted(order):
            row = self.b.transpose(row, attrs=[*range(lead), *(k + lead for k in order)])
        return Value(self.b.reshape_to(row, ((self.n,) * lead) + type.shape), canonical.varies)

    def _from_view(self, x: Value, region: Region, dims: Sequence[int]) -> Value:
        """The canonical value of a region from one whose axes are ``dims`` of the array."""
        lead = int(x.varies)
        shape = self.b.type(x.row).shape[lead:]
        axes = [a for a in dims if a != regions.UNIT]
        row = self.b.reshape_to(
            x.row,
            ((self.n,) * lead)
            + tuple(d for d, a in zip(shape, dims, strict=True) if a != regions.UNIT),
        )
        order = [axes.index(a) + lead for a in sorted(axes)]
        if order != sorted(order):
            row = self.b.transpose(row, attrs=[*range(lead), *order])
        return Value(self.b.reshape_to(row, ((self.n,) * lead) + regions.lengths(region)), x.varies)

    def _canonical(self, base: int, source: Source) -> Value:
        survey = self.survey
        if isinstance(source, Blank):
            type = self.b.type(self._initial(base)).with_shape(regions.lengths(source.region))
            return Value(self.b.full(type, 0), False)
        if isinstance(source, Initial):
            return self.access.read(self._initial(source.base), source.region, self.values)
        if isinstance(source, Entered):
            held = self._carried_in(source.cell)
            return self._part(held, self._region_of(source.cell), source.region)
        write = survey.writes[source.write]
        new = self._from_view(self.values[write.value], write.region, write.dims)
        if isinstance(source, Written):
            return self._part(new, write.region, source.region)
        before = self._canonical(base, source.before)
        if new.varies and not before.varies:
            before = Value(spread(self.b, self.n, before), True)
        if before.varies and not new.varies:
            new = Value(spread(self.b, self.n, new), True)
        attrs = _relative(source.larger, write.region, before.varies)
        patched = Value(self.b.update(before.row, new.row, attrs=attrs), before.varies)
        return self._part(patched, source.larger, source.region)

    def _part(self, x: Value, whole: Region, region: Region) -> Value:
        """A region of one with the same single places, from that one's canonical value."""
        if whole == region:
            return x
        if any(
            isinstance(a, Range) and not isinstance(p, Range)
            for a, p in zip(whole, region, strict=True)
        ):
            return self._elements(x, whole, region)
        type = self.b.type(x.row)
        shape = ((self.n,) * x.varies) + regions.lengths(region)
        attrs = _relative(whole, region, x.varies)
        return Value(self.b.slice(x.row, attrs=attrs, type=type.with_shape(shape)), x.varies)

    def _elements(self, x: Value, whole: Region, region: Region) -> Value:
        raise Unfit("single elements of what was carried or written as a whole")

    def _initial(self, base: int) -> int:
        """The row of an array as it was before the loop."""
        survey = self.survey
        if base in survey.carries:
            return survey.loop.carry[survey.carries[base]]
        return self.values[base].row

    # --- what is carried -----------------------------------------------------------------------

    def _region_of(self, at: int) -> Region:
        cell = self.survey.cells[at]
        if cell.region is not None:
            return cell.region
        return regions.everything(self.b.type(self.survey.loop.carry[cell.carry]).shape)

    def _start(self, cell: Cell) -> int:
        """What a cell holds before the loop, in canonical form."""
        x = self.survey.loop.carry[cell.carry]
        if cell.region is None:
            return x
        return self.access.read(x, cell.region, self.values).row

    def _next(self, cell: Cell) -> Value:
        out = self.values[cell.out]
        return out if cell.region is None else self._from_view(out, cell.region, cell.dims)

    def _carried_in(self, at: int) -> Value:
        """What every iteration finds in a cell: what the one before left there."""
        b, cell = self.b, self.survey.cells[at]
        start, out = self._start(cell), spread(b, self.n, self._next(cell))
        shape = b.type(start).shape
        first = b.reshape_to(start, (1, *shape))
        if self.n == 1:
            return Value(first, True)
        attrs = [0] * len(b.type(out).shape) + [1] * len(b.type(out).shape)
        others = b.slice(out, attrs=attrs, type=b.type(out).with_shape((self.n - 1, *shape)))
        return Value(b.concat(first, others, attrs=(0,)), True)

    def _last(self, at: int) -> int:
        """What a cell holds after the loop."""
        cell, terms = self.survey.cells[at], self.order.terms[at]
        if terms is not None:
            return self._summed(cell, terms)
        if at in self.order.records:
            return self._recorded(cell, self.order.records[at])
        out = self._next(cell)
        if not out.varies:
            return out.row
        return self._iteration(out.row, self.n - 1)

    def _summed(self, cell: Cell, terms: Sequence[Term]) -> int:
        """What a cell holds to which all iterations have added."""
        b, x = self.b, self._start(cell)
        whole = [term for term in terms if term.place is None]
        if whole:
            x = total(b, whole[0].op, x, joined(b, self._spread_terms(cell, whole)))
        for op, k, _, place in terms:
            if place is not None:
                new = spread(b, self.n, self.values[k])
                region = list(regions.everything(b.type(x).shape))
                region[place.axis] = self.survey.placed(region[place.axis], place.row)
                new = b.neg(new) if op is Op.SUB else new
                x = self.access.add(x, tuple(region), new, self.values)
        return x

    def _recorded(self, cell: Cell, record: Record) -> int:
        """What a cell that holds the largest or the smallest value has found."""
        leader = self.survey.cells[self.order.leader(record)]
        found, value = (
            spread(self.b, self.n, self.values[k]) for k in (record.found, record.value)
        )
        start, of = (self.b.reshape_to(self._start(c), ()) for c in (cell, leader))
        last = kept(self.b, record, start, of, found, value)
        return self.b.reshape_to(last, regions.lengths(cell.region or ()))

    def _spread_terms(self, cell: Cell, terms: Sequence[Term]) -> list[tuple[Op, int]]:
        found = []
        for op, k, masks, _ in terms:
            x = spread(self.b, self.n, self.values[k])
            for mask in masks:
                chosen = spread(self.b, self.n, self.values[mask.row])
                x = masked(self.b, op, x, chosen, mask.wanted)
            new = Value(x, True)
            if cell.region is not None:
                new = self._from_view(new, cell.region, cell.dims)
            found.append((op, new.row))
        return found

    def _iteration(self, x: int, i: int) -> int:
        b, type = self.b, self.b.type(x)
        rank = len(type.shape)
        attrs = (i, *[0] * (rank - 1), *[1] * rank)
        part = b.slice(x, attrs=attrs, type=type.with_shape((1, *type.shape[1:])))
        return b.reshape_to(part, type.shape[1:])

    def _stored(self, c: int) -> int:
        """The array after all writes of all iterations."""
        survey, x = self.survey, self.survey.loop.carry[c]
        for w in survey.spread(c):
            write = survey.writes[w]
            new = self._from_view(self.values[write.value], write.region, write.dims)
            x = self.access.put(x, write.region, new, self.values)
        for at, cell in enumerate(survey.cells):
            if cell.carry == c and cell.region is not None:
                x = self._with_cell(x, at, cell)
        return x

    def _with_cell(self, x: int, at: int, cell: Cell) -> int:
        assert cell.region is not None
        if not cell.merged:
            return self.access.put(x, cell.region, Value(self._last(at), False), self.values)
        terms = self.order.terms[at]
        assert terms is not None
        new = joined(self.b, self._spread_terms(cell, terms))
        return self.access.add(x, cell.region, new, self.values)


def _relative(whole: Region, part: Region, varies: bool) -> tuple[int, ...]:
    """Starts and steps of a part in the canonical value of a region."""
    starts, steps = [0] * varies, [1] * varies
    for a, p in zip(whole, part, strict=True):
        if isinstance(a, Range) and isinstance(p, Range):
            starts.append((p.start - a.start) // a.step)
            steps.append(p.step // a.step if p.length > 1 else 1)
    return (*starts, *steps)
