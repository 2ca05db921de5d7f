"""Bodies of scan, fori_loop and while_loop that write into arrays from around the loop."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

import ckad

X = np.array([0.3, 0.7, 1.1])


def counted(x):
    y, z = 2 * x, np.zeros(3)

    def body(i, u):
        y[0] = u[0] * u[1]
        z[1:] += y[:2]
        return u * 0.9 + y.sum() * 0.1

    u = ckad.fori_loop(0, 5, body, x)
    return np.sum(y) * z[2] + np.sum(u * z)


def counted_in_python(x):
    y, z, u = 2 * x, np.zeros(3), x
    for _ in range(5):
        y[0] = u[0] * u[1]
        z[1:] += y[:2]
        u = u * 0.9 + y.sum() * 0.1
    return np.sum(y) * z[2] + np.sum(u * z)


def nested(x):
    y, z = 2 * x, np.zeros(3)

    def body(state):
        def inner(c, e):
            z[0] += c[0] * e
            y[2] = z[0]
            return c * 0.5 + y[2] * 0.1, y.copy()

        c, ys = ckad.scan(inner, state[0], np.arange(4.0))
        return c + ys.sum() * 0.01, state[1] + 1

    u, _ = ckad.while_loop(lambda s: s[1] < 3, body, (x, 0))
    return np.sum(u * y) + z[0]


def nested_in_python(x):
    y, z, u = 2 * x, np.zeros(3), x
    for _ in range(3):
        ys = []
        for e in np.arange(4.0):
            z[0] += u[0] * e
            y[2] = z[0]
            u = u * 0.5 + y[2] * 0.1
            ys.append(y.copy())
        u = u + np.array(ys).sum() * 0.01
    return np.sum(u * y) + z[0]


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize(
    ("program", "python"), [(counted, counted_in_python), (nested, nested_in_python)]
)
def test_they_are_carried(program, python, engine):
    found, gradient = ckad.value_and_grad(program, engine=engine)(X)
    wanted, other = ckad.value_and_grad(python, engine=engine)(X)
    np.testing.assert_allclose(found, python(X.copy()), rtol=1e-14)
    np.testing.assert_allclose(gradient, other, rtol=1e-12)
    again = ckad.grad(program, engine=engine, memory="20 kB")(X)
    assert np.array_equal(gradient, again)
    assert np.isclose(wanted, found, rtol=1e-14)


class Diffusion:
    """A right-hand side that computes in an array of its own."""

    def __init__(self, k):
        self.k, self.u = k, np.zeros(8)

    def __call__(self, t, u):
        self.u[1:-1] = u
        return self.k * (self.u[2:] - 2 * self.u[1:-1] + self.u[:-2])


@pytest.mark.parametrize("options", [{}, {"t_eval": np.linspace(0, 1, 4), "rtol": 1e-8}])
def test_functions_that_solvers_call_make_their_arrays(options):
    def program(x):
        return np.sum(
            solve_ivp(Diffusion(x[0]), (0, 1), np.sin(np.arange(6.0)), **options).y[:, -1]
        )

    with pytest.raises(ckad.errors.AliasError, match="makes the array itself"):
        ckad.grad(program)(np.array([1.3]))


@pytest.mark.filterwarnings("ignore::ckad.errors.SolverWarning")
def test_a_mask_that_is_true_nowhere_writes_nothing():
    def fitted(x):
        times = np.array([0.5, 1.0, 2.0])

        def misfit(p):
            times[times <= 0] = 1e-16  # no time is
            return np.sum((np.exp(-p[0] * times) - x) ** 2)

        return minimize(misfit, np.array([1.0]), tol=1e-10).x[0]

    x = np.exp(-0.7 * np.array([0.5, 1.0, 2.0]))
    value, slope = ckad.value_and_grad(fitted, engine="vm")(x)
    assert value == pytest.approx(0.7, rel=1e-6)
    h = np.array([0.0, 1e-4, 0.0])
    assert slope[1] == pytest.approx((fitted(x + h) - fitted(x - h)) / 2e-4, rel=1e-3)
