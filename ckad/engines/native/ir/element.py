"""Elements in memory and in registers.

In memory an element has the size of its dtype. In a register a float is a double (a float32 the
double of the same value, rounded after each op) and an integer or a bool an int64, so that the
emitters of the rule blocks serve every dtype. A register may hold several lanes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from ckad.tape.types import DType, Type

Value = Any  # an ir.Value
DOUBLE, SINGLE, I64, BYTE = ir.DoubleType(), ir.FloatType(), ir.IntType(64), ir.IntType(8)
I32 = ir.IntType(32)
POINTER = BYTE.as_pointer()
STORED = {DType.F64: DOUBLE, DType.F32: SINGLE, DType.I64: I64, DType.BOOL: BYTE}
ITEMSIZE = {DType.F64: 8, DType.F32: 4, DType.I64: 8, DType.BOOL: 1}


class Array(NamedTuple):
    """An array in memory, contiguous in C order; ``pointer`` is the address of element 0."""

    pointer: Value
    type: Type


def whole(number: int) -> Value:
    return ir.Constant(I64, number)


def lanes_of(type: Any, lanes: int) -> Any:
    return ir.VectorType(type, lanes) if lanes > 1 else type


def register_type(dtype: DType, lanes: int = 1) -> Any:
    return lanes_of(DOUBLE if dtype <= DType.F32 else I64, lanes)


def letter(dtype: DType) -> str:
    """The letter of an emitter's signature."""
    return "f" if dtype <= DType.F32 else "i"


def nbytes(type: Type) -> int:
    return type.size * ITEMSIZE[type.dtype]


def address(b: ir.IRBuilder, array: Array, index: Value) -> Value:
    """The place of element ``index`` (int64), as a pointer to its stored type."""
    first = b.bitcast(array.pointer, STORED[array.type.dtype].as_pointer())
    return b.gep(first, [index], inbounds=True)


def load(b: ir.IRBuilder, array: Array, index: Value, lanes: int = 1) -> Value:
    """``lanes`` neighbouring elements from ``index`` on, as a register."""
    return widen(b, array.type.dtype, load_stored(b, array, index, lanes), lanes)


def load_stored(b: ir.IRBuilder, array: Array, index: Value, lanes: int = 1) -> Value:
    """The same as they are stored."""
    dtype = array.type.dtype
    place = address(b, array, index)
    if lanes > 1:
        place = b.bitcast(place, lanes_of(STORED[dtype], lanes).as_pointer())
    return b.load(place, align=ITEMSIZE[dtype])


def widen(b: ir.IRBuilder, dtype: DType, value: Value, lanes: int = 1) -> Value:
    """A stored element as a register."""
    if dtype is DType.F32:
        return b.fpext(value, register_type(dtype, lanes))
    return b.zext(value, register_type(dtype, lanes)) if dtype is DType.BOOL else value


def store(b: ir.IRBuilder, array: Array, index: Value, value: Value) -> None:
    """Write a register, with as many lanes as it has, to ``index`` and its neighbours."""
    store_stored(b, array, index, narrow(b, array.type.dtype, value))


def store_stored(b: ir.IRBuilder, array: Array, index: Value, value: Value) -> None:
    """The same of elements as they are stored."""
    dtype, lanes = array.type.dtype, count_of(value)
    place = address(b, array, index)
    if lanes > 1:
        place = b.bitcast(place, lanes_of(STORED[dtype], lanes).as_pointer())
    b.store(value, place, align=ITEMSIZE[dtype])


def count_of(value: Value) -> int:
    """How many lanes a register has."""
    return value.type.count if isinstance(value.type, ir.VectorType) else 1


def narrow(b: ir.IRBuilder, dtype: DType, value: Value) -> Value:
    """A register as a stored element."""
    lanes = count_of(value)
    if dtype is DType.F32:
        return b.fptrunc(value, lanes_of(SINGLE, lanes))
    return b.trunc(value, lanes_of(BYTE, lanes)) if dtype is DType.BOOL else value


def rounded(b: ir.IRBuilder, dtype: DType, value: Value) -> Value:
    """``value`` as an op of ``dtype`` gives it: a float32 result has to be rounded."""
    if dtype is not DType.F32:
        return value
    return b.fpext(narrow(b, dtype, value), value.type)
