"""``dense_output=True`` inside of a recording: SciPy's interpolants, and their slopes."""

import numpy as np
import pytest

import ckad
from ckad.integrate import solve_ivp

TIMES = np.array([0.5, -0.2, 1.0, 0.0, 1.3, 0.5, 0.03])


def bent(t, y, k):
    return np.array([y[1], k * (1 - y[0] ** 2) * y[1] - y[0]])


def at(y0, times, method, span):
    options = {"args": (0.7,), "rtol": 1e-6, "atol": 1e-8, "dense_output": True}
    return solve_ivp(bent, span, y0, method, **options).sol(times)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "BDF"])
@pytest.mark.parametrize("span", [(0.0, 1.0), (1.0, 0.0)], ids=["forward", "backward"])
def test_it_is_scipys(method, span):
    """In any order, twice, and beyond both ends."""
    y0 = np.array([1.0, 0.5])
    found = ckad.jit(lambda y0, times: at(y0, times, method, span))(y0, TIMES)
    np.testing.assert_allclose(found, at(y0, TIMES, method, span), rtol=0, atol=1e-8)


def test_its_derivatives():
    y0, h = np.array([1.0, 0.5]), 1e-6

    def value(y0, t):
        return at(y0, t, "RK45", (0.0, 1.0))[0]

    by_y0, by_t = ckad.grad(value, argnums=(0, 1))(y0, 0.3)
    slope = (value(y0, 0.3 + h) - value(y0, 0.3 - h)) / (2 * h)
    np.testing.assert_allclose(by_t, slope, rtol=1e-8)
    change = [(value(y0 + h * e, 0.3) - value(y0 - h * e, 0.3)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(by_y0, change, rtol=1e-5)


def test_times_of_a_wrong_shape():
    with pytest.raises(ValueError, match="1-D, or one number"):
        ckad.jit(lambda y0: at(y0, np.ones((2, 2)), "RK45", (0.0, 1.0)))(np.ones(2))
