"""New arrays: ``like=``, ``*_like``, copies. They have memory of their own and can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.errors import ConcreteValueError, DtypeError
from ckad.place import at_place
from ckad.tape.types import Type
from ckad.trace.arrays import Array
from ckad.trace.dispatch import always, implements, put, reject, tracers
from ckad.trace.memory.context import current
from ckad.trace.memory.layout import contiguity, is_plain
from ckad.trace.primitives.join import stack
from ckad.trace.primitives.shape import (
    atleast_1d,
    copied,
    expand_dims,
    in_order,
    settled_order,
    transpose,
    view_or_copy,
)
from ckad.trace.values.apply import astype, dims_of, tape_dtype
from ckad.trace.values.tracer import Tracer, fresh, known, known_dtype, lift, value
from ckad.trees import SHORT


def _filled(shape: Any, number: Any, dtype: Any) -> Tracer:
    """A new array of ``number``, which may be traced or an array that broadcasts to ``shape``."""
    shape = dims_of(shape)
    if any(d < 0 for d in shape):
        raise ValueError(at_place(f"negative dimensions are not allowed: {shape}"))
    builder = current().builder
    if isinstance(number, (int, float)):
        row = builder.full(Type(tape_dtype(dtype), shape), number)
    else:
        row = builder.broadcast_to(value(astype(number, dtype)), shape)
    return fresh(row, scalar=False)


# --- like= -------------------------------------------------------------------------------------


def _constant(number: int) -> Callable[..., Tracer]:
    def create(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None) -> Tracer:
        filled = _filled(shape, number, np.float64 if dtype is None else dtype)
        return in_order(filled, order)

    return create


zeros = implements(np.zeros)(_constant(0))
empty = implements(np.empty)(_constant(0))  # a tape has no undefined numbers
ones = implements(np.ones)(_constant(1))


@implements(np.full)
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None
) -> Tracer:
    number = lift(fill_value)
    return in_order(_filled(shape, number, number.dtype if dtype is None else dtype), order)


def _as_numpy(function: Any) -> Callable[..., Tracer]:
    """The array that NumPy makes from plain numbers, as a constant."""

    def create(*args: Any, **options: Any) -> Tracer:
        if any(True for _ in tracers((args, tuple(options.values())))):
            args, options = _numbers(args, function), _numbers(options, function)
        found = function(*args, **options)
        if found.dtype in SHORT:
            tape_dtype(found.dtype)  # says why this cannot be
        made = known_dtype(found)
        return fresh(current().builder.const(made), scalar=False)

    return create


def _numbers(args: Any, function: Any) -> Any:
    """The arguments, their tracers replaced by the numbers that are known while recording."""
    if isinstance(args, dict):
        return {name: _numbers(x, function) for name, x in args.items()}
    if isinstance(args, (list, tuple)):
        return type(args)([_numbers(x, function) for x in args])
    number = known(args) if isinstance(args, Tracer) else args
    if number is None:
        raise ConcreteValueError.here(
            f"an argument of np.{function.__name__} is a traced value, and the shape of "
            "the result depends on it. Pass Python numbers."
        )
    return number[()] if isinstance(args, Tracer) else number


for _function in (np.arange, np.eye, np.identity, np.tri, np.indices):
    put(_function, _as_numpy(_function))


def ndarray(shape: Any, dtype: Any = float, *layout: Any, **options: Any) -> Tracer:
    """``np.ndarray(shape, dtype)``: an array to be filled."""
    reject(any(x is not None for x in layout) or options, "np.ndarray with a buffer or strides")
    return empty(shape, dtype)


# --- *_like ------------------------------------------------------------------------------------


def _like(number: int) -> Callable[..., Tracer]:
    def create(
        a: Any,
        dtype: Any = None,
        order: str = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> Tracer:
        return full_like(a, number, dtype, order, subok, shape)

    return create


@implements(np.full_like)
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tracer:
    a = lift(a)
    filled = _filled(
        a.shape if shape is None else shape, fill_value, a.dtype if dtype is None else dtype
    )
    return filled if order == "K" else in_order(filled, settled_order(a, order))


zeros_like = implements(np.zeros_like)(_like(0))
ones_like = implements(np.ones_like)(_like(1))


@implements(np.empty_like)
def empty_like(prototype: Any, *args: Any, **options: Any) -> Tracer:
    return zeros_like(prototype, *args, **options)


# --- from other arrays and lists ---------------------------------------------------------------


def _gather(x: Any, dtype: Any = None) -> Tracer:
    """A tracer of nested lists that may hold tracers."""
    if isinstance(x, (list, tuple)) and any(True for _ in tracers(x)):
        return stack([_gather(item, dtype) for item in x])
    if dtype is not None and (x is None or isinstance(x, (list, tuple))):
        x = np.array(x, dtype)  # where None is NaN
    return lift(x)


@implements(np.array)
def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
) -> Tracer | np.ndarray:
    try:
        x = _gather(object)
    except (DtypeError, ValueError):
        is_traced = any(True for _ in tracers(object))
        of_objects = dtype is not None and np.dtype(dtype).kind == "O"
        reject(is_traced and of_objects, "an array of lists of several lengths (keep the list)")
        plain = None if is_traced else np.array(object, dtype, ndmin=ndmin)
        if plain is None or not (plain.dtype.kind in "OUS" or _are_texts(object)):
            raise
        if plain.dtype.kind in "OUS":
            return plain  # of None, of lists or of texts: no numbers of a program are in it
        x = lift(plain)  # numbers as they stand in a file
    x = _copied(x, dtype, order) if copy is True else asarray(x, dtype, order)
    return x if x.ndim >= ndmin else expand_dims(x, tuple(range(ndmin - x.ndim)))


def _texts(items: Any, dtype: Any = None) -> np.ndarray | None:
    """A plain array of texts; None for any other items."""
    first = items[0] if isinstance(items, (list, tuple)) and items else None
    found = np.array(items, dtype) if isinstance(first, (str, bytes)) else None
    return found if found is not None and found.dtype.kind in "US" else None


def _are_texts(x: Any) -> bool:
    """Whether all numbers in a list, or in lists of it, are written as texts."""
    if isinstance(x, (list, tuple)):
        return bool(x) and all(map(_are_texts, x))
    return isinstance(x, (str, bytes))


def _copied(x: Tracer, dtype: Any, order: str) -> Tracer:
    if order in ("F", "A"):
        return in_order(astype(x, x.dtype if dtype is None else dtype), settled_order(x, order))
    return converted(x, x.dtype if dtype is None else dtype, contiguous=order == "C")


@implements(np.asarray, np.asanyarray)
def _array_or_texts(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None
) -> Tracer | np.ndarray:
    plain = _texts(a, dtype)
    return asarray(a, dtype, order, device=device, copy=copy) if plain is None else plain


def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None
) -> Tracer:
    x = _gather(a, dtype)
    if copy or (dtype is not None and np.dtype(dtype) != x.dtype):
        return _copied(x, dtype, order or "K")
    if x.scalar:
        return copied(x)
    return x if order in (None, "A", "K") else _lying_in(x, order)


def _lying_in(x: Tracer, order: str) -> Tracer:
    """``x`` itself if it lies in memory row by row (C) or column by column (F), else a copy."""
    if order == "C":
        return view_or_copy(x, x, contiguity(x))
    turned = transpose(x)
    known = contiguity(turned)
    return x if known else transpose(view_or_copy(turned, turned, known))


@implements(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None) -> Tracer:
    laid: Tracer = atleast_1d(asarray(a, dtype, "F"))
    return laid


def converted(x: Tracer, dtype: Any, contiguous: bool = False) -> Tracer:
    """A copy of ``x`` in another dtype, in the layout of ``x`` unless ``contiguous``."""
    copy = copied(astype(x, dtype))
    copy.storage.plain = contiguous or is_plain(x)
    return copy


@implements(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None) -> Tracer:
    laid: Tracer = atleast_1d(asarray(a, dtype, "C"))
    return laid


@implements(np.require)
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Tracer:
    wanted = {name[0].upper() for name in requirements or ()}
    x = asarray(a, dtype, next((order for order in "FC" if order in wanted), "A"))
    return x.copy() if "O" in wanted and not x.flags.owndata else x


@implements(np.astype)
def astype_(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    return lift(x).astype(dtype, copy=copy)


@implements(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Tracer:
    return in_order(a, order)


# --- what is traced also for plain arguments ---------------------------------------------------

# the program may write into their results
put(np.ndarray, ndarray)
always(
    *(np.ndarray, np.tile, np.repeat),
    *(np.zeros, np.ones, np.empty, np.full, np.arange, np.eye, np.identity, np.tri),
    *(np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.copy, np.array),
    *(
        np.asarray,
        np.asanyarray,
        np.ascontiguousarray,
        np.asfortranarray,
        np.require,
        np.fromfunction,
        np.indices,
    ),
    *(np.linspace, np.logspace, np.geomspace, np.meshgrid),
    *(np.concatenate, np.stack, np.hstack, np.vstack, np.dstack, np.column_stack),
    *(np.block, np.append),
)
