"""What ends before all items are taken: any, all, in, and loops over map that are left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import RaisedError, UnrecordableError

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


# --- next(... for ... in ...) --------------------------------------------------------------------


def first_value(x: float) -> float:
    return next(v for v in (x - 2, x * 0.5, x - 1) if v > 0.1)


def its_place(x: float) -> float:
    z, s = [x - 2, x * 0.1, x - 1], 0.0
    for j in range(10):
        z = [v + 0.05 * j * x for v in z]
        k = next(i for i, v in enumerate(z) if v > 0.1)
        s = s + k * x * z[k]
    return s


def or_another(x: float) -> float:
    s = 0.0
    for j in range(10):
        found = next((v for v in (x - 2, x * 0.1 * j) if v > 0.5), None)
        k = next((k for k in range(3) if k * x > j), -1)
        s = s + k * x if found is None else s + found
    return s


def in_rows(x: float) -> float:
    rows = [[x, 2 * x], [3 * x, x]]
    i, j, v = next((i, j, v) for i, r in enumerate(rows) for j, v in enumerate(r) if v > 2.0)
    return x * i + v * j


def known_to_python(x: float) -> float:
    used = {0, 1, 3}
    free = next(k for k in range(9) if k not in used)
    rest = iter([1.0, 2.0, 3.0])
    one = next(v for v in rest if v > 1.5)
    return x * np.ones(5)[free] + one * x**2 + next(rest)


@pytest.mark.parametrize("engine", ["native", "vm"])
@pytest.mark.parametrize(
    "program",
    [first_value, its_place, or_another, in_rows, known_to_python],
    ids=lambda f: f.__name__,
)
def test_the_first_that_a_condition_keeps(program: Any, engine: str) -> None:
    x, h = 1.23, 1e-6
    value, gradient = ckad.value_and_grad(program, engine=engine)(x)
    assert value == pytest.approx(program(x), rel=1e-13)
    assert gradient == pytest.approx((program(x + h) - program(x - h)) / (2 * h), rel=1e-6)


def none_is_kept(x: float) -> float:
    return next(v for v in (x - 2, x * 0.5) if v > 10)


def of_an_iterator_with_a_name(x: float) -> float:
    rest = iter([x, 2 * x, 3 * x])
    return next(v for v in rest if v > 1.5) * next(rest)


@pytest.mark.parametrize(
    ("program", "error"),
    [(none_is_kept, RaisedError), (of_an_iterator_with_a_name, UnrecordableError)],
)
def test_that_none_is_kept_is_an_error(program: Any, error: Any) -> None:
    with pytest.raises(error, match=r"test_early_ends.py:\d+"):
        ckad.value_and_grad(program)(1.2)


def sums_by_name(x: float) -> float:
    held = {"a": x, "b": 2 * x}
    while sum(held.values()) > 0.2:
        last = held
        held = dict.fromkeys(last, 0.0)
        for name in held:
            held[name] += 0.7 * last[name] * x
    return sum(held.values())


def test_dicts_made_from_keys_in_a_loop() -> None:
    check_number(sums_by_name, 1.2)
