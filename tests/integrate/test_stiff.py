"""Stiff methods: published solutions, orders, and derivatives against variational equations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, sparse

import ckad
from ckad.errors import RaisedError
from ckad.integrate import solve_ivp
from ckad.integrate.methods import STIFF
from ckad.integrate.problem import control, problem
from ckad.integrate.stiff.bdf import ROWS, Bdf
from ckad.integrate.stiff.linear import systems
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of

from .stiff_problems import PROBLEMS, robertson

ORDERS = {"Kvaerno3": 3, "Kvaerno5": 5, "KenCarp4": 4, "Rodas5P": 5}
#: Of the interpolants: cubic in h, or Rodas5P's own. One more near an end of a step.
WITHIN = {"Kvaerno3": 2.5, "Kvaerno5": 2.3, "KenCarp4": 2.3, "Rodas5P": 2.9}
RATES = np.array([0.04, 3e7, 1e4])
slow = pytest.mark.slow


def only_fast(*names):
    """All stiff methods, those that are not named in the long run."""
    return [name if name in names else pytest.param(name, marks=slow) for name in STIFF]


def bent(t, y, w):
    return [w * y[1], -w * y[0] * y[0] * np.cos(t) - y[1]]


@pytest.mark.parametrize(
    ("name", "method"),
    [
        (name, method)
        if (name, method) == ("Robertson", "Rodas5P")
        else pytest.param(name, method, marks=slow)
        for name in PROBLEMS
        for method in STIFF
    ],
)
def test_published_solutions(name, method):
    problem = PROBLEMS[name]

    def solved(y0):
        options = {"rtol": 1e-8, "atol": problem.atol}
        sol = solve_ivp(problem.fun, (0.0, problem.end), y0, method, **options)
        return sol.y[:, -1], sol.status

    y, status = ckad.jit(solved)(problem.y0)
    assert status == 0
    np.testing.assert_allclose(y, problem.expected, rtol=5e-6)


@slow
@pytest.mark.parametrize("tolerances", [(1e3, 1e3), (1e-3, 1e10)])
@pytest.mark.parametrize("method", ORDERS)
def test_orders_of_convergence(method, tolerances):
    about = {"args": (2.0,)}
    tight = {"rtol": 1e-13, "atol": 1e-14, "t_eval": [0.37, 1.0]}
    exact = integrate.solve_ivp(bent, (0.0, 1.0), [1.0, 0.5], "DOP853", **about, **tight).y

    loose = dict(zip(("rtol", "atol"), tolerances, strict=True))

    def errors(n):
        steps = {"first_step": 1.0 / n, "max_step": 1.0 / n, **loose}
        times = [0.37, 1.0]
        sol = solve_ivp(bent, (0.0, 1.0), [1.0, 0.5], method, times, **about, **steps)
        return np.max(np.abs(sol.y - exact), axis=0)

    inside, at_end = np.log2(errors(16) / errors(32))
    assert abs(at_end - ORDERS[method]) < 0.1
    assert inside > WITHIN[method]


@pytest.mark.parametrize("method", only_fast())
def test_outside_of_recordings_the_steps_are_the_same(method):
    options = {"args": (2.0,), "rtol": 1e-6, "atol": 1e-8}
    times = [0.37, 1.0]

    def inside(y0):
        sol = solve_ivp(bent, (0.0, 1.0), y0, method, times, **options)
        return sol.y, sol.nfev, sol.nlu

    outside = solve_ivp(bent, (0.0, 1.0), [1.0, 0.5], method, times, dense_output=True, **options)
    y, nfev, nlu = ckad.jit(inside)(np.array([1.0, 0.5]))
    np.testing.assert_allclose(y, outside.y, rtol=1e-12)
    np.testing.assert_allclose(outside.sol([0.37, 1.0]), outside.y, rtol=1e-12)
    assert (nfev, nlu) == (outside.nfev, outside.nlu)


def test_bdf_makes_scipys_steps():
    """Robertson's, and newer Jacobians where SciPy computes them by differences."""
    options = {"rtol": 1e-8, "atol": 1e-12}
    theirs = integrate.solve_ivp(
        robertson, (0.0, 40.0), [1.0, 0.0, 0.0], "BDF", [0.3, 40.0], args=(*RATES,), **options
    )

    def ours(k):
        args = k[0], k[1], k[2]
        times = [0.3, 40.0]
        sol = solve_ivp(robertson, (0.0, 40.0), [1.0, 0.0, 0.0], "BDF", times, args=args, **options)
        return sol.y, sol.nfev, sol.njev, sol.nlu

    y, *counts = ckad.jit(ours)(RATES)
    np.testing.assert_allclose(y, theirs.y, rtol=1e-9)
    assert counts == [theirs.nfev, theirs.njev, theirs.nlu]


@pytest.fixture(scope="module")
def sensitivities():
    """Of Robertson's second concentration at 40 by the logarithms of the rates."""

    def variational(t, w):
        a, b, c = w[:3]
        k1, k2, k3 = RATES
        by_y = [[-k1, k3 * c, k3 * b], [k1, -k3 * c - 2 * k2 * b, -k3 * b], [0, 2 * k2 * b, 0]]
        by_k = np.array([[-a, 0, b * c], [a, -b * b, -b * c], [0, b * b, 0]]) * RATES
        moved = np.array(by_y) @ w[3:].reshape(3, 3) + by_k
        return np.concatenate([robertson(t, w[:3], *RATES), moved.ravel()])

    begin = np.concatenate([[1.0], np.zeros(11)])
    sol = integrate.solve_ivp(variational, (0, 40), begin, "Radau", rtol=1e-10, atol=1e-15)
    return sol.y[6:9, -1]


@pytest.mark.parametrize("method", only_fast("Rodas5P"))
def test_gradient_of_robertsons(method, sensitivities):
    rtol = 1e-9 if method == "Kvaerno3" else 1e-10

    def end(log_k):
        k = RATES * np.exp(log_k)
        args = k[0], k[1], k[2]
        options = {"args": args, "rtol": rtol, "atol": 1e-16}
        return solve_ivp(robertson, (0.0, 40.0), [1.0, 0.0, 0.0], method, **options).y[1, -1]

    free = ckad.value_and_grad(end)(np.zeros(3))
    np.testing.assert_allclose(free[1], sensitivities, rtol=1e-7)
    tight = ckad.value_and_grad(end, memory=300_000)(np.zeros(3))
    assert free[0] == tight[0]
    np.testing.assert_array_equal(free[1], tight[1])


def brusselator(t, y, a, diffusion):
    """u and v in turn, with u = 1, v = 3 at both ends: Hairer & Wanner II, section IV.10."""
    n = y.size // 2
    w = np.concatenate([np.array([1.0, 3.0]), y, np.array([1.0, 3.0])]).reshape(n + 2, 2)
    spread = diffusion * (n + 1) ** 2 * (w[2:] - 2.0 * w[1:-1] + w[:-2])
    u, v = w[1:-1, 0], w[1:-1, 1]
    cubed = u * u * v
    return (spread + np.stack([a + cubed - 4.0 * u, 3.0 * u - cubed], axis=1)).reshape(-1)


CELLS = 24
BAND = sparse.diags_array([np.ones(2 * CELLS - abs(k)) for k in range(-2, 3)], offsets=range(-2, 3))
PLACES = np.arange(1, CELLS + 1) / (CELLS + 1)
START = np.stack([1.0 + np.sin(2.0 * np.pi * PLACES), np.full(CELLS, 3.0)], axis=1).ravel()


@pytest.mark.parametrize("method", [pytest.param(m, marks=slow) for m in STIFF])
def test_gradient_of_the_brusselator(method):
    """By a banded Jacobian and a dense one; against the variational equation."""

    def of_u(y):
        return np.sum(y[::2] ** 2)

    def end(p, pattern):
        rtol = 1e-8 if method == "Kvaerno3" else 1e-9
        options = {"args": (p[0], p[1]), "rtol": rtol, "atol": 1e-11, "jac_sparsity": pattern}
        return of_u(solve_ivp(brusselator, (0.0, 2.0), START, method, **options).y[:, -1])

    p = np.array([1.0, 0.02])
    n = START.size
    by_y = ckad.jit(lambda y: ckad.jacobian(lambda y: brusselator(0.0, y, 1.0, 0.02))(y))
    by_p = ckad.jit(lambda y: ckad.jacobian(lambda p: brusselator(0.0, y, p[0], p[1]))(p))

    def variational(t, w):
        y, moved = w[:n], w[n:].reshape(n, 2)
        return np.concatenate([brusselator(t, y, *p), (by_y(y) @ moved + by_p(y)).ravel()])

    begin = np.concatenate([START, np.zeros(2 * n)])
    tight = integrate.solve_ivp(variational, (0, 2), begin, "DOP853", rtol=1e-11, atol=1e-12)
    y, moved = tight.y[:n, -1], tight.y[n:, -1].reshape(n, 2)
    expected = ckad.grad(of_u)(y) @ moved
    for pattern in (BAND, None):
        value, gradient = ckad.value_and_grad(lambda p, of=pattern: end(p, of))(p)
        np.testing.assert_allclose(value, of_u(y), rtol=1e-7)
        np.testing.assert_allclose(gradient, expected, rtol=1e-7)


@pytest.mark.parametrize("method", only_fast())
def test_gradient_by_all_that_is_computed(method):
    """Of y(b) for dy/dt = -k (y - cos t) - sin t from y(a) = y0, whose solution is known."""

    def fun(t, y, k):
        return -k * (y - np.cos(t)) - np.sin(t)

    def end(y0, k, a, b):
        tight = {"rtol": 1e-9, "atol": 1e-11}
        times = np.stack([0.5 * (a + b), b])
        return np.sum(solve_ivp(fun, (a, b), y0, method, times, args=(k,), **tight).y)

    def exact(y0, k, a, b):
        apart = (y0[0] - np.cos(a)) * np.exp(-k * (np.array([0.5 * (a + b), b]) - a))
        return np.sum(np.cos(np.array([0.5 * (a + b), b])) + apart)

    at = np.array([2.0]), 30.0, 0.1, 0.3
    value, found = ckad.value_and_grad(end, argnums=(0, 1, 2, 3))(*at)
    expected = ckad.grad(exact, argnums=(0, 1, 2, 3))(*at)
    np.testing.assert_allclose(value, exact(*at), rtol=1e-7)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5)


@slow
@pytest.mark.parametrize("method", STIFF)
def test_first_and_second_derivatives(method):
    """Forward, reverse, and reverse over reverse, against those of an explicit method."""

    def end(w, method, digits):
        tight = {"rtol": 10.0**-digits, "atol": 10.0 ** -(digits + 2)}
        return solve_ivp(bent, (0.0, 1.0), [1.0, 0.5], method, args=(w,), **tight).y[0, -1]

    exact, found = (ckad.grad(lambda w, m=m, d=d: end(w, m, d)) for m, d in
                    (("DOP853", 12), (method, 8 if method == "Kvaerno3" else 9)))  # fmt: skip
    _, pushed = ckad.jvp(lambda w: end(w, method, 6), (2.0,), (1.0,))
    np.testing.assert_allclose(pushed, ckad.grad(lambda w: end(w, method, 6))(2.0), rtol=1e-12)
    np.testing.assert_allclose(found(2.0), exact(2.0), rtol=1e-6)
    np.testing.assert_allclose(ckad.grad(found)(2.0), ckad.grad(exact)(2.0), rtol=1e-5)


def of_equal_steps(w, method):
    steps = {"first_step": 0.25, "max_step": 0.25, "rtol": 1e-5, "atol": 1e10}
    return solve_ivp(bent, (0.0, 1.0), [1.0, 0.5], method, args=(w,), **steps).y[0, -1]


@pytest.mark.parametrize(
    ("method", "stages"),
    [("Kvaerno3", 3), ("Kvaerno5", 6), ("KenCarp4", 5), ("Rodas5P", 8), ("BDF", 1)],
)
def test_an_implicit_stage_is_reversed_by_one_transposed_solve(method, stages):
    def transposed(tape):
        here = [row for row in tape.rows if row.op is Op.CALL]
        solves = [row for row in here if routine_of(row).name == "lu_solve"]
        return sum(row.attrs[1] for row in solves) + sum(map(transposed, tape.bodies))

    assert transposed(ckad.trace(ckad.grad(lambda w: of_equal_steps(w, method)))(2.0)) == stages


@slow
@pytest.mark.parametrize("method", ["Kvaerno5", "Rodas5P"])
def test_third_derivatives(method):
    """Against those of an explicit method."""

    def end(w, method, digits):
        tight = {"rtol": 10.0**-digits, "atol": 10.0 ** -(digits + 2)}
        return solve_ivp(bent, (0.0, 1.0), [1.0, 0.5], method, args=(w,), **tight).y[0, -1]

    exact, found = (ckad.grad(ckad.grad(ckad.grad(lambda w, m=m, d=d: end(w, m, d))))(2.0)
                    for m, d in (("DOP853", 8), (method, 5)))  # fmt: skip
    np.testing.assert_allclose(found, exact, rtol=1e-3)


TIGHT = {"rtol": 1e-11, "atol": 1e-12}


def fall(t, y, g):
    return [y[1], -g]


def ground(t, y, g):
    return y[0]


ground.terminal, ground.direction = True, -1


@pytest.mark.parametrize("method", only_fast())
def test_a_bouncing_ball(method):
    def bounced(height, kept):
        t, q, v = 0.0, height, 0.0
        for _ in range(2):
            span = t, 100.0
            sol = solve_ivp(fall, span, [q, v], method, events=ground, args=(9.81,), **TIGHT)
            t, q, v = sol.t[-1], 0.0, -kept * sol.y[1, -1]
        return t

    value, gradient = ckad.value_and_grad(bounced, argnums=(0, 1))(10.0, 0.8)
    first = np.sqrt(20.0 / 9.81)
    np.testing.assert_allclose(value, 2.6 * first, rtol=1e-9)
    np.testing.assert_allclose(gradient, [value / 20.0, 2.0 * first], rtol=1e-9)


@pytest.mark.parametrize("method", only_fast("Rodas5P"))
def test_a_neuron_that_reaches_its_threshold(method):
    """du/dt = (current - u) / tau reaches u = 1 at t = -tau log(1 - 1 / current)."""

    def spike(t, u, current, tau):
        return u[0] - 1.0

    spike.terminal = True
    tight = {"rtol": 1e-12, "atol": 1e-13} if method in ("BDF", "Kvaerno3") else {**TIGHT}
    if method in ("Kvaerno5", "KenCarp4"):
        tight["max_step"] = 0.01  # their interpolants are cubic

    def first_spike(current, tau):
        def leak(t, u, current, tau):
            return (current - u) / tau

        args = current, tau
        sol = solve_ivp(leak, (0.0, 9.0), [0.0], method, events=spike, args=args, **tight)
        return sol.t_events[0][0]

    value, gradient = ckad.value_and_grad(first_spike, argnums=(0, 1))(1.5, 2.0)
    np.testing.assert_allclose(value, 2.0 * np.log(3.0), rtol=1e-9)
    np.testing.assert_allclose(gradient, [-2.0 / (1.5 * 0.5), np.log(3.0)], rtol=1e-9)


def stiff_part(t, y, k):
    return -k * (y - np.cos(t))


def slow_part(t, y, k):
    return -np.sin(t) + 0.0 * y


@slow
def test_an_imex_pair():
    """Of order four, with observables in place of states; its gradient is exact in the limit."""

    def end(k):
        options = {"args": (k,), "rtol": 1e-10, "atol": 1e-12}
        sol = solve_ivp(
            (slow_part, stiff_part), (0.0, 1.0), [2.0], "KenCarp4", [0.01, 1.0],
            saveat=lambda t, y, k: np.stack([y[0] ** 2, t * k]), **options,
        )  # fmt: skip
        return sol.y[0, 0], sol.y[1, 1]

    (square, product), (by_k, _) = ckad.jvp(end, (50.0,), (1.0,))
    y = np.cos(0.01) + np.exp(-0.5)
    np.testing.assert_allclose([square, product], [y * y, 50.0], rtol=1e-8)
    np.testing.assert_allclose(by_k, -2.0 * y * 0.01 * np.exp(-0.5), rtol=1e-6)
    outside = end(50.0)
    np.testing.assert_allclose([square, product], outside, rtol=1e-10)


@slow
def test_a_jacobian_of_the_users():
    """That of the iterations alone: a wrong one costs steps, and no digit of a derivative."""

    def end(y0, wrong):
        def jac(t, y, w):
            return np.array([[0.0, w], [-2.0 * w * y[0] * np.cos(t), -1.0]]) * (1.0 + wrong)

        options = {"args": (2.0,), "jac": jac, "rtol": 1e-10, "atol": 1e-12}
        return solve_ivp(bent, (0.0, 1.0), y0, "Kvaerno5", **options).y[0, -1]

    right, wrong = (ckad.grad(end)(np.array([1.0, 0.5]), x) for x in (0.0, 0.3))
    np.testing.assert_allclose(right, wrong, rtol=1e-7)


@pytest.mark.parametrize("method", only_fast("BDF"))
def test_a_step_that_becomes_too_small(method):
    def end(y0):
        return solve_ivp(lambda t, y: y**2, (0.0, 2.0), y0, method).y[0, -1]

    run = ckad.jit(end)
    with pytest.raises(RaisedError, match=r"test_stiff\.py"):
        run(np.array([1.0]))
    with pytest.raises(RaisedError):
        run(np.array([np.nan]))
    assert run(np.array([0.1])) == pytest.approx(0.125, rel=1e-3)


@slow
def test_a_pattern_that_lacks_elements():
    diagonal = np.eye(2 * CELLS)

    def end(p):
        about = {"args": (p, 0.02), "jac_sparsity": diagonal}
        return solve_ivp(brusselator, (0.0, 1.0), START, "Rodas5P", **about).y[0, -1]

    with pytest.raises(RaisedError, match=r"test_stiff\.py"):
        ckad.grad(end)(1.0)


@slow
@pytest.mark.parametrize("method", ["Kvaerno5", "Rodas5P"])
def test_statuses_outside(method):
    failed = solve_ivp(lambda t, y: y**2, (0.0, 2.0), [1.0], method)
    assert (failed.status, failed.success) == (-1, False)
    assert "step size is less than spacing" in failed.message


def test_a_singular_newton_matrix_shortens_the_step():
    """1 - h gamma k = 0 at the first step of Kvaerno5 with h = 1/13 and k = 50."""
    options = {"first_step": 1.0 / 13.0, "rtol": 1e-6, "atol": 1e-6}

    def end(k):
        sol = solve_ivp(lambda t, y: k * y, (0.0, 0.2), [1.0], "Kvaerno5", **options)
        return sol.y[0, -1]

    assert 1.0 - (1.0 / 13.0) * 0.26 * 50.0 == 0.0
    value, gradient = ckad.value_and_grad(end)(50.0)
    np.testing.assert_allclose([value, gradient], [np.exp(10.0), 0.2 * np.exp(10.0)], rtol=1e-3)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"y0": [1j, 0.0]}, ValueError, "real states"),
        ({"jac": np.eye(3)}, ValueError, "jac has shape"),
        ({"jac_sparsity": np.eye(3)}, ValueError, "jac_sparsity has shape"),
        ({"method": "RK45", "jac": np.eye(2)}, TypeError, "RK45 has no option jac"),
        ({"fun": (bent, bent)}, ValueError, "is for KenCarp4 alone"),
        ({"fun": (bent,), "method": "KenCarp4"}, ValueError, "1 parts"),
        ({"saveat": lambda t, y: y}, ValueError, "t_eval="),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_bad_input(options, error, message):
    options = {"fun": lambda t, y: -y, "y0": [1.0, 2.0], "method": "Rodas5P", **options}
    with pytest.raises(error, match=message):
        ckad.jit(lambda x: solve_ivp(t_span=(0.0, 1.0), **options).t[-1] * x)(1.0)


class OfOneOrder(Bdf):
    """BDF whose steps and order stay as they are, solved to rounding."""

    def _norm(self, constants, order, d, y):
        return 0.0 * d[0]

    def _next(self, order, made, d, y, safety):
        return order, 1.0


@pytest.mark.parametrize("order", [pytest.param(k, marks=slow) for k in range(1, 6)])
def test_orders_of_bdf(order):
    """Of y' = -y^2 cos(t), which is known before the first step, too."""

    def exact(t):
        return 1.0 / (1.5 + np.sin(t))

    def error(n):
        h = 1.0 / n
        before = exact(1.0 - h * np.arange(ROWS))
        table = [np.diff(before, k)[0] * (-1) ** k if k <= order else 0.0 for k in range(ROWS)]

        def end(y0):
            asked = problem(lambda t, y: -(y**2) * np.cos(t), (1.0, 2.0), y0, None, None)
            about = control(1e-12, 1e-12, h, h, False, asked)
            both = systems(asked, asked.fun, None, None, ())
            run = OfOneOrder(asked, about, [], (both, both))
            state = {**run.begin(), "order": np.int64(order)}
            state["differences"] = np.array(table)[:, np.newaxis] + 0.0 * state["differences"]
            return run.to(state, 2.0)["y"][0]

        return abs(ckad.jit(end)(np.array([exact(1.0)])) - exact(2.0))

    measured = np.log2(error(32) / error(64))
    assert abs(measured - order) < 0.25, measured
