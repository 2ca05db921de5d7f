"""Elements and parts of arrays in kernels: indices from the end, bounds beyond it, constant tables.

Each is an address and its lengths; loads and stores are written, and nothing is checked.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from ckad.machine.values import ELEMENTS, I32, I64, Array, Known, Number, Unknown, Value

_ZERO = ir.Constant(I64, 0)


class Arrays:
    """Instructions on arrays, at an IR builder; nothing is checked, as in Numba."""

    def __init__(self, b: ir.IRBuilder, cast: Callable[[Number, str], Number]) -> None:
        self.b, self.cast = b, cast

    def at(self, address: Any, dtype: np.dtype, shape: tuple[Any, ...]) -> Array:
        """The array at an address."""
        return Array(dtype, self.b.inttoptr(address, ELEMENTS[dtype][0].as_pointer()), shape)

    def table(self, value: Known) -> Array:
        """A constant array as data of the module."""
        given = value.object
        if not isinstance(given, np.ndarray) or given.dtype not in ELEMENTS or not given.size:
            raise Unknown(f"{given!r} as an array")
        type = ir.ArrayType(ELEMENTS[given.dtype][0], given.size)
        module = self.b.module
        data = ir.GlobalVariable(module, type, module.get_unique_name("table"))
        data.global_constant, data.linkage = True, "internal"
        data.initializer = ir.Constant(type, given.ravel().tolist())
        first = self.b.gep(data, [ir.Constant(I32, 0)] * 2)
        return Array(given.dtype, first, tuple(ir.Constant(I64, n) for n in given.shape))

    def place(self, x: Array, indices: list[Number]) -> Array:
        """What lies at indices along the first axes; an element, if these are all of them."""
        b, far = self.b, _ZERO
        if len(indices) > len(x.shape):
            raise Unknown("more indices than axes")
        for k, n in enumerate(x.shape):
            inside = self._inside(indices[k], n) if k < len(indices) else _ZERO
            far = inside if far is _ZERO else b.add(b.mul(far, n), inside)
        return Array(x.dtype, b.gep(x.first, [far]), x.shape[len(indices) :])

    def _inside(self, index: Number, n: Any) -> Any:
        b, k = self.b, self.cast(index, "u64" if index.type in ("u64", "u32") else "i64")
        if k.type == "u64":
            return k.value
        if isinstance(k.value, ir.Constant):
            return b.add(n, k.value) if k.value.constant < 0 else k.value
        return b.select(b.icmp_signed("<", k.value, _ZERO), b.add(k.value, n), k.value)

    def load(self, x: Array) -> Number:
        register, type = ELEMENTS[x.dtype]
        value = self.b.load(x.first, align=_alignment(x.dtype))
        if isinstance(register, ir.IntType) and register.width < 64:
            value = (self.b.sext if type == "i64" else self.b.zext)(value, I64)
        return Number(type, value)

    def store(self, x: Array, number: Number) -> None:
        register, type = ELEMENTS[x.dtype]
        value = self.cast(number, type).value
        if isinstance(register, ir.IntType) and register.width < 64:
            value = self.b.trunc(value, register)
        self.b.store(value, x.first, align=_alignment(x.dtype))

    def part(self, x: Array, start: Number | None, stop: Number | None) -> Array:
        """``x[start:stop]`` along the first axis."""
        b, n = self.b, x.shape[0]
        first = _ZERO if start is None else self._bound(start, n)
        last = n if stop is None else self._bound(stop, n)
        length = b.sub(last, first)
        length = b.select(b.icmp_signed("<", length, _ZERO), _ZERO, length)
        row = first
        for m in x.shape[1:]:
            row = b.mul(row, m)
        return Array(x.dtype, b.gep(x.first, [row]), (length, *x.shape[1:]))

    def _bound(self, index: Number, n: Any) -> Any:
        """Within the array."""
        b, k = self.b, self.cast(index, "i64").value
        k = b.select(b.icmp_signed("<", k, _ZERO), b.add(k, n), k)
        k = b.select(b.icmp_signed("<", k, _ZERO), _ZERO, k)
        return b.select(b.icmp_signed("<", n, k), n, k)

    def fill(self, x: Array, number: Number) -> None:
        """``x[:] = number``"""
        b, before = self.b, self.b.block
        if len(x.shape) != 1:
            raise Unknown("several axes that are filled")
        head, body, end = (b.append_basic_block(name) for name in ("fill", "put", "filled"))
        b.branch(head)
        b.position_at_end(head)
        k = b.phi(I64)
        b.cbranch(b.icmp_signed("<", k, x.shape[0]), body, end)
        b.position_at_end(body)
        self.store(Array(x.dtype, b.gep(x.first, [k]), ()), number)
        following = b.add(k, ir.Constant(I64, 1), flags=("nsw",))
        k.add_incoming(_ZERO, before)
        k.add_incoming(following, body)
        b.branch(head)
        b.position_at_end(end)


def _alignment(dtype: np.dtype) -> int:
    """Complex numbers lie as their parts do."""
    return min(dtype.itemsize, 8)


def bounds(node: ast.Slice, evaluated: Callable[[ast.expr], Value]) -> list[Number | None]:
    """What stands before and behind the colon."""
    if node.step is not None:
        raise Unknown("steps of a slice")
    found: list[Number | None] = []
    for side in (node.lower, node.upper):
        value = None if side is None else evaluated(side)
        if value is not None and not isinstance(value, Number):
            raise Unknown("a bound that is no number")
        found.append(value)
    return found
