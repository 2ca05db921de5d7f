"""``np.matrix`` of traced values: two axes always, ``*`` the product of matrices."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from ckad import trees
from ckad.place import at_place
from ckad.trace import dispatch
from ckad.trace.dispatch import SPARSE, call, put, reject
from ckad.trace.primitives.sparse.operators import is_matrix, numbers_of, of_dense, reshaped
from ckad.trace.values.sparse import Dense, refuse
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
    index = numbers_of(index)
    found = call(operator.getitem, (x.numbers, index), {})
    shape = np.shape(found)
    if len(shape) > 1:
        reject(len(shape) > 2, "a part of an np.matrix with more than two axes")
        return Dense(found)
    if not shape:
        return found
    return Dense(call(np.reshape, (found, (-1, 1) if _is_column(index) else (1, -1)), {}))


def write(x: Dense, index: Any, value: Any) -> None:
    """A part with one number among its slices keeps two axes, as ``part`` gives it."""
    index = numbers_of(index)
    numbers = value.numbers if isinstance(value, Dense) else value
    shape = np.shape(call(operator.getitem, (x.numbers, index), {}))
    indices = index if isinstance(index, tuple) else (index,)
    if len(shape) == 1 and all(isinstance(i, slice) or np.ndim(i) == 0 for i in indices):
        kept = (*shape, 1) if _is_column(index) else (1, *shape)
        numbers = call(np.reshape, (call(np.broadcast_to, (numbers, kept), {}), shape), {})
    call(operator.setitem, (x.numbers, index, numbers), {})


def _is_column(index: Any) -> bool:
    return isinstance(index, tuple) and len(index) > 1 and _is_number(index[1])


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


def _changing(function: Any) -> Any:
    """An operator that writes what it gives into its first operand, as ``A += B`` does."""

    def changed(x: Dense, other: Any) -> Dense:
        found = call(function, (x, other), {})
        fits = function is operator.mul or np.can_cast(found.dtype, x.dtype, "same_kind")
        reject(not fits, f"an np.matrix of {x.dtype} that is changed by one of {found.dtype}")
        write(x, (slice(None), slice(None)), found)
        return x

    return changed


def _exponent(x: Dense, base: Any, modulo: None = None) -> Any:
    reject(True, "a power by an np.matrix")


def _adjoint(x: Dense) -> Dense:
    return Dense(call(np.conj, (call(np.transpose, (x.numbers,), {}),), {}))


def check_dense(function: Any, arrays: Iterable[Any]) -> None:
    """Refuse sparse matrices among the operands of a function that has no rule for them."""
    if any(map(is_matrix, arrays)):
        refuse(_name_of(function))


def _name_of(function: Any) -> str:
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module}.{function.__name__}"


def _joined(function: Any) -> Any:
    """Matrices and arrays beside or below one another."""

    def join(parts: Any, **options: Any) -> Any:
        known = [np.asarray(x) if isinstance(x, np.matrix) else x for x in parts]
        arrays = [x.numbers if isinstance(x, Dense) else x for x in known]
        check_dense(function, arrays)
        return Dense(call(function, (arrays,), options))

    return join


def blocks(obj: Any, ldict: Any = None, gdict: Any = None) -> Dense:
    """``np.bmat`` of rows of blocks, of one row, or of an array."""
    reject(isinstance(obj, str), "np.bmat of a text")
    if not isinstance(obj, (list, tuple)):
        return made(obj)
    rows = obj if all(isinstance(row, (list, tuple)) for row in obj) else [obj]
    wide = [call(np.concatenate, (list(map(numbers_of, row)),), {"axis": -1}) for row in rows]
    return made(call(np.concatenate, (wide,), {"axis": 0}))


for _function in (np.vstack, np.hstack, np.concatenate):
    put(_function, _joined(_function), SPARSE)


def _of_matrix(function: Any) -> Any:
    """A function of ``np.linalg`` whose result is one of numbers."""

    def called(x: Any, *args: Any, **options: Any) -> Any:
        reject(not isinstance(x, Dense), f"np.linalg.{function.__name__} of a sparse matrix")
        found = call(function, (x.numbers, *args), options)
        return Dense(found) if np.ndim(found) == 2 else found

    return called


def beside_sparse(function: Any, given: Any) -> None:
    """A row for ``np.matrix`` beside that for sparse matrices."""
    others = dispatch.cell(function, SPARSE)

    def chosen(x: Any, *args: Any, **options: Any) -> Any:
        if isinstance(x, Dense) or any(isinstance(y, Dense) for y in args):
            return given(x, *args, **options)
        if others is None:
            refuse(_name_of(function))
        return others(x, *args, **options)

    put(function, chosen, SPARSE)


def reduced(function: Any) -> Any:
    """Along an axis two of them are left."""

    def reduce(x: Dense, axis: Any = None, **options: Any) -> Any:
        reject(options.get("returned"), "np.average of an np.matrix with returned=True")
        if axis is None:
            return call(function, (x.numbers,), options)
        return Dense(call(function, (x.numbers,), {"axis": axis, "keepdims": True, **options}))

    return reduce


def _as_arrays(function: Any) -> Any:
    """A function that makes arrays of its operands."""

    def called(*args: Any, **options: Any) -> Any:
        arrays = tuple(numbers_of(x) for x in args)
        check_dense(function, arrays)
        return call(function, arrays, options)

    return called


def _dot(x: Any, y: Any) -> Any:
    if np.ndim(x) != 1 and np.ndim(y) != 1:
        return call(operator.mul, (x, y), {})
    found = call(np.dot, (numbers_of(x), numbers_of(y)), {})  # a matrix is a row, whichever it was
    return Dense(reshaped(found, (1, found.size)))


def _solution(a: Any, b: Any) -> Any:
    found = call(np.linalg.solve, (numbers_of(a), numbers_of(b)), {})
    return Dense(found) if isinstance(b, (Dense, np.matrix)) else found


def _copied(x: Dense, *args: Any) -> Dense:
    return Dense(call(np.copy, (x.numbers,), {}))


_BESIDE: dict[Any, Any] = {
    **{f: reduced(f) for f in (np.sum, np.mean, np.average, np.max, np.min, np.std, np.var)},
    **{f: _as_arrays(f) for f in (np.linalg.norm, np.trace, np.outer, np.where)},
    **{f: partial(of_dense, f) for f in (np.less, np.less_equal, np.greater, np.greater_equal)},
    **{f: partial(of_dense, f) for f in (np.equal, np.not_equal)},
    **dict.fromkeys((np.copy, np.ndarray.copy, np.ndarray.__copy__), _copied),
    np.ndarray.__deepcopy__: _copied,
    np.dot: _dot,
    np.linalg.solve: _solution,
}
for _key, _row in _BESIDE.items():
    beside_sparse(_key, _row)
for _of_one in (np.linalg.inv, np.linalg.det):
    put(_of_one, _of_matrix(_of_one), SPARSE)
put(np.matrix, made, SPARSE)
put(np.asmatrix, shown, SPARSE)
put(np.bmat, blocks, SPARSE)
_METHODS: dict[str, Any] = {
    ".I": _inverse,
    ".H": _adjoint,
    ".trace": lambda x: Dense(call(np.reshape, (call(np.trace, (x.numbers,), {}), (1, 1)), {})),
    " ** n": _power,
    " @": _matmul,
    " +=": _changing(np.add),
    " -=": _changing(np.subtract),
    " *=": _changing(operator.mul),
    " /=": _changing(np.divide),
}
for _name, _method in _METHODS.items():
    put(f"matrix{_name}", _method, SPARSE)
put("n ** matrix", _exponent, SPARSE)
put("np.multiply(matrix, x)", partial(of_dense, np.multiply), SPARSE)
put("@ matrix", lambda x, other: _matmul(other, x), SPARSE)
trees.register(Dense, lambda x: ((x.numbers,), None, ("numbers",)), lambda _, parts: Dense(*parts))
