"""What Python's operators and functions of numbers are in LLVM IR, to the bits that Numba has.

Integers divide towards minus infinity, and by zero give zero; floats divide as the processor does.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from ckad.machine.complexes import FUNCTIONS, quotient
from ckad.machine.values import COMPLEX, DOUBLE, I1, I64, Number, Unknown

_FLOATS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_INTEGERS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
}
_RELATIONS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
#: Functions of one float64 that LLVM knows.
_INTRINSICS: dict[Any, str] = {
    math.sqrt: "sqrt", np.sqrt: "sqrt", math.log: "log", np.log: "log", math.exp: "exp",
    np.exp: "exp", math.sin: "sin", math.cos: "cos", np.log2: "log2", np.ceil: "ceil",
}  # fmt: skip


class Arithmetic:
    """Instructions on numbers, at an IR builder; ``kernel(source, numbers)`` calls what is written
    in Python."""

    def __init__(self, b: ir.IRBuilder, kernel: Callable[[Any, list[Number]], Number]) -> None:
        self.b, self.kernel = b, kernel

    # --- from type to type ------------------------------------------------------------------------

    def cast(self, x: Number, type: str) -> Number:
        """As ``int``, ``float``, ``bool`` and ``np.uint64`` do."""
        b, value = self.b, x.value
        match x.type, type:
            case one, other if one == other:
                return x
            case ("i64" | "u64" | "u32", "i64" | "u64" | "u32"):
                found = value  # what is stored as a shorter one is cut off there
            case "b1", "i64" | "u64" | "u32":
                found = b.zext(value, I64)
            case "b1", "f64":
                found = b.uitofp(value, DOUBLE)
            case "i64", "f64":
                found = b.sitofp(value, DOUBLE)
            case "u64" | "u32", "f64":
                found = b.uitofp(value, DOUBLE)
            case "f64" | "i64", "c128":
                return self.joined(self.cast(x, "f64").value, ir.Constant(DOUBLE, 0.0))
            case "f64", "i64":
                found = b.fptosi(value, I64)
            case "f64", "b1":
                found = b.fcmp_unordered("!=", value, ir.Constant(DOUBLE, 0.0))
            case "i64" | "u64" | "u32", "b1":
                found = b.icmp_signed("!=", value, ir.Constant(I64, 0))
            case _:
                raise Unknown(f"{x.type} as {type}")
        return Number(type, found)

    def alike(self, *xs: Number) -> list[Number]:
        """Operands of one type. Integers with a sign and without are not mixed."""
        types = {"i64" if x.type == "b1" else x.type for x in xs}
        if "u32" in types:
            types = types - {"u32"} or {"u64"}
        for widest in ("c128", "f64"):
            if widest in types and "u64" not in types:
                types = {widest}
        if len(types) != 1:
            raise Unknown(f"operands of the types {types}")
        return [self.cast(x, next(iter(types))) for x in xs]

    # --- operators --------------------------------------------------------------------------------

    def binary(self, op: ast.operator, x: Number, y: Number) -> Number:
        if isinstance(op, ast.Pow):
            return self._power(x, y)
        if isinstance(op, ast.Div) and "c128" not in (x.type, y.type):
            x, y = self.cast(x, "f64"), self.cast(y, "f64")
        x, y = self.alike(x, y)
        kind = type(op)
        if x.type == "c128":
            return self._of_complex(op, x, y)
        if x.type == "f64":
            if kind not in _FLOATS:
                raise Unknown(f"{kind.__name__} of floats")
            return Number("f64", getattr(self.b, _FLOATS[kind])(x.value, y.value))
        if kind in _INTEGERS:
            return Number(x.type, getattr(self.b, _INTEGERS[kind])(x.value, y.value))
        if kind in (ast.FloorDiv, ast.Mod):
            return self._divided(x, y)[kind is ast.Mod]
        if kind is ast.LShift:
            return Number(x.type, self.b.shl(x.value, y.value))
        if kind is ast.RShift:
            shift = self.b.ashr if x.type == "i64" else self.b.lshr
            return Number(x.type, shift(x.value, y.value))
        raise Unknown(f"{kind.__name__} of integers")

    def _divided(self, x: Number, y: Number) -> tuple[Number, Number]:
        """Quotient and rest."""
        b, zero = self.b, ir.Constant(I64, 0)
        if x.type != "i64":
            raise Unknown(f"a quotient of {x.type}")
        is_zero = b.icmp_signed("==", y.value, zero)
        by = b.select(is_zero, ir.Constant(I64, 1), y.value)
        quotient, rest = b.sdiv(x.value, by), b.srem(x.value, by)
        differ = b.icmp_signed("<", b.xor(rest, by), zero)
        is_below = b.and_(differ, b.icmp_signed("!=", rest, zero))
        quotient = b.sub(quotient, b.zext(is_below, I64))
        rest = b.add(rest, b.select(is_below, by, zero))
        quotient, rest = (b.select(is_zero, zero, z) for z in (quotient, rest))
        return Number("i64", quotient), Number("i64", rest)

    def _power(self, x: Number, y: Number) -> Number:
        if x.type != "f64":
            if y.type == "i64" and isinstance(y.value, ir.Constant) and y.value.constant == 2:
                return self.binary(ast.Mult(), x, x)
            raise Unknown(f"a power of {x.type}")
        if y.type == "f64":
            return self.intrinsic("pow", x, y)
        return self._raised(x, self.cast(y, "i64"))

    def _raised(self, x: Number, power: Number) -> Number:
        """Squares of a float multiplied, as Numba does it; up to a power that no kernel has."""
        b, zero, one = self.b, ir.Constant(I64, 0), ir.Constant(I64, 1)
        is_below = b.icmp_signed("<", power.value, zero)
        left = b.select(is_below, b.neg(power.value), power.value)
        before = b.block
        head, body, end = (b.append_basic_block(name) for name in ("power", "square", "raised"))
        b.branch(head)
        b.position_at_end(head)
        found, square, rest = b.phi(DOUBLE), b.phi(DOUBLE), b.phi(I64)
        b.cbranch(b.icmp_signed("!=", rest, zero), body, end)
        b.position_at_end(body)
        is_odd = b.trunc(b.and_(rest, one), I1)
        times = b.select(is_odd, b.fmul(found, square), found)
        values = times, b.fmul(square, square), b.ashr(rest, one)
        firsts = ir.Constant(DOUBLE, 1.0), x.value, left
        for phi, first, value in zip((found, square, rest), firsts, values, strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(value, body)
        b.branch(head)
        b.position_at_end(end)
        inverse = b.fdiv(ir.Constant(DOUBLE, 1.0), found)
        return Number("f64", b.select(is_below, inverse, found))

    def unary(self, op: ast.unaryop, x: Number) -> Number:
        if isinstance(op, ast.Not):
            return Number("b1", self.b.not_(self.cast(x, "b1").value))
        if isinstance(op, ast.USub) and x.type == "c128":
            return self.joined(*(self.b.fneg(part) for part in self.parts(x)))
        if isinstance(op, ast.USub) and x.type == "f64":
            return Number("f64", self.b.fneg(x.value))
        if isinstance(op, ast.USub) and x.type == "i64":
            if isinstance(x.value, ir.Constant):
                return Number("i64", ir.Constant(I64, -x.value.constant))
            return Number("i64", self.b.neg(x.value))
        raise Unknown(f"{type(op).__name__} of {x.type}")

    def compared(self, op: ast.cmpop, x: Number, y: Number) -> Number:
        if type(op) not in _RELATIONS:
            raise Unknown(type(op).__name__)
        relation = _RELATIONS[type(op)]
        x, y = self.alike(x, y)
        if x.type == "c128":
            return self._same(relation, x, y)
        if x.type == "f64":
            by = self.b.fcmp_unordered if relation == "!=" else self.b.fcmp_ordered
        else:
            by = self.b.icmp_unsigned if x.type == "u64" else self.b.icmp_signed
        return Number("b1", by(relation, x.value, y.value))

    def chosen(self, condition: Any, x: Number, y: Number) -> Number:
        x, y = self.alike(x, y)
        return Number(x.type, self.b.select(condition, x.value, y.value))

    # --- complex numbers --------------------------------------------------------------------------

    def joined(self, re: Any, im: Any) -> Number:
        if isinstance(re, ir.Constant) and isinstance(im, ir.Constant):
            return Number("c128", ir.Constant(COMPLEX, [re.constant, im.constant]))
        whole = self.b.insert_value(ir.Constant(COMPLEX, ir.Undefined), re, 0)
        return Number("c128", self.b.insert_value(whole, im, 1))

    def parts(self, x: Number) -> tuple[Any, Any]:
        """The real part and the imaginary one."""
        re, im = (self.b.extract_value(x.value, k) for k in (0, 1))
        return re, im

    def conjugate(self, x: Number) -> Number:
        if x.type != "c128":
            return x
        re, im = self.parts(x)
        return self.joined(re, self.b.fneg(im))

    def _of_complex(self, op: ast.operator, x: Number, y: Number) -> Number:
        b = self.b
        if isinstance(op, ast.Div):
            return self.kernel(quotient, [x, y])
        (p, q), (r, s) = self.parts(x), self.parts(y)
        match op:
            case ast.Add():
                return self.joined(b.fadd(p, r), b.fadd(q, s))
            case ast.Sub():
                return self.joined(b.fsub(p, r), b.fsub(q, s))
            case ast.Mult():
                re = b.fsub(b.fmul(p, r), b.fmul(q, s))
                return self.joined(re, b.fadd(b.fmul(p, s), b.fmul(q, r)))
        raise Unknown(f"{type(op).__name__} of complex numbers")

    def _same(self, relation: str, x: Number, y: Number) -> Number:
        (p, q), (r, s) = self.parts(x), self.parts(y)
        if relation not in ("==", "!="):
            raise Unknown("an order of complex numbers")
        equals = self.b.and_(self.b.fcmp_ordered("==", p, r), self.b.fcmp_ordered("==", q, s))
        return Number("b1", equals if relation == "==" else self.b.not_(equals))

    # --- functions --------------------------------------------------------------------------------

    def intrinsic(self, name: str, *xs: Number) -> Number:
        floats = [self.cast(x, "f64").value for x in xs]
        return Number("f64", self._called(f"llvm.{name}.f64", floats))

    def _called(self, name: str, values: list[Any]) -> Any:
        function = self.b.module.globals.get(name)
        if function is None:
            type = ir.FunctionType(DOUBLE, [DOUBLE] * len(values))
            function = ir.Function(self.b.module, type, name)
        return self.b.call(function, values)

    def function(self, function: Any, xs: list[Number]) -> Number | None:
        """A function of Python or NumPy on numbers; None if it is none of those that are known."""
        if function in (min, max):
            return self._extreme(ast.Lt() if function is min else ast.Gt(), xs)
        if function is math.hypot and len(xs) == 2:
            floats = [self.cast(x, "f64").value for x in xs]
            return Number("f64", self._called("hypot", floats))
        if function is complex and len(xs) == 2:
            return self.joined(*(self.cast(x, "f64").value for x in xs))
        if len(xs) != 1:
            return None
        if function is np.conj:
            return self.conjugate(xs[0])
        if xs[0].type == "c128":
            return self.kernel(FUNCTIONS[function], xs) if function in FUNCTIONS else None
        if function in _CASTS:
            return self.cast(xs[0], _CASTS[function])
        if function in _EXTERNAL:
            return Number("f64", self._called(_EXTERNAL[function], [self.cast(xs[0], "f64").value]))
        if function is abs:
            return self._size(xs[0])
        if function in _INTRINSICS:
            return self.intrinsic(_INTRINSICS[function], xs[0])
        return None

    def _extreme(self, relation: ast.cmpop, xs: list[Number]) -> Number:
        found, *others = self.alike(*xs)
        for x in others:
            found = self.chosen(self.compared(relation, x, found).value, x, found)
        return found

    def _size(self, x: Number) -> Number:
        if x.type == "f64":
            return self.intrinsic("fabs", x)
        is_negative = self.compared(ast.Lt(), x, Number("i64", ir.Constant(I64, 0)))
        return self.chosen(is_negative.value, self.unary(ast.USub(), x), x)


#: Functions of one float64 of the C library.
_EXTERNAL: dict[Any, str] = {math.sinh: "sinh", math.cosh: "cosh"}
_CASTS: dict[Any, str] = {int: "i64", float: "f64", bool: "b1", np.uint64: "u64"}
