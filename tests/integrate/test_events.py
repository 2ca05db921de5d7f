"""Events: their times, states and derivatives against closed forms, their order against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

import ckad
from ckad.errors import RaisedError
from ckad.integrate import solve_ivp
from ckad.integrate.methods import METHODS
from ckad.integrate.tableaux import PAIRS

G = 9.81
TIGHT = {"rtol": 1e-11, "atol": 1e-12}


def fall(t, y, g):
    return [y[1], -g]


def ground(t, y, g):
    return y[0]


ground.terminal = True
ground.direction = -1


@pytest.mark.parametrize("method", PAIRS)
def test_the_time_of_a_fall(method):
    def landing(height, g):
        sol = solve_ivp(fall, (0.0, 9.0), [height, 0.0], method, events=ground, args=(g,))
        return sol.t_events[0][0]

    value, gradient = ckad.value_and_grad(landing, argnums=(0, 1))(10.0, G)
    t = np.sqrt(20.0 / G)
    np.testing.assert_allclose(value, t, rtol=1e-12)
    np.testing.assert_allclose(gradient, [t / 20.0, -0.5 * t / G], rtol=1e-9)


@pytest.mark.slow
def test_the_second_derivative_of_a_fall():
    def landing(height):
        sol = solve_ivp(fall, (0.0, 9.0), [height, 0.0], "RK23", events=ground, args=(G,))
        return sol.t_events[0][0]

    second = ckad.grad(lambda height: ckad.grad(landing)(height))(10.0)
    np.testing.assert_allclose(second, -np.sqrt(20.0 / G) / 400.0, rtol=1e-9)


def bounced(height, kept, n):
    """The time of the n-th contact; the velocity is multiplied by -kept at each."""
    t, q, v = 0.0, height, 0.0
    for _ in range(n):
        sol = solve_ivp(fall, (t, 100.0), [q, v], events=ground, args=(G,), **TIGHT)
        t, q, v = sol.t[-1], 0.0, -kept * sol.y[1, -1]
    return t


@pytest.mark.usefixtures("engine")
def test_a_bouncing_ball():
    value, gradient = ckad.value_and_grad(bounced, argnums=(0, 1))(10.0, 0.8, 2)
    first = np.sqrt(20.0 / G)
    np.testing.assert_allclose(value, first * (1.0 + 2.0 * 0.8), rtol=1e-11)
    np.testing.assert_allclose(gradient, [value / 20.0, 2.0 * first], rtol=1e-9)


def leak(t, u, current, tau):
    return (current - u) / tau


def spike(t, u, current, tau):
    return u[0] - 1.0


spike.terminal = True


def first_spike(current, tau, method):
    """du/dt = (current - u) / tau, reset at u = 1: t = -tau log(1 - 1 / current)."""
    close = {"rtol": 1e-10, "atol": 1e-11} if method in ("RK23", "Kvaerno3") else TIGHT
    about = {"method": method, "events": spike, "args": (current, tau), **close}
    sol = solve_ivp(leak, (0.0, 9.0), [0.0], **about)
    return sol.t_events[0][0] + sol.y_events[0][0, 0] + 0.1 * sol.y[0, -1] ** 2


@pytest.mark.parametrize("method", METHODS)
def test_a_neuron_that_reaches_its_threshold(method):
    value, gradient = ckad.value_and_grad(first_spike, argnums=(0, 1))(1.5, 2.0, method)
    np.testing.assert_allclose(value, 2.0 * np.log(3.0) + 1.1, rtol=1e-9)
    np.testing.assert_allclose(gradient, [-2.0 / (1.5 * 0.5), np.log(3.0)], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["RK45", "Kvaerno5", "KenCarp4"])
def test_the_second_derivative_of_a_spike(method):
    """By the current: tau (2 I - 1) / (I (I - 1))^2."""
    second = ckad.grad(lambda x: ckad.grad(lambda c: first_spike(c, 2.0, method))(x))(1.5)
    np.testing.assert_allclose(second, 2.0 * 2.0 / 0.75**2, rtol=1e-6)


def swing(t, y):
    return [y[1], -y[0]]


def through(t, y):
    return y[0]


def turning(t, y):
    return y[1]


def third(t, y):
    return y[0]


turning.direction = 1
third.terminal = 3


def test_several_events_are_scipys():
    def ours(a):
        sol = solve_ivp(swing, (0.0, 20.0), [a, 0.3], events=(through, turning), rtol=1e-8)
        return [
            *(sol.t_events[0][k] for k in range(6)),
            *(sol.t_events[1][k] for k in range(3)),
            *(sol.y_events[0][5], len(sol.t_events[0]), len(sol.t_events[1]), sol.status),
        ]

    theirs = integrate.solve_ivp(
        swing, (0.0, 20.0), [1.0, 0.3], events=(through, turning), rtol=1e-8
    )
    found = ckad.jit(ours)(1.0)
    np.testing.assert_allclose(found[:6], theirs.t_events[0], rtol=1e-12)
    np.testing.assert_allclose(found[6:9], theirs.t_events[1], rtol=1e-12)
    np.testing.assert_allclose(found[9], theirs.y_events[0][5], atol=1e-12)
    assert [int(x) for x in found[10:]] == [6, 3, 0]


def test_the_third_zero_ends_the_run():
    times = np.linspace(0.0, 20.0, 41)

    def ours(a):
        sol = solve_ivp(swing, (0.0, 20.0), [a, 0.3], t_eval=times, events=third, **TIGHT)
        return sol.t_events[0][2], np.sum(sol.y[0] ** 2), sol.t.shape[0], sol.status

    def third_time(a):
        time, *others = ours(a)
        return time, others

    (time, (value, count, status)), by_a = ckad.value_and_grad(third_time, has_aux=True)(1.0)
    theirs = integrate.solve_ivp(
        swing, (0.0, 20.0), [1.0, 0.3], t_eval=times, events=third, **TIGHT
    )
    np.testing.assert_allclose(value, np.sum(theirs.y[0] ** 2), rtol=1e-10)
    assert (count, status) == (len(theirs.t), theirs.status) == (17, 1)
    np.testing.assert_allclose(time, theirs.t_events[0][2], rtol=1e-12)
    np.testing.assert_allclose(by_a, -0.3 / 1.09, rtol=1e-9)  # t = 3 pi - atan(a / 0.3)


def test_of_two_events_at_one_time_the_first_that_ends_the_run_is_the_last():
    def at_level(scale, ends):
        def event(t, y):
            return scale * (y[0] - 1.0)

        event.terminal = ends
        return event

    for ends in ((True, True), (False, True), (True, False)):
        events = [at_level(1.0, ends[0]), at_level(2.0, ends[1])]

        def counts(rate, events=events):
            sol = solve_ivp(lambda t, y: [rate], (0.0, 4.0), [0.0], events=events)
            return [len(t) for t in sol.t_events]

        assert [int(n) for n in ckad.jit(counts, engine="vm")(1.0)] == counts(1.0)


def test_no_event_is_found_where_there_is_none():
    def count(a):
        sol = solve_ivp(swing, (0.0, 1.0), [a, 0.0], events=third)
        return len(sol.t_events[0]) + sol.status + 0.0 * a

    assert ckad.jit(count)(1.0) == 0


def test_more_events_than_there_is_room_for():
    def last(a):
        sol = solve_ivp(swing, (0.0, 20.0), [a, 0.3], events=through, max_events=3)
        return sol.t_events[0][-1]

    with pytest.raises(RaisedError):
        ckad.jit(last)(1.0)


def test_a_zero_that_is_only_touched_has_no_derivative():
    def touched(t, y):
        return y[0] ** 2 * 0.0

    touched.terminal = True
    with pytest.raises(RaisedError):
        ckad.grad(lambda a: solve_ivp(swing, (0.0, 1.0), [a, 0.0], events=touched).t[-1])(1.0)


def heated(t, y, a):
    return [30.0 - a * (y[0] - 10.0)]


def cooling(t, y, a):
    return [-a * (y[0] - 10.0)]


def by_events_of_each_phase(a):
    t, temperature, heating = 0.0, 15.0, True
    while t < 0.85:
        wanted = 21.0 if heating else 19.0

        def event(t, y, a, wanted=wanted):
            return y[0] - wanted

        event.terminal = True
        event.direction = 1 if heating else -1
        end = integrate.solve_ivp(
            heated if heating else cooling, (t, 99.0), [temperature], args=(a,),
            events=[event], rtol=1e-10, atol=1e-10,
        )  # fmt: skip
        t, temperature, heating = end.t[-1], end.y[0, -1], not heating
    return t


def by_functions_that_take_turns(a):
    def warm(t, y, a):
        return y[0] - 21.0

    def cold(t, y, a):
        return y[0] - 19.0

    warm.terminal = cold.terminal = True
    warm.direction, cold.direction = 1, -1
    t, temperature, k = 0.0, 15.0, 0
    while t < 0.85:
        rates, event = (heated, warm) if k % 2 == 0 else (cooling, cold)
        end = integrate.solve_ivp(
            rates, (t, 99.0), [temperature], events=event, args=(a,), rtol=1e-10, atol=1e-10
        )
        t, temperature, k = end.t[-1], end.y[0, -1], k + 1
    return t


@pytest.mark.parametrize("time", [by_events_of_each_phase, by_functions_that_take_turns])
def test_functions_that_each_step_makes_or_chooses_are_events(time):
    def known(a):
        def phase(begin, end, at_rest):
            return np.log((at_rest - begin) / (at_rest - end)) / a

        on, off = 10.0 + 30.0 / a, 10.0
        return phase(15.0, 21.0, on) + 2 * phase(21.0, 19.0, off) + 2 * phase(19.0, 21.0, on)

    value, by_a = ckad.value_and_grad(time)(0.9)
    np.testing.assert_allclose(value, known(0.9), rtol=1e-9)
    np.testing.assert_allclose(by_a, known(0.9 + 1e-20j).imag / 1e-20, rtol=1e-8)
