"""What is known while recording, shapes and dtypes, in plain Python; what numbers are made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ckad.trace.arrays import Array, is_traced, promoted, retyped, stored, traced
from ckad.trace.axes import axes_of
from ckad.trace.dispatch import EVERY, REAL, STATIC, holds_complex, implements, put

#: By this much numbers are scaled before their logarithm is taken, so that none is subnormal.
SCALE = 64


@implements(np.shape, kind=EVERY)
def shape(a: Any) -> tuple[Any, ...]:
    lengths: tuple[Any, ...] = traced(a).shape
    return lengths


@implements(np.ndim, kind=EVERY)
def ndim(a: Any) -> int:
    count: int = traced(a).ndim
    return count


@implements(np.size, kind=EVERY)
def size(a: Any, axis: Any = None) -> Any:
    x = traced(a)
    return math.prod(x.shape[k] for k in axes_of(axis, x.ndim))


def text(a: Any, *_: Any, **__: Any) -> str:
    """What a value is shown as while its numbers are not known."""
    return repr(a)


put(np.array2string, text, EVERY)
put(np.array_repr, text, EVERY)
put(np.array_str, text, EVERY)
put(np.format_float_positional, text, EVERY)
put(np.format_float_scientific, text, EVERY)


def _plain_type(x: Any) -> Any:
    return x.dtype if is_traced(x) else x


def _promoted_as(x: Any) -> Any:
    """The dtype, or a number of Python's that promotes like a weak one."""
    kind = _plain_type(x)
    return _OF_PYTHON.get(kind.kind, kind) if getattr(x, "weak", False) else kind


#: A number of Python's of each kind that is weak.
_OF_PYTHON = {"i": 0, "f": 0.0, "c": 0j}


@implements(np.result_type, kind=EVERY)
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    return np.result_type(*map(_promoted_as, arrays_and_dtypes))


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(_plain_type(from_), _plain_type(to), casting)


@implements(np.common_type)
def common_type(*arrays: Any) -> Any:
    return np.common_type(*[np.empty(0, traced(x).dtype) for x in arrays])


implements(np.iscomplexobj, kind=EVERY)(holds_complex)
implements(np.isrealobj, kind=EVERY)(lambda x: not holds_complex(x))


@implements(np.may_share_memory, np.shares_memory)
def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    return is_traced(a) and is_traced(b) and a.storage.root is b.storage.root


def _places_in(function: Any) -> Any:
    def places(arr: Any, *args: Any, **options: Any) -> tuple[np.ndarray, ...]:
        like = np.empty(traced(arr).shape, bool)
        found: tuple[np.ndarray, ...] = function(like, *args, **options)
        return found

    return places


for _function in (np.diag_indices_from, np.tril_indices_from, np.triu_indices_from):
    put(_function, _places_in(_function))


# --- nearness --------------------------------------------------------------------------------


@implements(np.isclose, kind=EVERY)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Array:
    b = traced(b) if traced(b).dtype.kind in "fc" else retyped(b, np.float64)
    near = np.logical_and(np.abs(np.subtract(a, b)) <= atol + rtol * np.abs(b), np.isfinite(b))
    close = np.logical_or(near, np.equal(a, b))
    if equal_nan:
        close = np.logical_or(close, np.logical_and(np.isnan(a), np.isnan(b)))
    return close


@implements(np.allclose, kind=EVERY)
def allclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Array:
    return np.all(np.isclose(traced(a), traced(b), rtol, atol, equal_nan))


@implements(np.array_equal, kind=STATIC)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    x, y = traced(a1), traced(a2)
    if x.shape != y.shape:
        return False
    same = np.equal(x, y)
    return np.all(same | (np.isnan(x) & np.isnan(y)) if equal_nan else same)


@implements(np.array_equiv, kind=STATIC)
def array_equiv(a1: Any, a2: Any) -> Any:
    try:
        return np.all(np.equal(a1, a2))
    except ValueError:
        return False


implements(np.isposinf, kind=REAL)(lambda x, out=None: stored(np.equal(traced(x), np.inf), out))
implements(np.isneginf, kind=REAL)(lambda x, out=None: stored(np.equal(traced(x), -np.inf), out))


@implements(np.real_if_close, kind=EVERY)
def real_if_close(a: Any, tol: float = 100) -> Array:
    """Whether complex numbers become real, they themselves decide."""
    x = traced(a)
    if x.dtype.kind != "c":
        return x
    most = np.finfo(x.dtype).eps * tol if tol > 1 else tol
    return np.real(x) if np.all(np.abs(np.imag(x)) < most) else x


# --- mantissas, exponents and neighbours ---------------------------------------------------------
#
# The exponent is what the logarithm says, put right where that is rounded; powers of two are exact.


def _floats(x: Any) -> Array:
    x = traced(x)
    return x if x.dtype.kind == "f" else retyped(x, np.float16 if x.dtype == bool else np.float64)


def _parts(x: Array) -> tuple[Array, Array, Array]:
    """Of numbers that are finite and not 0: mantissas in [0.5, 1), exponents; which ones are."""
    ordinary = np.logical_and(np.isfinite(x), np.not_equal(x, 0))
    size = np.abs(retyped(np.where(ordinary, x, 1), np.float64))
    small = size < 2.0**-960
    scaled = np.where(small, size * 2.0**SCALE, size)
    exponent = np.floor(np.log2(scaled)) + 1
    half = np.exp2(-np.floor(exponent / 2))  # 2^1024 is no number
    mantissa = scaled * half * np.exp2(np.floor(exponent / 2) - exponent)
    more, less = mantissa >= 1, mantissa < 0.5
    mantissa = np.where(more, mantissa / 2, np.where(less, mantissa * 2, mantissa))
    exponent = exponent + more - less - np.where(small, SCALE, 0)
    return mantissa, exponent, ordinary


@implements(np.frexp)
def frexp(x: Any, /, *, out: Any = (None, None)) -> tuple[Array, Array]:
    x = _floats(x)
    mantissa, exponent, ordinary = _parts(x)
    found = np.where(ordinary, retyped(np.sign(x) * mantissa, x.dtype), x)
    places = retyped(np.where(ordinary, exponent, 0), np.int64).astype(np.int32)
    first, second = out if out is not None else (None, None)
    return stored(found[()], first), stored(places[()], second)


def _spacing(x: Array, below: bool = False) -> Array:
    """From the size of a number to the next larger one, or smaller one; 0 where it is infinite."""
    info = np.finfo(x.dtype)
    mantissa, exponent, ordinary = _parts(x)
    lowest = info.minexp - info.nmant
    bits = exponent - (info.nmant + 1)
    if below:
        bits = bits - np.equal(mantissa, 0.5)
    ulp = np.exp2(np.maximum(np.where(ordinary, bits, lowest), lowest))
    return retyped(np.where(np.isinf(x), 0, ulp), x.dtype)


@implements(np.spacing)
def spacing(x: Any, /, *, out: Any = None) -> Array:
    x = _floats(x)
    ulp = np.where(np.equal(np.abs(x), np.finfo(x.dtype).max), np.inf, _spacing(x))
    ulp = np.copysign(ulp, np.where(np.equal(x, 0), 1, x))
    return stored(np.where(np.isfinite(x), ulp, np.nan).astype(x.dtype)[()], out)


@implements(np.nextafter)
def nextafter(x1: Any, x2: Any, /, *, out: Any = None) -> Array:
    """Its derivative is that of ``x1``, which it differs from by a rounding."""
    x, y = map(_floats, promoted(x1, x2))
    upwards = y > x
    positive = np.where(np.equal(x, 0), upwards, x > 0)
    size = np.where(positive, x, -x)  # so that what ends at 0 keeps its sign
    away = np.equal(upwards, positive)
    size = size + np.where(away, _spacing(x), -_spacing(x, below=True))
    size = np.where(np.isinf(x), np.finfo(x.dtype).max, size)
    moved = np.where(positive, size, -size)
    unordered = np.logical_or(np.isnan(x), np.isnan(y))
    found = np.where(np.equal(x, y), y, np.where(unordered, np.nan, moved)).astype(x.dtype)
    return stored(found[()], out)
