"""What solvers return, handed on by loops, branches and functions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, optimize

import ckad
from ckad.errors import DifferentiationError, SolverWarning, UnrecordableError

from ..trace.idioms import check_number

TIGHT = {"rtol": 1e-9, "atol": 1e-11}
TIMES = [0.5, 1.0]
START = np.array([1.0, 0.0])


def swing(stiffness, drag=0.0):
    return lambda t, y: [y[1], -stiffness * y[0] - drag * y[1]]


def of_each_window(k):
    """What the last step has found is read behind the loop."""
    y = START
    for _ in range(6):
        sol = integrate.solve_ivp(swing(k), (0.0, 1.0), y, t_eval=TIMES, **TIGHT)
        y = sol.y[:, -1]
    return sol.y[0].sum() + sol.t[-1] * k if sol.success else 0.0


def of_ends(k):
    t, y = 0.0, START
    while t < 3.0:
        sol = integrate.solve_ivp(swing(k), (t, t + 0.7), y, **TIGHT)
        y, t = sol.y[:, -1], sol.t[-1]
    return sol.y[0, -1] * sol.t[-1] + sol.y[1, 0]


def of_contacts(k):
    """A ball's: events, a break, and how many zeros there are."""

    def ground(t, y):
        return y[0] - 0.1

    ground.terminal, ground.direction = True, -1
    t, y = 0.0, START
    while True:
        sol = integrate.solve_ivp(swing(9.0, k), (t, 4.0), y, events=ground, **TIGHT)
        t, y = sol.t[-1], np.array([0.11, -0.8 * sol.y[1, -1]])
        if sol.status == 0:
            break
        last = sol
    return last.t_events[0][0] + last.y_events[0][0, 1] + len(sol.t_events[0]) + sol.y[0, -1]


def of_times_before_contacts(k):
    """Of `t_eval` as many as come before an event."""

    def low(t, y):
        return y[0] - 0.5

    low.terminal = True
    y = START
    for n in range(5):
        sol = integrate.solve_ivp(
            swing(k * (n + 1)), (0.0, 2.0), y, t_eval=np.linspace(0, 2, 21), events=low, **TIGHT
        )
        y = START * (1.0 + 0.1 * sol.y[0, -1])
    return sol.y[0].sum() + sol.t[-1] + sol.y[1, -1] + sum(t * k for t in sol.t)


def of_sides(k):
    if k > 1.0:
        sol = integrate.solve_ivp(swing(k), (0.0, 1.0), START, t_eval=TIMES, **TIGHT)
    else:
        sol = integrate.solve_ivp(swing(2 * k), (0.0, 2.0), START, t_eval=TIMES, **TIGHT)
    return sol.y[0].sum()


def of_roots(k):
    y, found = np.ones(2), None
    for step in range(8):
        found = optimize.root(lambda z, y=y, n=step: z + n * z**3 - k * y, y, tol=1e-12)
        one = optimize.root_scalar(lambda z, n=step: z**3 - k - n, bracket=(0.0, 3.0))
        if found.success:
            y = found.x
    return found.x.sum() + one.root


@pytest.mark.parametrize(
    "program",
    [of_each_window, of_ends, of_contacts, of_times_before_contacts, of_sides, of_roots],
    ids=lambda f: f.__name__,
)
def test_loops_and_branches_hand_results_on(program):
    check_number(program, 1.7, rel=1e-5)


def test_a_minimum_is_handed_on():
    def program(k):
        w = np.zeros(2)
        for _ in range(5):
            found = optimize.minimize(lambda w, v=w: np.sum((w - k) ** 2) + w @ v, w, tol=1e-10)
            w = found.x
        return found.x.sum() + found.fun

    with pytest.warns(SolverWarning):
        value, gradient = ckad.value_and_grad(program)(1.7)
    weights = [0.0]
    for _ in range(5):
        weights.append(1.7 - weights[-1] / 2)
    assert value == pytest.approx(program(1.7), rel=1e-6)
    slope = weights[-1] / 1.7  # each is a multiple of k, and fun one of its square
    assert gradient == pytest.approx(2 * slope + 2 * (value - 2 * weights[-1]) / 1.7, rel=1e-6)


def test_a_result_may_be_returned():
    def program(k):
        sol = integrate.solve_ivp(
            *(swing(k), (0.0, 3.0), START, "RK45", TIMES, False, lambda t, y: y[0]), **TIGHT
        )
        return sol, optimize.root_scalar(lambda z: z**2 - k, bracket=(0.0, 3.0))

    (sol, root), (sol_p, root_p) = ckad.jit(program)(1.7), program(1.7)
    np.testing.assert_allclose(sol.y, sol_p.y, rtol=1e-12)
    np.testing.assert_allclose(sol.t_events[0], sol_p.t_events[0], rtol=1e-9)
    assert root.root == pytest.approx(root_p.root)
    assert "message: The solver successfully" in repr(sol)
    with pytest.raises(DifferentiationError, match=r"returned .*OdeResult\[t, y, status"):
        ckad.grad(lambda k: program(k)[0])(1.7)
    assert "root: 1.30384" in repr(root)


class Spring:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    def rates(self, t, y):
        return [y[1], -self.stiffness * y[0]]


def by_a_variable(k):
    sols = []
    for stiffness in [k, 2 * k, 3 * k]:
        fun = lambda t, y: [y[1], -stiffness * y[0]]  # noqa: B023, E731
        sols.append(integrate.solve_ivp(fun, (0.0, 1.0), START, dense_output=True, **TIGHT))
    return sum(sol.sol(0.5)[0] + np.trapezoid(sol.y[0], sol.t) for sol in sols)


def by_an_element(k):
    a, ends, times = np.array([k]), np.array([0.0, 1.0]), START.copy()
    sol = integrate.solve_ivp(
        lambda t, y: [y[1], -a[0] * y[0]], ends, times, dense_output=True, **TIGHT
    )
    a[0], ends[1], times[0] = 5.0, 3.0, 7.0
    return sol.sol(0.5)[0] + np.trapezoid(sol.y[0], sol.t) + times[0] * k


def by_an_attribute(k):
    spring = Spring(k)
    sol = integrate.solve_ivp(
        *(spring.rates, (0.0, 1.0), START, "BDF"), dense_output=True, rtol=1e-6, atol=1e-8,
        jac=lambda t, y: [[0.0, 1.0], [-spring.stiffness, 0.0]],
    )  # fmt: skip
    spring.stiffness = 9.0
    return sol.sol(0.5)[0]


def by_a_dict(k):
    about = {"k": k, "level": 0.9}

    def rates(t, y, p):
        return [y[1], -p["k"] * y[0]]

    sol = integrate.solve_ivp(
        *(rates, (0.0, 2.0), START, "RK45", None, True, lambda t, y, p: y[0] - p["level"]),
        args=(about,), **TIGHT,
    )  # fmt: skip
    about |= {"k": 7.0, "level": 0.1}
    return sol.sol(0.5)[0] + sol.y[0, 3] + sol.t_events[0][0]


@pytest.mark.parametrize(
    "program",
    [by_a_variable, by_an_element, by_an_attribute, by_a_dict],
    ids=lambda f: f.__name__,
)
def test_what_is_solved_again_is_what_was_solved(program):
    """The program may have changed by then what the right side, a Jacobian or an event reads."""
    value, slope = ckad.value_and_grad(program, engine="vm")(1.7)
    assert value == pytest.approx(program(1.7), rel=1e-5)
    assert slope == pytest.approx((program(1.7001) - program(1.6999)) / 2e-4, rel=2e-3)


def test_all_steps_have_the_derivatives_of_their_lengths():
    def program(solve, **options):
        def mean(k):
            sol = solve(swing(k), (0.0, 3.0), START, rtol=1e-6, **options)
            return np.mean(sol.y[0] * sol.t)

        return mean

    scipys = program(integrate.solve_ivp)
    difference = (scipys(1.7 + 1e-6) - scipys(1.7 - 1e-6)) / 2e-6
    for chosen in (scipys, program(ckad.integrate.solve_ivp)):
        assert ckad.grad(chosen)(1.7) == pytest.approx(difference, rel=2e-3)
    fixed = ckad.grad(program(ckad.integrate.solve_ivp, differentiate_steps=False))(1.7)
    assert abs(fixed / difference - 1.0) > 0.1


def test_steps_are_run_over():
    def program(k):
        sol = integrate.solve_ivp(swing(k), (0.0, 3.0), START, rtol=1e-4)
        total = sum(t**2 for t in sol.t)
        for t in sol.t:
            total += t * k
        for component in sol.y:
            total += component[-1]
        return total

    value, slope = ckad.value_and_grad(program, engine="vm")(1.7)
    assert value == pytest.approx(program(1.7), rel=1e-9)
    assert slope == pytest.approx((program(1.7 + 1e-6) - program(1.7 - 1e-6)) / 2e-6, rel=1e-4)


@pytest.mark.parametrize(
    ("read", "told"),
    [(lambda sol: sol.sol(0.5)[0], "sol of a solution"), (lambda sol: sol.y[0, 3], "first and")],
    ids=["dense", "steps"],
)
def test_what_cannot_be_solved_again_is_refused(read, told):
    def program(k):
        y = START
        for _ in range(5):
            sol = integrate.solve_ivp(swing(k), (0.0, 1.0), y, dense_output=True)
            y = sol.y[:, -1]
        return read(sol)

    with pytest.raises(UnrecordableError, match=told):
        ckad.grad(program)(1.7)
