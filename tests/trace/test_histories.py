"""What iterative solvers hand over: a list of residuals as long as there were steps, in a tuple, an
object or a dict."""

from __future__ import annotations

import warnings

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


def check(fun, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error", AsRunWarning)  # it is recorded once
        found, gradient = ckad.value_and_grad(fun, **options)(X)
    assert found == pytest.approx(fun(X), rel=1e-14)
    steps = 1e-6 * np.eye(len(X))
    differences = [(fun(X + step) - fun(X - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-7)
