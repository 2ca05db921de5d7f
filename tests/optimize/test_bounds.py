"""Minima within bounds: SciPy's, and their derivatives by what is free and by the bounds."""

import numpy as np
import pytest
from scipy import optimize

import ckad
from ckad.errors import RaisedError
from ckad.optimize import minimize


def valley(x, a):
    """Rosenbrock's, of several unknowns."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (a - x[:-1]) ** 2)


LOW = np.array([-0.6, 0.4, -2.0, -np.inf])
HIGH = np.array([0.6, 2.0, 0.3, np.inf])
START = np.array([-0.5, 1.0, 0.0, 5.0])


def found(a, low=LOW, high=HIGH, method=None):
    pairs = [(low[k], None if k == 3 else high[k]) for k in range(4)]
    return minimize(valley, START, (a,), method, bounds=pairs, tol=1e-11)


def test_it_is_scipys():
    expected = optimize.minimize(
        valley, START, (1.2,), bounds=optimize.Bounds(LOW, HIGH), options={"ftol": 0, "gtol": 1e-9}
    )
    result = found(1.2)
    assert result.success
    np.testing.assert_allclose(result.x, expected.x, atol=1e-6)
    assert np.count_nonzero((result.x == LOW) | (result.x == HIGH)) == 2
    inside = ckad.jit(lambda a: found(a).x)(1.2)
    np.testing.assert_array_equal(inside, result.x)
    np.testing.assert_array_equal(found(1.2, method="L-BFGS-B").x, result.x)


def test_its_derivatives():
    """By a parameter and by the bounds, of which an unknown at one has the derivative one."""

    @ckad.jit
    def at(p):
        return found(p[0], p[1:5], p[5:9]).x

    finite = np.where(np.isfinite(np.concatenate([LOW, HIGH])), np.concatenate([LOW, HIGH]), 0.0)
    p = np.concatenate([[1.2], finite])
    p[4] = -99.0
    x = found(1.2).x
    h = 1e-5
    steps = h * np.eye(9)
    expected = np.stack([(at(p + e) - at(p - e)) / (2 * h) for e in steps], axis=1)
    for mode in ("rev", "fwd"):
        np.testing.assert_allclose(ckad.jacobian(at, mode=mode)(p), expected, atol=1e-5)
    moved = ckad.jacobian(at)(p)
    for k in np.flatnonzero((x == LOW) | (x == HIGH)):
        assert np.sum(moved[k]) == 1.0
    best = ckad.hessian(lambda a: found(a).fun)(1.2)
    slopes = [ckad.grad(lambda a: found(a).fun)(1.2 + e) for e in (h, -h)]
    np.testing.assert_allclose(best, (slopes[0] - slopes[1]) / (2 * h), rtol=1e-5)


def test_at_a_bound_without_a_slope_there_is_no_derivative():
    def nearest(a):
        return minimize(lambda x: np.sum((x - a) ** 2), np.zeros(2), bounds=[(0, 1)] * 2).x

    a = np.array([0.5, 1.0])
    np.testing.assert_allclose(ckad.jit(nearest)(a), a, atol=1e-6)
    with pytest.raises(RaisedError, match="to which the slope does not hold it"):
        ckad.jacobian(nearest)(a)
    np.testing.assert_allclose(ckad.jacobian(nearest)(np.array([0.5, 1.5])), [[1, 0], [0, 0]])


def test_a_fixed_unknown_and_one_that_starts_outside():
    def at(a):
        pairs = [(a, a), (None, 3.0)]
        return minimize(lambda x: np.sum((x - 5.0) ** 2), [9.0, 9.0], bounds=pairs).x

    np.testing.assert_array_equal(ckad.jit(at)(2.0), [2.0, 3.0])
    np.testing.assert_array_equal(ckad.jacobian(at)(2.0), [1.0, 0.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": [(0, 1)]}, "1 pairs for 2"),
        ({"bounds": [(1, 0), (0, 1)]}, "lower bounds"),
        ({"bounds": [(0, 1)] * 2, "method": "BFGS"}, "belong to 'L-BFGS-B'"),
        ({"method": "L-BFGS-B"}, "belong to 'L-BFGS-B'"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        minimize(np.sum, np.ones(2), **options)
