"""Values handed from one function to another through fixed places of the arena.

A loop's functions read the same captured values: they are written once before the sweep.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckad.engines.native.ir.element import I64, POINTER, Array, Value, nbytes
from ckad.engines.native.ir.unit import Buffer, Unit
from ckad.engines.native.rows.code import TapeCode
from ckad.engines.native.rows.writer import Writer
from ckad.engines.native.values import registers
from ckad.engines.native.values.held import Held, Memory
from ckad.engines.native.values.layout import WORD
from ckad.engines.native.values.registers import Registers
from ckad.tape.types import Type


class Slot:
    """A place of the arena that functions share: a small array, or the address of a large one."""

    def __init__(self, writer: Writer, unit: Unit, type: Type | None) -> None:
        self.type = type
        size = WORD if type is None else nbytes(type)
        self.buffer = writer.allocate(unit, size)

    @property
    def offset(self) -> int:
        assert self.buffer.offset is not None
        return self.buffer.offset

    def _pointer(self, unit: Unit) -> Value:
        return unit.at(self.offset)

    def put_pointer(self, unit: Unit, pointer: Value) -> None:
        place = unit.b.bitcast(self._pointer(unit), I64.as_pointer())
        unit.b.store(unit.b.ptrtoint(pointer, I64), place)

    def pointer(self, unit: Unit) -> Value:
        place = unit.b.bitcast(self._pointer(unit), I64.as_pointer())
        return unit.b.inttoptr(unit.b.load(place), POINTER)

    def fixed_pointer(self, unit: Unit) -> Value:
        """The address, in a function that begins when it has been put."""
        return unit.pointer_at(self.offset)

    def put(self, unit: Unit, value: Registers) -> None:
        registers.write(unit.b, Array(self._pointer(unit), value.type), value)

    def get(self, unit: Unit) -> Registers:
        assert self.type is not None
        return registers.read(unit.b, Array(self._pointer(unit), self.type))


class Packet:
    """Values that the functions of a loop read and do not change."""

    def __init__(self, code: TapeCode, values: Sequence[Held]) -> None:
        self.types = [_type(value) for value in values]
        self.slots = []
        for value in values:
            small = value.type if isinstance(value, Registers) else None
            slot = Slot(code.writer, code.unit, small)
            if isinstance(value, Registers):
                slot.put(code.unit, value)
            else:
                assert isinstance(value, Memory)
                slot.put_pointer(code.unit, value.array.pointer)
            self.slots.append(slot)

    def open(self, unit: Unit) -> list[Held]:
        """The values in another function."""
        found: list[Held] = []
        for slot, type in zip(self.slots, self.types, strict=True):
            if slot.type is not None:
                found.append(slot.get(unit))
            else:
                pointer = slot.pointer(unit)
                found.append(Memory(Array(pointer, type), Buffer(pointer, 0, writable=False)))
        return found

    def free(self, writer: Writer) -> None:
        for slot in self.slots:
            writer.release(slot.buffer)


def _type(value: Held) -> Type:
    assert isinstance(value, Registers | Memory)
    return value.type if isinstance(value, Registers) else value.array.type
