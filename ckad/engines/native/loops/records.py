"""Restart states and residuals in memory.

token   [restart states, one record per slot][residuals, one record per slot]
record  values at fixed offsets; after the residuals the tokens of inner loops
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ckad.engines.native.ir.element import Array, Value, nbytes, whole
from ckad.engines.native.ir.unit import Unit
from ckad.engines.native.kernels.table import emit_copy
from ckad.engines.native.values import registers
from ckad.engines.native.values.held import Held, Memory
from ckad.engines.native.values.layout import offsets, record_bytes
from ckad.tape.tape import Tape
from ckad.tape.types import Type


class Record(NamedTuple):
    """Where the values of a restart state, or the residuals of a step, lie in their record."""

    types: list[Type]  # of arrays
    offsets: list[int]
    inner: list[int]  # names of the loops whose tokens follow
    nbytes: int


def record_of(types: Sequence[Type], inner: Sequence[int] = ()) -> Record:
    return Record(list(types), offsets(types), list(inner), record_bytes(types))


def residual_record(taping: Tape, rows: Sequence[int]) -> Record:
    """The record of a step's residuals: the arrays among ``rows``, then the tokens."""
    kept = [taping.rows[k] for k in rows]
    inner = [taping.rows[row.operands[0]].attrs[5] for row in kept if not row.type.is_array]
    return record_of([row.type for row in kept if row.type.is_array], inner)


def arrays_at(unit: Unit, place: Value, record: Record) -> list[Array]:
    """The arrays of a record that begins at ``place``."""
    return [
        Array(unit.b.gep(place, [whole(offset)]), type)
        for offset, type in zip(record.offsets, record.types, strict=True)
    ]


def write_record(unit: Unit, place: Value, record: Record, values: Sequence[Held]) -> None:
    for array, value in zip(arrays_at(unit, place, record), values, strict=True):
        if isinstance(value, registers.Registers):
            registers.write(unit.b, array, value)
        elif isinstance(value, Memory):
            emit_copy(unit.b, array.pointer, value.array.pointer, nbytes(array.type))
