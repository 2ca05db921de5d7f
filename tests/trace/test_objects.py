"""Objects whose attributes a program changes, in loops and branches."""

from __future__ import annotations

import itertools
import types
from dataclasses import dataclass

import numpy as np
import pytest

import ckad

from .idioms import check_number

pytestmark = pytest.mark.usefixtures("engine")
PROGRAMS = []


def a(n):
    return np.random.default_rng(n).random(n) + 0.5


def prog(x):
    def register(function):
        PROGRAMS.append((function, x))
        return function

    return register


class Sim:
    def __init__(self, u, dt):
        self.u = u.copy()
        self.t = 0.0
        self.dt = dt
        self.n = 0
        self.best = -1.0

    def step(self):
        self.u[1:-1] += self.dt * (self.u[2:] - 2 * self.u[1:-1] + self.u[:-2])
        self.t += self.dt
        self.n += 1
        if self.u[3] > self.best:
            self.best = self.u[3] * 1.0

    def run(self, n):
        for _ in range(n):
            self.step()
        return np.sum(self.u**2) + self.t * self.best + self.n


@prog(a(8))
def sim(x):
    return Sim(x, 0.1).run(12)


G = Sim(np.ones(8), 0.1)


@prog(a(8))
def glob(x):
    G.u = x.copy()
    G.t = 0.0
    G.n = 0
    G.best = -1.0
    return G.run(9)


@dataclass
class P:
    x: float
    v: float


@prog(a(2))
def ball(z):
    p = P(z[0], z[1])
    for _i in range(50):
        p.v -= 0.1
        p.x += p.v * 0.1
        if p.x < 0:
            p.x = -p.x
            p.v = -0.9 * p.v
    return p.x + p.v


class Swap:
    def __init__(self, u):
        self.a = u.copy()
        self.b = np.zeros_like(u)

    def go(self, n):
        for _ in range(n):
            self.b[1:-1] = 0.5 * (self.a[2:] * self.a[:-2])
            self.a, self.b = self.b, self.a


@prog(a(8))
def swapo(x):
    s = Swap(x)
    s.go(7)
    return np.sum(s.a**2)


class Opt:
    def __init__(self):
        self.m = 0
        self.lr = 0.1

    def update(self, w, g):
        self.m = 0.9 * self.m + g
        return w - self.lr * self.m


@prog(a(4))
def opt(w):
    o = Opt()
    for _i in range(30):
        w = o.update(w, 2 * w + np.sin(w))
    return np.sum(w**2)


@prog(a(4))
def until(w):
    s = Sim(w, 0.1)
    while s.t < 1.0:
        s.u = s.u * 0.9
        s.t += s.dt
    return np.sum(s.u)


@pytest.mark.parametrize(("program", "x"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_it_is_what_python_gives(program, x):
    expected = program(x.copy())
    np.testing.assert_allclose(ckad.jit(program)(x), expected, rtol=1e-12)
    ckad.testing.check_grads(program, (x,), order=1)


def test_objects_from_outside_are_as_they_were():
    x = a(8)
    G.u, G.t = x, 7.0
    ckad.grad(glob)(x)
    assert G.u is x
    assert G.t == 7.0


class _Single:
    def value(self, x):
        return x


class _Double(_Single):
    def value(self, x):
        return 4 * x


def test_a_class_that_is_bound_anew_is_followed():
    def f(x):
        single = _Single()
        single.__class__ = _Double
        return single.value(x)

    assert ckad.value_and_grad(f)(5.0) == (20.0, 4.0)


class Knot:
    def __init__(self, place):
        self.place, self.pos, self.ties = place, place, []


@dataclass
class Tie:
    one: Knot
    other: Knot
    broken: bool = False

    def pull(self, stiffness):
        if self.broken:
            return
        gap = self.other.pos - self.one.pos - 0.5
        if gap > 5.0:
            self.broken = True
            return
        self.one.pos = self.one.pos + stiffness * gap
        self.other.pos = self.other.pos - stiffness * gap


def test_objects_in_a_ring_are_changed_by_steps_and_the_recording_is_kept():
    """Each tie holds its knots, and each knot its ties."""

    def program(stiffness):
        knots = [[Knot(float(i * j)) for i in range(3)] for j in range(2)]
        ties = []
        for row in knots:
            for one, other in itertools.pairwise(row):
                ties.append(Tie(one, other))
                one.ties.append(ties[-1])
        for _ in range(7):
            for tie in ties:
                tie.pull(stiffness)
        return sum(knot.pos**2 for knot in itertools.chain.from_iterable(knots))

    check_number(program, 0.3)
    explained = ckad.explain(program, 0.3)
    assert "recorded once" in str(explained)
    assert explained.anew == ""


class Defaults:
    rate = 1.0


SPACE = types.SimpleNamespace(rate=1.0, total=0.0)


def bound_on_a_namespace(x):
    SPACE.total = 0.0
    for k in range(30):
        SPACE.total = SPACE.total * 0.5 + x * k
    SPACE.rate, SPACE.more = 2.0 * x, [x]
    return SPACE.rate * SPACE.total * SPACE.more[0]


def bound_on_a_class(x):
    Defaults.rate, Defaults.more = 2.0 * x, x**2
    return Defaults.rate + Defaults.more


def a_namespace_of_its_own(x):
    state = types.SimpleNamespace(x=x, t=0.0)
    while state.t < 1.0:
        state.x, state.t = state.x * 1.1, state.t + 0.1
    return state.x


@pytest.mark.parametrize(
    "program", [bound_on_a_namespace, bound_on_a_class, a_namespace_of_its_own]
)
def test_namespaces_and_classes_are_put_back(program):
    gradient = ckad.grad(program, engine="vm")
    for _ in range(3):
        gradient(0.7)
        assert vars(SPACE) == {"rate": 1.0, "total": 0.0}
        assert Defaults.rate == 1.0
        assert not hasattr(Defaults, "more")
    check_number(program, 0.7)
    vars(SPACE).update(rate=1.0, total=0.0)
    vars(SPACE).pop("more", None)
    Defaults.rate = 1.0
    if hasattr(Defaults, "more"):
        del Defaults.more
