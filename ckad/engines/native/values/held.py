"""Where a value of a tape is while code is written: in registers, in memory, or a token's place."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from ckad.engines.native.ir.element import Array, Value, nbytes, whole
from ckad.engines.native.ir.unit import Buffer
from ckad.engines.native.values import registers
from ckad.engines.native.values.registers import Registers, is_small


@dataclass
class Memory:
    """A large array."""

    array: Array
    buffer: Buffer


@dataclass
class Token:
    """The place where a taped loop keeps restart states and residuals."""

    pointer: Value


Held = Registers | Memory | Token
Wanted = dict[int, Buffer]


def element(b: ir.IRBuilder, array: Array, i: Value) -> Array:
    """Element ``i`` along the first axis of an array."""
    type = array.type.with_shape(array.type.shape[1:])
    distance = b.mul(i, whole(nbytes(type)))
    return Array(b.gep(array.pointer, [distance]), type)


def taken(b: ir.IRBuilder, array: Array) -> Held:
    """An array that is only read: in registers if it is small."""
    if is_small(array.type):
        return registers.read(b, array)
    return Memory(array, Buffer(array.pointer, 0, writable=False))
