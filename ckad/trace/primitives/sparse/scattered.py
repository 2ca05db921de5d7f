"""Matrices at traced places: made as ``csc_matrix((data, (rows, columns)), shape)``, and used up.

SciPy takes places that are floats as integers, and none that are outside of the matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.errors import ConcreteValueError
from ckad.place import at_place
from ckad.trace.dispatch import call
from ckad.trace.primitives.sparse.operators import array_of
from ckad.trace.values.scattered import Scattered
from ckad.trace.values.sparse import Dense
from ckad.trace.values.tracer import Tracer, known, lift

_CLASSES = ("csr_", "csc_", "coo_")


def unknown() -> ConcreteValueError:
    return ConcreteValueError.here(
        "the places of a sparse matrix's elements are traced: which elements there are "
        "is not known while the program is recorded. Make rows and columns of numbers "
        "that depend on no argument; a matrix ((data, (rows, columns)), shape=(m, n)) at "
        "computed places can be multiplied by arrays, summed, and turned into one (toarray)."
    )


def made(cls: type, data: Any, places: Any, shape: Any) -> Scattered:
    """A matrix of a shape that is known."""
    if shape is None or not cls.__name__.startswith(_CLASSES) or len(places) != 2:
        raise unknown()
    m, n = (int(k) for k in shape)
    rows, columns = (_inside(p, k, m * n) for p, k in zip(places, (m, n), strict=True))
    numbers = array_of(data)
    if not (numbers.shape == rows.shape == columns.shape) or numbers.ndim != 1:
        raise ValueError(at_place("row, column, and data array must all be the same size"))
    return Scattered(cls, (m, n), numbers, rows, columns)


def _inside(places: Any, size: int, outside: int) -> Tracer:
    """Integers, and ``outside`` for those that are out of range: no place, in a row or in all."""
    found = lift(call(np.asarray, (places,), {}))
    whole: Tracer = call(np.ndarray.astype, (found, np.int64), {})
    if (numbers := known(whole)) is not None:
        if numbers.size and (numbers.min() < 0 or numbers.max() >= size):
            raise ValueError(at_place("the places of a sparse matrix's elements exceed its shape"))
        return whole
    below, above = call(np.less, (whole, 0), {}), call(np.greater_equal, (whole, size), {})
    wrong = call(np.logical_or, (below, above), {})
    chosen: Tracer = call(np.where, (wrong, outside, whole), {})
    return chosen


def product(x: Any, y: Any, matrices: bool = True) -> Any:
    """``A @ B`` of one of these and an array, or what ``*`` is."""
    own, other = (x, y) if isinstance(x, Scattered) else (y, x)
    if not isinstance(other, (Scattered, Dense)) and np.ndim(other) == 0:
        return own.of(call(np.multiply, (own.numbers, other), {}))
    if isinstance(other, Scattered) or (own.is_array and not matrices):
        raise unknown()
    dense = other.numbers if isinstance(other, Dense) else array_of(other)
    if own is x:
        found = own.times(dense)
    elif dense.ndim == 1:
        found = own.turned().times(dense)
    else:
        found = call(np.transpose, (own.turned().times(call(np.transpose, (dense,), {})),), {})
    return Dense(found) if isinstance(other, Dense) else found


def total(x: Scattered, axis: Any) -> Any:
    """The sum of all elements, or along an axis."""
    if axis is None:
        return call(np.sum, (x.numbers,), {})
    down = axis in (0, -2)
    own = x.turned() if down else x
    found = own.times(array_of(np.ones(own.shape[1], x.dtype)))
    if x.is_array:
        return found
    return Dense(call(np.reshape, (found, (1, -1) if down else (-1, 1)), {}))
