"""Methods of fixed step: orders, energy, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.errors import UnrecordableError
from ckad.integrate import solve_ivp
from ckad.integrate.fixed import METHODS

START = np.array([1.0, 0.0])


def swing(t, y):
    return np.stack([y[1], -y[0]])


@pytest.mark.parametrize("method", METHODS)
def test_orders(method):
    exact = np.array([np.cos(2.0), -np.sin(2.0)])
    errors = [
        np.abs(solve_ivp(swing, (0.0, 2.0), START, method, n_steps=n).y[:, -1] - exact).max()
        for n in (80, 160)
    ]
    assert abs(np.log2(errors[0] / errors[1]) - METHODS[method].order) < 0.1


@pytest.mark.parametrize("method", METHODS)
def test_recorded_and_plain_are_the_same(method):
    times = np.array([0.0, 0.33, 1.0, 2.0])

    def ours(y0, **options):
        return solve_ivp(swing, (0.0, 2.0), y0, method, n_steps=40, **options).y

    np.testing.assert_allclose(ckad.jit(ours)(START), ours(START), rtol=1e-13, atol=1e-15)
    at_times = ckad.jit(lambda y0: ours(y0, t_eval=times))(START)
    np.testing.assert_allclose(at_times, ours(START, t_eval=times), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(at_times[:, 2], ours(START)[:, 20], rtol=1e-12)
    np.testing.assert_allclose(at_times[:, 3], ours(START)[:, -1], rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_gradients(method):
    """A linear problem: the derivative by y0 is the map itself, by the end that of its steps."""

    def end(y0, tf):
        return solve_ivp(swing, (0.0, tf), y0, method, n_steps=10).y[0, -1]

    by_y0, by_tf = ckad.grad(end, argnums=(0, 1))(START, 2.0)
    np.testing.assert_allclose(by_y0, [end(e, 2.0) for e in np.eye(2)], rtol=1e-12)
    h = 1e-3
    sides = [end(START, 2.0 + k * h) for k in (-2, -1, 1, 2)]
    np.testing.assert_allclose(by_tf, np.dot([1, -8, 8, -1], sides) / (12 * h), rtol=1e-9)


@pytest.mark.parametrize("method", ["Leapfrog", "Yoshida4"])
def test_energy_is_kept_for_long(method):
    y = ckad.jit(lambda y0: solve_ivp(swing, (0.0, 2000.0), y0, method, n_steps=20_000).y)(START)
    energy = np.sum(y**2, axis=0)
    assert np.abs(energy - 1.0).max() < 5e-3
    assert abs(energy[-5000:].mean() - energy[:5000].mean()) < 1e-6


def test_the_cubic_between_steps_has_order_four():
    def at(n):
        return solve_ivp(swing, (0.0, 2.0), START, "RK4", t_eval=[0.777], n_steps=n).y[0, 0]

    errors = [abs(at(n) - np.cos(0.777)) for n in (20, 320)]
    assert np.log2(errors[0] / errors[1]) / 4 > 3.5


def test_a_longest_step():
    sol = solve_ivp(swing, (0.0, 1.0), START, "Euler", step=0.3)
    np.testing.assert_allclose(sol.t, [0.0, 0.25, 0.5, 0.75, 1.0])
    assert solve_ivp(swing, (0.0, 1.0), START, "Euler", step=0.1).t.size == 11
    back = solve_ivp(swing, (1.0, 0.0), START, "RK4", step=0.1)
    np.testing.assert_allclose(back.y[:, -1], [np.cos(1.0), np.sin(1.0)], rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "n_steps= or step="),
        ({"n_steps": 2, "step": 0.1}, "n_steps= or step="),
        ({"n_steps": 0}, "n_steps=0"),
        ({"n_steps": 2.5}, "n_steps=2.5"),
        ({"step": -0.1}, "step=-0.1"),
        ({"n_steps": 2, "events": swing}, "events="),
        ({"n_steps": 2, "dense_output": True}, "dense_output="),
        ({"n_steps": 2, "y0": np.ones(3)}, "positions"),
    ],
)
def test_bad_input(options, message):
    options = {"fun": swing, "t_span": (0.0, 1.0), "y0": START, "method": "Leapfrog", **options}
    with pytest.raises(ValueError, match=message):
        solve_ivp(**options)


def test_a_step_for_an_end_that_is_computed():
    def end(tf):
        return solve_ivp(swing, (0.0, tf), START, "RK4", step=0.1).y[0, -1]

    with pytest.raises(UnrecordableError, match="n_steps="):
        ckad.grad(end)(1.0)
