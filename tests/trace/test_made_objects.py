"""Objects of plain classes that loops and branches make: told by what they hold."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError, CarryError, CkadError

from .idioms import check_number


class Plain:
    def __init__(self, x):
        self.x = x


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


def chosen(kind, a):
    p = kind(a)
    if a > 0.5:
        p = kind(2.0 * a)
    return p.x * a


def returned(kind, a):
    def make(x):
        if x > 2.0:
            return kind(x)
        return kind(-x)

    return make(a).x + 2.0 * make(3.0 * a).x


def early(kind, a):
    def find(n):
        p = kind(a)
        for _ in range(n):
            p = kind(p.x + a)
            if p.x > 4.4:
                return p
        return kind(0.0 * a)

    q = find(10)
    q.x = q.x * 2.0
    return q.x


def bound_anew(kind, a):
    p = kind(a)
    for _ in range(20):
        p = kind(0.9 * p.x + 0.1 * a * p.x)
    return p.x


def until(kind, a):
    p, n = kind(a), 0
    while p.x < 5.2:
        p = kind(1.3 * p.x)
        n += 1
    return p.x * n


def of_objects(kind, a):
    p = kind(kind(a))
    for k in range(20):
        if k * a < 12.5:
            p = kind(kind(p.x.x + a))
        else:
            p = kind(p.x)
    return p.x.x


def best(kind, a):
    found, p = None, kind(a)
    for k in range(20):
        p = kind(1.2 * p.x - 0.3 * k * a)
        if found is None or p.x > found.x:
            found = p
    return found.x


def in_lists(kind, a):
    xs = [kind(a), kind(2.0 * a)]
    for _ in range(20):
        xs = [kind(0.9 * o.x + a) for o in xs]
    return xs[0].x * xs[1].x


def as_items(kind, a):
    xs = [kind(a), kind(2.0 * a)]
    for _ in range(20):
        for i in range(2):
            if xs[i].x < 3.3 * a:
                xs[i] = kind(1.1 * xs[i].x)
    return xs[0].x * xs[1].x


def in_dicts(kind, a):
    held = {"one": kind(a), "other": kind(2.0 * a)}
    for k in range(20):
        if held["one"].x < 2.9:
            held["one"] = kind(held["one"].x + 0.1 * held["other"].x)
        held["other"] = held["one"] if k * a > 3.5 else kind(held["other"].x)
    return held["other"].x * a


def as_attributes(kind, a):
    whole = kind(kind(a))
    for k in range(20):
        if k * a > 12.5:
            whole.x = kind(whole.x.x + a)
        else:
            whole.x = kind(1.01 * whole.x.x)
    return whole.x.x


def swapped(kind, a):
    p, q = kind(a), kind(2.0 * a)
    for _ in range(7):
        p, q = q, kind(p.x + a)
    return p.x + 3.0 * q.x


PROGRAMS = [
    *(chosen, returned, early, bound_anew, until, of_objects, best),
    *(in_lists, as_items, in_dicts, as_attributes, swapped),
]


@pytest.mark.parametrize("kind", [Plain, Slotted])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_python_computes_it(program, kind):
    value, gradient = ckad.value_and_grad(lambda a: program(kind, a))(1.0)
    h = 1e-6
    assert value == pytest.approx(program(kind, 1.0), rel=1e-13)
    difference = (program(kind, 1.0 + h) - program(kind, 1.0 - h)) / (2.0 * h)
    assert gradient == pytest.approx(difference, rel=1e-6)


@pytest.mark.parametrize("program", [bound_anew, best, in_lists, in_dicts, as_attributes])
def test_loops_are_recorded_once(program):
    assert "written out" not in str(ckad.explain(lambda a: program(Plain, a), 1.0))


def test_what_was_changed_in_a_step_is_handed_on():
    def program(a):
        p = Plain(a)
        for _ in range(20):
            q = Plain(p.x + 0.1 * a)
            if q.x > 1.55:
                q.x = q.x - 0.5 * a
            p = q
        return p.x

    assert ckad.value_and_grad(program)(1.0)[0] == pytest.approx(program(1.0), rel=1e-13)


@pytest.mark.parametrize("kind", [Plain, Slotted])
def test_a_change_that_another_name_may_show_is_refused(kind):
    def program(a):
        p = kind(a)
        q = p if a > 0.5 else kind(2.0 * a)
        p.x = 5.0 * a
        return q.x

    with pytest.raises(AliasError, match="may be the one which 'q' shows"):
        ckad.grad(program)(1.0)


def test_what_one_side_has_changed_of_an_object_from_before_is_not_lost():
    def program(a):
        p = Plain(a)
        if a > 0.5:
            p.x = 4.0 * a
            q = p
        else:
            q = Plain(2.0 * a)
        return q.x + p.x

    with pytest.raises(CarryError, match="a Plain that is made in the body"):
        ckad.grad(program)(1.0)


def test_objects_that_know_each_other_end():
    class Node:
        def __init__(self, x, before=None):
            self.x, self.before = x, before
            self.itself = self

    def program(a):
        p = Node(a)
        if a > 0.5:
            p = Node(2.0 * a, p)
        return p.x

    with pytest.raises(CarryError):
        ckad.grad(program)(1.0)


class Vector:
    def __init__(self, x=0.0, y=0.0):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other):
        return Vector(self.x - other.x, self.y - other.y)

    def __mul__(self, factor):
        return Vector(self.x * factor, self.y * factor)

    def __iadd__(self, other):
        self.x += other.x
        self.y += other.y
        return self

    def length(self):
        return math.hypot(self.x, self.y)

    def unit(self):
        length = self.length()
        return Vector(self.x / length, self.y / length) if length > 0.0 else Vector()


class Ball:
    def __init__(self, at, speed):
        self.at, self.speed = at, speed


def balls_that_meet(bounce):
    balls = [Ball(Vector(0.1 * k, 0.02 * k), Vector(0.5 - 0.3 * k, 0.1)) for k in range(3)]
    for _ in range(60):
        for ball in balls:
            ball.at += ball.speed * 0.01
            if ball.at.y > 0.08:
                ball.speed = Vector(ball.speed.x, -bounce * ball.speed.y)
        for one, other in itertools.combinations(balls, 2):
            apart = other.at - one.at
            if apart.length() < 0.05:
                push = apart.unit() * bounce
                one.speed = one.speed - push * 0.1
                other.speed = other.speed + push * 0.1
    return sum(ball.at.x + ball.speed.y for ball in balls)


def test_pairs_of_objects_are_handed_on_and_the_recording_is_kept():
    assert not ckad.explain(balls_that_meet, 0.9).anew


def test_objects_in_sets_leave_the_recording_to_be_used_again():
    def program(a):
        root = Plain(a)
        first, last = Plain(root), Plain(root)
        seen, found = set(), []
        for node in (first, last):
            while isinstance(node, Plain) and node not in seen:
                seen.add(node)
                found.append(node)
                node = node.x
        return sum(node.x for node in found if node is root) * len(found)

    assert not ckad.explain(program, 2.0).anew
    assert ckad.value_and_grad(program)(2.0) == (6.0, 3.0)


def test_vectors_of_a_class():
    value, gradient = ckad.value_and_grad(balls_that_meet)(0.9)
    assert value == pytest.approx(balls_that_meet(0.9), rel=1e-12)
    h = 1e-6
    difference = (balls_that_meet(0.9 + h) - balls_that_meet(0.9 - h)) / (2.0 * h)
    assert gradient == pytest.approx(difference, rel=1e-5)
    within = ckad.value_and_grad(balls_that_meet, memory="100 KB")(0.9)
    assert np.array_equal(within, (value, gradient))


class Money:
    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        return Money(self.x + other.x if self.x > 0.0 else 2.0 * other.x)

    def __radd__(self, other):
        return self if other == 0 else NotImplemented


@pytest.mark.parametrize("start", [(), (Money(1.5),)])
def test_sums_of_objects_use_their_operators(start):
    def program(a):
        return sum((Money(a * k) for k in range(-2, 6)), *start).x

    assert ckad.value_and_grad(program)(2.0) == (program(2.0), program(3.0) - program(2.0))
    assert not ckad.explain(program, 2.0).anew


class Kept:
    def __init__(self, x):
        self.x, self.words, self.get = x, {"a", "b"}, lambda: x


@pytest.mark.parametrize("ask", [lambda q: q.x, lambda q: q.get()])
def test_the_last_of_the_objects_that_steps_make(ask):
    def program(kind, a):
        for k in range(10):
            q = kind(a * k)
        return q.x * a if kind is Plain else ask(q) * a

    for kind in (Plain, Kept):
        found = ckad.value_and_grad(lambda a, kind=kind: program(kind, a))(2.0)
        assert found == (36.0, 36.0)


@dataclasses.dataclass(frozen=True)
class Body:
    place: float
    speed: float = 2.0
    trace: np.ndarray | None = None

    @property
    def energy(self):
        return self.speed**2

    def moved(self, dt):
        return dataclasses.replace(self, place=self.place + dt * self.speed)


def replaced_in_steps(a):
    body = Body(a, trace=np.array([a, 1.0]))
    for k in range(9):
        body = body.moved(0.1 * body.energy)
        if body.place > 2.0:
            body = dataclasses.replace(body, speed=0.5 * body.speed, trace=k + body.trace)
    return body.place + body.energy + np.sum(body.trace)


def replaced_until_it_is_there(a):
    body = Body(a)
    while body.place < 5.0:
        body = dataclasses.replace(body, place=1.2 * body.place + 0.1, speed=body.place)
    return body.place * body.speed


@pytest.mark.parametrize("function", [replaced_in_steps, replaced_until_it_is_there])
def test_objects_with_some_fields_replaced(function):
    check_number(function, 0.7, rel=1e-14)


def test_a_replaced_object_shares_what_is_kept():
    def program(x):
        old = Body(x[0], trace=2.0 * x)
        new = dataclasses.replace(old, place=3.0)
        new.trace[0] = 9.0
        return old.trace * new.place

    assert ckad.jit(program)(np.ones(2)).tolist() == [27.0, 6.0]


given = Body(1.0)


def of_one_from_outside(x):
    object.__setattr__(given, "speed", x[0])
    return given.speed * x[1]


def of_one_of_two(x):
    body, other = Body(x[0]), Body(x[1])
    meant = body if x[0] > 0.5 else other
    object.__setattr__(meant, "speed", 3.0 * x[0])
    return body.speed + 2.0 * other.speed


@pytest.mark.parametrize("program", [of_one_from_outside, of_one_of_two])
def test_attributes_bound_past_the_class_are_refused_where_they_are_not_followed(program):
    with pytest.raises(CkadError, match=r"made outside of the function|may be the one which"):
        ckad.grad(program)(np.array([0.7, 0.2]))
    assert given.speed == 2.0


def test_attributes_bound_past_the_class_of_an_object_of_its_own():
    def program(x):
        body = Body(x)
        object.__setattr__(body, "speed", 3.0 * x)
        return body.energy

    check_number(program, 0.7, rel=1e-14)
