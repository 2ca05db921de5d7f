"""Which large arrays are computed together, and which never lie in memory.

A nest is one pass over a shape that computes several arrays and sums. Rows that only a nest reads
are virtual: the nest computes their elements where it needs them, also at shifted places, unless
that repeats more work than it saves. Nests and the other rows are ordered by phases: a nest of a
phase reads at its own place what the phase computes, and at any place what earlier ones did. Where
an array that lies in memory since an earlier phase has a virtual row as a part of it, elements of
the row are read there, not computed again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from ckad.engines.native.nests.holders import Holder, held_in
from ckad.engines.native.nests.overwritten import reads_before
from ckad.engines.native.nests.products import part_products, reading_parts
from ckad.engines.native.nests.shifts import shifts
from ckad.engines.native.nests.spans import Evaluated
from ckad.engines.native.nests.work import work_of
from ckad.engines.native.values.registers import is_small
from ckad.passes.liveness import readers_of
from ckad.tape.extents import Spans, bounds_in
from ckad.tape.ops import OPS, Group, Op, is_elementwise
from ckad.tape.tape import Row, Tape

#: Work repeated at shifted places, or in several nests, that still beats a trip through memory.
REPEATED = 6
#: Rows deeper than this in virtual operands are put into memory, and nests heavier are split.
DEEPEST, HEAVIEST = 100, 400
#: The most work of a nest whose arrays are made of the same virtual rows.
MOST_SHARED = 1200
#: Work and loads that one more array read from memory has to save.
SAVED = 4
#: A smaller part of an array is changed in place.
SMALL_PART = 0.25

_WRITES = (Op.UPDATE, Op.SLICE_ADD, Op.SCATTER, Op.SCATTER_ADD)


@dataclass
class Nest:
    """One pass over ``shape``: rows written to memory, and rows that are sums over all of it."""

    shape: tuple[int, ...]
    phase: int
    outputs: list[int] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)
    leaves: list[int] = field(default_factory=list)  # what it reads: arrays in memory and scalars
    holders: dict[int, Holder] = field(default_factory=dict)  # virtual rows that it reads there
    rows: set[int] = field(default_factory=set)  # all that it computes or reads
    spans: Spans | None = None  # the places that it computes, if not all


Item = int | Nest
#: What tells nests apart: phase, shape and spans.
Key = tuple[int, tuple[int, ...], Spans | None]


def is_large(row: Row) -> bool:
    return row.type.is_array and not is_small(row.type)


class Fusion:
    """The rows of a tape as items in an order that respects their operands.

    The rows ``alone`` are in no nest.
    """

    def __init__(self, tape: Tape, alone: Collection[int] = ()) -> None:
        self.tape, self.products, self.shifts = tape, part_products(tape), shifts(tape)
        self.rows = reading_parts(tape.rows, self.products)
        self.readers = readers_of(self.rows)
        self.uniform = [self._uniform(k) for k in range(len(tape))]
        self.fusable = [k not in alone and self._fusable(row) for k, row in enumerate(self.rows)]
        self.sum_root = [self._is_sum_root(row) for row in self.rows]
        outputs = set(tape.outputs.tolist())
        for k in range(len(self.rows)):
            self.fusable[k] = self.fusable[k] and not self._is_another_name(k, k in outputs)
        self.holders = self._all_holders()
        self.evaluated = Evaluated(tape, self.rows, self.readers, self.uniform)
        self.in_memory = [
            self.fusable[k] and (k in outputs or any(self._needs_memory(r, k) for r in reads))
            for k, reads in enumerate(self.readers)
        ]
        self._weigh()
        while self._put_into_memory():
            self._weigh()
        self.items = list(self._order())

    # --- what a row is --------------------------------------------------------------------------

    def _uniform(self, k: int) -> int | None:
        """The row of the scalar that a large row repeats, if it does."""
        row = self.rows[k]
        if not is_large(row):
            return None
        if row.op is Op.BROADCAST and self.rows[row.operands[0]].type.size == 1:
            return row.operands[0]
        moves = row.op in (Op.RESHAPE, Op.TRANSPOSE, Op.ROLL, Op.SLICE, Op.BROADCAST)
        return self._uniform(row.operands[0]) if moves else None

    def _fusable(self, row: Row) -> bool:
        if not is_large(row):
            return False
        op = row.op
        if is_elementwise(op):
            return op is not Op.WRAP
        if op in (Op.SLICE, Op.PAD, Op.UPDATE, Op.SLICE_ADD):
            steps = row.attrs[len(row.attrs) // 2 :]
            return all(s == 1 for s in steps) and not self.changes_in_place(row)
        if op is Op.RESHAPE:
            return self._uniform_row(row) or self.only_unit_axes(row)
        return op in (Op.ROLL, Op.BROADCAST, Op.CONCAT) or self._uniform_row(row)

    def _uniform_row(self, row: Row) -> bool:
        if row.op not in (Op.RESHAPE, Op.TRANSPOSE):
            return False
        return self._uniform(row.operands[0]) is not None

    def only_unit_axes(self, row: Row) -> bool:
        """A RESHAPE that adds or drops axes of length one."""
        source = self.rows[row.operands[0]].type
        return [d for d in source.shape if d != 1] == [d for d in row.type.shape if d != 1]

    def _is_another_name(self, k: int, is_output: bool) -> bool:
        """Whether a RESHAPE had better be the same memory under another shape than a copy."""
        row = self.rows[k]
        if row.op is not Op.RESHAPE or self.uniform[k] is not None:
            return False
        if is_output:
            return not self.fusable[row.operands[0]]
        return any(self._needs_memory(r, k) for r in self.readers[k])

    def changes_in_place(self, row: Row) -> bool:
        """A write to so small a part of an array that it is not worth a pass over all of it."""
        if row.op not in (Op.UPDATE, Op.SLICE_ADD):
            return False
        return self.rows[row.operands[1]].type.size < SMALL_PART * row.type.size

    def _is_sum_root(self, row: Row) -> bool:
        if row.op is not Op.SUM or not row.type.is_float or row.type.size != 1:
            return False
        return is_large(self.rows[row.operands[0]])

    def _needs_memory(self, r: int, x: int) -> bool:
        """Whether row r has to find its operand x in memory."""
        row = self.rows[r]
        if self.uniform[r] is not None or self.sum_root[r]:
            return False
        if r in self.shifts and x == row.operands[1]:
            return False
        if row.op is Op.BROADCAST:
            return self.fusable[r] and row.type.size != self.rows[x].type.size
        return not self.fusable[r]

    # --- parts of arrays in memory ---------------------------------------------------------------

    def _all_holders(self) -> list[list[Holder]]:
        """Per row: the arrays that a nest would make of it and more."""
        found: list[list[Holder]] = [[] for _ in self.rows]
        for k, row in enumerate(self.rows):
            if self.fusable[k] and not self._is_written_over(k):
                for x, holder in held_in(self.rows, k, row):
                    found[x].append(holder)
        return found

    def _is_written_over(self, k: int) -> bool:
        """Whether a reader may take the place of row k, which must not be kept for others then."""
        return any(
            OPS[self.rows[r].op].group is Group.CONTROL
            or (self.rows[r].op in _WRITES and not self.fusable[r])
            for r in self.readers[k]
        )

    def holder(self, k: int, phase: int, known: Collection[int] = ()) -> Holder | None:
        """Where a nest finds row k, if that is cheaper than to compute it.

        ``known`` are rows that the nest reads anyway.
        """
        for holder in self.holders[k] if self.is_virtual(k) else ():
            saved = self.work[k] + self.loads[k] - 1
            if (
                self.in_memory[holder.row]
                and self.anywhere[holder.row] <= phase
                and saved > (0 if holder.row in known else SAVED)
            ):
                return holder
        return None

    # --- phases ---------------------------------------------------------------------------------

    def zero_reads(self, row: Row) -> tuple[int, ...]:
        """The operands that are read at the place that is written."""
        if is_elementwise(row.op):
            return row.operands
        return row.operands[:1] if row.op in (Op.UPDATE, Op.SLICE_ADD) else ()

    def _weigh(self) -> None:
        """Phases (at the same place, at any place), work, loads and depth of virtual rows."""
        n, before = len(self.rows), list(self.in_memory)
        self.seen = self.evaluated.find(self.fusable, self.in_memory, self.sum_root)
        self.here, self.anywhere = [0] * n, [0] * n
        self.work, self.loads, self.depth = [0] * n, [0] * n, [0] * n
        for k, row in enumerate(self.rows):
            xs, source = row.operands, self.uniform[k]
            if source is not None and not self.in_memory[k]:
                self.here[k] = self.anywhere[k] = self.anywhere[source]
            elif self.fusable[k]:
                self._weigh_fusable(k, row)
            elif self.sum_root[k]:
                self.here[k] = self.anywhere[k] = self._beside(xs[0], k) + 1
            else:
                phases = (*(self.anywhere[x] for x in xs), *self._reads_before(k))
                self.here[k] = self.anywhere[k] = max(phases, default=0)
        if self.in_memory != before:
            self._weigh()

    def _reads_before(self, k: int) -> Iterator[int]:
        """The phases from which on row k can write over arrays that others have read."""
        for r in reads_before(self.tape, self.rows, self.readers, k, self.is_virtual):
            yield self.here[r] + self.in_memory[r]

    def _beside(self, x: int, k: int) -> int:
        """The phase from which on row k can read x at its own place."""
        if self.in_memory[x] and not self.seen[k] <= self.seen[x]:
            return self.anywhere[x]  # another nest computes it, between other bounds
        if self.evaluated.updates.get(k) == x:
            return self.anywhere[x]  # it is there before a part of it is written over
        return self.here[x]

    def spans(self, k: int) -> Spans | None:
        """The places at which a sum, an array in memory or a row alone is computed, if not all."""
        spans, *others = self.seen[k]
        return None if others else spans

    def _weigh_fusable(self, k: int, row: Row) -> None:
        zero = self.zero_reads(row)
        first = max(self._beside(x, k) if x in zero else self.anywhere[x] for x in row.operands)
        virtual = [x for x in row.operands if self.is_virtual(x) and not self._is_read(x, k, first)]
        self.work[k] = work_of(row.op) + sum(self.work[x] for x in virtual)
        arrays = [x for x in row.operands if self.uniform[x] is None]
        self.loads[k] = sum(self.loads[x] if x in virtual else 1 for x in arrays)
        self.depth[k] = 1 + max((self.depth[x] for x in virtual), default=0)
        self.in_memory[k] |= self.depth[k] > DEEPEST
        any_place = max(self.anywhere[x] for x in row.operands)
        self.here[k] = first
        self.anywhere[k] = first + 1 if self.in_memory[k] else any_place

    def _is_read(self, x: int, k: int, phase: int) -> bool:
        """Whether row k finds its operand x in memory, as far as the phases are known yet."""
        holder = self.holder(x, phase)
        return holder is not None and holder.row < k

    def bounds_of(self, k: int) -> set[int]:
        """The scalar rows that tell between which bounds a row alone is computed."""
        spans = [*(self.spans(k) or ())]
        if k in self.products:
            spans += [span for span in self.products[k].spans if span is not None]
        return bounds_in(spans) | {b.row for b in (self.shifts.get(k),) if b is not None}

    def is_alone(self, k: int) -> bool:
        return not self.fusable[k] and not self.sum_root[k]

    def is_virtual(self, k: int) -> bool:
        return self.fusable[k] and not self.in_memory[k]

    def _put_into_memory(self) -> bool:
        """Move rows that are dear to repeat out of the virtual ones; whether there were any."""
        n = len(self.rows)
        times, nests = [0] * n, [set[Key]() for _ in range(n)]
        dear: dict[int, int] = {}
        for k in range(n - 1, -1, -1):
            if not self.is_virtual(k) or self.uniform[k] is not None:
                continue
            shifted: dict[tuple[int, tuple[int, ...]], int] = {}
            straight = 0
            for r in self.readers[k]:
                if not (self.is_virtual(r) or self.in_memory[r] or self.sum_root[r]):
                    continue
                within = nests[r] if self.is_virtual(r) else {self._key(r)}
                within = {key for key in within if self.holder(k, key[0]) is None}
                if not within:
                    continue
                nests[k] |= within
                often = times[r] if self.is_virtual(r) else 1
                row = self.rows[r]
                if k in self.zero_reads(row) or self.sum_root[r]:
                    straight = max(straight, often)
                else:
                    place = int(row.op), row.attrs
                    shifted[place] = max(often, shifted.get(place, 0))
            times[k] = straight + sum(shifted.values())
            repeated = max(times[k], len(nests[k])) - 1
            if self.work[k] * repeated > REPEATED:
                self.in_memory[k], dear[k] = True, repeated
                times[k] = 1
        self._keep_cheap_virtual(dear)
        return bool(dear)

    def _keep_cheap_virtual(self, dear: dict[int, int]) -> None:
        """Of the rows that go into memory, those stay virtual that are cheap, given the others."""
        work = list(self.work)
        for k, row in enumerate(self.rows):
            if k in dear or (dear and self.is_virtual(k)):
                rest = sum(work[x] for x in row.operands if self.is_virtual(x))
                work[k] = min(work[k], work_of(row.op) + rest)
                self.in_memory[k] &= work[k] * dear.get(k, 0) > REPEATED

    def _key(self, k: int) -> Key:
        """The nest that computes row k: its phase, its shape, and its spans."""
        if self.sum_root[k]:
            shape = self.rows[self.rows[k].operands[0]].type.shape
            return self.here[k] - 1, shape, self.spans(k)
        return self.here[k], self.rows[k].type.shape, self.spans(k)

    def _order(self) -> Iterator[Item]:
        alone: dict[int, list[int]] = {}
        nests: dict[int, dict[Key, list[int]]] = {}
        for k in range(len(self.rows)):
            if self.sum_root[k] or self.in_memory[k]:
                key = self._key(k)
                nests.setdefault(key[0], {}).setdefault(key, []).append(k)
            elif not self.is_virtual(k):
                alone.setdefault(self.here[k], []).append(k)
        for phase in range(1 + max((*alone, *nests), default=0)):
            yield from alone.get(phase, ())
            for key, members in nests.get(phase, {}).items():
                yield from self._nests(key, members)

    def _nests(self, key: Key, members: list[int]) -> Iterator[Nest]:
        """One nest, or several where one would be too heavy and they have little in common."""
        phase, shape, spans = key
        nest, inside, weight = Nest(shape, phase, spans=spans), set[int](), 0
        for k in members:
            own = self._within(k)
            total, more = self._work(own), self._work(own - inside)
            if weight and weight + more > (HEAVIEST if 2 * more > total else MOST_SHARED):
                yield self._finished(nest)
                nest, inside, weight, more = Nest(shape, phase, spans=spans), set(), 0, total
            (nest.sums if self.sum_root[k] else nest.outputs).append(k)
            inside |= own
            weight += more
        yield self._finished(nest)

    def _within(self, k: int) -> set[int]:
        """The rows that a nest computes for row k."""
        found, pending = set[int](), [k]
        while pending:
            x = pending.pop()
            if x not in found:
                found.add(x)
                pending += [y for y in self.rows[x].operands if self._is_inside(y, ())]
        return found

    def _work(self, rows: Collection[int]) -> int:
        return sum(work_of(self.rows[k].op) for k in rows)

    def _finished(self, nest: Nest) -> Nest:
        """Find what it reads; readers come before what they read."""
        outputs, leaves = set(nest.outputs), set[int]()
        heap = [-k for k in (*outputs, *(self.rows[k].operands[0] for k in nest.sums))]
        heapify(heap)
        while heap:
            k = -heappop(heap)
            if k in nest.rows:
                continue
            nest.rows.add(k)
            if not self._is_inside(k, outputs):
                leaves.add(k)
            elif holder := self.holder(k, nest.phase, nest.rows):
                nest.holders[k] = holder
                nest.rows.add(holder.row)
                leaves.add(holder.row)
            else:
                for x in self.rows[k].operands:
                    heappush(heap, -x)
        leaves |= bounds_in(nest.spans or ())
        nest.leaves = sorted({k if (source := self.uniform[k]) is None else source for k in leaves})
        return nest

    def base(self, k: int, nest: Nest) -> int | None:
        """The array that an output of a nest is after writes to parts of it, if it reads one."""
        if k in self.evaluated.updates:
            return self.evaluated.updates[k]
        x = k
        while self.rows[x].op is Op.UPDATE and (x == k or self.is_virtual(x)):
            if x in nest.holders:
                return None
            x = self.rows[x].operands[0]
        return x if x in nest.leaves and x != k and self.uniform[x] is None else None

    def _is_inside(self, k: int, outputs: Collection[int]) -> bool:
        """Whether a nest computes row k, rather than reads it."""
        return self.uniform[k] is None and (self.is_virtual(k) or k in outputs)
