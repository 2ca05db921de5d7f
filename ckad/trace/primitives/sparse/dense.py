"""``np.matrix`` of traced values: two axes always, ``*`` the product of matrices."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ckad import trees
from ckad.place import at_place
from ckad.trace.dispatch import SPARSE, call, put, reject
from ckad.trace.values.sparse import Dense
from ckad.trace.values.tracer import Tracer


def made(data: Any, dtype: Any = None, copy: bool = True) -> Dense:
    """A row of a vector; ``np.asmatrix`` shows what the array holds, and does not copy it."""
    numbers = data.numbers if isinstance(data, Dense) else data
    of = {} if dtype is None else {"dtype": dtype}
    copies = copy or not isinstance(numbers, Tracer)
    numbers = call(np.array if copies else np.asarray, (numbers,), of)
    if len(numbers.shape) > 2:
        raise ValueError(at_place("matrix must be 2-dimensional"))
    if len(numbers.shape) < 2:
        numbers = call(np.reshape, (numbers, (1, -1)), {})
    return Dense(numbers)


def shown(data: Any, dtype: Any = None) -> Dense:
    return made(data, dtype, copy=False)


def part(x: Dense, index: Any) -> Any:
    """A vector is a column where the second index is a number, else a row."""
    found = call(operator.getitem, (x.numbers, index), {})
    shape = np.shape(found)
    if len(shape) > 1:
        reject(len(shape) > 2, "a part of an np.matrix with more than two axes")
        return Dense(found)
    if not shape:
        return found
    is_column = isinstance(index, tuple) and len(index) > 1 and _is_number(index[1])
    return Dense(call(np.reshape, (found, (-1, 1) if is_column else (1, -1)), {}))


def _is_number(x: Any) -> bool:
    return not (x is None or x is Ellipsis or isinstance(x, slice)) and np.ndim(x) == 0


def _power(x: Dense, n: Any, modulo: None = None) -> Dense:
    reject(not isinstance(n, (int, np.integer)), "a power of an np.matrix that is no known integer")
    return Dense(call(np.linalg.matrix_power, (x.numbers, int(n)), {}))


def _inverse(x: Dense) -> Dense:
    rows, columns = x.shape
    return Dense(call(np.linalg.inv if rows == columns else np.linalg.pinv, (x.numbers,), {}))


def _matmul(x: Any, y: Any) -> Any:
    reject(np.ndim(x) != 2 or np.ndim(y) != 2, "an np.matrix @ a vector")
    return call(operator.mul, (x, y), {})


def _exponent(x: Dense, base: Any, modulo: None = None) -> Any:
    reject(True, "a power by an np.matrix")


def _adjoint(x: Dense) -> Dense:
    return Dense(call(np.conj, (call(np.transpose, (x.numbers,), {}),), {}))


def _of_matrix(function: Any) -> Any:
    """A function of ``np.linalg`` whose result is one of numbers."""

    def called(x: Any, *args: Any, **options: Any) -> Any:
        reject(not isinstance(x, Dense), f"np.linalg.{function.__name__} of a sparse matrix")
        found = call(function, (x.numbers, *args), options)
        return Dense(found) if np.ndim(found) == 2 else found

    return called


for _function in (np.linalg.inv, np.linalg.det):
    put(_function, _of_matrix(_function), SPARSE)
put(np.matrix, made, SPARSE)
put(np.asmatrix, shown, SPARSE)
_METHODS: dict[str, Any] = {
    "I": property(_inverse),
    "H": property(_adjoint),
    "size": property(lambda x: x.numbers.size),
    "__pow__": _power,
    "__rpow__": _exponent,
    "__matmul__": _matmul,
    "__rmatmul__": lambda x, other: _matmul(other, x),
}
for _name, _method in _METHODS.items():
    setattr(Dense, _name, _method)
trees.register(Dense, lambda x: ((x.numbers,), None, ("numbers",)), lambda _, parts: Dense(*parts))
