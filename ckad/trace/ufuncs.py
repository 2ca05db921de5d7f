"""NumPy's (and SciPy's) ufuncs on tracers: one table row each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.errors import ConcreteValueError, DtypeError, UnsupportedFunctionError
from ckad.tape.ops import Op
from ckad.tape.types import DType
from ckad.trace.apply import apply, astype, broadcast, operands, plain_layout, reshape_value
from ckad.trace.context import current
from ckad.trace.tracer import UFUNC_METHODS, UFUNCS, Tracer, assign, fresh, lift, value
from ckad.trace.where import at_place

Lowering = Callable[..., Tracer]


def store(out: Any, result: Tracer) -> Tracer:
    """Write ``result`` into ``out`` by NumPy's ``same_kind`` rule and return ``out``."""
    if not isinstance(out, Tracer):
        raise ConcreteValueError(
            at_place(
                "a traced value is written into a plain NumPy array. Make the array inside the "
                "function with np.zeros_like(x) or np.zeros(n, like=x)."
            )
        )
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise DtypeError(
            at_place(
                f"cannot write {result.dtype} into an array of {out.dtype}: numbers would be lost. "
                "Convert with .astype, or make the array a float array."
            )
        )
    if np.broadcast_shapes(result.shape, out.shape) != out.shape:
        raise ValueError(
            at_place(f"shape {result.shape} does not fit into out of shape {out.shape}")
        )
    (fitted,) = [astype(result, out.dtype)]
    assign(out, current().builder.broadcast_to(value(fitted), out.shape))
    return out


def _finish(result: Tracer, out: Any, where: Any) -> Tracer:
    if where is not True:
        if out is None:
            raise UnsupportedFunctionError(
                at_place(
                    "where= leaves elements undefined without out=. Pass out=, or use np.where."
                )
            )
        mask, new, old = broadcast(lift(where), astype(result, out.dtype), out)
        result = apply(Op.SELECT, mask, new, old)
    return result if out is None else store(out, result)


def _result(xs: Sequence[Any], result: Tracer) -> Tracer:
    """``result`` in NumPy's memory layout; without axes it is a NumPy scalar."""
    return plain_layout(xs, result) if result.shape else fresh(value(result))


def register(ufunc: Any, lowering: Lowering) -> None:
    """``lowering`` gets operands of NumPy's loop dtypes, broadcast to one shape."""

    def call(*xs: Any, out: Any = None, where: Any = True, dtype: Any = None, casting: Any = None):
        return _finish(_result(xs, lowering(*operands(ufunc, xs, dtype))), out, where)

    UFUNCS[ufunc] = call


def by_op(op: int) -> Lowering:
    return lambda *xs: apply(op, *xs)


def _by_kind(op: int, on_bool: int) -> Lowering:
    return lambda *xs: apply(on_bool if xs[0].dtype == bool else op, *xs)


for _ufunc, _code in {
    np.divide: Op.DIV,
    np.floor_divide: Op.FLOORDIV,
    np.remainder: Op.MOD,
    np.negative: Op.NEG,
    np.sign: Op.SIGN,
    np.sqrt: Op.SQRT,
    np.cbrt: Op.CBRT,
    np.exp: Op.EXP,
    np.expm1: Op.EXPM1,
    np.exp2: Op.EXP2,
    np.log: Op.LOG,
    np.log1p: Op.LOG1P,
    np.log2: Op.LOG2,
    np.log10: Op.LOG10,
    np.sin: Op.SIN,
    np.cos: Op.COS,
    np.tan: Op.TAN,
    np.arcsin: Op.ASIN,
    np.arccos: Op.ACOS,
    np.arctan: Op.ATAN,
    np.arctan2: Op.ATAN2,
    np.sinh: Op.SINH,
    np.cosh: Op.COSH,
    np.tanh: Op.TANH,
    np.arcsinh: Op.ASINH,
    np.arccosh: Op.ACOSH,
    np.arctanh: Op.ATANH,
    np.hypot: Op.HYPOT,
    np.copysign: Op.COPYSIGN,
    np.equal: Op.EQ,
    np.not_equal: Op.NE,
    np.less: Op.LT,
    np.less_equal: Op.LE,
    np.greater: Op.GT,
    np.greater_equal: Op.GE,
    np.bitwise_and: Op.AND,
    np.bitwise_or: Op.OR,
    np.bitwise_xor: Op.XOR,
}.items():
    register(_ufunc, by_op(_code))

for _ufunc, _code, _on_bool in (
    (np.add, Op.ADD, Op.OR),
    (np.subtract, Op.SUB, Op.XOR),
    (np.multiply, Op.MUL, Op.AND),
    (np.maximum, Op.MAXIMUM, Op.OR),
    (np.minimum, Op.MINIMUM, Op.AND),
):
    register(_ufunc, _by_kind(_code, _on_bool))


def _same(x: Tracer) -> Tracer:
    return fresh(value(x))


def _unless_integer(op: int) -> Lowering:
    return lambda x: apply(op, x) if x.type.is_float else _same(x)


for _ufunc, _code in {
    np.floor: Op.FLOOR,
    np.ceil: Op.CEIL,
    np.trunc: Op.TRUNC,
    np.rint: Op.RINT,
}.items():
    register(_ufunc, _unless_integer(_code))


def constant_like(x: Tracer, number: float) -> Tracer:
    return fresh(current().builder.full(x.type, number))


register(np.positive, _same)
register(np.conjugate, _same)
register(np.absolute, lambda x: _same(x) if x.dtype == bool else apply(Op.ABS, x))
register(np.fabs, by_op(Op.ABS))
register(np.square, lambda x: apply(Op.AND if x.dtype == bool else Op.MUL, x, x))
register(np.reciprocal, lambda x: apply(Op.DIV, constant_like(x, 1.0), x))
register(np.deg2rad, lambda x: apply(Op.MUL, x, constant_like(x, math.pi / 180)))
register(np.radians, lambda x: apply(Op.MUL, x, constant_like(x, math.pi / 180)))
register(np.rad2deg, lambda x: apply(Op.MUL, x, constant_like(x, 180 / math.pi)))
register(np.degrees, lambda x: apply(Op.MUL, x, constant_like(x, 180 / math.pi)))


def _fmod(x: Tracer, y: Tracer) -> Tracer:
    """The remainder of the sizes, exact, with the sign of ``x``; derivative 1 by x at 0 too."""
    if not x.type.is_float:
        return np.sign(x) * (np.abs(x) % np.abs(y))
    negative = np.signbit(x)
    size = np.where(negative, -x, x) % np.abs(y)
    return np.where(negative, -size, size)


register(np.fmod, _fmod)


def _truth(x: Tracer) -> Tracer:
    return astype(x, bool)


register(np.logical_and, lambda x, y: apply(Op.AND, _truth(x), _truth(y)))
register(np.logical_or, lambda x, y: apply(Op.OR, _truth(x), _truth(y)))
register(np.logical_xor, lambda x, y: apply(Op.XOR, _truth(x), _truth(y)))
register(np.logical_not, lambda x: apply(Op.NOT, _truth(x)))
register(
    np.invert,
    lambda x: apply(Op.NOT, x) if x.dtype == bool else apply(Op.XOR, x, constant_like(x, -1)),
)


def _float_test(op: int) -> Lowering:
    return lambda x: apply(op, x if x.type.is_float else astype(x, np.float64))


register(np.isnan, _float_test(Op.ISNAN))
register(np.isinf, _float_test(Op.ISINF))
register(np.isfinite, lambda x: np.logical_not(np.logical_or(np.isnan(x), np.isinf(x))))
register(np.signbit, lambda x: np.less(np.copysign(constant_like(x, 1.0), x), 0))


def _fextremum(ufunc: Any) -> Lowering:
    return lambda x, y: np.where(np.isnan(x), y, np.where(np.isnan(y), x, ufunc(x, y)))


register(np.fmax, _fextremum(np.maximum))
register(np.fmin, _fextremum(np.minimum))


def _logaddexp(x: Tracer, y: Tracer) -> Tracer:
    high, low = np.maximum(x, y), np.minimum(x, y)
    # equal infinities have no difference
    gap = np.where(np.equal(high, low), 0.0, low - high)
    return high + np.log1p(np.exp(gap))


register(np.logaddexp, _logaddexp)


# --- powers ------------------------------------------------------------------------------------


def _integer_power(x: Tracer, n: int) -> Tracer:
    """Repeated squaring; n >= 0."""
    result, square = constant_like(x, 1), x
    while n:
        result = result * square if n & 1 else result
        n >>= 1
        square = square * square if n else square
    return result


def _is_float(x: Any) -> bool:
    return isinstance(x, Tracer) and x.type.is_float


def _power(
    x: Any, y: Any, out: Any = None, where: Any = True, dtype: Any = None, casting: Any = None
):
    if type(y) in (int, float) and y == 2 and isinstance(x, Tracer) and dtype is None:
        return UFUNCS[np.square](x, out=out, where=where)
    if type(y) in (int, float) and y == 0.5 and _is_float(x) and dtype is None:
        return UFUNCS[np.sqrt](x, out=out, where=where)
    base, exponent = operands(np.power, (x, y), dtype)
    if base.type.dtype is DType.I64:
        return _finish(_result((x, y), _power_of_integers(base, y)), out, where)
    return _finish(_result((x, y), apply(Op.POW, base, exponent)), out, where)


def _power_of_integers(base: Tracer, exponent: Any) -> Tracer:
    if isinstance(exponent, Tracer) or np.ndim(exponent) or exponent < 0:
        raise UnsupportedFunctionError(
            at_place(
                "an integer array to a power that is not a non-negative Python int. "
                "Convert the base with .astype(np.float64)."
            )
        )
    return _integer_power(base, int(exponent))


UFUNCS[np.power] = _power
UFUNCS[np.float_power] = lambda x, y, **kw: _power(x, y, dtype=np.float64, **kw)


def _divmod(x: Any, y: Any) -> tuple[Tracer, Tracer]:
    return np.floor_divide(x, y), np.remainder(x, y)


UFUNCS[np.divmod] = _divmod

# --- methods of ufuncs -------------------------------------------------------------------------

for _ufunc, _function in (
    (np.add, np.sum),
    (np.multiply, np.prod),
    (np.maximum, np.max),
    (np.minimum, np.min),
    (np.logical_and, np.all),
    (np.logical_or, np.any),
):

    def _reduce(
        x: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        f: Any = _function,
        **options: Any,
    ):
        if dtype is not None:
            options["dtype"] = dtype
        return f(x, axis=axis, out=out, **options)

    UFUNC_METHODS[_ufunc, "reduce"] = _reduce

for _ufunc, _function in ((np.add, np.cumsum), (np.multiply, np.cumprod)):

    def _accumulate(x: Any, axis: Any = 0, dtype: Any = None, out: Any = None, f: Any = _function):
        if not np.ndim(x):
            raise TypeError(at_place("cannot accumulate on a scalar"))
        return f(x, axis=axis, dtype=dtype, out=out)

    UFUNC_METHODS[_ufunc, "accumulate"] = _accumulate


def _outer_of(ufunc: Any) -> Lowering:
    def outer(x: Any, y: Any, **options: Any) -> Tracer:
        x, y = lift(x), lift(y)
        spread = reshape_value(x, (*x.shape, *[1] * len(y.shape)))
        return plain_layout((x, y), UFUNCS[ufunc](spread, y, **options))

    return outer


for _ufunc in list(UFUNCS):
    if getattr(_ufunc, "nin", 0) == 2:
        UFUNC_METHODS[_ufunc, "outer"] = _outer_of(_ufunc)


# --- Python's operators ------------------------------------------------------------------------


def _operator(ufunc: Any, turned: bool = False) -> Any:
    def method(self: Tracer, other: Any = None) -> Any:
        return ufunc(other, self) if turned else ufunc(self, other)

    return method


def _in_place(ufunc: Any) -> Any:
    # NumPy scalars are immutable: x += 1 binds the name to a new one.
    def method(self: Tracer, other: Any) -> Any:
        return ufunc(self, other) if self.scalar else ufunc(self, other, out=self)

    return method


for _name, _ufunc in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "matmul": np.matmul,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "divmod": np.divmod,
}.items():
    setattr(Tracer, f"__{_name}__", _operator(_ufunc))
    setattr(Tracer, f"__r{_name}__", _operator(_ufunc, turned=True))
    if _name != "divmod":
        setattr(Tracer, f"__i{_name}__", _in_place(_ufunc))

for _name, _ufunc in {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}.items():
    setattr(Tracer, f"__{_name}__", _operator(_ufunc))

for _name, _ufunc in {
    "neg": np.negative,
    "pos": np.positive,
    "abs": np.absolute,
    "invert": np.invert,
}.items():
    setattr(Tracer, f"__{_name}__", lambda self, f=_ufunc: f(self))

Tracer.__hash__ = object.__hash__  # type: ignore[method-assign]
