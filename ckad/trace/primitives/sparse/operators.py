"""Operators of sparse matrices, and what they are made of: elements moved, summed, multiplied."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from ckad import trees
from ckad.patterns import BLOCKS, Pattern, is_sparse, taken_apart
from ckad.place import at_place
from ckad.rules.routines.sparse import packed
from ckad.trace.arrays import routine
from ckad.trace.dispatch import SPARSE, call, put, reject
from ckad.trace.values.apply import astype, reshape_value
from ckad.trace.values.complex import ComplexTracer, as_complex, paired
from ckad.trace.values.scattered import Scattered
from ckad.trace.values.sparse import Dense, Sparse
from ckad.trace.values.tracer import Tracer, fresh, lift, value

# --- a matrix and its elements -----------------------------------------------------------------


def traced(x: Any) -> Sparse:
    """A sparse matrix as a traced one."""
    if isinstance(x, Sparse):
        return x
    reject(isinstance(x, Scattered), "this use of a sparse matrix at computed places")
    check_no_matrix(x)
    numbers, pattern = taken_apart(x)
    return Sparse(pattern, array_of(numbers))


def array_of(x: Any) -> Any:
    """An array as a traced one, real or complex."""
    return as_complex(x) if trees.is_complex(x) else lift(x)


def is_complex(x: Sparse) -> bool:
    return isinstance(x.numbers, ComplexTracer)


def halves(x: Sparse) -> tuple[Sparse, ...]:
    """The real and the imaginary part; a real matrix alone."""
    parts = x.numbers.parts if isinstance(x.numbers, ComplexTracer) else (x.numbers,)
    return tuple(Sparse(x.pattern, part) for part in parts)


def reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    return reshape_value(x, shape) if isinstance(x, Tracer) else call(np.reshape, (x, shape), {})


def retyped(x: Any, dtype: Any) -> Any:
    return astype(x, dtype) if isinstance(x, Tracer) else call(np.ndarray.astype, (x, dtype), {})


def check_no_matrix(*xs: Any) -> None:
    reject(
        any(isinstance(x, Dense) for x in xs),
        "an np.matrix, which SciPy gives for a spmatrix here (np.asarray(A.sum(axis=1)).ravel(), "
        "A.toarray() in place of A.todense(), or a sparse array)",
    )


def numbers_of(x: Any) -> Any:
    """Those of an ``np.matrix``, traced or known, as an array."""
    if isinstance(x, np.matrix):
        return np.asarray(x)
    return x.numbers if isinstance(x, Dense) else x


def of_dense(function: Any, *xs: Any, out: Any = None, where: Any = None) -> Any:
    """What a function of elements gives where an ``np.matrix`` is among them, or ``out``."""
    arrays = tuple(numbers_of(x) for x in xs)
    reject(any(map(is_matrix, arrays)), "an np.matrix and a sparse matrix in one sum or quotient")
    reject(where is not None, "a function of an np.matrix with where=")
    if out is None:
        return Dense(call(function, arrays, {}))
    call(function, arrays, {"out": numbers_of(out)})
    return out


def is_matrix(x: Any) -> bool:
    """Whether ``x`` is a sparse matrix, traced or plain."""
    return isinstance(x, Sparse) or is_sparse(x)


def settled(pattern: Pattern, numbers: Any) -> Sparse:
    """A matrix of the present values of ``numbers``."""
    if isinstance(numbers, ComplexTracer):
        return Sparse(pattern, paired(*[fresh(value(part)) for part in numbers.parts]))
    return Sparse(pattern, fresh(value(numbers)))


def class_of(format: str, *like: Pattern) -> type:
    """SciPy's class of a format: an array if one of ``like`` is one."""
    is_array = any(p.is_array for p in like)
    cls: type = getattr(sparse, f"{format}_{'array' if is_array else 'matrix'}")
    return cls


@cache
def result_class(function: Callable[..., Any], *classes: type) -> type:
    """The class of what SciPy's operator gives for matrices of these classes."""
    return type(function(*[cls(np.eye(2)) for cls in classes]))


def words(pattern: Pattern) -> tuple[np.ndarray, np.ndarray]:
    """Where the elements are, as routines read it."""
    return packed(pattern.indptr), packed(pattern.indices)


def floats(x: Any) -> Tracer:
    """``x`` as routines take it: integers and bools as floats."""
    array = lift(x)
    return array if array.dtype.kind == "f" else astype(array, np.float64)


def picked(numbers: Tracer, index: np.ndarray) -> Tracer:
    """The elements at ``index``; itself if these are all in order."""
    if len(index) == numbers.size and np.array_equal(index, np.arange(len(index))):
        return numbers
    taken: Tracer = call(np.take, (numbers, index.astype(np.int64)), {})
    return taken


def or_zero(numbers: Tracer, index: np.ndarray) -> Tracer:
    """Elements by numbers from 1 on; where it is 0, there is none."""
    index = index.astype(np.int64)
    if index.all():
        return picked(numbers, index - 1)
    zero = np.zeros(1, numbers.dtype)
    return picked(call(np.concatenate, ([zero, numbers],), {}), index)


def combined(weights: Any, numbers: Any, indptr: np.ndarray, index: np.ndarray) -> Any:
    """Sums of elements times weights: those from ``indptr[k]`` to ``indptr[k + 1]`` in sum k."""
    if isinstance(numbers, ComplexTracer):
        return paired(*[combined(weights, part, indptr, index) for part in numbers.parts])
    dtype = np.result_type(weights.dtype, numbers.dtype)
    sizes = (0, len(indptr) - 1, numbers.size)
    column = reshape_value(floats(numbers), (numbers.size, 1))
    where = packed(indptr), packed(index)
    made = routine("sparse_dot", floats(weights), column, *where, attrs=sizes)
    return astype(reshape_value(made, (len(indptr) - 1,)), dtype)


def moved(function: Callable[..., Any], *matrices: Any) -> Any:
    """What ``function`` of SciPy gives, if it does nothing but put elements elsewhere.

    It is called on matrices whose numbers say which element of which matrix it is.
    """
    sources = [traced(x) for x in matrices]
    numbered, first = [], 1
    for x in sources:
        n = x.pattern.nnz
        numbered.append(x.pattern.plain(np.arange(first, first + n, dtype=np.float64)))
        first += n
    found = function(*numbered)
    parts = [x.numbers for x in sources]
    numbers = parts[0] if len(parts) == 1 else call(np.concatenate, (parts,), {})
    if is_sparse(found):
        reject(found.ndim != 2, "a sparse array of one axis (A[[i]] or A[i : i + 1] has two)")
        index, pattern = taken_apart(found)
        inherit(pattern, *[x.pattern for x in sources])
        return settled(pattern, or_zero(numbers, index.astype(np.int64)))
    if isinstance(found, np.matrix):
        return Dense(_placed(numbers, np.asarray(found)))
    made = _placed(numbers, np.asarray(found))
    return made[()] if np.ndim(found) == 0 else made


def inherit(pattern: Pattern, *sources: Pattern) -> None:
    """What is not known of matrices is not known of one that SciPy makes of their elements."""
    for p in sources:
        if not (p.format == "coo" and pattern.format in ("csr", "csc")):  # which sums and sorts
            pattern.loose = pattern.loose or p.loose
            pattern.ordered &= p.ordered or p.format != "coo"
    if pattern.format == "dia" and any(p.format != "dia" for p in sources):
        pattern.loose = BLOCKS


def _placed(numbers: Any, index: np.ndarray) -> Any:
    return reshaped(or_zero(numbers, index.ravel()), index.shape)


# --- sums ----------------------------------------------------------------------------------------


def _union(x: Sparse, y: Sparse, sign: int) -> Sparse:
    combine, made = (np.add, operator.add) if sign > 0 else (np.subtract, operator.sub)
    return united(combine, made, x, y)


def united(function: Any, of_matrices: Callable[..., Any], x: Sparse, y: Sparse) -> Sparse:
    """A function of two elements that is 0 of two zeros, by places."""
    if x.shape != y.shape:
        raise ValueError(at_place(f"inconsistent shapes {x.shape} and {y.shape}"))
    p, q = x.pattern, y.pattern
    places = np.union1d(p.places, q.places)
    pattern = placed(result_class(of_matrices, p.cls, q.cls), x.shape, places)
    inherit(pattern, p, q)
    if p.block == q.block and pattern.format == "bsr":
        pattern.block = p.block
    terms = [
        v.numbers
        if len(places) == v.pattern.nnz
        else or_zero(v.numbers, _numbers_at(v.pattern, places))
        for v in (x, y)
    ]
    return settled(pattern, call(function, tuple(terms), {}))


def placed(cls: type, shape: tuple[int, int], places: np.ndarray) -> Pattern:
    """The pattern of elements at ascending places of the dense matrix."""
    rows, columns = np.divmod(places, max(shape[1], 1))
    indptr = np.searchsorted(rows, np.arange(shape[0] + 1))
    return Pattern(cls, shape, indptr, columns, ordered=cls.__name__.startswith(("csr", "coo")))


def _numbers_at(pattern: Pattern, places: np.ndarray) -> np.ndarray:
    """Which element is at each place, from 1 on; 0 where there is none."""
    found = np.zeros(len(places), np.int64)
    found[np.searchsorted(places, pattern.places)] = np.arange(1, pattern.nnz + 1)
    return found


def _sum(sign: int) -> Callable[..., Any]:
    def operate(x: Any, y: Any, **options: Any) -> Any:
        if isinstance(x, Dense) or isinstance(y, Dense):
            return of_dense(np.add if sign > 0 else np.subtract, x, y, **options)
        check_options(options, "+ of sparse matrices")
        if is_matrix(x) and is_matrix(y):
            return _union(traced(x), traced(y), sign)
        matrix, other = (x, y) if is_matrix(x) else (y, x)
        if isinstance(other, (int, float)) and other == 0:
            return matrix if sign > 0 or matrix is x else scaled(traced(y), -1.0)
        if np.ndim(other) != 2:
            raise NotImplementedError(
                at_place("adding a nonzero scalar to a sparse matrix is not supported")
            )
        pair = [toarray(traced(v)) if is_matrix(v) else v for v in (x, y)]
        made = call(np.add if sign > 0 else np.subtract, tuple(pair), {})
        return (
            made
            if any(is_matrix(v) and traced(v).pattern.is_array for v in (x, y))
            else (Dense(made))
        )

    return operate


def check_options(options: dict[str, Any], name: str) -> None:
    reject(any(v is not None for v in options.values()), f"{name} with out= or where=")


put(np.add, _sum(1), SPARSE)
put(np.subtract, _sum(-1), SPARSE)


# --- products by elements ------------------------------------------------------------------------


def like(p: Pattern, function: Callable[..., Any] = np.sin) -> Pattern:
    """Where a function of each element is; of LIL and DOK matrices it is mostly CSR."""
    if p.format not in ("lil", "dok"):
        return p
    try:
        return p.of(result_class(function, p.cls))
    except (AttributeError, TypeError):  # SciPy has none
        return p.of(class_of("csr", p))


def _third(x: Any) -> Any:
    return x / 3


def scaled(x: Sparse, factor: Any) -> Sparse:
    return settled(x.pattern, call(np.multiply, (x.numbers, factor), {}))


def _of_array(x: Any) -> Any:
    return x.multiply(np.ones((2, 2)))


def _of_elements(x: Any, y: Any) -> Any:
    return x.multiply(y)


def by_elements(x: Sparse, other: Any, function: Any = np.multiply) -> Sparse:
    """Each element times (or divided by) that of ``other`` at its place."""
    if is_matrix(other):
        reject(function is not np.multiply, "the quotient of two sparse matrices")
        y = traced(other)
        if x.shape != y.shape:
            return by_elements(x, toarray(y))
        both, mine, its = np.intersect1d(x.pattern.places, y.pattern.places, True, True)
        cls = result_class(_of_elements, x.pattern.cls, y.pattern.cls)
        pattern = placed(cls, x.shape, both)
        pair = picked(x.numbers, mine), picked(y.numbers, its)
        return settled(pattern, call(np.multiply, pair, {}))
    dense = other.numbers if isinstance(other, Dense) else array_of(other)
    if not dense.shape:
        return settled(x.pattern, call(function, (x.numbers, other), {}))
    p, shape = x.pattern, (1,) * (2 - dense.ndim) + tuple(dense.shape)
    if len(shape) != 2 or any(n not in (1, m) for n, m in zip(shape, x.shape, strict=True)):
        raise ValueError(at_place(f"inconsistent shapes {x.shape} and {dense.shape}"))
    at = (0 if shape[0] == 1 else p.rows) * shape[1] + (0 if shape[1] == 1 else p.indices)
    at = np.broadcast_to(at, (p.nnz,))
    flat = reshaped(dense, (dense.size,))
    return settled(
        p.of(result_class(_of_array, p.cls)), call(function, (x.numbers, picked(flat, at)), {})
    )


def _divided(x: Any, y: Any, **options: Any) -> Any:
    if isinstance(x, Dense) or isinstance(y, Dense):
        return of_dense(np.divide, x, y, **options)
    check_options(options, "/ of sparse matrices")
    reject(not is_matrix(x) or is_matrix(y), "a quotient by a sparse matrix")
    own = traced(x)
    if np.ndim(y) == 0:  # SciPy multiplies by the reciprocal, in double precision
        numbers = own.numbers if is_complex(own) else astype(own.numbers, np.float64)
        scaled = call(np.multiply, (numbers, call(np.divide, (1.0, y), {})), {})
        return settled(like(own.pattern, _third), scaled)
    return by_elements(own, call(np.divide, (1.0, y), {}))


put(np.divide, _divided, SPARSE)


def _of_each(ufunc: Any) -> Callable[..., Any]:
    """A function that is 0 at 0: of each element."""

    def function(x: Any, **options: Any) -> Any:
        check_options(options, f"np.{ufunc.__name__} of sparse matrices")
        if isinstance(x, Dense):
            return of_dense(ufunc, x)
        own = traced(x)
        return settled(like(own.pattern, ufunc), call(ufunc, (own.numbers,), {}))

    return function


#: Those that sparse matrices have as methods, too.
AT_ZERO = (
    *(np.negative, np.positive, np.absolute, np.sqrt, np.sin, np.tan, np.arcsin, np.arctan),
    *(np.sinh, np.tanh, np.arcsinh, np.arctanh, np.expm1, np.log1p, np.sign, np.conjugate),
    *(np.deg2rad, np.rad2deg, np.ceil, np.floor, np.rint, np.trunc),
)
for _ufunc in AT_ZERO:
    put(_ufunc, _of_each(_ufunc), SPARSE)


def toarray(x: Sparse) -> Any:
    m, n = x.shape
    numbers = np.zeros(m * n, np.int64)
    numbers[x.pattern.places] = np.arange(1, x.pattern.nnz + 1)
    return _placed(x.numbers, numbers.reshape(m, n))
