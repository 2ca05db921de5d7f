"""Boundary value problems by SciPy's ``solve_bvp``: values, derivatives, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_bvp

import ckad
from ckad.errors import RaisedError, SolverWarning, UnrecordableError

pytestmark = pytest.mark.filterwarnings("ignore::ckad.errors.SolverWarning")
X = np.linspace(0.0, 1.0, 5)


def bratu(q):
    """y'' = -k exp(y) on [0, length]."""
    k, length = q

    def rates(x, y):
        return np.vstack((y[1], -k * np.exp(y[0])))

    def ends(a, b):
        return np.array([a[0], b[0]])

    found = solve_bvp(rates, ends, X * length, np.zeros((2, 5)), tol=1e-8)
    return (
        np.sum(found.sol(np.array([0.2, 0.5]) * length)[0]) + found.sol(0.3, 1)[0] + found.y[1, 0]
    )


def test_values_are_scipys_and_derivatives_those_of_differences():
    q = np.array([1.0, 1.1])
    value, gradient = ckad.value_and_grad(bratu, engine="vm")(q)
    assert value == pytest.approx(bratu(q), rel=1e-7)
    f, h = ckad.jit(bratu, engine="vm"), 1e-5
    for k, unit in enumerate(np.eye(2)):
        slope = (f(q + h * unit) - f(q - h * unit)) / (2 * h)
        assert gradient[k] == pytest.approx(slope, rel=1e-7)


def test_a_parameter_that_is_found_has_its_closed_form():
    def wave_number(length):
        found = solve_bvp(
            lambda x, y, p: np.vstack((y[1], -(p[0] ** 2) * y[0])),
            lambda a, b, p: np.array([a[0], b[0], a[1] - 0.5 * p[0]]),
            X * length,
            np.array([[0.0, 1.0, 0.0, -1.0, 0.0], [0.0] * 5]),
            p=[6.0],
            tol=1e-8,
        )
        return found.p[0]

    value, gradient = ckad.value_and_grad(wave_number, engine="vm")(1.0)
    assert value == pytest.approx(2.0 * np.pi, rel=1e-8)
    assert gradient == pytest.approx(-2.0 * np.pi, rel=1e-7)


def layer(width):
    """y = (exp(x / width) - 1) / (exp(1 / width) - 1), for which nodes have to gather at 1."""
    return solve_bvp(
        lambda x, y: [y[1], y[1] / width],
        lambda a, b: [a[0], b[0] - 1.0],
        X,
        np.ones((2, 5)),
        tol=1e-6,
    )


def test_nodes_gather_in_a_layer():
    value, slope = ckad.value_and_grad(lambda e: layer(e).sol(0.995)[0], engine="vm")(0.005)
    assert value == pytest.approx(np.exp(-1.0), rel=1e-6)
    assert slope == pytest.approx(np.exp(-1.0) * 0.005 / 0.005**2, rel=1e-5)
    assert ckad.jit(lambda e: layer(e).status, engine="vm")(0.005) == 0


def test_without_a_solution_there_is_no_derivative():
    def none(k):
        ends = (lambda a, b: np.array([a[0], b[0]])), X, np.zeros((2, 5))
        return solve_bvp(lambda x, y: np.vstack((y[1], -k * np.exp(y[0]))), *ends)

    assert not ckad.jit(lambda k: none(k).success, engine="vm")(9.0)
    with pytest.raises(RaisedError, match=r"test_boundary\.py"):
        ckad.grad(lambda k: none(k).y[1, 0], engine="vm")(9.0)


def test_what_does_not_fit_is_named():
    def program(k, bc=lambda a, b: a, **options):
        return solve_bvp(lambda x, y: k * y, bc, X, np.zeros((2, 5)), **options).y[0, 0]

    with pytest.raises(UnrecordableError, match="S= is not recorded"):
        ckad.grad(lambda k: program(k, S=np.eye(2)))(1.0)
    with pytest.raises(ValueError, match=r"bc returns shape \(1,\); 2 are needed"):
        ckad.grad(lambda k: program(k, lambda a, b: a[:1]))(1.0)


@pytest.mark.filterwarnings("default::ckad.errors.SolverWarning")
def test_it_says_that_its_mesh_is_another():
    with pytest.warns(SolverWarning, match="number of nodes is fixed"):
        ckad.jit(lambda q: bratu(q), engine="vm")(np.ones(2))
