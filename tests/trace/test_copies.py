"""``copy.copy`` and ``copy.deepcopy`` in loops, which are recorded once for all their steps."""

from __future__ import annotations

import abc
import copy
from collections import defaultdict, deque
from dataclasses import dataclass, field

import numpy as np
import pytest

import ckad
from ckad.errors import UnrecordableError

from .idioms import check_number

AT = 0.6


class Moving(abc.ABC):
    @abc.abstractmethod
    def speed(self): ...


class Body(Moving):
    kind = "body"

    def __init__(self, x):
        self.x, self.v, self.trail = x, 0.0, [x, x]

    def speed(self):
        return self.v


@dataclass
class Cell:
    heat: float
    parts: dict = field(default_factory=dict)


def rows_of_lists(a):
    grid = [[0.0, a], [a, 1.0], [0.5, 0.2]]
    for _ in range(30):
        new = copy.deepcopy(grid)
        for i in range(3):
            for j in range(2):
                new[i][j] = 0.9 * grid[i][j] + 0.1 * a * grid[(i + 1) % 3][j]
        grid = new
    return sum(sum(row) for row in grid)


def the_state_before(a):
    u = np.linspace(0.0, a, 8)
    for _ in range(30):
        old = copy.deepcopy(u)
        u[1:-1] = old[1:-1] + 0.2 * (old[2:] - 2 * old[1:-1] + old[:-2])
    return np.sum(u**2)


def bodies(a):
    pair = [Body(a), Body(2 * a)]
    for _ in range(30):
        old = copy.deepcopy(pair)
        for i in range(2):
            pair[i].v = pair[i].v + 0.1 * (old[1 - i].x - old[i].x) + 0.01 * old[i].trail[0]
            pair[i].x = pair[i].x + 0.1 * pair[i].speed()
            pair[i].trail[0] = old[i].x
    return pair[0].x ** 2 + pair[1].v


def of_one_level(a):
    held = [np.array([a, 1.0]), np.array([2.0, a])]
    for _ in range(10):
        same, own = copy.copy(held), [copy.copy(x) for x in held]
        same[0] = 0.5 * same[0]
        own[1] += a
        held[0] = held[0] + 0.1 * own[1] + 0.1 * same[0]
    return np.sum(held[0] * held[1])


def one_array_in_two_places(a):
    shared = np.array([a, 1.0])
    total = 0.0
    for k in range(6):
        both = copy.deepcopy([shared, shared])
        both[0][0] += a * k  # the copy is one array, too
        total = total + both[1][0]
    return total


def the_best_so_far(a):
    now, best, least = Cell(a, {"w": a * np.ones(2)}), None, 10.0
    for k in range(12):
        now.heat = now.heat + np.sin(k * a)
        now.parts["w"] = now.parts["w"] * 0.9 + 0.1 * now.heat
        cost = (now.heat - 1.2) ** 2
        if best is None or cost < least:
            best, least = copy.deepcopy(now), cost
    return best.heat + np.sum(best.parts["w"])


def other_containers(a):
    window, counted = deque([a, 2 * a], maxlen=3), defaultdict(float)
    counted["x"] = a
    total = 0.0
    for _ in range(8):
        seen, sums = copy.copy(window), copy.deepcopy(counted)
        seen[0] = seen[0] * 0.5
        sums["x"] += seen[0]
        total = total + sums["x"] + sum(seen)
        window[0] = window[0] + a
        counted["x"] = counted["x"] + 0.5 * a
    return total


PROGRAMS = [
    *(rows_of_lists, the_state_before, bodies, of_one_level, one_array_in_two_places),
    *(the_best_so_far, other_containers),
]


@pytest.mark.filterwarnings("error::ckad.errors.UnrolledLoopWarning")
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_value_and_gradient(f):
    check_number(f, AT, memory="60 kB")


@pytest.mark.parametrize("f", [rows_of_lists, the_state_before, bodies, of_one_level])
def test_loops_are_recorded_once(f):
    assert "cannot" not in str(ckad.explain(f, AT))
    assert len(ckad.trace(f)(AT)) < 60


class Counted:
    """Its copies are made in a way of its own."""

    def __init__(self, x):
        self.x = x

    def __deepcopy__(self, memo):
        return Counted(2 * self.x)


def test_copies_in_a_way_of_their_own_are_pythons():
    def f(a):
        held, total = Counted(a), 0.0
        for _ in range(6):
            total = total + copy.deepcopy(held).x
        return total

    assert ckad.value_and_grad(f, engine="vm")(AT) == pytest.approx((f(AT), 12.0))


def test_what_holds_itself():
    def f(a):
        held = [a]
        held.append(held)
        total = 0.0
        for k in range(200_000):
            total = total + copy.deepcopy(held)[0] * k
        return total

    with pytest.raises((UnrecordableError, ckad.errors.CkadError)):
        ckad.grad(f, engine="vm")(AT)
