"""Sparse linear systems of any pattern, by SuperLU.

SuperLU is SciPy's and runs in Python under the GIL. Its factors are kept by the exact numbers they
belong to, so that the adjoint, which solves with the same matrix, finds them.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.rules.routines.dense.matrices import need
from ckad.rules.routines.sparse import turned, unpacked
from ckad.rules.routines.sparse_triangular import solution_rules, square
from ckad.tape.routines import Routine, define
from ckad.tape.types import Type

#: What SciPy says of SuperLU's factors that ``spsolve`` has; it gives NaN.
_WARNS = "Matrix is exactly singular"

# --- any pattern ---------------------------------------------------------------------------------

#: So many factors are kept at most, and so many bytes of them.
MOST_FACTORS, MOST_BYTES = 64, 2**28


class Factors:
    """SuperLU's factors of matrices, the last used ones, by their exact numbers and places."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, tuple[list[np.ndarray], Any, int]] = OrderedDict()
        self._nbytes = 0

    def of(self, n: int, data: np.ndarray, indptr: np.ndarray, indices: np.ndarray) -> Any:
        """Factors of the transpose of a matrix in CSR; RuntimeError for a singular one."""
        parts = [data, indptr, indices]
        key = hash((n, data[:: max(len(data) // 64, 1)].tobytes(), len(data)))
        with self._lock:
            found = self._kept.get(key)
            if found is not None and all(map(_same, found[0], parts)):
                self._kept.move_to_end(key)
                return found[1]
        made = _factorised(n, *parts)
        nbytes = 12 * int(made.nnz) + sum(x.nbytes for x in parts)
        with self._lock:
            self._drop(key)
            self._kept[key] = [x.copy() for x in parts], made, nbytes
            self._nbytes += nbytes
            while len(self._kept) > MOST_FACTORS or self._nbytes > MOST_BYTES:
                self._drop(next(iter(self._kept)))
        return made

    def _drop(self, key: int) -> None:
        _, _, nbytes = self._kept.pop(key, (None, None, 0))
        self._nbytes -= nbytes


def _same(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether arrays are one bit by bit, which NaN and the sign of 0 are no exception of."""
    return x.shape == y.shape and bool(np.array_equal(x.view(np.int64), y.view(np.int64)))


def _factorised(n: int, data: np.ndarray, indptr: np.ndarray, indices: np.ndarray) -> Any:
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    where = unpacked(indices, len(data)), unpacked(indptr, n + 1)
    return splu(csc_array((data, *where), shape=(n, n)))


_factors = Factors()


def _after_fork() -> None:
    """A lock that another thread held is never released in a forked process."""
    global _factors
    _factors = Factors()


os.register_at_fork(after_in_child=_after_fork)

# sparse_solve(data [nnz], B [n, k], indptr, indices; transposed, strict, n) -> X with A X = B or
# A^T X = B. A singular matrix gives NaN with SciPy's warning, an error with strict=1, and NaN alone
# with strict=SILENT, as a matrix that holds NaN does.
SILENT = 2


def _solve_shape(attrs: Sequence[int], *types: Type) -> Type:
    need(len(attrs) == 3, f"sparse_solve with attributes {tuple(attrs)}")
    return square("sparse_solve", attrs[2], *types)


def _solved(
    attrs: Sequence[int],
    data: np.ndarray,
    right: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
) -> np.ndarray:
    transposed, strict, n = attrs
    if right.size == 0:
        return right.copy()
    if strict == SILENT and not np.all(np.isfinite(data)):
        return np.full_like(right, np.nan)
    try:
        factors = _factors.of(n, data, indptr, indices)
    except RuntimeError as error:
        if strict == 1 or "singular" not in str(error):
            raise
        if strict == SILENT:
            return np.full_like(right, np.nan)
        from scipy.sparse.linalg import MatrixRankWarning

        warnings.warn(_WARNS, MatrixRankWarning, stacklevel=2)
        return np.full_like(right, np.nan)
    # what is factorised is the transpose
    solved: np.ndarray = factors.solve(np.asfortranarray(right), "N" if transposed else "T")
    return np.ascontiguousarray(solved)


solve = define(
    Routine(
        "sparse_solve",
        _solve_shape,
        _solved,
        # nothing is known of the fill; this is that of a plane grid
        flops=lambda attrs, data, x, *w: 100.0 * data.size + 40.0 * x.size,
        calls_blas=True,
        **solution_rules("sparse_solve", turned, 2),
    )
)


def factors_of(n: int, data: np.ndarray, indptr: np.ndarray, indices: np.ndarray) -> Any:
    """SuperLU's factors of the transpose of a matrix; RuntimeError for a singular one."""
    return _factors.of(n, data, indptr, indices)
