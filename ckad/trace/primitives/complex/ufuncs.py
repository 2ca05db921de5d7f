"""NumPy's ufuncs on complex numbers, written as arithmetic on their real and imaginary parts.

Formulas are those of NumPy's own loops where these decide about branch cuts and overflow, signs of
zero included: a real operand is one with imaginary part +0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ckad.errors import DtypeError
from ckad.place import at_place
from ckad.trace import arrays
from ckad.trace.arrays import Array
from ckad.trace.dispatch import COMPLEX, EVERY, derives, put, reject, ufunc_cell
from ckad.trace.memory.layout import plain_layout
from ckad.trace.values.apply import store
from ckad.trace.values.complex import (
    ComplexTracer,
    as_complex,
    halves,
    part_type,
    settled,
    together,
)
from ckad.trace.values.part import Part
from ckad.trace.values.tracer import Tracer, fresh, lift, value

Complex = ComplexTracer
Lowering = Callable[..., Any]
L = TypeVar("L", bound=Lowering)
LOWERINGS: dict[Any, Lowering] = {}
#: Integer powers up to this size are products, as in NumPy.
LARGEST_POWER = 100


def lowers(*functions: Any) -> Callable[[L], L]:
    """Decorator: what a ufunc does with complex operands of one shape and dtype."""

    def register(function: L) -> L:
        LOWERINGS.update(dict.fromkeys(functions, function))
        return function

    return register


# --- one call ----------------------------------------------------------------------------------


def call(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """What ``ufunc`` gives where an operand, ``out`` or ``dtype=`` is complex."""
    target = options.pop("out", None)
    if method != "__call__":
        return _method(ufunc, method, inputs, target, options)
    where, dtype = options.pop("where", True), options.pop("dtype", None)
    options.pop("casting", None)
    reject(options, f"np.{ufunc.__name__} of complex numbers with {min(options, default='')}=")
    result = _computed(ufunc, inputs, dtype)
    if where is not True:
        reject(target is None, f"np.{ufunc.__name__} with where= and without out=")
        result = np.where(where, result, target)
    return stored(target, result)


def _computed(ufunc: Any, xs: Sequence[Any], dtype: Any) -> Any:
    """The result of an elementwise ufunc in NumPy's dtype and memory layout."""
    shortcut = _shortcut(ufunc, xs) if dtype is None else None
    if shortcut is not None:
        return shortcut
    dtypes = _loop(ufunc, xs, dtype)
    if dtypes[0].kind != "c":  # it is out= alone that is complex
        complex_operand = any(isinstance(x, ComplexTracer) for x in xs)
        reject(complex_operand, f"np.{ufunc.__name__} of complex numbers")
        return ufunc(*xs)
    if ufunc not in LOWERINGS:
        reject(True, f"np.{ufunc.__name__} of complex numbers")
    operands = [as_complex(x, part_type(d)) for x, d in zip(xs, dtypes, strict=False)]
    result = LOWERINGS[ufunc](*together(*operands))
    return _finished(operands, result)


def _finished(xs: Sequence[Complex], result: Any) -> Any:
    if isinstance(result, ComplexTracer):
        reals = (_finished(xs, part) for part in result.parts)
        return ComplexTracer(*reals)
    if isinstance(result, Part):
        return result
    return plain_layout([x.parts[0] for x in xs], result) if result.shape else fresh(value(result))


def _loop(ufunc: Any, xs: Sequence[Any], dtype: Any) -> tuple[np.dtype, ...]:
    if dtype is not None:
        return tuple([np.dtype(dtype)] * (ufunc.nin + ufunc.nout))
    if ufunc in LOGICAL:  # they take operands of any two dtypes
        return tuple([np.dtype(complex)] * ufunc.nin)
    try:
        found: tuple[np.dtype, ...] = ufunc.resolve_dtypes(
            (*map(_loop_type, xs), *[None] * ufunc.nout)
        )
    except TypeError as error:
        raise TypeError(at_place(f"np.{ufunc.__name__} of complex numbers: {error}")) from None
    return found


def _loop_type(x: Any) -> Any:
    """The dtype of an operand; Python numbers are weak."""
    if type(x) in (int, float, complex):
        return type(x)
    if isinstance(x, Tracer) and x.weak:
        return float if x.type.is_float else int
    if isinstance(x, ComplexTracer) and all(getattr(part, "weak", False) for part in x.parts):
        return complex
    if isinstance(x, (list, tuple)):
        return as_complex(x).dtype
    return x.dtype if isinstance(x, (Tracer, ComplexTracer, Part)) else np.asarray(x).dtype


def _shortcut(ufunc: Any, xs: Sequence[Any]) -> Any:
    """``x ** n`` for numbers for which NumPy multiplies or takes the root."""
    if ufunc not in (np.power, np.float_power):
        return None
    if type(xs[1]) in (int, float) and xs[1] == 0.5 and isinstance(xs[0], ComplexTracer):
        return np.sqrt(xs[0])
    n = _whole(xs[1])
    if n is None:
        return None
    dtype = part_type(_loop(ufunc, xs, None)[0])
    x = as_complex(xs[0], dtype)
    return _finished([x], integer_power(x, n))


def stored(out: Any, result: Any) -> Any:
    if out is None:
        return result
    if not isinstance(out, ComplexTracer):
        if isinstance(out, Tracer) and isinstance(result, ComplexTracer):
            raise DtypeError.here(
                f"cannot write {result.dtype} into an array of {out.dtype}: the imaginary part "
                "would be lost. Make the array a complex one, or take result.real."
            )
        return store(out, result.real)
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise DtypeError.here(f"cannot write {result.dtype} into an array of {out.dtype}")
    for part, half in zip(out.parts, [settled(x) for x in halves(result)], strict=True):
        if isinstance(part, Part):
            np.positive(half, out=part)  # type: ignore[call-overload]  # the stubs want an ndarray
        else:
            store(part, lift(half))
    return out


derives(COMPLEX, ufunc_cell(call))


# --- methods of ufuncs -------------------------------------------------------------------------


def _method(ufunc: Any, method: str, inputs: Sequence[Any], out: Any, options: Any) -> Any:
    if method == "accumulate" and ufunc is np.add:
        return np.cumsum(inputs[0], axis=options.pop("axis", 0), out=out, **options)
    if method == "outer":
        x, y = as_complex(inputs[0]), as_complex(inputs[1])
        return ufunc(x.reshape((*x.shape, *[1] * y.ndim)), y, **options)
    if method == "at" and ufunc in (np.add, np.subtract) and isinstance(inputs[0], ComplexTracer):
        x, index, new = inputs
        new = as_complex(new)
        for part, half in zip(x.parts, [settled(half) for half in new.parts], strict=True):
            ufunc.at(part, index, half)
        return None
    return reject(True, f"np.{ufunc.__name__}.{method} of complex numbers")


# --- arithmetic --------------------------------------------------------------------------------


def by_parts(function: Lowering) -> Lowering:
    return lambda *xs: ComplexTracer(*map(function, *(x.parts for x in xs)))


_BY_PARTS: dict[Any, Lowering] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.negative: operator.neg,
    np.positive: np.positive,
    np.rint: np.rint,
}
for _ufunc, _function in _BY_PARTS.items():
    lowers(_ufunc)(by_parts(_function))


@lowers(np.multiply)
def multiply(x: Complex, y: Complex) -> Complex:
    (a, b), (c, d) = x.parts, y.parts
    return ComplexTracer(a * c - b * d, a * d + b * c)


@lowers(np.divide)
def divide(x: Complex, y: Complex) -> Complex:
    """Smith's method (Algorithm 116, CACM 5(8), 1962), which does not overflow early."""
    (a, b), (c, d) = x.parts, y.parts
    wide = np.abs(c) >= np.abs(d)
    large, small = np.where(wide, c, d), np.where(wide, d, c)
    nothing = np.equal(large, 0)  # division by zero gives an infinity or NaN in both parts
    ratio = small / np.where(nothing, 1.0, large)
    scale = 1.0 / (np.where(nothing, 0.0, large) + small * ratio)
    real = np.where(wide, a + b * ratio, a * ratio + b) * scale
    imag = np.where(wide, b - a * ratio, b * ratio - a) * scale
    return ComplexTracer(real, imag)


@lowers(np.reciprocal)
def reciprocal(x: Complex) -> Complex:
    a, b = x.parts
    wide = np.abs(b) <= np.abs(a)
    large, small = np.where(wide, a, b), np.where(wide, b, a)
    ratio = small / large
    below = large + small * ratio
    real, imag = np.where(wide, 1.0, ratio), np.where(wide, ratio, 1.0)
    return ComplexTracer(real / below, -imag / below)


@lowers(np.square)
def square(x: Complex) -> Complex:
    a, b = x.parts
    return ComplexTracer(a * a - b * b, a * b + b * a)


@lowers(np.conjugate)
def conjugate(x: Complex) -> Complex:
    return ComplexTracer(np.positive(x.parts[0]), -x.parts[1])


@lowers(np.absolute)
def absolute(x: Complex) -> Array:
    return np.hypot(*x.parts)


@lowers(np.sign)
def sign(x: Complex) -> Complex:
    size = absolute(x)
    nothing = np.equal(size, 0)
    safe = np.where(nothing, 1.0, size)
    return ComplexTracer(*(np.where(nothing, 0.0, part / safe) for part in x.parts))


# --- questions ---------------------------------------------------------------------------------


@lowers(np.equal)
def equal(x: Complex, y: Complex) -> Array:
    return np.logical_and(*map(np.equal, x.parts, y.parts))


@lowers(np.not_equal)
def not_equal(x: Complex, y: Complex) -> Array:
    return np.logical_or(*map(np.not_equal, x.parts, y.parts))


def _in_order(ufunc: Any, strict: Any) -> Lowering:
    """NumPy orders complex numbers by the real part, then by the imaginary one."""

    def compare(x: Complex, y: Complex) -> Array:
        (a, b), (c, d) = x.parts, y.parts
        return np.logical_or(strict(a, c), np.logical_and(np.equal(a, c), ufunc(b, d)))

    return compare


for _ufunc, _strict in (
    (np.less, np.less),
    (np.less_equal, np.less),
    (np.greater, np.greater),
    (np.greater_equal, np.greater),
):
    lowers(_ufunc)(_in_order(_ufunc, _strict))


for _ufunc, _both in (
    (np.isnan, np.logical_or),
    (np.isinf, np.logical_or),
    (np.isfinite, np.logical_and),
):
    lowers(_ufunc)(lambda x, u=_ufunc, both=_both: both(*map(u, x.parts)))


def truth(x: Complex) -> Array:
    return np.logical_or(*x.parts)


LOGICAL = (np.logical_and, np.logical_or, np.logical_xor)
lowers(np.logical_not)(lambda x: np.logical_not(truth(x)))
for _ufunc in LOGICAL:
    lowers(_ufunc)(lambda x, y, u=_ufunc: u(truth(x), truth(y)))


# --- whole powers ------------------------------------------------------------------------------


def integer_power(x: Complex, n: int) -> Complex:
    """Repeated squaring; one over that for a negative ``n``."""
    result, square_ = None, x
    left = abs(n)
    while left:
        if left & 1:
            result = square_ if result is None else multiply(result, square_)
        left >>= 1
        square_ = square(square_) if left else square_
    if result is None:
        return as_complex(np.ones_like(x.parts[0]))
    if n == 1:  # an array of its own, as every result
        return ComplexTracer(*map(np.positive, x.parts))
    if n == -1:
        return reciprocal(result)
    return divide(as_complex(np.ones_like(x.parts[0])), result) if n < 0 else result


def _whole(y: Any) -> int | None:
    """The number that a plain exponent is, if that is a whole one of moderate size."""
    if isinstance(y, (Tracer, ComplexTracer)) or np.ndim(y) or isinstance(y, (list, tuple)):
        return None
    number = complex(y)
    small = number.imag == 0 and abs(number.real) < LARGEST_POWER
    return int(number.real) if small and number.real == int(number.real) else None


put(arrays.complexed, as_complex, EVERY)
put(arrays.traced, as_complex, COMPLEX)
put(arrays.stored, lambda result, out: stored(out, result), COMPLEX)
put(arrays.paired, lambda real, imag: ComplexTracer(lift(real), lift(imag)))
put(arrays.own, lambda x: ComplexTracer(*map(arrays.own, as_complex(x).parts)), COMPLEX)
