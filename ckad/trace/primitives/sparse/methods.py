"""Methods of sparse matrices: those of arrays by the table, SciPy's own on the class."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.errors import UnrecordableError
from ckad.patterns import taken_apart
from ckad.place import at_place
from ckad.trace.dispatch import SPARSE, call, put, reject
from ckad.trace.memory.context import current
from ckad.trace.primitives.sparse.operators import (
    AT_ZERO,
    by_elements,
    is_matrix,
    moved,
    or_zero,
    settled,
    toarray,
    traced,
)
from ckad.trace.values.apply import astype, reshape_value
from ckad.trace.values.sparse import Dense, Sparse
from ckad.trace.values.tracer import Tracer, lift

# --- elements elsewhere --------------------------------------------------------------------------


def _mover(name: str) -> Callable[..., Any]:
    def method(self: Sparse, *args: Any, **options: Any) -> Any:
        return moved(lambda x: getattr(x, name)(*args, **options), self)

    return method


_MOVERS = """tocsr tocsc tocoo tobsr todia tolil todok asformat getrow getcol getH reshape
    todense""".split()
for _name in _MOVERS:
    setattr(Sparse, _name, _mover(_name))


def _transposed(x: Any, *args: Any, **options: Any) -> Any:
    return moved(lambda m: m.T, x)


for _key in (np.ndarray.T, np.ndarray.transpose, np.transpose):
    put(_key, _transposed, SPARSE)
put(np.diagonal, lambda x, k=0: moved(lambda m: m.diagonal(k), x), SPARSE)
put(np.trace, lambda x, offset=0: np.sum(call(np.diagonal, (x, offset), {})), SPARSE)
put(operator.getitem, lambda x, index: moved(lambda m: m[_plain_index(index)], x), SPARSE)


def _plain_index(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(_plain_index, index))
    return np.asarray(index) if isinstance(index, Tracer) else index


def _written(x: Any, index: Any, new: Any) -> None:
    """``A[i, j] = new`` at known places: the matrix has other elements from now on."""
    own = traced(x)
    if own is not x or own.numbers.storage.trace is not current():
        raise UnrecordableError(
            at_place(
                "elements of a sparse matrix are written in a loop or branch that has not made it, "
                "and which elements it has must be known. Collect rows, columns and values, and "
                "make it at once: sp.coo_matrix((values, (rows, columns)), shape)."
            )
        )
    values = lift(new)
    numbered = own.pattern.plain(np.arange(1.0, own.nnz + 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy's advice to use another format was for the user
        first = own.nnz + 1.0
        numbered[_plain_index(index)] = np.arange(first, first + values.size).reshape(values.shape)
    found, pattern = taken_apart(numbered)
    given = astype(reshape_value(values, (values.size,)), own.dtype)
    both = call(np.concatenate, ((own.numbers, given),), {})
    own.become(settled(pattern, or_zero(both, found.astype(np.int64))))


put(operator.setitem, _written, SPARSE)


def _copy(x: Any, *args: Any, **options: Any) -> Sparse:
    own = traced(x)
    return settled(own.pattern, own.numbers)


for _key in (np.ndarray.copy, np.ndarray.__copy__):
    put(_key, _copy, SPARSE)
put(np.ndarray.conj, _copy, SPARSE)
put(np.ndarray.conjugate, _copy, SPARSE)
put(np.ndarray.real, _copy, SPARSE)


def _astype(x: Any, dtype: Any, **options: Any) -> Sparse:
    own = traced(x)
    return settled(own.pattern, astype(own.numbers, dtype))


put(np.ndarray.astype, _astype, SPARSE)

# --- arithmetic ----------------------------------------------------------------------------------


def _method(function: Callable[..., Any], name: str) -> None:
    setattr(Sparse, name, function)


_method(lambda self, order=None, out=None: toarray(self), "toarray")
_method(lambda self, other: by_elements(self, other), "multiply")
_method(lambda self, n, dtype=None: settled(self.pattern, call(np.power, (self.numbers, n), {})),
        "power")  # fmt: skip
_method(lambda self: None, "eliminate_zeros")
_method(lambda self: None, "sum_duplicates")
_method(lambda self: None, "prune")
for _ufunc in AT_ZERO:
    if _ufunc not in (np.negative, np.positive, np.absolute):
        _method(lambda self, ufunc=_ufunc: call(ufunc, (self,), {}), _ufunc.__name__)


def _sorted(self: Sparse) -> None:
    self.pattern = self.pattern.of(self.pattern.cls, ordered=self.format in ("csr", "coo"))


_method(_sorted, "sort_indices")


def _sum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    reject(dtype is not None or out is not None, "the sum of a sparse matrix with dtype= or out=")
    own = traced(a)
    if axis is None:
        return call(np.sum, (own.numbers,), {})
    if axis not in (0, 1, -1, -2):
        raise ValueError(at_place("axis out of range"))
    down = axis in (0, -2)
    ones = lift(np.ones(own.shape[0 if down else 1], own.dtype))
    total = call(np.matmul, (ones, own) if down else (own, ones), {})
    if own.pattern.is_array:
        return total
    return Dense(reshape_value(total, (1, own.shape[1]) if down else (own.shape[0], 1)))


def _mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    own = traced(a)
    count = own.shape[0] * own.shape[1] if axis is None else own.shape[0 if axis in (0, -2) else 1]
    total = _sum(a, axis, dtype, out)
    if isinstance(total, Dense):
        return Dense(call(np.divide, (total.numbers, count), {}))
    return call(np.divide, (total, count), {})


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


put(np.ravel, lambda a, order="C": _flat(a), SPARSE)


def _flat(a: Any) -> Any:
    reject(not isinstance(a, Dense), "np.ravel of a sparse matrix")
    return Dense(reshape_value(a.numbers, (1, a.numbers.size)))


put(np.ndarray.flatten, _flat, SPARSE)
