"""SciPy's linear problems under bounds, derived by the unknowns that no bound holds.

SciPy finds which these are. They solve a linear system whose right side the others are part of, so
that the derivative is that of this system: a bound moves its unknown, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
from scipy.sparse.linalg import LinearOperator

from ckad.optimize.problem import raising
from ckad.optimize.result import Found
from ckad.optimize.zeros import refused
from ckad.patterns import is_sparse
from ckad.place import at_place
from ckad.trace.arrays import traced
from ckad.trace.dispatch import CALLING, always, put
from ckad.trace.source.library.noted import by_library, refusing
from ckad.trace.values.sparse import Sparse
from ckad.transforms import primitive, stop_gradient

#: A solution that differs more from SciPy's, relative to the largest unknown, is not the only one.
DIFFERENT = 1e-7


def _found(matrix: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """-1 and 1 where a bound holds an unknown, 0 where none does; and the unknowns."""
    found = scipy.optimize.lsq_linear(matrix, b, (low, high), method="bvls", tol=1e-14)
    return np.stack([found.active_mask, np.where(found.status > 0, found.x, np.nan)])


_by_scipy = primitive(_found, shape=lambda matrix, b, low, high: (2, matrix.shape[1]))


def _solved(a: Any, b: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """The unknowns, and which bounds hold them."""
    if is_sparse(a) or isinstance(a, (Sparse, LinearOperator)):
        raise refused("lsq_linear", f"a {type(a).__name__}", "Pass A.toarray().")
    a, b = (traced(x).astype(np.float64) for x in (a, b))
    n = a.shape[-1]
    if a.ndim != 2 or b.shape != a.shape[:1]:
        raise ValueError(
            at_place(f"a matrix and a vector as long as it are needed: {a.shape}, {b.shape}")
        )
    low, high = (np.broadcast_to(traced(x).astype(np.float64), (n,)) for x in (low, high))
    held, theirs = _by_scipy(*map(stop_gradient, (a, b, low, high)))
    free = held == 0.0
    fixed = np.where(free, 0.0, np.where(held < 0.0, low, high))
    both = np.logical_and(free, free[:, np.newaxis])
    matrix = np.where(both, a.T @ a, np.eye(n))
    x = np.linalg.solve(matrix, np.where(free, a.T @ (b - a @ fixed), fixed))
    same = np.max(np.abs(x - theirs)) <= DIFFERENT * np.max(np.abs(theirs))
    return raising(x, np.logical_not(same)), held


def _nnls(A: Any, b: Any, maxiter: Any = None, **options: Any) -> Any:
    known = by_library(scipy.optimize.nnls, A, b, maxiter, **options)
    if known is not None:
        return known
    x, _ = _solved(A, b, 0.0, np.inf)
    return x, np.linalg.norm(traced(A) @ x - b)


def _lsq_linear(A: Any, b: Any, bounds: Any = (-np.inf, np.inf), *rest: Any, **options: Any) -> Any:
    known = by_library(scipy.optimize.lsq_linear, A, b, bounds, *rest, **options)
    if known is not None:
        return known
    low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    x, held = _solved(A, b, low, high)
    left = traced(A) @ x - b
    return Found(
        x=x, fun=left, cost=0.5 * np.sum(left * left), active_mask=held, success=True, status=1
    )


#: What is not recorded, and what to write in its place.
_REMEDIES = {
    "linprog": "Find with SciPy, outside of the program, which constraints hold at the solution, "
    "and solve these as a system: x = np.linalg.solve(A[held], b[held]).",
    "milp": "Solve it outside of the program, and pass the integers that it finds.",
    "linear_sum_assignment": "Find the assignment outside of the program, and index with it.",
    "differential_evolution": "Search outside, and begin ckad.optimize.minimize at what is found.",
    "basinhopping": "Search outside, and begin ckad.optimize.minimize at what is found.",
    "dual_annealing": "Search outside, and begin ckad.optimize.minimize at what is found.",
    "shgo": "Search outside, and begin ckad.optimize.minimize at what is found.",
    "brute": "Search outside, and begin ckad.optimize.minimize at what is found.",
}


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    scipy.optimize.nnls: _nnls,
    scipy.optimize.lsq_linear: _lsq_linear,
    **{
        vars(scipy.optimize)[name]: refusing(vars(scipy.optimize)[name], remedy)
        for name, remedy in _REMEDIES.items()
    },
}
for _scipys, _function in _FUNCTIONS.items():
    put(_scipys, _function, CALLING)
    always(_scipys)
