"""Functions of arrays of short integers: numbers, sums, what several arrays have in common."""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.trace import arrays
from ckad.trace.dispatch import SHORT, call, put, reject, within
from ckad.trace.primitives.short.arrays import numbers_of, of_numbers
from ckad.trace.primitives.short.ranges import marked, wrapped
from ckad.trace.primitives.short.ufuncs import (
    entering,
    gathered,
    is_number_of_python,
    kind_in_loop,
    stored,
)
from ckad.trace.values.short import UINT64, Short, constant, is_short, refuse_dtype
from ckad.trace.values.tracer import known

# --- what depends on the numbers alone -----------------------------------------------------------


_OF_NUMBERS: list[Any] = [
    *(np.any, np.all, np.argmax, np.argmin, np.count_nonzero, np.mean, np.std, np.var),
    *(np.nonzero, np.flatnonzero, np.argwhere, np.shape, np.ndim, np.size, np.array_equal),
    *(np.argsort, np.lexsort, np.searchsorted, np.digitize, np.bincount, np.histogram, np.isin),
    *(np.median, np.quantile, np.percentile, np.interp, np.average, np.array_equiv, np.nanmean),
    np.argpartition,
    *(
        arrays.wrapped,
        np.isreal,
        np.iscomplex,
        np.isrealobj,
        np.iscomplexobj,
        np.ravel_multi_index,
    ),
]
for _own in _OF_NUMBERS:
    put(_own, of_numbers(_own), SHORT)


# --- sums and products ---------------------------------------------------------------------------


def _total(key: Any) -> Callable[..., Any]:
    """NumPy adds and multiplies in 64 bits, of unsigned integers in unsigned ones."""

    def function(x: Any, *args: Any, **options: Any) -> Any:
        name = f"np.{key.__name__} of integers this short"
        dtype = options.pop("dtype", None)
        args, options = numbers_of(args), {k: numbers_of(v) for k, v in options.items()}
        known = {"axis", "keepdims", "offset", "axis1", "axis2"}
        bad = len(args) > 1 + 2 * (key is np.trace) or options.keys() - known
        reject(bad, f"{name} with these options")
        x = gathered(x)
        numbers = numbers_of(x)
        if dtype is not None and not is_short(np.dtype(dtype)):
            return call(key, (numbers, *args), {"dtype": dtype, **options})
        if dtype is None and not isinstance(x, Short):
            return call(key, (numbers, *args), options)
        if dtype is not None:
            reject(
                numbers.dtype.kind not in "bi" or np.dtype(dtype) == UINT64, f"{name} to this dtype"
            )
            return wrapped(call(key, (numbers, *args), {"dtype": np.int64, **options}), dtype)
        found = call(key, (numbers, *args), options)
        if x.dtype.kind == "i":
            return found
        if key not in (np.sum, np.cumsum, np.trace):
            refuse_dtype("the result would have dtype uint64")
        return marked(found, UINT64)

    return function


for _own in (np.sum, np.prod, np.cumsum, np.cumprod, np.trace):
    put(_own, _total(_own), SHORT)


def _at(ufunc: Any) -> Callable[..., None]:
    """``ufunc.at``: into short integers it is done in the tape's, which are brought back."""

    def at(x: Any, index: Any, *new: Any) -> None:
        if isinstance(x, Short):
            kinds = [np.dtype(kind_in_loop(gathered(one))).kind for one in new]
            given = not set(kinds).isdisjoint("fc")
            reject(given, f"np.{ufunc.__name__}.at of integers this short and floats")
        target = x.numbers.copy() if isinstance(x, Short) else x
        taken = tuple(stored(x, one) for one in new)
        call((ufunc, "at"), (target, numbers_of(index), *taken), {})
        if isinstance(x, Short):
            x[...] = wrapped(target, x.dtype)

    return at


for _own in (np.add, np.subtract, np.multiply, np.maximum, np.minimum):
    put((_own, "at"), _at(_own), SHORT)


for _key in (np.imag, np.ndarray.imag):
    put(_key, lambda x: np.zeros_like(x) if x.shape else constant(x.dtype.type(0)), SHORT)

# --- several arrays in their common dtype --------------------------------------------------------


def _common(xs: Any, is_weak: bool = True, wraps: bool = False) -> tuple[list[Any], np.dtype]:
    """Python's numbers are arrays unless they are weak; one beyond the range ``wraps`` around."""
    xs = [gathered(x) for x in xs]
    dtype = np.result_type(*(_sample(x, is_weak) for x in xs))
    return [entering(x, dtype, wraps and dtype != UINT64) for x in xs], dtype


def _sample(x: Any, is_weak: bool) -> Any:
    if type(x) in (int, float, bool, complex):
        return x if is_weak else np.asarray(x).dtype
    kind = kind_in_loop(x)
    return kind if isinstance(kind, np.dtype) else _sample(kind(0), is_weak)


def _promoted(key: Any) -> Callable[..., Any]:
    """What joins a list of arrays."""

    def function(xs: Any, *args: Any, **options: Any) -> Any:
        reject(options.keys() - {"axis"}, f"np.{key.__name__} of integers this short, with options")
        ins, dtype = _common(list(xs), is_weak=False)
        found = call(key, (ins, *args), options)
        return marked(found, dtype) if is_short(dtype) else found

    return function


for _own in (np.stack, np.concatenate, np.hstack, np.vstack, np.dstack, np.column_stack):
    put(_own, _promoted(_own), SHORT)


def _where(condition: Any, *choices: Any) -> Any:
    condition = numbers_of(gathered(condition))
    if not choices:
        return call(np.where, (condition,), {})
    ins, dtype = _common(choices, wraps=True)  # also Python's integers beyond the range
    found = call(np.where, (condition, *ins), {})
    if not is_short(dtype):
        return found
    return (wrapped if any(_is_beyond(x, dtype) for x in choices) else marked)(found, dtype)


def _is_beyond(x: Any, dtype: np.dtype) -> bool:
    """Whether a number of Python may be none of ``dtype``."""
    if dtype == UINT64 or not is_number_of_python(x):
        return False
    number, limits = known(x), np.iinfo(dtype)
    return number is None or not limits.min <= number <= limits.max


put(np.where, _where, SHORT)


def _product(key: Any) -> Callable[..., Any]:
    def function(a: Any, b: Any, *args: Any, **options: Any) -> Any:
        reject(
            options.get("out") is not None, f"np.{key.__name__} of integers this short with out="
        )
        ins, dtype = _common((a, b), is_weak=False)
        found = call(key, (*ins, *args), options)
        if not is_short(dtype):
            return found
        return wrapped(found, dtype)  # refuses uint64, whose products may wrap around

    return function


for _own in (np.dot, np.outer, np.inner, np.vdot, np.tensordot, np.kron, arrays.batched):
    put(_own, _product(_own), SHORT)


def _einsum(subscripts: str, *operands: Any, **options: Any) -> Any:
    reject(options.get("out") is not None, "np.einsum of integers this short with out=")
    ins, dtype = _common(operands, is_weak=False)
    found = call(np.einsum, (subscripts, *ins), options)
    return wrapped(found, dtype) if is_short(dtype) else found


put(np.einsum, _einsum, SHORT)
put(np.clip, lambda a, lo=None, hi=None: _clip(a, lo, hi), SHORT)


def _clip(a: Any, lo: Any, hi: Any) -> Any:
    """Python's integers beyond the range are no bounds, and floats make floats of all."""
    if is_short(a.dtype):
        limits = np.iinfo(a.dtype)
        lo = None if type(lo) is int and lo <= limits.min else lo
        hi = None if type(hi) is int and hi >= limits.max else hi
    bounds = [x for x in (lo, hi) if x is not None]
    if any(type(x) is float or x.dtype.kind == "f" for x in bounds if type(x) not in (int, bool)):
        dtype = np.result_type(
            a.dtype, *(x if type(x) in (int, float) else x.dtype for x in bounds)
        )
        return within(np.clip, (arrays.retyped(numbers_of(gathered(a)), dtype), lo, hi))
    raised = a if lo is None else within(np.maximum, (a, lo))
    return raised if hi is None else within(np.minimum, (raised, hi))


# --- the words of ``arrays`` ---------------------------------------------------------------------


def _together(xs: Any) -> list[Any]:
    ins, dtype = _common(xs)
    if is_short(dtype):
        return [marked(arrays.traced(x), dtype) for x in ins]
    return [arrays.retyped(arrays.traced(x), dtype) for x in ins]


def _matched(*xs: Any) -> list[Any]:
    xs = tuple(gathered(x) for x in xs)
    found = arrays.matched(*numbers_of(xs))
    pairs = zip(found, xs, strict=True)
    return [marked(x, of.dtype) if isinstance(of, Short) else x for x, of in pairs]


put(arrays.promoted, lambda *xs: _together(xs), SHORT)
put(arrays.matched, _matched, SHORT)
put(np.broadcast_arrays, lambda *xs, subok=False: tuple(_matched(*xs)), SHORT)


# --- Python's functions --------------------------------------------------------------------------


def _extremum(key: Any) -> Callable[..., Any]:
    """``max(a, b)``, ``max(xs)``: the numbers compared, in the dtype that all of them have."""

    def function(*args: Any, **options: Any) -> Any:
        reject(options, f"{key.__name__} of integers this short with options")
        ins, dtype = _common(args if len(args) > 1 else list(args[0]))
        found = call(key, (ins,), {})
        return marked(found, dtype) if is_short(dtype) else found

    return function


def _sum(xs: Any, /, start: Any = 0) -> Any:
    return functools.reduce(operator.add, list(xs), start)


put(builtins.sum, _sum, SHORT)
for _own in (builtins.max, builtins.min):
    put(_own, _extremum(_own), SHORT)
