"""``xs.remove(x)`` and ``xs.index(x)`` where traced values decide which item that is."""

from __future__ import annotations

import numpy as np
import pytest

import ckad


class Agent:
    def __init__(self, energy, place):
        self.energy, self.place = energy, place

    def act(self, rate):
        self.place += 0.1 * self.energy
        self.energy -= rate * (1 + 0.1 * self.place)


def made():
    return [Agent(1.0 + 0.3 * i, 0.5 * i) for i in range(6)]


def while_run_over(rate):
    agents = made()
    for _ in range(12):
        for a in agents[:]:
            a.act(rate)
            if a.energy < 0:
                agents.remove(a)
    return sum(a.place * a.energy for a in agents) + len(agents) * rate


def the_dead(rate):
    agents = made()
    for _ in range(12):
        dead = []
        for a in agents:
            a.act(rate)
            if a.energy < 0:
                dead.append(a)
        for a in dead:
            agents.remove(a)
    return sum(a.place * a.energy for a in agents) + len(agents) * rate


def the_nearest(x):
    xs, total = [x * k for k in range(8)], 0.0
    while len(xs) > 1:
        nearest = min(xs, key=lambda v: abs(v - 0.31))
        total += nearest * len(xs)
        xs.remove(nearest)
    return total + xs[0]


def the_best(x):
    agents = [Agent(1.0 + x * i, 0.5 * i) for i in range(6)]
    best = max(agents, key=lambda a: a.energy * (3 - a.place))
    k = agents.index(best)
    agents.remove(best)
    return sum(a.place * a.energy for a in agents) + k * x


def of_what_was_appended(x):
    xs = []
    for k in range(30):
        v = np.sin(3 * k * x)
        if v > 0.3:
            xs.append(v)
    at = xs.index(max(xs))
    return xs[at] * at * x + len(xs) + xs.count(xs[0])


@pytest.mark.parametrize(
    "program", [while_run_over, the_dead, the_nearest, the_best, of_what_was_appended]
)
def test_an_item_that_is_looked_for(program):
    at, h = 0.13, 1e-6
    value, slope = ckad.value_and_grad(program, engine="vm")(at)
    np.testing.assert_allclose(value, program(at), rtol=1e-12)
    np.testing.assert_allclose(slope, (program(at + h) - program(at - h)) / (2 * h), rtol=1e-6)


def whose_front_goes(x):
    xs, t = [0.3, x, 1.0], 0
    while t < 11 and abs(x) < 30:
        del xs[0]
        t += 1
    return x + len(xs)


def whose_end_goes_sometimes(x):
    xs = [0.3, x, 1.0]
    for t in range(11):
        if x * t >= 0:
            xs.pop()
    return x + len(xs)


@pytest.mark.parametrize("program", [whose_front_goes, whose_end_goes_sometimes])
def test_no_list_is_shorter_than_an_empty_one(program):
    with pytest.raises(IndexError, match=r"test_items_taken_out.py:\d+: .* at step 3"):
        ckad.value_and_grad(program, engine="vm")(0.7)
