"""Methods of sparse matrices: those of arrays by the table, SciPy's own on the class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.patterns import DROPPED, PRODUCT, REPEATED, UNSORTED
from ckad.place import at_place
from ckad.trace.dispatch import SPARSE, Traced, call, put, reject
from ckad.trace.primitives.sparse import scattered
from ckad.trace.primitives.sparse.operators import (
    array_of,
    by_elements,
    check_no_matrix,
    is_matrix,
    like,
    moved,
    reshaped,
    result_class,
    retyped,
    settled,
    toarray,
    traced,
    united,
)
from ckad.trace.values.scattered import Scattered
from ckad.trace.values.sparse import Dense, Sparse
from ckad.trace.values.tracer import Tracer

# --- elements elsewhere --------------------------------------------------------------------------


def _mover(name: str) -> Callable[..., Any]:
    def method(self: Sparse, *args: Any, **options: Any) -> Any:
        return moved(lambda x: getattr(x, name)(*args, **options), self)

    return method


_MOVERS = """tocsr tocsc tocoo tobsr todia asformat getrow getcol reshape
    todense""".split()
for _name in _MOVERS:
    put(_name, _mover(_name), SPARSE)


def _transposed(x: Any, *args: Any, **options: Any) -> Any:
    if isinstance(x, Scattered):
        return x.turned()
    if isinstance(x, Dense):
        return Dense(call(np.transpose, (x.numbers,), {}))
    return moved(lambda m: m.T, x)


for _key in (np.ndarray.T, np.ndarray.transpose, np.transpose):
    put(_key, _transposed, SPARSE)
put(np.diagonal, lambda x, k=0: moved(lambda m: m.diagonal(k), x), SPARSE)
put(np.trace, lambda x, offset=0: np.sum(call(np.diagonal, (x, offset), {})), SPARSE)


def _copy(x: Any, *args: Any, **options: Any) -> Sparse:
    own = traced(x)
    return settled(own.pattern, own.numbers)


for _key in (np.ndarray.copy, np.ndarray.__copy__):
    put(_key, _copy, SPARSE)


def _of_numbers(function: Any) -> Callable[..., Any]:
    def computed(x: Any, *args: Any, **options: Any) -> Sparse:
        own = traced(x)
        return settled(own.pattern, call(function, (own.numbers,), {}))

    return computed


put(np.ndarray.conj, _of_numbers(np.conjugate), SPARSE)
put(np.ndarray.conjugate, _of_numbers(np.conjugate), SPARSE)
put(np.ndarray.real, _of_numbers(np.real), SPARSE)
put(np.ndarray.imag, _of_numbers(np.imag), SPARSE)
put("getH", lambda self: call(np.conjugate, (_transposed(self),), {}), SPARSE)


def _astype(x: Any, dtype: Any, **options: Any) -> Sparse:
    own = traced(x)
    return settled(own.pattern, retyped(own.numbers, dtype))


put(np.ndarray.astype, _astype, SPARSE)

# --- arithmetic ----------------------------------------------------------------------------------


put("toarray", lambda self, order=None, out=None: toarray(self), SPARSE)
put("multiply", lambda self, other: by_elements(self, other), SPARSE)


def _power(self: Sparse, n: Any, dtype: Any = None) -> Sparse:
    reject(dtype is not None, "power of a sparse matrix with dtype=")
    if np.ndim(n) == 0 and not isinstance(n, Tracer) and n == 0:
        raise NotImplementedError(at_place("a sparse matrix to the power of zero would be dense"))
    return settled(like(self.pattern), call(np.power, (self.numbers, n), {}))


put("power", _power, SPARSE)
put("prune", lambda self: None, SPARSE)


def _without_zeros(self: Sparse) -> None:
    self.replace(
        self.pattern.of(
            self.pattern.cls, self.pattern.ordered, block=self.pattern.block, loose=DROPPED
        )
    )


def _without_repeats(self: Sparse) -> None:
    p = self.pattern
    loose = p.loose if p.loose not in (REPEATED, UNSORTED, PRODUCT) else ""
    # those of a COO matrix are then sorted by columns
    self.replace(p.of(p.cls, p.format == "csr", block=p.block, loose=loose))


put("eliminate_zeros", _without_zeros, SPARSE)
put("sum_duplicates", _without_repeats, SPARSE)
put("count_nonzero", lambda self, axis=None: _count(self, axis), SPARSE)


def _count(self: Sparse, axis: Any) -> Any:
    reject(axis is not None, "count_nonzero of a sparse matrix with axis=")
    return call(np.count_nonzero, (self.numbers,), {})


def _sorted(self: Sparse) -> None:
    p = self.pattern
    if p.format not in ("csr", "csc", "bsr"):
        raise AttributeError(f"{p.cls.__name__} has no attribute 'sort_indices'")
    loose = p.loose if p.loose != UNSORTED else ""
    self.replace(p.of(p.cls, p.format == "csr", block=p.block, loose=loose))


def _sorted_copy(self: Sparse) -> Sparse:
    copied = _copy(self)
    _sorted(copied)
    return copied


put("sort_indices", _sorted, SPARSE)
put("sorted_indices", _sorted_copy, SPARSE)
put("asfptype", lambda self: self if self.dtype.kind == "f" else self.astype(np.float64), SPARSE)


def _sum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    reject(dtype is not None or out is not None, "the sum of a sparse matrix with dtype= or out=")
    if isinstance(a, Dense) and axis is None:
        return call(np.sum, (a.numbers,), {})
    if isinstance(a, Scattered):
        return scattered.total(a, axis)
    own = traced(a)
    if own.dtype.kind == "b":
        own = _astype(own, np.int64)
    if axis is None:
        return call(np.sum, (own.numbers,), {})
    if axis not in (0, 1, -1, -2):
        raise ValueError(at_place("axis out of range"))
    down = axis in (0, -2)
    ones = array_of(np.ones(own.shape[0 if down else 1], own.dtype))
    total = call(np.matmul, (ones, own) if down else (own, ones), {})
    if own.pattern.is_array:
        return total
    return Dense(reshaped(total, (1, own.shape[1]) if down else (own.shape[0], 1)))


def _mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    own = traced(a)
    count = own.shape[0] * own.shape[1] if axis is None else own.shape[0 if axis in (0, -2) else 1]
    total = _sum(a, axis, dtype, out)
    if isinstance(total, Dense):
        return Dense(call(np.divide, (total.numbers, count), {}))
    return call(np.divide, (total, count), {})


def _extreme(function: Any, name: str) -> None:
    def extreme(a: Any, axis: Any = None, out: Any = None, **options: Any) -> Any:
        if isinstance(a, Dense) and axis is None:
            return call(function, (a.numbers,), {})
        check_no_matrix(a)
        reject(
            axis is not None or out is not None or bool(options),
            f"{name} of a sparse matrix with axis= (A.toarray().{name}(axis))",
        )
        own = traced(a)
        size = own.shape[0] * own.shape[1]
        if size == 0:
            raise ValueError(at_place("zero-size array to reduction operation"))
        found = own.numbers
        if own.pattern.nnz < size:
            found = call(np.concatenate, ([found, np.zeros(1, own.dtype)],), {})
        return call(function, (found,), {})

    put(function, extreme, SPARSE)


_extreme(np.max, "max")
_extreme(np.min, "min")


def _bounded(function: Any, name: str) -> None:
    def of_matrices(x: Any, y: Any) -> Any:
        return getattr(x, name)(y)

    def of_zero(x: Any) -> Any:
        return getattr(x, name)(0)

    def method(self: Sparse, other: Any) -> Any:
        if is_matrix(other):
            return united(function, of_matrices, self, traced(other))
        if np.ndim(other) == 0:
            reject(
                isinstance(other, Traced) or function(0, other) != 0,
                f"{name} of a sparse matrix and a number that may replace its zeros (A.toarray())",
            )
            pattern = self.pattern.of(result_class(of_zero, self.pattern.cls))
            return settled(pattern, call(function, (self.numbers, other), {}))
        return call(function, (toarray(self), other), {})

    put(name, method, SPARSE)


_bounded(np.maximum, "maximum")
_bounded(np.minimum, "minimum")
put(np.sum, _sum, SPARSE)
put(np.mean, _mean, SPARSE)

# --- what SciPy gives as np.matrix ---------------------------------------------------------------


def _array(a: Any, dtype: Any = None, **options: Any) -> Any:
    if isinstance(a, Dense):
        return call(np.array, (a.numbers,), {"dtype": dtype, "copy": True})
    reject(is_matrix(a), "np.asarray(A), which SciPy makes an array of one object (A.toarray())")
    return call(np.asarray, (a,), {"dtype": dtype})


put(np.asarray, _array, SPARSE)
put(np.array, _array, SPARSE)
put(np.asanyarray, _array, SPARSE)


def _ravel(a: Any, order: str = "C") -> Any:
    """The function gives a vector; the method of an ``np.matrix`` a row."""
    reject(order != "C", "np.ravel of an np.matrix with order=")
    return call(np.ravel, (_flat(a).numbers,), {})


put(np.ravel, _ravel, SPARSE)
put("matrix.ravel", lambda self, order="C": _flat(self), SPARSE)


def _flat(a: Any) -> Any:
    reject(not isinstance(a, Dense), "np.ravel of a sparse matrix")
    return Dense(reshaped(a.numbers, (1, a.numbers.size)))


put(np.ndarray.flatten, _flat, SPARSE)
put(np.shape, lambda a: (len(a), *np.shape(a[0])) if isinstance(a, list) else a.shape, SPARSE)
put(np.ndim, lambda a: 1 + np.ndim(a[0]) if isinstance(a, list) else 2, SPARSE)
