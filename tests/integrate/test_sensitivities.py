"""Derivatives of solutions to 1e-8: against variational equations, and of given steps by i h.

The variational equations of the oscillator go beside it, by SciPy's DOP853 in short steps. Where
steps are given, what a gradient has to be is the derivative of those very steps, which a complex
step through the plain program gives to rounding: (f(x + i h) - f(x)) / h with no difference taken.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import integrate
from scipy.optimize import brentq

import ckad
from ckad.integrate import solve_ivp
from ckad.integrate.fixed import METHODS
from ckad.integrate.methods import STIFF
from ckad.integrate.tableaux import PAIRS

SPAN, TIMES = (0.0, 2.0), np.array([0.3, 0.77, 1.3, 2.0])
#: y0 and the parameter
POINT = np.array([1.0, 0.5, 1.3])
ACCURACY = 1e-8


def oscillator(t, y, w):
    return np.stack([y[1], w * (1 - y[0] ** 2) * y[1] - y[0] + 0.3 * np.cos(t)])


def slow_part(t, y, w):
    return np.stack([y[1], w * (1 - y[0] ** 2) * y[1] + 0.3 * np.cos(t)])


def fast_part(t, y, w):
    return np.stack([0.0 * y[1], -y[0]])


def turning(t, y, w):
    return y[1]


def first_turning(t, y, w):
    return y[1]


first_turning.terminal = True


# --- what is known -------------------------------------------------------------------------------


def with_variations(t, z):
    y, changes, w = z[:2], z[2:].reshape(2, 3), POINT[2]
    by_y = np.array([[0.0, 1.0], [-2 * w * y[0] * y[1] - 1, w * (1 - y[0] ** 2)]])
    moved = by_y @ changes
    moved[1, 2] += (1 - y[0] ** 2) * y[1]
    return np.concatenate([oscillator(t, y, w), moved.ravel()])


@cache
def known(t):
    """The state at a time, and its derivatives by y0 and the parameter."""
    start = np.concatenate([POINT[:2], np.eye(2, 3).ravel()])
    tight = {"rtol": 3e-14, "atol": 1e-16, "max_step": 0.01}
    z = integrate.solve_ivp(with_variations, (0.0, t), start, "DOP853", **tight).y[:, -1]
    return z[:2], z[2:].reshape(2, 3)


@cache
def known_turning():
    """When y' = 0, and the derivatives of that and of y then: y'(t(p), p) = 0, differentiated."""
    t = brentq(lambda t: known(t)[0][1], 0.3, 0.9, xtol=1e-15)
    y, changes = known(t)
    slope = oscillator(t, y, POINT[2])
    by_time = -changes[1] / slope[1]
    return t, by_time, changes[0] + slope[0] * by_time


def of_squares(times):
    return sum(2 * y @ changes for y, changes in map(known, times))


# --- adaptive methods ----------------------------------------------------------------------------


def tight(method):
    """Cubic interpolants within the steps of some methods are as good as these are short."""
    short = {"Kvaerno5": 0.004, "KenCarp4": 0.01, "IMEX": 0.01}
    return {"rtol": 1e-11, "atol": 1e-12, "max_step": short.get(method, np.inf)}


def solved(p, method, **options):
    fun, name = oscillator, method
    if method == "IMEX":
        fun, name = (slow_part, fast_part), "KenCarp4"
    about = {**tight(method), **options}
    return solve_ivp(fun, SPAN, p[:2], name, args=(p[2],), **about)


ASKED = {
    "the end": (lambda p, m: np.sum(solved(p, m).y[:, -1] ** 2), lambda: of_squares([2.0])),
    "t_eval": (
        lambda p, m: np.sum(solved(p, m, t_eval=TIMES).y ** 2),
        lambda: of_squares(TIMES),
    ),
    "saveat": (
        lambda p, m: np.sum(
            solved(p, m, t_eval=TIMES, saveat=lambda t, y, w: np.stack([y[0] ** 2 + y[1] ** 2])).y
        ),
        lambda: of_squares(TIMES),
    ),
    "dense_output": (
        lambda p, m: np.sum(solved(p, m, dense_output=True).sol(TIMES) ** 2),
        lambda: of_squares(TIMES),
    ),
    "the time of an event": (
        lambda p, m: solved(p, m, events=turning).t_events[0][0],
        lambda: known_turning()[1],
    ),
    "the state at one": (
        lambda p, m: solved(p, m, events=first_turning).y_events[0][0][0],
        lambda: known_turning()[2],
    ),
}
FAST = {("RK45", "t_eval"), ("RK45", "the time of an event"), ("IMEX", "dense_output")}


@pytest.mark.parametrize(
    ("method", "asked"),
    [
        pytest.param(m, asked, marks=() if (m, asked) in FAST else pytest.mark.slow)
        for m in [*PAIRS, *STIFF, "IMEX"]
        for asked in ASKED
    ],
)
def test_as_variational_equations_say(method, asked):
    value, expected = ASKED[asked]
    found = ckad.grad(lambda p: value(p, method))(POINT)
    np.testing.assert_allclose(found, expected(), rtol=0, atol=ACCURACY * np.abs(expected()).max())


@pytest.mark.parametrize("method", ["DOP853", pytest.param("Rodas5P", marks=pytest.mark.slow)])
def test_by_the_times_that_are_asked_for(method):
    """The derivative by a time is what dy/dt is."""

    def total(times, end):
        sol = solve_ivp(
            oscillator, (0.0, end), POINT[:2], method, times, args=(1.3,), **tight(method)
        )
        return np.sum(sol.y[:, :-1] ** 2) + np.sum(sol.y[:, -1] ** 2)

    by_times, by_end = ckad.grad(total, argnums=(0, 1))(TIMES, 2.5)
    expected = [2 * known(t)[0] @ oscillator(t, known(t)[0], 1.3) for t in TIMES]
    np.testing.assert_allclose(by_times, expected, rtol=0, atol=1e-7 * np.abs(expected).max())
    assert abs(by_end) < ACCURACY


# --- given steps ---------------------------------------------------------------------------------

#: of the complex step; what is left out is of its square
H = 1e-30


def complex_steps(fun, p):
    return [np.imag(fun(p + 1j * H * e)) / H for e in np.eye(len(p))]


@pytest.mark.parametrize("method", METHODS)
def test_of_fixed_steps(method):
    """Leapfrog and Yoshida 4 are for forces that depend on the place alone."""

    def pendulum(t, y, w):
        return np.stack([y[1], -w * np.sin(y[0]) + 0.3 * np.cos(t)])

    def total(p):
        sol = solve_ivp(pendulum, SPAN, p[:2], method, args=(p[2],), n_steps=23)
        return np.sum(sol.y**2)

    np.testing.assert_allclose(ckad.grad(total)(POINT), complex_steps(total, POINT), rtol=1e-12)


@pytest.mark.parametrize("asked", ["the end", "t_eval", "dense_output"])
@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
def test_of_adaptive_methods_whose_steps_are_given(method, asked):
    steps = {"first_step": 0.125, "max_step": 0.125, "rtol": 1e-3, "atol": 1e10}

    def total(p):
        about = {"args": (p[2],), **steps}
        if asked == "the end":
            return np.sum(solve_ivp(oscillator, SPAN, p[:2], method, **about).y[:, -1] ** 2)
        if asked == "t_eval":
            return np.sum(solve_ivp(oscillator, SPAN, p[:2], method, TIMES, **about).y ** 2)
        sol = solve_ivp(oscillator, SPAN, p[:2], method, dense_output=True, **about).sol
        return np.sum(sol(TIMES) ** 2)

    np.testing.assert_allclose(ckad.grad(total)(POINT), complex_steps(total, POINT), rtol=1e-11)
