"""Comprehensions whose condition is traced: what they keep is counted, reduced, run over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import TraceError, UnrecordableError

Function = Callable[[Any], Any]
AT = 0.83
X = np.array([0.3, -0.7, 1.2, 0.9, -0.1, 2.2, 0.05])


def summed(s):
    xs = s * X
    return sum(x for x in xs if x > 0) * 1.0


def counted_of_what_was_appended(s):
    cs = []
    c = s
    for _k in range(20):
        c = c * 1.1
        cs.append(c)
    above = [c for c in cs if c > 1.0]
    return max(cs) + len(above) * 0.1 * s + sum(above)


def extremes(s):
    xs = s * X
    return max(x**2 for x in xs if x < 0) + min([x for x in xs if x > 0.1])


def by_numpy(s):
    xs = s * X
    return (
        np.mean([x for x in xs if x > 0])
        + np.array([x * 2 for x in xs if x > 0]).sum()
        + np.std([x for x in xs if x < 1])
    )


def in_a_loop(s):
    xs = s * X
    t = 0.0
    for k in range(6):
        pos = [x for x in xs if x > 0.1 * k]
        if len(pos) > 3:
            t = t + sum(pos)
        if pos:
            t += 1 * s
        xs = xs * 1.05
    return t


def run_over(s):
    xs = s * X
    t = 0.0
    for x in [y * y for y in xs if y > 0]:
        t = 0.5 * t + x
    return t


def decided(s):
    xs = s * X
    return (1.0 if any(x > 0.5 for x in xs if x < 1) else 2.0) * s + all(
        x > 0 for x in xs if x > -1
    )


def only_where_it_is_finite(s):
    xs = s * X
    return sum(np.log(x) for x in xs if x > 0)


def of_pairs(s):
    xs = list(s * X)
    return sum(1 for x in xs if x > 0) * s + sum(
        x * w for x, w in zip(xs, range(7), strict=False) if x > 0 if w > 1
    )


def with_a_default(s):
    xs = s * X
    return max((x for x in xs if x > 100), default=s)


def as_it_was_when_it_was_made(s):

    xs = s * X
    lim = 0.0
    above = [x for x in xs if x > lim]
    lim = 5.0
    xs[:] = 0
    return sum(above) + len(above) * s


def indexed(s):
    return next(x for x in s * X if x > 0)


PROGRAMS: list[Function] = [
    *(summed, counted_of_what_was_appended, extremes, by_numpy, in_a_loop, run_over, decided),
    *(only_where_it_is_finite, of_pairs, with_a_default, as_it_was_when_it_was_made, indexed),
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_value_and_derivatives(f: Function) -> None:
    value, gradient = ckad.value_and_grad(f, engine="vm")(AT)
    assert value == pytest.approx(f(AT), rel=1e-13)
    assert gradient == pytest.approx((f(AT + 1e-6) - f(AT - 1e-6)) / 2e-6, rel=1e-6)
    assert ckad.jvp(f, (AT,), (1.0,), engine="vm")[1] == pytest.approx(gradient, rel=1e-12)
    within = ckad.value_and_grad(f, engine="vm", memory="60 kB")(AT)
    assert within == (value, gradient)


def joined(s):
    return sum([x for x in s * X if x > 0] + [s])


def run_over_late(s):
    total = 0.0
    for x in (x for x in s * X if x > 0):
        total = total + x
    return total


def a_set(s):
    return len({x for x in s * X if x > 0})


@pytest.mark.parametrize("f", [joined, run_over_late, a_set])
def test_what_needs_the_items_themselves_is_refused(f: Function) -> None:
    with pytest.raises((TraceError, UnrecordableError), match="which items a comprehension keeps"):
        ckad.jit(f, engine="vm")(AT)


def test_conditions_that_are_known_choose_as_in_python() -> None:
    def f(s):
        total = 0.0
        for name in (name for name in ("a", "bb", "ccc") if len(name) > 1):
            total = total + len(name) * s
        first = next(k for k in range(10) if k > 3)
        return total + [s * k for k in range(6) if k % 2][first - 2]

    assert ckad.value_and_grad(f, engine="vm")(AT) == pytest.approx((f(AT), 10.0))


def counting():
    seen = [0.0]

    def above(v):
        seen[0] = seen[0] + v
        return v > 1

    return seen, above


def conditions_that_count(s):
    seen, above = counting()
    xs = s * X
    kept = [x for x in (xs[0], xs[2], xs[5]) if above(x)]
    return sum(kept) + 10 * seen[0]


def a_generator_whose_condition_counts(s):
    seen, above = counting()
    return sum(x for x in s * X if above(x)) + 10 * seen[0]


def items_that_count_before_a_condition_is_undecided(s):
    seen, above = counting()
    kept = [(above(x), x)[1] for x in (5.0, s, 7.0) if x > 0.5]
    return sum(kept) + 10 * seen[0]


def a_filter_that_counts(s):
    seen, above = counting()
    return len(list(filter(above, s * X))) * s + seen[0]


@pytest.mark.parametrize(
    "function",
    [
        conditions_that_count,
        a_generator_whose_condition_counts,
        items_that_count_before_a_condition_is_undecided,
        a_filter_that_counts,
    ],
    ids=lambda function: function.__name__,
)
def test_what_conditions_change_is_changed_once(function: Function) -> None:
    value, slope = ckad.value_and_grad(function)(AT)
    assert value == pytest.approx(function(AT), rel=1e-13)
    difference = (function(AT + 1e-6) - function(AT - 1e-6)) / 2e-6
    assert slope == pytest.approx(difference, rel=1e-6)


class Agent:
    def __init__(self, energy, place):
        self.energy, self.place = energy, place

    def act(self, rate):
        self.place += 0.1 * self.energy
        self.energy -= rate * (1 + 0.1 * self.place)


def objects_that_are_kept(rate):
    agents = [Agent(1.0 + 0.3 * i, 0.5 * i) for i in range(6)]
    total = 0.0
    for _ in range(12):
        for a in agents:
            a.act(rate)
        near = [a for a in agents if abs(a.place - 1.0) < 0.6]
        if near:
            total += sum(a.place for a in near) / len(near)
        agents = [a for a in agents if a.energy > 0]
    return total + sum(a.place * a.energy for a in agents) + len(agents) * rate


def pairs_that_are_kept(rate):
    pairs = [(k * rate, (k + 1) * rate) for k in range(7)]
    kept = [(a, b) for a, b in pairs if a * b < 1.0]
    return sum(a * b for a, b in kept) + len(kept) * kept[-1][1]


@pytest.mark.parametrize("program", [objects_that_are_kept, pairs_that_are_kept])
def test_what_is_kept_may_be_objects(program):
    at, h = 0.13, 1e-6
    value, slope = ckad.value_and_grad(program, engine="vm")(at)
    np.testing.assert_allclose(value, program(at), rtol=1e-12)
    np.testing.assert_allclose(slope, (program(at + h) - program(at - h)) / (2 * h), rtol=1e-6)
