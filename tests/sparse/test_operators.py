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
from ckad.errors import DifferentiationError
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


@pytest.mark.parametrize("solver", [sla.cg, sla.bicgstab, sla.gmres])
def test_what_has_not_converged_is_derived_by_its_steps(solver: Any) -> None:
    def program(x: Any) -> Any:
        options = {"restart": 2} if solver is sla.gmres else {}
        b = np.arange(1.0, N + 1)
        return np.sum(solver(operator(x, 0.0), b, rtol=1e-12, maxiter=2, **options)[0] ** 2)

    gradient = ckad.value_and_grad(program, engine="vm")
    value, found = gradient(X)
    assert value == pytest.approx(program(X), rel=1e-12)
    slope = (program(X + 1e-6) - program(X - 1e-6)) / 2e-6
    assert np.sum(found) == pytest.approx(slope, rel=1e-6)
    assert gradient(X)[0] == value


@pytest.mark.parametrize("solver", [sla.cg, sla.bicgstab, sla.gmres])
@pytest.mark.parametrize("maxiter", [None, 3])
def test_a_matrix_of_a_singular_system(solver: Any, maxiter: Any) -> None:
    """With values at no end, solutions differ by a constant, and the transpose has none."""
    matrix = sp.diags_array([-np.ones(11), np.full(12, 2.0), -np.ones(11)], offsets=[-1, 0, 1])
    matrix = matrix.tolil()
    matrix[0, 0] = matrix[-1, -1] = 1.0
    matrix = matrix.tocsr()

    def program(x: Any) -> Any:
        b = np.sin(x * np.arange(12.0))
        found = solver(matrix, b - b.mean(), rtol=1e-12, maxiter=maxiter)[0]
        return found[0] ** 2 + found[3]

    slope = (program(0.5 + 1e-6) - program(0.5 - 1e-6)) / 2e-6
    assert ckad.grad(program, engine="vm")(0.5) == pytest.approx(slope, rel=1e-6)


def test_a_singular_system_is_derived_by_the_steps_of_its_solution() -> None:
    def program(x: Any) -> Any:
        def inner(v: Any) -> Any:  # rows of zeros at the ends, whose columns are none
            found = np.zeros(N)
            found[1:-1] = (v[:-2] - 2.0 * v[1:-1] + v[2:]) * x[1:-1]
            return found

        b = np.zeros(N)
        b[1:-1] = x[1:-1]
        A = sla.LinearOperator(shape=(N, N), matvec=inner)
        return np.sum(sla.bicgstab(A, b, rtol=1e-12)[0] * np.arange(1.0, N + 1) ** 2)

    gradient = ckad.grad(program, engine="vm")(X)
    slope = (program(X + 1e-5 * np.arange(N)) - program(X - 1e-5 * np.arange(N))) / 2e-5
    assert gradient @ np.arange(N) == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_a_function_that_is_not_linear_has_no_transpose() -> None:
    def program(x: Any) -> Any:
        A = sla.LinearOperator((N, N), matvec=lambda v: 2.0 * v + x * v**3)
        return np.sum(sla.bicgstab(A, np.ones(N) * x)[0])

    with pytest.raises(DifferentiationError, match=r"test_operators\.py.*not linear"):
        ckad.grad(program, engine="vm")(X)


def by_products(x: Any) -> Any:
    """Steps of a descent, by the products of matrices that are known."""
    A, B = sla.aslinearoperator(MATRIX.toarray()[:5]), sla.aslinearoperator(MATRIX)
    total = 0.0
    for _ in range(6):
        r = A.matvec(x) - 1.0
        x = x - 0.05 * A.rmatvec(r)
        total += np.sum(A.dot(x) ** 2) + np.sum(A.T @ r) + np.sum(A.H.matvec(r) ** 2)
    return total + np.sum(B.rmatvec(x) * (B * x)) + np.sum(B.matmat(np.outer(x, x)[:, :2]))


def by_products_of_a_traced_one(x: Any) -> Any:
    A = sla.aslinearoperator(np.diag(x) + 0.1 * np.outer(x, x))
    found, _ = sla.cg(A, x, rtol=1e-12)
    return np.sum((A.matvec(x) + A @ x) * A.rmatvec(x)) + np.sum(found) + A.shape[0]


@pytest.mark.parametrize("program", [by_products, by_products_of_a_traced_one])
def test_matrices_as_operators(program: Any) -> None:
    value, gradient = ckad.value_and_grad(program, engine="vm")(X)
    assert value == pytest.approx(program(X), rel=1e-9)
    steps = 1e-6 * np.eye(N)
    slopes = [(program(X + h) - program(X - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-6)


def test_a_matrix_that_an_operator_from_outside_holds_is_noticed() -> None:
    held = np.eye(N)
    outside = sla.aslinearoperator(held)
    g = ckad.grad(lambda x: np.sum(outside.matvec(x)), engine="vm")
    np.testing.assert_array_equal(g(X), np.ones(N))
    held[0, 0] = 3.0
    np.testing.assert_array_equal(g(X), [3.0, *np.ones(N - 1)])
