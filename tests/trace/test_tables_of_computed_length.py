"""Tables as long as the program makes them: interpolation, search, elements at arrays of places."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.errors import TracedIndexError, TracedShapeError

from .idioms import check_number

AT = 0.61


def path(a):
    xs, ys, x = [0.0], [a], 0.0
    while x < 3.0:
        x = x + 0.1 * (1 + a)
        xs.append(x)
        ys.append(np.sin(x * a))
    return xs, ys


def at_a_number(a):
    xs, ys = path(a)
    return np.interp(1.3, xs, ys) + np.interp(xs[3], xs, ys) + np.interp(xs[-1], xs, ys)


def at_several(a):
    xs, ys = path(a)
    places = np.array([-1.0, 0.0, 0.7, 1.3 * a, 2.0, 9.0])
    return np.sum(np.interp(places, np.array(xs), ys)) + np.sum(
        np.interp(places, xs, ys, left=a, right=2 * a)
    )


def in_a_part_of_an_array(a):
    xs, ys, n, x = np.zeros(100), np.zeros(100), 0, 0.0
    while x < 3.0:
        xs[n], ys[n], n = x, np.sin(x * a), n + 1
        x = x + 0.1 * (1 + a)
    total = 0.0
    for k in range(30):
        total = total + np.interp(0.1 * k, xs[:n], ys[:n])
    return total


def under_a_mask(a):
    x = np.linspace(0.0, 1.0, 20)
    y = np.sin(x * a)
    kept = y > 0.1
    one = x * a > 0.605  # the last alone
    return (
        np.interp(0.77, x[kept], y[kept])
        + np.sum(np.interp(x, x[kept], y[kept]))
        + np.sum(np.interp([0.5, 1.0, 1.5], x[one], a * y[one]))
    )


def searched(a):
    xs, ys = path(a)
    found = np.searchsorted(xs, [0.3, 1.0, 2.1], side="right")
    return a * np.searchsorted(xs, 1.0) + np.sum(np.array(ys)[found - 1]) + np.array(ys)[-found[0]]


PROGRAMS = [at_a_number, at_several, in_a_part_of_an_array, under_a_mask, searched]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_value_and_gradient(f):
    slope = check_number(f, AT)
    assert ckad.jvp(f, (AT,), (1.0,), engine="vm")[1] == pytest.approx(slope, rel=1e-12)


def test_lengths_that_differ():
    def f(a):
        xs, ys = path(a)
        return np.interp(0.5, xs, ys[1:])

    with pytest.raises(TracedShapeError, match="lengths that the program computes differ"):
        ckad.grad(f, engine="vm")(AT)


def test_a_place_beyond_the_end():
    def f(a):
        xs, _ = path(a)
        return np.sum(np.array(xs)[np.array([0, 40])])

    with pytest.raises(TracedIndexError, match="out of range"):
        ckad.grad(f, engine="vm")(AT)
