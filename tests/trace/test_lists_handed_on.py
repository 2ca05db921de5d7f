"""Lists that a step makes and the next one reads, by names, attributes and items."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError

from .idioms import check

X = np.linspace(0.4, 0.9, 4)


def filled(first, rate):
    found = []
    for j in range(7):
        found.append(first * j * 0.1 + rate * 0.01)
    return found


def read_by_the_next_step(x):
    xs, total = [x[0]], 0.0
    for _ in range(6):
        total = total + xs[-1]
        xs = []
        for j in range(7):
            xs.append(x[1] * j + total * 0.01)
    return total + xs[-1] + len(xs)


def made_by_a_function(x):
    xs, total = filled(x[0], x[1]), 0.0
    for _ in range(6):
        xs = filled(xs[1] * 0.9, xs[2])
        total += xs[3]
    return total + sum(xs)


def read_after_the_loop_alone(x):
    total = 0.0
    for _ in range(6):
        ys = []
        for j in range(7):
            ys.append(x[0] * j + total * 0.01)
        total = total + ys[3]
    return total + ys[-1] + np.sum(np.array(ys))


def shooting(x):
    ends, slope, n = [1.0] * 5, x[0], 0
    while abs(ends[4]) > 1e-6 and n < 60:
        n += 1
        slope = slope - 0.1 * ends[4]
        ends, at = [], slope
        for _ in range(5):
            ends.append(at)
            at = at * 0.9
    return slope + ends[2] * x[1]


def of_a_traced_length(x):
    xs, total = [x[0]], 0.0
    for _ in range(6):
        total = total + xs[-1]
        ys = []
        for j in range(7):
            if xs[0] * j < 3:
                ys.append(x[1] * j * 0.1 + total * 0.01)
        ys.append(total)
        xs = ys
    return total + xs[-1] * len(xs)


def two_that_swap(x):
    a, b = [], []
    for j in range(7):
        a.append(x[0] * j)
        b.append(x[1] + j)
    for _ in range(6):
        a, b = b, a
        c = []
        for j in range(7):
            c.append(a[j] + 0.1 * b[j])
        a = c
    return a[3] + b[2] * 2


def shown_by_another_name_too(x):
    xs = [x[0]]
    ys, total = xs, 0.0
    for _ in range(6):
        total = total + xs[-1] + ys[0] * len(xs)
        ys.append(total * 0.1)
        total = total + xs[-1]
        xs = []
        for j in range(7):
            xs.append(x[1] * j + total * 0.01)
        ys = xs
    return total + xs[-1] * len(xs)


def held_by_an_attribute(x):
    held, total = SimpleNamespace(items=[x[0]]), 0.0
    ys = [x[0], x[1]]
    for _ in range(6):
        ys.append(total)
        total = total + held.items[-1]
        ys = []
        for j in range(7):
            ys.append(x[2] * j * 0.1 + total * 0.01)
        held.items = ys
    return total + held.items[-1] * len(held.items)


def held_by_a_dict(x):
    held, total = {"items": [x[0]]}, 0.0
    for _ in range(6):
        total = total + held["items"][-1]
        ys = []
        for j in range(7):
            ys.append(x[1] * j * 0.1 + total * 0.01)
        held["items"] = ys
    return total + held["items"][-1]


def arrays_written_into(x):
    xs, total = [x[:2].copy()], 0.0
    for _ in range(6):
        xs[0][1] = total
        total = total + xs[-1][0]
        xs = []
        for j in range(7):
            xs.append(np.array([x[2] * j, total]))
    return total + xs[0][1]


PROGRAMS = [
    read_by_the_next_step,
    made_by_a_function,
    read_after_the_loop_alone,
    shooting,
    of_a_traced_length,
    two_that_swap,
    shown_by_another_name_too,
    held_by_an_attribute,
    held_by_a_dict,
    arrays_written_into,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_list_goes_from_step_to_step(program):
    check(program, X)


def test_one_of_two_names_cannot_be_made_longer_after_the_loop():
    def longer(x):
        xs = [x[0]]
        ys, total = xs, 0.0
        for _ in range(6):
            total = total + ys[0]
            xs = []
            for j in range(7):
                xs.append(x[1] * j + total)
            ys = xs
        ys.append(total)
        return total + len(xs)

    with pytest.raises(AliasError, match="may be the one which 'xs' shows"):
        ckad.grad(longer)(X)


def test_an_item_may_be_the_array_of_a_name():
    def written(x):
        xs, total = [x[:2].copy()], 0.0
        for _ in range(6):
            total = total + xs[-1][0]
            xs = []
            for j in range(7):
                xs.append(np.array([x[2] * j, total]))
            shown = xs[2]
        shown[0] = 5.0
        return total + xs[2][0]

    with pytest.raises(AliasError, match="an item of a list"):
        ckad.grad(written)(X)
