"""Right sides with kinks and jumps under SciPy's name, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import ckad

TABLE = np.linspace(0.0, 2.0, 9)
KNOTS = np.sin(2.0 * TABLE)


def tabulated(x, **options):
    """Linear between the points of a table: the trapezoidal rule is exact."""
    return solve_ivp(lambda t, y: x * np.interp(t, TABLE, KNOTS) + 0.0 * y, (0, 2), [1.0],
                     **options).y[0, -1]  # fmt: skip


def dosed(x, **options):
    """A dose that is given from t = 1 to 2."""
    sol = solve_ivp(lambda t, y: -x * y + np.where((t > 1) & (t < 2), 3.0, 0.0), (0, 5), [1.0],
                    **options)  # fmt: skip
    return sol.y[0, -1]


def switched(x, **options):
    def rates(t, y):
        if t < 1.0:
            return -x * y
        return -2.0 * x * y

    return solve_ivp(rates, (0, 2), [1.0], **options).y[0, -1]


def by_table(x):
    return np.trapezoid(KNOTS, TABLE)


def by_dose(x):
    late, early = np.exp(-3 * x), np.exp(-4 * x)
    return -5 * np.exp(-5 * x) - 3 / x**2 * (late - early) + 3 / x * (4 * early - 3 * late)


def by_switch(x):
    return -3.0 * np.exp(-3.0 * x)


@pytest.mark.parametrize(("rtol", "near"), [(1e-3, 0.08), (1e-6, 5e-4), (1e-9, 1e-6)])
@pytest.mark.parametrize("method", ["RK45", "DOP853"])
@pytest.mark.parametrize(
    ("program", "slope"), [(tabulated, by_table), (dosed, by_dose), (switched, by_switch)]
)
def test_kinks_leave_no_noise_in_a_gradient(program, slope, method, rtol, near):
    """Where their choice is differentiated, the times of steps near a kink are 1e8 times off."""
    options = {"method": method, "rtol": rtol, "atol": rtol / 100}
    found = ckad.grad(lambda x: program(x, **options), engine="vm")(0.7)
    assert found == pytest.approx(slope(0.7), abs=near)


@pytest.mark.parametrize("rtol", [1e-3, 1e-6])
def test_nor_where_all_steps_are_read(rtol):
    def area(x):
        knots = x * np.sin(7.0 * TABLE)
        sol = solve_ivp(lambda t, y: np.interp(t, TABLE, knots) - y, (0, 2), [1.0], rtol=rtol)
        return np.trapezoid(sol.y[0], sol.t)

    fine = np.linspace(0.0, 2.0, 100_001)  # area = 1 - y(2) + x times that of the table
    forcing = np.interp(fine, TABLE, np.sin(7.0 * TABLE))
    slope = np.trapezoid(forcing * (1.0 - np.exp(fine - 2.0)), fine)
    assert ckad.grad(area, engine="vm")(0.7) == pytest.approx(slope, abs=0.02)


def test_what_is_smooth_has_the_derivative_of_the_program_as_it_chooses_its_steps():
    def end(x):
        return solve_ivp(lambda t, y: -x * y * y if x > 0 else y, (0, 5), [1.0]).y[0, -1]

    by_differences = (end(0.7 + 1e-6) - end(0.7 - 1e-6)) / 2e-6
    assert ckad.grad(end, engine="vm")(0.7) == pytest.approx(by_differences, rel=1e-6)
