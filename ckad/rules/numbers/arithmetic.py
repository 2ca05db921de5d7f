"""Rule blocks of arithmetic, powers and roots, rounding and extrema.

Subgradients where the derivative does not exist: ``abs`` and ``sign`` give 0 at 0; ``maximum``
and ``minimum`` give each operand one half at a tie; ``hypot`` gives 0 at the origin. Where the
derivative of a root is infinite, a tangent or cotangent of zero stays zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.rules import ir, vector_math
from ckad.rules.numbers.block import elementwise, like
from ckad.rules.numbers.fused import multiply_add
from ckad.rules.registry import Contribution, Pole, Share, Tangents, jvp, vjp
from ckad.rules.vector_math import single
from ckad.tape.builder import Builder
from ckad.tape.ops import Op

# --- arithmetic --------------------------------------------------------------------------------

elementwise(
    Op.NEG,
    np.negative,
    {"f->f": ir.method("fneg"), "i->i": ir.method("neg")},
    [-1.0],
    cheap=True,
)
elementwise(
    Op.ADD,
    np.add,
    {"ff->f": ir.method("fadd"), "ii->i": ir.method("add")},
    [1.0, 1.0],
    cheap=True,
)
elementwise(
    Op.SUB,
    np.subtract,
    {"ff->f": ir.method("fsub"), "ii->i": ir.method("sub")},
    [1.0, -1.0],
    cheap=True,
)
elementwise(
    Op.MUL,
    np.multiply,
    {"ff->f": ir.method("fmul"), "ii->i": ir.method("mul")},
    [lambda b, out, x, y: y, lambda b, out, x, y: x],
    cheap=True,
)
elementwise(Op.DIV, np.divide, ir.method("fdiv"), [None, None])


@jvp(Op.DIV)
def _(
    b: Builder, tangents: Tangents, out: int, x: int, y: int, attrs: Sequence[int] = ()
) -> int | None:
    dx, dy = tangents
    if dy is None:
        return None if dx is None else b.div(dx, y)
    change = b.mul(out, dy)
    return b.div(b.neg(change) if dx is None else b.sub(dx, change), y)


@vjp(Op.DIV)
def _(
    b: Builder, ct: int, out: int, x: int, y: int, attrs: Sequence[int] = ()
) -> tuple[Contribution, ...]:
    ct_x = b.div(ct, y)
    return ct_x, b.neg(b.mul(ct_x, out))


# SAFEDIV is x / y, and 0 where x is 0, whatever y is. The derivatives of roots are made of it.


def _safe_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    quotient: np.ndarray = np.divide(x, np.where(np.equal(x, 0), np.ones_like(y), y))
    return quotient


def _emit_safe_divide(b: Any, x: Any, y: Any) -> Any:
    nothing = b.fcmp_ordered("==", x, ir.constant(x, 0.0))
    return b.fdiv(x, b.select(nothing, ir.constant(y, 1.0), y))


elementwise(Op.SAFEDIV, _safe_divide, _emit_safe_divide, [None, None])


def _product_with_zero(b: Builder, x: int, y: int) -> int:
    """``x y``, and 0 where one of them is 0 and the other is not finite."""
    zero, product = like(b, x, 0.0), b.mul(x, y)
    without = b.emit(Op.OR, (b.eq(x, zero), b.eq(y, zero)))
    return b.select(b.emit(Op.AND, (without, b.isnan(product))), zero, product)


@jvp(Op.SAFEDIV)
def _(b: Builder, tangents: Tangents, out: int, x: int, y: int, attrs: Any = ()) -> int | None:
    dx, dy = tangents
    if dy is None:
        return None if dx is None else b.safediv(dx, y)
    change = _product_with_zero(b, out, dy)
    return b.safediv(b.neg(change) if dx is None else b.sub(dx, change), y)


@vjp(Op.SAFEDIV)
def _(b: Builder, ct: int, out: int, x: int, y: int, attrs: Any = ()) -> tuple[Contribution, ...]:
    ct_x = b.safediv(ct, y)
    return ct_x, b.neg(_product_with_zero(b, ct_x, out))


elementwise(
    Op.FMA,
    multiply_add,
    ir.intrinsic("llvm.fma"),
    [lambda b, out, x, y, z: y, lambda b, out, x, y, z: x, 1.0],
    cheap=True,
)


def _emit_abs_integer(b: Any, x: Any) -> Any:
    return b.select(b.icmp_signed("<", x, ir.constant(x, 0)), b.neg(x), x)


elementwise(
    Op.ABS,
    np.abs,
    {"f->f": ir.intrinsic("llvm.fabs"), "i->i": _emit_abs_integer},
    [lambda b, out, x: b.sign(x)],
    cheap=True,
)


def _emit_sign(b: Any, x: Any) -> Any:
    zero = ir.constant(x, 0.0)
    below = b.select(b.fcmp_ordered("<", x, zero), ir.constant(x, -1.0), zero)
    signed = b.select(b.fcmp_ordered(">", x, zero), ir.constant(x, 1.0), below)
    return b.select(ir.is_nan(b, x), x, signed)


def _emit_sign_integer(b: Any, x: Any) -> Any:
    zero = ir.constant(x, 0)
    below = b.select(b.icmp_signed("<", x, zero), ir.constant(x, -1), zero)
    return b.select(b.icmp_signed(">", x, zero), ir.constant(x, 1), below)


elementwise(Op.SIGN, np.sign, {"f->f": _emit_sign, "i->i": _emit_sign_integer}, [None], cheap=True)
elementwise(
    Op.COPYSIGN,
    np.copysign,
    ir.intrinsic("llvm.copysign"),
    [lambda b, out, x, y: b.mul(b.sign(x), b.copysign(like(b, y, 1.0), y)), None],
    cheap=True,
)


def _emit_mod(b: Any, x: Any, y: Any) -> Any:
    # The remainder has the divisor's sign, also when it is zero.
    zero = ir.constant(x, 0.0)
    remainder = b.frem(x, y)
    negative = b.fcmp_ordered("<", remainder, zero)
    differs = b.xor(negative, b.fcmp_ordered("<", y, zero))
    moved = b.select(differs, b.fadd(remainder, y), remainder)
    signed_zero = ir.intrinsic("llvm.copysign")(b, zero, y)
    return b.select(b.fcmp_ordered("==", remainder, zero), signed_zero, moved)


def _emit_floordiv(b: Any, x: Any, y: Any) -> Any:
    # From the exact remainder, as NumPy does: x / y may round up to the next integer.
    zero, one = ir.constant(x, 0.0), ir.constant(x, 1.0)
    remainder = b.frem(x, y)
    whole = b.fdiv(b.fsub(x, remainder), y)
    differs = b.xor(b.fcmp_ordered("<", remainder, zero), b.fcmp_ordered("<", y, zero))
    lower = b.and_(differs, b.fcmp_unordered("!=", remainder, zero))
    quotient = b.select(lower, b.fsub(whole, one), whole)
    floor = ir.intrinsic("llvm.floor")(b, quotient)
    high = b.fcmp_ordered(">", b.fsub(quotient, floor), ir.constant(x, 0.5))
    nearest = b.select(high, b.fadd(floor, one), floor)
    ratio = b.fdiv(x, y)
    signed_zero = ir.intrinsic("llvm.copysign")(b, zero, ratio)
    signed = b.select(b.fcmp_ordered("==", quotient, zero), signed_zero, nearest)
    return b.select(b.fcmp_ordered("==", y, zero), ratio, signed)


def _emit_mod_integer(b: Any, x: Any, y: Any) -> Any:
    zero, one = ir.constant(x, 0), ir.constant(x, 1)
    # y = 0 gives 0 as in NumPy; y = -1 would overflow for the smallest integer
    trivial = b.or_(b.icmp_signed("==", y, zero), b.icmp_signed("==", y, ir.constant(y, -1)))
    divisor = b.select(trivial, one, y)
    remainder = b.srem(x, divisor)
    differs = b.icmp_signed("<", b.xor(remainder, divisor), zero)
    nonzero = b.icmp_signed("!=", remainder, zero)
    return b.select(b.and_(differs, nonzero), b.add(remainder, divisor), remainder)


def _emit_floordiv_integer(b: Any, x: Any, y: Any) -> Any:
    zero, one, minus = ir.constant(x, 0), ir.constant(x, 1), ir.constant(x, -1)
    trivial = b.or_(b.icmp_signed("==", y, zero), b.icmp_signed("==", y, minus))
    divisor = b.select(trivial, one, y)
    remainder = b.srem(x, divisor)
    differs = b.icmp_signed("<", b.xor(remainder, divisor), zero)
    lower = b.and_(differs, b.icmp_signed("!=", remainder, zero))
    whole = b.sdiv(x, divisor)
    quotient = b.select(lower, b.sub(whole, one), whole)
    quotient = b.select(b.icmp_signed("==", y, minus), b.neg(x), quotient)
    return b.select(b.icmp_signed("==", y, zero), zero, quotient)


elementwise(
    Op.MOD,
    np.mod,
    {"ff->f": ir.scalar_only(_emit_mod), "ii->i": ir.scalar_only(_emit_mod_integer)},
    [1.0, lambda b, out, x, y: b.neg(b.floordiv(x, y))],
)
elementwise(
    Op.FLOORDIV,
    np.floor_divide,
    {"ff->f": ir.scalar_only(_emit_floordiv), "ii->i": ir.scalar_only(_emit_floordiv_integer)},
    [None, None],
)

# --- powers and roots --------------------------------------------------------------------------


def _power_by_base(b: Builder, out: int, x: int, y: int) -> int:
    # x**0 is 1 for every x: its derivative is 0, also where 1 / x is infinite
    zero, one = like(b, y, 0.0), like(b, y, 1.0)
    lower = b.sub(y, one)
    tiny = like(b, x, np.finfo(b.type(x).numpy).tiny)
    finite = b.select(b.lt(b.abs(x), tiny), one, lower)
    return b.mul(y, b.pow(x, b.select(b.eq(y, zero), finite, lower)))


def _power_by_exponent(b: Builder, out: int, x: int, y: int) -> int:
    # 0**y is constant for y > 0
    zero, one = like(b, x, 0.0), like(b, x, 1.0)
    at_zero = b.eq(x, zero)
    return b.select(at_zero, zero, b.mul(out, b.log(b.select(at_zero, one, x))))


elementwise(
    Op.POW,
    np.power,
    vector_math.pow,
    [_power_by_base, _power_by_exponent],
    single=single.single_pow,
)
elementwise(
    Op.SQRT,
    np.sqrt,
    ir.intrinsic("llvm.sqrt"),
    [lambda b, out, x: Pole(b.add(out, out))],
)
elementwise(
    Op.CBRT,
    np.cbrt,
    ir.libm("cbrt"),
    [lambda b, out, x: Pole(b.mul(like(b, x, 3.0), b.mul(out, out)))],
)


def _over_length(b: Builder, out: int, x: int) -> int:
    zero = like(b, out, 0.0)
    at_origin = b.eq(out, zero)
    return b.select(at_origin, zero, b.div(x, b.select(at_origin, like(b, out, 1.0), out)))


elementwise(
    Op.HYPOT,
    np.hypot,
    vector_math.hypot,
    [lambda b, out, x, y: _over_length(b, out, x), lambda b, out, x, y: _over_length(b, out, y)],
    single=single.single_hypot,
)

# --- rounding ----------------------------------------------------------------------------------

for _op, _numpy, _name in (
    (Op.FLOOR, np.floor, "llvm.floor"),
    (Op.CEIL, np.ceil, "llvm.ceil"),
    (Op.TRUNC, np.trunc, "llvm.trunc"),
    (Op.RINT, np.rint, "llvm.rint"),
):
    elementwise(_op, _numpy, ir.intrinsic(_name), [None], cheap=True)

# --- extrema -----------------------------------------------------------------------------------


def _emit_extremum(relation: str) -> dict[str, ir.Emitter]:
    def floats(b: Any, x: Any, y: Any) -> Any:
        # NaN wins, whichever operand it is; of 0.0 and -0.0 the second, as for NumPy's numbers
        if ir.is_number(y):
            return b.select(b.fcmp_unordered(relation, x, y), x, y)
        if ir.is_number(x):
            return b.select(b.fcmp_ordered(relation, x, y), x, y)
        first = b.or_(b.fcmp_ordered(relation, x, y), ir.is_nan(b, x))
        return b.select(first, x, y)

    def integers(b: Any, x: Any, y: Any) -> Any:
        return b.select(b.icmp_signed(relation, x, y), x, y)

    return {"ff->f": floats, "ii->i": integers}


def _share(b: Builder, wins: int, x: int, y: int) -> Share:
    return Share(wins, b.eq(x, y))


elementwise(
    Op.MAXIMUM,
    np.maximum,
    _emit_extremum(">"),
    [
        lambda b, out, x, y: _share(b, b.gt(x, y), x, y),
        lambda b, out, x, y: _share(b, b.gt(y, x), y, x),
    ],
    cheap=True,
)
elementwise(
    Op.MINIMUM,
    np.minimum,
    _emit_extremum("<"),
    [
        lambda b, out, x, y: _share(b, b.lt(x, y), x, y),
        lambda b, out, x, y: _share(b, b.lt(y, x), y, x),
    ],
    cheap=True,
)
