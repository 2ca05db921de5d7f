"""Sparse matrices in loops against SciPy's own run: ``python -m benchmarks.programs.sparse``.

Numbers of a matrix that is the same in every call find their factors: those of one call are timed
with a new matrix.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import ckad


def laplacian(m: int) -> Any:
    line = sp.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(m, m))
    return (sp.kron(sp.eye(m), line) + sp.kron(line, sp.eye(m))).tocsr()


PLANE, SMALL = laplacian(80), laplacian(30)


def products(data, x):
    matrix = sp.csr_matrix((data, PLANE.indices, PLANE.indptr), shape=PLANE.shape)
    for _ in range(200):
        x = 0.1 * (matrix @ x)
    return np.sum(x * x)


def heat_of_its_state(k, u):
    for _ in range(100):
        c = k * (1 + u**2)
        c = 0.5 * (c[1:] + c[:-1])
        main = 1.0 + np.concatenate([c, np.zeros(1)]) + np.concatenate([np.zeros(1), c])
        u = sla.spsolve(sp.diags([-c, main, -c], [-1, 0, 1], format="csc"), u)
    return np.sum(u * u)


def implicit_plane(k, u):
    for _ in range(20):
        matrix = sp.eye(900) - sp.diags(k * (1 + 0.1 * u)) @ SMALL * 0.1
        u = sla.spsolve(matrix.tocsc(), u)
    return np.sum(u * u)


def poisson(k, u):
    matrix = sp.eye(900) - SMALL + sp.diags(k)
    for _ in range(20):
        u, _info = sla.cg(matrix, u, rtol=1e-8)
    return np.sum(u * u)


U = np.random.default_rng(0).normal(size=900)
CASES: tuple[tuple[Callable[..., Any], tuple[np.ndarray, ...]], ...] = (
    (products, (PLANE.data, np.ones(6400))),
    (heat_of_its_state, (np.full(1000, 0.3), np.sin(np.linspace(0.0, 3.0, 1000)))),
    (implicit_plane, (np.ones(900), U)),
    (poisson, (np.ones(900), U)),
)


def milliseconds(function: Callable[..., Any], args: tuple[np.ndarray, ...]) -> float:
    """The best of five calls, each with other numbers."""
    function(*args)
    taken = []
    for k in range(5):
        first, *rest = args
        given = (first * (1.0 + 1e-9 * (k + 1)), *rest)
        start = time.perf_counter()
        function(*given)
        taken.append(time.perf_counter() - start)
    return 1e3 * min(taken)


def main() -> None:
    for program, args in CASES:
        own = milliseconds(program, args)
        primal = milliseconds(ckad.jit(program, engine="native"), args)
        gradient = milliseconds(ckad.value_and_grad(program, (0, 1), engine="native"), args)
        print(
            f"{program.__name__}: SciPy {own:.2f} ms, ckad {primal:.2f} ms, gradient "
            f"{gradient:.2f} ms, {gradient / primal:.2f} of its own primal",
            flush=True,
        )


if __name__ == "__main__":
    main()
