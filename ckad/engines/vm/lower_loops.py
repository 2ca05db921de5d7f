"""The code of the control rows.

A LOOP is a counted loop around its body's code. A TAPED_LOOP and its REVERSE_LOOP fetch actions
from a table and jump to the code of each kind; the restart states and the residuals lie in the
token's cells, one array per carry item and per residual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from ckad.engines.vm.assemble import Assembler, Frame
from ckad.engines.vm.grouping import group, reads_in_place
from ckad.engines.vm.heap import Region
from ckad.engines.vm.isa import STRIP, Code
from ckad.engines.vm.program import Slots
from ckad.passes.dce import dce
from ckad.passes.rewrite import with_outputs
from ckad.tape.control import Loop, ReverseLoop, read_loop, read_reverse_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import Type

#: The targets of an ACTION, in the order of checkpoint.schedules.Action.
ADVANCE, STORE, RESTORE, DROP, TAPE, REVERSE, END = range(7)
_FIRST_TARGET = 3


def token_cells(a: Assembler, loop: Loop) -> int:
    """Cells of a taped loop's token."""
    slots = a.slots[loop.name]
    assert loop.taping is not None
    n = len(loop.carry)
    carry = sum(max(1, t.size) for t in loop.body.output_types[:n])
    kept = loop.taping.outputs.tolist()[len(loop.body.outputs) :]
    residuals = sum(value_cells(a, loop.taping, k) for k in kept)
    return slots.n_slots * carry + slots.n_tape_slots * residuals


def value_cells(a: Assembler, tape: Tape, k: int) -> int:
    row = tape.rows[k]
    if row.type.is_array:
        return max(1, row.type.size)
    return token_cells(a, read_loop(tape, tape.rows[row.operands[0]]))


class _Layout:
    """Where a token keeps restart states and residuals: an array of slots per item."""

    def __init__(self, offset: int, slots: Slots, carry: Sequence[int], residuals: Sequence[int]):
        self.carry, self.residuals = [], []
        for size in carry:
            self.carry.append((offset, size))
            offset += slots.n_slots * size
        for size in residuals:
            self.residuals.append((offset, size))
            offset += slots.n_tape_slots * size


def _take_carry(a: Assembler, frame: Frame, row: Row, names: Sequence[int]) -> list[Region]:
    """Regions for what a loop carries, holding the initial values."""
    carried = []
    for x in names:
        source = frame.region[x]
        size = a.cells_of(frame, x)
        sole = row.operands.count(x) == 1 and a.take_over(frame, x, size) is not None
        if sole:
            a.hold(source)
            a.release(frame.region.pop(x))
            carried.append(source)
        else:
            region = a.hold(a.new(size))
            a.copy(region.offset, source.offset, size)
            carried.append(region)
    return carried


def _carry_on(a: Assembler, carried: Sequence[Region], new: Sequence[Region]) -> None:
    """Copy a step's results into the carry; what another copy would overwrite is saved first."""
    pairs = [(c, r) for c, r in zip(carried, new, strict=True) if c is not r]
    written = {id(c) for c, _ in pairs}
    saved: dict[int, Region] = {}
    for _, r in pairs:
        if id(r) in written and id(r) not in saved:
            saved[id(r)] = a.new(r.size)
            a.copy(saved[id(r)].offset, r.offset, r.size)
    for c, r in pairs:
        a.copy(c.offset, saved.get(id(r), r).offset, min(c.size, r.size))
    for region in saved.values():
        a.heap.release(region.offset, region.size)


class _Steps:
    """Code that runs a body once per step: its index, its elements of the xs, its captures."""

    def __init__(
        self, a: Assembler, frame: Frame, xs: Sequence[int], captured: Sequence[int], i: Region
    ):
        self.a, self.frame, self.i = a, frame, i
        self.xs = [frame.region[x] for x in xs]
        self.x_sizes = [prod(frame.tape.rows[x].type.shape[1:]) for x in xs]
        self.captured = [frame.region[x] for x in captured]
        self.x_regions = [a.hold(a.new(n)) for n in self.x_sizes]

    def elements(self, body: Tape, first: int) -> list[Region]:
        """Copy this step's elements of the xs that the body reads."""
        for at, (source, n, region) in enumerate(
            zip(self.xs, self.x_sizes, self.x_regions, strict=True)
        ):
            if n and _reads(body, first + at):
                self.a.emit(
                    Code.COPY_IN, n, region.offset, source.offset, self.i.offset, cost=n / 4
                )
        return self.x_regions

    def run(
        self, body: Tape, carried: Sequence[Region], targets: Sequence[Region] = ()
    ) -> tuple[Frame, list[Region]]:
        """One step of a body (i, carry, x, captured); ``targets`` say where to put the carry."""
        elements = self.elements(body, 1 + len(carried))
        inputs = [self.i, *carried, *elements, *self.captured]
        return self.a.walk_step(body, inputs, _wanted(body, targets))

    def close(self) -> None:
        for region in self.x_regions:
            self.a.unhold(region)


def _reads(tape: Tape, position: int) -> bool:
    k = tape.inputs[position]
    return bool((tape.operand == k).any() or (tape.outputs == k).any())


def _element(t: Type) -> int:
    return max(1, t.size)


def _put(
    a: Assembler, values: Sequence[Region], bases: Sequence[tuple[int, int]], index: Region
) -> None:
    """Write each value into its array of slots at ``index``."""
    for value, (base, size) in zip(values, bases, strict=True):
        a.emit(Code.COPY_OUT, size, base, index.offset, value.offset, cost=size / 4)


def _get(
    a: Assembler, values: Sequence[Region], bases: Sequence[tuple[int, int]], index: Region
) -> None:
    for value, (base, size) in zip(values, bases, strict=True):
        a.emit(Code.COPY_IN, size, value.offset, base, index.offset, cost=size / 4)


def _wanted(body: Tape, targets: Sequence[Region]) -> dict[int, Region]:
    """The first outputs of a body with the regions that they should lie in."""
    return dict(zip(body.outputs.tolist(), targets, strict=False))


#: One step's code: where the carry lies, where the next one should; it is there afterwards.
Once = Callable[[Sequence[Region], Sequence[Region]], None]


class _Counter(NamedTuple):
    """The index of a counted loop, the cell that it runs to, and the direction."""

    i: Region
    stop: Region
    step: int = 1


def _count(
    a: Assembler, counter: _Counter, carried: Sequence[Region], swap: Sequence[bool], once: Once
) -> None:
    """A counted loop around ``once``.

    Large carries that a step cannot update in place have two regions that take turns: the code
    of the step stands twice, and nothing is copied from step to step.
    """
    second = [a.hold(a.new(c.size)) if both else c for c, both in zip(carried, swap, strict=True)]
    cost, head = a.cost, len(a.code)
    once(carried, second)
    if not any(swap):
        return _next(a, counter, head, cost)
    skip = _next(a, counter, 0, cost)
    odd = a.emit(Code.JUMP, 0) + 1
    a.code[skip] = len(a.code)
    once(second, carried)
    _next(a, counter, head, cost)
    even = a.emit(Code.JUMP, 0) + 1
    a.code[odd] = len(a.code)
    for c, d in zip(carried, second, strict=True):
        a.copy(c.offset, d.offset, c.size)
        if c is not d:
            a.unhold(d)
    a.code[even] = len(a.code)
    return None


def _next(a: Assembler, counter: _Counter, target: int, cost: int) -> int:
    """Close a step; returns the address of the jump's target."""
    if a.depth == 1:
        a.emit(Code.STEP)
    i, stop, step = counter
    at = a.emit(Code.NEXT, i.offset, stop.offset, step, target, a.cost - cost + 8)
    a.cost = cost  # the steps are paid for while they run
    return at + 4


#: Carries of fewer cells are copied from step to step.
LARGE = 4 * STRIP


def _swaps(body: Tape, first: int, n: int) -> list[bool]:
    """Which of the n carries from input ``first`` on are large and not updated in place.

    A step that reads a carry through a view (a stencil's neighbours) has to leave it as it is
    until the last strip is done.
    """
    chained = {k for item in group(body) if isinstance(item, list) for k in item}
    outputs, inputs = body.outputs.tolist(), body.inputs.tolist()
    viewed = {x for k in chained if not reads_in_place(body.rows[k]) for x in body.rows[k].operands}
    return [
        body.rows[outputs[c]].type.size >= LARGE
        and outputs[c] in chained
        and outputs.index(outputs[c]) == c
        and inputs[first + c] in viewed
        for c in range(n)
    ]


def _loop(a: Assembler, frame: Frame, k: int, row: Row) -> None:
    loop = read_loop(frame.tape, row)
    n = len(loop.carry)
    a.depth += 1
    carried = _take_carry(a, frame, row, loop.carry)
    i, stop = a.hold(a.new(1)), a.hold(a.new(1))
    steps = _Steps(a, frame, loop.xs, loop.captured, i)
    ys, bases = _new_ys(a, loop.body.output_types[n:], loop.length)
    a.emit(Code.SET, i.offset, loop.length - 1 if loop.backward else 0)
    a.emit(Code.SET, stop.offset, 0 if loop.backward else loop.length)

    def once(now: Sequence[Region], then: Sequence[Region]) -> None:
        inner, out = steps.run(loop.body, now, then)
        _put(a, out[n:], bases, i)
        _carry_on(a, then, out[:n])
        a.leave(inner)

    if loop.length:
        counter = _Counter(i, stop, -1 if loop.backward else 1)
        _count(a, counter, carried, _swaps(loop.body, 1, n), once)
    steps.close()
    _close(a, frame, k, [*carried, *ys], [i, stop])


def _new_ys(
    a: Assembler, types: Sequence[Type], length: int
) -> tuple[list[Region], list[tuple[int, int]]]:
    ys = [a.hold(a.new(length * t.size)) for t in types]
    return ys, [(y.offset, t.size) for y, t in zip(ys, types, strict=True)]


def _close(a: Assembler, frame: Frame, k: int, results: list[Region], own: list[Region]) -> None:
    """Hand over the results and give back the loop's own cells."""
    a.depth -= 1
    a.give_results(frame, k, results)
    for region in (*results, *own):
        a.unhold(region)


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
    _put(a, carried, layout.carry, actions.slot)
    actions.again()
    actions.handle(RESTORE)
    _get(a, carried, layout.carry, actions.slot)
    actions.again()
    actions.handle(DROP)
    actions.again()


def _taped_loop(a: Assembler, frame: Frame, k: int, row: Row) -> None:
    loop = read_loop(frame.tape, row)
    n, n_out = len(loop.carry), len(loop.body.outputs)
    assert loop.taping is not None
    a.depth += 1
    token = a.hold(a.new(token_cells(a, loop)))
    kept = loop.taping.outputs.tolist()[n_out:]
    layout = _Layout(
        token.offset,
        a.slots[loop.name],
        [_element(t) for t in loop.body.output_types[:n]],
        [value_cells(a, loop.taping, r) for r in kept],
    )
    carried = _take_carry(a, frame, row, loop.carry)
    i, r = a.hold(a.new(1)), a.hold(a.new(1))
    steps = _Steps(a, frame, loop.xs, loop.captured, i)
    ys, bases = _new_ys(a, loop.body.output_types[n:], loop.length)
    actions = _Actions(a, loop.name, reverse=False)
    counter = _Counter(i, actions.stop)

    def advance(now: Sequence[Region], then: Sequence[Region]) -> None:
        inner, out = steps.run(loop.body, now, then)
        _put(a, out[n:], bases, i)
        _carry_on(a, then, out[:n])
        a.leave(inner)

    def tape(now: Sequence[Region], then: Sequence[Region]) -> None:
        assert loop.taping is not None
        inner, out = steps.run(loop.taping, now, then)
        a.emit(Code.RESIDUAL, r.offset, actions.slot.offset, i.offset, actions.start.offset)
        _put(a, out[n_out:], layout.residuals, r)
        _put(a, out[n:n_out], bases, i)
        _carry_on(a, then, out[:n])
        a.leave(inner)

    pairs = ((ADVANCE, loop.body, advance), (TAPE, loop.taping, tape))
    for kind, body, once in pairs if loop.length else ():
        actions.handle(kind)
        a.emit(Code.COPY, 1, i.offset, actions.start.offset)
        _count(a, counter, carried, _swaps(body, 1, n), once)
        actions.leave_at(loop.length)
        actions.again()
    _store_and_restore(a, actions, carried, layout)
    actions.close()
    steps.close()
    _close(a, frame, k, [*carried, *ys, token], [i, r, actions.cells])


def _reverse_loop(a: Assembler, frame: Frame, k: int, row: Row) -> None:
    loop = read_reverse_loop(frame.tape, row)
    a.depth += 1
    slots = a.slots[loop.name]
    kept = loop.taping.outputs.tolist()[loop.n_carry :]
    residual_cells = [value_cells(a, loop.taping, r) for r in kept]
    carry_cells = [_element(t) for t in loop.taping.output_types[: loop.n_carry]]
    token = frame.region[loop.token]
    layout = _Layout(token.offset, slots, carry_cells, residual_cells)
    totals = _take_carry(a, frame, row, (*loop.ct_carry, *loop.sums))
    i, r = a.hold(a.new(1)), a.hold(a.new(1))
    steps = _Steps(a, frame, loop.xs, loop.captured, i)
    n_own = len(totals)
    ct_xs, bases = _new_ys(a, loop.reverse.output_types[n_own:], loop.length)
    actions = _Actions(a, loop.name, reverse=True)
    if slots.n_slots:
        _recompute(a, loop, actions, steps, layout, carry_cells, (i, r))
    if loop.length:
        _reverse_steps(a, frame, loop, actions, steps, layout, totals, bases, (i, r))
    actions.close()
    steps.close()
    _close(a, frame, k, [*totals, *ct_xs], [i, r, actions.cells])


def _recompute(
    a: Assembler,
    loop: ReverseLoop,
    actions: _Actions,
    steps: _Steps,
    layout: _Layout,
    carry_cells: list[int],
    own: tuple[Region, Region],
) -> None:
    """ADVANCE, TAPE, STORE and RESTORE in the reverse phase."""
    i, _ = own
    carried = [a.hold(a.new(n)) for n in carry_cells]
    actions.handle(ADVANCE)
    a.emit(Code.COPY, 1, i.offset, actions.start.offset)

    def advance(now: Sequence[Region], then: Sequence[Region]) -> None:
        inner, out = steps.run(loop.advance, now, then)
        _carry_on(a, then, out)
        a.leave(inner)

    counter = _Counter(i, actions.stop)
    _count(a, counter, carried, _swaps(loop.advance, 1, loop.n_carry), advance)
    actions.again()
    actions.handle(TAPE)
    _tape(a, loop, actions, steps, layout, carried, own)
    actions.again()
    _store_and_restore(a, actions, carried, layout)
    for region in carried:
        a.unhold(region)


def _tape(
    a: Assembler,
    loop: ReverseLoop,
    actions: _Actions,
    steps: _Steps,
    layout: _Layout,
    carried: list[Region],
    own: tuple[Region, Region],
) -> None:
    """The state after the last taped step is never read: that step computes residuals alone."""
    i, r = own
    slots = a.slots[loop.name]
    outputs = loop.taping.outputs.tolist()
    a.emit(Code.COPY, 1, i.offset, actions.start.offset)
    if slots.n_tape_slots > 1:
        cost, head = a.cost, len(a.code)
        last = a.emit(Code.JUMP_IF_LAST, i.offset, actions.stop.offset, 0) + 3
        inner, out = steps.run(loop.taping, carried, carried)
        a.emit(Code.RESIDUAL, r.offset, actions.slot.offset, i.offset, actions.start.offset)
        _put(a, out[loop.n_carry :], layout.residuals, r)
        _carry_on(a, carried, out[: loop.n_carry])
        a.leave(inner)
        _next(a, _Counter(i, actions.stop), head, cost)
        a.code[last] = len(a.code)
    residuals_alone = dce(with_outputs(loop.taping, outputs[loop.n_carry :]))
    inner, out = steps.run(residuals_alone, carried)
    a.emit(Code.RESIDUAL, r.offset, actions.slot.offset, i.offset, actions.start.offset)
    _put(a, out, layout.residuals, r)
    a.leave(inner)
    if a.depth == 1:
        a.emit(Code.STEP)


def _reverse_steps(
    a: Assembler,
    frame: Frame,
    loop: ReverseLoop,
    actions: _Actions,
    steps: _Steps,
    layout: _Layout,
    totals: list[Region],
    ct_xs: list[tuple[int, int]],
    own: tuple[Region, Region],
) -> None:
    i, r = own
    alone = a.slots[loop.name].n_tape_slots == 1
    residuals = [
        a.hold(Region(base, size, writable=False) if alone else a.new(size))
        for base, size in layout.residuals
    ]
    ct_ys = [frame.region[x] for x in loop.ct_ys]
    y_sizes = [prod(frame.tape.rows[x].type.shape[1:]) for x in loop.ct_ys]
    y_regions = [a.hold(a.new(n)) for n in y_sizes]
    actions.handle(REVERSE)
    a.emit(Code.BEFORE, i.offset, actions.stop.offset)
    n_ct, n_own = len(loop.ct_carry), len(totals)

    def once(now: Sequence[Region], then: Sequence[Region]) -> None:
        if not alone:
            a.emit(Code.RESIDUAL, r.offset, actions.slot.offset, i.offset, actions.start.offset)
            _get(a, residuals, layout.residuals, r)
        _get(a, y_regions, [(y.offset, n) for y, n in zip(ct_ys, y_sizes, strict=True)], i)
        elements = steps.elements(loop.reverse, 1 + loop.n_residuals)
        own = [*steps.captured, *now[:n_ct], *y_regions, *now[n_ct:]]
        inputs = [i, *residuals, *elements, *own]
        inner, out = a.walk_step(loop.reverse, inputs, _wanted(loop.reverse, then))
        _put(a, out[n_own:], ct_xs, i)
        _carry_on(a, then, out[:n_own])
        a.leave(inner)

    first = 1 + loop.n_residuals + len(loop.xs) + len(loop.captured)
    swap = _swaps(loop.reverse, first, n_ct) + [False] * len(loop.sums)
    _count(a, _Counter(i, actions.start, -1), totals, swap, once)
    actions.again()
    for region in (*residuals, *y_regions):
        a.unhold(region)


def _cond(a: Assembler, frame: Frame, k: int, row: Row) -> None:
    """Both branches write the same result cells."""
    bodies = [frame.tape.bodies[t] for t in row.attrs[:2]]
    operands = [frame.region[x] for x in row.operands[1:]]
    a.depth += 1
    results = [a.hold(a.new(t.size)) for t in bodies[0].output_types]
    otherwise = a.emit(Code.JUMP_IF_ZERO, frame.region[row.operands[0]].offset, 0) + 2
    _branch(a, bodies[0], operands, results)
    end = a.emit(Code.JUMP, 0) + 1
    a.code[otherwise] = len(a.code)
    _branch(a, bodies[1], operands, results)
    a.code[end] = len(a.code)
    _close(a, frame, k, results, [])


def _branch(a: Assembler, body: Tape, operands: list[Region], results: list[Region]) -> None:
    inner, out = a.walk(body, operands)
    for result, new in zip(results, out, strict=True):
        a.copy(result.offset, new.offset, new.size)
    a.leave(inner)


CONTROL: dict[int, Callable[[Assembler, Frame, int, Row], None]] = {
    Op.LOOP: _loop,
    Op.TAPED_LOOP: _taped_loop,
    Op.REVERSE_LOOP: _reverse_loop,
    Op.COND: _cond,
}
