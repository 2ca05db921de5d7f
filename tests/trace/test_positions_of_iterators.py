"""Iterators go on where they were left: endless ones, and heads of generators."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import ckad
from ckad.errors import UnrecordableError

AT = 0.83
X = np.array([0.3, -0.7, 1.2, 0.9, -0.1])


def slice_of_cycle(s):
    return sum(itertools.islice(itertools.cycle(s * X), 3, 12, 2))


def slice_of_count(s):
    numbers = itertools.count(1)
    return sum(k * s for k in itertools.islice(numbers, 2, 8, 3)) + s * next(numbers)


def zip_after_next(s):
    numbers = itertools.cycle([s, s * s, 2.0])
    first = next(numbers)
    return first + sum(v * w for v, w in zip(X, numbers, strict=False)) + next(numbers)


def cycle_of_what_changes(s):
    x, items = s * X, [s, 2.0]
    numbers, others = itertools.cycle(x), itertools.cycle(items)
    first = next(others)
    x[0] = 2.0 * s
    items.append(s * s)
    rest = next(numbers) + sum(v * w for v, w in zip(X, itertools.cycle(x), strict=False))
    return first + next(others) + 3.0 * next(others) + rest


def expression_over_count(s):
    doubled = (2 * k for k in itertools.count(1))
    return next(doubled) * s + next(doubled) * s**2


def two_steps_of_a_generator(x):
    for k in range(4):
        x[k] = 2.0 * x[k]
        yield x[k]


def slice_of_writer(s):
    x = s * X
    taken = 0.0
    for item in itertools.islice(two_steps_of_a_generator(x), 1, 2):
        taken = taken + item
        x[0] = 3.0 * item
    return taken + x @ np.arange(1.0, 6.0)


@pytest.mark.parametrize(
    "f",
    [
        slice_of_cycle,
        slice_of_count,
        zip_after_next,
        cycle_of_what_changes,
        expression_over_count,
        slice_of_writer,
    ],
)
def test_iterators_go_on_where_they_were_left(f):
    value, slope = ckad.value_and_grad(f, engine="vm")(AT)
    assert value == pytest.approx(f(AT), rel=1e-13)
    assert slope == pytest.approx((f(AT + 1e-6) - f(AT - 1e-6)) / 2e-6, rel=1e-6)


def next_after_zip(s):
    numbers = itertools.cycle([s, s * s, 2.0])
    return sum(v * w for v, w in zip(X, numbers, strict=False)) * next(numbers)


def zip_in_a_loop(s):
    numbers, total = itertools.count(), 0.0
    for _ in range(50):
        for v, k in zip(X, numbers, strict=False):
            total = 0.9 * total + s * v * k
    return total


@pytest.mark.parametrize("f", [next_after_zip, zip_in_a_loop])
def test_what_a_zip_has_left_of_an_endless_iterator_is_not_known(f):
    with pytest.raises(UnrecordableError, match=r"next\(\)|run over again"):
        ckad.value_and_grad(f, engine="vm")(AT)


def test_a_slice_of_a_generator_that_is_recorded_as_a_loop_is_refused():
    def f(s):
        x = s * X

        def written():
            for k in range(4):
                x[k] = 2.0 * x[k]
                yield x[k]

        return sum(itertools.islice(written(), 1, 2)) + x @ x

    with pytest.raises(UnrecordableError, match=r"Make a list of them, and take a slice"):
        ckad.value_and_grad(f, engine="vm")(AT)


def test_an_expression_with_a_condition_over_what_does_not_end_is_refused():
    def f(s):
        positive = (v for v in itertools.cycle([s, 3.0]) if v > 1.0)
        return next(positive) * s

    with pytest.raises(UnrecordableError, match="which do not end"):
        ckad.value_and_grad(f, engine="vm")(AT)
