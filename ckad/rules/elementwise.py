"""Rule blocks of the elementwise ops: evaluation, LLVM IR for one element, partial derivatives.

Subgradients where the derivative does not exist: ``abs`` and ``sign`` give 0 at 0; ``maximum``
and ``minimum`` give each operand one half at a tie; ``hypot`` gives 0 at the origin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.rules import ir
from ckad.rules.registry import Over, Partial, from_partials, jvp, rule, same_shape, vjp
from ckad.rules.zeta import emit_hurwitz_zeta
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.types import DType, Type


def elementwise(
    op: int,
    numpy: Callable[..., np.ndarray],
    emit: dict[str, ir.Emitter] | ir.Emitter,
    partials: Sequence[Partial | float | None],
    *,
    cheap: bool = False,
    shape: Any = same_shape,
) -> None:
    """The rule block of one op: its NumPy function, its IR, its partial derivatives."""
    if not isinstance(emit, dict):
        emit = {"f" * len(partials) + "->f": emit}

    def evaluate(type: Type, attrs: Any, *arrays: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(numpy(*arrays), dtype=type.numpy)

    rule(op, shape=shape, evaluate=evaluate, emit=emit, cheap=cheap)
    from_partials(op, partials)


def _special(name: str) -> Callable[..., np.ndarray]:
    """A function of SciPy, which is loaded when it is first called: that takes a while."""

    def evaluate(*arrays: np.ndarray) -> np.ndarray:
        import scipy.special

        return getattr(scipy.special, name)(*arrays)

    return evaluate


def _like(b: Builder, x: int, value: float) -> int:
    return b.full_like(x, value)


def _one_minus_square(b: Builder, x: int) -> int:
    return b.sub(_like(b, x, 1.0), b.mul(x, x))


def _one_plus_square(b: Builder, x: int) -> int:
    return b.add(_like(b, x, 1.0), b.mul(x, x))


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
def _(b, tangents, out, x, y, attrs=()):
    dx, dy = tangents
    if dy is None:
        return None if dx is None else b.div(dx, y)
    change = b.mul(out, dy)
    return b.div(b.neg(change) if dx is None else b.sub(dx, change), y)


@vjp(Op.DIV)
def _(b, ct, out, x, y, attrs=()):
    ct_x = b.div(ct, y)
    return ct_x, b.neg(b.mul(ct_x, out))


elementwise(
    Op.FMA,
    lambda x, y, z: x * y + z,
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
    [lambda b, out, x, y: b.mul(b.sign(x), b.copysign(_like(b, y, 1.0), y)), None],
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
    # x**0 is 1 for every x: its derivative is 0, also at x = 0
    zero, one = _like(b, y, 0.0), _like(b, y, 1.0)
    exponent = b.select(b.eq(y, zero), one, b.sub(y, one))
    return b.mul(y, b.pow(x, exponent))


def _power_by_exponent(b: Builder, out: int, x: int, y: int) -> int:
    # 0**y is constant for y > 0
    zero, one = _like(b, x, 0.0), _like(b, x, 1.0)
    at_zero = b.eq(x, zero)
    return b.select(at_zero, zero, b.mul(out, b.log(b.select(at_zero, one, x))))


elementwise(Op.POW, np.power, ir.libm("pow"), [_power_by_base, _power_by_exponent])
elementwise(
    Op.SQRT,
    np.sqrt,
    ir.intrinsic("llvm.sqrt"),
    [lambda b, out, x: Over(b.add(out, out))],
)
elementwise(
    Op.CBRT,
    np.cbrt,
    ir.libm("cbrt"),
    [lambda b, out, x: Over(b.mul(_like(b, x, 3.0), b.mul(out, out)))],
)


def _over_length(b: Builder, out: int, x: int) -> int:
    zero = _like(b, out, 0.0)
    at_origin = b.eq(out, zero)
    return b.select(at_origin, zero, b.div(x, b.select(at_origin, _like(b, out, 1.0), out)))


elementwise(
    Op.HYPOT,
    np.hypot,
    ir.libm("hypot"),
    [lambda b, out, x, y: _over_length(b, out, x), lambda b, out, x, y: _over_length(b, out, y)],
)

# --- exponentials and logarithms ---------------------------------------------------------------

elementwise(Op.EXP, np.exp, ir.libm("exp"), [lambda b, out, x: out])
elementwise(
    Op.EXPM1, np.expm1, ir.libm("expm1"), [lambda b, out, x: b.add(out, _like(b, out, 1.0))]
)
elementwise(
    Op.EXP2,
    np.exp2,
    ir.libm("exp2"),
    [lambda b, out, x: b.mul(out, _like(b, out, math.log(2.0)))],
)
elementwise(Op.LOG, np.log, ir.libm("log"), [lambda b, out, x: Over(x)])
elementwise(
    Op.LOG1P, np.log1p, ir.libm("log1p"), [lambda b, out, x: Over(b.add(_like(b, x, 1.0), x))]
)
elementwise(
    Op.LOG2,
    np.log2,
    ir.libm("log2"),
    [lambda b, out, x: Over(b.mul(x, _like(b, x, math.log(2.0))))],
)
elementwise(
    Op.LOG10,
    np.log10,
    ir.libm("log10"),
    [lambda b, out, x: Over(b.mul(x, _like(b, x, math.log(10.0))))],
)

# --- trigonometric and hyperbolic functions ----------------------------------------------------

elementwise(Op.SIN, np.sin, ir.libm("sin"), [lambda b, out, x: b.cos(x)])
elementwise(Op.COS, np.cos, ir.libm("cos"), [lambda b, out, x: b.neg(b.sin(x))])
elementwise(Op.TAN, np.tan, ir.libm("tan"), [lambda b, out, x: _one_plus_square(b, out)])
elementwise(
    Op.ASIN,
    np.arcsin,
    ir.libm("asin"),
    [lambda b, out, x: Over(b.sqrt(_one_minus_square(b, x)))],
)
elementwise(
    Op.ACOS,
    np.arccos,
    ir.libm("acos"),
    [lambda b, out, x: Over(b.neg(b.sqrt(_one_minus_square(b, x))))],
)
elementwise(Op.ATAN, np.arctan, ir.libm("atan"), [lambda b, out, x: Over(_one_plus_square(b, x))])
elementwise(
    Op.ATAN2,
    np.arctan2,
    ir.libm("atan2"),
    [
        lambda b, out, y, x: b.div(x, b.add(b.mul(x, x), b.mul(y, y))),
        lambda b, out, y, x: b.neg(b.div(y, b.add(b.mul(x, x), b.mul(y, y)))),
    ],
)
elementwise(Op.SINH, np.sinh, ir.libm("sinh"), [lambda b, out, x: b.cosh(x)])
elementwise(Op.COSH, np.cosh, ir.libm("cosh"), [lambda b, out, x: b.sinh(x)])
elementwise(Op.TANH, np.tanh, ir.libm("tanh"), [lambda b, out, x: _one_minus_square(b, out)])
elementwise(
    Op.ASINH,
    np.arcsinh,
    ir.libm("asinh"),
    [lambda b, out, x: Over(b.sqrt(_one_plus_square(b, x)))],
)
elementwise(
    Op.ACOSH,
    np.arccosh,
    ir.libm("acosh"),
    [lambda b, out, x: Over(b.sqrt(b.sub(b.mul(x, x), _like(b, x, 1.0))))],
)
elementwise(
    Op.ATANH, np.arctanh, ir.libm("atanh"), [lambda b, out, x: Over(_one_minus_square(b, x))]
)

# --- special functions -------------------------------------------------------------------------

elementwise(
    Op.ERF,
    _special("erf"),
    ir.libm("erf"),
    [lambda b, out, x: b.mul(_like(b, x, 2.0 / math.sqrt(math.pi)), b.exp(b.neg(b.mul(x, x))))],
)
elementwise(
    Op.LGAMMA,
    _special("gammaln"),
    ir.libm("lgamma"),
    [lambda b, out, x: b.polygamma(_like(b, x, 0.0), x)],
)


@ir.scalar_only
def _emit_polygamma(b: Any, n: Any, x: Any) -> Any:
    # psi, and for n >= 1: (-1)**(n + 1) n! zeta(n + 1, x)   (DLMF 5.15.2)
    order = b.fadd(n, ir.constant(n, 1.0))
    sign = ir.libm("pow")(b, ir.constant(n, -1.0), order)
    factorial = ir.libm("tgamma")(b, order)
    series = b.fmul(b.fmul(sign, factorial), emit_hurwitz_zeta(b, order, x))
    return b.select(b.fcmp_ordered("==", n, ir.constant(n, 0.0)), ir.libm("ckad_psi")(b, x), series)


elementwise(
    Op.POLYGAMMA,
    _special("polygamma"),
    _emit_polygamma,
    [None, lambda b, out, n, x: b.polygamma(b.add(n, _like(b, n, 1.0)), x)],
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
        # NaN wins, whichever operand it is
        first = b.or_(b.fcmp_ordered(relation, x, y), ir.is_nan(b, x))
        return b.select(first, x, y)

    def integers(b: Any, x: Any, y: Any) -> Any:
        return b.select(b.icmp_signed(relation, x, y), x, y)

    return {"ff->f": floats, "ii->i": integers}


def _tie(b: Builder, won: int, x: int, y: int) -> int:
    half, one, zero = (_like(b, x, v) for v in (0.5, 1.0, 0.0))
    return b.select(b.eq(x, y), half, b.select(won, one, zero))


elementwise(
    Op.MAXIMUM,
    np.maximum,
    _emit_extremum(">="),
    [
        lambda b, out, x, y: _tie(b, b.gt(x, y), x, y),
        lambda b, out, x, y: _tie(b, b.gt(y, x), y, x),
    ],
    cheap=True,
)
elementwise(
    Op.MINIMUM,
    np.minimum,
    _emit_extremum("<="),
    [
        lambda b, out, x, y: _tie(b, b.lt(x, y), x, y),
        lambda b, out, x, y: _tie(b, b.lt(y, x), y, x),
    ],
    cheap=True,
)

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

for _op, _numpy, _name in (
    (Op.AND, np.bitwise_and, "and_"),
    (Op.OR, np.bitwise_or, "or_"),
    (Op.XOR, np.bitwise_xor, "xor"),
):
    elementwise(_op, _numpy, {"ii->i": ir.method(_name)}, [None, None], cheap=True)

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
def _(b, tangents, out, c, x, y, attrs=()):
    _, dx, dy = tangents
    if dx is None and dy is None:
        return None
    zero = b.full_like(out, 0.0)
    return b.select(c, zero if dx is None else dx, zero if dy is None else dy)


@vjp(Op.SELECT)
def _(b, ct, out, c, x, y, attrs=()):
    zero = b.full_like(ct, 0.0)
    return None, b.select(c, ct, zero), b.select(c, zero, ct)


def _emit_to_bool(b: Any, x: Any) -> Any:
    return ir.compare_floats("!=")(b, x, ir.constant(x, 0.0))


def _emit_integer_to_bool(b: Any, x: Any) -> Any:
    return ir.compare_integers("!=")(b, x, ir.constant(x, 0))


def _emit_round32(b: Any, x: Any) -> Any:
    return b.fpext(b.fptrunc(x, _singles_like(x)), x.type)


def _singles_like(x: Any) -> Any:
    single = ir.llvm.FloatType()
    vector = isinstance(x.type, ir.llvm.VectorType)
    return ir.llvm.VectorType(single, x.type.count) if vector else single


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
def _(b, tangents, out, x, attrs=()):
    (dx,) = tangents
    if dx is None or not b.type(out).is_float:
        return None
    return b.convert(dx, type=b.type(out))


@vjp(Op.CONVERT)
def _(b, ct, out, x, attrs=()):
    return (b.convert(ct, type=b.type(x)) if b.type(x).is_float else None,)


# WRAP has no emitter: it can stop the program, so the engines bring their own kernel.
def _wrap(x: np.ndarray, n: int) -> np.ndarray:
    if np.any((x < -n) | (x >= n)):
        raise IndexError(f"index out of bounds for axis of size {n}")
    return np.where(x < 0, x + n, x)


rule(Op.WRAP, shape=same_shape, evaluate=lambda type, attrs, x: _wrap(x, attrs[0]))
from_partials(Op.WRAP, [None])
