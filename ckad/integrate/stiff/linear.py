"""Jacobians of right-hand sides, and systems with I - c J: dense ones by LU, banded ones.

Both are constants to derivatives: what is solved with them is differentiated in `newton`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from ckad.integrate.stages import Rhs
from ckad.place import at_place
from ckad.trace.arrays import reshaped, routine, stopping, traced
from ckad.trace.source import follow
from ckad.transforms import jacobian, jvp, scan, stop_gradient, vmap

#: Directions that go through one evaluation of a Jacobian side by side.
LANES = 16
_SINGULAR_IS_NAN = 1


class Systems(Protocol):
    """The Jacobian of a problem in the form in which its systems are solved."""

    def jacobian(self, t: Any, y: Any) -> Any:
        """J at (t, y)."""

    def factors(self, jacobian: Any, c: Any) -> Any:
        """What solves systems with I - c J; NaN where that is singular."""

    def unless(self, right: Any, factors: Any) -> Any:
        """``factors`` where the flag ``right`` is true, else those of the unit matrix."""

    def solve(self, factors: Any, right: Any) -> Any:
        """The solution, linear in the right side."""


class Dense:
    """J as float64[n, n]."""

    def __init__(self, fun: Rhs, n: int, given: Rhs | None) -> None:
        self._fun, self._n, self._given = fun, n, given

    def jacobian(self, t: Any, y: Any) -> Any:
        n, fun = self._n, self._fun
        if self._given is not None:
            return stop_gradient(self._given(t, y))
        if n <= LANES:
            return stop_gradient(jacobian(lambda y: fun(t, y), mode="fwd")(y))
        rows = -(-n // LANES)
        units = np.zeros((rows * LANES, n))
        units[:n] = np.eye(n)

        def several(carry: Any, directions: Any) -> tuple[Any, Any]:
            return carry, _along(fun, t, y, directions)

        _, columns = scan(several, np.float64(0.0), units.reshape(rows, LANES, n))
        return stop_gradient(columns.reshape(rows * LANES, n)[:n].T)

    def factors(self, jacobian: Any, c: Any) -> Any:
        n = self._n
        matrix = np.eye(n) - c * jacobian
        factors = routine("lu", reshaped(traced(matrix), (1, n, n)), attrs=(0,))
        pivots = np.diagonal(factors[0, :n])
        rows = np.arange(n + 1)[:, np.newaxis] < n  # the last one holds LAPACK's exchanges
        return stop_gradient(np.where(np.any(pivots == 0.0) & rows, np.nan, factors))

    def unless(self, right: Any, factors: Any) -> Any:
        n = self._n
        unit = np.concatenate([np.eye(n), np.arange(float(n))[np.newaxis]])[np.newaxis]
        return np.where(right, factors, unit)

    def solve(self, factors: Any, right: Any) -> Any:
        n = self._n
        found = routine("lu_solve", factors, reshaped(traced(right), (1, n, 1)), attrs=(0, 0))
        return reshaped(found, (n,))


class Banded:
    """J by its diagonals, float64[l + u + 1, n]: J[i, j] is at [u + i - j, j], as in SciPy."""

    def __init__(self, fun: Rhs, n: int, bands: tuple[int, int], given: Rhs | None) -> None:
        self._fun, self._n, self._given = fun, n, given
        self._lower, self._upper = bands
        width = sum(bands) + 1
        diagonal, column = np.mgrid[:width, :n]
        self._row = diagonal + column - self._upper
        self._inside = (self._row >= 0) & (self._row < n)
        self._row = np.clip(self._row, 0, n - 1)
        self._unit = np.where(diagonal == self._upper, 1.0, 0.0)
        self._column = column
        above = column - diagonal + self._upper  # the columns of a row's elements
        self._has_place = (above >= 0) & (above < n)
        self._places = diagonal * n + np.clip(above, 0, n - 1)
        #: Columns that are ``width`` apart have no row in common, so that one direction does.
        seeds = np.arange(n) % width == np.arange(width)[:, np.newaxis]
        self._check = np.cos(np.arange(n) ** 2)  # one more direction, to which all columns add
        self._seeds = np.concatenate([seeds, self._check[np.newaxis]])

    def jacobian(self, t: Any, y: Any) -> Any:
        width, n = self._column.shape
        if self._given is not None:
            found = self._given(t, y)[self._row, self._column]
        else:
            products = _along(self._fun, t, y, self._seeds)
            found = products.reshape(-1)[self._column % width * n + self._row]
            found = self._complete(np.where(self._inside, found, 0.0), products[width])
        return stop_gradient(np.where(self._inside, found, 0.0))

    def _complete(self, found: Any, expected: Any) -> Any:
        """The band; the program stops where J has elements beside it."""
        terms = (found * self._check).reshape(-1)[self._places]
        terms = np.where(self._has_place, terms, 0.0)
        missing = np.abs(np.sum(terms, axis=0) - expected)
        size = np.sum(np.abs(terms), axis=0) + np.abs(expected)
        return stopping(found, np.any(missing > 1e-6 * size), "RAISED")

    def factors(self, jacobian: Any, c: Any) -> Any:
        return stop_gradient(self._unit - c * jacobian)

    def unless(self, right: Any, factors: Any) -> Any:
        return np.where(right, factors, self._unit)

    def solve(self, factors: Any, right: Any) -> Any:
        width, n = self._column.shape
        matrix, column = reshaped(factors, (1, width, n)), reshaped(traced(right), (1, n, 1))
        attrs = (self._lower, self._upper, 0, _SINGULAR_IS_NAN)
        return reshaped(routine("banded", matrix, column, attrs=attrs), (n,))


def _along(fun: Rhs, t: Any, y: Any, directions: Any) -> Any:
    """J times each row of ``directions``, in one sweep."""
    return vmap(lambda v: jvp(lambda y: fun(t, y), (y,), (v,))[1])(directions)


def systems(fun: Rhs, y0: Any, jac_sparsity: Any, jac: Any, args: tuple[Any, ...]) -> Systems:
    """Banded where ``jac_sparsity`` says that few diagonals of J are not zero, else dense.

    Raises:
        ValueError: ``jac`` or ``jac_sparsity`` has another shape, or the state is complex.
    """
    n = y0.size
    if y0.dtype.kind == "c":
        raise ValueError(
            at_place("implicit methods take real states: give real and imaginary parts as y0.")
        )
    given = _given(jac, n, args)
    lower, upper = _bands(jac_sparsity, n)
    if lower + upper + 1 < max(n // 2, 2):
        return Banded(fun, n, (lower, upper), given)
    return Dense(fun, n, given)


def _given(jac: Any, n: int, args: tuple[Any, ...]) -> Callable[[Any, Any], Any] | None:
    if jac is None:
        return None
    if not callable(jac):
        constant = jac.toarray() if sparse.issparse(jac) else jac
        _check("jac", np.shape(constant), n)
        return lambda t, y: traced(constant) * 1.0
    followed = follow(jac)

    def matrix(t: Any, y: Any) -> Any:
        found = followed(t, y, *args)
        found = traced(found.toarray() if sparse.issparse(found) else found) * 1.0
        _check("jac", found.shape, n)
        return found

    return matrix


def _check(name: str, shape: tuple[int, ...], n: int) -> None:
    if shape != (n, n):
        raise ValueError(at_place(f"{name} has shape {shape}; the state's is ({n},)."))


def _bands(jac_sparsity: Any, n: int) -> tuple[int, int]:
    """How many diagonals below and above the main one ``jac_sparsity`` has."""
    if jac_sparsity is None:
        return n, n
    is_sparse = sparse.issparse(jac_sparsity)
    pattern = sparse.coo_array(jac_sparsity if is_sparse else np.asarray(jac_sparsity))
    _check("jac_sparsity", pattern.shape, n)
    below = pattern.row - pattern.col
    return int(max(below.max(initial=0), 0)), int(max((-below).max(initial=0), 0))
