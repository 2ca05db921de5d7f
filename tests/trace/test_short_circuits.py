"""What ``and``, ``or`` and chained comparisons leave out leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad

from .idioms import check

AT = (0.23, 0.77, 4.3)


def a_name_is_bound(x):
    t = 0.0 * x
    if x > 0.5 and (t := x * x) > 3:
        t = t + 1.0
    return t + x


def a_function_writes_into_a_list(x):
    seen = [0.0 * x]

    def below(v):
        seen[0] = seen[0] + v * v
        return v < 1

    if x > 0.5 and below(x):
        seen[0] = 2.0 * seen[0]
    if x > 0.5 or below(3.0 * x):
        seen[0] = seen[0] + x
    return seen[0] + x


def a_function_changes_a_name_around(x):
    count = 0
    total = x

    def above(v):
        nonlocal count, total
        count += 1
        total = total + v * count
        return v > 1

    for k in range(6):
        if x > 0.1 * k and above(x + k) and not above(x * k):
            total = total * 0.5
    return total + count


class Meter:
    def __init__(self):
        self.n = 0.0

    def ask(self, v):
        self.n = self.n + v
        return v > 1


def an_object_counts(x):
    meter = Meter()
    verdict = x > 0.5 and (x > 0.6 or meter.ask(x)) and not meter.ask(2 * x)
    return meter.n * x + (1.0 if verdict else x)


def a_list_is_appended_to(x):
    found = [x]

    def add(v):
        found.append(v)
        return v > 1

    while x > 0.5 and add(x):
        x = 0.5 * x
    return sum(found) * x


def a_chained_comparison_binds(x):
    t = 0.0 * x
    if 0.5 < x < (t := x * x):
        t = t + x
    return t + x


def a_chained_comparison_calls(x):
    seen = [0.0 * x]

    def twice(v):
        seen[0] = seen[0] + v
        return 2 * v

    chosen = 1.0 if 0.5 < x <= twice(x) < 8 != twice(3.0 * x) else 2.0
    return seen[0] * x + chosen * x


@pytest.mark.parametrize("x", AT)
@pytest.mark.parametrize(
    "function",
    [
        a_name_is_bound,
        a_function_writes_into_a_list,
        a_function_changes_a_name_around,
        an_object_counts,
        a_list_is_appended_to,
        a_chained_comparison_binds,
        a_chained_comparison_calls,
    ],
    ids=lambda function: function.__name__,
)
def test_what_is_left_out_does_nothing(function: Callable[..., Any], x: float) -> None:
    check(function, x)


def test_a_divisor_is_asked_for_zero_before() -> None:
    def function(x: Any) -> Any:
        k = int(x)
        return x * x if k != 0 and 7 % k == 1 else x

    for x in (0.5, 3.2, 4.1):
        assert ckad.grad(function)(x) == (2 * x if int(x) == 3 else 1.0)


def test_a_truth_of_numpy_is_inverted_as_one_of_numpy() -> None:
    def of_python(x: Any) -> Any:
        return x * ~(0.5 < x < 2)

    def of_numpy(x: Any) -> Any:
        return x[0] * ~(x[0] > 1 and x[1] > 1) + x[1] * ~(0.5 < x[0] < 2)

    for x in (0.2, 0.7):
        assert ckad.jit(of_python)(x) == of_python(x)
    for x in (np.array([1.5, 3.0]), np.array([0.2, 3.0])):
        assert ckad.jit(of_numpy)(x) == of_numpy(x)


class Phase:
    """An object of the user's, which is always true."""

    def __init__(self, density: Any) -> None:
        self.density = density


def of_a_condition(x: Any) -> Any:
    phase = Phase(x * x)
    if x > 0.5 and phase:
        x = x + phase.density
    while (x and phase) and x < 3:
        x = 1.5 * x
    y = 2 * x if not (x < 1 or None) and [phase] else x
    return y + sum(v for v in (x, y) if phase and v > 1.0)


@pytest.mark.parametrize("x", AT)
def test_conditions_ask_for_no_more_than_truth(x: float) -> None:
    check(of_a_condition, x)
