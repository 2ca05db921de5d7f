"""The code of COND rows: both branches leave their large results at the same places.

A result that is what either branch leaves of one operand takes its place, if nobody else reads it:
a branch that writes an element copies no array, nor does one that writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ckad.engines.native.ir.element import Array, register_type, whole
from ckad.engines.native.ir.unit import Buffer
from ckad.engines.native.loops.plain import borrowed
from ckad.engines.native.nests.in_place import operand_taken
from ckad.engines.native.rows.code import TapeCode
from ckad.engines.native.values import registers
from ckad.engines.native.values.held import Held, Memory, Wanted
from ckad.engines.native.values.registers import Registers, is_small
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import Type


def lower_cond(code: TapeCode, k: int, row: Row) -> Sequence[Held]:
    b = code.b
    branches = [code.tape.bodies[t] for t in row.attrs[:2]]
    types = branches[0].output_types
    places, taken = _places(code, row, types)
    operands = [_writable(taken[x]) if x in taken else borrowed(code, x) for x in row.operands[1:]]
    predicate = registers.scalar(b, code.small(row.operands[0]))
    found: list[tuple[list[Held], ir.Block]] = []
    with b.if_else(b.icmp_signed("!=", predicate, whole(0))) as sides:
        for side, tape in zip(sides, branches, strict=True):
            with side, code.unit.branch():
                found.append((_branch(code, tape, operands, places), b.block))
    results: list[Held] = []
    for at, type in enumerate(types):
        if at in places:
            results.append(places[at])
            continue
        pairs = [(outputs[at], block) for outputs, block in found]
        results.append(_joined(b, type, pairs))
    return results


def _places(
    code: TapeCode, row: Row, types: Sequence[Type]
) -> tuple[dict[int, Memory], dict[int, Memory]]:
    """Where large results are put, by number; which operands they take the place of."""
    places: dict[int, Memory] = {}
    taken: dict[int, Memory] = {}
    for at, type in enumerate(types):
        if is_small(type):
            continue
        x = operand_taken(code.tape, row, at)
        old = None if x is None else code.takes(x)
        if x is None or old is None:
            places[at] = code.new(type)
            continue
        code.give(x, old)
        taken[x] = old
        places[at] = Memory(Array(old.array.pointer, type), old.buffer)
    return places, taken


def _writable(memory: Memory) -> Memory:
    """An operand that a branch may write over."""
    return Memory(memory.array, Buffer(memory.array.pointer, 0))


def _branch(
    code: TapeCode, tape: Tape, operands: Sequence[Held], places: dict[int, Memory]
) -> list[Held]:
    outputs, inputs = tape.outputs.tolist(), tape.inputs.tolist()
    given = {inputs[at]: x for at, x in enumerate(operands)}
    wanted: Wanted = {}
    for at, memory in places.items():
        row, pointer = outputs[at], memory.array.pointer
        is_free = not any(_lies_at(x, pointer) for x in operands)
        if is_free and row not in wanted and row not in given and tape.rows[row].op != Op.CONST:
            wanted[row] = Buffer(pointer, memory.buffer.nbytes)
    own = [_writable(x) if isinstance(x, Memory) and x.buffer.writable else x for x in operands]
    inner = TapeCode(code.writer, code.unit, tape, own, wanted)
    found = inner.run()
    for at, memory in places.items():
        inner.put(memory.array, found[at])
    inner.close()
    return found


def _lies_at(x: Held, pointer: object) -> bool:
    return isinstance(x, Memory) and x.array.pointer is pointer


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
