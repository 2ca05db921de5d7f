"""Sparse matrices that are written element by element: LIL and DOK, and single elements of CSR.

While it is written, a LIL or DOK matrix is two arrays: its elements as a dense matrix, and which of
them are there. The interpreter knows arrays, so they may be written in loops and branches. Which
elements there are has to be known where the matrix is used; loops on known numbers are run for it.
"""

from __future__ import annotations

import operator
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from ckad import trees
from ckad.errors import ConcreteValueError, UnsupportedFunctionError
from ckad.patterns import UNSORTED, Pattern
from ckad.trace import dispatch
from ckad.trace.dispatch import COMPLEX, PLAIN, SPARSE, call, put, reject
from ckad.trace.memory.context import current
from ckad.trace.primitives.sparse.dense import part, write
from ckad.trace.primitives.sparse.making import construct, structure
from ckad.trace.primitives.sparse.operators import (
    is_matrix,
    moved,
    or_zero,
    picked,
    placed,
    reshaped,
    settled,
    toarray,
    traced,
)
from ckad.trace.values.array import Array
from ckad.trace.values.complex import as_complex
from ckad.trace.values.sparse import Dense, Sparse
from ckad.trace.values.tracer import Tracer, known_by_running, lift, value

#: Larger matrices are not kept as dense ones while they are written.
LARGEST = 1 << 22


class Editable(Sparse):
    """A LIL or DOK matrix that is being written."""

    __slots__ = ("_made", "cls", "dense", "there")

    def __init__(self, cls: type, dense: Any, there: Any) -> None:
        self.cls, self.dense, self.there = cls, dense, there
        self._made: tuple[Any, Sparse] | None = None

    @property
    def pattern(self) -> Pattern:
        return self.settled().pattern

    @property
    def numbers(self) -> Any:
        return self.settled().numbers

    @property
    def dtype(self) -> np.dtype:
        dtype: np.dtype = self.dense.dtype
        return dtype

    @property
    def shape(self) -> tuple[int, int]:
        shape: tuple[int, int] = self.dense.shape
        return shape

    @property
    def format(self) -> str:
        return self.cls.__name__.partition("_")[0]

    def settled(self) -> Sparse:
        """The matrix as it is now."""
        key = current(), *map(value, (self.there, *_parts(self.dense)))
        if self._made is None or self._made[0] != key:
            places = np.flatnonzero(structure(self.there))
            m, n = self.shape
            numbers = picked(reshaped(self.dense, (m * n,)), places)
            constant = known_by_running(numbers) if isinstance(numbers, Tracer) else None
            numbers = numbers if constant is None else lift(constant)
            pattern = placed(self.cls, self.shape, places)
            pattern.loose = UNSORTED if self.format == "dok" else ""
            self._made = key, settled(pattern, numbers)
        return self._made[1]


def _parts(x: Any) -> tuple[Any, ...]:
    """The real arrays that an array is made of."""
    parts: tuple[Any, ...] = as_complex(x).parts if trees.is_complex(x) else (x,)
    return parts


def _whole(cls: type, parts: Any) -> Any:
    dense, there = parts
    if isinstance(dense, np.ndarray) and isinstance(there, np.ndarray):
        return cls(sparse.csr_array(dense))
    return Editable(cls, dense, there)


trees.register(Editable, lambda x: ((x.dense, x.there), x.cls, ("dense", "there")), _whole)


def editable(x: Sparse, cls: type) -> Sparse:
    """``x`` as a matrix of ``cls`` that can be written; as it is if it is very large."""
    m, n = x.shape
    if m * n > LARGEST:
        return settled(x.pattern.of(cls), x.numbers)
    there = np.zeros((m, n), np.bool_)
    there.ravel()[x.pattern.places] = True
    return Editable(cls, call(np.copy, (toarray(x),), {}), call(np.copy, (lift(there),), {}))


def _constructor(cls: type) -> Any:
    def make(arg1: Any, shape: Any = None, dtype: Any = None, copy: Any = False) -> Any:
        if not isinstance(arg1, tuple):
            made = traced(construct(cls, arg1, structure(shape), dtype))
            return editable(made, cls)
        m, n = map(int, structure(arg1))
        dtype = np.dtype(float if dtype is None else dtype)
        if m * n > LARGEST:
            return cls((m, n), dtype=dtype)
        there = call(np.zeros, ((m, n), np.bool_), {})
        return Editable(cls, call(np.zeros, ((m, n), dtype), {}), there)

    return make


for _name in ("lil_matrix", "lil_array", "dok_matrix", "dok_array"):
    _cls = getattr(sparse, _name)
    put(_cls, _constructor(_cls), (PLAIN, SPARSE, COMPLEX))
    dispatch.always(_cls)

# --- elements ------------------------------------------------------------------------------------


class Block(Array):
    """A part of a matrix that is being written, read in a loop in order to be written again."""

    __slots__ = ("dense",)
    kind = dispatch.SPARSE

    def __init__(self, dense: Any) -> None:
        self.dense = dense

    dtype = property(lambda self: self.dense.dtype)
    shape = property(lambda self: self.dense.shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise ConcreteValueError.here("a part of a traced matrix is made a plain array.")

    def _changed(self, function: Any, other: Any) -> Any:
        other = toarray(traced(other)) if is_matrix(other) else other
        return call(function, (self.dense, other), {})

    def __add__(self, other: Any) -> Any:
        return self._changed(np.add, other)

    def __sub__(self, other: Any) -> Any:
        return self._changed(np.subtract, other)

    __radd__ = __iadd__ = __add__
    __isub__ = __sub__
    __hash__ = object.__hash__


def _read(x: Any, index: Any) -> Any:
    if isinstance(x, Dense):
        return part(x, index)
    if not isinstance(x, Editable):
        return moved(lambda m: m[plain_index(index)], x)
    found = call(operator.getitem, (x.dense, index), {})
    if not np.shape(found):
        return found
    if known_by_running(x.there) is None:
        return Block(found)
    return moved(lambda m: m[plain_index(index)], x.settled())


def plain_index(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(plain_index, index))
    return structure(index) if isinstance(index, Tracer) else index


def _write(x: Any, index: Any, value: Any) -> Any:
    if isinstance(x, Dense):
        return write(x, index, value)
    value = value.numbers if isinstance(value, Dense) else value
    if isinstance(x, Array) and not isinstance(x, Sparse):
        return call(operator.setitem, (x, index, value), {})
    check_writable(x)
    if not isinstance(x, Editable):
        return _put(x, *_places(x, index), value)
    there: Any = True
    if is_matrix(value):
        own = traced(value)
        there = np.zeros(own.shape, np.bool_)
        there.ravel()[own.pattern.places] = True
        value = toarray(own)
    elif not isinstance(value, dispatch.Traced):
        there = np.asarray(value) != 0
        there = bool(there) if not there.shape else there
    call(operator.setitem, (x.dense, index, value), {})
    call(operator.setitem, (x.there, index, there), {})
    return None


def check_writable(x: Any) -> None:
    reject(
        not isinstance(x, Sparse),
        "writing traced numbers into a sparse matrix of known ones (A = A.tolil() before)",
    )
    if not isinstance(x, Editable):
        parts = _parts(x.numbers)
        if any(part.storage.trace is not current() for part in parts):
            raise UnsupportedFunctionError.here(
                "writing elements of a sparse matrix that was made outside of this loop or "
                "branch. Write into a LIL matrix, A = A.tolil(), before it, and turn it into "
                "CSR afterwards."
            )


def _places(x: Sparse, index: Any) -> tuple[np.ndarray, tuple[int, ...]]:
    """Which places of the dense matrix an index means, flat, and their shape."""
    index = plain_index(index)
    pair = index if isinstance(index, tuple) else (index, slice(None))
    reject(len(pair) != 2 or is_matrix(pair[0]), "such an index of a sparse matrix")
    m, n = x.shape
    rows, columns = (np.arange(k)[i] for k, i in zip((m, n), pair, strict=True))
    if isinstance(pair[0], slice) or isinstance(pair[1], slice):
        rows, columns = np.reshape(rows, (-1, 1)), np.reshape(columns, (1, -1))
        shape = tuple(k.size for k, i in zip((rows, columns), pair, strict=True)
                      if isinstance(i, slice) or np.ndim(i))  # fmt: skip
        return np.ravel(rows * n + columns), shape
    places = np.asarray(rows * n + columns)
    return places.ravel(), places.shape


def _put(x: Sparse, places: np.ndarray, shape: tuple[int, ...], value: Any) -> None:
    """New numbers at places of a matrix; it is another one from now on."""
    value = toarray(traced(value)) if is_matrix(value) else value
    new = call(np.broadcast_to, (value, shape), {})
    p = x.pattern
    whole = np.union1d(p.places, places)
    found = np.zeros(len(whole), np.int64)
    found[np.searchsorted(whole, p.places)] = np.arange(1, p.nnz + 1)
    dtype = x.dtype  # SciPy keeps it
    numbers = call(np.copy, (or_zero(x.numbers, found),), {})
    at = np.searchsorted(whole, places)
    call(operator.setitem, (numbers, at, call(np.reshape, (new, (len(places),)), {})), {})
    made = placed(p.cls, x.shape, whole)
    made.loose = p.loose
    x.replace(made, settled(made, call(np.ndarray.astype, (numbers, dtype), {})).numbers)


def _set_diagonal(x: Sparse, values: Any, k: int = 0) -> None:
    """``A.setdiag(values, k)``"""
    check_writable(x)
    m, n = x.shape
    length = max(min(m, n - k) if k >= 0 else min(m + k, n), 0)
    if np.ndim(values):
        length = min(length, np.shape(values)[0])
        given: Any = values if isinstance(values, dispatch.Traced) else np.asarray(values)
        values = given[:length]
    at = np.arange(length)
    _write(x, (at + max(-k, 0), at + max(k, 0)), values)


def _turned(name: str) -> Any:
    def method(self: Sparse, copy: bool = False) -> Any:
        like = "array" if class_is_array(self) else "matrix"
        return editable(traced(self), getattr(sparse, f"{name}_{like}"))

    return method


def class_is_array(x: Any) -> bool:
    cls = x.cls if isinstance(x, Editable) else x.pattern.cls
    name: str = cls.__name__
    return name.endswith("array")


put(operator.getitem, _read, SPARSE)
put(operator.setitem, _write, SPARSE)


def _changing(function: Any) -> Any:
    """``A *= x`` and ``A /= x``, which SciPy does to the numbers of the matrix itself."""

    def method(self: Sparse, other: Any) -> Sparse:
        check_writable(self)
        made = call(function, (self, other), {})
        if isinstance(self, Editable):
            _write(self, (slice(None), slice(None)), made)
            return self
        self.replace(made.pattern, made.numbers)
        return self

    return method


for _key, _function in {
    "setdiag": _set_diagonal,
    "tolil": _turned("lil"),
    "todok": _turned("dok"),
    "+=": lambda self, other: call(np.add, (self, other), {}),
    "-=": lambda self, other: call(np.subtract, (self, other), {}),
    "*=": _changing(np.multiply),
    "/=": _changing(np.divide),
}.items():
    put(_key, _function, SPARSE)
