"""Recordings that are used again: methods given to SciPy, objects handed to Python's functions."""

from __future__ import annotations

import enum
import functools
import heapq
import inspect
import itertools
import operator
from types import SimpleNamespace
from typing import Optional

import numpy as np
import pytest
from scipy.integrate import odeint, solve_ivp
from scipy.optimize import brentq, curve_fit

import ckad

from .idioms import check

SETTINGS = SimpleNamespace(rate=0.4)


class Epidemic:
    def __init__(self, rate, loss):
        self.rate, self.loss = rate, loss

    def slope(self, t, y):
        return [-self.rate * y[0] * y[1], self.rate * y[0] * y[1] - self.loss * y[1]]

    def slope_first(self, y, t):
        return self.slope(t, y)

    def known_slope(self, t, y):
        return -SETTINGS.rate * y

    def zero(self, x):
        return x**3 - self.rate

    def model(self, x, a, b):
        return a * np.exp(-b * x) + 0.1 * SETTINGS.rate

    def run(self):
        found = solve_ivp(self.slope, (0.0, 3.0), [0.9, 0.1], t_eval=np.linspace(0.0, 3.0, 7))
        return np.sum(found.y[1])


class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def dot(self, other):
        return self.x * other.x + self.y * other.y

    def __abs__(self):
        total = 0.0
        for part in (self.x, self.y):
            total = total + part**2
        return total

    def __round__(self, digits=0):
        return Vector(self.x * 10**digits, self.y)


def by_solve_ivp(a, b):
    return Epidemic(a, b).run()


def by_odeint(a, b):
    model = Epidemic(a, b)
    return np.sum(odeint(model.slope_first, [0.9, 0.1], np.linspace(0.0, 3.0, 7))[:, 0])


def by_brentq(a, b):
    return b * brentq(Epidemic(a, b).zero, 0.0, 2.0)


def by_curve_fit(a, b):
    x = np.linspace(0.0, 2.0, 9)
    found, _ = curve_fit(Epidemic(a, b).model, x, a * np.exp(-b * x), p0=[1.0, 1.0])
    return found[0] + found[1]


def by_builtins(a, b):
    return abs(Vector(a, b)) + round(Vector(a, b), 1).x


def mapped(a, b):
    vectors = list(map(Vector, [a, b, a * b], [b, a, 1.0]))
    turned = map(Vector(1.0, 2.0).dot, vectors)
    return sum(map(abs, vectors)) + sum(turned)


def found_in_a_list(a, b):
    scene = [Vector(a, b), Vector(b, a)]
    total = 0.0
    for one in scene:
        total = total + one.x * (scene.index(one) + 2) * scene.count(one)
    return total


def seeded_by_keyword(a, b):
    np.random.seed(seed=4)
    rng, old = np.random.default_rng(seed=np.int64(3)), np.random.RandomState(seed=5)
    return a * np.random.rand() + b * rng.random() + a * b * old.rand()


def registered(function):
    signature = inspect.signature(function)

    def called(*args, **options):
        given = signature.bind(*args, **options)
        factor = given.arguments.pop("factor", 1.0)
        return function(*given.args, **given.kwargs) * factor

    return called


@registered
def weighted(x, y, factor=None):
    return x * y + LAYERS[0].weight


def bound_by_a_signature(a, b):
    return weighted(a, b, factor=3.0) + weighted(a, y=a)


class Sampler:
    """It keeps NumPy's own stream where it is given none."""

    def __init__(self, scale, stream=None):
        self.scale, self.stream = scale, np.random.mtrand._rand if stream is None else stream


def kept_stream_of_numpy(a, b):
    return Sampler(a).scale * Sampler(b, np.random.RandomState(2)).stream.rand()


def kept_stream_of_numpy_that_is_seeded(a, b):
    np.random.seed(6)
    return Sampler(a).stream.rand() * b


def asked_whether_all_are_there(a, b):
    groups = [(Vector(a, b), Vector(b, a)), (Vector(1.0, b),)]
    if not all(groups) or not any(groups[0]):
        raise ValueError("an empty group")
    return sum(one.x * one.y for group in groups for one in group)


class Charging:
    """Events are methods in a heap."""

    def __init__(self, rate, level):
        self.rate, self.level, self.queue, self.number = rate, level, [], 0

    def after(self, delay, act):
        self.number += 1
        heapq.heappush(self.queue, (delay, self.number, act, (delay, self)))

    def charge(self, now, other):
        self.level = self.level + self.rate * (1.0 - other.level)
        if now < 2.0:
            self.after(now + 0.5, self.charge)


def events_of_methods(a, b):
    one = Charging(a, b)
    one.after(0.25, one.charge)
    one.after(0.5, one.charge)
    while one.queue:
        *_, act, given = heapq.heappop(one.queue)
        act(*given)
    return one.level


NUMBERS = float | np.floating | list[float]
MAYBE = Optional[float]  # noqa: UP045


def classes_written_as_unions(a, b):
    return a * b if isinstance(a, int | str) or MAYBE is NUMBERS else a * a + b * len([NUMBERS])


class Layer:
    def __init__(self, weight):
        self.weight = weight

    def forward(self, h, shift=0.0):
        return np.tanh(self.weight * h) + shift

    @functools.lru_cache  # noqa: B019
    def scaled(self, k):
        return k * self.weight


class Move(enum.IntEnum):
    LEFT, RIGHT = 0, 1


class Kind(enum.Enum):
    SMOOTH = "smooth"
    KINKED = ("kinked", 2)

    @classmethod
    def of(cls, word):
        return cls(word)

    def apply(self, x):
        return np.tanh(x) if self is Kind.SMOOTH else 2.0 * x


LAYERS = [Layer(0.5), Layer(0.7), Layer(0.2)]
WEIGHT, FORWARD = operator.attrgetter("weight"), operator.methodcaller("forward", 0.3, shift=0.1)


def reduced(a, b):
    return functools.reduce(lambda h, layer: layer.forward(h), LAYERS, a) * b


def accumulated(a, b):
    *_, last = itertools.accumulate(LAYERS, lambda h, layer: layer.forward(h), initial=a)
    return last * b


def starred(a, b):
    return sum(itertools.starmap(lambda f, x: f.forward(x), [(LAYERS[0], a), (LAYERS[1], b)]))


def parted(a, b):
    heavy = itertools.takewhile(lambda f: f.weight > 0.3, LAYERS)
    light = itertools.filterfalse(lambda f: f.weight > 0.3, LAYERS)
    grouped = itertools.groupby(LAYERS, key=lambda f: f.weight > 0.3)
    total = sum(f.forward(a) for f in heavy) + b * sum(f.forward(b) for f in light)
    return total + sum(f.forward(a * b) for _, group in grouped for f in group)


def looked_into(a, b):
    least = min(LAYERS, key=WEIGHT)
    first = sorted(LAYERS, key=operator.attrgetter("weight", "forward.__name__"))[0]
    return a * first.weight + b * least.forward(a) * sum(map(FORWARD, LAYERS))


def found_by_value(a, b):
    steps = {Move.LEFT: a, Move.RIGHT: a * b}
    smooth, kinked = Kind.of("smooth"), Kind(("kinked", 2))
    return steps[Move(1)] * len(Move(0).name) + smooth.apply(b) * kinked.apply(a)


def kept_by_a_method(a, b):
    return a * LAYERS[0].scaled(2.0) + b * LAYERS[1].scaled(a)


PROGRAMS = [
    *(reduced, accumulated, starred, parted, looked_into, found_by_value, kept_by_a_method),
    *(by_solve_ivp, by_odeint, by_brentq, by_curve_fit, by_builtins, mapped, found_in_a_list),
    *(seeded_by_keyword, kept_stream_of_numpy, kept_stream_of_numpy_that_is_seeded),
    *(asked_whether_all_are_there, events_of_methods, bound_by_a_signature),
    classes_written_as_unions,
]


@pytest.mark.filterwarnings("ignore::ckad.errors.SolverWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_it_is_recorded_once(program):
    loose = program in (by_curve_fit, by_solve_ivp, by_odeint)
    if loose:  # of what adapts its steps differences say little
        value, slopes = ckad.value_and_grad(program, (0, 1))(0.7, 0.3)
        assert value == pytest.approx(program(0.7, 0.3), rel=1e-6)
        for k, slope in enumerate(slopes):
            step = np.eye(2)[k] * 1e-4
            up, down = program(*((0.7, 0.3) + step)), program(*((0.7, 0.3) - step))
            assert slope == pytest.approx((up - down) / 2e-4, rel=2e-3)
    else:
        check(program, 0.7, 0.3)
    assert ckad.explain(program, 0.7, 0.3).anew == ""


def test_what_a_method_reads_is_held_against_what_it_is(monkeypatch):
    def program(x):
        model = Epidemic(x, x)
        found = solve_ivp(model.known_slope, (0.0, 1.0), [1.0], t_eval=[1.0])
        return x * found.y[0, -1]

    gradient = ckad.value_and_grad(program)
    for rate in (0.4, 0.9, 0.4):
        monkeypatch.setattr(SETTINGS, "rate", rate)
        value, slope = gradient(0.5)
        assert value == pytest.approx(program(0.5), rel=1e-9)
        assert slope == pytest.approx(program(1.0), rel=1e-9)


@pytest.mark.parametrize(
    "program", [reduced, accumulated, starred, parted, looked_into, kept_by_a_method]
)
def test_objects_that_functions_are_given_are_held_against_what_they_were(program, monkeypatch):
    gradient = ckad.value_and_grad(program, (0, 1))
    for weight in (0.5, 0.1, 0.5):
        monkeypatch.setattr(LAYERS[0], "weight", weight)
        Layer.scaled.cache_clear()
        assert gradient(0.7, 0.3)[0] == pytest.approx(program(0.7, 0.3), rel=1e-14)
    monkeypatch.setattr(Layer, "forward", lambda self, h, shift=0.0: self.weight * h + shift)
    monkeypatch.setattr(Layer, "scaled", lambda self, k: k * k * self.weight)
    assert gradient(0.7, 0.3)[0] == pytest.approx(program(0.7, 0.3), rel=1e-14)
    try:
        LAYERS.insert(0, Layer(0.1))
        assert gradient(0.7, 0.3)[0] == pytest.approx(program(0.7, 0.3), rel=1e-14)
    finally:
        del LAYERS[0]


def test_members_found_by_their_values_are_held_against_what_they_were(monkeypatch):
    def program(x):
        return Kind("smooth").apply(x) * getattr(Kind("smooth"), "gain", 1.0) * Move(1)

    slope = ckad.value_and_grad(program)
    assert slope(0.5)[0] == program(0.5)
    monkeypatch.setattr(Kind.SMOOTH, "gain", 3.0, raising=False)
    assert slope(0.5)[0] == program(0.5)
    monkeypatch.setattr(Kind.SMOOTH, "gain", 4.0)
    assert slope(0.5)[0] == program(0.5)
    monkeypatch.setattr(Kind, "apply", lambda self, x: x * x)
    assert slope(0.5)[0] == program(0.5)
    monkeypatch.setitem(Kind._value2member_map_, "smooth", Kind.KINKED)
    assert slope(0.5)[0] == program(0.5)


class Near:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return abs(self.x - getattr(other, "x", other)) < SETTINGS.near

    def __bool__(self):
        return self.x > SETTINGS.near

    __hash__ = None


def test_what_methods_of_keys_read_is_held_against_what_it_was(monkeypatch):
    def grouped(x):
        return x * len(list(itertools.groupby([1.0, 1.2, 3.0], key=Near)))

    def taken(x):
        return x * len(list(itertools.takewhile(lambda v: Near(v), [3.0, 2.0, 1.0, 0.1])))

    def among(x):
        return x * (Near(1.0) in [Near(1.2), 9.0]) + x

    for program in (grouped, taken, among):
        slope = ckad.grad(program)
        for near in (0.5, 0.01, 5.0):
            monkeypatch.setattr(SETTINGS, "near", near, raising=False)
            assert slope(1.0) == program(1.0)


class Key:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return abs(self.x - other.x) < SETTINGS.near

    def __hash__(self):
        return 0

    @functools.lru_cache  # noqa: B019
    def own(self):
        return self.x


@functools.lru_cache
def of_key(key):
    return key.x


@pytest.mark.parametrize("kept", [of_key, Key.own])
def test_what_a_key_of_a_cache_reads_is_held_against_what_it_was(kept, monkeypatch):
    def program(x):
        return x * (kept(Key(1.0)) + kept(Key(1.2)))

    slope = ckad.grad(program)
    for near in (0.5, 0.01, 5.0):
        monkeypatch.setattr(SETTINGS, "near", near, raising=False)
        kept.cache_clear()
        assert slope(1.0) == program(1.0)


class Body:
    mass = 1.0

    def __init__(self, mass):
        self.mass = mass


BODIES, BODY, DEFAULT = [Body(1.0)], Body(1.0), Body


def mass_of_one():
    return BODY.mass


class Masses:
    """Python asks objects of it for their items, which are read from others."""

    bodies = BODIES

    def __init__(self):
        self.within, self.kind, self.found = {"all": BODIES}, Body, mass_of_one

    def __iter__(self):
        return iter([self.told()])

    def helped(self):
        return self.kind.mass


ASKS = {
    "global list": lambda self: BODIES[0].mass,
    "global object": lambda self: BODY.mass,
    "global class": lambda self: DEFAULT.mass,
    "list of the class": lambda self: self.bodies[0].mass,
    "list in a dict": lambda self: self.within["all"][0].mass,
    "class": lambda self: self.helped(),
    "function": lambda self: self.found(),
    "default": lambda self, body=BODY: body.mass,
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_what_methods_read_of_other_objects_is_held_against_what_it_was(ask, monkeypatch):
    monkeypatch.setattr(Masses, "told", ask, raising=False)

    def program(x):
        return x * sum(list(Masses()))

    slope = ckad.grad(program)
    for mass in (1.0, 3.0):
        for owner in (BODIES[0], BODY, Body):
            monkeypatch.setattr(owner, "mass", mass)
        assert slope(1.0) == program(1.0)
