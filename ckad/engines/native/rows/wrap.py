"""WRAP: indices brought into [0, n); one that is out of range stops the run."""

from __future__ import annotations

from llvmlite import ir

from ckad.engines.native.ir.element import Array, Value, load, store, whole
from ckad.engines.native.ir.flow import carry
from ckad.engines.native.ir.state import Status
from ckad.engines.native.ir.unit import Unit
from ckad.engines.native.values.registers import Registers, splat

BIT = ir.IntType(1)


def wrap_registers(unit: Unit, x: Registers, n: int, place: int) -> Registers:
    parts, good = [], ir.Constant(BIT, 1)
    for part in x.parts:
        value, right = _wrapped(unit.b, part, n)
        parts.append(value)
        good = unit.b.and_(good, right)
    _stop_unless(unit, good, place)
    return Registers(x.type, tuple(parts))


def wrap_array(
    unit: Unit, out: Array, x: Array, n: int, place: int, between: tuple[Value, Value] | None
) -> None:
    """``between``: the first index that is brought into range, and the first beyond."""
    b = unit.b
    first, end = between or (whole(0), whole(x.type.size))
    with carry(b, first, end, [ir.Constant(BIT, 1)]) as (at, (good,), set_good):
        value, right = _wrapped(b, load(b, x, at), n)
        store(b, out, at, value)
        set_good([b.and_(good, right)])
    _stop_unless(unit, good, place)


def _wrapped(b: ir.IRBuilder, x: Value, n: int) -> tuple[Value, Value]:
    """The index and whether all lanes of it are in range."""
    lanes = x.type.count if isinstance(x.type, ir.VectorType) else 1
    length = splat(b, whole(n), lanes)
    zero = splat(b, whole(0), lanes)
    value = b.select(b.icmp_signed("<", x, zero), b.add(x, length), x)
    right = b.icmp_unsigned("<", value, length)
    if lanes > 1:
        bits = b.bitcast(right, ir.IntType(lanes))
        right = b.icmp_unsigned("==", bits, ir.Constant(bits.type, (1 << lanes) - 1))
    return value, right


def _stop_unless(unit: Unit, good: Value, place: int) -> None:
    with unit.b.if_then(unit.b.not_(good), likely=False):
        unit.fail(Status.INDEX, place)
