"""Calls as published codes make them: frozen distributions, windows of known length, ``fsolve``.

``scipy.stats.norm(mean, deviation)`` is a distribution with its parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from scipy import stats

import ckad

pytestmark = pytest.mark.usefixtures("engine")
PRIOR = stats.norm(0.5, 2.0)


def made_in_the_program(x: Any) -> Any:
    points = np.linspace(0.1, 1.0, 5)
    return np.sum(stats.norm(x[0], x[1]).pdf(points)) + stats.gamma(2.0, scale=x[1]).logpdf(1.5)


def made_before(x: Any) -> Any:
    return PRIOR.logpdf(x[0]) + np.sum(PRIOR.cdf(x))


def made_in_a_loop(x: Any) -> Any:
    weights = np.ones(4)
    for k in range(30):
        weights *= scipy.stats.norm(loc=x[0] * np.arange(4), scale=x[1] + k).pdf(0.3)
        weights += 1e-300
        weights /= sum(weights)
        weights.resize(len(weights))
    return weights @ np.arange(4)


def a_window_of_known_length(x: Any) -> Any:
    """Its ends are computed, their distance is not."""
    k = np.floor(5 * x).astype(int)
    table = np.arange(49.0).reshape(7, 7) * x[0]
    rows, columns = np.arange(k[0] - 1, k[0] + 3) % 7, np.arange(k[1], k[1] + 3)
    return np.sum(table[np.ix_(rows, columns)] ** 2) + len(rows)


def a_linear_system_by_fsolve(x: Any) -> Any:
    """At the root all that is left is rounding, of which MINPACK makes no progress."""

    def rest(t: Any) -> Any:
        return np.array([t[0] - 0.3 * t[1] * x[0] - 2.0, 7 * (t[1] - 0.2 * t[0] - 3.0 * x[1])])

    return np.sum(scipy.optimize.fsolve(rest, [40.0, 50.0], xtol=1e-12))


PROGRAMS = [made_in_the_program, made_before, made_in_a_loop]
PROGRAMS += [a_window_of_known_length, a_linear_system_by_fsolve]


@pytest.mark.filterwarnings("ignore:The iteration is not making good progress:RuntimeWarning")
@pytest.mark.parametrize("function", PROGRAMS)
def test_it_is_as_in_scipy(function):
    x, h = np.array([0.43, 0.72]), 1e-5
    value, slopes = ckad.value_and_grad(function)(x)
    np.testing.assert_allclose(value, function(x), rtol=1e-12)
    central = [(function(x + h * e) - function(x - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(slopes, central, rtol=1e-6, atol=1e-9)
