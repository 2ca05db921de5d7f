"""Python's own numeric functions, the module ``math`` and NumPy's scalar types on tracers.

Every function here takes plain numbers too, and then is the original.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.trace.arrays import Array, safe_sqrt
from ckad.trace.dispatch import COMPLEX, PLAIN, Function, cell, put, reject, tracers
from ckad.trace.memory.context import current, mark_place
from ckad.trace.primitives.shape import copied
from ckad.trace.values.apply import apply, astype, reshape_value
from ckad.trace.values.tracer import Tracer, known_as_run, lift


def _has_tracer(args: Iterable[Any]) -> bool:
    return any(True for _ in tracers(list(args)))


def _instead_of(original: Any) -> Callable[[Function], Function]:
    """Decorator: the counterpart of ``original`` where an argument is traced."""

    def register(function: Function) -> Function:
        whole = _where_traced(original, function)
        put(original, whole)
        if original is not round:  # complex numbers have no such method
            put(original, whole, COMPLEX)
        return function

    return register


#: What they give has the type of their argument; all others give Python's numbers.
_KEEP_THE_TYPE = frozenset({abs, pow, min, max, sum, sorted})


def _where_traced(original: Any, function: Function) -> Function:
    @functools.wraps(function)
    def chosen(*args: Any, **options: Any) -> Any:
        if not _has_tracer((*args, *options.values())):
            return original(*args, **options)
        mark_place(current())
        result = function(*args, **options)
        return result if original in _KEEP_THE_TYPE else as_python(result)

    return chosen


def as_python(result: Any) -> Any:
    """Traced scalars that promote as Python's numbers do."""
    if isinstance(result, tuple):
        return tuple(as_python(x) for x in result)
    if isinstance(result, Tracer) and result.scalar:
        return Tracer(result.storage, result.path, scalar=True, weak=True)
    return result


# --- one number --------------------------------------------------------------------------------


def _single(x: Any, name: str) -> Tracer:
    """The only element of ``x`` as a scalar."""
    x = lift(x)
    if x.size != 1:
        raise TypeError(
            at_place(f"{name}() takes one number, and the array has {x.size}. Index it first.")
        )
    return x if x.scalar else reshape_value(x, ())


def _float(x: Any, name: str = "float") -> Tracer:
    return astype(_single(x, name), np.float64)


@_instead_of(float)
def _to_float(x: Any) -> Tracer:
    return _float(x)


@_instead_of(int)
def _to_int(x: Any) -> Tracer:
    return astype(_single(x, "int"), np.int64)


@_instead_of(bool)
def _to_bool(x: Any) -> Tracer:
    return astype(_single(x, "bool"), bool)


@_instead_of(round)
def _round(number: Any, ndigits: Any = None) -> Array:
    if ndigits is None:
        return astype(np.rint(_single(number, "round")), np.int64)
    x, n = _single(number, "round"), operator.index(ndigits)
    is_float = x.weak and x.type.is_float and abs(n) <= _EXACT
    return _to_digits(x, n) if is_float else np.round(x, n)


#: The greatest power of ten that is a float64 itself.
_EXACT = 22


def _to_digits(x: Tracer, n: int) -> Any:
    """``x`` rounded to the nearest decimal number of n digits, as Python's floats are.

    NumPy rounds the product by a power of ten, which may lie halfway between two integers where
    the exact product does not: the difference of the two decides. Its products are exact, since
    both factors are cut into halves (Dekker, A floating-point technique for extending the
    available precision, 1971).
    """
    scale = 10.0 ** abs(n)
    # what does not fit has no digits there
    fits = np.less(np.abs(x), 2.0**53 / scale if n > 0 else 2.0**53 * scale)
    z = np.where(fits, x, 0.0)[()]
    if n > 0:
        scaled = z * scale
        high, s_high = astype(astype(z, np.float32), np.float64), float(np.float32(scale))
        low, s_low = z - high, scale - s_high
        beyond = ((high * s_high - scaled) + high * s_low + low * s_high) + low * s_low
    else:
        scaled = z / scale
        beyond = z - scaled * scale
    below = np.floor(scaled)
    decided = np.logical_and(np.equal(scaled - below, 0.5), np.not_equal(beyond, 0.0))
    up = np.where(np.greater(beyond, 0.0), 1.0, 0.0)
    found = np.where(decided, below + up, np.rint(scaled))
    found = found / scale if n > 0 else found * scale
    return np.where(fits, np.copysign(found, x), x)[()]


_instead_of(abs)(np.abs)


def root_of_number(x: Tracer) -> Any:
    """``x ** 0.5`` of a number, by the C library's pow: no root of -0.0 and of -inf."""
    low = np.equal(x, -np.inf)
    return np.where(low, x.dtype.type(np.inf), np.sqrt(np.where(low, x.dtype.type(1), x)) + 0.0)[()]


@_instead_of(pow)
def _pow(base: Any, exp: Any, mod: Any = None) -> Array:
    is_root = type(exp) is float and exp == 0.5 and isinstance(base, Tracer) and base.scalar
    power = root_of_number(base) if is_root and base.type.is_float else np.power(base, exp)
    return power if mod is None else np.remainder(power, mod)


# --- several numbers ---------------------------------------------------------------------------


def _items(args: tuple[Any, ...], name: str, options: dict[str, Any]) -> list[Any]:
    """What ``min(a, b)`` and ``min([a, b])`` run over."""
    reject(options.keys() - {"default"}, f"{name} with key= on traced values")
    items = list(args[0]) if len(args) == 1 else list(args)
    if not items and "default" in options:
        return [options["default"]]
    if not items:
        raise ValueError(at_place(f"{name}() arg is an empty sequence"))
    return [_single(x, name) if isinstance(x, Tracer) else x for x in items]


def _chosen(better: Any, first: Any, second: Any) -> Any:
    """Python keeps the first of two equal numbers."""
    if not _has_tracer((first, second)):
        return second if better(second, first) else first
    is_second = better(second, first)
    if isinstance(is_second, Tracer) and (found := known_as_run(is_second)) is not None:
        return second if found else first
    return np.where(is_second, second, first)[()]


def _is_row(x: Any) -> bool:
    """An array that an iterator would take apart into as many rows of the tape."""
    return isinstance(x, Tracer) and x.ndim == 1 and x.size > 1


def _extremum(original: Any, better: Any, position: Any, worst: float) -> None:
    def of_row(x: Tracer) -> Any:
        """Python compares: a NaN is never better, and nothing is better than a NaN."""
        first, others = x[0], x[1:]
        compared = np.where(np.isnan(others), worst, others) if x.dtype.kind == "f" else others
        return _chosen(better, first, others[position(compared)])

    @_instead_of(original)
    def best(*args: Any, **options: Any) -> Any:
        if len(args) == 1 and not options and _is_row(args[0]):
            return of_row(args[0])
        items = _items(args, original.__name__, options)
        return functools.reduce(functools.partial(_chosen, better), items)


_extremum(min, operator.lt, np.argmin, np.inf)
_extremum(max, operator.gt, np.argmax, -np.inf)


@_instead_of(sum)
def _sum(iterable: Any, /, start: Any = 0) -> Any:
    if isinstance(iterable, Tracer) and len(iterable.shape) == 1:
        return np.add(np.sum(iterable), start)
    return functools.reduce(operator.add, iterable, start)


def _decision(original: Any, function: Any) -> Function:
    def decided(xs: Any) -> Any:
        if _is_row(xs):
            return function.reduce(xs)
        return functools.reduce(function, [_truth(x) for x in xs])

    return _where_traced(original, decided)


#: ``any`` and ``all`` of items that are all there.
DECISIONS = {any: _decision(any, np.logical_or), all: _decision(all, np.logical_and)}


def _truth(x: Any) -> Any:
    return _to_bool(x) if isinstance(x, Tracer) else bool(x)


@_instead_of(sorted)
def _sorted(iterable: Any, /, *, key: Any = None, reverse: bool = False) -> list[Any]:
    reject(key is not None, "sorted with key= on traced values")
    given = list(iterable)
    nested = any(isinstance(x, (list, tuple)) for x in given)
    reject(nested, "sorted of tuples or lists with traced values")
    items = np.sort(np.stack([_single(x, "sorted") for x in given]))
    return list(items)[::-1] if reverse else list(items)


# --- the module math ---------------------------------------------------------------------------


def _elementary(name: str, function: Any) -> None:
    """A function of Python floats by NumPy's function of that meaning."""
    original = getattr(math, name, None)
    if original is not None:
        _instead_of(original)(lambda *xs: function(*[_float(x, f"math.{name}") for x in xs]))


for _name in """sqrt exp expm1 log1p log2 log10 sin cos tan sinh cosh tanh degrees radians fabs
    copysign fmod cbrt exp2 isnan isinf isfinite""".split():
    _elementary(_name, getattr(np, _name))

for _name, _ufunc in {
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "pow": np.power,
}.items():
    _elementary(_name, _ufunc)

for _name, _ufunc in {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}.items():
    _elementary(_name, lambda x, f=_ufunc: astype(f(x), np.int64))

_elementary("erf", lambda x: apply(Op.ERF, x))
_elementary("erfc", lambda x: apply(Op.ERFC, x))
_elementary("lgamma", lambda x: apply(Op.LGAMMA, x))
_elementary("frexp", np.frexp)
_elementary("nextafter", np.nextafter)
_elementary("modf", np.modf)


def _remainder(x: Any, y: Any) -> Any:
    """By the nearest multiple of ``y``, the even one of two, and exact."""
    short = np.fmod(x, y)
    below, above = np.abs(short), np.abs(y) - np.abs(short)
    is_odd = np.not_equal(np.fmod(0.5 * (np.abs(x) - below), y), 0.0)
    one_more = np.logical_or(below > above, np.logical_and(np.equal(below, above), is_odd))
    return np.where(one_more, short - np.copysign(1.0, x) * np.copysign(1.0, y) * y, short)[()]


_elementary("remainder", _remainder)


def _gamma(x: Tracer) -> Array:
    pole = np.logical_and(x <= 0, np.equal(np.floor(x), x))
    return np.where(pole, np.nan, apply(Op.GAMMA, x))[()]


_elementary("gamma", _gamma)


@_instead_of(math.log)
def _log(x: Any, base: Any = None) -> Array:
    top = np.log(_float(x, "math.log"))
    return top if base is None else top / np.log(_float(base, "math.log"))


@_instead_of(math.hypot)
def _hypot(*coordinates: Any) -> Array:
    xs = [_float(x, "math.hypot") for x in coordinates]
    hypot: Function = np.hypot
    return functools.reduce(hypot, xs) if len(xs) > 1 else np.abs(xs[0])


@_instead_of(math.dist)
def _dist(p: Any, q: Any, /) -> Array:
    gaps = [_float(x, "math.dist") - _float(y, "math.dist") for x, y in zip(p, q, strict=True)]
    return safe_sqrt(functools.reduce(operator.add, [g * g for g in gaps]))


@_instead_of(math.fsum)
def _fsum(iterable: Any, /) -> Tracer:
    return functools.reduce(operator.add, [_float(x, "math.fsum") for x in iterable])


@_instead_of(math.prod)
def _prod(iterable: Any, /, *, start: Any = 1) -> Any:
    return functools.reduce(operator.mul, iterable, start)


@_instead_of(math.ldexp)
def _ldexp(x: Any, i: Any, /) -> Array:
    return _float(x, "math.ldexp") * np.exp2(_float(i, "math.ldexp"))


@_instead_of(math.isclose)
def _isclose(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Array:
    x, y = _float(a, "math.isclose"), _float(b, "math.isclose")
    largest = np.maximum(np.abs(x), np.abs(y))
    near = np.abs(x - y) <= np.maximum(rel_tol * largest, abs_tol)
    return np.logical_or(np.logical_and(near, np.isfinite(largest)), np.equal(x, y))


def _refusing(original: Any) -> Function:
    def refuse(*args: Any, **options: Any) -> Any:
        reject(True, f"math.{original.__name__} of a traced value")

    return refuse


for _original in vars(math).values():
    if isinstance(_original, type(math.sin)) and cell(_original) is None:
        _instead_of(_original)(_refusing(_original))


# --- NumPy's scalar types ----------------------------------------------------------------------


def _constructor(kind: Any) -> Function:
    """``np.float64(x)``: a scalar of a scalar, an array of anything else."""

    def construct(x: Any = 0) -> Any:
        if not _has_tracer([x]):
            made = kind(x)
            return lift(made) if isinstance(made, np.ndarray) else made
        mark_place(current())
        array = x if isinstance(x, Tracer) else np.stack(list(x))
        cast = astype(array, kind)
        return copied(cast) if array.shape else reshape_value(cast, ())

    return construct


for _kind in (np.float64, np.float32, np.bool_, np.int64, np.longlong):
    for _of in (PLAIN, COMPLEX):
        put(_kind, _constructor(_kind), _of)
