"""What methods read that Python runs by itself is as it is in the step that asks."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ckad


class Vector:
    """Its items are those of a generator."""

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __iter__(self):
        yield self.a
        yield self.b


class Window:
    """Its items are those of another object, and of a list."""

    def __init__(self, a, b):
        self.vector, self.more = Vector(a, b), [a]

    def __iter__(self):
        return iter([self.vector.a, self.vector.b, *self.more])

    @property
    def a(self):
        return self.vector.a

    @a.setter
    def a(self, value):
        self.vector.a = self.more[0] = value


class Row:
    """Its items are found by their numbers."""

    def __init__(self, a, b):
        self.a = a

    def __getitem__(self, k):
        if k > 2:
            raise IndexError(k)
        return (k + 1) * self.a


class Table:
    """A mapping, whose items are those of the module, too."""

    def __init__(self, a, b):
        self.a = a

    def keys(self):
        return ["p", "q"]

    def __getitem__(self, key):
        return self.a if key == "p" else scale * self.a


class Scaled:
    def __iter__(self):
        return iter([scale])


scale = 1.0


def _added(v):
    items = [1.0]
    items += v
    items.extend(v)
    return sum(items)


def _put(v):
    items = [1.0, 2.0]
    items[:1] = v
    return sum(items)


ASKED = [
    _added,
    _put,
    lambda v: sum(v),
    lambda v: sum(z * z for z in v),
    lambda v: sum([*v]),
    lambda v: sum([2 * z for z in v][1:]),
    lambda v: math.hypot(*v),
    lambda v: sum(k * z for k, z in enumerate(v)),
    lambda v: sum(map(math.sin, v)),
    lambda v: np.sum(np.array(list(v))),
    lambda v: next(zip(v, v, strict=True))[1],
]


@pytest.mark.parametrize("kind", [Vector, Window, Row])
@pytest.mark.parametrize("asked", ASKED)
def test_items_are_those_of_the_step(asked, kind):
    def f(x):
        v, u, total = kind(x, 0.3), x, 0.0
        for _ in range(6):
            total = total + asked(v)
            u = math.sin(u + 0.4)
            v.a = u  # read by no statement
        return total

    value, slope = ckad.value_and_grad(f, engine="vm")(0.7)
    assert value == pytest.approx(f(0.7), rel=1e-13)
    assert slope == pytest.approx((f(0.7 + 1e-5) - f(0.7 - 1e-5)) / 2e-5, rel=1e-6)


def _by_name(p, q):
    return p * q


def test_items_of_a_mapping_and_names_of_the_module_are_those_of_the_step():
    def f(x):
        global scale
        table, u, total, every = Table(x, 0.3), x, 0.0, [x]
        for _ in range(6):
            total = total + _by_name(**table) + {**table}["p"] + sum(Scaled())
            every += [u]
            u = math.sin(u + 0.4)
            table.a, scale = u, 0.5 * u
        scale = 1.0
        return total + sum(every)

    value, slope = ckad.value_and_grad(f, engine="vm")(0.7)
    assert value == pytest.approx(f(0.7), rel=1e-13)
    assert slope == pytest.approx((f(0.7 + 1e-5) - f(0.7 - 1e-5)) / 2e-5, rel=1e-6)
