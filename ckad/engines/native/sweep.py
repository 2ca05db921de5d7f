"""What the functions of one sweep over a taped loop share, and the code that calls them.

Actions are read from a table; each kind has a function. The carry, what the body captures and where
the token is lie at fixed places of the arena.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from llvmlite import ir

from ckad.engines.actions import Kind
from ckad.engines.native import registers
from ckad.engines.native.carries import Carry
from ckad.engines.native.element import I64, Array, Value, nbytes, whole
from ckad.engines.native.frame import Frame
from ckad.engines.native.held import Held, Memory, Token, Wanted, element, taken
from ckad.engines.native.hooks import call_python
from ckad.engines.native.kernels import emit_copy
from ckad.engines.native.lengths import clipped, leave_if_ended
from ckad.engines.native.lower_loops import index_of, want_at
from ckad.engines.native.packets import Packet, Slot
from ckad.engines.native.records import Record, arrays_at, write_record
from ckad.engines.native.state import Cell, Control
from ckad.engines.native.stepping import Body, Guard, Ran, Run, run_steps
from ckad.engines.native.unit import Buffer, Unit
from ckad.engines.native.writer import TapedFacts
from ckad.engines.work import nanoseconds
from ckad.tape.control import UNGUARDED, Loop, ReverseLoop
from ckad.tape.ops import Op
from ckad.tape.tape import Tape

Handlers = dict[Kind, ir.Function]


class Shared(NamedTuple):
    """The values that all functions of a sweep read, by what they are."""

    xs: Sequence[Held]
    captured: Sequence[Held]
    ct_ys: Sequence[Held]
    results: Sequence[Held]  # what each step writes an element of: ys, or cotangents of xs


class Sweep:
    """One sweep over a loop while its functions are written."""

    def __init__(
        self, frame: Frame, loop: Loop | ReverseLoop, shared: Shared, token: Value
    ) -> None:
        self.frame, self.writer, self.loop = frame, frame.writer, loop
        self.counts = [len(group) for group in shared]
        self.packet = Packet(frame, [value for group in shared for value in group])
        self.token = Slot(frame.writer, frame.unit, None)
        self.token.put_pointer(frame.unit, token)
        self.stores: list[Store] = []

    @property
    def facts(self) -> TapedFacts:
        return self.writer.loops[self.loop.name]

    @property
    def is_guarded(self) -> bool:
        return self.loop.guard != UNGUARDED

    def function(self, kind: str) -> Unit:
        """A new function of this sweep."""
        unit = Unit(self.writer.module, self.writer.name(kind))
        unit.depth = self.frame.unit.depth + len(self.frame.unit.steps)
        unit.branches = self.frame.unit.branches
        return unit

    def open(self, unit: Unit) -> Shared:
        """The shared values in a function."""
        values = iter(self.packet.open(unit))
        return Shared(*([next(values) for _ in range(n)] for n in self.counts))

    def residuals(self, unit: Unit, i: Value) -> Value:
        """The address of step i's residuals, for a function that was given a slot for its start."""
        b, control = unit.b, self.facts.control
        slot = b.sub(b.add(unit.slot, i), unit.start)
        distance = b.mul(slot, unit.fixed(control + Control.STRIDE))
        distance = b.add(distance, unit.fixed(control + Control.RESIDUALS))
        return b.gep(self.token.fixed_pointer(unit), [distance])

    def inner_tokens(self, unit: Unit, place: Value, record: Record) -> Iterator[Value]:
        """The addresses of the tokens that follow the residuals at ``place``."""
        for name in record.inner:
            distance = unit.get(self.writer.control(name) + Control.OFFSET)
            yield unit.b.gep(place, [distance])

    def free(self) -> None:
        self.packet.free(self.writer)
        self.writer.release(self.token.buffer)
        for store in self.stores:
            store.free_slots()


class Store:
    """A carry between the functions of a sweep: small values and the addresses of buffers."""

    def __init__(self, sweep: Sweep, carry: Carry, initial: Sequence[Value]) -> None:
        unit, self.carry, self.writer = sweep.frame.unit, carry, sweep.writer
        self.small = [Slot(self.writer, unit, carry.types[k]) for k in carry.small]
        n_pointers = sum(p.n_buffers for p in carry.pools)
        self.large = [Slot(self.writer, unit, None) for _ in range(n_pointers)]
        sweep.stores.append(self)
        self.put(unit, initial)

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


def drive(sweep: Sweep, handlers: Handlers, reverse: bool) -> None:
    """Fetch actions and call their functions until the sweep is over."""
    unit, control = sweep.frame.unit, sweep.facts.control
    b, length = unit.b, sweep.loop.length
    if unit.runs_again:
        begin = Control.REVERSE if reverse else Control.FIRST
        unit.put(control + Control.CURSOR, unit.get(control + begin))
    fetch, over = b.append_basic_block("fetch"), b.append_basic_block("over")
    if sweep.is_guarded:
        none = b.icmp_signed("<=", unit.get(control + Control.COUNT), whole(0))
        b.cbranch(none, over, fetch)
    else:
        b.branch(fetch)
    b.position_at_end(fetch)
    kind, start, stop, slot = _next_action(unit, sweep.loop.name, control)
    switch = b.switch(kind, over)
    for action, function in handlers.items():
        block = b.append_basic_block(action.name.lower())
        switch.add_case(whole(int(action)), block)
        b.position_at_end(block)
        last = clipped(unit, control, start, stop, fetch) if sweep.is_guarded else stop
        unit.check(b.call(function, [unit.state, start, last, slot]))
        if action in (Kind.ADVANCE, Kind.TAPE) and not reverse:
            if sweep.is_guarded:
                leave_if_ended(unit, sweep.loop, control, stop)
                ended = b.icmp_signed(">=", stop, unit.get(control + Control.COUNT))
            else:
                ended = b.icmp_signed("==", stop, whole(length))
            b.cbranch(ended, over, fetch)
        else:
            b.branch(fetch)
    switch.add_case(whole(int(Kind.DROP)), fetch)
    b.position_at_end(over)


def _next_action(unit: Unit, name: int, control: int) -> list[Value]:
    b = unit.b
    cursor = unit.get(control + Control.CURSOR)
    empty = b.icmp_signed(">=", cursor, unit.get(control + Control.FILLED))
    with b.if_then(empty, likely=False):
        unit.put(Cell.LOOP, whole(name))
        call_python(unit)
        unit.put(Cell.LOOP, whole(-1))
    cursor = unit.get(control + Control.CURSOR)
    unit.put(control + Control.CURSOR, b.add(cursor, whole(1)))
    rows = b.inttoptr(unit.fixed(control + Control.ROWS), I64.as_pointer())
    first = b.mul(cursor, whole(4))
    return [b.load(b.gep(rows, [b.add(first, whole(k))])) for k in range(4)]


def store_and_restore(sweep: Sweep, store: Store, record: Record) -> Handlers:
    """STORE and RESTORE: the carry to a slot, and back."""
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


def _restored(
    unit: Unit, place: Value, record: Record, carry: Carry, values: list[Value]
) -> list[Value]:
    """The carry from a record: large arrays are copied into its buffers."""
    arrays = arrays_at(unit, place, record)
    for array, value in zip(arrays, carry.held(values), strict=True):
        if isinstance(value, Memory):
            emit_copy(unit.b, value.array.pointer, array.pointer, nbytes(array.type))
    smalls = [registers.read(unit.b, arrays[k]) for k in carry.small]
    return carry.flat(smalls, [p for pool in carry.pointers(values) for p in pool])


# --- steps ---------------------------------------------------------------------------------------


class Homes(NamedTuple):
    """Large carried arrays that are residuals themselves: they live in the records of the steps.

    By their place in the carry: where a step reads them, and where it puts the new ones.
    """

    here: dict[int, Array]
    following: dict[int, Array]
    kept: set[int]  # which of the residuals they are


class Steps:
    """A function of a sweep that runs steps of a body.

    The outputs of a body are the new carry, then what is written to an element of ``results``, then
    residuals.
    """

    def __init__(self, sweep: Sweep, kind: str, store: Store, first: int = 1) -> None:
        self.sweep, self.unit, self.store = sweep, sweep.function(kind), store
        self.first = first  # the position of the first carry input
        self.shared = sweep.open(self.unit)

    def elements(self, group: Sequence[Held], i: Value) -> list[Held]:
        """The elements that step i reads."""
        b = self.unit.b
        return [taken(b, element(b, array_of(x), i)) for x in group]

    def inputs(self, i: Value, values: Sequence[Value], homes: Homes | None = None) -> list[Held]:
        """What a primal body is given."""
        own, shared = self.store.carry.held(values), self.shared
        for k, array in homes.here.items() if homes else ():
            own[k] = Memory(array, Buffer(array.pointer, 0, writable=False))
        return [index_of(i), *own, *self.elements(shared.xs, i), *shared.captured]

    # --- carried arrays in the records ----------------------------------------------------------

    def residents(self, body: Tape, rows: Sequence[int]) -> dict[int, int]:
        """Which of the arrays ``rows`` are carried ones, by their place in the carry.

        All large ones or none: the others would have to take turns with buffers.
        """
        carry, inputs = self.store.carry, body.inputs.tolist()
        arrays = [k for k in rows if body.rows[k].type.is_array]
        own = {inputs[self.first + k]: k for pool in carry.pools for k in pool.members}
        found = {own[row]: at for at, row in reversed(list(enumerate(arrays))) if row in own}
        return found if len(found) == len(own) else {}

    def homes(
        self, residents: dict[int, int], i: Value, values: Sequence[Value], record: Record
    ) -> Homes:
        """Where step i finds the residents, and where the next step, or what follows, does."""
        unit, b = self.unit, self.unit.b
        after = b.add(i, whole(1))
        more = b.icmp_signed("<", after, unit.stop)
        now, then = (
            arrays_at(unit, self.sweep.residuals(unit, step), record) for step in (i, after)
        )
        own = self.store.carry.held(values)
        following = {
            k: Array(b.select(more, then[at].pointer, array_of(own[k]).pointer), now[at].type)
            for k, at in residents.items()
        }
        here = {k: now[at] for k, at in residents.items()}
        return Homes(here, following, set(residents.values()))

    def move_in(self, residents: dict[int, int], record: Record) -> None:
        """Copy the carry to the record of the first step."""
        unit, values = self.unit, self.store.get(self.unit)
        first = arrays_at(unit, self.sweep.residuals(unit, unit.start), record)
        own = self.store.carry.held(values)
        for k, at in residents.items():
            emit_copy(unit.b, first[at].pointer, array_of(own[k]).pointer, nbytes(first[at].type))

    def move_out(
        self, residents: dict[int, int], i: Value, values: Sequence[Value], record: Record
    ) -> None:
        """Copy the carry from the record of step i, where the step before has left it."""
        unit = self.unit
        here = arrays_at(unit, self.sweep.residuals(unit, i), record)
        own = self.store.carry.held(values)
        for k, at in residents.items():
            emit_copy(unit.b, array_of(own[k]).pointer, here[at].pointer, nbytes(here[at].type))

    def _wanted_home(self, body: Tape, homes: Homes) -> Wanted:
        wanted: Wanted = {}
        for k, array in homes.following.items():
            row = body.outputs.tolist()[k]
            if row not in wanted and body.rows[row].op not in (Op.INPUT, Op.CONST):
                wanted[row] = Buffer(array.pointer, nbytes(array.type))
        return wanted

    def _moved_on(
        self, homes: Homes, values: Sequence[Value], outputs: Sequence[Held]
    ) -> list[Value]:
        """The values of the next step; buffers keep their roles."""
        carry = self.store.carry
        for k, array in homes.following.items():
            new = array_of(outputs[k])
            if new.pointer is not array.pointer:
                emit_copy(self.unit.b, array.pointer, new.pointer, nbytes(array.type))
        smalls = [outputs[k] for k in carry.small]
        return carry.flat(smalls, [p for pool in carry.pointers(values) for p in pool])

    # --- a step ---------------------------------------------------------------------------------

    def step(
        self,
        body: Tape,
        i: Value,
        inputs: Sequence[Held],
        values: Sequence[Value] | None,
        results: Sequence[Held] = (),
        record: Record | None = None,
        homes: Homes | None = None,
    ) -> list[Value]:
        """One step; the values of the next. Without ``values`` it computes residuals alone."""
        unit, carry, rows = self.unit, self.store.carry, body.outputs.tolist()
        n = 0 if values is None else len(carry.types)
        if values is None:
            wanted: Wanted = {}
        elif homes:
            wanted = self._wanted_home(body, homes)
        else:
            wanted = carry.wanted(values, body, self.first)
        places = [element(unit.b, array_of(y), i) for y in results]
        places += self._kept(wanted, body, rows[n + len(places) :], i, record)
        arrays = [k for k in rows[n:] if body.rows[k].type.is_array]
        want_at(wanted, body, arrays, places)
        frame = Frame(self.sweep.writer, unit, body, inputs, wanted)
        outputs = frame.run()
        found = [x for x in outputs[n:] if not isinstance(x, Token)]
        for at, (place, value) in enumerate(zip(places, found, strict=True), -len(results)):
            if not homes or at not in homes.kept:
                frame.put(place, value)
        if values is None:
            following: list[Value] = []
        elif homes:
            following = self._moved_on(homes, values, outputs[:n])
        else:
            following = carry.following(frame.writer, unit, values, outputs[:n])
        frame.close()
        return following

    def _kept(
        self, wanted: Wanted, body: Tape, rows: Sequence[int], i: Value, record: Record | None
    ) -> list[Array]:
        """Where residuals go; tokens of inner loops are wanted there."""
        if record is None:
            return []
        place = self.sweep.residuals(self.unit, i)
        tokens = self.sweep.inner_tokens(self.unit, place, record)
        for row in rows:
            if not body.rows[row].type.is_array:
                wanted[row] = Buffer(next(tokens), 0)
        return arrays_at(self.unit, place, record)

    def run(
        self,
        once: Body,
        body: Tape,
        stop: Value | None = None,
        backward: bool = False,
        guard: Guard | None = None,
    ) -> Ran:
        """All steps, from the carry as it was left to the carry for the next function."""
        unit, cost = self.unit, nanoseconds(body, "native")
        stop = unit.stop if stop is None else stop
        length = self.sweep.loop.length
        run = Run(unit.start, stop, cost, length, guard, backward, self.is_outermost)
        ran = run_steps(unit, run, self.store.get(unit), once)
        self.store.put(unit, ran.values)
        return ran

    @property
    def is_outermost(self) -> bool:
        return not (self.unit.depth or self.unit.branches)


def array_of(value: Held) -> Array:
    assert isinstance(value, Memory)
    return value.array


def in_memory(frame: Frame, k: int) -> Memory:
    """A row's value for functions that read elements of it."""
    array = frame.memory(k)
    return Memory(array, Buffer(array.pointer, 0, writable=False))
