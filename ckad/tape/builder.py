"""The builder appends rows and freezes them into a Tape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

import numpy as np

from ckad.tape.ops import BY_CODE, SHAPE_RULES, Op
from ckad.tape.tape import Row, Source, Tape
from ckad.tape.types import TUPLE, Type, type_of

NOWHERE = Source("", 0)


class Builder:
    """Rows in the making. ``b.mul(x, y)`` appends a row and returns the number of its value."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.constants: list[np.ndarray] = []
        self.bodies: list[Tape] = []
        self.inputs: list[int] = []
        self._pool: dict[tuple[str, tuple[int, ...], bytes], int] = {}
        self._sources: dict[Source, int] = {NOWHERE: 0}
        self.where: Source = NOWHERE

    def emit(
        self,
        op: int,
        operands: Iterable[int] = (),
        attrs: Iterable[int] = (),
        type: Type | None = None,
    ) -> int:
        operands, attrs = tuple(operands), tuple(map(int, attrs))
        if type is None:
            type = SHAPE_RULES[op](*(self.rows[x].type for x in operands), attrs=attrs)
        self.rows.append(Row(BY_CODE[op], operands, attrs, type, self._source()))
        return len(self.rows) - 1

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name.startswith("_") or name.upper() not in Op.__members__:
            raise AttributeError(name)
        op = Op[name.upper()]

        def append(*operands: int, attrs: Iterable[int] = (), type: Type | None = None) -> int:
            return self.emit(op, operands, attrs, type)

        return append

    def _source(self) -> int:
        return self._sources.setdefault(self.where, len(self._sources))

    def type(self, value: int) -> Type:
        return self.rows[value].type

    def input(self, type: Type) -> int:
        self.inputs.append(self.emit(Op.INPUT, (), (len(self.inputs),), type))
        return self.inputs[-1]

    def const(self, value: object) -> int:
        """A constant; equal ones share a row."""
        array = np.asarray(value)
        frozen = array.copy()
        frozen.flags.writeable = False
        return self._pooled(frozen)

    def _pooled(self, array: np.ndarray) -> int:
        """The row of an array that nobody writes to; tapes made from each other share it."""
        key = (array.dtype.str, array.shape, blake2b(np.ascontiguousarray(array).data).digest())
        if key not in self._pool:
            self.constants.append(array)
            self._pool[key] = self.emit(Op.CONST, (), (len(self.constants) - 1,), type_of(array))
        return self._pool[key]

    def full(self, type: Type, value: float) -> int:
        """``value`` everywhere in an array of ``type``."""
        return self.broadcast_to(self.const(type.numpy.type(value)), type.shape)

    def full_like(self, x: int, value: float) -> int:
        return self.full(self.type(x), value)

    def broadcast_to(self, x: int, shape: Sequence[int]) -> int:
        type = self.type(x)
        if type.shape == tuple(shape):
            return x
        return self.emit(Op.BROADCAST, (x,), (), type.with_shape(tuple(shape)))

    def reshape_to(self, x: int, shape: Sequence[int]) -> int:
        type = self.type(x)
        if type.shape == tuple(shape):
            return x
        return self.emit(Op.RESHAPE, (x,), (), type.with_shape(tuple(shape)))

    def body(self, tape: Tape) -> int:
        self.bodies.append(tape)
        return len(self.bodies) - 1

    def control(
        self, op: int, operands: Sequence[int], attrs: Sequence[int], types: Sequence[Type]
    ) -> list[int]:
        """A control row and its results, one RESULT row per type."""
        row = self.emit(op, operands, attrs, TUPLE)
        return [self.emit(Op.RESULT, (row,), (k,), type) for k, type in enumerate(types)]

    def copy_row(
        self,
        tape: Tape,
        k: int,
        env: dict[int, int],
        change: Callable[[Tape], Tape] = lambda body: body,
    ) -> int:
        """Append row k of another tape, renamed through ``env``, its bodies changed."""
        row = tape.rows[k]
        self.where = tape.sources[row.source]
        if row.op is Op.CONST:
            return self._pooled(tape.constants[row.attrs[0]])
        if row.op is Op.INPUT:
            return self.input(row.type)
        attrs = row.attrs
        if row.op in BODY_COUNT:
            n = BODY_COUNT[row.op]
            attrs = (*(self.body(change(tape.bodies[k])) for k in attrs[:n]), *attrs[n:])
        return self.emit(row.op, [env[x] for x in row.operands], attrs, row.type)

    def tape(self, outputs: Iterable[int]) -> Tape:
        """Freeze the rows into a Tape."""
        types: dict[Type, int] = {}
        rows = self.rows
        return Tape(
            opcode=_array(np.int16, (r.op for r in rows)),
            operand_offset=_offsets(len(r.operands) for r in rows),
            operand=_array(np.int32, (x for r in rows for x in r.operands)),
            attr_offset=_offsets(len(r.attrs) for r in rows),
            attr=_array(np.int64, (a for r in rows for a in r.attrs)),
            type=_array(np.int32, (types.setdefault(r.type, len(types)) for r in rows)),
            source=_array(np.int32, (r.source for r in rows)),
            inputs=_array(np.int32, self.inputs),
            outputs=_array(np.int32, outputs),
            types=tuple(types),
            sources=tuple(self._sources),
            constants=tuple(self.constants),
            bodies=tuple(self.bodies),
        )


#: control ops -> how many of their leading attributes are body numbers
BODY_COUNT = {Op.LOOP: 1, Op.TAPED_LOOP: 2, Op.REVERSE_LOOP: 3, Op.COND: 2}


def _array(dtype: type, values: Iterable[int]) -> np.ndarray:
    array: np.ndarray = np.fromiter(values, dtype=dtype)
    array.flags.writeable = False
    return array


def _offsets(lengths: Iterable[int]) -> np.ndarray:
    sizes = np.fromiter(lengths, dtype=np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    offsets.flags.writeable = False
    return offsets
