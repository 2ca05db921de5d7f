"""Adaptive methods: values against SciPy, derivatives against tight solutions and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

import ckad
from ckad.errors import BudgetError, CkadError, RaisedError, TraceError, UnrecordableError
from ckad.integrate import solve_ivp
from ckad.integrate.tableaux import PAIRS

Y0 = np.array([2.0, 1.0])
TIMES = np.linspace(0.0, 10.0, 21)


def prey(t, y, a, b):
    u, v = y
    return [a * u - b * u * v, -0.8 * v + 0.3 * u * v]


def decay(t, y, rate):
    return -rate * y


def circle(t, y):
    dy = np.empty(2)
    dy[0] = y[1]
    dy[1] = -y[0]
    return dy


@pytest.mark.parametrize("method", PAIRS)
def test_states_and_counts_are_scipys(method):
    tolerances = {"rtol": 1e-6, "atol": 1e-8}
    theirs = integrate.solve_ivp(
        prey, (0.0, 10.0), Y0, PAIRS[method].solver, TIMES, args=(1.1, 0.4), **tolerances
    )

    def ours(y0, a, b):
        sol = solve_ivp(prey, (0.0, 10.0), y0, method, TIMES, args=(a, b), **tolerances)
        return sol.t, sol.y, sol.nfev

    t, y, nfev = ckad.jit(ours)(Y0, 1.1, 0.4)
    np.testing.assert_array_equal(t, theirs.t)
    np.testing.assert_allclose(y, theirs.y, rtol=1e-10)
    assert nfev == theirs.nfev


@pytest.mark.parametrize(
    "options",
    [
        {"first_step": 0.3, "max_step": 0.5},
        {"t_span": (3.0, -1.0)},
        {"rtol": 1e-9, "atol": [1e-12, 1e-3]},
    ],
    ids=["bounded", "backwards", "by component"],
)
def test_steps_are_scipys(options):
    options = {"t_span": (0.0, 4.0), **options}
    theirs = integrate.solve_ivp(prey, y0=Y0, args=(1.1, 0.4), **options)

    def ours(y0):
        sol = solve_ivp(prey, y0=y0, args=(1.1, 0.4), **options)
        return sol.t[-1], sol.y[:, -1], sol.nfev

    t, y, nfev = ckad.jit(ours)(Y0)
    np.testing.assert_allclose(y, theirs.y[:, -1], rtol=1e-12)
    assert (t, nfev) == (theirs.t[-1], theirs.nfev)


@pytest.mark.parametrize("method", ["RK45", "DOP853"])
def test_complex_states(method):
    def ours(w):
        sol = solve_ivp(lambda t, y: 1j * w * y, (0.0, 1.0), [1.0 + 0.0j], method, [0.5, 1.0])
        return sol.y[0], sol.nfev

    theirs = integrate.solve_ivp(lambda t, y: 2j * y, (0.0, 1.0), [1.0 + 0.0j], method, [0.5, 1.0])
    y, nfev = ckad.jit(ours)(2.0)
    np.testing.assert_allclose(y, theirs.y[0], rtol=1e-12)
    np.testing.assert_array_equal(ours(2.0)[0], theirs.y[0])
    assert nfev == theirs.nfev


def test_single_precision_becomes_double():
    found = ckad.jit(lambda y0: solve_ivp(decay, (0, 1), y0, args=(1,)).y[0, -1])(np.float32([1]))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, solve_ivp(decay, (0, 1), [1], args=(1,)).y[0, -1], rtol=1e-14)


def test_scipys_own_methods_are_for_use_outside():
    def end(y0):
        return solve_ivp(decay, (0.0, 1.0), y0, "Radau", args=(1.0,)).y[0, -1]

    assert (
        end([1.0]) == integrate.solve_ivp(decay, (0.0, 1.0), [1.0], "Radau", args=(1.0,)).y[0, -1]
    )
    with pytest.raises(UnrecordableError, match="Radau"):
        ckad.grad(end)(np.array([1.0]))
    with pytest.raises(TypeError, match="RK45 has no option jac"):
        solve_ivp(decay, (0.0, 1.0), [1.0], jac=[[1.0]])


def test_outside_of_recordings_it_is_scipys_own():
    options = {"t_eval": TIMES, "dense_output": True, "args": (1.1, 0.4)}
    theirs, ours = (f(prey, (0.0, 10.0), Y0, **options) for f in (integrate.solve_ivp, solve_ivp))
    np.testing.assert_array_equal(ours.y, theirs.y)
    np.testing.assert_array_equal(ours.sol(3.3), theirs.sol(3.3))
    assert (ours.nfev, ours.status, ours.message) == (theirs.nfev, 0, theirs.message)


@pytest.mark.parametrize("method", PAIRS)
def test_gradient_by_all_that_is_computed(method):
    """Of y(b) for dy/dt = -k y from y(a) = y0."""

    def end(y0, k, a, b):
        return solve_ivp(decay, (a, b), y0, method, args=(k,), rtol=1e-11, atol=1e-12).y[0, -1]

    value, (by_y0, by_k, by_a, by_b) = ckad.value_and_grad(end, argnums=(0, 1, 2, 3))(
        np.array([2.0]), 0.7, 0.5, 2.0
    )
    exact = 2.0 * np.exp(-0.7 * 1.5)
    found = [value, by_y0[0], by_k, by_a, by_b]
    expected = [exact, exact / 2.0, -1.5 * exact, 0.7 * exact, -0.7 * exact]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def misfit(y0, a):
    sol = solve_ivp(prey, (0.0, 5.0), y0, t_eval=TIMES[:11], args=(a, 0.4), rtol=1e-9, atol=1e-10)
    return np.sum(sol.y**2)


@pytest.mark.usefixtures("engine")
def test_gradient_of_a_misfit():
    def tight(y0, a):
        return np.sum(
            integrate.solve_ivp(
                prey, (0.0, 5.0), y0, "DOP853", TIMES[:11], args=(a, 0.4), rtol=1e-13, atol=1e-14
            ).y
            ** 2
        )

    def differences(along):
        """Of order four."""
        h = 1e-3
        return (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h)

    by_y0, by_a = ckad.grad(misfit, argnums=(0, 1))(Y0, 1.1)
    expected = [differences(lambda h, e=e: tight(Y0 + h * e, 1.1)) for e in np.eye(2)]
    np.testing.assert_allclose(by_y0, expected, rtol=1e-7)
    np.testing.assert_allclose(by_a, differences(lambda h: tight(Y0, 1.1 + h)), rtol=1e-7)


def test_forward_and_reverse_agree():
    def end(y0):
        return solve_ivp(prey, (0.0, 2.0), y0, "RK23", args=(1.1, 0.4)).y[0, -1]

    tangent = np.array([0.3, -0.2])
    _, forward = ckad.jvp(end, (Y0,), (tangent,))
    np.testing.assert_allclose(forward, ckad.grad(end)(Y0) @ tangent, rtol=1e-12)


@pytest.mark.usefixtures("engine")
def test_budgets_change_no_bit():
    def total(y0):
        sol = solve_ivp(prey, (0.0, 5.0), y0, "RK23", TIMES[:11], args=(1.1, 0.4))
        return np.sum(sol.y**2)

    free = ckad.value_and_grad(total)(Y0)
    with pytest.raises(BudgetError) as least:
        ckad.value_and_grad(total, memory=1_000)(Y0)
    needed = int(str(least.value).split("at least ")[1].split(".")[0].replace(",", ""))
    tight = ckad.value_and_grad(total, memory=needed)(Y0)
    np.testing.assert_array_equal(free[0], tight[0])
    np.testing.assert_array_equal(free[1], tight[1])


def test_times_that_are_computed():
    def total(times):
        sol = solve_ivp(decay, (0.0, 2.0), [1.0], t_eval=times, args=(1.0,), rtol=1e-11, atol=1e-12)
        return np.sum(sol.y)

    times = np.array([0.0, 0.5, 2.0])
    np.testing.assert_allclose(ckad.grad(total)(times), -np.exp(-times), rtol=1e-5)
    with pytest.raises(RaisedError):
        ckad.grad(total)(times[::-1])
    with pytest.raises(RaisedError):
        ckad.grad(total)(times + 0.1)


def test_the_choice_of_steps_is_differentiated_on_request():
    def end(a, kept):
        options = {"rtol": 1e-4, "differentiate_steps": kept}
        return solve_ivp(lambda t, y: y**2, (0.0, 0.5), [a], **options).y[0, -1]

    cut, kept = (ckad.grad(end)(1.0, which) for which in (False, True))
    whole = (end(1.0 + 1e-6, True) - end(1.0 - 1e-6, True)) / 2e-6
    np.testing.assert_allclose(kept, whole, rtol=1e-7)
    assert 1e-6 < abs(cut - kept) < 1e-2
    np.testing.assert_allclose([cut, kept], 4.0, rtol=1e-3)


def test_a_trial_that_overflows_leaves_the_gradient_finite():
    def end(a):
        sol = solve_ivp(lambda t, y: -np.exp(y * y), (0.0, 1.0), [a], first_step=1.0, rtol=1e-6)
        return sol.y[0, -1]

    gradient = ckad.grad(end)(2.0)
    a = np.array([2.0 - 1e-4, 2.0 + 1e-4])
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = (
            integrate.solve_ivp(
                lambda t, y: -np.exp(y * y), (0.0, 1.0), [x], rtol=1e-12, atol=1e-13
            ).y[0, -1]
            for x in a
        )
    np.testing.assert_allclose(gradient, (high - low) / 2e-4, rtol=2e-2)


def test_a_step_that_becomes_too_small():
    def blow_up(y0):
        return solve_ivp(lambda t, y: y**2, (0.0, 2.0), y0)

    failed = blow_up([1.0])
    assert (failed.status, failed.success) == (-1, False)
    assert "step size is less than spacing" in failed.message
    with pytest.raises(RaisedError, match=r"test_adaptive\.py"):
        ckad.grad(lambda y0: blow_up(y0).y[0, -1])(np.array([1.0]))
    with pytest.raises(RaisedError):
        ckad.jit(lambda y0: blow_up(y0).y[0, -1])(np.array([np.nan]))


def test_all_steps_are_scipys():
    def used(y0, solver):
        sol = solver(prey, (0.0, 10.0), y0, args=(1.1, 0.4))
        u, v = sol.y
        ends = sol.y[:, -1].sum() + sol.t[-1] + v[0]
        parts = sol.y[0, 3] + np.max(u) + np.trapezoid(v**2, sol.t) + np.sum(np.diff(sol.t) ** 2)
        return ends + parts + np.mean(sol.y) + len(sol.t) + np.sum(np.array(sol.t)) * y0[0]

    expected = used(Y0, integrate.solve_ivp)
    assert ckad.jit(lambda y0: used(y0, solve_ivp))(Y0) == pytest.approx(expected, rel=1e-12)


def test_more_steps_than_there_is_room_for_end_the_program():
    def many(y0):
        sol = solve_ivp(decay, (0.0, 1.0), y0, args=(0.1,), max_step=1e-4)
        return np.sum(sol.y)

    with pytest.raises(CkadError, match=r"more steps than are kept .* at step 8191"):
        ckad.jit(many)(Y0)


def test_first_and_last_state_as_numpy_names_them():
    def ends(y0):
        sol = solve_ivp(prey, (0.0, 1.0), y0, args=(1.1, 0.4))
        u, v = sol.y
        last = sol.y[:, -1]
        rows = np.stack([u[-1], v[-1]]), sol.y[::-1][..., -1][::-1]
        return [last, *rows, sol.y[:, 0], len(sol.y), sol.t[0], sol.t[-1]]

    last, *same, first, n, begin, end = ckad.jit(ends)(Y0)
    np.testing.assert_array_equal(same, [last, last])
    np.testing.assert_array_equal(first, Y0)
    assert (n, begin, end) == (2, 0.0, 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rtol": -1.0}, "rtol=-1"),
        ({"atol": [1e-3]}, "atol has shape"),
        ({"t_span": (0.0, np.nan)}, "t_span holds nan"),
        ({"t_eval": [0.5, 0.1]}, "not sorted"),
        ({"t_eval": [0.5, 1.1]}, "reaches out"),
        ({"t_eval": [[0.5]]}, "1-D"),
        ({"first_step": 2.0}, "exceeds t_span"),
        ({"max_step": 0.0}, "max_step=0"),
        ({"method": "RK"}, "Take one of"),
        ({"n_steps": 3}, "fixed steps"),
        ({"y0": np.eye(2)}, "y0 has shape"),
        ({"fun": lambda t, y: [1.0, 2.0, 3.0]}, "fun returns shape"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_bad_input(options, message):
    options = {"fun": circle, "t_span": (0.0, 1.0), "y0": Y0, **options}
    if "fun" not in options or options["fun"] is circle:
        with pytest.raises(ValueError, match=message):
            solve_ivp(**options)
    with pytest.raises(ValueError, match=message):
        ckad.jit(lambda x: solve_ivp(**options).t[-1] * x)(1.0)


def test_rtol_below_rounding_is_raised():
    with pytest.warns(UserWarning, match="below"):
        sol = solve_ivp(circle, (0.0, 0.1), Y0, rtol=1e-20)
    assert sol.success


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Rodas5P", "Kvaerno5", "BDF"])
def test_a_state_of_no_numbers(method):
    def end(x):
        sol = solve_ivp(lambda t, y: -x * y, (0.0, 1.0), np.zeros(0), method)
        return x + np.sum(sol.y[:, -1])

    assert ckad.grad(end)(2.0) == 1.0


BOUNDS = {
    "rtol": (1e-5, 1e-7),
    "atol": (1e-9, 1e-5),
    "first_step": (0.1, 0.01),
    "max_step": (0.2, 9.0),
}


@pytest.mark.parametrize("method", ["RK45", pytest.param("BDF", marks=pytest.mark.slow)])
def test_bounds_that_are_arguments(method):
    """They are as good as constants, of which each would be a program of its own."""

    def end(y0, bounds):
        return solve_ivp(prey, (0.0, 2.0), y0, method, args=(1.1, 0.4), **bounds).y[0, -1]

    given = ckad.value_and_grad(end)
    for k in range(2):
        bounds = {name: pair[k] for name, pair in BOUNDS.items()}
        value, gradient = given(Y0, bounds)
        expected, its_gradient = ckad.value_and_grad(lambda y0, b=bounds: end(y0, b))(Y0)
        np.testing.assert_allclose(value, expected, rtol=1e-13)
        np.testing.assert_allclose(gradient, its_gradient, rtol=1e-12)
    by_bounds = ckad.grad(end, argnums=1)(Y0, bounds)
    assert list(by_bounds.values()) == [0.0] * 4


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_that_are_arguments_are_checked(name):
    def end(x):
        return solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], **{name: x}).y[0, -1]

    with pytest.raises(RaisedError, match="a tolerance of solve_ivp is negative or NaN"):
        ckad.jit(end)(-1e-3)
    with pytest.raises(RaisedError, match="a tolerance of solve_ivp is negative or NaN"):
        ckad.jit(end)(np.nan)


def test_errors_say_what_went_wrong():
    def end(y0, t, **options):
        return solve_ivp(lambda t, y: y**2, (0.0, t), y0, **options).y[0, -1]

    y0 = np.array([1.0])
    with pytest.raises(RaisedError, match="a step is smaller than the distance between numbers"):
        ckad.grad(end)(y0, 2.0)
    with pytest.raises(RaisedError, match="times are not finite"):
        ckad.grad(end)(y0, np.nan)
    with pytest.raises(RaisedError, match="times are not finite, not in t_span"):
        ckad.grad(lambda y0, t: end(y0, t, first_step=3.0))(y0, 0.5)
    with pytest.raises(TraceError, match="an array whose length is computed"):
        ckad.jit(lambda y0: solve_ivp(lambda t, y: -y, (0.0, 1.0), y0).y)(y0)
