"""Input that does not fit, to methods of each kind: SciPy's status, or an error with the line."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import integrate

import ckad
from ckad.errors import CkadError, RaisedError
from ckad.integrate import solve_ivp

nan = np.nan
#: One method of each kind, with the least that it needs.
KINDS: dict[str, dict[str, Any]] = {"RK45": {}, "Rodas5P": {}, "BDF": {}, "RK4": {"n_steps": 8}}
LONGER = [m if m in ("RK45", "RK4") else pytest.param(m, marks=pytest.mark.slow) for m in KINDS]


def decay(t, y):
    return -y


def returning(dy):
    return {"fun": lambda t, y: dy}


#: What each method refuses, outside of recordings and within.
REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "rtol negative": ({"rtol": -1e-3}, ValueError, "rtol=-0.001"),
    "rtol NaN": ({"rtol": nan}, ValueError, "rtol=nan"),
    "rtol None": ({"rtol": None}, TypeError, "rtol=None; give a number"),
    "rtol a text": ({"rtol": "1e-3"}, TypeError, "rtol='1e-3'; give a number"),
    "rtol complex": ({"rtol": 1e-3j}, TypeError, "rtol=0.001j; give a number"),
    "atol NaN": ({"atol": nan}, ValueError, "atol=nan"),
    "atol of another shape": ({"atol": [1e-3] * 3}, ValueError, r"atol has shape \(3,\)"),
    "t_span NaN": ({"t_span": (0.0, nan)}, ValueError, "t_span holds nan"),
    "t_span infinite": ({"t_span": (0.0, np.inf)}, ValueError, "t_span holds inf"),
    "t_span None": ({"t_span": (0.0, None)}, TypeError, "an end of t_span is None"),
    "t_span of texts": ({"t_span": ("a", "b")}, TypeError, "an end of t_span is .*a"),
    "t_span of arrays": ({"t_span": ([0.0, 1.0], 2.0)}, ValueError, "both ends must be"),
    "t_span of three": ({"t_span": (0.0, 1.0, 2.0)}, ValueError, "give its two ends"),
    "t_span a number": ({"t_span": 1.0}, ValueError, "give its two ends"),
    "t_eval beyond": ({"t_eval": [0.5, 1.5]}, ValueError, "reaches out of t_span"),
    "t_eval NaN": ({"t_eval": [0.5, nan]}, ValueError, "reaches out of t_span"),
    "t_eval unsorted": ({"t_eval": [0.5, 0.2]}, ValueError, "not sorted"),
    "t_eval twice": ({"t_eval": [0.5, 0.5]}, ValueError, "not sorted"),
    "t_eval of two axes": ({"t_eval": [[0.5]]}, ValueError, "1-D"),
    "y0 NaN": ({"y0": [nan, 1.0]}, ValueError, "all of it must be finite"),
    "y0 infinite": ({"y0": [np.inf, 1.0]}, ValueError, "all of it must be finite"),
    "y0 a number": ({"y0": 1.0}, ValueError, r"y0 has shape \(\)"),
    "y0 of two axes": ({"y0": [[1.0, 2.0]]}, ValueError, r"y0 has shape \(1, 2\)"),
    "args a number": ({"args": 2.0}, TypeError, "args is a float; give a tuple"),
    "no such method": ({"method": "RK46"}, ValueError, "Take one of"),
    "no such option": ({"nonsense": 1}, TypeError, "no option nonsense; solve_ivp has rtol, atol"),
    "first_step negative": ({"first_step": -0.1}, ValueError, "first_step"),
    "max_step 0": ({"max_step": 0.0}, ValueError, "max_step"),
    "y0 a text": ({"y0": "ab"}, TypeError, "y0 is 'ab'|dtype <U2"),
    "y0 of several lengths": ({"y0": [1.0, [2.0, 3.0]]}, TypeError, "y0 is"),
    "t_eval a dict": ({"t_eval": {"a": 1.0}}, TypeError, "t_eval is|dtype object"),
    "saveat a dict": (
        {"t_eval": [0.5], "saveat": lambda t, y: {"a": y[0]}},
        TypeError,
        "what saveat returns is|dtype object",
    ),
    "fun a dict": (returning({"a": 1.0}), TypeError, "what fun returns is|dtype object"),
    "fun None": (returning(None), (TypeError, ValueError), "fun returns None"),
}


@pytest.mark.parametrize("method", LONGER)
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(method, name):
    options, error, message = REFUSED[name]
    whole = {"fun": decay, "t_span": (0.0, 1.0), "y0": [1.0, 2.0], "method": method}
    whole |= KINDS[method] | options

    def end(x):
        return x * solve_ivp(**whole).t[-1]

    with pytest.raises(error, match=message) as told:
        end(1.0)
    assert re.search(r"test_bad_input\.py:\d+: ", str(told.value))
    with pytest.raises(error, match=message) as told:
        ckad.grad(end, engine="vm")(1.0)
    assert re.search(r"test_bad_input\.py:\d+: ", str(told.value))


#: What ends a run: the right side, and the state it begins with.
ENDED: dict[str, tuple[Any, list[float]]] = {
    "no bound": (lambda t, y, x: 9.0 * x * y**2, [1.0, 2.0]),
    "NaN later": (lambda t, y, x: -x * y * np.sqrt(0.5 - t), [1.0, 2.0]),
}


@pytest.mark.parametrize("method", LONGER)
@pytest.mark.parametrize("name", ENDED)
@pytest.mark.parametrize("t_eval", [None, [0.01, 0.9]], ids=["steps", "t_eval"])
def test_a_solution_that_ends_has_a_status_or_stops_the_program(method, name, t_eval):
    fun, y0 = ENDED[name]

    def solved(x):
        return solve_ivp(
            fun, (0.0, 1.0), y0, method, t_eval, args=(x,), n_steps=KINDS[method].get("n_steps")
        )

    if method != "BDF" or name == "no bound":  # SciPy's LU decomposition refuses NaN
        with np.errstate(all="ignore"):
            found = solved(1.0)
        assert (found.status, found.success) == (-1, False)
        assert np.all(np.isfinite(found.y))
        assert found.t.size == found.y.shape[1] < 1000
        if t_eval is not None:
            np.testing.assert_array_equal(found.t, [0.01])
    with pytest.raises(RaisedError, match=r"test_bad_input\.py:\d+: a st"):
        ckad.grad(lambda x: np.sum(solved(x).y[:, -1]), engine="vm")(1.0)


@pytest.mark.parametrize("method", LONGER)
def test_a_state_that_is_computed_and_not_finite_stops_the_program(method):
    def end(y0):
        return solve_ivp(decay, (0.0, 1.0), y0, method, **KINDS[method]).y[0, -1]

    with pytest.raises(RaisedError, match=r"test_bad_input\.py:\d+: a st"):
        ckad.grad(end, engine="vm")(np.array([nan, 1.0]))


def test_a_right_side_that_begins_with_nan_ends_outside_too():
    """SciPy's own steps would be tried for ever."""
    with pytest.raises(ValueError, match=r"test_bad_input\.py:\d+: fun returns \[nan nan\] at the"):
        solve_ivp(lambda t, y: nan * y, (0.0, 1.0), [1.0, 2.0])


@pytest.mark.parametrize("method", LONGER)
def test_backwards(method):
    """From the later end to the earlier one, its derivative by both ends, and by the rate."""

    def end(x, t0, tf):
        sol = solve_ivp(lambda t, y: -x * y, (t0, tf), [1.0], method, **about)
        return sol.y[0, -1]

    about = {"n_steps": 60} if method == "RK4" else {"rtol": 1e-8, "atol": 1e-9}
    value, slopes = ckad.value_and_grad(end, (0, 1, 2), engine="vm")(0.7, 1.0, 0.2)
    exact = np.exp(0.56)
    assert value == pytest.approx(exact, rel=2e-6)
    np.testing.assert_allclose(slopes, [0.8 * exact, 0.7 * exact, -0.7 * exact], rtol=1e-5)


@pytest.mark.parametrize("method", LONGER)
def test_a_span_without_length(method):
    def end(y0):
        sol = solve_ivp(decay, (0.5, 0.5), y0, method, [0.5], **KINDS[method])
        return np.sum(sol.y**2)

    assert ckad.value_and_grad(end, engine="vm")(np.array([2.0]))[0] == 4.0
    assert ckad.grad(end, engine="vm")(np.array([2.0])) == [4.0]


TAKEN = {
    "integers": {"y0": [1, 2]},
    "float32": {"y0": np.array([1.0, 2.0], np.float32)},
    "bools": {"y0": (True, False)},
    "complex": {"y0": [1j, 2.0]},
    "a span of integers": {"t_span": np.array([0, 1])},
    "times of integers": {"t_eval": np.array([0, 1])},
    "a list of arguments": {"args": [0.5], "fun": lambda t, y, a: -a * y},
    "an array of arguments": {
        "args": np.array([0.5, 2.0]),
        "fun": lambda t, y, a, b: -a * b * y,
    },
    "a tuple": {"fun": lambda t, y: (-y[0], -y[1])},
    "a row": {"fun": lambda t, y: (-y)[np.newaxis]},
    "a derivative of bools": {"fun": lambda t, y: y > 0.5},
    "vectorized": {"vectorized": True, "fun": lambda t, y: np.vstack((y[1], -y[0]))},
    "rtol of each": {"rtol": [1e-3, 1e-5]},
    "atol of each": {"atol": [1e-3, 1e-9]},
    "steps": {"max_step": 0.1, "first_step": 0.05},
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_scipy_takes_is_taken(name):
    whole = {"fun": decay, "t_span": (0.0, 1.0), "y0": [1.0, 2.0], **TAKEN[name]}
    expected = integrate.solve_ivp(**whole)
    plain = solve_ivp(**whole)
    np.testing.assert_array_equal(plain.y, expected.y)

    def end(x):
        sol = solve_ivp(**whole)
        return x * sol.y[:, -1], sol.nfev

    last, nfev = ckad.jit(end, engine="vm")(1.0)
    np.testing.assert_allclose(last, expected.y[:, -1], rtol=1e-12)
    assert nfev == expected.nfev


def counted(g, terminal=None, direction=0.0):
    def event(t, y):
        return g(t, y)

    event.terminal, event.direction = terminal, direction
    return event


EVENTS = {
    "never": counted(lambda t, y: y[0] + 9.0, True),
    "terminal": counted(lambda t, y: y[0], True),
    "a count": counted(lambda t, y: y[0], 3),
    "a count upwards": counted(lambda t, y: y[0], 2, 1),
    "downwards": counted(lambda t, y: y[0], None, -2.5),
    "a direction that is NaN": counted(lambda t, y: y[0], True, nan),
    "a value that is NaN": counted(lambda t, y: nan * y[0], True),
    "an array of one": counted(lambda t, y: y[:1], np.True_),
    "of time": counted(lambda t, y: t - 1.3, 1),
    "at the end": counted(lambda t, y: t - 3.0, True),
    "not terminal": counted(lambda t, y: y[0], False),
}


def wave(t, y):
    return [y[1], -9.0 * y[0]]


@pytest.mark.parametrize("method", ["RK45", pytest.param("BDF", marks=pytest.mark.slow)])
@pytest.mark.parametrize("span", [(0.0, 3.0), (3.0, 0.0)], ids=["forward", "backward"])
def test_events_are_scipys(method, span):
    """Each of them alone: the times, how many, where the run ends, and its status."""
    for name, event in EVENTS.items():
        same = counted(lambda t, y, e=event: np.reshape(e(t, y), ()), event.terminal,
                       event.direction)  # fmt: skip
        expected = integrate.solve_ivp(wave, span, [1.0, 0.2], method, events=same)

        def end(x, event=event):
            sol = solve_ivp(wave, span, [1.0, 0.2], method, events=event)
            times = sol.t_events[0]
            return x * sol.t[-1], sol.status, times.size, np.sum(times), sol.nfev

        *found, total, nfev = ckad.jit(end, engine="vm")(1.0)
        times = expected.t_events[0]
        want = expected.t[-1], expected.status, times.size, times.sum()
        np.testing.assert_allclose([*found, total], want, rtol=1e-8, err_msg=name)
        assert nfev == expected.nfev, name


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (counted(lambda t, y: y, True), r"cannot reshape array of size 2"),
        (counted(lambda t, y: None, True), "None"),
        (counted(lambda t, y: y[0], -1), "terminal=-1"),
        (counted(lambda t, y: y[0], 1.5), "terminal=1.5"),
        (3, "'int' object is not callable"),
    ],
)
def test_events_that_are_none(event, message):
    def end(x):
        return x * solve_ivp(wave, (0.0, 1.0), [1.0, 0.2], events=event).t[-1]

    with pytest.raises((CkadError, ValueError, TypeError), match=message):
        ckad.jit(end, engine="vm")(1.0)


def test_an_event_that_is_always_zero():
    """A zero at once; it has no slope, so that its time has no derivative."""

    def end(x):
        event = counted(lambda t, y: 0.0 * y[0], True)
        return x * solve_ivp(wave, (0.0, 1.0), [1.0, 0.2], events=event).t[-1]

    assert end(1.0) == 0.0
    with pytest.raises(RaisedError, match=r"test_bad_input\.py:\d+: "):
        ckad.grad(end, engine="vm")(1.0)


@pytest.mark.parametrize("method", LONGER)
def test_a_state_without_elements_is_no_error(method):
    def total(x):
        sol = solve_ivp(lambda t, y: -x * y, (0.0, 2.0), np.zeros(0), method, **KINDS[method])
        return x * (1.0 + np.sum(sol.y[:, -1]))

    assert ckad.value_and_grad(total)(0.7) == (0.7, 1.0)
