"""Iterations for operators that are functions: values and derivatives, with a preconditioner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import ckad

N = 8
MATRIX = sp.diags([-np.ones(N - 1), 4 * np.ones(N), -np.ones(N - 1)], [-1, 0, 1]).tocsr()
X = np.linspace(0.5, 1.5, N)


@pytest.mark.parametrize("engine", ["vm", pytest.param("native", marks=pytest.mark.slow)])
@pytest.mark.parametrize("preconditioned", [False, True])
@pytest.mark.parametrize(("solver", "options"), [(sla.gmres, {"restart": 4}), (sla.bicgstab, {})])
def test_a_matrix_that_is_a_function(
    solver: Any, options: dict[str, int], preconditioned: bool, engine: str
) -> None:
    def program(x: Any) -> Any:
        A = sla.LinearOperator((N, N), matvec=lambda v: MATRIX @ v + x * v + 0.3 * np.roll(v, 1))
        M = sla.LinearOperator((N, N), matvec=lambda v: v / (4 + x)) if preconditioned else None
        found, info = solver(A, np.arange(1.0, N + 1), rtol=1e-12, M=M, **options)
        return np.sum(found**3) + info

    value, gradient = ckad.value_and_grad(program, engine=engine)(X)
    steps = 1e-6 * np.eye(N)
    differences = [(program(X + h) - program(X - h)) / 2e-6 for h in steps]
    assert value == pytest.approx(program(X), rel=1e-11)
    np.testing.assert_allclose(gradient, differences, atol=1e-6 * np.abs(differences).max())
