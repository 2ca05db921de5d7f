"""Which rows run together strip by strip, and in which order the rest follows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from weakref import WeakKeyDictionary

from ckad.engines.vm.isa import STRIP
from ckad.passes.liveness import readers
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.tape import Row, Tape

#: A row alone, or a chain of rows of one size.
Item = int | list[int]
_VIEWS = {Op.SLICE, Op.ROLL, Op.PAD, Op.TRANSPOSE, Op.BROADCAST}
_LEAVES = {Op.INPUT, Op.CONST}
#: Rows of a chain at most: what the chain keeps in L1 grows with it.
LONGEST = 256
#: The items of tapes, chained or not: a body is the same at many places.
_known: WeakKeyDictionary[Tape, dict[bool, tuple[Item, ...]]] = WeakKeyDictionary()


def members(item: Item) -> list[int]:
    """The rows of an item."""
    return item if isinstance(item, list) else [item]


def is_splat(tape: Tape, k: int) -> bool:
    """A scalar repeated over an array: a chain keeps one strip of it."""
    row = tape.rows[k]
    return row.op is Op.BROADCAST and tape.rows[row.operands[0]].type.size == 1


def strip_size(tape: Tape, row: Row) -> int:
    """The number of elements a chain that holds the row runs over; 0 if it cannot be in one."""
    if row.op is Op.SUM:
        source = tape.rows[row.operands[0]].type
        fits = source.is_float and row.type.size == 1 and source.size > STRIP
        return source.size if fits else 0
    if not row.type.is_array or row.type.size <= STRIP:
        return 0
    if row.op is Op.PAD and any(s != 1 for s in row.attrs[len(row.attrs) // 2 :]):
        return 0
    streams = (is_elementwise(row.op) and row.op is not Op.WRAP) or row.op in _VIEWS
    return row.type.size if streams else 0


def reads_in_place(row: Row) -> bool:
    """Whether the row reads the same place of its operands that it writes."""
    return is_elementwise(row.op) or row.op is Op.SUM


def group(tape: Tape, chained: bool = True) -> Sequence[Item]:
    """The rows of ``tape`` as items in an order that respects their operands."""
    found = _known.setdefault(tape, {})
    if chained not in found:
        found[chained] = tuple(_Grouping(tape, chained).items)
    return found[chained]


class _Grouping:
    """Items in the making; ``done`` are the rows that have their place.

    Rows wait in heaps for their turn: as soon as all that they read is done, they can run.
    """

    def __init__(self, tape: Tape, chained: bool) -> None:
        self.tape = tape
        self.sizes = [strip_size(tape, row) if chained else 0 for row in tape.rows]
        self.splats = [bool(n) and is_splat(tape, k) for k, n in enumerate(self.sizes)]
        self.done = [row.op in _LEAVES for row in tape.rows]
        self.outputs = set(tape.outputs.tolist())
        self.readers = readers(tape)
        self.items: list[Item] = []
        #: Rows on few elements, and per size those that chains are made of.
        self.small: list[int] = []
        self.ready: defaultdict[int, list[int]] = defaultdict(list)
        self.waits = [False] * len(tape)
        for k in range(len(tape)):
            self._look_at(k)
        for k in range(len(tape)):
            while not self.done[k]:
                self._place(k)

    def _place(self, k: int) -> None:
        """All rows before ``k`` are done."""
        if not self.sizes[k] or self.splats[k]:
            self._add(k)
            return
        self._small_rows_first()
        found = self._chain(self.sizes[k])
        chain = self._without_early(found)
        self.items.append(chain)
        for member in chain:
            self._is_done(member)
        for member in found:
            self._look_at(member)

    def _add(self, k: int) -> None:
        self.items.append(k)
        self._is_done(k)

    def _is_done(self, k: int) -> None:
        self.done[k] = True
        for r in self.readers[k]:
            self._look_at(r)
            if self.splats[r]:
                for reader in self.readers[r]:
                    self._look_at(reader)

    def _look_at(self, k: int) -> None:
        """Let the row wait for its turn if all that it reads is done."""
        if self.done[k] or self.waits[k] or self.splats[k] or not self._is_ready(k, set()):
            return
        if self.sizes[k]:
            heappush(self.ready[self.sizes[k]], k)
        elif self.tape.rows[k].type.is_array and self.tape.rows[k].type.size <= STRIP:
            heappush(self.small, k)
        else:
            return
        self.waits[k] = True

    def _small_rows_first(self) -> None:
        """Rows on few elements that are ready now may make rows of the chain ready."""
        while self.small:
            k = heappop(self.small)
            if not self.done[k]:
                self._add(k)

    def _chain(self, size: int) -> list[int]:
        """All rows of one size that can run before anything not done, in their order."""
        chain: list[int] = []
        inside: set[int] = set()
        waiting = self.ready[size]
        while waiting and len(chain) < LONGEST:
            k = heappop(waiting)
            self.waits[k] = False
            if self.done[k] or k in inside:
                continue
            chain.append(k)
            inside.add(k)
            for r in self.readers[k]:
                fits = self.sizes[r] == size and not self.splats[r] and not self.waits[r]
                if fits and self._is_ready(r, inside):
                    heappush(waiting, r)
                    self.waits[r] = True
        self.ready[size] = [k for k in waiting if self._is_ready(k, set())]
        for k in set(waiting).difference(self.ready[size]):
            self.waits[k] = False
        heapify(self.ready[size])
        return chain

    def _is_ready(self, k: int, inside: set[int]) -> bool:
        row, done, splats = self.tape.rows[k], self.done, self.splats
        direct = reads_in_place(row)
        return all(
            done[x]
            or (direct and x in inside)
            or (direct and splats[x] and done[self.tape.rows[x].operands[0]])
            for x in row.operands
        )

    def _without_early(self, chain: list[int]) -> list[int]:
        """Leave rows that only a later chain reads to that, if fewer arrays are written so."""
        inside = set(chain)
        needed: set[int] = set()
        for k in reversed(chain):
            if k in needed or self._is_wanted_now(k, inside):
                needed.update((k, *(x for x in self.tape.rows[k].operands if x in inside)))
        lean = [k for k in chain if k in needed]
        return lean if lean and self._written(lean) < self._written(chain) else chain

    def _is_wanted_now(self, k: int, inside: set[int]) -> bool:
        """Whether something else than an elementwise row of a later chain reads the row."""
        if k in self.outputs or self.tape.rows[k].op is Op.SUM:
            return True
        return any(
            r not in inside
            and not (self.sizes[r] == self.sizes[k] and reads_in_place(self.tape.rows[r]))
            for r in self.readers[k]
        )

    def _written(self, chain: list[int]) -> int:
        """How many arrays of full size the chain writes."""
        inside = set(chain)
        return sum(
            k in self.outputs or any(r not in inside for r in self.readers[k])
            for k in chain
            if self.tape.rows[k].op is not Op.SUM
        )
