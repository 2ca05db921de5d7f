"""The code of TAPED_LOOP and REVERSE_LOOP rows.

Each fetches actions from a table and jumps to the code of their kind. Restart states and residuals
lie in the token's cells, one array of slots per carry item and per residual.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ckad.engines.actions import Kind, Slots
from ckad.engines.vm.assembly.assembler import Assembler
from ckad.engines.vm.assembly.lengths import End
from ckad.engines.vm.assembly.placement import Placement
from ckad.engines.vm.assembly.region import Region
from ckad.engines.vm.assembly.steps import (
    Counter,
    Steps,
    carry_on,
    close,
    count,
    get,
    new_ys,
    next_step,
    put,
    swaps,
    take_carry,
    wanted_at,
)
from ckad.engines.vm.isa import Code
from ckad.engines.vm.program import Token
from ckad.passes.dce import dce
from ckad.passes.rewrite import with_outputs
from ckad.tape.control import (
    UNGUARDED,
    WHILE,
    Loop,
    ReverseLoop,
    read_loop,
    read_reverse_loop,
)
from ckad.tape.tape import Row, Tape
from ckad.tape.types import Type

ADVANCE, STORE, RESTORE, DROP, TAPE, REVERSE, _END = Kind
_FIRST_TARGET = 3


def token_cells(a: Assembler, loop: Loop) -> int:
    """Cells of a taped loop's token."""
    slots = a.slots[loop.name]
    assert loop.taping is not None
    n = len(loop.carry)
    carry = sum(max(1, t.size) for t in loop.body.output_types[:n])
    kept = loop.taping.outputs.tolist()[len(loop.body.outputs) :]
    residuals = sum(value_cells(a, loop.taping, k) for k in kept)
    return _head(loop) + slots.n_slots * carry + slots.n_tape_slots * residuals


def _head(loop: Loop | ReverseLoop) -> int:
    """Cells of a token before its slots: in a guarded loop one for the number of its steps."""
    return int(loop.guard != UNGUARDED)


def value_cells(a: Assembler, tape: Tape, k: int) -> int:
    row = tape.rows[k]
    if row.type.is_array:
        return max(1, row.type.size)
    return token_cells(a, read_loop(tape, tape.rows[row.operands[0]]))


class _Layout:
    """Where a token keeps restart states and residuals: an array of slots per item."""

    def __init__(self, offset: int, slots: Slots, carry: Sequence[int], residuals: Sequence[int]):
        self.carry: list[tuple[int, int]] = []
        self.residuals: list[tuple[int, int]] = []
        for size in carry:
            self.carry.append((offset, size))
            offset += slots.n_slots * size
        for size in residuals:
            self.residuals.append((offset, size))
            offset += slots.n_tape_slots * size


def _element(t: Type) -> int:
    return max(1, t.size)


class _Actions:
    """The ACTION instruction of a loop and the handlers it jumps to."""

    def __init__(self, a: Assembler, name: int, reverse: bool) -> None:
        self.a = a
        table = a.loops.setdefault(name, len(a.loops))
        self.cells = a.hold(a.new(3))
        self.start, self.stop, self.slot = (Region(self.cells.offset + k, 1) for k in range(3))
        if a.depth > 1:
            a.nested.add(name)
        if a.depth > 1 or not reverse:
            a.emit(Code.RESTART, table, int(reverse))
        self.fetch = a.emit(Code.ACTION, table, self.cells.offset, *[0] * 7)
        self.exits: list[int] = []

    def handle(self, kind: int) -> None:
        """The code that follows is the handler of ``kind``."""
        self.a.code[self.fetch + _FIRST_TARGET + kind] = len(self.a.code)

    def again(self) -> None:
        self.a.emit(Code.JUMP, self.fetch)

    def residual_slot(self, cell: Region, i: Region) -> None:
        """Write the residual slot of step i into ``cell``."""
        words = cell.offset, self.slot.offset, i.offset, self.start.offset
        self.a.emit(Code.RESIDUAL, *words)

    def clip(self, n_steps: Region) -> None:
        """Skip an action past the end of a guarded loop, or end it there."""
        words = self.start.offset, self.stop.offset, n_steps.offset, self.fetch
        self.a.emit(Code.CLIP, *words)

    def leave_at(self, length: int) -> None:
        """Leave when the step just run was the last one of the loop."""
        self.exits.append(self.a.emit(Code.JUMP_IF_AT, self.stop.offset, length, 0) + 3)

    def close(self) -> None:
        """What has no handler leaves; so do the exits."""
        here = len(self.a.code)
        for at in self.exits:
            self.a.code[at] = here
        for kind in range(7):
            at = self.fetch + _FIRST_TARGET + kind
            self.a.code[at] = self.a.code[at] or here


def _store_and_restore(
    a: Assembler, actions: _Actions, carried: Sequence[Region], layout: _Layout
) -> None:
    actions.handle(STORE)
    put(a, carried, layout.carry, actions.slot)
    actions.again()
    actions.handle(RESTORE)
    get(a, carried, layout.carry, actions.slot)
    actions.again()
    actions.handle(DROP)
    actions.again()


def lower_taped_loop(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    """The forward sweep: results, ys, and a token that holds what the reverse needs."""
    sweep = _Forward(a, placement, row)
    sweep.emit()
    sweep.steps.close()
    close(a, placement, k, sweep.results, sweep.own)


class _Forward:
    """The forward sweep of one loop while its code is written."""

    def __init__(self, a: Assembler, placement: Placement, row: Row) -> None:
        loop = read_loop(placement.tape, row)
        assert loop.taping is not None
        self.a, self.loop, self.taping = a, loop, loop.taping
        self.n, self.n_out = len(loop.carry), len(loop.body.outputs)
        a.depth += 1
        token = a.hold(a.new(token_cells(a, loop)))
        kept = loop.taping.outputs.tolist()[self.n_out :]
        self.layout = _Layout(
            token.offset + _head(loop),
            a.slots[loop.name],
            [_element(t) for t in loop.body.output_types[: self.n]],
            [value_cells(a, loop.taping, r) for r in kept],
        )
        self.carried = take_carry(a, placement, row, loop.carry)
        self.i, self.r = a.hold(a.new(1)), a.hold(a.new(1))
        self.steps = Steps(a, placement, loop.xs, loop.captured, self.i)
        ys, self.bases = new_ys(a, loop.body.output_types[self.n :], loop.length)
        if a.depth == 1:
            n_steps = token.offset if loop.guard != UNGUARDED else None
            given = [(y.offset, y.size) for y in ys]
            a.tokens[loop.name] = Token(self.layout.carry, n_steps, given, [])
        self.end = End(a, loop, token, self.carried[0]) if loop.guard else None
        self.actions = _Actions(a, loop.name, reverse=False)
        self.results = [*self.carried, *ys, token]
        self.own = [self.i, self.r, self.actions.cells]
        if self.end:
            self.actions.exits.append(self.end.none)
            self.own.append(self.end.limit)

    def emit(self) -> None:
        pairs = ((ADVANCE, self.loop.body, self.advance), (TAPE, self.taping, self.tape))
        a, actions = self.a, self.actions
        for kind, body, once in pairs if self.loop.length else ():
            actions.handle(kind)
            flag = self.carried[0] if self.loop.guard == WHILE else None
            if self.end:
                actions.clip(self.end.n_steps)
            a.emit(Code.COPY, 1, self.i.offset, actions.start.offset)
            words = self.i.offset, actions.stop.offset, 0
            none = a.emit(Code.JUMP_IF_REACHED, *words) + 3
            counter = Counter(self.i, actions.stop, 1, flag)
            count(a, counter, self.carried, swaps(body, 1, self.n), once)
            a.code[none] = len(a.code)
            if self.end:
                actions.exits.append(self.end.leave(self.i, actions.stop))
            else:
                actions.leave_at(self.loop.length)
            actions.again()
        _store_and_restore(a, actions, self.carried, self.layout)
        actions.close()
        if self.end:
            a.emit(Code.LEARNT, self.end.table, self.end.n_steps.offset)

    def advance(self, now: Sequence[Region], then: Sequence[Region]) -> None:
        inner, out = self.steps.run(self.loop.body, now, then)
        put(self.a, out[self.n :], self.bases, self.i)
        carry_on(self.a, then, out[: self.n])
        self.a.leave(inner)

    def tape(self, now: Sequence[Region], then: Sequence[Region]) -> None:
        inner, out = self.steps.run(self.taping, now, then)
        self.actions.residual_slot(self.r, self.i)
        put(self.a, out[self.n_out :], self.layout.residuals, self.r)
        put(self.a, out[self.n : self.n_out], self.bases, self.i)
        carry_on(self.a, then, out[: self.n])
        self.a.leave(inner)


def lower_reverse_loop(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    """The reverse sweep: cotangents are carried backwards, restart states run again."""
    sweep = _Reverse(a, placement, row)
    sweep.emit()
    sweep.steps.close()
    close(a, placement, k, sweep.results, sweep.own)


class _Reverse:
    """The reverse sweep of one loop while its code is written."""

    def __init__(self, a: Assembler, placement: Placement, row: Row) -> None:
        loop = read_reverse_loop(placement.tape, row)
        self.a, self.placement, self.loop = a, placement, loop
        a.depth += 1
        self.slots = a.slots[loop.name]
        kept = loop.taping.outputs.tolist()[loop.n_carry :]
        self.carry_cells = [_element(t) for t in loop.taping.output_types[: loop.n_carry]]
        residual_cells = [value_cells(a, loop.taping, r) for r in kept]
        offset = placement.region[loop.token].offset
        self.n_steps = Region(offset, 1) if loop.guard else None
        offset += _head(loop)
        self.layout = _Layout(offset, self.slots, self.carry_cells, residual_cells)
        self.totals = take_carry(a, placement, row, (*loop.ct_carry, *loop.sums))
        self.i, self.r = a.hold(a.new(1)), a.hold(a.new(1))
        self.steps = Steps(a, placement, loop.xs, loop.captured, self.i)
        ct_types = loop.reverse.output_types[len(self.totals) :]
        ct_xs, self.bases = new_ys(a, ct_types, loop.length)
        for ct in ct_xs if loop.guard else ():
            a.whole("fill", ct.size, ct.offset, a.zero.offset, cost=ct.size / 4)
        self.actions = _Actions(a, loop.name, reverse=True)
        self.results = [*self.totals, *ct_xs]
        if a.depth == 1:
            a.tokens[loop.name].totals.extend((r.offset, r.size) for r in self.results)
        self.own = [self.i, self.r, self.actions.cells]

    def emit(self) -> None:
        if self.slots.n_slots:
            self._run_again()
        elif self.n_steps:
            self._skip_forward()
        if self.loop.length:
            self._reverse_steps()
        self.actions.close()

    # --- ADVANCE, TAPE, STORE and RESTORE in the reverse phase ---------------------------------

    def _handle(self, kind: int) -> None:
        self.actions.handle(kind)
        if self.n_steps:
            self.actions.clip(self.n_steps)

    def _skip_forward(self) -> None:
        """A guarded loop that ended early has left actions of its forward sweep."""
        for kind in (ADVANCE, TAPE):
            self.actions.handle(kind)
        self.actions.again()

    def _run_again(self) -> None:
        a, actions, loop = self.a, self.actions, self.loop
        carried = [a.hold(a.new(n)) for n in self.carry_cells]
        self._handle(ADVANCE)
        a.emit(Code.COPY, 1, self.i.offset, actions.start.offset)
        counter = Counter(self.i, actions.stop)
        count(a, counter, carried, swaps(loop.advance, 1, loop.n_carry), self._advance)
        actions.again()
        self._handle(TAPE)
        self._tape(carried)
        actions.again()
        _store_and_restore(a, actions, carried, self.layout)
        for region in carried:
            a.unhold(region)

    def _advance(self, now: Sequence[Region], then: Sequence[Region]) -> None:
        inner, out = self.steps.run(self.loop.advance, now, then)
        carry_on(self.a, then, out)
        self.a.leave(inner)

    def _tape(self, carried: list[Region]) -> None:
        """The state after the last taped step is never read: that step computes residuals alone."""
        a, actions, taping, n = self.a, self.actions, self.loop.taping, self.loop.n_carry
        a.emit(Code.COPY, 1, self.i.offset, actions.start.offset)
        if self.slots.n_tape_slots > 1:
            cost, first = a.cost, len(a.code)
            last = a.emit(Code.JUMP_IF_LAST, self.i.offset, actions.stop.offset, 0) + 3
            inner, out = self.steps.run(taping, carried, carried)
            self._keep(out[n:])
            carry_on(a, carried, out[:n])
            a.leave(inner)
            next_step(a, Counter(self.i, actions.stop), first, cost)
            a.code[last] = len(a.code)
        inner, out = self.steps.run(dce(with_outputs(taping, taping.outputs.tolist()[n:])), carried)
        self._keep(out)
        a.leave(inner)
        if a.depth == 1:
            a.emit(Code.STEP)

    def _keep(self, residuals: Sequence[Region]) -> None:
        self.actions.residual_slot(self.r, self.i)
        put(self.a, residuals, self.layout.residuals, self.r)

    # --- REVERSE -------------------------------------------------------------------------------

    def _reverse_steps(self) -> None:
        a, loop, actions = self.a, self.loop, self.actions
        # With one residual slot the reverse reads it where it lies.
        self.alone = self.slots.n_tape_slots == 1
        self.residuals = [
            a.hold(Region(base, size, writable=False) if self.alone else a.new(size))
            for base, size in self.layout.residuals
        ]
        self.ct_ys = [
            (self.placement.region[x].offset, prod(self.placement.tape.rows[x].type.shape[1:]))
            for x in loop.ct_ys
        ]
        self.y_regions = [a.hold(a.new(n)) for _, n in self.ct_ys]
        self._handle(REVERSE)
        a.emit(Code.BEFORE, self.i.offset, actions.stop.offset)
        first = 1 + loop.n_residuals + len(loop.xs) + len(loop.captured)
        swap = swaps(loop.reverse, first, len(loop.ct_carry)) + [False] * len(loop.sums)
        count(a, Counter(self.i, actions.start, -1), self.totals, swap, self._once)
        actions.again()
        for region in (*self.residuals, *self.y_regions):
            a.unhold(region)

    def _once(self, now: Sequence[Region], then: Sequence[Region]) -> None:
        a, reverse, n_ct = self.a, self.loop.reverse, len(self.loop.ct_carry)
        if not self.alone:
            self.actions.residual_slot(self.r, self.i)
            get(a, self.residuals, self.layout.residuals, self.r)
        get(a, self.y_regions, self.ct_ys, self.i)
        elements = self.steps.elements(reverse, 1 + self.loop.n_residuals)
        own = [*self.steps.captured, *now[:n_ct], *self.y_regions, *now[n_ct:]]
        inputs = [self.i, *self.residuals, *elements, *own]
        inner, out = a.walk_step(reverse, inputs, wanted_at(reverse, then))
        put(a, out[len(now) :], self.bases, self.i)
        carry_on(a, then, out[: len(now)])
        a.leave(inner)
