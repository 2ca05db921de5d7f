"""Rule blocks of comparisons, logic, choice and conversion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir as llvm

from ckad.rules import ir
from ckad.rules.numbers.block import elementwise
from ckad.rules.registry import Contribution, Tangents, from_partials, jvp, rule, same_shape, vjp
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.types import DType, Type

# --- comparisons and logic: results are bool ---------------------------------------------------


def _as_bool(*types: Type, attrs: Any = ()) -> Type:
    return types[0].with_dtype(DType.BOOL)


for _op, _numpy, _relation in (
    (Op.EQ, np.equal, "=="),
    (Op.NE, np.not_equal, "!="),
    (Op.LT, np.less, "<"),
    (Op.LE, np.less_equal, "<="),
    (Op.GT, np.greater, ">"),
    (Op.GE, np.greater_equal, ">="),
):
    elementwise(
        _op,
        _numpy,
        {"ff->i": ir.compare_floats(_relation), "ii->i": ir.compare_integers(_relation)},
        [None, None],
        shape=_as_bool,
        cheap=True,
    )

for _op, _bitwise, _name in (
    (Op.AND, np.bitwise_and, "and_"),
    (Op.OR, np.bitwise_or, "or_"),
    (Op.XOR, np.bitwise_xor, "xor"),
):
    elementwise(_op, _bitwise, {"ii->i": ir.method(_name)}, [None, None], cheap=True)

elementwise(
    Op.NOT,
    np.logical_not,
    {"i->i": lambda b, x: b.xor(x, ir.constant(x, 1))},
    [None],
    cheap=True,
)
elementwise(
    Op.ISNAN,
    np.isnan,
    {"f->i": lambda b, x: b.zext(ir.is_nan(b, x), ir.integers_like(x))},
    [None],
    shape=_as_bool,
    cheap=True,
)


def _emit_isinf(b: Any, x: Any) -> Any:
    size = ir.intrinsic("llvm.fabs")(b, x)
    found = b.fcmp_ordered("==", size, ir.constant(x, math.inf))
    return b.zext(found, ir.integers_like(x))


elementwise(Op.ISINF, np.isinf, {"f->i": _emit_isinf}, [None], shape=_as_bool, cheap=True)

# --- choice and conversion ---------------------------------------------------------------------


def _emit_select(b: Any, c: Any, x: Any, y: Any) -> Any:
    return b.select(b.icmp_signed("!=", c, ir.constant(c, 0)), x, y)


# The cells of x and y are moved as they are, so one kernel serves all element types.
elementwise(
    Op.SELECT,
    np.where,
    {"iii->i": _emit_select},
    [None, None, None],
    cheap=True,
    shape=lambda c, x, y, attrs=(): x,
)


@jvp(Op.SELECT)
def _(
    b: Builder, tangents: Tangents, out: int, c: int, x: int, y: int, attrs: Sequence[int] = ()
) -> int | None:
    _, dx, dy = tangents
    if dx is None and dy is None:
        return None
    zero = b.full_like(out, 0.0)
    return b.select(c, zero if dx is None else dx, zero if dy is None else dy)


@vjp(Op.SELECT)
def _(
    b: Builder, ct: int, out: int, c: int, x: int, y: int, attrs: Sequence[int] = ()
) -> tuple[Contribution, ...]:
    zero = b.full_like(ct, 0.0)
    return None, b.select(c, ct, zero), b.select(c, zero, ct)


elementwise(Op.STOP, lambda x: x, {"f->f": lambda b, x: x}, [None], cheap=True)


def _emit_to_bool(b: Any, x: Any) -> Any:
    return ir.compare_floats("!=")(b, x, ir.constant(x, 0.0))


def _emit_integer_to_bool(b: Any, x: Any) -> Any:
    return ir.compare_integers("!=")(b, x, ir.constant(x, 0))


def _emit_round32(b: Any, x: Any) -> Any:
    return b.fpext(b.fptrunc(x, _singles_like(x)), x.type)


def _singles_like(x: Any) -> Any:
    single = llvm.FloatType()
    vector = isinstance(x.type, llvm.VectorType)
    return llvm.VectorType(single, x.type.count) if vector else single


# The signatures with a letter more name the target: b bool, s float32 kept in a float64 cell.
elementwise(
    Op.CONVERT,
    lambda x: x,
    {
        "f->f": lambda b, x: x,
        "f->s": _emit_round32,
        "f->i": lambda b, x: b.fptosi(x, ir.integers_like(x)),
        "i->f": lambda b, x: b.sitofp(x, ir.floats_like(x)),
        "i->i": lambda b, x: x,
        "f->b": _emit_to_bool,
        "i->b": _emit_integer_to_bool,
    },
    [None],
    cheap=True,
)


@jvp(Op.CONVERT)
def _(b: Builder, tangents: Tangents, out: int, x: int, attrs: Sequence[int] = ()) -> int | None:
    (dx,) = tangents
    if dx is None or not b.type(out).is_float:
        return None
    return b.convert(dx, type=b.type(out))


@vjp(Op.CONVERT)
def _(b: Builder, ct: int, out: int, x: int, attrs: Sequence[int] = ()) -> tuple[Contribution, ...]:
    return (b.convert(ct, type=b.type(x)) if b.type(x).is_float else None,)


# WRAP has no emitter: it can stop the program, so the engines bring their own kernel.
def _wrap(x: np.ndarray, n: int) -> np.ndarray:
    if np.any((x < -n) | (x >= n)):
        raise IndexError(f"index out of bounds for axis of size {n}")
    return np.where(x < 0, x + n, x)


rule(Op.WRAP, shape=same_shape, evaluate=lambda type, attrs, x: _wrap(x, attrs[0]))
from_partials(Op.WRAP, [None])
