"""The code of LOOP and COND rows."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ckad.engines.native import registers
from ckad.engines.native.carries import Carry
from ckad.engines.native.element import Array, Value, nbytes, register_type, whole
from ckad.engines.native.frame import CONTROL, Frame
from ckad.engines.native.held import Held, Memory, Wanted, element, taken
from ckad.engines.native.layout import is_small
from ckad.engines.native.registers import Registers
from ckad.engines.native.stepping import run_steps
from ckad.engines.native.unit import Buffer
from ckad.engines.work import nanoseconds
from ckad.tape.control import read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType, Type

INDEX = Type(DType.I64, ())


def index_of(i: Value) -> Registers:
    return Registers(INDEX, (i,))


def lower_loop(frame: Frame, k: int, row: Row) -> Sequence[Held]:
    loop = read_loop(frame.tape, row)
    n, body, unit = len(loop.carry), loop.body, frame.unit
    carry = Carry(body.output_types[:n], [(body, 1)])
    initial = carry.allocate(frame, loop.carry)
    ys = new_ys(frame, body.output_types[n:], loop.length)
    xs = [frame.memory(x) for x in loop.xs]
    captured = [borrowed(frame, x) for x in loop.captured]

    def once(i: Value, values: list[Value]) -> list[Value]:
        elements = [taken(unit.b, element(unit.b, x, i)) for x in xs]
        inputs = [index_of(i), *carry.held(values), *elements, *captured]
        wanted = carry.wanted(values, body, 1)
        places = [element(unit.b, y.array, i) for y in ys]
        want_at(wanted, body, body.outputs.tolist()[n:], places)
        inner = Frame(frame.writer, unit, body, inputs, wanted)
        outputs = inner.run()
        for place, value in zip(places, outputs[n:], strict=True):
            inner.put(place, value)
        following = carry.following(unit, values, outputs[:n])
        inner.close()
        return following

    stop = whole(loop.length)
    values = run_steps(
        unit, whole(0), stop, initial, once, nanoseconds(body, "native"), loop.length
    )
    return [*carry.held(values, pools=True), *(as_held(frame, y) for y in ys)]


def as_held(frame: Frame, memory: Memory) -> Held:
    """A result of a loop: small ones are read into registers."""
    if not is_small(memory.array.type):
        return memory
    value = registers.read(frame.b, memory.array)
    frame.temporary.append(memory.buffer)
    return value


def new_ys(frame: Frame, types: Sequence[Type], length: int) -> list[Memory]:
    return [frame.new(t.with_shape((length, *t.shape))) for t in types]


def want_at(wanted: Wanted, body: Tape, rows: Sequence[int], places: Sequence[Array]) -> None:
    """Large results of a step are computed where they are to lie."""
    for row, place in zip(rows, places, strict=True):
        fresh = row not in wanted and body.rows[row].op not in (Op.INPUT, Op.CONST)
        if fresh and not is_small(place.type):
            wanted[row] = Buffer(place.pointer, nbytes(place.type))


def borrowed(frame: Frame, k: int) -> Held:
    """A row's value for a body, which may only read it."""
    if frame.fusion.uniform[k] is None and isinstance(frame.held[k], Registers):
        return frame.held[k]
    array = frame.memory(k)
    return Memory(array, Buffer(array.pointer, 0, writable=False))


def lower_cond(frame: Frame, k: int, row: Row) -> Sequence[Held]:
    """Both branches write their large results to the same places."""
    unit, b = frame.unit, frame.b
    branches = [frame.tape.bodies[t] for t in row.attrs[:2]]
    types = branches[0].output_types
    operands = [borrowed(frame, x) for x in row.operands[1:]]
    large = {at: frame.new(t) for at, t in enumerate(types) if not is_small(t)}
    predicate = registers.scalar(b, frame.small(row.operands[0]))
    found: list[tuple[list[Held], ir.Block]] = []
    with b.if_else(b.icmp_signed("!=", predicate, whole(0))) as sides:
        for side, tape in zip(sides, branches, strict=True):
            with side:
                found.append((_branch(frame, tape, operands, large), b.block))
    results: list[Held] = []
    for at, type in enumerate(types):
        if at in large:
            results.append(large[at])
            continue
        pairs = [(outputs[at], block) for outputs, block in found]
        results.append(_joined(unit.b, type, pairs))
    return results


def _branch(
    frame: Frame, tape: Tape, operands: Sequence[Held], large: dict[int, Memory]
) -> list[Held]:
    wanted: Wanted = {}
    for at, memory in large.items():
        row = tape.outputs.tolist()[at]
        if row not in wanted and tape.rows[row].op not in (Op.INPUT, Op.CONST):
            wanted[row] = Buffer(memory.array.pointer, memory.buffer.nbytes)
    inner = Frame(frame.writer, frame.unit, tape, operands, wanted)
    outputs = inner.run()
    for at, memory in large.items():
        inner.put(memory.array, outputs[at])
    inner.close()
    return outputs


def _joined(b: ir.IRBuilder, type: Type, pairs: Sequence[tuple[Held, ir.Block]]) -> Registers:
    """The value of the branch that was taken."""
    parts = []
    for n, width in enumerate(registers.widths(type.size)):
        phi = b.phi(register_type(type.dtype, width))
        for value, block in pairs:
            assert isinstance(value, Registers)
            phi.add_incoming(value.parts[n], block)
        parts.append(phi)
    return Registers(type, tuple(parts))


CONTROL[Op.LOOP] = lower_loop
CONTROL[Op.COND] = lower_cond
