"""Sums, extrema and products of arrays of run-time extent.

They are those of whole arrays, with the neutral element outside of the extents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.tape.ops import Op
from ckad.trace.alignment import Operand
from ckad.trace.apply import apply, astype
from ckad.trace.extent_elements import PART_FUNCTIONS, as_array, elementwise, implements, written
from ckad.trace.extents import Padded, count, filled, inside, unsupported
from ckad.trace.functions.axes import axes_of, axis_of
from ckad.trace.functions.register import given
from ckad.trace.spans import below
from ckad.trace.tracer import FUNCTIONS, Tracer, lift

# --- reductions --------------------------------------------------------------------------------


def _reduce(function: Any, a: Padded, number: Any, axis: Any, keepdims: Any, **options: Any) -> Any:
    """``function`` of the base, ``number`` outside of the extents."""
    data = filled(a.base, inside(a.extents, a.base.shape), number)
    keepdims = given(keepdims) and bool(keepdims)
    axes = axes_of(axis, a.ndim)
    result = FUNCTIONS[function](data, axis=axis, keepdims=keepdims, **options)
    extents = [None if k in axes else e for k, e in enumerate(a.extents)]
    if not keepdims:
        extents = [e for k, e in enumerate(extents) if k not in axes]
    return result if all(e is None for e in extents) else Padded(result, extents)


def _lowest(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else (np.iinfo(dtype).min if dtype.kind == "i" else False)


def _highest(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else (np.iinfo(dtype).max if dtype.kind == "i" else True)


@implements(np.sum)
def sum_(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
         initial: Any = None, where: Any = True) -> Any:  # fmt: skip
    _no_mask(where)
    total = _reduce(np.sum, a, 0, axis, keepdims, dtype=dtype)
    return written(total + initial if given(initial) else total, out)


@implements(np.prod)
def prod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
         initial: Any = None, where: Any = True) -> Any:  # fmt: skip
    _no_mask(where)
    product = _reduce(np.prod, a, 1, axis, keepdims, dtype=dtype)
    return written(product * initial if given(initial) else product, out)


def _no_mask(where: Any) -> None:
    if where is not True and where is not np._NoValue:
        unsupported("where=")


@implements(np.mean)
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
         *, where: Any = True) -> Any:  # fmt: skip
    _no_mask(where)
    kind = dtype or (a.dtype if a.dtype.kind == "f" else np.float64)
    total = sum_(a, axis, kind, keepdims=keepdims)
    return written(total / _number(count(a, axes_of(axis, a.ndim)), total.dtype), out)


def _number(x: Any, dtype: Any) -> Any:
    return astype(x, dtype) if isinstance(x, Tracer) else x


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None) -> Any:
    if weights is None:
        return mean(a, axis)
    products = np.multiply(a, weights)
    return np.sum(products, axis) / np.sum(products * 0 + weights, axis)


@implements(np.var)
def var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
        keepdims: Any = False) -> Any:  # fmt: skip
    centred = a - mean(a, axis, dtype, keepdims=True)
    squares = sum_(centred * centred, axis, keepdims=keepdims)
    freedom = np.maximum(lift(count(a, axes_of(axis, a.ndim)) - ddof), 0)
    return written(squares / _number(freedom, squares.dtype), out)


@implements(np.std)
def std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
        keepdims: Any = False) -> Any:  # fmt: skip
    return written(_root(var(a, axis, dtype, None, ddof, keepdims)), out)


def _root(x: Any) -> Any:
    from ckad.trace.functions.reduce import safe_sqrt

    return elementwise(safe_sqrt, [x], tame=False) if isinstance(x, Padded) else safe_sqrt(x)


def _extremum(function: Any, outside: Callable[[np.dtype], Any]) -> Any:
    @implements(function)
    def extremum(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
                 initial: Any = None, where: Any = True) -> Any:  # fmt: skip
        _no_mask(where)
        if not given(initial):
            a = _not_empty(a, axes_of(axis, a.ndim))
        options = {"initial": initial} if given(initial) else {}
        return written(_reduce(function, a, outside(a.dtype), axis, keepdims, **options), out)

    return extremum


def _not_empty(a: Padded, axes: Sequence[int]) -> Padded:
    """``a``; the program stops if there is nothing along ``axes``."""
    extents = list(a.extents)
    for k in axes:
        extent = extents[k]
        if extent is not None and below(0, extent.length) is not True:
            empty = np.where(np.less(extent.length, 1), 1, 0)[()]
            stop = apply(Op.WRAP, lift(empty), attrs=(1,))
            extents[k] = extent._replace(length=np.add(extent.length, stop))
    return Padded(a.base, extents, a.tame)


np_max = _extremum(np.max, _lowest)
np_min = _extremum(np.min, _highest)
PART_FUNCTIONS[np.amax], PART_FUNCTIONS[np.amin] = np_max, np_min


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    return written(np_max(a, axis, keepdims=keepdims) - np_min(a, axis, keepdims=keepdims), out)


def _truth(function: Any, outside: bool) -> None:
    @implements(function)
    def truth(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        whole = Padded(astype(a.base, bool), a.extents)
        return written(_reduce(function, whole, outside, axis, keepdims), out)


_truth(np.any, False)
_truth(np.all, True)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return sum_(Padded(astype(a.base, bool), a.extents), axis, keepdims=keepdims)


def _position(function: Any, outside: Callable[[np.dtype], Any]) -> None:
    @implements(function)
    def position(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        if a.ndim > 1 and axis is None:
            unsupported(f"np.{function.__name__} without axis=")
        k = axis_of(axis or 0, a.ndim)
        found = _reduce(function, _not_empty(a, [k]), outside(a.dtype), k, keepdims)
        return written(found if a.extents[k] is None else found - a.extents[k].origin, out)


_position(np.argmax, _lowest)
_position(np.argmin, _highest)


def _running(function: Any, outside: Any) -> None:
    @implements(function)
    def running(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        if a.ndim > 1 and axis is None:
            unsupported(f"np.{function.__name__} without axis=")
        data = filled(a.base, inside(a.extents, a.base.shape), outside)
        result = FUNCTIONS[function](data, axis=axis or 0, dtype=dtype)
        return written(Padded(result, a.extents), out)


_running(np.cumsum, 0)
_running(np.cumprod, 1)


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if x.ndim > 1 and axis is None and ord not in (None, "fro"):
        unsupported(f"np.linalg.norm of a matrix with ord={ord!r}")
    if ord in (None, 2, "fro"):
        return _root(sum_(x * x, axis, keepdims=keepdims))
    if ord == 1:
        return sum_(np.abs(x), axis, keepdims=keepdims)
    if ord == np.inf:
        return np_max(np.abs(x), axis, keepdims=keepdims, initial=0)
    return unsupported(f"np.linalg.norm with ord={ord!r}")


# --- products ----------------------------------------------------------------------------------


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    x, y = as_array(a), as_array(b)
    if not x.ndim or not y.ndim:
        return written(x * y, out)
    return written(matmul(x, y), out)


@implements(np.inner, np.vdot)
def inner(a: Any, b: Any, /) -> Any:
    x, y = as_array(a), as_array(b)
    return matmul(x, y) if x.ndim == y.ndim == 1 else unsupported("np.inner of matrices")


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    x, y = as_array(a), as_array(b)
    if x.ndim != 1 or y.ndim != 1:
        unsupported("np.outer of matrices")
    return written(x[:, None] * y[None, :], out)


@implements(np.matmul)
def matmul(a: Any, b: Any) -> Any:
    """The product of vectors and matrices, zero outside of the extents."""
    x, y = Operand(as_array(a)), Operand(as_array(b))
    if not 1 <= x.rank <= 2 or not 1 <= y.rank <= 2:
        unsupported("the product of stacks of matrices")
    k = 0 if y.rank == 1 else y.rank - 2
    if x.extents[-1] is not None:
        x.extents[-1] = y.fit(k, x.extents[-1], x.data.shape[-1], repeats=False)
    elif y.extents[k] is not None:
        y.extents[k] = x.fit(x.rank - 1, y.extents[k], y.data.shape[k], repeats=False)
    left, right = (filled(v.data, inside(v.extents, v.data.shape), 0) for v in (x, y))
    extents = [*x.extents[:-1], *(e for i, e in enumerate(y.extents) if i != k)]
    product = np.dot(left, right)  # of vectors it is a sum, which fuses with what is summed
    return product if all(e is None for e in extents) else Padded(product, extents, tame=True)
