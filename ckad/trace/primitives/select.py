"""Choosing between values: where, select, clip; rounding and tests that have no ufunc."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.tape.types import DType
from ckad.trace.arrays import Array, Casting
from ckad.trace.dispatch import given, implements
from ckad.trace.primitives import elementwise as ufuncs
from ckad.trace.primitives.index import write_into
from ckad.trace.values.apply import apply, astype, broadcast, finish, promote
from ckad.trace.values.tracer import Tracer, fresh, lift, value


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None and y is None:
        return np.nonzero(lift(condition))
    chosen, first, second = broadcast(astype(condition, bool), *promote(x, y))
    return fresh(value(apply(Op.SELECT, chosen, first, second)), scalar=False)


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
    a = lift(a) if dtype is None else astype(a, dtype)
    result = a
    if given(low):
        result = _bounded(np.maximum, result, low)
    if given(high):
        result = _bounded(np.minimum, result, high)
    return finish(np.positive(result) if result is a else result, out)


def _bounded(ufunc: Any, x: Any, bound: Any) -> Any:
    """Of -0.0 and 0.0 the one that NumPy takes: ``x``, unless there is a bound for each element."""
    return ufunc(x, bound) if np.ndim(bound) else ufunc(bound, x)


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
    return finish(lift(np.trunc(lift(x))), out)


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: Casting = "same_kind", where: Any = True) -> None:
    new = lift(src)
    if not isinstance(dst, Tracer):
        finish(new, dst)
    weak = not isinstance(src, (Tracer, np.ndarray, np.generic))
    if not weak and not np.can_cast(new.dtype, dst.dtype, casting):
        raise TypeError(
            at_place(f"cannot copy {new.dtype} into {dst.dtype} with casting={casting!r}")
        )
    fitted: Array = new if where is True else np.where(where, astype(new, dst.dtype), dst)
    write_into(dst, fitted)


def _heaviside(x: Tracer, at_zero: Tracer) -> Tracer:
    step = where(np.less(x, 0), 0, where(np.equal(x, 0), at_zero, 1))
    return fresh(value(astype(where(np.isnan(x), x, step), x.dtype)))


ufuncs.register(np.heaviside, _heaviside)


#: The coefficients of sin(y) / y - 1 as a polynomial in y * y: near 0 the derivatives of the
#: quotient are lost to cancellation, those of the polynomial are not.
_SINC = [(-1) ** k / math.factorial(2 * k + 1) for k in range(1, 8)]


@implements(np.sinc)
def sinc(x: Any) -> Tracer:
    y = np.pi * lift(x)
    near = np.less(np.abs(y), 0.45)
    square, away = where(near, y * y, 0.0), where(near, 1.0, y)
    series = square * 0.0
    for c in reversed(_SINC):
        series = (series + c) * square
    found = where(near, series + 1.0, np.sin(away) / away)
    return found if found.shape else fresh(value(found))


@implements(np.i0)
def i0(x: Any) -> Tracer:
    x = lift(x)
    x = x if x.dtype.kind == "f" else astype(x, np.float64)
    return fresh(value(apply(Op.BESSEL_I, ufuncs.constant_like(x, 0.0), x)), scalar=False)


# --- the real numbers as complex ones ----------------------------------------------------------


@implements(np.real)
def real(val: Any) -> Array:
    return lift(val) if isinstance(val, (list, tuple)) else val


@implements(np.imag)
def imag(val: Any) -> Tracer:
    val = lift(val)
    return np.zeros_like(val) if not val.scalar else fresh(value(np.zeros_like(val)))
