"""Building stones for the LLVM IR of one element, shared by the engines.

An emitter takes the IR builder and one value per operand and returns the result's value. Values
may be scalars or vectors; an emitter marked ``scalar_only`` takes scalars.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir as llvm
from numba.core import cgutils

Value = Any
Emitter = Callable[..., Value]
I64 = llvm.IntType(64)


def constant(like: Value, number: float) -> Value:
    """``number`` in the type of ``like``, splat if that is a vector."""
    type = like.type
    if isinstance(type, llvm.VectorType):
        return llvm.Constant(type, [llvm.Constant(type.element, number)] * type.count)
    return llvm.Constant(type, number)


def integers_like(x: Value) -> Any:
    """The int64 type with as many lanes as ``x``."""
    return llvm.VectorType(I64, x.type.count) if isinstance(x.type, llvm.VectorType) else I64


def floats_like(x: Value) -> Any:
    double = llvm.DoubleType()
    return llvm.VectorType(double, x.type.count) if isinstance(x.type, llvm.VectorType) else double


def intrinsic(name: str) -> Emitter:
    """An LLVM intrinsic such as ``llvm.sqrt`` on floats."""

    def emit(b: Any, *xs: Value) -> Value:
        suffix = _suffix(xs[0].type)
        type = llvm.FunctionType(xs[0].type, [x.type for x in xs])
        return b.call(cgutils.get_or_insert_function(b.module, type, f"{name}.{suffix}"), xs)

    return emit


def _suffix(type: Any) -> str:
    if isinstance(type, llvm.VectorType):
        return f"v{type.count}{_suffix(type.element)}"
    return {"double": "f64", "float": "f32"}[str(type)]


def libm(name: str) -> Emitter:
    """A function of the C mathematics library, or one registered under ``name``."""

    def emit(b: Any, *xs: Value) -> Value:
        type = llvm.FunctionType(xs[0].type, [x.type for x in xs])
        return b.call(cgutils.get_or_insert_function(b.module, type, name), xs)

    return scalar_only(emit)


def scalar_only(emit: Emitter) -> Emitter:
    emit.scalar_only = True  # type: ignore[attr-defined]
    return emit


def compare_floats(relation: str) -> Emitter:
    def emit(b: Any, x: Value, y: Value) -> Value:
        ordered = b.fcmp_unordered if relation == "!=" else b.fcmp_ordered
        return b.zext(ordered(relation, x, y), integers_like(x))

    return emit


def compare_integers(relation: str) -> Emitter:
    def emit(b: Any, x: Value, y: Value) -> Value:
        return b.zext(b.icmp_signed(relation, x, y), integers_like(x))

    return emit


def method(name: str) -> Emitter:
    """An instruction that the IR builder has a method for."""
    return lambda b, *xs: getattr(b, name)(*xs)


def is_nan(b: Any, x: Value) -> Value:
    return b.fcmp_unordered("uno", x, x)


def is_number(x: Value) -> bool:
    """A constant that is not NaN, in all lanes."""
    if not isinstance(x, llvm.Constant):
        return False
    parts = x.constant if isinstance(x.type, llvm.VectorType) else [x]
    numbers = [p.constant if isinstance(p, llvm.Constant) else p for p in parts or ()]
    return bool(numbers) and all(isinstance(n, (int, float)) and n == n for n in numbers)


def number(x: Value) -> float | None:
    """The float that a constant holds in all lanes, if it is one."""
    if not isinstance(x, llvm.Constant) or isinstance(x.constant, str):
        return None
    parts = x.constant if isinstance(x.type, llvm.VectorType) else [x]
    numbers = {p.constant if isinstance(p, llvm.Constant) else p for p in parts or ()}
    found = numbers.pop() if len(numbers) == 1 else None
    return found if isinstance(found, float) else None
