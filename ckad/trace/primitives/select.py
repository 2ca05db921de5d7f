"""Choosing between values: where, select, clip; rounding and tests that have no ufunc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.tape.types import DType
from ckad.trace.dispatch import given, implements, needs_numbers, reject
from ckad.trace.primitives import elementwise as ufuncs
from ckad.trace.primitives.index import write_into
from ckad.trace.primitives.reduce import all_
from ckad.trace.values.apply import apply, astype, broadcast, finish, promote
from ckad.trace.values.tracer import Tracer, fresh, known, lift, value

_unknown_length = needs_numbers(
    "np.where(condition) with one argument", "Use np.where(condition, x, y)."
)


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None and y is None:
        numbers = known(condition)
        return _unknown_length() if numbers is None else tuple(map(lift, np.nonzero(numbers)))
    chosen, first, second = broadcast(astype(condition, bool), *promote(x, y))
    return fresh(value(apply(Op.SELECT, chosen, first, second)), scalar=False)


@implements(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tracer:
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ValueError(
            at_place("condlist and choicelist must have the same length, at least one")
        )
    *choices, result = promote(*choicelist, default)
    for condition, choice in reversed(list(zip(condlist, choices, strict=True))):
        result = where(condition, choice, result)
    return result


@implements(np.clip)
def clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    dtype: Any = None,
) -> Tracer:
    low = a_min if given(a_min) else min
    high = a_max if given(a_max) else max
    result = a if dtype is None else astype(a, dtype)
    if given(low):
        result = np.maximum(result, low)
    if given(high):
        result = np.minimum(result, high)
    return finish(np.positive(result) if result is a else result, out)


@implements(np.round, np.around)
def round_(a: Any, decimals: int = 0, out: Any = None) -> Tracer:
    a = lift(a)
    scale = 10.0 ** abs(decimals)
    if a.dtype == bool or decimals == 0:
        rounded = np.positive(a) if a.type.dtype is DType.I64 else np.rint(a)
    elif decimals < 0:
        rounded = astype(np.rint(a / scale) * scale, a.dtype)
    else:
        rounded = np.rint(a * scale) / scale if a.type.is_float else np.positive(a)
    return finish(rounded, out)


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Tracer:
    return finish(np.trunc(x), out)


@implements(np.nan_to_num)
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Tracer:
    reject(not copy, "np.nan_to_num with copy=False")
    x = lift(x)
    if not x.type.is_float:
        return fresh(value(x))
    limits = np.finfo(x.dtype)
    kept = where(np.isnan(x), nan, x)
    kept = where(np.equal(x, np.inf), limits.max if posinf is None else posinf, kept)
    kept = where(np.equal(x, -np.inf), limits.min if neginf is None else neginf, kept)
    return fresh(value(kept))


@implements(np.isclose)
def isclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Tracer:
    b = lift(b) if lift(b).type.is_float else astype(b, np.float64)
    near = np.logical_and(np.abs(np.subtract(a, b)) <= atol + rtol * np.abs(b), np.isfinite(b))
    close = np.logical_or(near, np.equal(a, b))
    if equal_nan:
        close = np.logical_or(close, np.logical_and(np.isnan(a), np.isnan(b)))
    return close


@implements(np.allclose)
def allclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Tracer:
    return all_(isclose(a, b, rtol, atol, equal_nan))


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    new = lift(src)
    if not isinstance(dst, Tracer):
        finish(new, dst)
    weak = not isinstance(src, (Tracer, np.ndarray, np.generic))
    if not weak and not np.can_cast(new.dtype, dst.dtype, casting):
        raise TypeError(
            at_place(f"cannot copy {new.dtype} into {dst.dtype} with casting={casting!r}")
        )
    write_into(dst, new if where is True else np.where(where, astype(new, dst.dtype), dst))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    x, y = lift(a1), lift(a2)
    if x.shape != y.shape:
        return False
    same = np.equal(x, y)
    return all_(same | (np.isnan(x) & np.isnan(y)) if equal_nan else same)


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    try:
        return all_(np.equal(a1, a2))
    except ValueError:
        return False


@implements(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Tracer:
    return finish(np.equal(x, np.inf), out)


@implements(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Tracer:
    return finish(np.equal(x, -np.inf), out)


def _heaviside(x: Tracer, at_zero: Tracer) -> Tracer:
    step = where(np.less(x, 0), 0, where(np.equal(x, 0), at_zero, 1))
    return fresh(value(astype(where(np.isnan(x), x, step), x.dtype)))


ufuncs.register(np.heaviside, _heaviside)


@implements(np.sinc)
def sinc(x: Any) -> Tracer:
    y = np.pi * where(np.equal(x, 0), 1.0e-20, x)
    return np.sin(y) / y


# --- the real numbers as complex ones ----------------------------------------------------------


@implements(np.real)
def real(val: Any) -> Tracer:
    return val


@implements(np.imag)
def imag(val: Any) -> Tracer:
    return np.zeros_like(val) if not val.scalar else fresh(value(np.zeros_like(val)))
