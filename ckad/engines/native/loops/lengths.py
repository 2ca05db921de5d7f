"""How many steps a guarded loop runs: learnt in its forward sweep, kept in its token.

Every action is clipped to it, so that actions made for more steps do the right ones.
"""

from __future__ import annotations

from llvmlite import ir

from ckad.engines.native.ir.element import I32, I64, Value, whole
from ckad.engines.native.ir.flow import smaller
from ckad.engines.native.ir.state import Cell, Control, Status
from ckad.engines.native.ir.unit import Unit
from ckad.engines.native.values.layout import WORD
from ckad.tape.control import WHILE, Loop, ReverseLoop, is_open


def clipped(unit: Unit, control: int, start: Value, stop: Value, skip: ir.Block) -> Value:
    """Where an action ends in a loop that runs COUNT steps; those past its end are skipped.

    Actions made for more steps than there are do the right ones if each is clipped. States past the
    end are neither stored nor restored: nothing reads them.
    """
    b = unit.b
    count = unit.get(control + Control.COUNT)
    inside = b.append_basic_block("inside")
    b.cbranch(b.icmp_signed("<", start, count), inside, skip)
    b.position_at_end(inside)
    return smaller(b, stop, count)


def begin_count(unit: Unit, loop: Loop, control: int, first: Value) -> None:
    """How many steps a guarded loop runs, from what ends it: in a loop with a flag, too many.

    In an open one LIMIT + 1 stands for more than the actions are made for.
    """
    b = unit.b
    limit = unit.get(control + Control.LIMIT)
    most = whole(loop.length)
    if is_open(loop.length, loop.guard):
        most = smaller(b, b.add(limit, whole(1)), most)
    if loop.guard == WHILE:
        count = b.select(b.icmp_signed("!=", first, whole(0)), most, whole(0))
        unit.put(control + Control.COUNT, count)
        return
    positive = b.select(b.icmp_signed(">", first, whole(0)), first, whole(0))
    count = smaller(b, positive, whole(loop.length))
    unit.put(control + Control.COUNT, count)
    if is_open(loop.length, loop.guard):
        with b.if_then(b.icmp_signed(">", count, limit), likely=False):
            _too_long(unit, loop.name)


def leave_if_ended(unit: Unit, loop: Loop | ReverseLoop, control: int, stop: Value) -> None:
    """Give up where an open loop is at the end of its actions and would go on."""
    if is_open(loop.length, loop.guard) and loop.guard == WHILE:
        b, limit = unit.b, unit.get(control + Control.LIMIT)
        at_end = b.icmp_signed(">=", stop, limit)
        goes_on = b.icmp_signed(">", unit.get(control + Control.COUNT), limit)
        with b.if_then(b.and_(at_end, goes_on), likely=False):
            unit.put(control + Control.COUNT, whole(0))
            _too_long(unit, loop.name)


def _too_long(unit: Unit, name: int) -> None:
    unit.put(Cell.LOOP, whole(name))
    unit.b.ret(ir.Constant(I32, int(Status.LENGTH)))


def count_place(unit: Unit, token: Value) -> Value:
    """Where a guarded loop's number of steps lies: just before its token."""
    return unit.b.bitcast(unit.b.gep(token, [whole(-WORD)]), I64.as_pointer())
