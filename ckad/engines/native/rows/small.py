"""Rows whose operands and results are small: they are computed in registers, without memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ckad.engines.native.rows.places import Places
from ckad.engines.native.values import registers
from ckad.engines.native.values.registers import Registers, is_small
from ckad.rules import RULES
from ckad.tape.ops import OPS, Group, Op, is_elementwise
from ckad.tape.tape import Row
from ckad.tape.types import DType, Type

#: Matrix products with more multiplications than this work on memory.
MOST_PRODUCTS = 512


def fits_registers(places: Places, row: Row) -> bool:
    if not all(is_small(t) for t in (row.type, *_types(places, row))):
        return False
    if row.op is Op.MATMUL:
        batch, m, _ = row.type.shape
        factor, *_ = _types(places, row)
        return row.type.size * factor.size <= MOST_PRODUCTS * m * batch
    if row.op is Op.GATHER:
        return _constant_indices(places, row) is not None
    is_moved = OPS[row.op].group is Group.SHAPE
    return is_moved or is_elementwise(row.op) or row.op is Op.SUM


def in_registers(places: Places, row: Row) -> Registers:
    """The value of a row that fits."""
    operands = [places.small(x) for x in row.operands]
    if is_elementwise(row.op):
        return registers.elementwise(places.b, row.op, row.type, operands)
    return SMALL.get(row.op, _moved)(places, row, operands)


def _types(places: Places, row: Row) -> list[Type]:
    return [places.rows[x].type for x in row.operands]


def _moved(places: Places, row: Row, operands: Sequence[Registers]) -> Registers:
    """Elements at other places, which are found by moving their numbers."""
    evaluate, numbers = RULES[row.op].evaluate, Type(DType.I64, row.type.shape)
    assert evaluate is not None
    return registers.moved(
        places.b, row.type, operands, lambda *n: evaluate(numbers, row.attrs, *n)
    )


def _summed(places: Places, row: Row, operands: Sequence[Registers]) -> Registers:
    return registers.summed(places.b, row.type, operands[0], row.attrs)


def _product(places: Places, row: Row, operands: Sequence[Registers]) -> Registers:
    return registers.product(places.b, row.type, operands[0], operands[1], row.attrs)


def _constant_indices(places: Places, row: Row) -> np.ndarray | None:
    index = places.rows[row.operands[1]]
    return places.tape.constants[index.attrs[0]] if index.op is Op.CONST else None


def _gathered(places: Places, row: Row, operands: Sequence[Registers]) -> Registers:
    evaluate, numbers = RULES[row.op].evaluate, Type(DType.I64, row.type.shape)
    assert evaluate is not None
    index = _constant_indices(places, row)
    return registers.moved(
        places.b, row.type, operands[:1], lambda n: evaluate(numbers, row.attrs, n, index)
    )


def _added_to_a_part(places: Places, row: Row, operands: Sequence[Registers]) -> Registers:
    """x + y on the part; elsewhere x stays as it is, also a zero with a sign."""
    (x, y), type = operands, row.type
    pad, update = RULES[Op.PAD].evaluate, RULES[Op.UPDATE].evaluate
    assert pad is not None
    assert update is not None
    padded = registers.moved(
        places.b, type, [y], lambda n: pad(Type(DType.I64, type.shape), row.attrs, n)
    )
    added = registers.elementwise(places.b, Op.ADD, type, [x, padded])
    numbers = np.arange(type.size)
    touched = update(type, row.attrs, numbers.reshape(type.shape), np.full(y.type.shape, -1))
    picks = np.where(touched.ravel() < 0, type.size + numbers, numbers)
    return registers.shuffled(places.b, type, [x, added], picks.tolist())


Lower = Callable[[Places, Row, Sequence[Registers]], Registers]
#: op -> its value, where it is neither one of elements nor elements at other places
SMALL: dict[Op, Lower] = {
    Op.SUM: _summed,
    Op.MATMUL: _product,
    Op.GATHER: _gathered,
    Op.SLICE_ADD: _added_to_a_part,
}
