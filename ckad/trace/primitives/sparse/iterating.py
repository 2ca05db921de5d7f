"""``cg``, ``bicgstab`` and ``gmres``, differentiated as the solution of the system; ``lsqr`` and
``lsmr`` as least squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import expm
from scipy.sparse import linalg

from ckad.place import at_place
from ckad.rules.routines.krylov import METHODS
from ckad.trace.arrays import routine
from ckad.trace.dispatch import PLAIN, SPARSE, call, put, reject
from ckad.trace.primitives.sparse.making import structure
from ckad.trace.primitives.sparse.operators import (
    floats,
    is_complex,
    is_matrix,
    toarray,
    traced,
    words,
)
from ckad.trace.primitives.sparse.solving import square
from ckad.trace.values.apply import astype, reshape_value
from ckad.trace.values.sparse import Sparse
from ckad.trace.values.tracer import Tracer, lift

#: Elements of the largest matrix whose least squares are found by a dense factorisation.
LARGEST_DENSE = 2**22


def _matrix(x: Any, name: str) -> Sparse:
    if isinstance(x, linalg.LinearOperator):
        x = getattr(x, "A", None)  # that of aslinearoperator
        reject(
            x is None,
            f"{name} with a LinearOperator, whose function is not known as a matrix (pass the "
            "sparse matrix itself; a preconditioner as one, sp.diags(1 / A.diagonal()))",
        )
    found = square(x)
    reject(is_complex(found), f"{name} of a complex matrix (spsolve takes them)")
    return found


def _solver(function: Any) -> Callable[..., Any]:
    name = function.__name__

    def solve(
        A: Any,
        b: Any,
        x0: Any = None,
        *,
        rtol: Any = 1e-5,
        atol: Any = 0.0,
        maxiter: Any = None,
        M: Any = None,
        callback: Any = None,
        restart: Any = None,
        callback_type: Any = None,
    ) -> Any:
        reject(callback is not None, f"{name} with callback=")
        a, right = _matrix(A, name), lift(b)
        n = a.shape[0]
        if right.shape not in ((n,), (n, 1)):
            raise ValueError(at_place(f"shapes of A {a.shape} and b {right.shape} do not fit"))
        m = traced(sparse.csr_array((n, n))) if M is None else _matrix(M, name)
        first = np.zeros(n) if x0 is None else reshape_value(lift(x0), (n,))
        tolerances = call(np.stack, ([lift(float(structure(v))) for v in (rtol, atol)],), {})
        most = 10 * n if maxiter is None else int(structure(maxiter))
        inner = min(20 if restart is None else int(structure(restart)), n)
        found = routine(
            "sparse_krylov",
            *(floats(a.numbers), floats(reshape_value(right, (n,)))),
            *(*words(a.pattern), floats(first), floats(m.numbers), *words(m.pattern), tolerances),
            attrs=(METHODS.index(name), 0, most, inner, n),
        )
        return astype(found[:n], np.result_type(a.dtype, right.dtype, np.float32)), _info(found, n)

    return solve


def _info(found: Tracer, n: int) -> Tracer:
    """Zero, or what SciPy says of an iteration that has not converged; a Python integer."""
    info = astype(found[n], np.int64)
    return Tracer(info.storage, info.path, True, True)


def _refused(name: str, remedy: str) -> Callable[..., Any]:
    def refuse(*args: Any, **options: Any) -> Any:
        reject(True, f"scipy.sparse.linalg.{name} ({remedy})")

    return refuse


for _name, _remedy in {
    "eigs": "np.linalg.eig(A.toarray()) gives all of them",
    "lobpcg": "scipy.sparse.linalg.eigsh(A, k), or np.linalg.eigh(A.toarray())",
    "expm": "scipy.linalg.expm(A.toarray())",
    "inv": "spsolve(A, b) for A^-1 b, or np.linalg.inv(A.toarray())",
    "onenormest": "abs(A).sum(axis=0) and its largest",
    "spilu": "splu(A) factorises completely; known matrices are taken, outside of the function",
}.items():
    put(getattr(linalg, _name), _refused(_name, _remedy), (PLAIN, SPARSE))


def _exponential(A: Any, B: Any, start: Any = None, stop: Any = None, num: Any = None,
                 endpoint: Any = None, traceA: Any = None) -> Any:  # fmt: skip
    """exp(A) B by the dense exponential."""
    reject(start is not None or stop is not None, "expm_multiply at several times")
    dense = toarray(traced(A)) if is_matrix(A) else A
    return call(np.matmul, (call(expm, (dense,), {}), B), {})


put(linalg.expm_multiply, _exponential, (PLAIN, SPARSE))


class _OfIterations:
    """What only iterations have, as how many there were: it can be left aside."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _refuse(self, *args: Any) -> Any:
        reject(True, f"{self.name} beside its solution, which is computed without iterations")

    __bool__ = __int__ = __index__ = __float__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __eq__ = __ne__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __array__ = __format__ = __str__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def _least_squares(function: Any, others: int) -> Callable[..., Any]:
    """The shortest of the solutions, to which these iterations converge from zero."""
    name = f"scipy.sparse.linalg.{function.__name__}"

    def solve(A: Any, b: Any, damp: Any = 0.0, *args: Any, x0: Any = None, **options: Any) -> Any:
        reject(x0 is not None, f"{name} with x0=")
        reject(
            isinstance(A, linalg.LinearOperator),
            f"{name} with a LinearOperator, whose function is not known as a matrix (pass the "
            "sparse matrix itself)",
        )
        a = toarray(traced(A)) if is_matrix(A) else lift(A)
        rows, columns = a.shape
        reject(
            rows * columns > LARGEST_DENSE,
            f"{name} of a matrix of {rows:,} by {columns:,} elements, which it would make dense "
            "(spsolve((A.T @ A + damp**2 * eye).tocsc(), A.T @ b))",
        )
        right = reshape_value(lift(b), (rows,))
        if not (isinstance(damp, (int, float)) and damp == 0):
            below = call(np.multiply, (damp, np.eye(columns)), {})
            a = call(np.concatenate, ([a, below],), {})
            right = call(np.concatenate, ([right, np.zeros(columns)],), {})
        return (call(np.linalg.lstsq, (a, right, None), {})[0], *[_OfIterations(name)] * others)

    return solve


for _function, _others in ((linalg.lsqr, 9), (linalg.lsmr, 7)):
    put(_function, _least_squares(_function, _others), (PLAIN, SPARSE))

for _function in (linalg.cg, linalg.bicgstab, linalg.gmres):
    put(_function, _solver(_function), (PLAIN, SPARSE))
