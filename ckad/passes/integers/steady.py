"""Elements that loops read, or add to, at one place: they become scalars around the loop.

The index of a place is a sum of symbols (see `affine`), so it is known which reads stay the same
in all steps of a loop, and which writes never touch them. An element, or a row, that no step
writes is read once before the loop. An element that each step reads and writes is carried as a
scalar. And an element that is written as itself and something more is added to: its cotangent
then stays where it is.

It is for a primal tape, before it is differentiated: what is read once is kept once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ckad.passes.integers.affine import Sum, Symbols
from ckad.passes.integers.footprint import WRITES, Footprint, Place
from ckad.passes.integers.ranges import Ranges
from ckad.passes.liveness import readers
from ckad.tape.builder import Builder
from ckad.tape.control import UNGUARDED, Loop, loop_attrs, read_loop
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.tape import Row, Tape
from ckad.tape.types import TUPLE


def steady(tape: Tape) -> Tape:
    """``tape`` whose loops read each element that stays the same once, before they begin."""
    has_loops = any(row.op is Op.LOOP for row in tape.rows)
    if not (has_loops and any(map(_has_places, tape.bodies))):
        return tape
    symbols = Symbols()
    return _Steady(tape, [symbols.new() for _ in tape.inputs], symbols).run()


def _has_places(tape: Tape) -> bool:
    """Whether elements are picked, or put, by their indices."""
    return any(row.op in _PLACED for row in tape.rows) or any(map(_has_places, tape.bodies))


_PLACED = (Op.GATHER, Op.SCATTER, Op.SCATTER_ADD)


class Element(NamedTuple):
    """An element of a carried array that each step reads and writes."""

    position: int  # of the array among the inputs
    array: int  # rows of a read: of the array, and of the index
    at: int
    reads: list[int]
    writes: list[int]


class Changes(NamedTuple):
    """What changes in the body of a loop."""

    read_once: dict[int, tuple[int, int]]  # row of a read -> (row of the array, row of the index)
    carried: list[Element]
    added: dict[int, tuple[int, bool]]  # row of a write -> (what it adds, whether negated)


class _Steady(Ranges):
    """One tape being rewritten, its bodies first."""

    def __init__(self, tape: Tape, inputs: Sequence[Sum], symbols: Symbols) -> None:
        super().__init__(tape, inputs, symbols)
        self.new_results: dict[int, _Results] = {}

    def copied(self, k: int, row: Row) -> int:
        if row.op is Op.RESULT and row.operands[0] in self.new_results:
            return self.new_results[row.operands[0]].of(self.b, row)
        if row.op is not Op.LOOP:
            return super().copied(k, row)
        loop, symbols = read_loop(self.tape, row), self.symbols
        (body,) = self._loop(k, row)
        first = len(symbols.lower)
        footprint = Footprint(body, self.inputs_of(loop), symbols)
        footprint.run()
        return self._rewritten(k, loop, footprint, changes_of(footprint, first, len(loop.carry)))

    def _rewritten(self, k: int, loop: Loop, footprint: Footprint, changes: Changes) -> int:
        body, n = footprint.tape, len(loop.carry)
        lifted = _Lifted(self.b, body, self._operands(loop, body))
        captured: dict[tuple[int, int], int] = {}  # (array, index) out here -> the element
        read: dict[int, int] = {}  # row of a read -> its place among those captured
        for row, (array, index) in changes.read_once.items():
            source, at = lifted.of(array), lifted.of(index)
            if source is None or at is None:
                continue
            if (source, at) not in captured:
                captured[source, at] = self._read(source, self._inside(source, at, loop))
            read[row] = list(captured).index((source, at))
        carried: list[Element] = []
        places: list[tuple[int, int]] = []  # (number of the result, index out here)
        scalars: list[int] = []
        for element in changes.carried:
            source, at = lifted.of(element.array), lifted.of(element.at)
            if source is None or at is None:
                continue
            at = self._inside(source, at, loop)
            carried.append(element)
            places.append((element.position - 1, at))
            scalars.append(self._read(source, at))
        edited = _Edited(footprint, changes, read, carried, n).tape
        groups = [loop.carry, loop.xs, loop.captured]
        first, xs, fixed = ([self.env[x] for x in group] for group in groups)
        attrs = loop_attrs(self.b.body(edited), loop.length, n + len(scalars), len(xs), loop.guard)
        operands = (*first, *scalars, *xs, *fixed, *captured.values())
        new = self.b.append(Op.LOOP, operands, attrs, TUPLE)
        self.new_results[k] = _Results(new, n, places)
        return new

    def _operands(self, loop: Loop, body: Tape) -> dict[int, int]:
        """Row of an input of the body that is the same in every step -> row out here.

        An array is taken as it is before the first step.
        """
        n, inputs, outputs = len(loop.carry), body.inputs.tolist(), body.outputs.tolist()
        found = {}
        for at, x in enumerate(loop.carry):
            if outputs[at] == inputs[1 + at] or body.rows[inputs[1 + at]].type.size > 1:
                found[inputs[1 + at]] = self.env[x]
        for at, x in enumerate(loop.captured, 1 + n + len(loop.xs)):
            found[inputs[at]] = self.env[x]
        return found

    def _inside(self, array: int, index: int, loop: Loop) -> int:
        """An index, brought into range where the loop may run no step."""
        b = self.b
        if loop.guard == UNGUARDED and loop.length:
            return index
        last = b.const(np.int64(b.type(array).shape[0] - 1))
        return b.minimum(b.maximum(index, b.const(np.int64(0))), last)

    def _read(self, array: int, index: int) -> int:
        return self.b.gather(array, index, attrs=(0,))


class _Results(NamedTuple):
    """The results of a loop that carries new scalars, which go back to their places."""

    loop: int
    n_carry: int
    places: list[tuple[int, int]]  # (number of an array, index of the element)

    def of(self, b: Builder, row: Row) -> int:
        (number,) = row.attrs
        moved = number + len(self.places) if number >= self.n_carry else number
        found = b.emit(Op.RESULT, (self.loop,), (moved,), row.type)
        for j, (array, index) in enumerate(self.places):
            if array == number:
                element = row.type.with_shape(())
                scalar = b.emit(Op.RESULT, (self.loop,), (self.n_carry + j,), element)
                flat = b.reshape_to(found, (row.type.size,))
                flat = b.scatter(flat, index, scalar, attrs=(0, 1))
                found = b.reshape_to(flat, row.type.shape)
        return found


# --- what can be changed ------------------------------------------------------------------------


def changes_of(footprint: Footprint, first: int, n_carry: int) -> Changes:
    """What a body reads, or changes, at a place that stays the same, and what it adds to.

    Symbols from ``first`` on change from step to step.
    """
    outputs = footprint.tape.outputs.tolist()
    roots = [footprint.root(k) for k in outputs]
    moved = {1 + at for at in range(n_carry) if roots[at] != 1 + at}
    # arrays whose states go to other carries or results: these need the element, too
    shown = {x for at, x in enumerate(roots) if at >= n_carry or x != 1 + at}
    changes = Changes({}, [], {})
    steady: dict[tuple[int, Place], list[int]] = {}  # (array, place) -> rows
    for k, row in enumerate(footprint.rows):
        place = footprint.place(row)
        position = None if place is None else footprint.root(row.operands[0])
        if place is None or position is None or position in moved:
            continue
        if all(symbol < first for symbol, _ in place.first.terms):
            steady.setdefault((position, place), []).append(k)
    for (position, place), rows in steady.items():
        others = [a for a in footprint.touches if a.position == position and a.row not in rows]
        reads = [k for k in rows if footprint.rows[k].op is Op.GATHER]
        writes = [k for k in rows if k not in reads]
        others = [a for a in others if writes or a.writes]
        if not all(a.place is not None and footprint.apart(a.place, place) for a in others):
            continue
        array, index = footprint.rows[rows[0]].operands[:2]
        if not writes:
            changes.read_once.update(dict.fromkeys(reads, (array, index)))
        elif (
            place.size == 1
            and 1 <= position <= n_carry
            and position not in shown
            and _is_carried(footprint, reads, writes)
        ):
            changes.carried.append(Element(position, array, index, reads, writes))
    _find_sums(footprint, changes)
    return changes


def _is_carried(footprint: Footprint, reads: list[int], writes: list[int]) -> bool:
    """Whether a step reads the element before it writes it, or adds to it."""
    adds = any(footprint.rows[k].op is Op.SCATTER_ADD for k in writes)
    return adds or any(k < min(writes) for k in reads)


def _find_sums(footprint: Footprint, changes: Changes) -> None:
    rows, reads = footprint.rows, readers(footprint.tape)
    outputs = set(footprint.tape.outputs.tolist())
    taken = {k for element in changes.carried for k in element.writes}
    for k, row in enumerate(rows):
        place = footprint.place(row) if row.op is Op.SCATTER and k not in taken else None
        if place is None or place.size > 1 or not row.type.is_float:
            continue
        total = row.operands[2]
        op, terms, *_ = rows[total]
        if op not in (Op.ADD, Op.SUB) or reads[total] != [k] or total in outputs:
            continue
        for n, x in enumerate(terms[: 1 if op is Op.SUB else 2]):
            own = rows[x]
            if own.op is not Op.GATHER or reads[x] != [total] or x in outputs:
                continue
            if footprint.place(own) == place and _follows(footprint, row.operands[0], own, place):
                changes.added[k] = terms[1 - n], op is Op.SUB
                break


def _follows(footprint: Footprint, x: int, read: Row, place: Place) -> bool:
    """Whether array x has at a place what a read of an earlier state of it has found."""
    while x != read.operands[0]:
        row = footprint.rows[x]
        if row.op in (Op.SCATTER, Op.SCATTER_ADD):
            other = footprint.place(row)
            if other is None or not footprint.apart(other, place):
                return False
        elif row.op is not Op.RESHAPE:
            return False
        x = row.operands[0]
    return True


class _Lifted:
    """Rows of a body that are the same in every step, computed before the loop."""

    def __init__(self, b: Builder, body: Tape, known: dict[int, int]) -> None:
        self.b, self.body, self.known = b, body, dict[int, int | None](known)

    def of(self, k: int) -> int | None:
        if k not in self.known:
            self.known[k] = self._of(k)
        return self.known[k]

    def _of(self, k: int) -> int | None:
        row = self.body.rows[k]
        if row.op is Op.CONST:
            return self.b.const(self.body.constants[row.attrs[0]])
        if row.op in WRITES:  # elsewhere
            return self.of(row.operands[0])
        if row.op is not Op.RESHAPE and not (is_elementwise(row.op) and row.op is not Op.WRAP):
            return None
        operands = [self.of(x) for x in row.operands]
        found = [x for x in operands if x is not None]
        if len(found) < len(operands):
            return None
        return self.b.append(row.op, tuple(found), row.attrs, row.type)


class _Edited:
    """The new body of a loop: (i, carry, new scalars, xs, captured, elements read once)."""

    def __init__(
        self,
        footprint: Footprint,
        changes: Changes,
        read: dict[int, int],
        carried: Sequence[Element],
        n_carry: int,
    ) -> None:
        self.footprint, self.carried = footprint, carried
        self.b, self.env = Builder(), dict[int, int]()
        self.states: list[dict[int, int]] = [{} for _ in carried]  # row of the array -> element
        body, b = footprint.tape, self.b
        inputs = body.inputs.tolist()
        self._enter(inputs[: 1 + n_carry])
        for element, state in zip(carried, self.states, strict=True):
            own = inputs[element.position]
            state[own] = b.input(body.rows[own].type.with_shape(()))
        self._enter(inputs[1 + n_carry :])
        elements = {place: body.rows[k].type for k, place in read.items()}
        captured = [b.input(elements[place]) for place in sorted(elements)]
        for k, row in enumerate(body.rows):
            if k in self.env:
                continue
            b.where = body.sources[row.source]
            if k in read:
                self.env[k] = captured[read[k]]
            elif not self._is_element(k, row):
                self.env[k] = (
                    self._added(row, *changes.added[k])
                    if k in changes.added
                    else (b.copy_row(body, k, self.env))
                )
        outputs = body.outputs.tolist()
        scalars = [
            self._state(j, outputs[element.position - 1]) for j, element in enumerate(carried)
        ]
        first, rest = outputs[:n_carry], outputs[n_carry:]
        self.tape = b.tape([*(self.env[k] for k in first), *scalars, *(self.env[k] for k in rest)])

    def _enter(self, inputs: Sequence[int]) -> None:
        for k in inputs:
            self.env[k] = self.b.input(self.footprint.rows[k].type)

    def _added(self, row: Row, more: int, negated: bool) -> int:
        b, (x, index, _) = self.b, row.operands
        term = b.neg(self.env[more]) if negated else self.env[more]
        return b.scatter_add(self.env[x], self.env[index], term, attrs=(0,))

    def _is_element(self, k: int, row: Row) -> bool:
        """Whether a row reads or writes an element that is carried; its value is noted then."""
        for j, element in enumerate(self.carried):
            if k in element.reads:
                self.env[k] = self._state(j, row.operands[0])
            elif k in element.writes:
                new = self.env[row.operands[2]]
                if row.op is Op.SCATTER_ADD:
                    new = self.b.add(self._state(j, row.operands[0]), new)
                self.states[j][k] = new
                self.env[k] = self.env[row.operands[0]]
            else:
                continue
            return True
        return False

    def _state(self, j: int, k: int) -> int:
        """The element in a state of the array."""
        state = self.states[j]
        before: int | None = k
        while before is not None and before not in state:
            before = self.footprint.before(before)
        assert before is not None
        return state[before]
