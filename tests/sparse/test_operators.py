"""Iterations for operators that are functions: values and derivatives, with a preconditioner.

They are derived as the solution of the system: one with the transpose, and no step is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import ckad
from ckad.errors import DifferentiationError, RaisedError
from ckad.tape.control import LOOPS
from ckad.tape.ops import Op
from ckad.tape.tape import Tape

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


def operator(x: Any, skew: float) -> Any:
    return sla.LinearOperator(
        (N, N), matvec=lambda v: MATRIX @ v + x * v + skew * (np.roll(v, 1) - np.roll(v, -1))
    )


def outermost(tape: Tape) -> Iterator[Op]:
    return (row.op for row in tape.rows if row.op in LOOPS)


def test_one_more_iteration_and_nothing_is_kept() -> None:
    def program(x: Any) -> Any:
        found, _ = sla.cg(operator(x, 0.0), np.arange(1.0, N + 1) * x, rtol=1e-12)
        return np.sum(found**3)

    gradient = ckad.value_and_grad(program, engine="vm")
    assert [*outermost(gradient.compiled(X).tape)] == [Op.LOOP, Op.LOOP]
    directions = ckad.jvp(program, (X,), (np.ones(N),), engine="vm")[1]
    assert directions == pytest.approx(gradient(X)[1].sum(), rel=1e-11)
    dense = MATRIX.toarray()

    def exact(x: Any) -> Any:
        return np.sum(np.linalg.solve(dense + np.diag(x), np.arange(1.0, N + 1) * x) ** 3)

    np.testing.assert_allclose(gradient(X)[1], ckad.grad(exact)(X), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [sla.gmres, sla.bicgstab])
def test_the_hessian_of_a_solution(solver: Any) -> None:
    def program(x: Any) -> Any:
        return np.sum(solver(operator(x, 0.3), np.arange(1.0, N + 1), rtol=1e-13)[0] ** 3)

    skewed = MATRIX.toarray() + 0.3 * (np.roll(np.eye(N), 1, 0) - np.roll(np.eye(N), -1, 0))

    def exact(x: Any) -> Any:
        return np.sum(np.linalg.solve(skewed + np.diag(x), np.arange(1.0, N + 1)) ** 3)

    np.testing.assert_allclose(ckad.hessian(program)(X), ckad.hessian(exact)(X), atol=1e-8)


def test_what_has_not_converged_has_no_derivative() -> None:
    def program(x: Any) -> Any:
        return np.sum(sla.cg(operator(x, 0.0), np.arange(1.0, N + 1), rtol=1e-12, maxiter=2)[0])

    assert np.isfinite(ckad.jit(program, engine="vm")(X))
    with pytest.raises(RaisedError, match=r"test_operators\.py.*has not converged"):
        ckad.value_and_grad(program, engine="vm")(X)


def test_a_function_that_is_not_linear_has_no_transpose() -> None:
    def program(x: Any) -> Any:
        A = sla.LinearOperator((N, N), matvec=lambda v: 2.0 * v + x * v**3)
        return np.sum(sla.bicgstab(A, np.ones(N) * x)[0])

    with pytest.raises(DifferentiationError, match=r"test_operators\.py.*not linear"):
        ckad.grad(program, engine="vm")(X)
