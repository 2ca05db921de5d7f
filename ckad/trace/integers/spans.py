"""Slices with computed bounds, read as NumPy reads them: negative bounds wrap, others are clipped.

What the ranges of the bounds settle is settled while recording; only the rest becomes rows.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from ckad.errors import UnknownLengthError
from ckad.place import at_place
from ckad.trace.arrays import Array
from ckad.trace.integers.affine import form_of, is_at_least, range_of, settled
from ckad.trace.values.apply import astype
from ckad.trace.values.tracer import Number, Tracer


class Span(NamedTuple):
    """``length`` places from ``start`` on: each ``step``-th upwards, or all downwards (step -1)."""

    start: Number
    length: Number
    step: int


def is_traced_slice(item: Any) -> bool:
    return isinstance(item, slice) and any(
        isinstance(bound, Tracer) for bound in (item.start, item.stop, item.step)
    )


def known_slice(item: slice) -> slice:
    """The slice with Python ints for those of its bounds that are known."""
    bounds = (item.start, item.stop, item.step)
    return slice(*(number(b) if isinstance(b, Tracer) else b for b in bounds))


def number(x: Any) -> Number:
    """A bound or an index; as a Python int where that is known."""
    if not isinstance(x, Tracer):
        return operator.index(x)
    if x.size != 1 or x.dtype.kind != "i":
        raise TypeError(
            at_place(
                f"a slice bound or an index is {x.type}; only integers without axes are bounds. "
                "Convert it with int(...) or .astype(np.int64)."
            )
        )
    flat = x if not x.shape else x.reshape(())
    return settled(astype(flat, np.int64))


def span_of(item: slice, n: Number) -> Span:
    """The places that ``item`` picks of an axis of ``n``."""
    step = 1 if item.step is None else number(item.step)
    if isinstance(step, Tracer) and len(ends := set(range_of(step))) == 1:
        step = int(ends.pop())
    if isinstance(step, int) and step > 0:
        start, stop = _bound(item.start, n, 0, 0, n), _bound(item.stop, n, n, 0, n)
        if step == 1:
            return Span(start, least_zero(minus(stop, start)), 1)
        first = 0 if item.start is None else number(item.start)
        if isinstance(first, int) and first >= 0:  # also where it is behind the end
            length = least_zero(minus(stop, first))
            return Span(first, _divided(plus(length, step - 1), step), step)
    if isinstance(step, int) and step == -1:
        last = minus(n, 1)
        start = _bound(item.start, n, last, -1, last)
        stop = _bound(item.stop, n, -1, -1, last)
        return Span(start, least_zero(minus(start, stop)), -1)
    raise UnknownLengthError.here(
        "a slice with computed bounds has a step below -1, or one above 1 and a computed start, "
        "or a step that is computed. Use an index array, x[i + 2 * np.arange(m)], or a loop over "
        "the elements."
    )


def _bound(given: Any, n: Number, default: Number, low: Number, high: Number) -> Number:
    if given is None:
        return default
    bound = number(given)
    if below(bound, 0) is not False:
        bound = chosen(below(bound, 0), plus(bound, n), bound)
    return smaller(larger(bound, low), high)


# --- arithmetic that folds ---------------------------------------------------------------------


def plus(x: Number, y: Number) -> Number:
    return _folded(x, y, 1)


def minus(x: Number, y: Number) -> Number:
    return _folded(x, y, -1)


def _folded(x: Number, y: Number, sign: int) -> Number:
    total = form_of(x).plus(form_of(y), sign)
    if not total.terms:
        return total.const
    if isinstance(y, int) and y == 0:
        return x
    if isinstance(x, int) and x == 0 and sign == 1:
        return y
    return _of(np.add if sign == 1 else np.subtract, x, y)


def _of(ufunc: np.ufunc, x: Number, y: Number) -> Number:
    """What NumPy's stubs call an array: a number again, traced if one of both is."""
    found: Number = ufunc(x, y)
    return found


def _divided(x: Number, n: int) -> Number:
    return x // n if isinstance(x, int) else _of(np.floor_divide, x, n)


def larger(x: Number, y: Number) -> Number:
    if is_at_least(x, y):
        return x
    return y if is_at_least(y, x) else _of(np.maximum, x, y)


def smaller(x: Number, y: Number) -> Number:
    if is_at_least(y, x):
        return x
    return y if is_at_least(x, y) else _of(np.minimum, x, y)


def least_zero(x: Number) -> Number:
    return settled(larger(x, 0))


def same(x: Number, y: Number) -> bool:
    """Whether two numbers are equal for certain."""
    return form_of(x) == form_of(y)


def below(x: Number, y: Number) -> Any:
    """Whether ``x < y``: a Python bool where the ranges tell."""
    if is_at_least(y, plus(x, 1)):
        return True
    return False if is_at_least(x, y) else np.less(x, y)


def chosen(condition: Any, x: Number, y: Number) -> Number:
    if isinstance(condition, bool):
        return x if condition else y
    found: Array = np.where(condition, x, y)[()]
    return settled(found)


def at_most(x: Number) -> float:
    """The greatest number that ``x`` can be."""
    return range_of(x)[1]
