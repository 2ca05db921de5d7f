"""One tape as code in a function: the code of each nest, and of each row alone, in the order of
`fusion`. `places` says where values are; the outputs are handed back to whoever wrote the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ckad.engines.native.ir.element import DOUBLE, POINTER, Array, Value, nbytes, rounded
from ckad.engines.native.ir.unit import Buffer, Unit
from ckad.engines.native.kernels.table import KERNELS, emit_call
from ckad.engines.native.nests.boxes import Shape
from ckad.engines.native.nests.emit import argument_rows
from ckad.engines.native.nests.fusion import Nest
from ckad.engines.native.nests.threads import call_nest
from ckad.engines.native.rows.between import is_between, limits_of, lower_between, lower_product
from ckad.engines.native.rows.calls import emit_routine
from ckad.engines.native.rows.pieces import is_piece, lower_piece
from ckad.engines.native.rows.places import Places
from ckad.engines.native.rows.shared import is_shared, lower_shared
from ckad.engines.native.rows.shifted import lower_shifted
from ckad.engines.native.rows.small import fits_registers, in_registers
from ckad.engines.native.rows.wrap import wrap_array, wrap_registers
from ckad.engines.native.rows.writer import Emitted, Writer
from ckad.engines.native.values import registers
from ckad.engines.native.values.held import Held, Memory, Wanted
from ckad.engines.native.values.registers import Registers, is_small
from ckad.tape.ops import Op
from ckad.tape.reasons import reason_of
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType, Type


class TapeCode(Places):
    """The code of one tape's rows."""

    def __init__(
        self, writer: Writer, unit: Unit, tape: Tape, inputs: Sequence[Held], wanted: Wanted
    ) -> None:
        super().__init__(writer, unit, tape, inputs, wanted)
        self.results: dict[int, Sequence[Held]] = {}  # of loops and branches

    def run(self) -> list[Held]:
        """Write all code; the outputs."""
        self.writer.emitted.append(Emitted(self.unit.function.name, self.tape))
        for now, item in enumerate(self.fusion.items):
            self.now = now
            if isinstance(item, Nest):
                self._nest(item)
            else:
                self._row(item)
            self.release_after(item)
        return [self.value(k) for k in self.tape.outputs.tolist()]

    def close(self) -> None:
        """Free what the outputs lie in; they have been copied."""
        for k, value in self.held.items():
            if isinstance(value, Memory):
                self._unname(k, value.buffer)

    # --- nests ----------------------------------------------------------------------------------

    def _nest(self, nest: Nest) -> None:
        function, shape = self.writer.nest(self.tape, nest)
        outputs = {k: self._nest_output(k, nest, shape) for k in nest.outputs}
        partials = [self.passing(Type(DType.F64, (shape.n_outer,))) for _ in nest.sums]
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
        for x in shape.in_place(k, nest.leaves):
            old = self.takes(x) if self.rows[x].type.size > 1 else None
            if old is None or nbytes(self.rows[x].type) != size:
                continue
            if not shape.flat and any(y in old.buffer.users for y in nest.leaves if y != x):
                continue
            if k in self.wanted and old.buffer.offset is not None:
                continue
            self.give(x, old)
            return Memory(Array(old.array.pointer, self.rows[k].type), old.buffer)
        memory = self.place(k)
        if k in shape.updates:
            self.put_row(memory.array, shape.updates[k])
        return memory

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
        if self.is_virtual_splat(k):
            return
        if row.op in self.writer.with_bodies:
            self.results[k] = self.writer.with_bodies[row.op](self, k, row)
        else:
            LOWER.get(row.op, _computed)(self, k, row)


def _nothing(code: TapeCode, k: int, row: Row) -> None:
    """An input is there."""


def _constant(code: TapeCode, k: int, row: Row) -> None:
    array = code.tape.constants[row.attrs[0]]
    if is_small(row.type):
        code.held[k] = registers.constant(np.asarray(array, row.type.numpy), row.type)
        return
    pointer = code.unit.address(code.writer.constant(array))
    code.bind(k, Memory(Array(pointer, row.type), Buffer(pointer, 0, writable=False)))


def _result(code: TapeCode, k: int, row: Row) -> None:
    code.bind(k, code.results[row.operands[0]][row.attrs[0]])


def _wrap(code: TapeCode, k: int, row: Row) -> None:
    unit, places = code.unit, code.writer.places
    depth = unit.depth + len(unit.steps)
    place = len(places)
    places.append((str(code.tape.source_of(k)), reason_of(row).name.lower(), depth))
    (x,) = row.operands
    if is_small(row.type):
        code.held[k] = wrap_registers(unit, code.small(x), row.attrs[0], place)
    else:
        out = code.place(k)
        between = limits_of(code, k, row.type.size) if is_between(code, k) else None
        wrap_array(unit, out.array, code.memory(x), row.attrs[0], place, between)
        code.bind(k, out)


def _called(code: TapeCode, k: int, row: Row) -> None:
    depth = code.unit.depth + len(code.unit.steps)
    code.writer.places.append((str(code.tape.source_of(k)), str(row.attrs[0]), depth))
    small = is_small(row.type)
    out = code.passing(row.type) if small else code.place(k)
    operands = [code.memory(x) for x in row.operands]
    emit_routine(code, row, [out.array, *operands], len(code.writer.places) - 1)
    if small:
        code.held[k] = registers.read(code.b, out.array)
    else:
        code.bind(k, out)


def _computed(code: TapeCode, k: int, row: Row) -> None:
    if k in code.held:  # computed with another row
        return
    if k in code.fusion.products:
        lower_product(code, k, row)
    elif k in code.fusion.shifts:
        lower_shifted(code, k, row)
    elif fits_registers(code, row):
        code.held[k] = in_registers(code, row)
    elif is_piece(code.tape, row):
        lower_piece(code, k, row)
    elif is_between(code, k):
        lower_between(code, k, row)
    elif is_shared(code, row):
        lower_shared(code, k, row)
    else:
        _kernel(code, k, row)


def _reshaped(code: TapeCode, k: int, row: Row) -> None:
    """A large array under another shape is the same memory."""
    value = code.held.get(row.operands[0])
    if is_small(row.type) or not isinstance(value, Memory):
        _computed(code, k, row)
    else:
        code.bind(k, Memory(Array(value.array.pointer, row.type), value.buffer))


def _kernel(code: TapeCode, k: int, row: Row) -> None:
    small = is_small(row.type)
    out = code.in_place(k, row) or (code.passing(row.type) if small else code.place(k))
    operands = (code.memory(x) for x in row.operands)
    emit_call(code.b, row.op, row.attrs, out.array, *operands)
    if small:
        code.held[k] = registers.read(code.b, out.array)
    else:
        code.bind(k, out)


#: op -> its code, where it is not computed from its operands
LOWER: dict[Op, Callable[[TapeCode, int, Row], None]] = {
    Op.INPUT: _nothing,
    Op.CONST: _constant,
    Op.RESULT: _result,
    Op.WRAP: _wrap,
    Op.RESHAPE: _reshaped,
    Op.CALL: _called,
}
