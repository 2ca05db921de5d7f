"""Elements, methods and functions of arrays of short integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.trace.dispatch import PLAIN, SHORT, call, put, reject, within
from ckad.trace.primitives.short.ufuncs import entering, gathered, kind_in_loop, stored
from ckad.trace.values.short import (
    UINT64,
    Short,
    cast,
    constant,
    holds_traced,
    is_plain_short,
    is_short,
    marked,
    refuse_dtype,
    wrapped,
)
from ckad.trace.values.tracer import Tracer


def numbers_of(x: Any) -> Any:
    """Arguments with the tape's integers for the short ones."""
    if isinstance(x, (list, tuple)):
        return type(x)(numbers_of(item) for item in x) if type(x) in (list, tuple) else x
    if is_plain_short(x):
        return x.astype(np.int64)
    return x.numbers if isinstance(x, Short) else x


# --- elements ------------------------------------------------------------------------------------


def _getitem(x: Any, index: Any) -> Any:
    x = gathered(x)
    found = call(operator.getitem, (numbers_of(x), numbers_of(index)), {})
    return marked_view(found, x.dtype) if isinstance(x, Short) else found


def marked_view(found: Any, dtype: np.dtype) -> Short:
    return Short(found, dtype) if type(found) is Tracer else marked(None, dtype)


def _setitem(x: Any, index: Any, new: Any) -> None:
    reject(isinstance(x, np.ndarray), "a write of traced integers into a plain array")
    call(operator.setitem, (numbers_of(x), numbers_of(index), stored(x, new)), {})


put(operator.getitem, _getitem, SHORT)
put(operator.setitem, _setitem, SHORT)


def _fill(x: Any, new: Any) -> None:
    x[...] = new


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    reject(where is not True or casting != "same_kind", "np.copyto with where= or casting=")
    same = np.can_cast(kind_in_loop(src), dst.dtype, "same_kind") if not np.isscalar(src) else True
    reject(not same or not holds_traced(dst), f"np.copyto into {dst.dtype}")
    dst[...] = src


put(np.ndarray.fill, _fill, SHORT)
put(np.copyto, _copyto, SHORT)


# --- conversion ----------------------------------------------------------------------------------


def _astype(x: Any, dtype: Any, order: str = "K", casting: Any = "unsafe", **options: Any) -> Any:
    reject(order not in "KC" or options.keys() - {"copy"}, ".astype with these options")
    if not np.can_cast(x.dtype, dtype, casting):
        raise TypeError(f"Cannot cast array data from {x.dtype} to {dtype} according to {casting}")
    dtype = np.dtype(dtype)
    if not isinstance(x, Short):
        return _owned(cast(x, dtype))
    if is_short(dtype) and dtype != UINT64:
        same = dtype == x.dtype
        return x if same and options.get("copy", True) is False else _owned(cast(x, dtype))
    return call(np.ndarray.astype, (x.numbers, dtype), {})


def _owned(x: Short) -> Short:
    return x if x.scalar else Short(x.numbers.copy(), x.dtype)


put(np.ndarray.astype, _astype, SHORT)


def _constructor(kind: Any) -> Callable[..., Any]:
    def construct(x: Any = 0) -> Any:
        if not holds_traced(x):
            return kind(x)
        found = cast(gathered(x), np.dtype(kind))
        return _owned(found) if found.shape else found[()]

    return construct


for _kind in sorted({np.int8, np.uint8, np.uint16, np.uint32}, key=str):
    for _of in (PLAIN, SHORT):
        put(_kind, _constructor(_kind), _of)


def _to_long(kind: Any) -> Callable[..., Any]:
    return lambda x: call(kind, (numbers_of(x),), {})


for _key in (int, float, bool, np.int64, np.float64, np.float32, np.bool_, np.ndarray.tolist):
    put(_key, _to_long(_key), SHORT)
put(abs, np.abs, SHORT)
put(divmod, lambda x, y: (x // y, x % y), SHORT)
put(np.ndarray.item, lambda x, *args: x.numbers.item(*args), SHORT)


# --- new arrays ----------------------------------------------------------------------------------


def _filled(key: Any) -> Callable[..., Any]:
    """``np.zeros`` and its like: made of the tape's integers, or of others of the given array."""

    def create(first: Any, *args: Any, dtype: Any = None, **options: Any) -> Any:
        if args and key is not np.full and key is not np.full_like:
            dtype, args = args[0], args[1:]
        elif len(args) > 1:
            args, dtype = args[:1], args[1]
        filled = key in (np.full, np.full_like)
        reject(len(args) > filled, f"np.{key.__name__} with these options")
        wanted = np.dtype(_dtype_of_new(key, first, args, dtype))
        first = numbers_of(first)
        if not is_short(wanted):
            return call(key, (first, *numbers_of(args)), {"dtype": wanted, **options})
        reject(wanted == UINT64, "new arrays of uint64")
        if args:
            args = (cast(args[0], wanted).numbers,)
        elif "fill_value" in options:
            options["fill_value"] = cast(options["fill_value"], wanted).numbers
        return Short(call(key, (first, *args), {"dtype": np.int64, **options}), wanted)

    return create


def _dtype_of_new(key: Any, first: Any, args: Any, dtype: Any) -> Any:
    if dtype is not None:
        return dtype
    if key is np.full:
        return args[0].dtype if args and hasattr(args[0], "dtype") else np.float64
    return first.dtype if isinstance(first, (Tracer, Short, np.ndarray)) else np.float64


_NEW: list[Any] = [np.zeros, np.ones, np.empty, np.full, np.zeros_like, np.ones_like]
for _own in (*_NEW, np.empty_like, np.full_like):
    put(_own, _filled(_own), SHORT)


def _ranged(key: Any) -> Callable[..., Any]:
    """``np.arange`` and its like, of known numbers: NumPy's own."""

    def create(*args: Any, **options: Any) -> Any:
        plain = [np.asarray(x)[()] if holds_traced(x) else x for x in args]
        found = key(*plain, **options)
        return constant(found) if is_short(found.dtype) else found

    return create


for _name in (np.arange, np.eye, np.identity, np.tri):
    put(_name, _ranged(_name), SHORT)


def _array(x: Any, dtype: Any = None, copies: Any = True, ndmin: int = 0, order: Any = None) -> Any:
    reject(order not in (None, "K", "C"), "an array of integers this short in another order")
    if not holds_traced(x):
        plain = np.array(x, dtype, ndmin=ndmin)
        return constant(plain) if is_short(plain.dtype) else call(np.asarray, (plain,), {})
    if isinstance(x, (list, tuple)):
        x, copies = _promoted(np.stack)([_array(item) for item in x]), False
    reject(x.ndim < ndmin, "np.array with ndmin= of integers this short")
    wanted = x.dtype if dtype is None else np.dtype(dtype)
    if wanted == x.dtype:
        return _owned(x) if copies and isinstance(x, Short) else x
    return _astype(x, wanted)


put(
    np.array,
    lambda x, dtype=None, *, copy=True, ndmin=0, order=None: _array(x, dtype, copy, ndmin, order),
    SHORT,
)
for _own in (np.asarray, np.asanyarray, np.ascontiguousarray):
    put(_own, lambda x, dtype=None, order=None: _array(x, dtype, False, 0, order), SHORT)


# --- the same places, the same numbers -----------------------------------------------------------


def _keeping(key: Any) -> Callable[..., Any]:
    """The numbers of the first argument, or some of them, in other places."""

    def function(x: Any, *args: Any, **options: Any) -> Any:
        reject(options.get("out") is not None, f"np.{key.__name__} with out=")
        x = gathered(x)
        options = {name: numbers_of(option) for name, option in options.items()}
        found = call(key, (numbers_of(x), *numbers_of(args)), options)
        return marked_view(found, x.dtype) if isinstance(x, Short) else found

    return function


_KEEPING: list[Any] = [
    *(np.ndarray.copy, np.ndarray.__copy__, np.ndarray.__deepcopy__, np.ndarray.reshape),
    *(np.ndarray.transpose, np.ndarray.T, np.ndarray.flatten, np.copy, np.reshape, np.ravel),
    *(np.transpose, np.squeeze, np.roll, np.flip, np.fliplr, np.flipud, np.rot90, np.repeat),
    *(np.tile, np.take, np.expand_dims, np.swapaxes, np.moveaxis, np.broadcast_to, np.diagonal),
    *(np.sort, np.max, np.min, np.amax, np.amin),
]
for _own in _KEEPING:
    put(_own, _keeping(_own), SHORT)


# --- what depends on the numbers alone -----------------------------------------------------------


def _of_numbers(key: Any) -> Callable[..., Any]:
    def function(*args: Any, **options: Any) -> Any:
        bad = options.get("out") is not None or options.get("dtype") is not None
        reject(bad, f"np.{key.__name__} of integers this short with out= or dtype=")
        options = {name: numbers_of(option) for name, option in options.items()}
        return call(key, numbers_of(args), options)

    return function


_OF_NUMBERS: list[Any] = [
    *(np.any, np.all, np.argmax, np.argmin, np.count_nonzero, np.mean, np.std, np.var),
    *(np.nonzero, np.flatnonzero, np.argwhere, np.shape, np.ndim, np.size, np.array_equal),
]
for _own in _OF_NUMBERS:
    put(_own, _of_numbers(_own), SHORT)


# --- sums and products ---------------------------------------------------------------------------


def _total(key: Any) -> Callable[..., Any]:
    """NumPy adds and multiplies in 64 bits, of unsigned integers in unsigned ones."""

    def function(x: Any, *args: Any, **options: Any) -> Any:
        name = f"np.{key.__name__} of integers this short"
        dtype = options.pop("dtype", None)
        args, options = numbers_of(args), {k: numbers_of(v) for k, v in options.items()}
        reject(len(args) > 1 or options.keys() - {"axis", "keepdims"}, f"{name} with these options")
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
        if key not in (np.sum, np.cumsum):
            refuse_dtype("the result would have dtype uint64")
        return marked(found, UINT64)

    return function


for _own in (np.sum, np.prod, np.cumsum, np.cumprod):
    put(_own, _total(_own), SHORT)


# --- several arrays in their common dtype --------------------------------------------------------


def _common(xs: Any) -> tuple[list[Any], np.dtype]:
    xs = [gathered(x) for x in xs]
    dtype = np.result_type(*(_sample(x) for x in xs))
    return [entering(x, dtype) for x in xs], dtype


def _sample(x: Any) -> Any:
    if type(x) in (int, float, bool, complex):
        return x
    kind = kind_in_loop(x)
    return kind(0) if kind in (int, float) else kind


def _promoted(key: Any) -> Callable[..., Any]:
    """What joins a list of arrays."""

    def function(xs: Any, *args: Any, **options: Any) -> Any:
        reject(options.keys() - {"axis"}, f"np.{key.__name__} of integers this short, with options")
        ins, dtype = _common(list(xs))
        found = call(key, (ins, *args), options)
        return marked(found, dtype) if is_short(dtype) else found

    return function


for _own in (np.stack, np.concatenate, np.hstack, np.vstack, np.dstack, np.column_stack):
    put(_own, _promoted(_own), SHORT)


def _where(condition: Any, *choices: Any) -> Any:
    condition = numbers_of(gathered(condition))
    if not choices:
        return call(np.where, (condition,), {})
    ins, dtype = _common(choices)
    found = call(np.where, (condition, *ins), {})
    return marked(found, dtype) if is_short(dtype) else found


put(np.where, _where, SHORT)


def _product(key: Any) -> Callable[..., Any]:
    def function(a: Any, b: Any) -> Any:
        ins, dtype = _common((a, b))
        found = call(key, ins, {})
        if not is_short(dtype):
            return found
        return wrapped(found, dtype)  # refuses uint64, whose products may wrap around

    return function


for _own in (np.dot, np.outer, np.inner, np.vdot):
    put(_own, _product(_own), SHORT)
put(np.clip, lambda a, lo=None, hi=None: _clip(a, lo, hi), SHORT)


def _clip(a: Any, lo: Any, hi: Any) -> Any:
    raised = a if lo is None else within(np.maximum, (a, lo))
    return raised if hi is None else within(np.minimum, (raised, hi))
