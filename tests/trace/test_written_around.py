"""Bodies of scan, fori_loop and while_loop that write into arrays from around the loop."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import odeint, solve_ivp

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
    """A right-hand side that computes in arrays of its own."""

    def __init__(self, n, k):
        self.k, self.u, self.flux = k, np.zeros(n + 2), np.zeros(n + 1)
        self.u[-1], self.calls = 0.3, np.zeros(1)

    def __call__(self, t, u):
        self.u[1:-1] = u
        self.u[0] = self.u[1]
        for i in range(len(self.flux)):
            self.flux[i] = self.k * (self.u[i + 1] - self.u[i])
        self.calls[0] += 1
        return np.diff(self.flux)


def by_odeint(x):
    rhs = Diffusion(6, x[0])
    u = odeint(rhs, np.sin(np.arange(6.0)) * x[1], np.linspace(0, 1, 4), tfirst=True)
    return np.sum(u**2)


def by_runge_kutta(x):
    rhs, times = Diffusion(6, x[0]), np.linspace(0, 1, 4)
    begin = np.sin(np.arange(6.0)) * x[1]
    found = solve_ivp(rhs, (0, 1), begin, t_eval=times, rtol=1e-8, atol=1e-10)
    return np.sum(found.y**2) + rhs.u[2]


def to_the_end(x):
    rhs = Diffusion(6, x[0])
    found = solve_ivp(rhs, (0, 1), np.sin(np.arange(6.0)) * x[1], "DOP853")
    return np.sum(found.y[:, -1] ** 2)


@pytest.mark.filterwarnings("ignore::ckad.errors.SolverWarning")
@pytest.mark.parametrize("program", [by_odeint, by_runge_kutta, to_the_end])
def test_right_hand_sides_have_work_arrays(program):
    x = np.array([1.3, 0.7])
    found, gradient = ckad.value_and_grad(program)(x)
    assert np.isclose(found, program(x.copy()), rtol=1e-7)
    step = 1e-5 * np.eye(2)
    wanted = [(program(x + h) - program(x - h)) / 2e-5 for h in step]
    np.testing.assert_allclose(gradient, wanted, rtol=1e-6)


def test_all_steps_are_refused_where_work_arrays_are_kept():
    def program(x):
        found = solve_ivp(Diffusion(6, x[0]), (0, 1), np.sin(np.arange(6.0)) * x[1])
        return np.sum(found.y)

    with pytest.raises(ckad.errors.AliasError, match=r"Give t_eval="):
        ckad.grad(program)(np.array([1.3, 0.7]))
