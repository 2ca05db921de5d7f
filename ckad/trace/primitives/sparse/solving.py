"""Sparse linear systems: ``spsolve``, ``splu``, ``factorized``, ``spsolve_triangular``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from ckad import trees
from ckad.patterns import taken_apart
from ckad.place import at_place
from ckad.rules.routines import sparse_solve
from ckad.rules.routines.dense.banded import NAN, RAISES_LATE
from ckad.trace.arrays import routine
from ckad.trace.dispatch import COMPLEX, PLAIN, SPARSE, call, put, reject
from ckad.trace.primitives.sparse.making import assembled
from ckad.trace.primitives.sparse.operators import (
    array_of,
    floats,
    halves,
    is_complex,
    is_matrix,
    moved,
    or_zero,
    picked,
    placed,
    reshaped,
    settled,
    traced,
    words,
)
from ckad.trace.values.apply import astype, reshape_value
from ckad.trace.values.complex import as_complex, paired
from ckad.trace.values.scattered import Scattered
from ckad.trace.values.sparse import Sparse
from ckad.trace.values.tracer import Tracer, fresh, known, lift, value

_BOTH = (PLAIN, SPARSE, COMPLEX)
#: Systems with so many diagonals (those below count twice) are left to LAPACK,
BANDS = 16
#: so are dense ones of so many rows, as a matrix at computed places is solved;
LARGEST_DENSE = 500
#: and known factors of more elements than these to SuperLU.
LARGEST_FACTORS = 2_000_000

Columns = Callable[[Tracer], Tracer]


def square(x: Any) -> Sparse:
    """A sparse or dense matrix as a sparse one; ValueError if it is not square."""
    if isinstance(x, Scattered) and max(x.shape) <= LARGEST_DENSE:
        x = x.toarray()
    if not is_matrix(x):
        dense = array_of(x)
        numbers = np.arange(1.0, dense.size + 1).reshape(dense.shape)
        x = assembled(sparse.csc_matrix, sparse.csc_matrix(numbers),
                      reshaped(dense, (dense.size,)))  # fmt: skip
    found = traced(x)
    if found.shape[0] != found.shape[1]:
        raise ValueError(at_place(f"matrix must be square (has shape {found.shape})"))
    return found


def _columns(b: Any, n: int, dtype: Any, solve: Columns) -> Any:
    """``solve`` on the columns of a vector or matrix, real or complex."""
    if trees.is_complex(b):
        return paired(*[_columns(part, n, dtype, solve) for part in as_complex(b).parts])
    right = lift(b)
    if right.ndim not in (1, 2) or right.shape[0] != n:
        raise ValueError(at_place(f"a matrix of {n} rows does not fit a right side {right.shape}"))
    columns = right if right.ndim == 2 else reshape_value(right, (n, 1))
    solved = astype(solve(columns), np.result_type(dtype, right.dtype, np.float32))
    return solved if right.ndim == 2 else reshape_value(solved, right.shape)


def solution(a: Sparse, b: Any, transposed: int, strict: int) -> Any:
    """X with A X = B or A^T X = B; a singular matrix gives NaN, or an error if ``strict``."""
    n = a.shape[0]
    if is_complex(a):
        return _complex_solution(moved(lambda m: m.T.tocsr(), a) if transposed else a, b, strict)
    numbers = known(a.numbers)
    if numbers is not None:
        factors = _known_factors(a, numbers)
        if factors is not None:
            # they are those of the transpose
            return _columns(b, n, a.dtype, partial(_by_factors, factors, 1 - transposed))
    below, above = a.pattern.bands
    is_dense = a.pattern.nnz == n * n and n <= LARGEST_DENSE
    if 2 * below + above <= BANDS or is_dense:
        return _columns(b, n, a.dtype, _by_diagonals(a, below, above, transposed, strict))
    return _columns(b, n, a.dtype, _by(a, "sparse_solve", transposed, strict, n))


def _complex_solution(a: Sparse, b: Any, strict: int) -> Any:
    """By real numbers: each element is [[re, -im], [im, re]], each row the two of its parts."""
    p, n = a.pattern, a.shape[0]
    real, imag = (part.numbers for part in halves(a))
    rows, columns = 2 * p.rows, 2 * p.indices.astype(np.int64)
    at = np.concatenate(
        [(rows + i) * 2 * n + columns + j for i, j in ((0, 0), (0, 1), (1, 0), (1, 1))]
    )
    order = np.argsort(at)
    numbers = call(np.concatenate, ([real, call(np.negative, (imag,), {}), imag, real],), {})
    doubled = settled(placed(sparse.csr_array, (2 * n, 2 * n), at[order]), picked(numbers, order))
    parts = as_complex(b).parts if trees.is_complex(b) else (lift(b), np.zeros(np.shape(b)))
    if np.ndim(parts[0]) not in (1, 2) or np.shape(parts[0])[0] != n:
        raise ValueError(at_place(f"a matrix of {n} rows does not fit a right side {np.shape(b)}"))
    shape = tuple(np.shape(parts[0]))
    right = call(np.reshape, (call(np.stack, (list(parts),), {"axis": 1}), (2 * n, *shape[1:])), {})
    found = call(np.reshape, (solution(doubled, right, 0, strict), (n, 2, *shape[1:])), {})
    return paired(*[fresh(value(found[:, k])) for k in (0, 1)])


def _by_diagonals(a: Sparse, below: int, above: int, transposed: int, strict: int) -> Columns:
    p, n = a.pattern, a.shape[0]
    index = np.zeros((below + above + 1, n), np.int64)
    index[above + p.rows - p.indices, p.indices] = np.arange(1, p.nnz + 1)
    found = or_zero(a.numbers, index.ravel())
    diagonals = reshape_value(floats(found), (1, below + above + 1, n))
    factors = routine("banded_lu", diagonals, attrs=(below, above))
    attrs = (below, above, transposed, RAISES_LATE if strict else NAN)

    def solve(columns: Tracer) -> Tracer:
        right = reshape_value(floats(columns), (1, *columns.shape))
        return reshape_value(routine("banded", factors, right, attrs=attrs), columns.shape)

    return solve


def _by(a: Sparse, name: str, *attrs: int) -> Columns:
    """A routine's solution of a system with the matrix ``a``."""
    where = words(a.pattern)
    return partial(_called, name, attrs, a.numbers, where)


def _called(name: str, attrs: Any, numbers: Any, where: Any, columns: Tracer) -> Tracer:
    made: Tracer = routine(name, floats(numbers), floats(columns), *where, attrs=attrs)
    return made


# --- known factors -------------------------------------------------------------------------------


def _known_factors(a: Sparse, numbers: np.ndarray) -> Any:
    """SuperLU's factors of the transpose; None if it has none, or very large ones."""
    try:
        found = sparse_solve.factors_of(a.shape[0], numbers.astype(np.float64), *words(a.pattern))
    except RuntimeError:
        return None
    return found if found.nnz <= LARGEST_FACTORS else None


def _by_factors(factors: Any, transposed: int, b: Tracer) -> Tracer:
    """Pr A Pc = L U, as SciPy says it."""
    lower, upper = _triangle(factors.L, True), _triangle(factors.U, False)
    rows, columns = factors.perm_r, factors.perm_c
    first, last, order = rows, columns, (lower, upper)
    if transposed:
        first, last, order = columns, rows, (upper, lower)
    x = _rows(b, np.argsort(first))
    for solve in order:
        x = solve(x, transposed)
    return _rows(x, last)


def _rows(x: Tracer, index: np.ndarray) -> Tracer:
    taken: Tracer = call(np.take, (x, index.astype(np.int64)), {"axis": 0})
    return taken


def _triangle(matrix: Any, lower: bool) -> Callable[[Tracer, int], Tracer]:
    numbers, pattern = taken_apart(matrix.tocsr())

    def solve(b: Tracer, transposed: int) -> Tracer:
        attrs = (transposed, int(lower), 0, pattern.shape[0])
        return _called("sparse_triangular", attrs, numbers, words(pattern), b)

    return solve


def by_superlu(factors: Any, rhs: Any, trans: str = "N") -> Any:
    """``factors.solve(rhs, trans)`` of SciPy's factors of a known matrix."""
    reject(factors.L.dtype.kind == "c", "factors of a complex matrix that are made outside "
           "(splu(A) inside of the function)")  # fmt: skip
    return _columns(rhs, factors.shape[0], np.float64, partial(_by_factors, factors, _turn(trans)))


def _turn(trans: str) -> int:
    reject(trans not in ("N", "T", "H"), f"solve with trans={trans!r}")
    return int(trans != "N")


# --- functions -----------------------------------------------------------------------------------


def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    reject(is_matrix(b), "spsolve with a sparse right side (b.toarray())")
    a = square(A)
    solved = solution(a, b, 0, 0)
    if len(solved.shape) == 2 and solved.shape[1] == 1:
        return call(np.reshape, (solved, (a.shape[0],)), {})
    return solved


class Factorised:
    """What ``splu`` gives for a traced matrix: its solutions."""

    def __init__(self, matrix: Sparse) -> None:
        self.matrix = matrix

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        turned, a = _turn(trans), self.matrix
        if trans == "H" and is_complex(a):
            a = call(np.conjugate, (a,), {})
        return solution(a, rhs, turned, 1)

    def __getattr__(self, name: str) -> Any:
        reject(name in ("L", "U", "perm_r", "perm_c", "nnz"), f".{name} of traced factors")
        raise AttributeError(name)


trees.register(
    Factorised, lambda x: ((x.matrix,), None, ("matrix",)), lambda _, parts: Factorised(parts[0])
)


def splu(A: Any, *args: Any, **options: Any) -> Factorised:
    return Factorised(square(A))


def spsolve_triangular(
    A: Any,
    b: Any,
    lower: bool = True,
    overwrite_A: bool = False,
    overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    reject(overwrite_b, "spsolve_triangular with overwrite_b=True")
    offset = int(unit_diagonal)
    cut = partial(sparse.tril, k=-offset) if lower else partial(sparse.triu, k=offset)
    a = moved(lambda m: cut(m, format="csr"), square(A))
    reject(is_complex(a), "spsolve_triangular of complex numbers (spsolve takes them)")
    n = a.shape[0]
    return _columns(b, n, a.dtype, _by(a, "sparse_triangular", 0, int(lower), offset, n))


def _factorized(A: Any) -> Callable[[Any], Any]:
    return splu(A).solve


put(linalg.SuperLU.solve, by_superlu, _BOTH)
put(linalg.spsolve, spsolve, _BOTH)
put(linalg.splu, splu, _BOTH)
put(linalg.factorized, _factorized, _BOTH)
put(linalg.spsolve_triangular, spsolve_triangular, _BOTH)


def _norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    reject(ord not in (None, "fro") or axis is not None, "scipy.sparse.linalg.norm with ord, axis")
    return call(np.linalg.norm, (traced(x).numbers,), {})


put(linalg.norm, _norm, _BOTH)
