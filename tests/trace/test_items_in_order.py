"""Items that hold arrays, ordered or chosen by traced values; what is changed shows in both."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError, RaisedError

Function = Callable[[Any], Any]
POINTS = [2.0, 0.5]


def members(x: Any) -> list[Any]:
    return [[np.array([x, 2 * x]), 2 * x], [np.array([x * x, 3.0]), x]]


def pairs_with_arrays(x):
    found = sorted([(p, k) for p, k in members(x)], key=lambda p: p[1])
    return found[0][0][1] * x + found[1][0][0]


def lists_in_place(x):
    found = members(x)
    found.sort(key=lambda p: p[1])
    found[0][0][0] = 9.0 * x
    found[1][1] = 3.0
    return found[0][0][0] + found[1][1] + found[1][0][1]


def arrays_alone(x):
    best = min([p for p, _ in members(x)], key=np.sum)
    return best[0] * best[1]


def from_high_to_low(x):
    found = sorted(members(x), key=lambda p: p[1], reverse=True)
    return found[0][0][0] * 2 + found[1][0][0]


def a_simplex(x):
    simplex = [[np.array([x + k, 2 * x]), np.sin(x * k)] for k in range(6)]
    for _ in range(30):
        simplex.sort(key=lambda p: p[1])
        middle = (simplex[0][0] + simplex[1][0]) / 2
        del simplex[-1]
        simplex.append([middle + 0.1 * x, np.sum(np.sin(middle))])
    return simplex[0][0][0] + simplex[0][1] + simplex[-1][0][1]


def the_best_changed(x):
    found = members(x)
    best = min(found, key=lambda p: p[1])[0] * 1.0
    best[0] = 7.0
    return found[0][0][0] + best[0] + best[1]


@pytest.mark.parametrize(
    "f",
    [
        *(pairs_with_arrays, lists_in_place, arrays_alone),
        *(from_high_to_low, a_simplex, the_best_changed),
    ],
)
@pytest.mark.parametrize("x", POINTS)
def test_items_with_arrays(f: Function, x: float) -> None:
    value, gradient = ckad.value_and_grad(f, engine="vm")(x)
    assert value == pytest.approx(f(x), rel=1e-13)
    assert gradient == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-6)


def changes_the_best(x):
    found = members(x)
    best = min(found, key=lambda p: p[1])
    best[1] = 5.0 * x
    return found[0][1] + found[1][1]


def changes_a_sorted_list(x):
    found = [[x, 2 * x], [3 * x, x]]
    sorted(found, key=lambda p: p[1])[0][0] = 5.0
    return found[0][0] + found[1][0]


def changes_what_was_sorted(x):
    found = [[x, 2 * x], [3 * x, x]]
    one = found[1]
    found.sort(key=lambda p: p[1])
    one[0] = 5.0
    return found[0][0]


def writes_into_an_array(x):
    found = members(x)
    sorted(found, key=lambda p: p[1])[0][0][0] = 7.0
    return found[0][0][0]


def writes_into_what_was_sorted(x):
    found = members(x)
    best = min(found, key=lambda p: p[1])[0]
    found[1][0][0] = 7.0
    return best[0]


@dataclass
class Member:
    place: Any
    cost: Any


def changes_a_dataclass(x):
    found = [Member(x, 2 * x), Member(3 * x, x)]
    best = min(found, key=lambda p: p.cost)
    best.place = 5.0 * x
    return found[0].place + found[1].place


@pytest.mark.parametrize(
    "f",
    [
        *(changes_the_best, changes_a_sorted_list, changes_what_was_sorted),
        *(writes_into_an_array, writes_into_what_was_sorted, changes_a_dataclass),
    ],
)
@pytest.mark.parametrize("x", POINTS)
def test_a_change_that_may_be_one_of_another_item_is_an_error(f: Function, x: float) -> None:
    with pytest.raises(AliasError, match=r"may be"):
        ckad.jit(f, engine="vm")(x)


def writes_into_a_choice(x):
    random.seed(1)
    xs = [np.array([x, 1.0]), np.array([2 * x, 1.0]), np.array([3 * x, 1.0])]
    for _ in range(10):
        chosen = random.choice(xs)
        chosen[0] = chosen[0] + x
    return xs[0][0] + 10 * xs[1][0] + 100 * xs[2][0]


def writes_into_a_sample(x):
    random.seed(1)
    xs = [np.array([x, 1.0]), np.array([2 * x, 1.0]), np.array([3 * x, 1.0])]
    for _ in range(10):
        for chosen in random.sample(xs, 2):
            chosen[0] = chosen[0] + x
    return xs[0][0] + 10 * xs[1][0] + 100 * xs[2][0]


def writes_into_a_copy(x):
    rng = np.random.default_rng(1)
    xs = [np.array([x, 1.0]), np.array([2 * x, 1.0]), np.array([3 * x, 1.0])]
    total = 0.0
    for _ in range(10):
        chosen = rng.choice(xs)
        chosen[0] = chosen[0] + x
        total = total + chosen[0]
    return total + xs[0][0] + 10 * xs[1][0] + 100 * xs[2][0]


@pytest.mark.filterwarnings("ignore::ckad.errors.UnrolledLoopWarning")
@pytest.mark.parametrize("f", [writes_into_a_choice, writes_into_a_sample, writes_into_a_copy])
def test_python_draws_the_very_array_and_numpy_a_copy(f: Function) -> None:
    value, gradient = ckad.value_and_grad(f, engine="vm")(0.5)
    assert value == pytest.approx(f(0.5), rel=1e-13)
    assert gradient == pytest.approx((f(0.5 + 1e-6) - f(0.5 - 1e-6)) / 2e-6, rel=1e-6)


def by_a_key(x):
    return max(range(5), key=lambda k: x[k]), min(range(5), key=lambda k: x[k])


@pytest.mark.parametrize("places", [[], [0], [2], [4], [0, 3], [0, 1, 2, 3, 4]])
def test_a_nan_among_keys_is_what_it_is_in_python(places):
    at = np.array([0.3, 0.9, 0.1, -0.4, 0.5])
    at[places] = np.nan
    assert ckad.jit(by_a_key, engine="vm")(at) == by_a_key(at)


def sorted_numbers(x):
    return sorted([x[0], x[1], x[2]])


def sorted_array(x):
    return sorted(x, reverse=True)


def sorted_by_a_key(x):
    return sorted(range(3), key=lambda k: x[k])


def sorted_in_place(x):
    pairs = [(x[k], k) for k in range(3)]
    pairs.sort()
    return pairs


@pytest.mark.parametrize(
    "program", [sorted_numbers, sorted_array, sorted_by_a_key, sorted_in_place]
)
def test_the_program_stops_where_a_nan_is_sorted(program):
    sort, at = ckad.jit(program, engine="vm"), np.array([0.3, 0.9, 0.1])
    assert sort(at) == program(at)
    with pytest.raises(RaisedError, match="among which is a NaN"):
        sort(np.array([0.3, np.nan, 0.1]))


@pytest.mark.parametrize("best", [max, min])
def test_the_best_of_many_tuples(best):
    """One comparison of columns, not of each pair."""

    def program(p):
        pairs = [(np.round(3.0 * np.sin(p * k)), k % 5 > 2, -k * p, k) for k in range(60)]
        top, flag, place, number = best(pairs)
        return top * p + place + number + flag

    tape = ckad.trace(program)(0.3)
    assert len(str(tape).splitlines()) < 700
    for p in (0.3, 1.1):
        assert np.isclose(ckad.jit(program, engine="vm")(p), program(p), rtol=1e-13)


def test_the_best_of_tuples_with_nan():
    def program(p, q):
        return max([(p, 1.0), (q, 2.0), (p * q, 3.0)])[1]

    compiled = ckad.jit(program, engine="vm")
    assert compiled(2.0, 3.0) == 3.0
    with pytest.raises(ckad.errors.RaisedError):
        compiled(2.0, np.nan)
