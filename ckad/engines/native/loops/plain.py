"""The code of LOOP rows, which nobody reverses: steps one after the other.

The carry is in registers or in pools of buffers. What taped loops do alike stands here, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckad.engines.native.ir.element import Array, Value, nbytes, whole
from ckad.engines.native.ir.flow import smaller
from ckad.engines.native.ir.stepping import Guard, Run, run_steps
from ckad.engines.native.ir.unit import Buffer, Unit
from ckad.engines.native.loops.carries import Carry
from ckad.engines.native.rows.code import TapeCode
from ckad.engines.native.values import registers
from ckad.engines.native.values.held import Held, Memory, Wanted, element, taken
from ckad.engines.native.values.registers import Registers, is_small
from ckad.engines.work import nanoseconds
from ckad.tape.control import COUNTED, WHILE, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType, Type

INDEX = Type(DType.I64, ())


def index_of(i: Value) -> Registers:
    return Registers(INDEX, (i,))


def lower_loop(code: TapeCode, k: int, row: Row) -> Sequence[Held]:
    loop = read_loop(code.tape, row)
    n, body, unit = len(loop.carry), loop.body, code.unit
    carry = Carry(body.output_types[:n], [(body, 1)])
    initial = carry.allocate(code, loop.carry)
    ys = new_ys(code, body.output_types[n:], loop.length)
    xs = [code.memory(x) for x in loop.xs]
    captured = [borrowed(code, x) for x in loop.captured]

    def once(i: Value, values: list[Value]) -> list[Value]:
        elements = [taken(unit.b, element(unit.b, x, i)) for x in xs]
        inputs = [index_of(i), *carry.held(values), *elements, *captured]
        wanted = carry.wanted(values, body, 1)
        places = [element(unit.b, y.array, i) for y in ys]
        want_at(wanted, body, body.outputs.tolist()[n:], places)
        inner = TapeCode(code.writer, unit, body, inputs, wanted)
        outputs = inner.run()
        for place, value in zip(places, outputs[n:], strict=True):
            inner.put(place, value)
        following = carry.following(code.writer, unit, values, outputs[:n])
        inner.close()
        return following

    stop, guard = whole(loop.length), None
    if loop.guard == WHILE:
        guard = while_flag(unit, carry)
    elif loop.guard == COUNTED:
        stop = smaller(unit.b, first_small(carry, initial), stop)
    run = Run(whole(0), stop, nanoseconds(body, "native"), loop.length, guard)
    values = run_steps(unit, run, initial, once).values
    return [*carry.held(values, pools=True), *(as_held(code, y) for y in ys)]


def first_small(carry: Carry, values: list[Value]) -> Value:
    """What ends a guarded loop: the first of its carry, a scalar."""
    return carry.smalls(values)[0].parts[0]


def while_flag(unit: Unit, carry: Carry) -> Guard:
    return lambda values: unit.b.icmp_signed("!=", first_small(carry, values), whole(0))


def as_held(code: TapeCode, memory: Memory) -> Held:
    """A result of a loop: small ones are read into registers."""
    if not is_small(memory.array.type):
        return memory
    value = registers.read(code.b, memory.array)
    code.temporary.append(memory.buffer)
    return value


def new_ys(code: TapeCode, types: Sequence[Type], length: int) -> list[Memory]:
    return [code.new(t.with_shape((length, *t.shape))) for t in types]


def want_at(wanted: Wanted, body: Tape, rows: Sequence[int], places: Sequence[Array]) -> None:
    """Large results of a step are computed where they are to lie."""
    for row, place in zip(rows, places, strict=True):
        fresh = row not in wanted and body.rows[row].op not in (Op.INPUT, Op.CONST)
        if fresh and not is_small(place.type):
            wanted[row] = Buffer(place.pointer, nbytes(place.type))


def borrowed(code: TapeCode, k: int) -> Held:
    """A row's value for a body, which may only read it."""
    if code.fusion.uniform[k] is None and isinstance(code.held[k], Registers):
        return code.held[k]
    array = code.memory(k)
    return Memory(array, Buffer(array.pointer, 0, writable=False))
