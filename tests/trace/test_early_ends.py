"""What ends before all items are taken: any, all, in, and loops over map that are left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import UnrecordableError

from .idioms import check_number


class Counter:
    def __init__(self) -> None:
        self.n = 0


def any_of_calls(x: float) -> float:
    counter = Counter()

    def found(v: float) -> bool:
        counter.n += 1
        return v * x > 1

    any(found(v) for v in (1.0, 2.0, 3.0))
    return x * counter.n


def all_of_calls(x: float) -> float:
    total = 0.0

    def small(v: float) -> bool:
        nonlocal total
        total += v * x
        return v * x < 1

    all(small(v) for v in (1.0, 2.0, 3.0, 4.0))
    return total


def any_writing(x: float) -> Any:
    u = np.zeros(5)

    def found(k: int) -> bool:
        u[k] = x * (k + 1)
        return u[k] > 1

    any(found(k) for k in range(5))
    return np.sum(u)


def any_mapped(x: float) -> float:
    counter = Counter()

    def found(v: float, w: float) -> bool:
        counter.n += 1
        return v * w * x > 1

    any(map(found, (1.0, 2.0, 3.0), [0.5, 1.0, 2.0]))
    return x * counter.n


def any_named(x: float) -> float:
    any((y := v * x) > 1 for v in (1.0, 2.0, 3.0))
    return y


def any_of_pairs(x: float) -> float:
    counter = Counter()

    def near(a: float, b: float) -> bool:
        counter.n += 1
        return abs(a - b) < x

    any(near(a, b) for a in (1.0, 2.0) for b in (4.0, 3.5, 2.4, 0.0))
    return x * counter.n


def all_of_a_list(x: float) -> float:
    """A list is made whole before it is looked at."""
    counter = Counter()

    def small(v: float) -> bool:
        counter.n += 1
        return v * x < 1

    items = [small(v) for v in (1.0, 2.0, 3.0)]
    all(items)
    return x * counter.n


def loop_over_map(x: float) -> float:
    counter = Counter()

    def scaled(v: float) -> float:
        counter.n += 1
        return v * x

    for y in map(scaled, (1.0, 2.0, 3.0)):
        if y > 1:
            break
    return y * counter.n


def loop_over_expression(x: float) -> float:
    for y in (v * x for v in (1.0, 2.0, 3.0)):
        if y > 1:
            break
    return y


def in_a_loop(x: float) -> float:
    total = 0.0
    for k in range(6):
        counter = Counter()

        def found(v: float, k: int = k, counter: Counter = counter) -> bool:
            counter.n += 1
            return v * x * k > 1

        if any(found(v) for v in (0.2, 0.5, 1.0)):
            total += x * counter.n
    return total


PROGRAMS = (any_of_calls, all_of_calls, any_writing, any_mapped, any_named, any_of_pairs)
LOOPS = (all_of_a_list, loop_over_map, loop_over_expression, in_a_loop)


@pytest.mark.parametrize("program", [*PROGRAMS, *LOOPS])
@pytest.mark.parametrize("at", [0.3, 0.45, 0.7, 1.3])
def test_no_more_is_done_than_python_does(program: Any, at: float) -> None:
    check_number(program, at, memory="1 MB")


def rest_of_an_iterator(x: float) -> float:
    items = iter([1.0, 2.0, 3.0])
    any(v * x > 1 for v in items)
    return x * sum(items)


def contained(x: float) -> float:
    items = iter([1.0, 2.0, 3.0])
    return x * sum(items) if 2.0 * x in items else x


def rest_behind_zip(x: float) -> float:
    items = iter([1.0, 2.0, 3.0])
    for v, _ in zip(items, ("a", "b", "c")):  # noqa: B905
        if v * x > 1:
            break
    return x * sum(items)


def listing(x: float) -> float:
    seen = []

    def found(v: float) -> bool:
        seen.append(v)
        return v * x > 1

    any(found(v) for v in (1.0, 2.0, 3.0))
    return x * sum(seen)


def kept_by_a_condition(x: float) -> float:
    counter = Counter()

    def found(v: float) -> bool:
        counter.n += 1
        return v * x > 1

    any(found(v) for v in (1.0, 2.0, 3.0) if v * x > 0.5)
    return x * counter.n


@pytest.mark.parametrize(
    "program", [rest_of_an_iterator, contained, rest_behind_zip, listing, kept_by_a_condition]
)
def test_what_cannot_be_followed_is_named(program: Any) -> None:
    with pytest.raises(UnrecordableError, match=r"test_early_ends.py:\d+: .*([Ll]ist|break)"):
        ckad.value_and_grad(program, engine="vm")(0.7)


def rest_behind_a_condition(x: float) -> float:
    items = iter([1.0, 2.0, 3.0])
    any(v * x > 1 for v in items if v > 0.5)
    return x * sum(items)


def test_conditions_hide_no_iterator() -> None:
    with pytest.raises(UnrecordableError, match=r"test_early_ends.py:\d+: .*list"):
        ckad.value_and_grad(rest_behind_a_condition, engine="vm")(0.7)
