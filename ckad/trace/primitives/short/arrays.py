"""Elements, methods and functions of arrays of short integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ckad import trees
from ckad.trace import arrays
from ckad.trace.dispatch import EVERY, SHORT, call, put, reject
from ckad.trace.primitives.short.ranges import cast, marked
from ckad.trace.primitives.short.ufuncs import gathered, kind_in_loop, stored
from ckad.trace.values.part import Part
from ckad.trace.values.short import (
    UINT64,
    Short,
    constant,
    holds_traced,
    is_plain_short,
    is_short,
)
from ckad.trace.values.tracer import Tracer


def numbers_of(x: Any) -> Any:
    """Arguments with the tape's integers for the short ones."""
    if isinstance(x, (list, tuple)):
        return type(x)(numbers_of(item) for item in x) if type(x) in (list, tuple) else x
    if is_plain_short(x):
        return x.astype(np.int64)
    return x.numbers if isinstance(x, Short) else x


def of_numbers(key: Any) -> Callable[..., Any]:
    """What depends on the numbers alone, and not on their dtype."""

    def function(*args: Any, **options: Any) -> Any:
        bad = options.get("out") is not None or options.get("dtype") is not None
        reject(bad, f"np.{key.__name__} of integers this short with out= or dtype=")
        return call(key, numbers_of(args), {k: numbers_of(v) for k, v in options.items()})

    return function


# --- elements ------------------------------------------------------------------------------------


def _getitem(x: Any, index: Any) -> Any:
    x = gathered(x)
    found = call(operator.getitem, (numbers_of(x), numbers_of(index)), {})
    return marked_view(found, x.dtype) if isinstance(x, Short) else found


def marked_view(found: Any, dtype: np.dtype) -> Short:
    return Short(found, dtype) if type(found) in (Tracer, Part) else marked(None, dtype)


def _setitem(x: Any, index: Any, new: Any) -> None:
    reject(isinstance(x, np.ndarray), "a write of traced integers into a plain array")
    call(operator.setitem, (numbers_of(x), numbers_of(index), stored(x, new)), {})


put(operator.getitem, _getitem, SHORT)
put(operator.setitem, _setitem, SHORT)


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    reject(where is not True or casting != "same_kind", "np.copyto with where= or casting=")
    same = np.can_cast(kind_in_loop(src), dst.dtype, "same_kind") if not np.isscalar(src) else True
    reject(not same or not holds_traced(dst), f"np.copyto into {dst.dtype}")
    dst[...] = src


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


for _kind in sorted({dtype.type for dtype in trees.SHORT} | {np.intc}, key=str):
    for _of in (*EVERY, SHORT):
        put(_kind, _constructor(_kind), _of)


_LONG: list[Any] = [int, float, bool, complex, round, np.int64, np.longlong, np.float64, np.float32]
_LONG += [np.bool_, np.complex128, np.complex64, np.isscalar, np.ndarray.tolist, np.ndarray.item]
for _key in (*_LONG, np.ndarray.shape, np.ndarray.flags, np.ndarray.sort):
    put(_key, of_numbers(_key), SHORT)
put(abs, np.abs, SHORT)
put(slice, lambda *bounds: slice(*numbers_of(bounds)), SHORT)
put(divmod, lambda x, y: (x // y, x % y), SHORT)


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
        x, copies = call(np.stack, ([_array(item) for item in x],), {}), False
    reject(x.ndim < ndmin, "np.array with ndmin= of integers this short")
    wanted = x.dtype if dtype is None else np.dtype(dtype)
    if isinstance(x, Short):
        copies = copies or x.scalar  # of a scalar an array of its own
        x = Short(call(np.array if copies else np.asarray, (x.numbers,), {"order": order}), x.dtype)
    return x if wanted == x.dtype else _astype(x, wanted)


put(
    np.array,
    lambda x, dtype=None, *, copy=True, ndmin=0, order=None: _array(x, dtype, copy, ndmin, order),
    SHORT,
)
for _own in (np.asarray, np.asanyarray):
    put(_own, lambda x, dtype=None, order=None: _array(x, dtype, False, 0, order), SHORT)
put(np.ascontiguousarray, lambda x, dtype=None: _array(x, dtype, False, 1, "C"), SHORT)


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
    *(np.sort, np.max, np.min, np.amax, np.amin, np.around, np.round, np.real, np.pad),
    *(np.atleast_1d, np.atleast_2d, np.atleast_3d, np.ndarray.real, np.ndarray.conj),
    np.partition,
    *(np.ndarray.conjugate, np.ndarray.view, arrays.reshaped, arrays.spread, arrays.own),
    *(arrays.copied, arrays.taken, arrays.padded, arrays.flattened, arrays.in_order),
    *(arrays.diagonal_view, arrays.sliding),
]
for _own in _KEEPING:
    put(_own, _keeping(_own), SHORT)


def _one_of_each(function: Any) -> Callable[..., Any]:
    """Of several arrays one result each."""
    of_one = _keeping(function)

    def handler(*xs: Any) -> Any:
        if len(xs) == 1:
            return of_one(*xs)
        return tuple(call(function, (gathered(x),), {}) for x in xs)

    return handler


for _own in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
    put(_own, _one_of_each(_own), SHORT)
put(arrays.traced, gathered, SHORT)
put(arrays.retyped, lambda x, dtype: _retyped(gathered(x), np.dtype(dtype)), SHORT)
put(arrays.by_elements, lambda function, x: function(x), SHORT)
put(arrays.known, lambda x: _known(x), SHORT)


def _retyped(x: Any, dtype: np.dtype) -> Any:
    x = arrays.traced(x)
    return x if x.dtype == dtype else _astype(x, dtype)


def _known(x: Short) -> np.ndarray | None:
    found = arrays.known(x.numbers)
    return None if found is None else found.astype(x.dtype)


put(np.ndarray.flat, lambda x, *new: _flat(x, *new), SHORT)


def _flat(x: Short, *new: Any) -> Any:
    found = call(np.ndarray.flat, (x.numbers, *[stored(x, one) for one in new]), {})
    return found if new else marked_view(found, x.dtype)
