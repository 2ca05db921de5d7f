"""Classes that are defined in the function: their methods are recorded like any other."""

from __future__ import annotations

import dataclasses
import enum
from typing import NamedTuple

import numpy as np
import pytest

import ckad

SCALE = 0.5


def oscillator(v):
    class Particle:
        mass = 2.0

        def __init__(self, x, v):
            self.x, self.v = x, v

        @property
        def energy(self):
            return 0.5 * self.mass * self.v**2 + 0.5 * self.x**2

        @staticmethod
        def force(x):
            return -x * drag

        def step(self, dt):
            self.v += dt * self.force(self.x) / self.mass
            self.x += dt * self.v

        def __add__(self, other):
            return Particle(self.x + other.x, self.v + other.v)

    drag = 1.5
    several = [Particle(0.1 * k, v) for k in range(3)]
    for _ in range(40):
        for p in several:
            p.step(0.01)
    return (several[0] + several[2]).energy + several[1].energy


def inherited(v):
    class Body:
        def __init__(self, v):
            self.v = v

        def speed(self):
            return self.v**2

        @classmethod
        def at_rest(cls):
            return cls(0.0)

    class Slow(Body):
        factor = SCALE

        def __init__(self, v):
            super().__init__(v)
            self.n = 0

        def speed(self):
            self.n += 1
            return self.factor * super().speed()

    body, rest = Slow(v), Slow.at_rest()
    total = 0.0
    for _ in range(30):
        total += body.speed() + rest.speed()
        body.v *= 0.9
    return total + body.n * v


def of_libraries(v):
    @dataclasses.dataclass
    class State:
        x: float
        v: float = 1.0
        path: list = dataclasses.field(default_factory=list)

    class Point(NamedTuple):
        x: float
        y: float

    class Light(enum.Enum):
        RED = 0
        GREEN = 1

    state, light, point = State(v), Light.RED, Point(v, 2.0)
    for _ in range(30):
        state.x += 0.1 * state.v * point.y
        point = Point(point.x * 0.9, point.y)
        light = Light.GREEN if state.x > 3.0 else Light.RED
        state.v += 0.1 * v if light is Light.GREEN else 0.0
    return state.x + point.x + state.v


def in_a_helper(v):
    def make():
        class Tank:
            def __init__(self, level):
                self.level = level

            def drain(self, rate):
                self.level = self.level - rate * np.sqrt(self.level)

        return Tank

    tank = make()(v)
    for _ in range(50):
        if tank.level > 0.2:
            tank.drain(0.05)
    return tank.level


@pytest.mark.parametrize("program", [oscillator, inherited, of_libraries, in_a_helper])
def test_classes_defined_in_the_function(program):
    at, h = 1.3, 1e-6
    value, slope = ckad.value_and_grad(program, engine="vm")(at)
    np.testing.assert_allclose(value, program(at), rtol=1e-12)
    np.testing.assert_allclose(slope, (program(at + h) - program(at - h)) / (2 * h), rtol=1e-7)


@pytest.mark.parametrize("program", [oscillator, inherited, of_libraries, in_a_helper])
def test_their_loops_are_recorded_once(program):
    assert "recorded once" in str(ckad.explain(program, 1.3))
