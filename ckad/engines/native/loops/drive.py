"""Code that fetches the actions of a sweep, and stores and restores what is carried.

Actions lie in a table in memory, which Python fills; `sweep` has the function that each kind calls.
"""

from __future__ import annotations

from llvmlite import ir

from ckad.engines.actions import Kind
from ckad.engines.native.ir.element import I64, Value, nbytes, whole
from ckad.engines.native.ir.hooks import call_python
from ckad.engines.native.ir.state import Cell, Control
from ckad.engines.native.ir.unit import Unit
from ckad.engines.native.kernels.table import emit_copy
from ckad.engines.native.loops.carries import Carry
from ckad.engines.native.loops.lengths import clipped, leave_if_ended
from ckad.engines.native.loops.records import Record, arrays_at, write_record
from ckad.engines.native.loops.sweep import Store, Sweep
from ckad.engines.native.values import registers
from ckad.engines.native.values.held import Memory

Handlers = dict[Kind, ir.Function]


def drive(sweep: Sweep, handlers: Handlers, reverse: bool, both: ir.Function | None = None) -> None:
    """Fetch actions and call their functions until the sweep is over.

    ``both`` does a TAPE and the REVERSE of other steps that follows it, as long as that goes on.
    """
    unit, control = sweep.code.unit, sweep.facts.control
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
        given = [unit.state, start, last, slot]
        if both is not None and action is Kind.TAPE:
            beside, n = _reversed_next(unit, control, start, stop)
            end = b.add(start, n)
            with b.if_then(beside):
                unit.check(b.call(both, [unit.state, start, end, slot]))
            rest = [unit.state, b.select(beside, end, start), stop]
            with b.if_then(b.icmp_signed("<", rest[1], stop)):
                unit.check(b.call(function, [*rest, b.select(beside, b.add(slot, n), slot)]))
        else:
            unit.check(b.call(function, given))
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
    return take_action(unit, control)


def take_action(unit: Unit, control: int) -> list[Value]:
    """The next action, which is in the table."""
    cursor = unit.get(control + Control.CURSOR)
    unit.put(control + Control.CURSOR, unit.b.add(cursor, whole(1)))
    return _action(unit, control, cursor)


def _reversed_next(unit: Unit, control: int, start: Value, stop: Value) -> tuple[Value, Value]:
    """Whether the action after a TAPE is in the table by now, and the REVERSE of other steps, not
    more of them; and how many."""
    b = unit.b
    cursor, filled = (unit.get(control + c) for c in (Control.CURSOR, Control.FILLED))
    there = b.icmp_signed("<", cursor, filled)
    # else the TAPE itself, which is no REVERSE
    kind, first, last, _ = _action(unit, control, b.select(there, cursor, b.sub(cursor, whole(1))))
    found = b.icmp_signed("==", kind, whole(int(Kind.REVERSE)))
    others = b.and_(found, b.icmp_signed(">=", first, stop))
    n = b.sub(last, first)
    return b.and_(others, b.icmp_signed("<=", n, b.sub(stop, start))), n


def _action(unit: Unit, control: int, cursor: Value) -> list[Value]:
    b = unit.b
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
