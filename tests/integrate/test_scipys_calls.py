"""Programs that call SciPy's own solvers: what they give while they are recorded."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate
from scipy.integrate import odeint, solve_ivp

import ckad
from ckad.errors import SolverWarning, UnrecordableError

TIMES = np.linspace(0.0, 2.0, 9)


def swing(stiffness):
    """By a closure, by ``args``, at times asked for afterwards; and a solution of known numbers."""
    known = integrate.solve_ivp(lambda t, y: [-y[0]], (0.0, 1.0), [1.0])

    def rates(t, y, drag=0.1):
        return [y[1], -stiffness * np.sin(y[0]) - drag * y[1]]

    def bottom(t, y):
        return y[0]

    bottom.terminal, bottom.direction = True, -1
    given = solve_ivp(rates, (0.0, 2.0), [1.0, 0.0], t_eval=TIMES, args=(0.2,))
    dense = solve_ivp(rates, [0, 2], [1.0, 0.0], method=integrate.RK23, dense_output=True)
    fall = solve_ivp(rates, (0.0, 9.0), [1.0, 0.0], events=bottom, max_step=0.1)
    shuffled = dense.sol(TIMES[::-1])
    at_once = dense.sol(0.3)[0]
    return given.y.sum() + shuffled[1, 2] + at_once + fall.t[-1] + known.y[0].mean()


def test_solve_ivp_is_scipys():
    """Value and derivative are the program's own, which chooses its steps."""
    value, gradient = ckad.value_and_grad(swing)(3.0)
    assert value == pytest.approx(swing(3.0), rel=1e-12)
    h = 1e-6
    assert gradient == pytest.approx((swing(3.0 + h) - swing(3.0 - h)) / (2 * h), rel=1e-6)


def test_odeint_is_solved_to_its_tolerances():
    def decay(y, t, rate):
        return -rate * y

    def end(rate):
        return odeint(decay, [1.0, 2.0], TIMES, args=(rate,))[-1].sum()

    with pytest.warns(SolverWarning, match="DOP853 in place of LSODA"):
        value, gradient = ckad.value_and_grad(end)(0.7)
    assert value == pytest.approx(3.0 * np.exp(-1.4), rel=1e-7)
    assert gradient == pytest.approx(-6.0 * np.exp(-1.4), rel=1e-6)


def test_what_lsoda_says_is_refused():
    def end(rate):
        y, said = odeint(lambda y, t: -rate * y, 1.0, TIMES, full_output=True)
        return y[-1, 0] + said["hu"][0]

    with pytest.raises(UnrecordableError, match="full_output=True"):
        ckad.grad(end)(0.7)
