"""Sparse linear systems: of few diagonals by LAPACK, of any pattern by SuperLU, and by iteration.

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
from ckad.rules.routines.memory import (
    HEAD,
    compiled,
    doubles,
    external,
    integers,
    letters,
    short_integers,
)
from ckad.rules.routines.sparse import evaluated, solution_rules, square, turned, unpacked
from ckad.tape.routines import Routine, define
from ckad.tape.types import Type

_dgttrf = external("dgttrf", 7)
_dgttrs = external("dgttrs", 11)
_dgbtrf = external("dgbtrf", 8)
_dgbtrs = external("dgbtrs", 11)

_N, _T = ord("N"), ord("T")
_SINGULAR = 1
#: What SciPy says of SuperLU's factors; ``spsolve`` warns and gives NaN.
_EXACTLY = "Factor is exactly singular"
_WARNS = "Matrix is exactly singular"

# --- few diagonals -------------------------------------------------------------------------------

# sparse_banded(data [nnz], B [n, k], indptr, indices; transposed, strict, below, above, n) -> X
# with A X = B or A^T X = B. A singular matrix gives NaN, or an error if ``strict``.


def _banded_shape(attrs: Sequence[int], *types: Type) -> Type:
    need(len(attrs) == 5, f"sparse_banded with attributes {tuple(attrs)}")
    return square("sparse_banded", attrs[4], *types)


def _workspace(attrs: Sequence[int], *types: Type) -> int:
    """The diagonals with room for fill, row exchanges, and the right sides by columns."""
    _, _, below, above, n = attrs
    diagonals = max(2 * below + above + 1, 4)
    return 8 * diagonals * n + 8 * n + 8 * types[1].size


def _banded(words: int, arrays: int, work: int) -> int:
    transposed, strict, below, above, n, nnz, _, k = integers(words, 8)
    out, at_data, at_right, at_indptr, at_indices = integers(arrays, 5)
    data, right, x = doubles(at_data, nnz), doubles(at_right, n * k), doubles(out, n * k)
    indptr, indices = short_integers(at_indptr, n + 1), short_integers(at_indices, nnz)
    text, sizes = letters(work, 4), short_integers(work, 16)
    tridiagonal = below <= 1 and above <= 1
    height = 4 if tridiagonal else 2 * below + above + 1
    start = work + HEAD
    band, exchanges = doubles(start, height * n), start + 8 * height * n
    columns = exchanges + 8 * n
    text[0] = _T if transposed else _N
    sizes[1], sizes[2], sizes[3], sizes[4], sizes[5] = n, below, above, height, k
    sizes[6], sizes[7] = max(n, 1), 0
    band[:] = 0.0
    for i in range(n):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            if not tridiagonal:
                band[j * height + below + above + i - j] = data[p]
            elif i > j:
                band[j] = data[p]
            else:
                band[n * (1 + j - i) + i] = data[p]
    lower, main, upper, second = start, start + 8 * n, start + 16 * n, start + 24 * n
    if n > 0 and tridiagonal:
        _dgttrf(work + 4, lower, main, upper, second, exchanges, work + 28)
    elif n > 0:
        _dgbtrf(work + 4, work + 4, work + 8, work + 12, start, work + 16, exchanges, work + 28)
    if sizes[7] != 0:
        x[:] = np.nan
        return _SINGULAR if strict else 0
    at = out
    x[:] = right
    if k > 1:
        at, b = columns, doubles(columns, n * k)
        for i in range(n):
            for c in range(k):
                b[c * n + i] = right[i * k + c]
    if n > 0 and k > 0 and tridiagonal:
        _dgttrs(work, work + 4, work + 20, lower, main, upper, second, exchanges, at, work + 24,
                work + 28)  # fmt: skip
    elif n > 0 and k > 0:
        _dgbtrs(work, work + 4, work + 8, work + 12, work + 20, start, work + 16, exchanges, at,
                work + 24, work + 28)  # fmt: skip
    if k > 1:
        b = doubles(columns, n * k)
        for i in range(n):
            for c in range(k):
                x[i * k + c] = b[c * n + i]
    return 0


_BANDED = compiled(_banded, _workspace, {_SINGULAR: (RuntimeError, _EXACTLY)})
banded = define(
    Routine(
        "sparse_banded",
        _banded_shape,
        evaluated(_BANDED, _banded_shape),
        flops=lambda attrs, data, x, *w: (
            2.0 * x.shape[0] * (attrs[2] + 1) * (2 * attrs[2] + attrs[3] + 2 * x.shape[1])
        ),
        compiled=_BANDED,
        **solution_rules("sparse_banded", turned, 4),
    )
)

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

# sparse_solve(data [nnz], B [n, k], indptr, indices; transposed, strict, n) -> X, as sparse_banded


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
    try:
        factors = _factors.of(n, data, indptr, indices)
    except RuntimeError as error:
        if strict or "singular" not in str(error):
            raise
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
        **solution_rules("sparse_solve", turned, 2),
    )
)


def factors_of(n: int, data: np.ndarray, indptr: np.ndarray, indices: np.ndarray) -> Any:
    """SuperLU's factors of the transpose of a matrix; RuntimeError for a singular one."""
    return _factors.of(n, data, indptr, indices)
