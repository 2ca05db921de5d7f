"""Objects whose attributes are slots: loops carry them as they do others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import ckad

from .idioms import check_number

pytestmark = pytest.mark.usefixtures("engine")


class Body:
    __slots__ = ("log", "v", "x")

    def __init__(self, x, v):
        self.x = x
        self.v = v


class Heated(Body):
    __slots__ = ("heat",)

    def step(self, dt):
        self.v -= dt * self.x
        self.x += dt * self.v
        self.heat += self.x**2


@dataclass(slots=True)
class Point:
    x: float
    v: float

    def step(self, dt):
        self.v -= dt * self.x
        self.x += dt * self.v


def straight(x):
    p = Body(x, 0.0 * x)
    for _ in range(20):
        p.v = p.v - 0.1 * p.x
        p.x = p.x + 0.1 * p.v
    return np.sum(p.x**2)


def inherited(x):
    p = Heated(x, 0.0 * x)
    p.heat = 0.0
    for _ in range(20):
        p.step(0.1)
    return np.sum(p.heat)


def dataclass_of_slots(x):
    p = Point(x[0], x[1])
    for _ in range(20):
        p.step(0.1)
    return p.x**2 + p.v


def under_a_condition(x):
    p = Body(x, 0.0 * x)
    for _ in range(20):
        if p.x[0] > 0.2:
            p.v = p.v - 0.1 * p.x
        p.x = p.x + 0.1 * p.v
    return np.sum(p.x**2)


def bound_in_the_loop(x):
    p = Body(x, x)
    for _ in range(20):
        p.log = p.x * 2
        p.x = np.sin(p.log)
    return np.sum(p.log)


def exchanged(x):
    p = Body(x, 2 * x)
    for _ in range(20):
        p.x, p.v = p.v, p.x * 0.9
    return np.sum(p.x * p.v**2)


def two_names(x):
    p = q = Body(x, 2 * x)
    for _ in range(20):
        q.x = np.sin(p.x)
        p.v = p.v + q.x
    return np.sum(p.x * q.v**2)


def an_array_with_another_name(x):
    u = x.copy()
    p = Body(u, 0.0)
    for _ in range(20):
        p.x[0] += 0.1 * p.x[1]
        u[1] = np.sin(u[0])
    return np.sum(p.x * u)


PROGRAMS = (
    *(straight, inherited, dataclass_of_slots, under_a_condition, bound_in_the_loop, exchanged),
    *(two_names, an_array_with_another_name),
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_it_is_recorded_once_and_what_python_gives(program):
    x = np.array([0.3, 1.2])
    np.testing.assert_allclose(ckad.jit(program)(x), program(x.copy()), rtol=1e-12)
    ckad.testing.check_grads(program, (x,), order=1)
    assert "recorded once" in str(ckad.explain(program, x))


OUTSIDE = Body(np.ones(2), np.ones(2))


def test_an_object_from_outside_is_as_it_was_and_its_changes_are_seen():
    def program(x):
        for _ in range(20):
            OUTSIDE.x = np.sin(OUTSIDE.x) * x
        return np.sum(OUTSIDE.x)

    x = np.array([0.9, 1.2])
    compiled = ckad.jit(program)
    for before in (np.ones(2), np.array([3.0, 4.0])):
        OUTSIDE.x = before
        found = compiled(x)
        assert OUTSIDE.x is before
        np.testing.assert_allclose(found, program(x), rtol=1e-12)


def test_a_slot_that_no_step_binds_is_not_there():
    def program(x):
        p = Body(x, x)
        for _ in range(20):
            p.x = np.sin(p.x)
        return np.sum(p.log)

    with pytest.raises(AttributeError, match="log"):
        ckad.jit(program)(np.ones(2))


class SlotsAndMore:
    __slots__ = ("__dict__", "x")

    def __init__(self, x):
        self.x = x
        self.twice = 2.0 * x


def test_slots_beside_other_attributes():
    def program(y):
        a, total = SlotsAndMore(y), 0.0
        for k in range(7):
            a = SlotsAndMore(0.9 * a.x + np.sin(y)) if k % 2 else a
            a.x *= 1.1
            a.twice += a.x
            total += a.twice * y
        return total + a.x

    check_number(program, 0.7, rel=1e-7)
