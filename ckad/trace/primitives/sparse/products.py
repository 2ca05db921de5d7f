"""Products of sparse matrices: with arrays, with each other, and what ``*`` and ``**`` mean."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ckad import trees
from ckad.patterns import PRODUCT, Pattern
from ckad.place import at_place
from ckad.trace.arrays import routine
from ckad.trace.dispatch import SPARSE, call, put, reject
from ckad.trace.primitives.sparse import scattered
from ckad.trace.primitives.sparse.operators import (
    by_elements,
    check_no_matrix,
    check_options,
    combined,
    floats,
    halves,
    is_complex,
    is_matrix,
    like,
    numbers_of,
    of_dense,
    picked,
    placed,
    result_class,
    scaled,
    settled,
    traced,
    words,
)
from ckad.trace.values.apply import astype, reshape_value
from ckad.trace.values.complex import ComplexTracer, as_complex, paired
from ckad.trace.values.scattered import Scattered
from ckad.trace.values.sparse import Dense, Sparse
from ckad.trace.values.tracer import lift


def apply_matrix(x: Sparse, dense: Any, transposed: int) -> Any:
    """A X or A^T X of an array with one or two axes."""
    if is_complex(x):
        real, imag = (apply_matrix(part, dense, transposed) for part in halves(x))
        return call(np.add, (real, call(np.multiply, (imag, 1j), {})), {})
    if trees.is_complex(dense):
        return paired(*[apply_matrix(x, part, transposed) for part in as_complex(dense).parts])
    right = lift(dense)
    m, n = x.shape
    length = m if transposed else n
    if right.ndim not in (1, 2) or right.shape[0] != length:
        shown = (n, m) if transposed else (m, n)
        raise ValueError(at_place(f"matmul: dimension mismatch of {shown} and {right.shape}"))
    columns = right if right.ndim == 2 else reshape_value(right, (length, 1))
    operands = floats(x.numbers), floats(columns), *words(x.pattern)
    made = routine("sparse_dot", *operands, attrs=(transposed, m, n))
    made = astype(made, np.result_type(x.dtype, right.dtype))
    return made if right.ndim == 2 else reshape_value(made, (made.shape[0],))


def _matmul(x: Any, y: Any, **options: Any) -> Any:
    """``A @ B``, one or both of them sparse."""
    check_options(options, "@ of sparse matrices")
    if isinstance(x, Scattered) or isinstance(y, Scattered):
        return scattered.product(x, y)
    check_no_matrix(x, y)
    if is_matrix(x) and is_matrix(y):
        return _sparse_product(traced(x), traced(y))
    if is_matrix(x):
        return apply_matrix(traced(x), y if isinstance(y, ComplexTracer) else lift(y), 0)
    left = x if trees.is_complex(x) else lift(x)
    if np.ndim(left) == 1:
        return apply_matrix(traced(y), left, 1)
    return call(np.transpose, (apply_matrix(traced(y), call(np.transpose, (left,), {}), 1),), {})


def _sparse_product(x: Sparse, y: Sparse) -> Sparse:
    """Every element is a sum over pairs of elements, which are known."""
    if x.shape[1] != y.shape[0]:
        raise ValueError(at_place(f"matmul: dimension mismatch of {x.shape} and {y.shape}"))
    if is_complex(x):
        real, imag = (_sparse_product(part, y) for part in halves(x))
        turned = call(np.multiply, (imag.numbers, 1j), {})
        return settled(real.pattern, call(np.add, (real.numbers, turned), {}))
    left, right, places = _pairs(x.pattern, y.pattern)
    order = np.argsort(places, kind="stable")
    found, counts = np.unique(places, return_counts=True)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    cls = result_class(operator.matmul, x.pattern.cls, y.pattern.cls)
    # the order of a product's elements is that in which SciPy comes upon them
    pattern = placed(cls, (x.shape[0], y.shape[1]), found).of(cls, ordered=False, loose=PRODUCT)
    if pattern.format == "bsr" and x.pattern.block and y.pattern.block:
        pattern.block = x.pattern.block[0], y.pattern.block[1]
    factors = [picked(part.numbers, right[order]) for part in halves(y)]
    sums = [combined(part, x.numbers, indptr, left[order]) for part in factors]
    return settled(pattern, sums[0] if len(sums) == 1 else paired(*sums))


def _pairs(x: Pattern, y: Pattern) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which elements of two matrices are multiplied, and the place of each product."""
    starts, lengths = y.indptr[x.indices], np.diff(y.indptr)[x.indices]
    left = np.repeat(np.arange(x.nnz), lengths)
    before = np.repeat(np.cumsum(lengths) - lengths, lengths)
    right = np.repeat(starts, lengths) + np.arange(len(left)) - before
    return left, right, x.rows[left] * y.shape[1] + y.indices[right]


put(np.matmul, _matmul, SPARSE)
put(np.dot, lambda x, y, **options: _matmul(x, y), SPARSE)


def _multiplied(x: Any, y: Any, **options: Any) -> Any:
    """``*``: the matrix product of matrices, by elements of sparse arrays and of numbers."""
    if options.get("out") is not None and (isinstance(x, Dense) or isinstance(y, Dense)):
        return of_dense(np.multiply, x, y, **options)  # A *= B of an array, too
    check_options(options, "* of sparse matrices")
    if isinstance(x, Scattered) or isinstance(y, Scattered):
        return scattered.product(x, y, matrices=False)
    if isinstance(x, Dense) or isinstance(y, Dense):
        other = y if isinstance(x, Dense) else x
        if is_matrix(x):
            return _with_dense(x, y)
        by_number = not isinstance(other, Dense) and np.ndim(other) == 0
        own_way = by_number or isinstance(x, Dense)  # else Python may have meant the product
        reject(not own_way, "np.multiply of an array by an np.matrix (the matrix first)")
        return of_dense(np.multiply, x, y)
    matrix, other = (x, y) if is_matrix(x) else (y, x)
    own = traced(matrix)
    one_number = not is_matrix(other) and np.ndim(other) == 0
    if one_number:
        return scaled(own, other)
    if not own.pattern.is_array:  # the left one of two matrices says what * means
        return _matmul(x, y)
    return by_elements(own, other)


put(np.multiply, _multiplied, SPARSE)


def _with_dense(x: Any, y: Any) -> Any:
    """``*`` of an np.matrix: the product of matrices, and that by a number."""
    if not is_matrix(y) and not isinstance(y, Dense) and np.ndim(y) == 0:
        return of_dense(np.multiply, x, y)
    left, right = map(numbers_of, (x, y))
    if not is_matrix(right) and np.ndim(right) == 1:  # a row
        right = reshape_value(lift(right), (1, lift(right).size))
    return Dense(call(np.matmul, (left, right), {}))


put(operator.mul, _with_dense, SPARSE)


def power(x: Any, n: Any, **options: Any) -> Any:
    """``A ** n``: of matrices repeated products, of arrays each element's power."""
    own = traced(x)
    reject(not isinstance(n, (int, float)) or n <= 0, "a power of a sparse matrix that is not > 0")
    if own.pattern.is_array:
        return settled(like(own.pattern), call(np.power, (own.numbers, n), {}))
    if not isinstance(n, int):
        raise ValueError(at_place("the exponent of a sparse matrix has to be an integer"))
    result = own
    for _ in range(n - 1):
        result = _matmul(result, own)
    return result


put(np.power, power, SPARSE)
