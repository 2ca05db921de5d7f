"""The code of TAPED_LOOP and REVERSE_LOOP rows.

Each reads actions from a table and calls a function for each kind of them. What the functions share
lies at fixed places of the arena: the carry, what the body captures, where the token is.

    token   [restart states, one record per slot][residuals, one record per slot]
    record  values at fixed offsets; after the residuals the tokens of inner loops
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from llvmlite import ir

from ckad.engines.actions import Kind
from ckad.engines.native import registers
from ckad.engines.native.carries import Carry
from ckad.engines.native.cost import nanoseconds
from ckad.engines.native.element import I64, POINTER, Array, Value, nbytes, whole
from ckad.engines.native.frame import CONTROL, Frame, Held, Memory, Token, Wanted, element, taken
from ckad.engines.native.hooks import call_python
from ckad.engines.native.kernels import emit_copy
from ckad.engines.native.layout import is_small, offsets, record_bytes
from ckad.engines.native.lower_loops import as_held, borrowed, index_of, new_ys, want_ys
from ckad.engines.native.packets import Packet, Slot
from ckad.engines.native.state import Cell, Control
from ckad.engines.native.stepping import run_steps
from ckad.engines.native.unit import Buffer, Unit
from ckad.engines.native.writer import TapedFacts
from ckad.passes.dce import dce
from ckad.passes.rewrite import with_outputs
from ckad.tape.control import read_loop, read_reverse_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import Type


class Record(NamedTuple):
    """Where the values of a restart state, or the residuals of a step, lie in their record."""

    types: list[Type]  # of arrays
    offsets: list[int]
    inner: list[int]  # names of the loops whose tokens follow
    nbytes: int


def record_of(types: Sequence[Type], inner: Sequence[int] = ()) -> Record:
    return Record(list(types), offsets(types), list(inner), record_bytes(types))


def residual_record(taping: Tape, rows: Sequence[int]) -> Record:
    """The record of a step's residuals: the arrays among ``rows``, then the tokens."""
    arrays = [taping.rows[k].type for k in rows if taping.rows[k].type.is_array]
    inner = [
        taping.rows[taping.rows[k].operands[0]].attrs[-1]
        for k in rows
        if not taping.rows[k].type.is_array
    ]
    return record_of(arrays, inner)


class Sweep:
    """What the functions of one sweep over a loop share."""

    def __init__(self, frame: Frame, name: int, values: Sequence[Held], carry: Carry) -> None:
        self.frame, self.writer, self.name = frame, frame.writer, name
        self.packet = Packet(frame, values)
        self.token = Slot(frame.writer, frame.unit, None)
        self.stores: list[Store] = []

    def function(self, kind: str) -> Unit:
        """A new function of this sweep."""
        unit = Unit(self.writer.module, self.writer.name(kind))
        unit.depth = self.frame.unit.depth + len(self.frame.unit.steps)
        return unit

    def facts(self) -> TapedFacts:
        return self.writer.loops[self.name]

    def residuals(self, unit: Unit, slot: Value) -> Value:
        """The address of the residuals in a slot."""
        control = self.facts().control
        b = unit.b
        distance = b.mul(slot, unit.fixed(control + Control.STRIDE))
        distance = b.add(distance, unit.fixed(control + Control.RESIDUALS))
        return b.gep(self.token.pointer(unit), [distance])

    def free(self) -> None:
        self.packet.free(self.writer)
        self.writer.release(self.token.buffer)
        for store in self.stores:
            store.free_slots()


class Store:
    """A carry between the functions of a sweep: small values and the addresses of buffers."""

    def __init__(self, sweep: Sweep, carry: Carry, initial: Sequence[Value]) -> None:
        frame = sweep.frame
        self.carry, self.writer = carry, frame.writer
        self.small = [Slot(frame.writer, frame.unit, carry.types[k]) for k in carry.small]
        n_pointers = sum(p.n_buffers for p in carry.pools)
        self.large = [Slot(frame.writer, frame.unit, None) for _ in range(n_pointers)]
        sweep.stores.append(self)
        if initial:
            self.put(frame.unit, initial)

    def put(self, unit: Unit, values: Sequence[Value]) -> None:
        for slot, value in zip(self.small, self.carry.smalls(values), strict=True):
            slot.put(unit, value)
        pointers = [p for pool in self.carry.pointers(values) for p in pool]
        for slot, pointer in zip(self.large, pointers, strict=True):
            slot.put_pointer(unit, pointer)

    def get(self, unit: Unit) -> list[Value]:
        smalls = [slot.get(unit) for slot in self.small]
        return self.carry.flat(smalls, [slot.pointer(unit) for slot in self.large])

    def free_slots(self) -> None:
        for slot in (*self.small, *self.large):
            self.writer.release(slot.buffer)


# --- the driver ----------------------------------------------------------------------------------

Handlers = dict[Kind, ir.Function]


def drive(sweep: Sweep, handlers: Handlers, length: int, reverse: bool) -> None:
    """Fetch actions and call their functions until the sweep is over."""
    unit = sweep.frame.unit
    b, control = unit.b, sweep.facts().control
    if unit.depth + len(unit.steps):
        sweep.facts().nested = True
        begin = Control.REVERSE if reverse else Control.FIRST
        unit.put(control + Control.CURSOR, unit.get(control + begin))
    fetch, over = b.append_basic_block("fetch"), b.append_basic_block("over")
    b.branch(fetch)
    b.position_at_end(fetch)
    cursor = unit.get(control + Control.CURSOR)
    empty = b.icmp_signed(">=", cursor, unit.get(control + Control.FILLED))
    with b.if_then(empty, likely=False):
        unit.put(Cell.LOOP, whole(sweep.name))
        call_python(unit)
        unit.put(Cell.LOOP, whole(-1))
    cursor = unit.get(control + Control.CURSOR)
    unit.put(control + Control.CURSOR, b.add(cursor, whole(1)))
    kind, start, stop, slot = _action(unit, control, cursor)
    switch = b.switch(kind, over)
    for action, function in handlers.items():
        block = b.append_basic_block(action.name.lower())
        switch.add_case(whole(int(action)), block)
        b.position_at_end(block)
        unit.check(b.call(function, [unit.state, start, stop, slot]))
        runs = action in (Kind.ADVANCE, Kind.TAPE) and not reverse
        if runs:
            b.cbranch(b.icmp_signed("==", stop, whole(length)), over, fetch)
        else:
            b.branch(fetch)
    switch.add_case(whole(int(Kind.DROP)), fetch)
    b.position_at_end(over)


def _action(unit: Unit, control: int, cursor: Value) -> list[Value]:
    b = unit.b
    rows = b.inttoptr(unit.fixed(control + Control.ROWS), I64.as_pointer())
    first = b.mul(cursor, whole(4))
    return [b.load(b.gep(rows, [b.add(first, whole(k))])) for k in range(4)]


def _store_and_restore(sweep: Sweep, store: Store, record: Record) -> Handlers:
    found: Handlers = {}
    for kind in (Kind.STORE, Kind.RESTORE):
        unit = sweep.function(kind.name.lower())
        distance = unit.b.mul(unit.slot, whole(record.nbytes))
        place = unit.b.gep(sweep.token.pointer(unit), [distance])
        values = store.get(unit)
        if kind is Kind.STORE:
            write_record(unit, place, record, store.carry.held(values))
        else:
            store.put(unit, _restored(unit, place, record, store.carry, values))
        unit.finish()
        found[kind] = unit.function
    return found


def record_arrays(unit: Unit, place: Value, record: Record) -> list[Array]:
    b = unit.b
    return [
        Array(b.gep(place, [whole(offset)]), type)
        for offset, type in zip(record.offsets, record.types, strict=True)
    ]


def write_record(unit: Unit, place: Value, record: Record, values: Sequence[Held]) -> None:
    for array, value in zip(record_arrays(unit, place, record), values, strict=True):
        if isinstance(value, registers.Registers):
            registers.write(unit.b, array, value)
        else:
            assert isinstance(value, Memory)
            if value.array.pointer is not array.pointer:
                emit_copy(unit.b, array.pointer, value.array.pointer, nbytes(array.type))


def _restored(
    unit: Unit, place: Value, record: Record, carry: Carry, values: list[Value]
) -> list[Value]:
    """The carry from a record: large arrays are copied into its buffers."""
    arrays = record_arrays(unit, place, record)
    for array, value in zip(arrays, carry.held(values), strict=True):
        if isinstance(value, Memory):
            emit_copy(unit.b, value.array.pointer, array.pointer, nbytes(array.type))
    smalls = [registers.read(unit.b, arrays[k]) for k in carry.small]
    return carry.flat(smalls, [p for pool in carry.pointers(values) for p in pool])


# --- one step ------------------------------------------------------------------------------------


class Stepper:
    """Writes steps of a body: its inputs are the index, the carry, xs and captured values."""

    def __init__(self, sweep: Sweep, unit: Unit, xs: Sequence[Held], captured: Sequence[Held]):
        self.sweep, self.unit = sweep, unit
        self.xs = [_array(x) for x in xs]
        self.captured = list(captured)

    def elements(self, i: Value) -> list[Held]:
        b = self.unit.b
        return [taken(b, element(b, x, i)) for x in self.xs]

    def frame(self, tape: Tape, inputs: Sequence[Held], wanted: Wanted) -> Frame:
        return Frame(self.sweep.writer, self.unit, tape, inputs, wanted)

    def keep(self, place: Value, record: Record, frame: Frame, outputs: Sequence[Held]) -> None:
        arrays = [x for x in outputs if not isinstance(x, Token)]
        write_record(self.unit, place, record, arrays)

    def want_residuals(
        self, wanted: Wanted, tape: Tape, rows: Sequence[int], place: Value, record: Record
    ) -> list[Array]:
        """Large residuals are computed where they are to lie, tokens of inner loops too."""
        arrays = iter(record_arrays(self.unit, place, record))
        found = []
        tokens = self.inner_tokens(place, record)
        for row in rows:
            type = tape.rows[row].type
            if not type.is_array:
                wanted[row] = Buffer(next(tokens), 0)
                continue
            array = next(arrays)
            found.append(array)
            fresh = row not in wanted and tape.rows[row].op not in (Op.INPUT, Op.CONST)
            if fresh and not is_small(type):
                wanted[row] = Buffer(array.pointer, nbytes(type))
        return found

    def inner_tokens(self, place: Value, record: Record):  # type: ignore[no-untyped-def]
        for name in record.inner:
            control = self.sweep.writer.control(name)
            distance = self.unit.get(control + Control.OFFSET)
            yield self.unit.b.gep(place, [distance])


def _array(value: Held) -> Array:
    assert isinstance(value, Memory)
    return value.array


def _put_all(frame: Frame, arrays: Sequence[Array], values: Sequence[Held]) -> None:
    for array, value in zip(arrays, values, strict=True):
        frame.put(array, value)


# --- the forward sweep ---------------------------------------------------------------------------


def lower_taped_loop(frame: Frame, k: int, row: Row) -> Sequence[Held]:
    """Results, ys, and the token."""
    loop = read_loop(frame.tape, row)
    taping = loop.taping
    assert taping is not None
    n, n_out = len(loop.carry), len(loop.body.outputs)
    writer, unit = frame.writer, frame.unit
    carry = Carry(loop.body.output_types[:n], [(loop.body, 1), (taping, 1)])
    state = record_of(carry.types)
    kept = residual_record(taping, taping.outputs.tolist()[n_out:])
    control = writer.control(loop.name)
    facts = TapedFacts(control, state.nbytes, kept.nbytes, kept.inner)
    facts = writer.taped(loop.name, facts)
    for name in kept.inner:
        writer.taped(name, _placeholder(writer, name)).is_residual = True
    _complete(facts, state, kept)
    initial = carry.allocate(frame, loop.carry)
    ys = new_ys(frame, loop.body.output_types[n:], loop.length)
    values = [
        *(_in_memory(frame, x) for x in loop.xs),
        *(borrowed(frame, x) for x in loop.captured),
        *ys,
    ]
    sweep = Sweep(frame, loop.name, values, carry)
    store = Store(sweep, carry, initial)
    token = _token_of(frame, k, len(loop.body.outputs), control)
    sweep.token.put_pointer(unit, token)
    counts = len(loop.xs), len(loop.captured)
    handlers = _store_and_restore(sweep, store, state)
    for kind, body in ((Kind.ADVANCE, loop.body), (Kind.TAPE, taping)):
        record = kept if kind is Kind.TAPE else None
        handlers[kind] = _forward(sweep, kind, body, store, counts, n_out, record, loop.length)
    if loop.length:
        drive(sweep, handlers, loop.length, reverse=False)
    held = carry.held(store.get(unit), pools=True)
    results = [*held, *(as_held(frame, y) for y in ys), Token(token)]
    sweep.free()
    return results


def _placeholder(writer, name: int) -> TapedFacts:  # type: ignore[no-untyped-def]
    """An inner loop that is known by its name only until its own row is written."""
    return TapedFacts(writer.control(name), 0, 0, [])


def _complete(facts: TapedFacts, state: Record, kept: Record) -> None:
    facts.carry_bytes, facts.residual_bytes = state.nbytes, kept.nbytes
    facts.inner = kept.inner


def _in_memory(frame: Frame, k: int) -> Memory:
    array = frame.memory(k)
    return Memory(array, Buffer(array.pointer, 0, writable=False))


def _token_of(frame: Frame, k: int, number: int, control: int) -> Value:
    """Where a token lies: among the residuals of the step around it, or at a place of its own."""
    for r in frame.fusion.readers[k]:
        row = frame.rows[r]
        if row.op is Op.RESULT and row.attrs[0] == number and r in frame.wanted:
            return frame.wanted.pop(r).pointer
    return frame.unit.b.inttoptr(frame.unit.get(control + Control.TOKEN), POINTER)


def _forward(
    sweep: Sweep,
    kind: Kind,
    body: Tape,
    store: Store,
    counts: tuple[int, int],
    n_out: int,
    record: Record | None,
    length: int,
) -> ir.Function:
    """ADVANCE or TAPE in the forward sweep: steps [start, stop), with their ys."""
    unit = sweep.function(kind.name.lower())
    shared = sweep.packet.open(unit)
    n_xs, n_captured = counts
    stepper = Stepper(sweep, unit, shared[:n_xs], shared[n_xs:][:n_captured])
    ys = [_array(y) for y in shared[n_xs + n_captured :]]
    n = len(store.carry.types)
    rows = body.outputs.tolist()

    def once(i: Value, values: list[Value]) -> list[Value]:
        b = unit.b
        wanted = store.carry.wanted(values, body, 1)
        places = [element(b, y, i) for y in ys]
        want_ys(wanted, _first_outputs(body, n_out), n, places)
        kept: list[Array] = []
        if record is not None:
            slot = b.sub(b.add(unit.slot, i), unit.start)
            place = sweep.residuals(unit, slot)
            kept = stepper.want_residuals(wanted, body, rows[n_out:], place, record)
        inputs = [index_of(i), *store.carry.held(values), *stepper.elements(i), *stepper.captured]
        inner = stepper.frame(body, inputs, wanted)
        outputs = inner.run()
        _put_all(inner, kept, [x for x in outputs[n_out:] if not isinstance(x, Token)])
        _put_all(inner, places, outputs[n:n_out])
        following = store.carry.following(unit, values, outputs[:n])
        inner.close()
        return following

    _run(sweep, unit, store, once, nanoseconds(body), length)
    return unit.function


def _first_outputs(body: Tape, n: int) -> Tape:
    return with_outputs(body, body.outputs.tolist()[:n])


def _run(
    sweep: Sweep,
    unit: Unit,
    store: Store,
    once: Callable[[Value, list[Value]], list[Value]],
    cost: float,
    length: int,
    stop: Value | None = None,
    backward: bool = False,
) -> None:
    """The function's steps, from the carry as it was left to the carry for the next one."""
    outermost = unit.depth == 0
    end = unit.stop if stop is None else stop
    initial = store.get(unit)
    values = run_steps(unit, unit.start, end, initial, once, cost, length, backward, outermost)
    store.put(unit, values)
    if stop is None:
        unit.finish()


# --- the reverse sweep ---------------------------------------------------------------------------


def lower_reverse_loop(frame: Frame, k: int, row: Row) -> Sequence[Held]:
    """Cotangents of the carry, sums, and cotangents of the xs."""
    loop = read_reverse_loop(frame.tape, row)
    writer, unit = frame.writer, frame.unit
    n = loop.n_carry
    primal_types = loop.taping.output_types[:n]
    primal = Carry(primal_types, [(loop.advance, 1), (loop.taping, 1)])
    state = record_of(primal_types)
    kept = residual_record(loop.taping, loop.taping.outputs.tolist()[n:])
    writer.taped(loop.name, _placeholder(writer, loop.name))
    _complete(writer.loops[loop.name], state, kept)
    first = 1 + loop.n_residuals + len(loop.xs) + len(loop.captured)
    duals = [*loop.ct_carry, *loop.sums]
    totals = _TotalsCarry(loop.reverse, first, len(loop.ct_carry), len(loop.ct_ys), len(duals))
    initial = totals.allocate(frame, duals)
    ct_xs = new_ys(frame, loop.reverse.output_types[len(duals) :], loop.length)
    values = [
        *(_in_memory(frame, x) for x in loop.xs),
        *(borrowed(frame, x) for x in loop.captured),
        *(_in_memory(frame, x) for x in loop.ct_ys),
        *ct_xs,
    ]
    sweep = Sweep(frame, loop.name, values, totals)
    token = frame.held[loop.token]
    assert isinstance(token, Token)
    sweep.token.put_pointer(unit, token.pointer)
    store = Store(sweep, totals, initial)
    again = Store(sweep, primal, _fresh(frame, primal))
    counts = len(loop.xs), len(loop.captured), len(loop.ct_ys)
    if loop.length:
        handlers = _store_and_restore(sweep, again, state)
        handlers[Kind.ADVANCE] = _advance(sweep, loop.advance, again, counts, loop.length)
        handlers[Kind.TAPE] = _retape(sweep, loop.taping, again, counts, kept, loop.length)
        handlers[Kind.REVERSE] = _reverse(sweep, loop, store, counts, kept)
        drive(sweep, handlers, loop.length, reverse=True)
    for pool in primal.pools:
        pool.free(writer)
    held = totals.held(store.get(unit), pools=True)
    results = [*held, *(as_held(frame, x) for x in ct_xs)]
    sweep.free()
    return results


class _TotalsCarry(Carry):
    """Cotangents of the carry and sums; in the body's inputs those of the ys lie between them."""

    def __init__(self, body: Tape, first: int, n_carry: int, n_ys: int, n: int) -> None:
        self.positions = [first + k + (n_ys if k >= n_carry else 0) for k in range(n)]
        super().__init__(body.output_types[:n], [(body, first)])

    def _needed(self, members: list[int], tape: Tape, first: int) -> int:
        outputs, inputs = tape.outputs.tolist(), tape.inputs.tolist()
        own = {inputs[self.positions[k]] for k in members}
        return 2 * len(members) - len({outputs[k] for k in members} & own)


def _fresh(frame: Frame, carry: Carry) -> list[Value]:
    """Buffers for a carry that gets its values from a restart state."""
    pointers = []
    for pool in carry.pools:
        pool.buffers = [
            frame.writer.allocate(frame.unit, pool.nbytes) for _ in range(pool.n_buffers)
        ]
        pointers += [buffer.pointer for buffer in pool.buffers]
    zeros = [
        registers.Registers(
            carry.types[k],
            tuple(
                ir.Constant(registers.register_type(carry.types[k].dtype, w), None)
                if w > 1
                else ir.Constant(registers.register_type(carry.types[k].dtype), 0)
                for w in registers.widths(carry.types[k].size)
            ),
        )
        for k in carry.small
    ]
    return carry.flat(zeros, pointers)


def _advance(
    sweep: Sweep, body: Tape, store: Store, counts: tuple[int, int, int], length: int
) -> ir.Function:
    unit = sweep.function("advance")
    stepper = _stepper(sweep, unit, counts)

    def once(i: Value, values: list[Value]) -> list[Value]:
        return _plain_step(stepper, body, store, i, values)

    _run(sweep, unit, store, once, nanoseconds(body), length)
    return unit.function


def _stepper(sweep: Sweep, unit: Unit, counts: tuple[int, int, int]) -> Stepper:
    shared = sweep.packet.open(unit)
    return Stepper(sweep, unit, shared[: counts[0]], shared[counts[0] :][: counts[1]])


def _plain_step(
    stepper: Stepper, body: Tape, store: Store, i: Value, values: list[Value]
) -> list[Value]:
    wanted = store.carry.wanted(values, body, 1)
    inputs = [index_of(i), *store.carry.held(values), *stepper.elements(i), *stepper.captured]
    inner = stepper.frame(body, inputs, wanted)
    outputs = inner.run()
    following = store.carry.following(stepper.unit, values, outputs)
    inner.close()
    return following


def _retape(
    sweep: Sweep,
    taping: Tape,
    store: Store,
    counts: tuple[int, int, int],
    record: Record,
    length: int,
) -> ir.Function:
    """TAPE in the reverse phase; the last step's new state is never read, so it is not computed."""
    unit = sweep.function("retape")
    stepper = _stepper(sweep, unit, counts)
    n = len(store.carry.types)
    rows = taping.outputs.tolist()

    def once(i: Value, values: list[Value]) -> list[Value]:
        b = unit.b
        wanted = store.carry.wanted(values, taping, 1)
        place = sweep.residuals(unit, b.sub(b.add(unit.slot, i), unit.start))
        kept = stepper.want_residuals(wanted, taping, rows[n:], place, record)
        inputs = [index_of(i), *store.carry.held(values), *stepper.elements(i), *stepper.captured]
        inner = stepper.frame(taping, inputs, wanted)
        outputs = inner.run()
        _put_all(inner, kept, [x for x in outputs[n:] if not isinstance(x, Token)])
        following = store.carry.following(unit, values, outputs[:n])
        inner.close()
        return following

    last = unit.b.sub(unit.stop, whole(1))
    _run(sweep, unit, store, once, nanoseconds(taping), length, stop=last)
    short = dce(with_outputs(taping, rows[n:]))
    values = store.get(unit)
    with unit.step(last):
        wanted: Wanted = {}
        place = sweep.residuals(unit, unit.b.sub(unit.b.add(unit.slot, last), unit.start))
        kept = stepper.want_residuals(wanted, short, short.outputs.tolist(), place, record)
        inputs = [
            index_of(last),
            *store.carry.held(values),
            *stepper.elements(last),
            *stepper.captured,
        ]
        inner = stepper.frame(short, inputs, wanted)
        outputs = inner.run()
        _put_all(inner, kept, [x for x in outputs if not isinstance(x, Token)])
        inner.close()
    if unit.depth == 0:
        unit.put(Cell.STEPS, unit.b.add(unit.get(Cell.STEPS), whole(1)))
    unit.finish()
    return unit.function


def _reverse(sweep: Sweep, loop, store: Store, counts, record: Record) -> ir.Function:  # type: ignore[no-untyped-def]
    """REVERSE: the steps [start, stop) backwards."""
    unit = sweep.function("reverse")
    stepper = _stepper(sweep, unit, counts)
    shared = sweep.packet.open(unit)
    ct_ys = [_array(x) for x in shared[counts[0] + counts[1] :][: counts[2]]]
    ct_xs = [_array(x) for x in shared[sum(counts) :]]
    body, n_ct = loop.reverse, len(loop.ct_carry)
    n_totals = n_ct + len(loop.sums)
    carry = store.carry
    kinds = [body.input_types[1 + k] for k in range(loop.n_residuals)]

    def once(i: Value, values: list[Value]) -> list[Value]:
        b = unit.b
        place = sweep.residuals(unit, b.sub(b.add(unit.slot, i), unit.start))
        arrays = iter(record_arrays(unit, place, record))
        tokens = stepper.inner_tokens(place, record)
        residuals: list[Held] = [
            taken(b, next(arrays)) if t.is_array else Token(next(tokens)) for t in kinds
        ]
        cts = [taken(b, element(b, y, i)) for y in ct_ys]
        held = carry.held(values)
        inputs = [index_of(i), *residuals, *stepper.elements(i), *stepper.captured]
        inputs += [*held[:n_ct], *cts, *held[n_ct:]]
        wanted = carry.wanted(values, body, 0)
        places = [element(b, x, i) for x in ct_xs]
        want_ys(wanted, body, n_totals, places)
        inner = stepper.frame(body, inputs, wanted)
        outputs = inner.run()
        _put_all(inner, places, outputs[n_totals:])
        following = carry.following(unit, values, outputs[:n_totals])
        inner.close()
        return following

    _run(sweep, unit, store, once, nanoseconds(body), loop.length, backward=True)
    return unit.function


CONTROL[Op.TAPED_LOOP] = lower_taped_loop
CONTROL[Op.REVERSE_LOOP] = lower_reverse_loop
