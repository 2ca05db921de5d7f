"""``eigsh`` and ``svds``, by the dense factorisations; solvers that have no iteration of their own
here, by the direct one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import linalg

from ckad.place import at_place
from ckad.trace.arrays import known as as_known
from ckad.trace.dispatch import PLAIN, SPARSE, call, put, reject
from ckad.trace.primitives.sparse.operators import is_matrix, toarray, traced
from ckad.trace.values.tracer import Tracer, lift

#: A dense matrix of more rows takes longer than a user thinks of.
MOST_ROWS = 3000


def _dense(A: Any, name: str, remedy: str) -> Tracer:
    reject(isinstance(A, linalg.LinearOperator), f"{name} of a LinearOperator (pass the matrix)")
    found = toarray(traced(A)) if is_matrix(A) else lift(A)
    reject(max(found.shape) > MOST_ROWS, f"{name} of {found.shape} elements, which it takes as a "
           f"dense matrix of up to {MOST_ROWS} rows ({remedy})")  # fmt: skip
    return found


def _among(k: Any, n: int, name: str) -> int:
    number = as_known(k)
    reject(number is None, f"{name} of a traced k")
    assert number is not None
    if not 0 < int(number) < n:
        raise ValueError(at_place(f"k={int(number)} must be between 1 and {n - 1}"))
    return int(number)


def _places(e: Tracer, k: int, which: str, sigma: Any) -> Any:
    """Where those that are wanted stand among all, which ascend; those wanted most are last, as
    ARPACK has them; the nearest to ``sigma`` ascend."""
    n = e.shape[0]
    if sigma is not None:
        return np.sort(np.argsort(np.abs(e - sigma))[:k])
    if which in ("LM", "SM"):
        order = np.argsort(np.abs(e))
        return order[n - k :] if which == "LM" else order[:k][::-1]
    if which == "BE":
        return np.r_[0 : k // 2, n - (k - k // 2) : n]
    return np.arange(n)[:k][::-1] if which == "SA" else np.arange(n)[n - k :]


def _eigsh(
    A: Any, k: Any = 6, M: Any = None, sigma: Any = None, which: str = "LM", v0: Any = None,
    ncv: Any = None, maxiter: Any = None, tol: Any = 0, return_eigenvectors: bool = True,
    Minv: Any = None, OPinv: Any = None, mode: str = "normal", rng: Any = None,
) -> Any:  # fmt: skip
    name = "scipy.sparse.linalg.eigsh"
    given = M is not None or Minv is not None or OPinv is not None or mode != "normal"
    reject(given, f"{name} with M=, Minv=, OPinv= or mode= (scipy.linalg.eigh(A, M) of arrays)")
    reject(sigma is not None and which != "LM", f"{name} with sigma= and which={which!r}")
    if which not in ("LM", "SM", "LA", "SA", "BE"):
        raise ValueError(at_place("which must be one of LM, SM, LA, SA, BE"))
    dense = _dense(A, name, "scipy.sparse.linalg.lobpcg and its like are not derived")
    number = _among(k, dense.shape[0], name)
    if not return_eigenvectors:
        reject(which == "BE", f"{name} with which='BE' and without eigenvectors")
        e = call(np.linalg.eigvalsh, (dense,), {})
        return e[_places(e, number, which, sigma)]
    e, vectors = call(np.linalg.eigh, (dense,), {})
    at = np.sort(_places(e, number, which, sigma))
    return e[at], vectors[:, at]


def _svds(
    A: Any, k: Any = 6, ncv: Any = None, tol: Any = 0, which: str = "LM", v0: Any = None,
    maxiter: Any = None, return_singular_vectors: Any = True, solver: str = "arpack",
    rng: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    name = "scipy.sparse.linalg.svds"
    wanted = return_singular_vectors
    reject(isinstance(wanted, str), f"{name} with return_singular_vectors={wanted!r}")
    if which not in ("LM", "SM"):
        raise ValueError(at_place("which must be either LM or SM"))
    dense = _dense(A, name, "a product with few vectors, and np.linalg.qr of it")
    n = min(dense.shape)
    number = _among(k, n + 1, name)
    at = np.arange(n)[:number][::-1] if which == "LM" else np.arange(n)[n - number :][::-1]
    if not wanted:
        return call(np.linalg.svd, (dense,), {"compute_uv": False})[at]
    u, s, vh = call(np.linalg.svd, (dense,), {"full_matrices": False})
    return u[:, at], s[at], vh[at]


put(linalg.eigsh, _eigsh, (PLAIN, SPARSE))
put(linalg.svds, _svds, (PLAIN, SPARSE))

# --- solvers -----------------------------------------------------------------------------------


def _direct(function: Any) -> Callable[..., Any]:
    """What such a solver goes towards, to rounding."""
    name = function.__name__

    def solve(
        A: Any, b: Any, x0: Any = None, *, maxiter: Any = None, callback: Any = None,
        shift: Any = 0.0, **options: Any,
    ) -> Any:  # fmt: skip
        reject(callback is not None, f"{name} with callback=")
        reject(
            isinstance(A, linalg.LinearOperator), f"{name} of a LinearOperator (pass the matrix)"
        )
        shifts = as_known(shift)
        reject(shifts is None or bool(np.any(shifts)), f"{name} with shift=")
        most = None if maxiter is None else as_known(maxiter)
        few = maxiter is not None and (most is None or int(most) < lift(b).shape[0])
        reject(few, f"{name} with maxiter= below the number of unknowns: the system is solved here")
        return call(linalg.spsolve, (A, b), {}), 0

    return solve


for _name in ("minres", "bicg", "cgs", "qmr", "tfqmr", "lgmres", "gcrotmk"):
    _function = getattr(linalg, _name)
    put(_function, _direct(_function), (PLAIN, SPARSE))
