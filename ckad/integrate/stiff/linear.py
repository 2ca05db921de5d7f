"""Jacobians of right-hand sides, and systems with I - c J: dense ones by LU, others by a pattern.

Both are constants to derivatives: what is solved with them is differentiated in `newton`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from ckad.integrate.problem import Problem
from ckad.integrate.stages import Rhs
from ckad.integrate.stiff.patterned import (
    SMALL,
    Elements,
    as_pattern,
    covers,
    found_pattern,
    patterned,
)
from ckad.place import at_place
from ckad.trace.arrays import reshaped, routine, traced
from ckad.trace.primitives.sparse import operators
from ckad.trace.source import follow
from ckad.trace.values.sparse import Sparse
from ckad.transforms import jacobian, jvp, scan, stop_gradient, vmap

Matrix = Callable[[Any, Any], Any]
#: Directions that go through one evaluation of a Jacobian side by side.
LANES = 16


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

    def __init__(self, fun: Rhs, n: int, given: Matrix | None) -> None:
        self._fun, self._n, self._given = fun, n, given

    def jacobian(self, t: Any, y: Any) -> Any:
        n, fun = self._n, self._fun
        if self._given is not None:
            found: Any = self._given(t, y)
            whole = isinstance(found, Sparse)
            return stop_gradient(found.toarray() if whole else found)
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


def _along(fun: Rhs, t: Any, y: Any, directions: Any) -> Any:
    """J times each row of ``directions``, in one sweep."""
    return vmap(lambda v: jvp(lambda y: fun(t, y), (y,), (v,))[1])(directions)


def systems(
    problem: Problem, fun: Rhs, jac: Any, jac_sparsity: Any, args: tuple[Any, ...]
) -> Systems:
    """Systems with I - c J, where J is that of ``fun`` or ``jac``.

    Where few elements of J are not zero, as ``jac_sparsity`` or the program of ``fun`` says, they
    are made use of.

    Raises:
        ValueError: ``jac`` or ``jac_sparsity`` has another shape, or the state is complex.
    """
    n = problem.y0.size
    if problem.y0.dtype.kind == "c":
        raise ValueError(
            at_place("implicit methods take real states: give real and imaginary parts as y0.")
        )
    if jac_sparsity is not None:
        _check("jac_sparsity", np.shape(jac_sparsity), n)
    given = _given(jac, n, args)
    elements = _elements(problem, fun, given, jac_sparsity)
    return (elements and patterned(elements)) or Dense(fun, n, given)


def _elements(problem: Problem, fun: Rhs, given: Matrix | None, asked: Any) -> Elements | None:
    begin = problem.t0, problem.y0
    if given is not None:
        matrix = given(*begin)
        if isinstance(matrix, Sparse):
            known = matrix.pattern
            return Elements(fun, known.csr(np.ones(known.nnz, bool)), False, given)
        return None if asked is None else Elements(fun, as_pattern(asked), False, given)
    if asked is None and problem.y0.size <= SMALL:
        return None
    found = found_pattern(fun, *begin)
    if asked is not None:
        pattern = as_pattern(asked)
        return Elements(fun, pattern, not covers(pattern, found), None)
    return None if found is None else Elements(fun, found, False, None)


def _given(jac: Any, n: int, args: tuple[Any, ...]) -> Matrix | None:
    """A user's J, float64[n, n] or sparse, as a function."""
    if jac is None:
        return None
    followed = follow(jac, often=True) if callable(jac) else None

    def matrix(t: Any, y: Any) -> Any:
        found = jac if followed is None else followed(t, y, *args)
        is_sparse = isinstance(found, Sparse) or sparse.issparse(found)
        found = (operators.traced(found) if is_sparse else traced(found)) * 1.0
        _check("jac", found.shape, n)
        return found

    return matrix


def _check(name: str, shape: tuple[int, ...], n: int) -> None:
    if shape != (n, n):
        raise ValueError(at_place(f"{name} has shape {shape}; the state's is ({n},)."))
