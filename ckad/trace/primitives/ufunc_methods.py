"""``reduce``, ``accumulate``, ``outer``, ``reduceat`` and ``at`` of ufuncs on tracers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace import arrays
from ckad.trace.arrays import Array
from ckad.trace.axes import along, axis_of, reduced_axes
from ckad.trace.dispatch import (
    EVERY,
    PLAIN,
    SHORT,
    cell,
    derives,
    needs_numbers,
    plain,
    put,
    reject,
)
from ckad.trace.memory.layout import plain_layout
from ckad.trace.primitives.index import add_at
from ckad.trace.primitives.select import copyto
from ckad.trace.primitives.shape import copied
from ckad.trace.values.apply import astype, broadcast_to, finish, operands, reshape_value, resolve
from ckad.trace.values.tracer import Tracer, fresh, known, lift, value

#: ufuncs that may be applied to neighbours in any grouping
ASSOCIATIVE = (
    *(np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.hypot, np.logical_and),
    *(np.logical_or, np.logical_xor, np.bitwise_and, np.bitwise_or, np.bitwise_xor),
)
LOGICAL = (np.logical_and, np.logical_or, np.logical_xor)

# --- reduce ------------------------------------------------------------------------------------

_ufunc: np.ufunc
_function: Callable[..., Any]
for _ufunc, _function in (
    (np.add, np.sum),
    (np.multiply, np.prod),
    (np.maximum, np.max),
    (np.minimum, np.min),
    (np.logical_and, np.all),
    (np.logical_or, np.any),
):

    def _reduce(x: Any, axis: Any = 0, dtype: Any = None, out: Any = None,
                f: Any = _function, **options: Any) -> Any:  # fmt: skip
        options |= {k: v for k, v in (("dtype", dtype), ("out", out)) if v is not None}
        return f(x, axis=axis, **options)

    put((_ufunc, "reduce"), _reduce, (*EVERY, SHORT))


def _halving(ufunc: Any) -> Callable[..., Tracer]:
    def reduce(a: Any, axis: Any = 0, out: Any = None, keepdims: bool = False) -> Tracer:
        x = _operand(ufunc, a)
        axes = reduced_axes(axis, x.ndim)
        kept = [1 if k in axes else d for k, d in enumerate(x.shape)]
        for k in reversed(axes):
            x = _halved(ufunc, x, k)
        x = reshape_value(x, kept) if keepdims else x
        return finish(plain_layout([a], x) if x.shape else fresh(value(x)), out)

    return reduce


def _operand(ufunc: Any, a: Any) -> Tracer:
    """``a`` in the dtype that the ufunc computes with, and gives."""
    x = lift(a)
    if ufunc in LOGICAL:
        return astype(x, bool)
    return astype(x, operands(ufunc, (x, x))[0].dtype)


def _halved(ufunc: Any, x: Array, k: int) -> Array:
    if not x.shape[k]:
        return _of_nothing(ufunc, x, k)
    if ufunc is np.hypot and x.shape[k] == 1:  # NumPy starts from 0
        x = np.abs(x)
    while x.shape[k] > 1:
        half = x.shape[k] // 2
        pairs = ufunc(x[along(k, slice(None, half))], x[along(k, slice(half, 2 * half))])
        x = np.concatenate([pairs, x[along(k, slice(2 * half, None))]], k)
    return copied(x[along(k, 0)])


def _of_nothing(ufunc: Any, x: Array, k: int) -> Array:
    if ufunc.identity is None:
        raise ValueError(
            at_place(
                f"zero-size array to reduction operation {ufunc.__name__} which has no identity"
            )
        )
    dtype = ufunc(x, x).dtype
    return np.full((*x.shape[:k], *x.shape[k + 1 :]), ufunc.identity, dtype, like=x)


# --- accumulate --------------------------------------------------------------------------------

for _ufunc, _function in ((np.add, np.cumsum), (np.multiply, np.cumprod)):

    def _accumulate(
        x: Any, axis: Any = 0, dtype: Any = None, out: Any = None, f: Any = _function
    ) -> Array:
        if not np.ndim(x):
            raise TypeError(at_place("cannot accumulate on a scalar"))
        options = {k: v for k, v in (("dtype", dtype), ("out", out)) if v is not None}
        return f(x, axis=axis, **options)

    put((_ufunc, "accumulate"), _accumulate, (PLAIN, SHORT))


def _doubling(ufunc: Any) -> Callable[..., Tracer]:
    """Results over the last 1, 2, 4, ... elements."""

    def accumulate(x: Any, axis: Any = 0, out: Any = None) -> Tracer:
        given, x = x, _operand(ufunc, x)
        if not x.ndim:
            raise TypeError(at_place("cannot accumulate on a scalar"))
        k, reach, result = axis_of(axis, x.ndim), 1, x
        while reach < x.shape[k]:
            start, far = along(k, slice(None, reach)), along(k, slice(reach, None))
            near = along(k, slice(None, -reach))
            result = np.concatenate([result[start], ufunc(result[near], result[far])], k)
            reach *= 2
        return finish(plain_layout([given], copied(result)), out)

    return accumulate


for _ufunc in ASSOCIATIVE:
    if cell((_ufunc, "reduce")) is None:
        put((_ufunc, "reduce"), _halving(_ufunc))
    put((_ufunc, "accumulate"), _doubling(_ufunc))


# --- hypot of several --------------------------------------------------------------------------


def _smooth_at_zeros(by_pairs: Callable[..., Tracer], total: Any) -> Callable[..., Tracer]:
    """Where two elements are 0, the root of the sum of all squares.

    The hypot of these two alone has derivative 0, and so would lose their second derivatives.
    """

    def method(a: Any, axis: Any = 0, out: Any = None, **options: Any) -> Tracer:
        pairs, x = by_pairs(a, axis, **options), _operand(np.hypot, a)
        limits = np.finfo(x.dtype)
        squared = np.logical_and(pairs**2 > limits.tiny * 2.0**60, pairs**2 < limits.max)
        several = total(np.equal(x, 0), axis, **options) >= 2
        chosen = np.logical_and(several, squared)
        root = np.sqrt(np.where(chosen, total(x * x, axis, **options), 1))
        return finish(fresh(value(np.where(chosen, root, pairs))), out)

    return method


for _method, _total in (("reduce", np.sum), ("accumulate", np.cumsum)):
    _by_pairs = plain((np.hypot, _method))
    put((np.hypot, _method), _smooth_at_zeros(_by_pairs, _total))


# --- outer -------------------------------------------------------------------------------------


def _as_array(x: Tracer) -> Tracer:
    """A Python number counts as an array here, not as a weak scalar."""
    return Tracer(x.storage, x.path, x.scalar) if x.weak else x


def _outer_of(ufunc: Any) -> Callable[..., Any]:
    def outer(x: Any, y: Any, **options: Any) -> Any:
        x, y = (_as_array(lift(each)) for each in (x, y))
        spread = reshape_value(x, (*x.shape, *[1] * len(y.shape)))
        found = ufunc(spread, y, **options)
        if ufunc.nout == 1:
            return plain_layout((x, y), found)
        return tuple(plain_layout((x, y), each) for each in found)

    return outer


# --- reduceat ----------------------------------------------------------------------------------

_where_to_cut = needs_numbers("ufunc.reduceat with traced indices", "Pass plain indices.")


def _reduceat_of(ufunc: Any) -> Callable[..., Tracer]:
    def reduceat(
        array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> Array:
        x, cuts = lift(array), known(indices)
        if cuts is None:
            return _where_to_cut()
        x = x if dtype is None else astype(x, dtype)
        k = axis_of(axis, x.ndim)
        if cuts.size and (cuts.min() < 0 or cuts.max() >= x.shape[k]):
            raise IndexError(
                at_place(f"indices out of bounds in {ufunc.__name__}.reduceat [0, {x.shape[k]})")
            )
        ends = [*cuts.tolist()[1:], x.shape[k]]
        parts = [
            ufunc.reduce(x[along(k, slice(a, max(b, a + 1)))], axis=k, keepdims=True)
            for a, b in zip(cuts.tolist(), ends, strict=True)
        ]
        joined: Array = np.concatenate(parts, k)
        return finish(joined, out)

    return reduceat


# --- at ----------------------------------------------------------------------------------------


def _into(x: Any, values: Any) -> None:
    if not isinstance(x, Tracer):
        copyto(x, values)  # says why a plain array cannot take it


def _adding(ufunc: Any, change: Callable[[Any], Any]) -> Callable[..., None]:
    one_after_the_other = _at_of(ufunc)

    def at(x: Any, index: Any, values: Any) -> None:
        _into(x, values)
        new = lift(values)
        total = resolve(ufunc, (x, new))[-1]
        if x.dtype == bool or not np.can_cast(total, x.dtype, "same_kind"):
            one_after_the_other(x, index, new)  # each is rounded in the dtype of x
        else:
            add_at(x, index, change(astype(new, x.dtype)))

    return at


def _at_of(ufunc: Any) -> Callable[..., None]:
    """Repeated places are changed one after the other, each time with the next value."""

    def at(x: Any, index: Any, values: Any = None) -> None:
        _into(x, index if values is None else values)
        items = index if isinstance(index, tuple) else (index,)
        known_items = [i if isinstance(i, slice) else known(i) for i in items]
        if any(i is None for i in known_items):
            _one_by_one(ufunc, x, items, values)
            return
        for places, chosen in _rounds(x.shape, tuple(known_items)):
            old = x[places]
            if values is None:
                x[places] = ufunc(old)
            else:
                new = broadcast_to(values, chosen.shape)
                x[places] = ufunc(old, _picked(new, chosen))

    return at


def _one_by_one(ufunc: Any, x: Any, items: Any, values: Any) -> None:
    """At traced places, in a loop over them."""
    traced = [lift(i) for i in items if not isinstance(i, slice)]
    reject(
        len(traced) < len(items) or any(i.dtype == bool for i in traced),
        f"np.{ufunc.__name__}.at with traced indices beside slices, or a traced mask",
    )
    shape = np.broadcast_shapes(*(i.shape for i in traced))
    size = math.prod(shape)
    rows = [reshape_value(broadcast_to(i, shape), (size,)) for i in traced]
    if values is not None:
        rest = x.shape[len(rows) :]
        values = reshape_value(broadcast_to(lift(values), (*shape, *rest)), (size, *rest))

    def body(k: Any, y: Any) -> Any:
        place = tuple(row[k] for row in rows)
        y[place] = ufunc(y[place]) if values is None else ufunc(y[place], values[k])
        return y

    copyto(x, arrays.fori_loop(0, size, body, x), casting="unsafe")


def _rounds(shape: Any, index: Any) -> Iterator[tuple[Any, np.ndarray]]:
    """The places in rounds without repetition, each with a mask of the values that it takes."""
    flat = np.arange(int(np.prod(shape))).reshape(shape)[index]
    order = np.argsort(flat, axis=None, kind="stable")
    ranked = flat.ravel()[order]
    first = np.searchsorted(ranked, ranked)
    turn = np.empty(flat.size, int)
    turn[order] = np.arange(flat.size) - first
    turn = turn.reshape(flat.shape)
    for k in range(int(turn.max(initial=-1)) + 1):
        chosen = turn == k
        yield np.unravel_index(flat[chosen], shape), chosen


def _picked(values: Tracer, chosen: np.ndarray) -> Array:
    return reshape_value(values, (values.size,))[np.flatnonzero(chosen)]


def _derived(key: Any) -> Callable[..., Any] | None:
    """``outer``, ``at`` and ``reduceat`` of all ufuncs for which they can be made."""
    if not isinstance(key, tuple):
        return None
    ufunc, method = key
    plain = ufunc.signature is None and cell(ufunc) is not None
    if method == "outer" and plain and ufunc.nin == 2:
        return _outer_of(ufunc)
    if method == "at" and plain and ufunc.nout == 1:
        return _at_of(ufunc)
    known_reduction = method == "reduceat" and cell((ufunc, "reduce")) is not None
    return _reduceat_of(ufunc) if known_reduction else None


derives(PLAIN, _derived)
put((np.add, "at"), _adding(np.add, lambda values: values))
put((np.subtract, "at"), _adding(np.subtract, np.negative))
