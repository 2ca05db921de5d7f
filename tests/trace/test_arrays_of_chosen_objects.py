"""Arrays that one of several objects holds: read at once, written into the one that is meant."""

from __future__ import annotations

import numpy as np
import pytest

import ckad


class Body:
    def __init__(self, p):
        self.p, self.v = np.array(p), np.zeros(2)


def bodies(x):
    return [Body([0.1 * i * x, 0.3]) for i in range(6)]


def near(several, place):
    return min(several, key=lambda body: abs(body.p[0] - place))


def added(x):
    several = bodies(x)
    for t in range(9):
        near(several, 0.1 * t).v += x * t
    return sum(np.sum(body.v**2) for body in several)


def one_number(x):
    several = bodies(x)
    for t in range(9):
        near(several, 0.1 * t).v[0] += x * t
    return sum(np.sum(body.v**2) for body in several)


def by_a_name(x):
    several = bodies(x)
    for t in range(9):
        v = near(several, 0.1 * t).v
        v += x * t
    return sum(np.sum(body.v**2) for body in several)


def seen_by_a_name(x):
    several, total = bodies(x), 0.0
    for t in range(9):
        v = near(several, 0.1 * t).v
        for body in several:
            body.v += 0.1 * x
        total += np.sum(v) * t
    return total


@pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
@pytest.mark.parametrize("program", [added, one_number, by_a_name, seen_by_a_name])
def test_what_is_written_into_the_one_that_is_meant(program):
    at, h = 0.9, 1e-6
    value, slope = ckad.value_and_grad(program, engine="vm")(at)
    np.testing.assert_allclose(value, program(at), rtol=1e-12)
    np.testing.assert_allclose(slope, (program(at + h) - program(at - h)) / (2 * h), rtol=1e-6)


def test_small_arrays_are_read_without_branches():
    def pulled(x):
        several, total = bodies(x), 0.0
        for t in range(40):
            total += np.sum(near(several, 0.01 * t).p * x)
        return total

    assert "cond" not in str(ckad.trace(pulled)(0.9))
