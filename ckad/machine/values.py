"""What the names of a kernel stand for while it is translated, and of which types that is.

Numbers and arrays are registers of the IR; functions, modules and constants are known objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir

I64, I32, I8, I1 = (ir.IntType(k) for k in (64, 32, 8, 1))
DOUBLE = ir.DoubleType()
COMPLEX = ir.LiteralStructType([DOUBLE, DOUBLE])
#: What numbers are in registers.
NUMBERS = {"i64": I64, "f64": DOUBLE, "c128": COMPLEX, "b1": I1, "u64": I64, "u32": I64}
#: Elements in memory, and what they are once loaded; integers are of eight bytes then.
ELEMENTS = {
    np.dtype(np.float64): (DOUBLE, "f64"),
    np.dtype(np.complex128): (COMPLEX, "c128"),
    np.dtype(np.int64): (I64, "i64"),
    np.dtype(np.int32): (I32, "i64"),
    np.dtype(np.uint32): (I32, "u32"),
    np.dtype(np.uint8): (I8, "u32"),
}


class Unknown(Exception):
    """What is written in a kernel is not among what is translated."""


@dataclass(frozen=True)
class Number:
    """An int64, a float64, a complex128, a truth value, a uint64, a shorter one that was loaded."""

    type: str
    value: Any


@dataclass(frozen=True)
class Array:
    """Elements in C order from an address on."""

    dtype: np.dtype
    first: Any
    shape: tuple[Any, ...]


@dataclass(frozen=True)
class Group:
    """A tuple, a named one, or a range."""

    kind: type
    items: tuple[Value, ...]


@dataclass(frozen=True)
class Known:
    """An object of Python: a function, a module, a table of constants."""

    object: Any


Value: TypeAlias = "Number | Array | Group | Known"
#: A number's type; an array's elements and rank; a group's kind and types.
Type: TypeAlias = "str | tuple[Any, ...]"


def integer(value: int) -> Number:
    if not -(1 << 63) <= value < 1 << 63:
        raise Unknown(f"an integer {value}")
    return Number("i64", ir.Constant(I64, value))


def known(value: Any) -> Value:
    """An object that a kernel reads from around it."""
    if isinstance(value, np.uint64):
        return Number("u64", ir.Constant(I64, int(value)))
    match value:
        case bool():
            return Number("b1", ir.Constant(I1, int(value)))
        case int():
            return integer(int(value))
        case float():
            return Number("f64", ir.Constant(DOUBLE, float(value)))
        case complex():
            return Number("c128", ir.Constant(COMPLEX, [value.real, value.imag]))
        case tuple():
            return Group(tuple, tuple(map(known, value)))
    return Known(value)


def type_of(value: Value) -> Type:
    match value:
        case Number():
            return value.type
        case Array():
            return (Array, value.dtype, len(value.shape))
        case Group():
            return (Group, value.kind, *map(type_of, value.items))
    raise Unknown(f"{value.object} as the value of a name")


def leaves(value: Value) -> Iterator[Any]:
    """The registers of a value, in order."""
    match value:
        case Number():
            yield value.value
        case Array():
            yield value.first
            yield from value.shape
        case Group():
            for item in value.items:
                yield from leaves(item)
        case _:
            raise Unknown(f"{value.object} as a value")


def registers(type: Type) -> list[Any]:
    """The types of the registers of a value."""
    if isinstance(type, str):
        return [NUMBERS[type]]
    if type[0] is Array:
        return [ELEMENTS[type[1]][0].as_pointer(), *[I64] * type[2]]
    return [register for item in type[2:] for register in registers(item)]


def assembled(type: Type, values: Iterator[Any]) -> Value:
    """The value of a type whose registers these are."""
    if isinstance(type, str):
        return Number(type, next(values))
    if type[0] is Array:
        return Array(type[1], next(values), tuple(next(values) for _ in range(type[2])))
    return Group(type[1], tuple(assembled(item, values) for item in type[2:]))


def united(one: Type, other: Type) -> Type:
    """The type of a name that has both: of an int64 and a float64 the latter, as in Numba."""
    if one == other:
        return one
    if isinstance(one, str) and isinstance(other, str):
        if {one, other} == {"i64", "f64"}:
            return "f64"
        if {one, other} == {"b1", "i64"}:
            return "i64"
        if "c128" in (one, other) and {one, other} <= {"c128", "f64", "i64"}:
            return "c128"
    elif one[:2] == other[:2] and len(one) == len(other) and one[0] is Group:
        return (*one[:2], *(united(x, y) for x, y in zip(one[2:], other[2:], strict=True)))
    raise Unknown(f"{one} and {other} as the types of one name")


def numbers(values: Sequence[Value]) -> list[Number]:
    if not all(isinstance(x, Number) for x in values):
        raise Unknown("arithmetic on what is no number")
    return [x for x in values if isinstance(x, Number)]
