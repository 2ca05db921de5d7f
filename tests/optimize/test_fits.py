"""SciPy's fits within bounds, under losses, by given errors: as SciPy, with its differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import curve_fit, least_squares

import ckad

T = np.linspace(0.0, 3.0, 12)
SEEN = 2.5 * np.exp(-1.3 * T) + 0.5 + 0.1 * np.sin(7.0 * T)
START = [2.0, 1.0, 0.3]
TIGHT = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-13}

pytestmark = pytest.mark.filterwarnings("ignore::ckad.errors.SolverWarning")


def model(t, a, k, c):
    return a * np.exp(-k * t) + c


def slopes(t, a, k, c):
    e = np.exp(-k * t)
    return np.stack([e, -a * t * e, 1.0 + 0.0 * t], axis=1)


def by_least_squares(x, **options):
    def residuals(q):
        return model(T, q[0], q[1], q[2]) - x * SEEN - 0.1 * x**2 * T

    return least_squares(residuals, START, lambda q: slopes(T, *q), **TIGHT, **options)


def held(x):
    found = by_least_squares(x, bounds=([0.0, 0.0, 0.0], [2.1, 5.0, np.inf]))
    return found.x @ np.array([1.0, 2.0, 3.0]) + found.cost


def by_its_bounds(x):
    found = by_least_squares(1.0, bounds=([0.0, 0.0, 0.2 * x], [2.1 * x, 5.0, 9.0]))
    return found.x @ np.array([1.0, 2.0, 3.0])


def of_loss(loss):
    def program(x):
        found = by_least_squares(x, loss=loss, f_scale=0.05)
        return found.x @ np.array([1.0, 2.0, 3.0]) + found.cost

    return program


def fitted(**options):
    def program(x):
        y = x * SEEN + 0.1 * x**2 * T
        best, covariance = curve_fit(model, T, y, START, jac=slopes, **TIGHT, **options)
        return best @ np.array([1.0, 2.0, 3.0]) + np.sum(np.sqrt(np.diag(covariance)))

    return program


def from_nowhere(x):
    limits = ([0.0, 0.0, -np.inf], [5.0, np.inf, np.inf])
    best, _, told, _, ier = curve_fit(
        model, T, x * SEEN, bounds=limits, jac=slopes, full_output=True, **TIGHT
    )
    return np.sum(best) + np.sum(told["fvec"] ** 2) + x * (ier > 0)


ERRORS = 0.1 + 0.05 * T


@pytest.mark.parametrize(
    "program",
    [
        held,
        by_its_bounds,
        *map(of_loss, ("soft_l1", "huber", "cauchy")),
        fitted(bounds=(0.0, [2.1, 5.0, 5.0])),
        fitted(sigma=ERRORS, absolute_sigma=True, bounds=(0.0, 5.0)),
        fitted(sigma=np.diag(ERRORS**2) + 0.002),
        from_nowhere,
    ],
)
def test_fits(program):
    value, gradient = ckad.value_and_grad(program, engine="vm")(1.0)
    assert value == pytest.approx(program(1.0), rel=1e-6)
    by_differences = (program(1.0 + 1e-3) - program(1.0 - 1e-3)) / 2e-3
    assert gradient == pytest.approx(by_differences, rel=2e-5)


def test_what_holds_an_unknown_is_told():
    def which(x):
        return by_least_squares(x, bounds=([0.0, 0.0, 0.0], [2.1, 5.0, np.inf])).active_mask * x

    expected = by_least_squares(1.0, bounds=([0.0, 0.0, 0.0], [2.1, 5.0, np.inf])).active_mask
    np.testing.assert_array_equal(ckad.jit(which)(1.0), expected)


def test_what_least_squares_tells_of_its_end():
    def end(x):
        found = least_squares(lambda q: q - x, [0.5, 0.5])
        return found.optimality + found.cost if found.message else 0.0

    assert ckad.jit(end)(0.3) == pytest.approx(0.0, abs=1e-12)


def test_where_an_unknown_reaches_a_bound_its_derivative_ends():
    def program(x):
        return least_squares(lambda q: q - x, [0.5, 0.5], bounds=(0.0, 1.0)).x[0]

    assert ckad.value_and_grad(program)(0.3) == pytest.approx((0.3, 1.0))
    assert ckad.value_and_grad(program)(2.0) == pytest.approx((1.0, 0.0))


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (([3.0] * 3, [4.0] * 3), "not within"),
        (([1.0] * 3, [0.0] * 3), "lower"),
        (([0.0] * 3,), "two elements"),
    ],
)
def test_bounds_that_do_not_fit(bounds, message):
    with pytest.raises(ValueError, match=message):
        ckad.grad(lambda x: by_least_squares(x, bounds=bounds).x[0])(1.0)
