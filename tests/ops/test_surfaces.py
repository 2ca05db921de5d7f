"""SciPy's splines of FITPACK, surfaces and scattered points: of traced values, at traced places."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import (
    RBFInterpolator,
    RectBivariateSpline,
    UnivariateSpline,
    griddata,
    splev,
    splrep,
)

import ckad
from ckad.errors import UnsupportedFunctionError

T = np.linspace(0.0, 4.0, 11)
SEEN = np.exp(-T) + 0.1 * np.sin(5.0 * T)
ACROSS, ALONG = np.linspace(0.0, 1.0, 7), np.linspace(0.0, 2.0, 9)
HEIGHTS = np.sin(ACROSS[:, np.newaxis] + 2.0 * ALONG)
SCATTERED = np.random.default_rng(0).random((20, 2))


def through(p):
    y = p * SEEN + 0.1 * p**2 * T
    spline, line = splrep(T, y), splrep(T, y, k=1, s=0)
    smooth = splev(np.array([0.3, 2.2]), splrep(T, y, t=[1.0, 2.0, 3.0]))
    ends = sum(splev(np.array([-0.2, 4.2]), spline, ext=ext) for ext in (0, 1, 3))
    return np.sum(smooth) + np.sum(ends) + splev(1.3 * p, spline, der=1) + splev(2.3 * p, line)


def univariate(p):
    return UnivariateSpline(T, p * SEEN, s=0)(0.7 * p)


def surface(p):
    f = RectBivariateSpline(ACROSS, ALONG, p * HEIGHTS + ACROSS[:, np.newaxis] ** 2 * p**2)
    grid = np.sum(f([0.1, 0.6], [0.3, 0.9, 1.2])) + f(0.3, 0.4)[0, 0] + f(-0.1, 2.5, grid=False)
    return grid + f.ev(0.2 * p, 0.3) + f.ev(0.5, 0.5, dx=1) + f(0.5, 0.5, dy=2, grid=False)


TABLE = RectBivariateSpline(ACROSS, ALONG, HEIGHTS, kx=2, ky=3)


def known_surface(p):
    sol = solve_ivp(lambda t, y: [p * TABLE.ev(y[0], t)], (0.0, 1.0), [0.3], rtol=1e-8)
    return sol.y[0, -1] + TABLE(0.3 * p, 0.4)[0, 0]


def between(p):
    values = np.sin(3.0 * SCATTERED[:, 0]) * p + p**2 * SCATTERED[:, 1] ** 2
    x, y = np.meshgrid([0.3, 0.5, 9.0], [0.4, 0.6])
    near = griddata((SCATTERED[:, 0], SCATTERED[:, 1]), values, (x, y), method="nearest")
    found = griddata(SCATTERED, values, (x, y), fill_value=2.0)
    radial = RBFInterpolator(SCATTERED, values, kernel="cubic")(np.array([[0.2, 0.7]]))
    return np.sum(near * x) + np.sum(found * y) + radial[0]


@pytest.mark.parametrize("program", [through, univariate, surface, known_surface, between])
def test_value_and_gradient(program):
    value, gradient = ckad.value_and_grad(program, engine="vm")(1.0)
    assert value == pytest.approx(program(1.0), rel=1e-9)
    by_differences = (program(1.0 + 1e-5) - program(1.0 - 1e-5)) / 2e-5
    assert gradient == pytest.approx(by_differences, rel=2e-5)


@pytest.mark.parametrize(
    "program",
    [
        lambda p: splev(1.0, splrep(T, p * SEEN, s=0.1)),
        lambda p: UnivariateSpline(T, p * SEEN)(1.0),
        lambda p: griddata(SCATTERED * p, SCATTERED[:, 0], SCATTERED)[0],
        lambda p: griddata(SCATTERED, p * SCATTERED[:, 0], SCATTERED, method="cubic")[0],
    ],
)
def test_what_depends_on_values_in_other_ways_is_refused(program):
    with pytest.raises(UnsupportedFunctionError, match=r"scipy\.interpolate"):
        ckad.grad(program)(1.0)
