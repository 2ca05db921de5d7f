"""Sparse matrices made of traced numbers: the places are known, and SciPy says which they are.

SciPy's function is called on numbers that say which element of which argument each is. What it
gives shows where every element goes; those that meet at one place are added.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from scipy import sparse

from ckad.errors import ConcreteValueError
from ckad.patterns import BLOCKS, FROM_DENSE, REPEATED, UNSORTED, Pattern, is_sparse
from ckad.trace.dispatch import COMPLEX, PLAIN, SPARSE, Traced, call, put, reject
from ckad.trace.primitives.sparse import scattered
from ckad.trace.primitives.sparse.operators import (
    array_of,
    class_of,
    combined,
    inherit,
    is_matrix,
    moved,
    picked,
    placed,
    reshaped,
    retyped,
    settled,
    traced,
)
from ckad.trace.values.complex import ComplexTracer
from ckad.trace.values.scattered import Scattered
from ckad.trace.values.sparse import Sparse
from ckad.trace.values.tracer import Tracer, known, known_by_running, lift, localise

_BOTH = (PLAIN, SPARSE, COMPLEX)


class _Numbered:
    """Arguments in which numbers stand for their elements, from 1 on."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.count = 0
        self.patterns: list[Pattern] = []

    def of(self, x: Any) -> Any:
        if x is None:
            return None
        if isinstance(x, (list, tuple)):
            return type(x)([self.of(item) for item in x])
        if is_matrix(x):
            own = traced(x)
            self.patterns.append(own.pattern)
            return own.pattern.plain(self._next(own.numbers))
        if isinstance(x, np.ndarray) and x.dtype == object:
            found = np.empty(x.shape, object)
            for k, item in np.ndenumerate(x):
                found[k] = self.of(item)
            return found
        return self._next(array_of(x))[()]

    def _next(self, array: Any) -> np.ndarray:
        first, self.count = self.count, self.count + array.size
        self.parts.append(reshaped(array, (array.size,)))
        numbers = np.arange(first + 1, self.count + 1, dtype=np.float64)
        return numbers.reshape(array.shape)

    @property
    def numbers(self) -> Any:
        return self.parts[0] if len(self.parts) == 1 else call(np.concatenate, (self.parts,), {})


def structure(x: Any) -> Any:
    """An argument that says where elements are: its numbers have to be known."""
    if isinstance(x, Tracer):
        numbers = known_by_running(x)
        numbers = known(x) if numbers is None else numbers
        if numbers is None:
            raise scattered.unknown()
        return numbers[()]
    if isinstance(x, list):
        return structure(call(np.asarray, (x,), {})) if holds_traced(x) else x
    return tuple(map(structure, x)) if isinstance(x, tuple) else x


def holds_traced(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(holds_traced, x))
    return isinstance(x, Traced)


def assembled(cls: type, made: Any, numbers: Any, source: Tracer | None = None) -> Sparse:
    """A matrix from SciPy's, whose numbers say which element each is."""
    coo = made.tocoo()
    m, n = (int(k) for k in coo.shape)
    places = coo.row.astype(np.int64) * n + coo.col
    index = np.asarray(coo.data).astype(np.int64) - 1
    order = np.argsort(places, kind="stable")
    found, counts = np.unique(places, return_counts=True)
    pattern = placed(cls, (m, n), found)
    is_ordered = len(found) == len(order) and np.array_equal(order, np.arange(len(order)))
    if not is_ordered:
        pattern = pattern.of(cls, ordered=False)
    if made.format in ("csr", "csc", "bsr", "coo") and len(found) < len(order):
        pattern.loose = REPEATED
    elif made.format in ("csr", "csc", "bsr") and not made.has_sorted_indices:
        pattern.loose = UNSORTED
    if made.format == "bsr":
        pattern.block = tuple(made.blocksize)
    if len(found) == len(order):
        chosen = picked(numbers, index[order])
    else:
        ends = np.concatenate([[0], np.cumsum(counts)])
        real = numbers.parts[0] if isinstance(numbers, ComplexTracer) else numbers
        ones = lift(np.ones(len(order), real.dtype))
        chosen = combined(ones, picked(numbers, index[order]), ends, np.arange(len(order)))
    done = settled(pattern, chosen)
    return done if source is None else Sparse(pattern, done.numbers, source)


# --- classes -------------------------------------------------------------------------------------


def construct(
    cls: type, arg1: Any, shape: Any = None, dtype: Any = None, copy: Any = False, **options: Any
) -> Sparse | Scattered:
    """What a class of SciPy's makes of a matrix, an array, or numbers and their places."""
    shape = structure(shape)
    if isinstance(arg1, Scattered):
        return Scattered(cls, arg1.shape, arg1.numbers, arg1.rows, arg1.columns)
    if is_matrix(arg1):
        own = traced(arg1)
        made = moved(lambda m: cls(m, **options), own)
    elif isinstance(arg1, tuple) and len(arg1) in (2, 3):
        given = arg1[0]
        data = call(np.asarray, (given,), {}) if holds_traced(given) else array_of(given)
        numbers = np.arange(1.0, data.size + 1).reshape(data.shape)
        # SciPy adds elements at one place at once, but in a COO matrix
        by_pairs = len(arg1) == 2 and cls.__name__[:3] != "dia"
        make = sparse.coo_array if by_pairs else partial(cls, **options)
        if by_pairs and shape is not None and isinstance(arg1[1], (tuple, list)):
            try:
                structure(tuple(arg1[1]))
            except ConcreteValueError:
                if dtype is not None:
                    data = retyped(data, dtype)
                return scattered.made(cls, data, arg1[1], shape)
        built = make((numbers, *structure(arg1[1:])), shape=shape)
        shares = isinstance(given, (Tracer, ComplexTracer)) and not copy
        source = data.parts[0] if isinstance(data, ComplexTracer) else data
        flat = reshaped(data, (data.size,))
        made = assembled(cls, built, flat, localise(source) if shares else None)
        if by_pairs and made.format in ("csr", "csc"):  # which sum and sort
            made.replace(made.pattern.of(cls, made.format == "csr", loose=""))
    else:
        dense = array_of(arg1)
        reject(dense.ndim not in (1, 2), f"a {cls.__name__} of {dense.ndim} axes")
        numbers = np.arange(1.0, dense.size + 1).reshape(dense.shape)
        made = assembled(cls, cls(numbers), reshaped(dense, (dense.size,)))
        made.pattern.loose = FROM_DENSE
    return made if dtype is None else settled(made.pattern, retyped(made.numbers, dtype))


for _format in ("csr", "csc", "coo", "bsr", "dia"):
    for _kind in ("matrix", "array"):
        _cls = getattr(sparse, f"{_format}_{_kind}")
        put(_cls, partial(construct, _cls), _BOTH)

# --- functions that put elements somewhere -------------------------------------------------------


def _maker(function: Any) -> Callable[..., Any]:
    what = next(iter(signature(function).parameters))

    def make(*given_by_place: Any, **options: Any) -> Any:
        first, *args = given_by_place or (options.pop(what),)
        dtype = options.pop("dtype", None)
        given = _Numbered()
        numbered = given.of(first)
        made = function(
            numbered, *map(structure, args), **{k: structure(v) for k, v in options.items()}
        )
        if not is_sparse(made):
            return call(np.take, (given.numbers, np.asarray(made, np.int64) - 1), {})
        found = assembled(type(made), made, given.numbers)
        inherit(found.pattern, *given.patterns)
        return found if dtype is None else settled(found.pattern, retyped(found.numbers, dtype))

    return make


_NAMES = """diags diags_array spdiags block_diag bmat block_array vstack hstack tril triu"""
for _name in _NAMES.split():
    if hasattr(sparse, _name):
        put(getattr(sparse, _name), _maker(getattr(sparse, _name)), _BOTH)


# --- Kronecker products --------------------------------------------------------------------------


def _matrix(x: Any) -> Sparse:
    return traced(x) if is_matrix(x) else traced(construct(sparse.coo_matrix, x))


def kron(A: Any, B: Any, format: Any = None) -> Any:
    x, y = _matrix(A), _matrix(B)
    n, m = x.pattern.nnz, y.pattern.nnz
    left, right = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    rows = x.pattern.rows[left] * y.shape[0] + y.pattern.rows[right]
    columns = x.pattern.indices[left].astype(np.int64) * y.shape[1] + y.pattern.indices[right]
    shape = x.shape[0] * y.shape[0], x.shape[1] * y.shape[1]
    places = rows * shape[1] + columns
    order = np.argsort(places)
    cls = class_of("bsr" if format is None else format, x.pattern, y.pattern)
    pattern = placed(cls, shape, places[order])
    factors = picked(x.numbers, left[order]), picked(y.numbers, right[order])
    return settled(pattern.of(cls, False, loose=BLOCKS), call(np.multiply, factors, {}))


def kronsum(A: Any, B: Any, format: Any = None) -> Any:
    x, y = _matrix(A), _matrix(B)
    first = kron(sparse.identity(y.shape[0]), x)
    total = call(np.add, (first, kron(y, sparse.identity(x.shape[0]))), {})
    return total if format is None else total.asformat(format)


put(sparse.kron, kron, _BOTH)
put(sparse.kronsum, kronsum, _BOTH)


put(sparse.issparse, is_matrix, _BOTH)
put(sparse.isspmatrix, lambda x: is_matrix(x) and not traced(x).pattern.is_array, _BOTH)
put(sparse.isspmatrix_csr, lambda x: is_matrix(x) and traced(x).pattern.cls is sparse.csr_matrix,
    _BOTH)  # fmt: skip
