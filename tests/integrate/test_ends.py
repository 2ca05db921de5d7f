"""A run whose last asked time is the end of t_span records its step once."""

import numpy as np
import pytest
import scipy.integrate

import ckad

TIMES = np.linspace(0.0, 2.0, 5)
COUPLED = np.array([[-1.0, 0.3], [0.2, -0.5]])


def decay(t, y):
    return COUPLED @ y + np.sin(t)


def of_numbers(y0, times):
    return ckad.integrate.solve_ivp(decay, (0.0, 2.0), y0, "RK45", TIMES, rtol=1e-8).y


def of_an_argument(y0, times):
    return ckad.integrate.solve_ivp(decay, (times[0], times[-1]), y0, "RK45", times, rtol=1e-8).y


def of_bdf(y0, times):
    return ckad.integrate.solve_ivp(decay, times[[0, -1]], y0, "BDF", TIMES, rtol=1e-8).y


def of_odeint(y0, times):
    return scipy.integrate.odeint(decay, y0, times, tfirst=True).T


def beyond(y0, times):
    return ckad.integrate.solve_ivp(decay, (0.0, 3.0), y0, "RK45", TIMES, rtol=1e-8).y


def reaches_elsewhere(y0, times):
    ends = times[0], times[-1]
    return ckad.integrate.solve_ivp(decay, ends, y0, "RK45", times[:-1], rtol=1e-8).y


@pytest.mark.filterwarnings("ignore::ckad.errors.SolverWarning")
@pytest.mark.parametrize(
    ("run", "loops"),
    [
        (of_numbers, 1), (of_an_argument, 1), (of_bdf, 2), (of_odeint, 1), (beyond, 2),
        (reaches_elsewhere, 2),
    ],
)  # fmt: skip
def test_the_step_is_recorded_once(run, loops):
    y0 = np.array([1.0, -0.5])
    tape = ckad.trace(run)(y0, TIMES)
    assert len(tape.bodies) == loops
    given = 0.0, 3.0 if run is beyond else 2.0
    times = TIMES[:-1] if run is reaches_elsewhere else TIMES
    exact = scipy.integrate.solve_ivp(decay, given, y0, t_eval=times, rtol=1e-11, atol=1e-12)
    found = ckad.jit(run, engine="vm")(y0, TIMES)
    assert np.allclose(found, exact.y, rtol=1e-4, atol=1e-5)
