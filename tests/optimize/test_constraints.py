"""Minima under constraints, as SciPy's ``minimize`` takes them: values, derivatives, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint, fmin_slsqp, minimize

import ckad
from ckad.errors import RaisedError, SolverWarning

pytestmark = pytest.mark.filterwarnings("ignore::ckad.errors.SolverWarning")
SIDES = (
    {"type": "ineq", "fun": lambda x: x[0] * x[1] * x[2] * x[3] - 25.0},
    {"type": "eq", "fun": lambda x: np.sum(x**2) - 40.0},
)


def hock_schittkowski_71(scale):
    """Problem 71 of Hock and Schittkowski (1981), whose minimum is 17.0140173."""
    found = minimize(
        lambda x: scale * x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2],
        [1.0, 5.0, 5.0, 1.0],
        bounds=[(1.0, 5.0)] * 4,
        constraints=SIDES,
        options={"ftol": 1e-12, "maxiter": 100},
    )
    return found.fun + 0.1 * found.x[1]


def test_a_published_problem():
    value, gradient = ckad.value_and_grad(hock_schittkowski_71, engine="vm")(1.0)
    assert value == pytest.approx(17.0140173 + 0.47429994, abs=2e-7)
    f = ckad.jit(hock_schittkowski_71, engine="vm")
    assert gradient == pytest.approx((f(1.0001) - f(0.9999)) / 2e-4, rel=1e-6)


def shares(q):
    """x_i = total / p_i / sum(1 / p) by Lagrange's conditions."""
    p, total = q[:3], q[3]
    sum_is = {"type": "eq", "fun": lambda x, s: np.sum(x) - s, "args": (total,)}
    return minimize(lambda x: np.sum(p * x**2), np.ones(3), constraints=sum_is).x


def test_equality_with_arguments_has_its_closed_form():
    p, q = np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 4.0, 1.5])
    found = ckad.jacobian(shares, engine="vm")(q)
    x = 1.5 / p / np.sum(1 / p)
    np.testing.assert_allclose(ckad.jit(shares, engine="vm")(q), x, rtol=1e-12)
    np.testing.assert_allclose(found[:, 3], x / 1.5, rtol=1e-11)
    expected = np.outer(x, x / p) / 1.5 - np.diag(x / p)
    np.testing.assert_allclose(found[:, :3], expected, rtol=1e-10, atol=1e-13)


def nearest(q):
    """In a circle and below a line, both of which are traced; one side of each is infinite."""
    radius, sum_of = q
    circle = NonlinearConstraint(lambda x: [x @ x, x[0]], [-np.inf, -5.0], [radius**2, np.inf])
    line = LinearConstraint(np.array([[0.0, 1.0]]), -np.inf, sum_of)
    about = {"method": "trust-constr", "constraints": [circle, line]}
    return minimize(lambda x: np.sum((x - np.array([3.0, 4.0])) ** 2), [0.1, 0.1], **about).x


def test_objects_with_traced_bounds():
    q, c = np.array([1.0, 0.5]), np.sqrt(0.75)
    np.testing.assert_allclose(ckad.jit(nearest, engine="vm")(q), [c, 0.5], rtol=1e-12)
    found = ckad.jacobian(nearest, engine="vm")(q)
    np.testing.assert_allclose(found, [[1.0 / c, -0.5 / c], [0.0, 1.0]], rtol=1e-10, atol=1e-12)


def test_the_former_function_takes_them_too():
    def corner(a):
        ends = {"f_ieqcons": lambda x: np.stack([x[0] - a, 1.0 - x[1]]), "iprint": 0}
        return fmin_slsqp(lambda x: x[0] - 3 * x[1] + x @ x, [5.0, 0.0], **ends)

    by_a = ckad.jacobian(corner, engine="vm")(0.3)
    np.testing.assert_allclose(by_a, [1.0, 0.0], atol=1e-11)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ((1.0, 5.0), "has not converged"),  # nothing is between 5 and 1
        ((1.0, -5.0), "to one side alone"),  # the slope at the limit is 0
    ],
)
def test_no_derivative_without_a_minimum(limits, message):
    def least(a):
        held = [
            {"type": "ineq", "fun": lambda x: x[0] - limits[0]},
            {"type": "ineq", "fun": lambda x: 2.0 - limits[1] - x[0]},
        ]
        return minimize(lambda x: np.sum((x - a) ** 2), [0.5], constraints=held)

    if limits[1] > 0:
        held = ckad.jit(least, engine="vm")(1.0)
        assert held.status == 4
    with pytest.raises(RaisedError, match=message):
        ckad.grad(lambda a: least(a).x[0], engine="vm")(1.0)


def test_what_does_not_fit_is_named():
    held = {"type": "equal", "fun": lambda x: x[0]}
    with pytest.raises(ValueError, match="'eq' or 'ineq'"):
        ckad.grad(lambda a: minimize(lambda x: x @ x * a, [0.5], constraints=held).fun)(0.5)
    with pytest.raises(TypeError, match="LinearConstraint"):
        ckad.grad(lambda a: minimize(lambda x: x @ x * a, [0.5], constraints=[3]).fun)(0.5)


@pytest.mark.filterwarnings("default::ckad.errors.SolverWarning")
def test_it_says_that_it_is_another_method():
    with pytest.warns(SolverWarning, match="augmented Lagrangians"):
        ckad.jit(lambda q: shares(q), engine="vm")(np.ones(4))
