"""NumPy's (and SciPy's) ufuncs on tracers: one table row each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ckad.errors import UnsupportedFunctionError
from ckad.rules import facts
from ckad.tape.ops import Op
from ckad.tape.types import DType
from ckad.trace.arrays import Array, Casting
from ckad.trace.dispatch import put
from ckad.trace.handling import handling
from ckad.trace.integers import powers
from ckad.trace.integers.affine import is_at_least
from ckad.trace.memory.context import current
from ckad.trace.memory.known import numbers_of
from ckad.trace.memory.layout import plain_layout
from ckad.trace.values.apply import (
    apply,
    astype,
    broadcast,
    check_cast,
    of_float,
    of_floats,
    of_rows,
    operand_rows,
    operands,
    store,
    without_lists,
)
from ckad.trace.values.tracer import Tracer, fresh, lift, value

Lowering = Callable[..., Array]


def _finish(result: Tracer, out: Any, where: Any, casting: Casting = "same_kind") -> Tracer:
    if where is not True:
        # what NumPy leaves undefined is 0, as in np.empty
        old = constant_like(result, 0) if out is None else out
        check_cast(result, old, casting)
        mask, new, kept = broadcast(lift(where), astype(result, old.dtype), old)
        result = apply(Op.SELECT, mask, new, kept)
    return result if out is None else store(out, result, casting)


def _result(xs: Sequence[Any], result: Tracer) -> Tracer:
    """``result`` in NumPy's memory layout; without axes it is a NumPy scalar."""
    return plain_layout(xs, result) if result.shape else fresh(value(result))


#: ufunc -> the ops that compute it, which say where it is finite; that for numbers first
OPS: dict[Any, tuple[Op, ...]] = {}


def _harmless(ufunc: Any, xs: Sequence[Tracer], where: Any) -> list[Tracer]:
    """The operands, where the ufunc is not computed replaced by numbers in its domain.

    Else a derivative that is infinite there would spoil the others: 0 times infinity is NaN.
    """
    ops = OPS.get(ufunc)
    if where is True or (ops is not None and facts.LINEAR.issuperset(ops[:1])):
        return list(xs)
    inside = facts.harmless(*ops or ())
    return [
        apply(Op.SELECT, *broadcast(lift(where), x, constant_like(x, inside)))
        if x.type.is_float
        else x
        for x in broadcast(*xs, lift(where))[:-1]
    ]


@dataclass(frozen=True)
class OfOp:
    """What one row computes; bools may have an op of their own."""

    code: tuple[Op, Op]

    def __call__(self, *xs: Tracer) -> Tracer:
        return apply(self.code[xs[0].dtype == bool], *xs)


def by_op(op: Op, on_bool: Op | None = None) -> OfOp:
    return OfOp((op, op if on_bool is None else on_bool))


#: NumPy's loops over float64, and what appends a row for them.
_LOOPS = frozenset({"d->d", "d->?", "dd->d", "dd->?"})
_OF_FEW: dict[int, Callable[..., Tracer | None]] = {1: of_float, 2: of_floats}


def register(ufunc: Any, lowering: Lowering, ops: tuple[Op, ...] | None = None) -> None:
    """``lowering`` gets operands of NumPy's loop dtypes, broadcast to one shape."""

    code = lowering.code if isinstance(lowering, OfOp) else None
    of_few = _OF_FEW.get(ufunc.nin) if _LOOPS.intersection(ufunc.types) else None

    def call(
        *xs: Any,
        out: Any = None,
        where: Any = True,
        dtype: Any = None,
        casting: Casting = "same_kind",
        **options: Any,
    ) -> Tracer:
        if "raise" in handling():
            if where is True:
                _raised_by_constants(ufunc, xs, dtype)
            with np.errstate(all="ignore"):  # what a formula computes between is its own affair
                return call(*xs, out=out, where=where, dtype=dtype, casting=casting, **options)
        if code is not None and out is None and where is True and dtype is None and not options:
            found = None if of_few is None else of_few(code[0], *xs)
            if found is not None:
                return found
            trace, rows = current(), operand_rows(ufunc, xs)
            op = code[trace.builder.type(rows[0]).dtype is DType.BOOL]
            return of_rows(xs, op, tuple(rows), trace)
        if options:
            refuse_options(ufunc, options)
        ins = _harmless(ufunc, operands(ufunc, xs, dtype, casting), where)
        return _finish(_result(xs, lowering(*ins)), out, where, casting)

    put(ufunc, call)
    if ops is not None:
        OPS[ufunc] = ops


def _raised_by_constants(ufunc: Any, xs: Sequence[Any], dtype: Any) -> None:
    """Raise what NumPy raises of numbers that are known (``np.errstate(all="raise")``)."""
    numbers = []
    for x in without_lists(xs):
        found = numbers_of(current(), value(x)) if isinstance(x, Tracer) else x
        if found is None:
            return
        numbers.append(found.item() if isinstance(x, Tracer) and x.weak else found)
    ufunc(*numbers, dtype=dtype)


def refuse_options(ufunc: Any, options: dict[str, Any]) -> None:
    """``order`` and ``subok`` change nothing in the numbers; other options have no rule."""
    unknown = options.keys() - {"subok"}
    if options.get("order", "K") in ("K", "C"):
        unknown -= {"order"}
    if unknown:
        raise UnsupportedFunctionError.here(
            f"ckad has no rule for np.{ufunc.__name__} with {min(unknown)}=. Leave it out."
        )


#: Ufuncs whose op has their name, and those that have ops of other names.
_OF_ONE_NAME = """sign sqrt cbrt exp expm1 exp2 log log1p log2 log10 sin cos tan sinh cosh tanh
    hypot copysign"""
for _ufunc, _code in {
    **{getattr(np, name): Op[name.upper()] for name in _OF_ONE_NAME.split()},
    np.divide: Op.DIV,
    np.floor_divide: Op.FLOORDIV,
    np.remainder: Op.MOD,
    np.negative: Op.NEG,
    np.arcsin: Op.ASIN,
    np.arccos: Op.ACOS,
    np.arctan: Op.ATAN,
    np.arctan2: Op.ATAN2,
    np.arcsinh: Op.ASINH,
    np.arccosh: Op.ACOSH,
    np.arctanh: Op.ATANH,
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
    register(_ufunc, by_op(_code), (_code,))

for _ufunc, _code, _on_bool in (
    (np.add, Op.ADD, Op.OR),
    (np.subtract, Op.SUB, Op.XOR),
    (np.multiply, Op.MUL, Op.AND),
    (np.maximum, Op.MAXIMUM, Op.OR),
    (np.minimum, Op.MINIMUM, Op.AND),
):
    register(_ufunc, by_op(_code, _on_bool), (_code, _on_bool))


def _same(x: Tracer) -> Tracer:
    return fresh(value(x))


def _unless_integer(op: int) -> Lowering:
    return lambda x: apply(op, x) if x.type.is_float else _same(x)


for _name in ("floor", "ceil", "trunc", "rint"):
    register(getattr(np, _name), _unless_integer(Op[_name.upper()]), (Op[_name.upper()],))


def constant_like(x: Tracer, number: float) -> Tracer:
    return fresh(current().builder.full(x.type, number))


register(np.positive, _same, ())
register(np.conjugate, _same, ())
register(np.absolute, lambda x: _same(x) if x.dtype == bool else apply(Op.ABS, x), (Op.ABS,))
register(np.fabs, by_op(Op.ABS))
register(np.square, lambda x: apply(Op.AND if x.dtype == bool else Op.MUL, x, x), (Op.MUL,))


def _reciprocal(x: Tracer) -> Array:
    if x.type.is_float:
        return apply(Op.DIV, constant_like(x, 1.0), x)
    return np.where(x == 0, np.iinfo(np.int64).min, np.where(np.abs(x) == 1, x, 0))


register(np.reciprocal, _reciprocal)
for _ufunc in (np.deg2rad, np.radians):
    register(_ufunc, lambda x: apply(Op.MUL, x, constant_like(x, math.pi / 180)))
for _ufunc in (np.rad2deg, np.degrees):
    register(_ufunc, lambda x: apply(Op.MUL, x, constant_like(x, 180 / math.pi)))


def _fmod(x: Tracer, y: Tracer) -> Array:
    """The remainder of the sizes, exact, with the sign of ``x``; derivative 1 by x at 0 too."""
    if not x.type.is_float:
        return np.sign(x) * (np.abs(x) % np.abs(y))
    negative = np.signbit(x)
    size = np.where(negative, -x, x) % np.abs(y)
    return np.where(negative, -size, size)


register(np.fmod, _fmod)


def _truth(x: Tracer) -> Tracer:
    return astype(x, bool)


register(np.logical_and, lambda x, y: apply(Op.AND, _truth(x), _truth(y)), (Op.AND,))
register(np.logical_or, lambda x, y: apply(Op.OR, _truth(x), _truth(y)), (Op.OR,))
register(np.logical_xor, lambda x, y: apply(Op.XOR, _truth(x), _truth(y)), (Op.XOR,))
register(np.logical_not, lambda x: apply(Op.NOT, _truth(x)), (Op.NOT,))
register(
    np.invert,
    lambda x: apply(Op.NOT, x) if x.dtype == bool else apply(Op.XOR, x, constant_like(x, -1)),
    (Op.NOT, Op.XOR),
)


def _float_test(op: int) -> Lowering:
    return lambda x: apply(op, x if x.type.is_float else astype(x, np.float64))


register(np.isnan, _float_test(Op.ISNAN), (Op.ISNAN,))
register(np.isinf, _float_test(Op.ISINF), (Op.ISINF,))
register(
    np.isfinite,
    lambda x: np.logical_not(np.logical_or(np.isnan(x), np.isinf(x))),
    (Op.ISNAN, Op.ISINF),
)
register(np.signbit, lambda x: np.less(np.copysign(constant_like(x, 1.0), x), 0))


def _fextremum(ufunc: Any) -> Lowering:
    """Of equal operands the first, of which -0.0 and 0.0 are two."""
    return lambda x, y: np.where(np.isnan(x), y, np.where(np.isnan(y), x, ufunc(y, x)))


register(np.fmax, _fextremum(np.maximum))
register(np.fmin, _fextremum(np.minimum))


_LN2 = math.log(2)


def _logaddexp(x: Tracer, y: Tracer) -> Array:
    """Chosen by one comparison: at a tie the derivatives of every order are those of one side."""
    first = np.greater_equal(x, y)
    high, low = np.where(first, x, y), np.where(first, y, x)
    # equal infinities have no difference
    same = np.logical_and(np.equal(high, low), np.isinf(high))
    return high + np.log1p(np.exp(np.where(same, 0.0, low - high)))


register(np.logaddexp, _logaddexp)
register(np.logaddexp2, lambda x, y: _logaddexp(x * _LN2, y * _LN2) / _LN2)
register(np.ldexp, lambda x, n: x * np.exp2(astype(n, x.dtype)))


# --- powers ------------------------------------------------------------------------------------


def _is_float(x: Any) -> bool:
    return isinstance(x, Tracer) and x.type.is_float


def _power(x: Any, y: Any, dtype: Any = None, where: Any = True, **options: Any) -> Array:
    keeps = dtype is None and (type(y) is int or (type(y) is float and _is_float(x)))
    if keeps and (y == 0.5 or (y == 2 and isinstance(x, Tracer))):
        return (np.square if y == 2 else np.sqrt)(x, where=where, **options)
    out, casting = options.pop("out", None), options.pop("casting", "same_kind")
    refuse_options(np.power, options)
    base, exponent = _harmless(np.power, operands(np.power, (x, y), dtype, casting), where)
    if base.type.dtype is DType.I64:
        stops = all(type(n) is int or (type(n) is Tracer and n.weak) for n in (x, y))
        return _finish(_result((x, y), powers.power(base, y, stops)), out, where, casting)
    return _finish(_result((x, y), apply(Op.POW, base, exponent)), out, where, casting)


put(np.power, _power)
put(np.float_power, lambda x, y, **kw: _power(x, y, dtype=np.float64, **kw))


# --- shifts ------------------------------------------------------------------------------------

#: 2**k for the shifts that stay in int64
_POWERS_OF_TWO = np.left_shift(1, np.arange(63))


def _power_of_two(exponent: Tracer) -> Tracer:
    """The program stops where the exponent is not among these; a negative one is none of them."""
    is_held = exponent.scalar and is_at_least(exponent, 0)
    at = exponent if is_held else lift(np.where(exponent < 0, 63, exponent))
    places = apply(Op.WRAP, at, attrs=(len(_POWERS_OF_TWO),))
    return apply(Op.GATHER, lift(_POWERS_OF_TWO), places, attrs=(0,))


register(np.left_shift, lambda x, y: apply(Op.MUL, x, _power_of_two(y)))
register(np.right_shift, lambda x, y: apply(Op.FLOORDIV, x, _power_of_two(y)))


# --- two results -------------------------------------------------------------------------------


def _of_two(first: Callable[..., Tracer], second: Callable[..., Tracer]) -> Any:
    def call(*xs: Any, out: Any = None, **options: Any) -> tuple[Tracer, Tracer]:
        pair = first(*xs, **options), second(*xs, **options)
        targets = out if isinstance(out, tuple) else (out, None)
        one, other = (
            x if target is None else store(target, x)
            for x, target in zip(pair, targets, strict=True)
        )
        return one, other

    return call


put(np.divmod, _of_two(np.floor_divide, np.remainder))


def _finite(x: Any) -> Any:
    x = operands(np.modf, (x,))[0]
    return np.where(np.isinf(x), np.copysign(0.0, x), x)[()]  # with the fraction 0


put(
    np.modf,
    _of_two(
        lambda x, **kw: plain_layout([x], np.fmod(_finite(x), 1.0, **kw)),
        lambda x, **kw: plain_layout([x], np.trunc(operands(np.modf, (x,))[0], **kw)),
    ),
)
