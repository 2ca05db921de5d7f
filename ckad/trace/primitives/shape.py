"""Functions that look at the same elements in another arrangement: views wherever NumPy's are."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ckad.place import at_place, user_place
from ckad.trace import arrays
from ckad.trace.axes import axis_of, reduced_axes
from ckad.trace.dispatch import implements, put, reject
from ckad.trace.memory.layout import contiguity, is_plain, is_view
from ckad.trace.memory.storage import link
from ckad.trace.memory.views import (
    BroadcastView,
    DiagonalView,
    ReshapeView,
    SlidingView,
    TransposeView,
    View,
)
from ckad.trace.values.apply import dims_of
from ckad.trace.values.tracer import Tracer, fresh, lift, localise, value


def view(x: Any, *steps: View) -> Tracer:
    """What ``x`` looks like through further views. A NumPy scalar is copied: it has no memory."""
    x = localise(lift(x))
    seen = Tracer(x.storage, (*x.path, *steps))
    return fresh(value(seen)) if x.scalar else seen


def copied(x: Any, contiguous: bool = True) -> Tracer:
    """An array of its own with the elements of ``x``, C-contiguous or in the layout of ``x``."""
    x = localise(lift(x))
    copy = fresh(value(x), scalar=False)
    copy.storage.plain = contiguous or is_plain(x)
    return copy


def in_order(x: Any, order: str | None) -> Tracer:
    """A copy of ``x`` in one of NumPy's orders; column by column it is a transposed array."""
    x = localise(lift(x))
    if settled_order(x, order) == "F":
        return transpose(copied(transpose(x)))
    return copied(x, contiguous=order == "C")


def settled_order(x: Tracer, order: str | None) -> str:
    """``order``, or for "A" and "K" the one in which ``x`` lies in memory as a whole: C or F."""
    if order not in ("A", "K", None):
        reject(order not in ("C", "F"), f"order={order!r}")
        return str(order)
    turned = contiguity(transpose(x))
    unknown = turned is None and x.ndim > 1
    reject(order == "A" and unknown, "order='A' of an array whose layout is not known")
    return "F" if turned and not contiguity(x) else "C"


def order_of_elements(x: Tracer, order: str) -> str:
    """The same where the elements are wanted as they lie."""
    as_they_lie = is_plain(x) or contiguity(transpose(x))
    reject(order == "K" and not as_they_lie, "order='K' of an array whose layout is not known")
    return settled_order(x, order)


# --- reshape and ravel -------------------------------------------------------------------------


@implements(np.reshape, contiguous=True)
def reshape(
    a: Any, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None
) -> Tracer:
    x = localise(lift(a))
    target = _target(newshape if shape is None else shape, x)
    if settled_order(x, "C" if order == "K" else order) == "F":
        turned = reshape(transpose(x), target[::-1], copy=copy)
        return transpose(turned)
    if copy:
        return copied(view(x, ReshapeView(target)))
    shared = x.scalar or is_view(x, target)
    if copy is False and not shared:
        raise ValueError(at_place("unable to avoid creating a copy while reshaping"))
    seen = view(x, ReshapeView(target))
    return view(x) if target == x.shape else view_or_copy(x, seen, shared)


def _target(shape: Any, x: Tracer) -> tuple[int, ...]:
    """The shape asked for, -1 replaced by the length that fits."""
    dims = list(dims_of(shape))
    known = math.prod(d for d in dims if d != -1)
    if dims.count(-1) == 1 and known and x.size % known == 0:
        dims[dims.index(-1)] = x.size // known
    if -1 in dims or math.prod(dims) != x.size:
        raise ValueError(
            at_place(f"cannot reshape array of size {x.size} into shape {tuple(dims)}")
        )
    return tuple(dims)


def view_or_copy(x: Tracer, seen: Tracer, shared: bool | None) -> Tracer:
    """``seen``, a view of ``x``, or a copy; where NumPy's choice is not known, no later writes."""
    if shared:
        return seen
    copy = copied(seen)
    if shared is None:
        said = f"a reshape of it made at {user_place()}"
        for storage in (copy.storage, x.storage, x.storage.root):
            storage.shared = said
        link(copy.storage, x.storage.root)
    return copy


@implements(np.ravel, contiguous=True)
def ravel(a: Any, order: str = "C") -> Tracer:
    x = localise(lift(a))
    if order_of_elements(x, order) == "F":
        return ravel(transpose(x))
    if x.scalar:
        return copied(view(x, ReshapeView((1,))))
    seen = view(x) if x.ndim == 1 else view(x, ReshapeView((x.size,)))
    return view_or_copy(x, seen, contiguity(x))


# --- the order of the axes ---------------------------------------------------------------------


@implements(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Any = None) -> Tracer:
    x = lift(a)
    if axes is None:
        return _permuted(x, range(x.ndim)[::-1])
    if len(axes) != x.ndim:
        raise ValueError(at_place(f"axes {tuple(axes)} do not match an array of {x.ndim} axes"))
    return _permuted(x, normalize_axis_tuple(axes, x.ndim))


def _permuted(x: Tracer, order: Sequence[int]) -> Tracer:
    order = tuple(order)
    return view(x) if order == tuple(range(x.ndim)) else view(x, TransposeView(order))


# --- axes of length one ------------------------------------------------------------------------


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Tracer:
    x = lift(a)
    axis = axis if isinstance(axis, (tuple, list)) else (axis,)
    new = normalize_axis_tuple(axis, x.ndim + len(axis))
    lengths = iter(x.shape)
    return view(
        x, ReshapeView(tuple(1 if k in new else next(lengths) for k in range(x.ndim + len(axis))))
    )


@implements(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Tracer:
    x = lift(a)
    ones = tuple(k for k, d in enumerate(x.shape) if d == 1)
    gone = ones if axis is None else reduced_axes(axis, x.ndim)
    if any(x.shape[k] != 1 for k in gone):
        raise ValueError(
            at_place(f"cannot squeeze axes {gone} of shape {x.shape}: not of length 1")
        )
    return view(x, ReshapeView(tuple(d for k, d in enumerate(x.shape) if k not in gone)))


def _at_least(rank: int, place: Callable[[Tracer], tuple[int, ...]]) -> Callable[..., Any]:
    def function(*arrays: Any) -> Any:
        results = []
        for x in map(lift, arrays):
            shape = place(x)
            results.append(x if x.shape == shape and not x.scalar else view(x, ReshapeView(shape)))
        return results[0] if len(results) == 1 else tuple(results)

    return function


def _three(x: Tracer) -> tuple[int, ...]:
    return {0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}.get(x.ndim, x.shape)


atleast_1d = implements(np.atleast_1d)(_at_least(1, lambda x: x.shape or (1,)))
atleast_2d = implements(np.atleast_2d)(_at_least(2, lambda x: (*[1] * (2 - x.ndim), *x.shape)))
atleast_3d = implements(np.atleast_3d)(_at_least(3, _three))


# --- read-only views ---------------------------------------------------------------------------


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Tracer:
    shape = dims_of(shape)
    x = lift(array)
    if np.broadcast_shapes(x.shape, shape) != shape:
        raise ValueError(at_place(f"an array of shape {x.shape} cannot be broadcast to {shape}"))
    return view(copied(x) if x.scalar else x, BroadcastView(shape))


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    xs = [lift(x) for x in args]
    shape = np.broadcast_shapes(*[x.shape for x in xs])
    if all(x.shape == shape for x in xs):
        return tuple(copied(x) if x.scalar else x for x in xs)
    return tuple(broadcast_to(x, shape) for x in xs)


@implements(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tracer:
    return diagonal_view(lift(a), offset, axis1, axis2, writable=False)


def diagonal_view(x: Tracer, offset: int, axis1: int, axis2: int, writable: bool) -> Tracer:
    """The diagonal of two axes, as the last axis."""
    if x.ndim < 2:
        raise ValueError(at_place(f"a diagonal needs two axes, the array has {x.ndim}"))
    i, j = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    if i == j:
        raise ValueError(at_place("axis1 and axis2 cannot be the same"))
    order = (*[k for k in range(x.ndim) if k not in (i, j)], i, j)
    return view(
        _permuted(x, order), DiagonalView(operator.index(offset), x.shape[i], x.shape[j], writable)
    )


# --- parts and turns ---------------------------------------------------------------------------


put(arrays.copied, copied)
put(arrays.diagonal_view, diagonal_view)
put(
    arrays.sliding,
    lambda x, axes, lengths: view(x, SlidingView(tuple(axes), tuple(lengths))),
)
