"""Solutions that end too early, where a program asks whether they have: as under SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import ckad
from ckad.errors import UnfinishedError

from ..trace.idioms import check_number

pytestmark = pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")


def grown(rate, method="RK45", **options):
    """It has no bound from t = 1 / rate on."""
    return solve_ivp(lambda t, y: [rate * y[0] ** 2], (0.0, 1.0), [1.0], method, **options)


def returned(k):
    sol = grown(k)
    if not sol.success:
        return 10.0 * k
    return sol.y[0, -1]


def by_status(k):
    sol = grown(k, "BDF", rtol=1e-9, atol=1e-12)
    return 5.0 * k if sol["status"] < 0 else sol.y[0, -1]


def none(k):
    def ran():
        sol = grown(k, t_eval=[0.1, 0.8])
        return sol.y[0] if sol.success else None

    y = ran()
    return 3.0 * k if y is None else np.sum(y)


def raised(k):
    try:
        sol = grown(k)
        if not sol.success:
            raise RuntimeError(sol.message)
        return sol.y[0, -1]
    except RuntimeError as error:
        return 7.0 * k * len(str(error))


def read_before(k):
    sol = grown(k)
    y = sol.y[0, -1]
    return y if sol.success else 2.0 * k


def unread(k):
    return k**2 * (1.0 if grown(k).success else 0.5)


def in_steps(k):
    total = 0.0
    for n in range(8):
        sol = grown(k * (0.3 + 0.07 * n))
        if not sol.success:
            return 100.0 * k
        total = total + sol.y[0, -1]
    return total


def reached(k):
    sol = grown(k, t_eval=np.linspace(0.0, 1.0, 9))
    if not sol.success:
        return np.sum(sol.y[0]) + sol.t[-1] + sol.y.shape[1]
    return np.sum(sol.y[0])


PROGRAMS = (returned, by_status, none, raised, read_before, unread, in_steps, reached)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("rate", [0.5, 3.3])
def test_a_program_that_asks_is_told(program, rate):
    check_number(program, rate, rel=1e-9)


def test_it_is_told_at_each_call_and_in_each_transformation():
    slope = ckad.grad(returned)
    for _ in range(12):  # until calls are at hand
        assert slope(0.5) == pytest.approx(4.0, rel=1e-2)
    assert slope(3.3) == 10.0
    assert slope(0.5) == pytest.approx(4.0, rel=1e-2)
    assert ckad.jvp(returned, (3.3,), (1.0,)) == (33.0, 10.0)
    assert ckad.hessian(unread)(3.3) == 1.0
    assert ckad.vjp(returned, 3.3)[1](1.0) == (10.0,)


def test_each_member_is_told():
    rates = np.array([0.5, 3.3, 0.6])
    wanted = [returned(k) for k in rates]
    np.testing.assert_allclose(ckad.vmap(returned)(rates), wanted, rtol=1e-12)
    slopes = ckad.vmap(ckad.grad(returned))(rates)
    assert slopes[1] == 10.0
    whole = ckad.grad(lambda x: np.sum(ckad.vmap(returned)(x)))(rates)
    np.testing.assert_allclose(whole, slopes, rtol=1e-12)


def test_one_that_does_not_ask_is_stopped():
    with pytest.raises(UnfinishedError, match=r"test_failures\.py:\d+: a step is smaller"):
        ckad.grad(lambda k: grown(k).y[0, -1])(3.3)
    with pytest.raises(UnfinishedError):
        ckad.vmap(lambda k: grown(k).y[0, -1])(np.array([0.5, 3.3]))
