"""Items of lists in loops, told from each other by which object they are."""

from __future__ import annotations

import copy
import random
import warnings

import numpy as np
import pytest

import ckad
from ckad.errors import AsRunWarning

pytestmark = pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")


class Agent:
    def __init__(self, x):
        self.x = x


def appended(r):
    agents = []
    for k in range(9):
        agents.append(Agent(r * (0.3 * k + 0.1)))
    return agents


def comprehended(r):
    return [Agent(r * (0.3 * k + 0.1)) for k in range(9)]


def of_an_array(r):
    return [Agent(x) for x in r * np.linspace(0.1, 2.0, 9)]


def kept(r):
    return [a for a in comprehended(r) if a.x > 0.5]


MADE = [appended, comprehended, of_an_array, kept]


def is_not(xs):
    return sum(a.x * b.x**2 for a in xs for b in xs if a is not b)


def differs(xs):
    s = 0.0
    for _ in range(3):
        for a in xs:
            near = [b for b in xs if abs(b.x - a.x) < 0.8 and b != a]
            s += sum(b.x for b in near) * a.x + len(near)
    return s


def by_number(xs):
    s = 0.0
    for i in range(len(xs)):
        for j in range(len(xs)):
            if xs[i] is xs[j]:
                s += xs[i].x * xs[j].x
    return s


def by_index(xs):
    s = 0.0
    for a in xs:
        for b in xs:
            if xs.index(a) != xs.index(b):
                s += a.x * b.x**2
    return s


def best(xs):
    first = xs[0]
    for a in xs:
        if abs(a.x - 1.2) < abs(first.x - 1.2):
            first = a
    s = 0.0
    for a in xs:
        if a is first:
            s += a.x**2
    return s


def among(xs):
    s = 0.0
    for a in xs:
        near = [b for b in xs if b.x > 0.9]
        if near and near[0] is a:
            s += a.x
        if near and near[-1] == xs[3]:
            s += 7.0 * a.x
    return s


def twice(xs):
    """Two rows that are one object."""
    both = []
    for a in xs:
        both.append(a)
        both.append(a)
    return sum(a.x * b.x for a in both for b in both if a is b)


def given_anew(xs):
    """The object at a place is another one after it has been replaced."""
    s = 0.0
    for k in range(3):
        a = xs[k]
        xs[k] = Agent(2.0 * a.x)
        if xs[k] is not a:
            s += a.x
    return s


USES = [is_not, differs, by_number, by_index, best, among, twice, given_anew]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("made", MADE)
def test_which_object_an_item_is(made, use):
    def f(r):
        return use(made(r))

    value, slope = ckad.value_and_grad(f, engine="vm")(1.1)
    assert value == pytest.approx(f(1.1), rel=1e-13)
    assert slope == pytest.approx((f(1.1 + 1e-6) - f(1.1 - 1e-6)) / 2e-6, rel=1e-6)


def test_lists_at_computed_places():
    def f(r):
        rows = [[r * (0.3 * k + 0.1), 1.0] for k in range(7)]
        last = rows[np.argmax(np.array([row[0] for row in rows]))]
        s = 0.0
        for row in rows:
            if row is not last:
                s += row[0] * last[0]
            if id(row) == id(last):
                s += 5.0 * row[0]
        return s

    assert ckad.jit(f, engine="vm")(1.1) == pytest.approx(f(1.1), rel=1e-13)


def test_items_of_a_list_are_told_within_a_loop_that_is_recorded_once():
    """Their places are compared: no step is written out."""

    def f(r):
        xs = []
        for k in range(300):
            xs.append(Agent(r * k))
        s = 0.0
        for a in xs:
            for b in xs:
                if a is not b:
                    s += a.x * b.x
        return s

    assert len(ckad.trace(f)(1.1)) < 100
    assert ckad.jit(f)(1.1) == pytest.approx(f(1.1), rel=1e-12)


def test_a_list_takes_other_known_objects_in_straight_code():
    def f(r):
        draws = random.Random(1)
        agents = []
        for k in range(4):
            agents.append(Agent(0.1 * k))
        for _ in range(4):
            for a in agents:
                near = [b for b in agents if b.x > 0.05 and b != a]
                if len(near) > 1:
                    a.x = draws.random() * r
        return sum(a.x for a in agents)

    with warnings.catch_warnings():
        warnings.simplefilter("error", AsRunWarning)
        value, slope = ckad.value_and_grad(f, engine="vm")(1.1)
    assert value == pytest.approx(f(1.1), rel=1e-14)
    assert slope == pytest.approx(value / 1.1, rel=1e-14)


def overwritten(r):
    xs = appended(r)
    for k in range(1, 9):
        xs[k] = xs[k - 1]
    s = 0.0 * r
    for k in range(1, 9):
        if xs[k] is xs[k - 1]:
            s += xs[k].x * k
    return s


def taken_out(r):
    xs = appended(r)
    s = 0.0 * r
    while len(xs) > 2:
        last = xs[-1]
        if xs.pop() in [last]:
            s += last.x**2
    return s


@pytest.mark.parametrize("program", [overwritten, taken_out])
def test_items_that_are_put_twice_or_taken_out_are_told_as_in_python(program):
    assert ckad.jit(program, engine="vm")(1.1) == pytest.approx(program(1.1))


def test_a_copy_of_one_of_several_objects_is_another():
    def program(r):
        made = [Agent(r * (0.3 * k + 0.1)) for k in range(7)]
        xs = [a for a in made if a.x > 0.5]
        zs = [copy.copy(a) for a in xs]
        s = 0.0 * r
        for a in xs:
            for b in zs:
                if a is b:
                    s += 3.0 * b.x + a.x
        return s

    assert ckad.jit(program, engine="vm")(1.1) == 0.0
