"""Systems with I - c J where few elements of J are not zero: bands by LAPACK, others by SuperLU.

Which elements those are is read off the program of ``fun``, unless a user says so. J takes as many
directions as its columns have colours, see `ckad.transforms.sparse`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ckad.errors import DifferentiationError
from ckad.integrate.stages import Rhs
from ckad.patterns import Pattern
from ckad.rules.routines.sparse_solve import SILENT
from ckad.trace.arrays import reshaped, routine, stopping, traced
from ckad.trace.primitives.sparse.operators import words
from ckad.trace.values.sparse import Sparse
from ckad.transforms import jacobian, jvp, sparsity, stop_gradient

#: Below this size a pattern is not looked for,
SMALL = 32
#: and up to it SuperLU's calls, which Python makes, cost more than dense factors.
MOST_DENSE = 128
#: Bands of so many diagonals, and those that are this full, are solved as bands.
NARROW, FULL = 16, 0.25
#: The share of elements up to which a matrix is sparse.
THIN = 0.1
_SINGULAR_IS_NAN = 1


class Elements(NamedTuple):
    """The elements of J that may differ from zero, row after row."""

    fun: Rhs
    pattern: Any  # a csr_array of bools, sorted
    is_checked: bool  # whether the program stops where J has others
    given: Callable[[Any, Any], Any] | None  # a user's J in place of that of ``fun``

    @property
    def rows(self) -> np.ndarray:
        return np.repeat(np.arange(self.pattern.shape[0]), np.diff(self.pattern.indptr))

    def at(self, t: Any, y: Any) -> Any:
        fun, columns = self.fun, self.pattern.indices
        if self.given is not None:
            matrix = self.given(t, y)
            is_whole = isinstance(matrix, Sparse)  # the pattern is that of this matrix
            return stop_gradient(matrix.numbers if is_whole else matrix[self.rows, columns])
        found = jacobian(lambda y: fun(t, y), sparse=True, sparsity=self.pattern)(y).data
        return stop_gradient(self._complete(found, t, y) if self.is_checked else found)

    def _complete(self, found: Any, t: Any, y: Any) -> Any:
        """One more direction, to which all columns add."""
        fun, n = self.fun, self.pattern.shape[0]
        direction = np.cos(np.arange(n) ** 2)
        expected = jvp(lambda y: fun(t, y), (y,), (direction,))[1]
        terms = found * direction[self.pattern.indices]
        sums, sizes = (np.bincount(self.rows, x, n) for x in (terms, np.abs(terms)))
        wrong = np.abs(sums - expected) > 1e-6 * (sizes + np.abs(expected))
        return stopping(found, np.any(wrong), "PATTERN")


class _Factored:
    """What a step factors: 1 - c J, whose form follows from that of 1."""

    _unit: np.ndarray

    def factors(self, jacobian: Any, c: Any) -> Any:
        return stop_gradient(self._unit - c * jacobian)

    def unless(self, right: Any, factors: Any) -> Any:
        return np.where(right, factors, self._unit)


class Banded(_Factored):
    """J by its diagonals, float64[l + u + 1, n]: J[i, j] is at [u + i - j, j], as in SciPy."""

    def __init__(self, elements: Elements, bands: tuple[int, int]) -> None:
        self._elements, (self._lower, self._upper) = elements, bands
        n = elements.pattern.shape[0]
        self._shape = sum(bands) + 1, n
        columns = elements.pattern.indices
        self._places = (self._upper + elements.rows - columns) * n + columns
        self._unit = np.zeros(self._shape)
        self._unit[self._upper] = 1.0

    def jacobian(self, t: Any, y: Any) -> Any:
        width, n = self._shape
        found = np.zeros(width * n, like=traced(y))
        found[self._places] = self._elements.at(t, y)
        return found.reshape(self._shape)

    def solve(self, factors: Any, right: Any) -> Any:
        width, n = self._shape
        matrix, column = reshaped(factors, (1, width, n)), reshaped(traced(right), (1, n, 1))
        bands = self._lower, self._upper
        lu, attrs = routine("banded_lu", matrix, attrs=bands), (*bands, 0, _SINGULAR_IS_NAN)
        return reshaped(routine("banded", lu, column, attrs=attrs), (n,))


class General(_Factored):
    """J by its elements, to which zeros on the diagonal are added: float64[nnz].

    SuperLU keeps its factors by these numbers, so that the adjoint solves with the same ones.
    """

    def __init__(self, elements: Elements) -> None:
        self._elements, n = elements, elements.pattern.shape[0]
        places = elements.rows * n + elements.pattern.indices
        whole = np.union1d(places, np.arange(n) * (n + 1))
        rows, columns = np.divmod(whole, n)
        self._places = np.searchsorted(whole, places)
        self._unit = np.where(rows == columns, 1.0, 0.0)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
        self._where = words(Pattern(sparse.csr_array, (n, n), indptr, columns))

    def jacobian(self, t: Any, y: Any) -> Any:
        found = np.zeros(self._unit.size, like=traced(y))
        found[self._places] = self._elements.at(t, y)
        return found

    def solve(self, factors: Any, right: Any) -> Any:
        n = self._elements.pattern.shape[0]
        column, attrs = reshaped(traced(right), (n, 1)), (0, SILENT, n)
        return reshaped(routine("sparse_solve", factors, column, *self._where, attrs=attrs), (n,))


def found_pattern(fun: Rhs, t: Any, y: Any) -> Any:
    """Which elements of J may differ from zero; None if too many for that to be of use."""
    try:
        return sparsity(lambda y: fun(t, y))(y).matrix
    except DifferentiationError:
        return None


def covers(pattern: Any, found: Any) -> bool:
    return found is not None and (found > pattern.astype(bool)).nnz == 0


def patterned(elements: Elements) -> Banded | General | None:
    """What solves systems of this pattern; None where dense factors do it better."""
    pattern, n = elements.pattern, elements.pattern.shape[0]
    below = elements.rows - pattern.indices
    bands = int(max(below.max(initial=0), 0)), int(max((-below).max(initial=0), 0))
    width = sum(bands) + 1
    if width < max(n // 2, 2) and (width <= NARROW or pattern.nnz >= FULL * width * n):
        return Banded(elements, bands)
    if n > MOST_DENSE and pattern.nnz <= THIN * n * n:
        return General(elements)
    return Banded(elements, bands) if width < max(n // 4, 2) else None


def as_pattern(given: Any) -> Any:
    """A matrix as a csr_array of bools, sorted, of all that is stored or not 0."""
    found = sparse.csr_array(given if sparse.issparse(given) else np.asarray(given))
    found.sum_duplicates()
    return sparse.csr_array((np.ones(found.nnz, bool), found.indices, found.indptr), found.shape)
