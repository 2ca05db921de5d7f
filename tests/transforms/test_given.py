"""Arguments and results that are objects of dataclasses: what they hold, not what their classes
would make of a part of it."""

from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np
import pytest

import ckad


@dataclass
class Spring:
    stiffness: Any
    rate: Any = field(init=False)

    def __post_init__(self) -> None:
        self.rate = 2.0 * self.stiffness


@dataclass
class Positive:
    x: Any

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("negative")


@dataclass
class Doubled:
    x: Any

    def __post_init__(self) -> None:
        self.x = 2.0 * self.x


@dataclass
class Scaled:
    x: Any
    scale: InitVar[float]

    def __post_init__(self, scale: float) -> None:
        self.y = self.x * scale


@dataclass(init=False)
class Halved:
    x: Any

    def __init__(self, twice: Any) -> None:
        self.x = twice / 2.0


@dataclass
class Open:
    x: Any


def changed(make: Any, **values: Any) -> Any:
    for name, x in values.items():
        setattr(make, name, x)
    return make


def energy(spring: Spring) -> Any:
    return spring.stiffness * spring.rate + spring.rate**2


def test_what_is_computed_is_derived_by_what_it_is_computed_from():
    value, by = ckad.value_and_grad(energy, engine="vm")(Spring(3.0))
    assert (value, by.stiffness, by.rate) == (54.0, 36.0, None)
    assert ckad.jvp(energy, (Spring(3.0),), (Spring(1.0),))[1] == 36.0
    assert ckad.hvp(energy, (Spring(3.0),), (by,)).stiffness == 12.0 * 36.0
    ckad.testing.check_grads(lambda two: energy(two[0]) * two[1], ((Spring(3.0), 2.0),))


@dataclass
class Wave:
    spring: Spring
    amplitude: Any

    def __post_init__(self) -> None:
        self.energy = self.spring.rate * abs(self.amplitude) ** 2


def test_what_is_computed_of_complex_fields_is_as_it_was_made():
    value, by = ckad.value_and_grad(lambda w: w.energy, engine="vm")(Wave(Spring(3.0), 1.0 + 2.0j))
    assert (value, by.spring.stiffness) == (pytest.approx(30.0), pytest.approx(10.0))
    assert by.amplitude == pytest.approx(12.0 - 24.0j)


OBJECTS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "computed and changed": (energy, changed(Spring(3.0), rate=10.0)),
    "with a variable of its __init__": (lambda p: p.x * p.y, Scaled(3.0, 5.0)),
    "twice what was given": (lambda p: p.x, Doubled(3.0)),
    "with an __init__ of its own": (lambda p: p.x, Halved(3.0)),
    "with another attribute": (lambda p: p.x * p.y, changed(Open(3.0), y=4.0)),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_arguments_are_what_they_are(name):
    fun, p = OBJECTS[name]
    assert ckad.jit(fun)(p) == fun(p)
    value, by_x = ckad.value_and_grad(lambda x, p: x * fun(p), engine="vm")(2.0, p)
    assert (value, by_x) == (2.0 * fun(p), fun(p))


@pytest.mark.parametrize("p", [changed(Spring(3.0), rate=10.0), Scaled(3.0, 5.0)])
def test_no_derivative_by_what_is_not_as_it_was_made(p):
    what = f"a {type(p).__name__} that is not what its __post_init__ makes of its fields"
    fun = lambda p: sum(vars(p).values())  # noqa: E731
    with pytest.raises(ckad.errors.DifferentiationError, match=what):
        ckad.grad(fun)(p)
    with pytest.raises(ckad.errors.DifferentiationError, match=what):
        ckad.jvp(fun, (p,), (p,))


def test_derivatives_are_not_made_by_the_class():
    assert ckad.grad(lambda p: -2.0 * p.x, engine="vm")(Positive(3.0)).x == -2.0
    assert ckad.grad(lambda p: p.x**2, engine="vm")(Doubled(3.0)).x == 12.0


def test_results_and_what_loops_carry_are_as_the_program_leaves_them():
    def set_once(x: Any) -> Any:
        return changed(Spring(x), rate=7.0 * x)

    def stepped(x: Any) -> Any:
        def step(spring: Spring, _: Any) -> Any:
            spring.rate = spring.rate * 1.5
            return spring, spring.rate

        spring, _ = ckad.scan(step, Spring(x), np.arange(3.0))
        return spring

    assert ckad.jit(set_once)(3.0) == set_once(3.0)
    assert ckad.jit(stepped)(3.0) == changed(Spring(3.0), rate=6.0 * 1.5**3)
    assert ckad.vjp(set_once, 3.0)[1](Spring(1.0)) == (15.0,)


def test_attributes_that_are_set_later_are_arguments(recordings):
    gradient = ckad.grad(lambda x, p: x * p.x * p.y, engine="vm")
    for k in range(14):
        assert gradient(2.0, changed(Open(3.0), y=4.0 + k)) == 3.0 * (4.0 + k)
    assert len(recordings) == 1
    assert gradient(2.0, changed(Open(3.0), y=np.float64(4.0), z=1.0)) == 12.0
    assert gradient(2.0, changed(Open(3.0), z=1.0, y=5.0)) == 15.0
    with pytest.raises(AttributeError, match="'y'"):
        gradient(2.0, Open(3.0))
