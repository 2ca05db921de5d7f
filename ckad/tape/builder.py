"""The builder appends rows and freezes them into a Tape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ckad.place import NOWHERE, Source
from ckad.tape.ops import BY_CODE, SHAPE_RULES, Op
from ckad.tape.row import Row
from ckad.tape.tape import Tape, contents_of
from ckad.tape.types import NUMPY_DTYPES, TUPLE, DType, Type, type_of

#: No attributes: the very object, which needs no look.
_NONE: tuple[int, ...] = ()


class Builder:
    """Rows in the making. ``b.mul(x, y)`` appends a row and returns the number of its value."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.constants: list[np.ndarray] = []
        self.bodies: list[Tape] = []
        self.inputs: list[int] = []
        self.where: Source = NOWHERE
        self.emitted: list[Row] = []  # those that a rewrite has put here, which has not seen them
        self.refuse: Callable[[], NoReturn] | None = None  # called by who would change something
        self._pool: dict[tuple[Type, bytes], int] = {}
        self._numbers: dict[tuple[type, float, DType], int] = {}
        self.converted: set[int] = set()  # constants that may stand for numbers of another type
        self._sources: dict[Source, int] = {NOWHERE: 0}
        self._latest: tuple[Source, int] = (NOWHERE, 0)

    if TYPE_CHECKING:  # a method for every op; they are made below, from the op table

        def __getattr__(self, name: str) -> Callable[..., int]: ...

    def emit(
        self,
        op: int,
        operands: Iterable[int] = (),
        attrs: Iterable[int] = _NONE,
        type: Type | None = None,
    ) -> int:
        operands, attrs = tuple(operands), () if attrs is _NONE else tuple(map(int, attrs))
        if type is None:
            rows = self.rows
            type = SHAPE_RULES[op](*[rows[x].type for x in operands], attrs=attrs)
        return self.append(BY_CODE[op], operands, attrs, type)

    def append(self, op: Op, operands: tuple[int, ...], attrs: tuple[int, ...], type: Type) -> int:
        """``emit`` for a row that is complete."""
        if self.refuse is not None:
            self.refuse()
        latest, source = self._latest
        if self.where is not latest:
            source = self._sources.setdefault(self.where, len(self._sources))
            self._latest = self.where, source
        rows = self.rows
        k = len(rows)
        rows.append(_new(Row, (op, operands, attrs, type, source)))
        return k

    def type(self, value: int) -> Type:
        return self.rows[value].type

    def input(self, type: Type) -> int:
        found = self.append(Op.INPUT, (), (len(self.inputs),), type)
        self.inputs.append(found)
        return found

    def const(self, value: object) -> int:
        """A constant; equal ones share a row."""
        array = np.asarray(value)
        frozen = array.copy()
        frozen.flags.writeable = False
        return self._pooled(frozen, type_of(frozen))

    def number(self, x: int | float, dtype: DType) -> int:
        """The constant of a Python number."""
        key = type(x), x, dtype
        found = self._numbers.get(key) if x else None  # one key may be zero of either sign
        if found is None:
            array = np.asarray(x)
            found = self._numbers[key] = self.constant_as(array, dtype)
        return found

    def constant_as(self, array: np.ndarray, dtype: DType) -> int:
        """A constant, converted to another type where it has to be."""
        wanted = NUMPY_DTYPES[dtype]
        found = self.const(array.astype(wanted))
        if array.dtype != wanted:
            self.converted.add(found)
        return found

    def _pooled(self, array: np.ndarray, type: Type) -> int:
        """The row of an array that nobody writes to; tapes made from each other share it."""
        key = type, contents_of(array)
        found = self._pool.get(key)
        if found is None:
            self.constants.append(array)
            found = self.append(Op.CONST, (), (len(self.constants) - 1,), type)
            self._pool[key] = found
        return found

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
        env: Mapping[int, int] | Sequence[int],
        change: Callable[[Tape], Tape] = lambda body: body,
    ) -> int:
        """Append row k of another tape, renamed through ``env``, its bodies changed."""
        op, operands, attrs, type, source = tape.rows[k]
        self.where = tape.sources[source]
        if op in APART:
            if op is Op.CONST:
                return self._pooled(tape.constants[attrs[0]], type)
            if op is Op.INPUT:
                return self.input(type)
            n = BODY_COUNT[op]
            attrs = (*(self.body(change(tape.bodies[k])) for k in attrs[:n]), *attrs[n:])
        return self.append(op, tuple(map(env.__getitem__, operands)), attrs, type)

    def copy_rows(
        self,
        tape: Tape,
        wanted: Iterable[int],
        env: MutableMapping[int, int] | list[int],
        change: Callable[[Tape], Tape] = lambda body: body,
    ) -> None:
        """``copy_row`` of several rows, whose new numbers ``env`` gets."""
        if self.refuse is not None:
            self.refuse()
        given, rows, numbers, source = tape.rows, self.rows, dict[int, int](), -1
        for k in wanted:
            row = given[k]
            op, operands, attrs, type, source = row
            if op in APART:
                env[k] = self.copy_row(tape, k, env, change)
                continue
            if source in numbers:
                number = numbers[source]
            else:
                number = self._sources.setdefault(tape.sources[source], len(self._sources))
                numbers[source] = number
            renamed = tuple([env[x] for x in operands])
            env[k] = len(rows)
            is_same = renamed == operands and number == source
            rows.append(row if is_same else _new(Row, (op, renamed, attrs, type, number)))
        if source >= 0:
            self.where = tape.sources[source]

    def tape(self, outputs: Iterable[int]) -> Tape:
        """Freeze the rows into a Tape."""
        return Tape.of_rows(
            self.rows,
            self.inputs,
            list(outputs),
            tuple(self._sources),
            tuple(self.constants),
            tuple(self.bodies),
        )


#: control ops -> how many of their leading attributes are body numbers
BODY_COUNT = {Op.LOOP: 1, Op.TAPED_LOOP: 2, Op.REVERSE_LOOP: 3, Op.COND: 2}
#: Rows that are more than their operands and attributes.
APART = frozenset({Op.CONST, Op.INPUT, *BODY_COUNT})
#: Makes a Row without the detour through its own constructor, which takes twice as long.
_new = tuple.__new__


def _method(op: Op) -> Callable[..., int]:
    def append(
        self: Builder, *operands: int, attrs: Iterable[int] = _NONE, type: Type | None = None
    ) -> int:
        return self.emit(op, operands, attrs, type)

    return append


for _op in BY_CODE:
    if not hasattr(Builder, _op.name.lower()):
        setattr(Builder, _op.name.lower(), _method(_op))
