"""One tape as code in a function: where its values are, and the code of each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ckad.engines.native import registers
from ckad.engines.native.boxes import Shape
from ckad.engines.native.element import DOUBLE, POINTER, Array, Value, nbytes, rounded
from ckad.engines.native.fusion import Fusion, Item, Nest
from ckad.engines.native.held import Held, Memory, Wanted
from ckad.engines.native.in_place import WRITES
from ckad.engines.native.kernels import KERNELS, emit_call, emit_copy, emit_fill
from ckad.engines.native.nests import argument_rows
from ckad.engines.native.pieces import is_piece, lower_piece
from ckad.engines.native.registers import Registers, is_small
from ckad.engines.native.threads import call_nest
from ckad.engines.native.unit import Buffer, Unit
from ckad.engines.native.wrap import wrap_array, wrap_registers
from ckad.engines.native.writer import Part, Writer
from ckad.passes.liveness import last_reads
from ckad.rules import RULES
from ckad.tape.ops import OPS, Group, Op, is_elementwise
from ckad.tape.reasons import reason_of
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType, Type

#: Matrix products with more multiplications than this work on memory.
MOST_PRODUCTS = 512


class Frame:
    """The rows of one tape; ``wanted`` says where outputs had better be put."""

    def __init__(
        self, writer: Writer, unit: Unit, tape: Tape, inputs: Sequence[Held], wanted: Wanted
    ) -> None:
        self.writer, self.unit, self.tape, self.rows = writer, unit, tape, tape.rows
        self.wanted = wanted
        self.fusion: Fusion = writer.fusion(tape)
        self.held: dict[int, Held] = dict(zip(tape.inputs.tolist(), inputs, strict=True))
        self.results: dict[int, Sequence[Held]] = {}
        self.temporary: list[Buffer] = []
        self.now = 0
        reads = [self.reads(item) for item in self.fusion.items]
        outputs = tape.outputs.tolist()
        splats = [self.fusion.uniform[k] for k in outputs if self._is_virtual_splat(k)]
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
        xs = self.rows[item].operands
        return [x if (source := self._splat_source(x)) is None else source for x in xs]

    def _is_virtual_splat(self, k: int) -> bool:
        return self._splat_source(k) is not None

    def _splat_source(self, k: int) -> int | None:
        """The row of the scalar that a row repeats, if nobody put it into memory."""
        return None if self.fusion.in_memory[k] else self.fusion.uniform[k]

    def run(self) -> list[Held]:
        """Write all code; the outputs."""
        self.writer.parts.append(Part(self.unit.function.name, self.tape))
        for now, item in enumerate(self.fusion.items):
            self.now = now
            if isinstance(item, Nest):
                self._nest(item)
            else:
                self._row(item)
            self._release(item)
        return [self.value(k) for k in self.tape.outputs.tolist()]

    def close(self) -> None:
        """Free what the outputs lie in; they have been copied."""
        for k, value in self.held.items():
            if isinstance(value, Memory):
                self._unname(k, value.buffer)

    # --- values ---------------------------------------------------------------------------------

    def value(self, k: int) -> Held:
        """A row's value; a repeated scalar that nobody put into memory is put there now."""
        if k not in self.held and self.fusion.uniform[k] is not None:
            self.held[k] = self._filled(k)
        return self.held[k]

    def small(self, k: int) -> Registers:
        value = self.held[k]
        assert isinstance(value, Registers)
        return value

    def memory(self, k: int) -> Array:
        """A row's value as an array in memory; what is in registers is written to a buffer."""
        if self._is_virtual_splat(k):
            filled = self._filled(k)
            self.temporary.append(filled.buffer)
            return filled.array
        value = self.held[k]
        if isinstance(value, Memory):
            return value.array
        buffer = self.writer.allocate(self.unit, nbytes(self.rows[k].type))
        self.temporary.append(buffer)
        array = Array(buffer.pointer, self.rows[k].type)
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

    def _release(self, item: Item) -> None:
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

    # --- nests ----------------------------------------------------------------------------------

    def _nest(self, nest: Nest) -> None:
        function, shape = self.writer.nest(self.tape, nest)
        outputs = {k: self._nest_output(k, nest, shape) for k in nest.outputs}
        partials = [self.new(Type(DType.F64, (shape.n_outer,))) for _ in nest.sums]
        self.temporary += [p.buffer for p in partials]
        values: list[Value] = []
        for k in argument_rows(self.fusion, nest):
            if k in outputs:
                values.append(outputs[k].array.pointer)
            elif k in nest.sums:
                values.append(partials[nest.sums.index(k)].array.pointer)
            elif self.rows[k].type.size == 1:
                values.append(registers.scalar(self.b, self.small(k)))
            else:
                values.append(self.memory(k).pointer)
        self.writer.shares |= call_nest(self.unit, function, values, shape, nest)
        for k, partial in zip(nest.sums, partials, strict=True):
            self.bind(k, self._sum(self.rows[k].type, partial.array, shape.n_outer))
        for k, memory in outputs.items():
            self.bind(k, memory)

    def _nest_output(self, k: int, nest: Nest, shape: Shape) -> Memory:
        """A nest writes over an array that it is the last to read, if it reads it in place."""
        size = nbytes(self.rows[k].type)
        for x in nest.leaves if shape.flat else shape.in_place(k):
            old = self.takes(x) if self.rows[x].type.size > 1 else None
            if old is None or nbytes(self.rows[x].type) != size:
                continue
            if not shape.flat and any(y in old.buffer.users for y in nest.leaves if y != x):
                continue
            if k in self.wanted and old.buffer.offset is not None:
                continue
            self.give(x, old)
            return Memory(Array(old.array.pointer, self.rows[k].type), old.buffer)
        return self.place(k)

    def _sum(self, type: Type, partial: Array, n: int) -> Registers:
        b = self.b
        total = self.unit.alloca(DOUBLE)
        array = Array(b.bitcast(total, POINTER), Type(DType.F64, ()))
        if n == 1:
            value = registers.read(b, Array(partial.pointer, Type(DType.F64, ()))).parts[0]
        else:
            KERNELS[Op.SUM](b, (0,), array, partial)
            value = b.load(total)
        return Registers(type, (rounded(b, type.dtype, value),))

    # --- rows alone -----------------------------------------------------------------------------

    def _row(self, k: int) -> None:
        row = self.rows[k]
        if row.op is Op.INPUT or self._is_virtual_splat(k):
            return
        if row.op is Op.CONST:
            self._constant(k, row)
        elif row.op is Op.RESULT:
            self.bind(k, self.results[row.operands[0]][row.attrs[0]])
        elif row.op in CONTROL:
            self.results[k] = CONTROL[row.op](self, k, row)
        elif row.op is Op.WRAP:
            self._wrap(k, row)
        elif self._fits_registers(row):
            self.held[k] = self._in_registers(row)
        elif is_piece(self.tape, row):
            lower_piece(self, k, row)
        elif row.op is Op.RESHAPE:
            self._alias(k, row)
        else:
            self._kernel(k, row)

    def _constant(self, k: int, row: Row) -> None:
        array = self.tape.constants[row.attrs[0]]
        if is_small(row.type):
            self.held[k] = registers.constant(np.asarray(array, row.type.numpy), row.type)
            return
        pointer = self.unit.address(self.writer.constant(array))
        self.bind(k, Memory(Array(pointer, row.type), Buffer(pointer, 0, writable=False)))

    def _wrap(self, k: int, row: Row) -> None:
        source = self.tape.source_of(k)
        depth = self.unit.depth + len(self.unit.steps)
        self.writer.places.append((str(source), reason_of(row).name.lower(), depth))
        place = len(self.writer.places) - 1
        (x,) = row.operands
        if is_small(row.type):
            self.held[k] = wrap_registers(self.unit, self.small(x), row.attrs[0], place)
        else:
            out = self.place(k)
            wrap_array(self.unit, out.array, self.memory(x), row.attrs[0], place)
            self.bind(k, out)

    def _fits_registers(self, row: Row) -> bool:
        types = [row.type, *(self.rows[x].type for x in row.operands)]
        if not all(is_small(t) for t in types):
            return False
        if row.op is Op.MATMUL:
            batch, m, _ = row.type.shape
            return row.type.size * self.rows[row.operands[0]].type.size <= MOST_PRODUCTS * m * batch
        if OPS[row.op].group is Group.SHAPE:
            return True
        if row.op is Op.GATHER:
            return self._constant_indices(row) is not None
        return is_elementwise(row.op) or row.op is Op.SUM

    def _constant_indices(self, row: Row) -> np.ndarray | None:
        idx = self.rows[row.operands[1]]
        return self.tape.constants[idx.attrs[0]] if idx.op is Op.CONST else None

    def _in_registers(self, row: Row) -> Registers:
        b, type = self.b, row.type
        operands = [self.small(x) for x in row.operands]
        if is_elementwise(row.op):
            return registers.elementwise(b, row.op, type, operands)
        if row.op is Op.SUM:
            return registers.summed(b, type, operands[0], row.attrs)
        if row.op is Op.MATMUL:
            return registers.product(b, type, operands[0], operands[1], row.attrs)
        evaluate = RULES[row.op].evaluate
        assert evaluate is not None
        if row.op is Op.GATHER:
            idx = self._constant_indices(row)
            numbers = Type(DType.I64, type.shape)
            return registers.moved(
                b, type, operands[:1], lambda x: evaluate(numbers, row.attrs, x, idx)
            )
        if row.op is Op.SLICE_ADD:
            x, y = operands
            pad = RULES[Op.PAD].evaluate
            assert pad is not None
            shape = Type(DType.I64, type.shape)
            padded = registers.moved(b, type, [y], lambda n: pad(shape, row.attrs, n))
            return self._where_touched(x, padded, y, row)
        shape = Type(DType.I64, type.shape)
        return registers.moved(b, type, operands, lambda *n: evaluate(shape, row.attrs, *n))

    def _where_touched(self, x: Registers, padded: Registers, y: Registers, row: Row) -> Registers:
        """x + y on the part; elsewhere x stays as it is, also a zero with a sign."""
        update = RULES[Op.UPDATE].evaluate
        assert update is not None
        added = registers.elementwise(self.b, Op.ADD, row.type, [x, padded])
        n = row.type.size
        numbers = np.arange(n).reshape(row.type.shape)
        part = np.full(y.type.shape, -1)
        touched = update(row.type, row.attrs, numbers, part).ravel()
        picks = np.where(touched < 0, n + np.arange(n), np.arange(n))
        return registers.shuffled(self.b, row.type, [x, added], picks.tolist())

    def _alias(self, k: int, row: Row) -> None:
        """A large array under another shape."""
        (x,) = row.operands
        if is_small(row.type) or not isinstance(self.held.get(x), Memory):
            return self._kernel(k, row)
        value = self.held[x]
        assert isinstance(value, Memory)
        return self.bind(k, Memory(Array(value.array.pointer, row.type), value.buffer))

    def _kernel(self, k: int, row: Row) -> None:
        out = self.in_place(k, row) or (
            self._spilled(row.type) if is_small(row.type) else self.place(k)
        )
        emit_call(self.b, row.op, row.attrs, out.array, *(self.memory(x) for x in row.operands))
        if is_small(row.type):
            self.held[k] = registers.read(self.b, out.array)
        else:
            self.bind(k, out)

    def _spilled(self, type: Type) -> Memory:
        memory = self.new(type)
        self.temporary.append(memory.buffer)
        return memory

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


Lower = Callable[[Frame, int, Row], Sequence[Any]]
#: control op -> code that returns its results; filled by the modules of loops and branches.
CONTROL: dict[int, Lower] = {}
