"""What the user's classes call equal is not one value: it may differ in all but a name."""

from __future__ import annotations

import dataclasses
import enum
import math
import types

import numpy as np
import pytest

import ckad

from .idioms import check_number


class Named:
    """Equal to all others of its name."""

    def __init__(self, name, x):
        self.name, self.x = name, x

    def __eq__(self, other):
        return self.name == other.name

    def __hash__(self):
        return hash(self.name)


@dataclasses.dataclass
class Partly:
    name: str
    x: float = dataclasses.field(compare=False)


class Field(np.lib.mixins.NDArrayOperatorsMixin):
    """Compared by its elements."""

    def __init__(self, name, x):
        self.name, self.x = name, x

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        inputs = [a.x if isinstance(a, Field) else a for a in inputs]
        return Field("", getattr(ufunc, method)(*inputs, **options))


def as_a_name(kind, x):
    a = kind("a", x)
    for _ in range(7):
        a = kind("a", 0.9 * a.x + np.sin(x))
    return a.x


def as_an_item(kind, x):
    holds = {"a": [kind("a", x)]}
    for _ in range(7):
        holds["a"][0] = kind("a", 0.9 * holds["a"][0].x + np.sin(x))
    return holds["a"][0].x


def as_part_of_an_item(kind, x):
    items = [(kind("a", x), 1)]
    for _ in range(7):
        items[0] = (kind("a", 0.9 * items[0][0].x + np.sin(x)), 1)
    return items[0][0].x


def of_a_branch(kind, x):
    a = kind("a", x)
    a = kind("a", x * x) if x > 0.5 else kind("a", 3.0 * x)
    return a.x


PROGRAMS = [as_a_name, as_an_item, as_part_of_an_item, of_a_branch]


@pytest.mark.parametrize("kind", [Named, Partly, Field])
@pytest.mark.parametrize("program", PROGRAMS)
def test_equal_objects_are_told_apart(program, kind):
    check_number(lambda x: program(kind, x), 0.7, rel=1e-7)


def signs(x):
    side, turned = 0.0, 0.0
    for _ in range(7):
        turned += x * math.atan2(side, -1.0)
        side = -0.0
    side = 0.0
    if x > 0.5:
        side = -0.0
    return turned * math.atan2(side, -1.0)


def test_zeros_of_both_signs_are_told_apart():
    check_number(signs, 0.7, rel=1e-7)


class Lazy(property):
    """A class of properties."""


@pytest.mark.parametrize("kind", [enum.property, types.DynamicClassAttribute, Lazy])
def test_what_is_like_a_property_runs_the_functions_of_the_user(kind):
    class Counted:
        def __init__(self, x):
            self._x, self.calls = x, 0

        def read(self):
            self.calls += 1
            return 2.0 * self._x

        def write(self, x):
            self._x = x / 2.0 if x > 0.0 else x / 3.0

        x = kind(read, write)

    def program(y):
        counted = Counted(y)
        for _ in range(8):
            counted.x += np.sin(y)
            counted.x *= 0.9
        return counted.x * counted.calls

    assert ckad.jit(program)(0.7) == pytest.approx(program(0.7), rel=1e-14)
    check_number(program, 0.7, rel=1e-7)


class Corner:
    """Equal to others at the same place, which is a property."""

    def __init__(self, x):
        self._place = np.array([x, 1.0])

    @property
    def x(self):
        return float(self._place[0])

    def __eq__(self, other):
        return self.x == other.x

    __hash__ = None


def as_members(p):
    corners, total = [Corner(p * k) for k in range(3)], 0.0
    for k in range(4):
        corner = Corner(p * k)
        if corner not in corners:
            total += (k + 2) * corner.x
    return total * p if Corner(2.0 * p) in (*corners, corner) else -total


def test_objects_of_traced_attributes_are_looked_for_by_their_method():
    check_number(as_members, 0.7, rel=1e-7)


def member_of_tuples(p):
    first = 1.0 if (0,) in [(0, 0), p] else 2.0
    second = 1.0 if 1.0 in [(1.0, 1.0), p] else 2.0
    return first * p + second + (4.0 if (p, 1.0) in [(0.7, 1.0), (p, 2)] else 8.0)


def member_of_keys(p):
    table, total = {(0, 1): p, ("a", 0): 2.0 * p, "b": p}, 0.0
    for t in range(4):
        if (0, t) in table and "b" in table and ("a", t) not in table:
            total += p
        table[0, 1] = total
    return total


def member_among_texts(p):
    found = ["a" in ["b", p, "a"], "c" in ("b", p), p in [0.7, "a"], p in [None, "a"]]
    found += [None in (p, None), p == "a", p != "a", [p] in [[p, p], [0.5]]]
    return p * sum(2.0**k for k, yes in enumerate(found) if yes)


@pytest.mark.parametrize("program", [member_of_tuples, member_of_keys, member_among_texts])
def test_membership_of_tuples_texts_and_numbers(program):
    for p in (0.7, 0.3):
        assert ckad.jit(program, engine="vm")(p) == pytest.approx(program(p), rel=1e-14)
