"""Where the values of one tape's rows are while its code is written: named, lent, freed.

A buffer is free after the last row that reads it; an output may be put where the caller wants it.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ckad.engines.native.ir.element import Array, Value, nbytes
from ckad.engines.native.ir.unit import Buffer, Unit
from ckad.engines.native.kernels.table import emit_copy, emit_fill
from ckad.engines.native.nests.fusion import Fusion, Item, Nest
from ckad.engines.native.nests.in_place import WRITES
from ckad.engines.native.rows.writer import Writer
from ckad.engines.native.values import registers
from ckad.engines.native.values.held import Held, Memory, Wanted
from ckad.engines.native.values.registers import Registers, is_small
from ckad.passes.liveness import last_reads
from ckad.tape.tape import Row, Tape
from ckad.tape.types import Type


class Places:
    """The values of one tape's rows; ``wanted`` says where outputs had better be put."""

    def __init__(
        self, writer: Writer, unit: Unit, tape: Tape, inputs: Sequence[Held], wanted: Wanted
    ) -> None:
        self.writer, self.unit, self.tape = writer, unit, tape
        self.wanted = wanted
        self.fusion: Fusion = writer.fusion(tape)
        self.rows = self.fusion.rows
        self.held: dict[int, Held] = dict(zip(tape.inputs.tolist(), inputs, strict=True))
        self.temporary: list[Buffer] = []
        self.now = 0
        reads = [self.reads(item) for item in self.fusion.items]
        outputs = tape.outputs.tolist()
        splats = [self.fusion.uniform[k] for k in outputs if self.is_virtual_splat(k)]
        self.last = last_reads(reads, [*outputs, *splats])
        for k, value in self.held.items():
            self._name(k, value)

    @property
    def b(self) -> ir.IRBuilder:
        return self.unit.b

    def reads(self, item: Item) -> list[int]:
        """The rows whose values an item reads."""
        if isinstance(item, Nest):
            return item.leaves
        xs = [*self.rows[item].operands, *self.fusion.bounds_of(item)]
        return [x if (source := self._splat_source(x)) is None else source for x in xs]

    def is_virtual_splat(self, k: int) -> bool:
        return self._splat_source(k) is not None

    def _splat_source(self, k: int) -> int | None:
        """The row of the scalar that a row repeats, if nobody put it into memory."""
        return None if self.fusion.in_memory[k] else self.fusion.uniform[k]

    def value(self, k: int) -> Held:
        """A row's value; a repeated scalar that nobody put into memory is put there now."""
        if k not in self.held and self.fusion.uniform[k] is not None:
            self.held[k] = self._filled(k)
        return self.held[k]

    def small(self, k: int) -> Registers:
        value = self.held[k]
        assert isinstance(value, Registers)
        return value

    def number(self, k: int) -> Value:
        """The value of a scalar row."""
        return registers.scalar(self.b, self.small(k))

    def memory(self, k: int) -> Array:
        """A row's value as an array in memory; what is in registers is written to a buffer."""
        if self.is_virtual_splat(k):
            filled = self._filled(k)
            self.temporary.append(filled.buffer)
            return filled.array
        value = self.held[k]
        if isinstance(value, Memory):
            return value.array
        array = self.passing(self.rows[k].type).array
        assert isinstance(value, Registers)
        registers.write(self.b, array, value)
        return array

    def repeated(self, k: int) -> Registers | None:
        """The scalar that a row repeats, if it lies nowhere else."""
        source = self._splat_source(k)
        return None if source is None else self.small(source)

    def _filled(self, k: int) -> Memory:
        memory = self.new(self.rows[k].type)
        source = self.fusion.uniform[k]
        assert source is not None
        emit_fill(self.b, memory.array, registers.scalar(self.b, self.small(source)))
        return memory

    def new(self, type: Type) -> Memory:
        buffer = self.writer.allocate(self.unit, nbytes(type))
        return Memory(Array(buffer.pointer, type), buffer)

    def passing(self, type: Type) -> Memory:
        """New memory that is free after the item at hand."""
        memory = self.new(type)
        self.temporary.append(memory.buffer)
        return memory

    def place(self, k: int) -> Memory:
        """Memory for a row's value: where it is wanted, or new."""
        type = self.rows[k].type
        if k in self.wanted:
            buffer = self.wanted.pop(k)
            return Memory(Array(buffer.pointer, type), buffer)
        return self.new(type)

    def bind(self, k: int, value: Held) -> None:
        self.held[k] = value
        self._name(k, value)

    def _name(self, k: int, value: Held) -> None:
        if isinstance(value, Memory):
            value.buffer.users.add(k)
            if value.buffer.pool is not None:
                value.buffer.pool.users.add((id(self), k))

    def dies(self, k: int) -> bool:
        """Whether the item at hand is the last to read row k."""
        return self.last.get(k, -1) <= self.now

    def takes(self, k: int) -> Memory | None:
        """The memory of row k, if this item may write over it and reads it once."""
        value = self.held.get(k)
        if not isinstance(value, Memory) or not value.buffer.writable:
            return None
        item = self.fusion.items[self.now]
        if isinstance(item, int):
            named = [x for x in self.rows[item].operands if x in value.buffer.users]
            if len(named) > 1:
                return None
        alone = all(self.dies(x) for x in value.buffer.users)
        pool = value.buffer.pool
        if pool is not None and any(user != (id(self), k) for user in pool.users):
            return None
        return value if alone and self.dies(k) else None

    def give(self, k: int, memory: Memory) -> None:
        """Row k's memory belongs to another value from now on."""
        memory.buffer.users.discard(k)
        if memory.buffer.pool is not None:
            memory.buffer.pool.users.discard((id(self), k))
        self.held[k] = Memory(memory.array, Buffer(memory.array.pointer, 0, writable=False))

    def release_after(self, item: Item) -> None:
        done = {k for k in self.reads(item) if self.dies(k)}
        mine = [*item.outputs, *item.sums] if isinstance(item, Nest) else [item]
        for k in {*done, *(k for k in mine if self.dies(k))}:
            value = self.held.pop(k, None)
            if isinstance(value, Memory):
                self._unname(k, value.buffer)
        for buffer in self.temporary:
            self.writer.release(buffer)
        self.temporary.clear()

    def _unname(self, k: int, buffer: Buffer) -> None:
        buffer.users.discard(k)
        if buffer.pool is not None:
            buffer.pool.leave(self.writer, (id(self), k))
        elif not buffer.users and buffer.offset is not None:
            self.writer.release(buffer)

    def in_place(self, k: int, row: Row) -> Memory | None:
        """The first operand's memory, if the op only changes a part of it and nobody reads on."""
        if row.op not in WRITES or is_small(row.type):
            return None
        return self.takes(row.operands[0])

    # --- whole arrays ---------------------------------------------------------------------------
    def put_row(self, to: Array, k: int) -> None:
        """Write a row's value to memory."""
        source = self.repeated(k)
        if source is not None:
            emit_fill(self.b, to, registers.scalar(self.b, source))
        else:
            self.put(to, self.held[k])

    def put(self, to: Array, value: Held) -> None:
        """Write a value to memory."""
        if isinstance(value, Registers):
            registers.write(self.b, to, value)
        elif isinstance(value, Memory) and value.array.pointer is not to.pointer:
            emit_copy(self.b, to.pointer, value.array.pointer, nbytes(to.type))
