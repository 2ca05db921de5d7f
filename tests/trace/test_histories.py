"""What iterative solvers hand over: a list of residuals as long as there were steps, in a tuple, an
object or a dict."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest

import ckad
from ckad.errors import AsRunWarning

X = np.array([1.0, 2.0])
#: What is a history here: halved until small.
MOST = 1_000


class Solution:
    def __init__(self, x, history):
        self.x, self.history = x, history


def halved(x):
    history = []
    for _ in range(MOST):
        x = 0.5 * x
        history.append(np.sum(x))
        if np.sum(x) < 1e-2:
            break
    return x, history


def after_a_branch(x):
    def solve():
        now, history = halved(x)
        if np.sum(now) < 1e-3:
            return now, history
        return 2.0 * now, history

    now, history = solve()
    return np.sum(now**2) + len(history) * np.sum(x) + sum(history)


def or_an_error(x):
    def solve():
        now, history = halved(x)
        if np.sum(now) < 1e-1:
            return now, history
        raise RuntimeError

    now, history = solve()
    return np.sum(now**2) + len(history) * np.sum(x)


def in_an_object(x):
    def solve():
        now, history = halved(x)
        if np.sum(now) < 1e-3:
            return Solution(now, history)
        return Solution(2.0 * now, history)

    found = solve()
    return np.sum(found.x**2) + len(found.history) * np.sum(x)


def in_a_dict(x):
    def solve():
        now, history = halved(x)
        if np.sum(now) < 1e-3:
            return now, {"history": history, "order": [1.0]}
        return now, {"history": history, "order": [2.0]}

    now, found = solve()
    return np.sum(now**2) + len(found["history"]) * found["order"][0] * np.sum(x)


def carried_on(x):
    found = halved(x)
    for _ in range(10):
        found = 0.5 * found[0], found[1]
    return np.sum(found[0]) + len(found[1]) * np.sum(x)


def longer_later(x):
    history = halved(x)[1]

    def solve():
        if x[0] > 0.5:
            return x, history
        return 2.0 * x, history

    _, shown = solve()
    history.append(x[0])
    return len(shown) * shown[-1]


HISTORIES = [after_a_branch, or_an_error, in_an_object, in_a_dict, carried_on, longer_later]


@pytest.mark.parametrize("fun", HISTORIES, ids=lambda fun: fun.__name__)
def test_a_list_in_what_is_merged_or_carried_keeps_its_items(fun):
    check(fun)


# --- returned out of the loop --------------------------------------------------------------------


@dataclass
class Result:
    x: np.ndarray
    steps: int
    converged: bool
    history: list = field(default_factory=list)
    method: str = ""


class Pair(NamedTuple):
    x: np.ndarray
    history: list


def as_a_tuple(x):
    history = []
    for step in range(1, MOST):
        x = 0.5 * x
        history.append(np.sum(x))
        if np.sum(x) < 1e-2:
            return x, step, history
    return x, MOST, history


def or_it_fails(x):
    history = []
    for step in range(1, MOST):
        x = 0.5 * x
        history.append(np.sum(x))
        if np.sum(x) < 1e-2:
            return x, step, history
    raise RuntimeError("no convergence")


def as_a_dataclass(x):
    history = [np.sum(x)]
    for step in range(1, MOST):
        x = 0.5 * x
        history.append(np.sum(x))
        if np.sum(x) < 1e-2 * history[0]:
            shown = 2.0 * x
            return Result(shown, step, True, history, "halving")
    return Result(x, MOST, False, history, "halving")


def as_a_named_tuple(x):
    history = []
    while True:
        x = 0.5 * x
        history.append(np.sum(x))
        if np.sum(x) < 1e-2:
            return Pair(x, history)


def in_either_of_two_ways(x):
    history, best = [], x
    for step in range(1, MOST):
        x = 0.5 * x
        history.append(np.sum(x))
        if np.sum(x) < 1e-2:
            if x[0] < 1e-4:
                return {"x": x, "steps": 1, "history": history}
            best = 3.0 * x
            return {"x": best, "steps": step, "history": history}
        elif step > 500:
            return {"x": 4.0 * best, "steps": 2, "history": history}
    return {"x": best, "steps": step, "history": history}


def in_the_inner_of_two_loops(x):
    history = []
    for _ in range(20):
        for _ in range(20):
            x = 0.9 * x
            if np.sum(x) < 1e-2:
                return [2.0 * x[0], x[1]]
        history.append(np.sum(x))
    return [x[0], sum(history)]


def weighed(solve):
    def total(x):
        found = solve(x)
        history = found[-1]
        return np.sum(found[0] ** 2) + len(history) * np.sum(x) + sum(history) + history[-1]

    return total


def of_result(x):
    found = as_a_dataclass(x)
    said = found.steps if found.converged and found.method == "halving" else 0
    return np.sum(found.x) * said + len(found.history) * np.sum(x) + found.history[-1]


def of_a_dict(x):
    found = in_either_of_two_ways(x)
    return np.sum(found["x"]) * found["steps"] + len(found["history"]) * np.sum(x)


def of_numbers(x):
    one, other = in_the_inner_of_two_loops(x)
    return one**2 + other


SOLVERS = {
    "a tuple": weighed(as_a_tuple),
    "or it fails": weighed(or_it_fails),
    "a dataclass": of_result,
    "a named tuple": weighed(as_a_named_tuple),
    "two ways": of_a_dict,
    "an inner loop": of_numbers,
}


@pytest.mark.parametrize("name", SOLVERS)
def test_a_loop_that_returns_a_history_is_recorded_once(name):
    check(SOLVERS[name])


def test_a_returned_history_has_the_same_bits_within_a_budget():
    whole = ckad.value_and_grad(of_result, engine="vm")(X)
    within = ckad.value_and_grad(of_result, engine="vm", memory="64 KiB")(X)
    assert whole[0] == within[0]
    np.testing.assert_array_equal(whole[1], within[1])


def left_within_a_context(x):
    if np.sum(x) == 0.0:
        return Result(x, 0, True, [0.0])
    history = [np.sum(x)]
    for step in range(1, MOST):
        with np.errstate(all="ignore"):
            x = 0.5 * x
            history.append(np.sum(x))
            if np.sum(x) < 1e-2:
                return Result(x, step, True, history)
    return Result(x, MOST, False, history)


def test_a_loop_that_cannot_be_recorded_once_is_soon_recorded_as_it_runs():
    def total(x):
        found = left_within_a_context(x)
        return np.sum(found.x) * found.steps

    with pytest.warns(AsRunWarning) as told:
        value, gradient = ckad.value_and_grad(total, engine="vm")(X)
    assert "deeper than can be recorded" not in str(told[0].message)
    assert value == pytest.approx(total(X), rel=1e-14)
    steps = left_within_a_context(X).steps
    np.testing.assert_allclose(gradient, steps * 0.5**steps)


def check(fun, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error", AsRunWarning)  # it is recorded once
        found, gradient = ckad.value_and_grad(fun, **options)(X)
    assert found == pytest.approx(fun(X), rel=1e-14)
    steps = 1e-6 * np.eye(len(X))
    differences = [(fun(X + step) - fun(X - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-7)
