"""What methods read that Python runs: a recording is used again as long as it is the same."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
import pytest
from numpy.random import rand

import ckad
from ckad.transforms.call import Call

SCALE = 1.0


def scaled(x):
    return SCALE * x


class Pair:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __iter__(self):
        yield from (scaled(self.x), self.y)

    def __reversed__(self):
        return iter([scaled(self.x)])

    def __len__(self):
        return int(SCALE)

    def __index__(self):
        return int(SCALE)

    def __eq__(self, other):
        return scaled(self.x) == other.x

    def __hash__(self):
        return 1

    def __repr__(self):
        return f"{SCALE}"


def unpacked(x):
    a, b = Pair(x, 2.0)
    return a * b


def starred(x):
    return math.hypot(*Pair(x, 2.0))


def in_a_loop(x):
    total = 0.0
    for k in range(3):
        total += sum(i * v for i, v in enumerate(Pair(x + k, 2.0), 1))
    return total


OF_PAIRS = {
    "tuple": lambda x: math.fsum(tuple(Pair(x, 2.0))),
    "sum": lambda x: sum(Pair(x, 2.0)),
    "zip": lambda x: sum(a * b for a, b in zip(Pair(x, 1.0), Pair(x, 2.0), strict=True)),
    "dict": lambda x: dict(zip("ab", Pair(x, 1.0), strict=True))["a"],
    "array": lambda x: np.sum(np.array(list(Pair(x, 2.0)))),
    "reversed": lambda x: next(reversed(Pair(x, 1.0))),
    "len": lambda x: x * len(Pair(x, 2.0)),
    "index": lambda x: x * [1, 2, 3, 4][Pair(1.0, 2.0)],
    "set": lambda x: x * len({Pair(1.0, 1.0), Pair(2.0, 1.0)}),
    "repr": lambda x: x * float(repr(Pair(1.0, 1.0))),
    "text": lambda x: x * float(f"{Pair(1.0, 1.0)}"),
    "unpacked": unpacked,
    "starred": starred,
    "in a loop": in_a_loop,
}


@pytest.mark.parametrize("function", OF_PAIRS.values(), ids=OF_PAIRS)
def test_a_name_that_a_method_reads_is_looked_at_again(monkeypatch, function):
    gradient = ckad.value_and_grad(function, engine="vm")
    for scale in (1.0, 2.0, 3.0, 1.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        assert gradient(1.5)[0] == function(1.5)


@pytest.mark.parametrize("function", OF_PAIRS.values(), ids=OF_PAIRS)
def test_the_recording_is_kept(function):
    assert not Call(function, (1.5,), {}).anew


class Scaled:
    def __init__(self, x):
        self.x = x

    @property
    def by_property(self):
        return SCALE * self.x

    @staticmethod
    def by_function(x):
        return SCALE * x

    def by_method(self):
        return SCALE * self.x


class OwnProperty(Scaled):
    def __iter__(self):
        yield self.by_property


class OwnMethod(Scaled):
    def __iter__(self):
        yield self.by_method()


class OthersProperty(Scaled):
    def __iter__(self):
        yield Scaled(self.x).by_property


class OthersFunction(Scaled):
    def __iter__(self):
        yield Scaled.by_function(self.x)


class OfAnObject(Scaled):
    def __iter__(self):
        yield self.x.by_method()


@pytest.mark.parametrize("kind", [OwnProperty, OwnMethod, OthersProperty, OthersFunction])
def test_what_a_method_reaches_is_looked_at_again(monkeypatch, kind):
    gradient = ckad.value_and_grad(lambda x: sum(kind(x)), engine="vm")
    for scale in (1.0, 2.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        assert gradient(1.5)[0] == 1.5 * scale


def test_what_a_method_asks_of_another_object_is_looked_at_again(monkeypatch):
    gradient = ckad.value_and_grad(lambda x: sum(OfAnObject(Scaled(x))), engine="vm")
    for scale in (1.0, 2.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        assert gradient(1.5)[0] == 1.5 * scale


class Counting(Scaled):
    """Runs over itself, which `super` asks of nobody."""

    def __init__(self, x):
        self.other = Scaled(x)
        super(Counting, self).__init__(2.0 * x)  # noqa: UP008

    def __iter__(self):
        self.n = 0
        return self

    def __next__(self):
        raise StopIteration


def test_super_runs_over_nothing():
    assert not Call(lambda x: Counting(x).by_property, (1.5,), {}).anew


class Drawing(Scaled):
    def __iter__(self):
        yield np.random.rand() * self.x


class DrawingByName(Scaled):
    def __iter__(self):
        yield rand() * self.x


class Timed(Scaled):
    def __iter__(self):
        yield perf_counter() * self.x


@pytest.mark.parametrize("kind", [Drawing, DrawingByName, Timed])
def test_what_a_method_draws_is_drawn_anew(kind):
    gradient = ckad.value_and_grad(lambda x: sum(kind(x)), engine="vm")
    assert gradient(1.5)[0] != gradient(1.5)[0]


class Bag:
    """What is outside of the function, and gives its items by a generator or as a list's."""

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        yield from (scaled(item) for item in self.items)

    def __len__(self):
        return len(self.items)


class Held(Bag):
    def __iter__(self):
        return iter([scaled(item) for item in self.items])

    def __reversed__(self):
        return reversed(self.items)


BAGS = {"generator": Bag([3.0, 1.0, 2.0]), "list": Held([3.0, 1.0, 2.0])}
OF_BAGS = {
    "comprehension": lambda x, bag: sum([x * item for item in bag]),
    "expression": lambda x, bag: sum(x * a * b for a in bag for b in bag),
    "dict": lambda x, bag: {k: x * item for k, item in enumerate(bag)}[1],
    "sorted": lambda x, bag: x * sorted(bag, key=lambda item: -item)[0] + max(bag) * x,
    "list": lambda x, bag: x * list(bag)[1] * len(bag) * len([*bag]),
    "unpacked": lambda x, bag: next(x * a * c for a, _, c in [bag]),
    "reduced": lambda x, bag: x * functools.reduce(lambda a, b: a + b, bag),
}


@pytest.mark.parametrize("kind", BAGS)
@pytest.mark.parametrize("function", OF_BAGS.values(), ids=OF_BAGS)
def test_an_object_from_outside_is_run_over_from_its_source(monkeypatch, function, kind):
    def program(x):
        return sum(function(x + k, BAGS[kind]) for k in range(3))

    assert not Call(program, (1.5,), {}).anew
    gradient = ckad.value_and_grad(program, engine="vm")
    for scale in (1.0, 2.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        assert gradient(1.5)[0] == pytest.approx(program(1.5), rel=1e-15)
    monkeypatch.setattr(BAGS[kind], "items", [1.0, 2.0, 5.0])
    assert gradient(1.5)[0] == pytest.approx(program(1.5), rel=1e-15)


def test_other_items_of_an_object_from_outside(monkeypatch):
    held = BAGS["list"]

    def program(x):
        return x * next(iter(held)) * next(reversed(held)) * sum(map(scaled, held))

    assert not Call(program, (1.5,), {}).anew
    assert ckad.grad(program)(1.5) == program(1.0)
    assert ckad.grad(lambda x: max(Held([x, 2 * x])) * x)(1.5) == 6.0


def drawn_from(scale):
    yield SCALE * scale
    yield SCALE


def test_what_a_generator_reads_that_python_runs_is_looked_at_again(monkeypatch):
    value = ckad.jit(lambda x: x * next(drawn_from(x)), engine="vm")
    for scale in (1.0, 2.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        assert value(1.5) == 1.5 * 1.5 * scale


@dataclass
class Body:
    mass: float
    at: object = None
    hidden: float = field(default=0.0, repr=False)


@dataclass(repr=False)
class Moon(Body):
    phase: float = 1.0


EARTH = Body(1.0, Moon(0.5, None))
EARTH.at.at = EARTH


def test_texts_of_dataclasses_do_not_have_a_program_recorded_anew(capsys):
    def program(x):
        print(f"{EARTH} {EARTH!r:>60}", str(EARTH), repr(EARTH.at))
        print(f"{Body(x)}")
        return x * len(str(EARTH))

    assert not Call(program, (1.5,), {}).anew
    capsys.readouterr()
    assert ckad.grad(program, engine="vm")(1.5) == len(str(EARTH))
    shown = capsys.readouterr().out
    program(1.5)
    assert shown.splitlines()[0] == capsys.readouterr().out.splitlines()[0]


def test_classes_that_a_function_is_registered_for_meanwhile():
    @functools.singledispatch
    def factor(value):
        return 1.0

    compiled = ckad.grad(lambda x: factor(2.5) * x)
    assert compiled(3.0) == 1.0
    factor.register(float)(lambda value: 5.0)
    assert compiled(3.0) == 5.0
