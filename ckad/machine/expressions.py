"""Expressions of a kernel: what they are worth, in the order in which Python asks.

Nodes of Python's syntax go in, typed values at an IR builder come out; `functions` adds statements.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.core.types import ExternalFunction, float64, int64, voidptr

from ckad.machine.arithmetic import Arithmetic
from ckad.machine.arrays import Arrays, bounds
from ckad.machine.values import (
    DOUBLE,
    I1,
    I64,
    Array,
    Group,
    Known,
    Number,
    Type,
    Unknown,
    Value,
    assembled,
    integer,
    known,
    leaves,
    numbers,
    registers,
    type_of,
    united,
)

_OF_NUMBA = {"i64": int64, "f64": float64}


class _Context:
    """What Numba hands to those who write IR themselves."""

    def get_dummy_value(self) -> None:
        return None


class Expressions:
    def __init__(self, b: ir.IRBuilder) -> None:
        self.b, self.arithmetic = b, Arithmetic(b, self._of_numbers)
        self.arrays = Arrays(b, self.arithmetic.cast)

    def name(self, name: str) -> Value:
        raise NotImplementedError

    def kernel(self, source: Any, arguments: list[Value]) -> Value | None:
        raise NotImplementedError

    def _of_numbers(self, source: Any, xs: list[Number]) -> Number:
        found = self.kernel(source, [*xs])
        assert isinstance(found, Number)
        return found

    # --- values -----------------------------------------------------------------------------------

    def number(self, value: Value) -> Number:
        if not isinstance(value, Number):
            raise Unknown("what is no number, where one is wanted")
        return value

    def array(self, value: Value) -> Array:
        if isinstance(value, Known):
            return self.arrays.table(value)
        if isinstance(value, Group) and value.kind is tuple and value.items:
            return self.arrays.table(Known(np.array(_constants(value))))
        if not isinstance(value, Array):
            raise Unknown("what is no array, where one is wanted")
        return value

    def converted(self, value: Value, type: Type) -> Value:
        """A value as one of a wider type."""
        if isinstance(value, Number) and isinstance(type, str):
            return self.arithmetic.cast(value, type)
        if isinstance(value, Group):
            pairs = zip(value.items, type[2:], strict=True)
            return Group(value.kind, tuple(self.converted(x, t) for x, t in pairs))
        return value

    def truth(self, node: ast.expr) -> Any:
        """Whether what a condition asks is true."""
        if isinstance(node, ast.BoolOp):
            return self.junction(node, self.truth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.b.not_(self.truth(node.operand))
        return self.arithmetic.cast(self.number(self.value(node)), "b1").value

    def item(self, x: Array, *indices: Number) -> Value:
        place = self.arrays.place(x, list(indices))
        return place if place.shape else self.arrays.load(place)

    # --- expressions ------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Value:
        match node:
            case ast.Name():
                return self.name(node.id)
            case ast.Constant(value=bool() | int() | float() | complex() as value):
                return known(value)
            case ast.Tuple():
                return Group(tuple, tuple(map(self.value, node.elts)))
            case ast.BinOp():
                x, y = numbers([self.value(node.left), self.value(node.right)])
                return self.arithmetic.binary(node.op, x, y)
            case ast.UnaryOp():
                return self.arithmetic.unary(node.op, self.number(self.value(node.operand)))
            case ast.Compare():
                return self.comparison(node)
            case ast.BoolOp():
                return Number("b1", self.junction(node, self._true))
            case ast.IfExp():
                return self.choice(node)
            case ast.Attribute():
                return self.attribute(node)
            case ast.Subscript():
                return self.subscript(node)
            case ast.Call():
                found = self.call(node)
                if found is not None:
                    return found
        raise Unknown(f"{ast.unparse(node)} as a value")

    def comparison(self, node: ast.Compare) -> Number:
        if len(node.ops) == 1:
            left, right = self.value(node.left), self.value(node.comparators[0])
            if isinstance(node.ops[0], ast.In):
                if not isinstance(right, Group) or right.kind is range:
                    raise Unknown("`in` what is no tuple")
                return self._among(self.number(left), [self.number(x) for x in right.items])
            return self.arithmetic.compared(node.ops[0], *numbers([left, right]))
        # a < b < c without effects between: of numbers, all may be asked
        if not all(_is_plain(x) for x in node.comparators):
            raise Unknown("a chain of comparisons")
        found: Any = None
        left = self.value(node.left)
        for op, other in zip(node.ops, node.comparators, strict=True):
            right = self.value(other)
            holds = self.arithmetic.compared(op, *numbers([left, right])).value
            found, left = holds if found is None else self.b.and_(found, holds), right
        return Number("b1", found)

    def _among(self, x: Number, items: list[Number]) -> Number:
        found: Any = ir.Constant(I1, 0)
        for item in items:
            found = self.b.or_(found, self.arithmetic.compared(ast.Eq(), x, item).value)
        return Number("b1", found)

    def junction(self, node: ast.BoolOp, truth: Callable[[ast.expr], Any]) -> Any:
        """Later parts are asked only where earlier ones leave it open."""
        b, is_and = self.b, isinstance(node.op, ast.And)
        end = b.append_basic_block("known")
        incoming = []
        for k, part in enumerate(node.values):
            incoming.append((truth(part), b.block))
            if k == len(node.values) - 1:
                b.branch(end)
            else:
                follow = b.append_basic_block("ask")
                b.cbranch(incoming[-1][0], *((follow, end) if is_and else (end, follow)))
                b.position_at_end(follow)
        b.position_at_end(end)
        found = b.phi(I1)
        for value, block in incoming:
            found.add_incoming(value, block)
        return found

    def _true(self, node: ast.expr) -> Any:
        """A part of what is more than a condition: of other types, it would be one of the parts."""
        value = self.number(self.value(node))
        if value.type != "b1":
            raise Unknown(f"and, or of {value.type}")
        return value.value

    def choice(self, node: ast.IfExp) -> Value:
        b = self.b
        if all(isinstance(side, ast.Name | ast.Constant) for side in (node.body, node.orelse)):
            return self._selected(node)
        names = ("true", "false", "chosen")
        true, false, end = (b.append_basic_block(name) for name in names)
        b.cbranch(self.truth(node.test), true, false)
        sides: list[tuple[Value, Any]] = []
        for block, side in ((true, node.body), (false, node.orelse)):
            b.position_at_end(block)
            sides.append((self.value(side), b.block))
        type = united(type_of(sides[0][0]), type_of(sides[1][0]))
        columns = []
        for value, block in sides:
            b.position_at_end(block)
            columns.append(list(leaves(self.converted(value, type))))
            b.branch(end)
        b.position_at_end(end)
        found = []
        for register, *pair in zip(registers(type), *columns, strict=True):
            phi = b.phi(register)
            for x, (_, block) in zip(pair, sides, strict=True):
                phi.add_incoming(x, block)
            found.append(phi)
        return assembled(type, iter(found))

    def _selected(self, node: ast.IfExp) -> Value:
        """Of two values that are there anyway, one; the processor need not foresee which."""
        truth, sides = self.truth(node.test), [self.value(x) for x in (node.body, node.orelse)]
        type = united(*map(type_of, sides))
        columns = [leaves(self.converted(side, type)) for side in sides]
        pairs = zip(*columns, strict=True)
        return assembled(type, (self.b.select(truth, x, y) for x, y in pairs))

    def attribute(self, node: ast.Attribute) -> Value:
        if ast.unparse(node).endswith(".ctypes.data") and isinstance(node.value, ast.Attribute):
            array = self.array(self.value(node.value.value))
            return Number("i64", self.b.ptrtoint(array.first, I64))
        of = self.value(node.value)
        if isinstance(of, Known):
            return known(getattr(of.object, node.attr))
        if isinstance(of, Group):
            fields = dict(zip(_fields(of.kind), of.items, strict=False))
            if node.attr in fields:
                return fields[node.attr]
        if isinstance(of, Number) and node.attr in ("real", "imag"):
            return self._part(of, node.attr)
        raise Unknown(f"the attribute {node.attr}")

    def _part(self, x: Number, name: str) -> Number:
        if x.type == "c128":
            return Number("f64", self.arithmetic.parts(x)[name == "imag"])
        if x.type != "f64":
            raise Unknown(f"a part of {x.type}")
        return x if name == "real" else Number("f64", ir.Constant(DOUBLE, 0.0))

    def subscript(self, node: ast.Subscript) -> Value:
        if isinstance(node.slice, ast.Slice):
            cut = bounds(node.slice, self.value)
            return self.arrays.part(self.array(self.value(node.value)), *cut)
        of = self.value(node.value)
        if isinstance(of, Group):
            index = self.number(self.value(node.slice)).value
            if isinstance(index, ir.Constant):
                return of.items[int(index.constant)]
        place = self.element(node)
        return place if place.shape else self.arrays.load(place)

    def element(self, node: ast.Subscript) -> Array:
        array, at = self.array(self.value(node.value)), self.value(node.slice)
        indices = [*at.items] if isinstance(at, Group) else [at]
        return self.arrays.place(array, numbers(indices))

    # --- calls ------------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> Value | None:
        if node.keywords:
            raise Unknown("arguments by name")
        if isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
            return self._reshaped(node.func.value, node.args)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "conjugate":
            return self.arithmetic.conjugate(self.number(self.value(node.func.value)))
        callee = self.value(node.func)
        if not isinstance(callee, Known):
            raise Unknown(f"{ast.unparse(node.func)} as a function")
        function = callee.object
        if function is carray:
            return self._carray(node.args)
        arguments = [self.value(x) for x in node.args]
        if isinstance(function, Dispatcher):
            return self.kernel(function.py_func, arguments)
        if isinstance(function, _Intrinsic):
            return self._written(function, arguments)
        if isinstance(function, ExternalFunction):
            return self._external(function, arguments)
        if function is len:
            return self._length(*arguments)
        if function is range:
            return self._range(numbers(arguments))
        if isinstance(function, type) and _fields(function):
            return Group(function, tuple(arguments))
        found = self.arithmetic.function(function, numbers(arguments))
        if found is None:
            raise Unknown(f"{ast.unparse(node.func)} of numbers")
        return found

    def _carray(self, nodes: list[ast.expr]) -> Array:
        address, shape, dtype = (self.value(node) for node in nodes)
        if not isinstance(shape, Group) or not isinstance(dtype, Known):
            raise Unknown("an array of unknown form")
        lengths = [self.arithmetic.cast(n, "i64").value for n in numbers(shape.items)]
        pointer = self.b.ptrtoint(self.number(address).value, I64)
        return self.arrays.at(pointer, np.dtype(dtype.object), tuple(lengths))

    def _reshaped(self, node: ast.expr, arguments: list[ast.expr]) -> Array:
        x, lengths = self.array(self.value(node)), numbers([self.value(n) for n in arguments])
        return Array(x.dtype, x.first, tuple(n.value for n in lengths))

    def _length(self, x: Value) -> Number:
        if isinstance(x, Group):
            return integer(len(x.items))
        if isinstance(x, Known):
            return integer(len(x.object))
        return Number("i64", self.array(x).shape[0])

    def _range(self, xs: list[Number]) -> Group:
        kind = "u64" if xs[-1].type == "u64" else "i64"
        if len(xs) > 1 and {x.type for x in xs} not in ({"u64"}, {"i64"}):
            raise Unknown("a range of numbers with and without a sign")
        match xs:
            case [stop]:
                xs = [integer(0), stop, integer(1)]
            case [start, stop]:
                xs = [start, stop, integer(1)]
        return Group(range, tuple(self.arithmetic.cast(x, kind) for x in xs))

    def _written(self, function: Any, arguments: list[Value]) -> Value | None:
        """What writes its own IR."""
        xs = numbers(arguments)
        context = _Context()
        types = (_OF_NUMBA[x.type] for x in xs)
        signature, generate = function._defn(context, *types)
        wanted = ["f64" if t == float64 else "i64" for t in signature.args]
        pairs = zip(xs, wanted, strict=True)
        values = [self.arithmetic.cast(x, type).value for x, type in pairs]
        found = generate(context, self.b, signature, values)
        if signature.return_type == int64 or signature.return_type == voidptr:
            return Number("i64", found)
        if signature.return_type == float64:
            return Number("f64", found)
        return None

    def _external(self, function: Any, arguments: list[Value]) -> Value | None:
        xs = [self.arithmetic.cast(x, "i64").value for x in numbers(arguments)]
        found = self.b.module.globals.get(function.symbol)
        gives_number = str(function.sig.return_type) != "none"
        if found is None:
            bits = getattr(function.sig.return_type, "bitwidth", 64)
            returned = ir.IntType(bits) if gives_number else ir.VoidType()
            type = ir.FunctionType(returned, [I64] * len(xs))
            found = ir.Function(self.b.module, type, function.symbol)
        result = self.b.call(found, xs)
        if not gives_number:
            return None
        return Number("i64", result if result.type == I64 else self.b.sext(result, I64))


def _fields(kind: type) -> tuple[str, ...]:
    """The names of the items of a named tuple."""
    return getattr(kind, "_fields", ())


def _constants(value: Group) -> list[Any]:
    found = [x.value for x in value.items if isinstance(x, Number)]
    if len(found) < len(value.items) or not all(isinstance(x, ir.Constant) for x in found):
        raise Unknown("a place of a tuple that is computed")
    return [x.constant for x in found]


def _is_plain(node: ast.expr) -> bool:
    return not any(isinstance(x, ast.Call) for x in ast.walk(node))
