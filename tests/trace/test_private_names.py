"""``self.__x`` is an attribute of its class alone, as Python compiles it."""

from __future__ import annotations

import numpy as np
import pytest

import ckad

pytestmark = pytest.mark.usefixtures("engine")


class Base:
    def __init__(self, x):
        self.__x = x

    def of_base(self):
        return self.__x


class Derived(Base):
    def __init__(self, x):
        super().__init__(x)
        self.__x = 2 * x

    def __twice(self):
        return 2 * self.__x

    def of_derived(self):
        return self.__twice()


class _Slotted:
    __slots__ = ("__x",)

    def __init__(self, x):
        self.__x = x

    def step(self):
        self.__x = np.sin(self.__x) + 0.1
        return self.__x


def of_two_classes(x):
    both = Derived(x)
    return np.sum(both.of_base() * both.of_derived())


def from_outside(x):
    return np.sum(Base(x)._Base__x ** 2)


def of_a_slot(x):
    p = _Slotted(x)
    y = x
    for _ in range(20):
        y = p.step()
    return np.sum(y)


def made_inside(x):
    class Inner:
        def __init__(self, x):
            self.__x = x

        def value(self):
            return (lambda: self.__x**2)()

    return np.sum(Inner(x).value())


class _Named:
    def __init__(self, x, *, __power=2):
        __scale = np.sin(x)
        self.value = lambda __y: __scale * __y**__power

    def again(self, x):
        return type(self)(x, _Named__power=3).value(x)


def names_of_parameters(x):
    return np.sum(_Named(x).value(x) + _Named(x).again(x))


PROGRAMS = (of_two_classes, from_outside, of_a_slot, made_inside, names_of_parameters)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_it_is_what_python_gives(program):
    x = np.array([0.3, 1.2])
    np.testing.assert_allclose(ckad.jit(program)(x), program(x), rtol=1e-12)
    ckad.testing.check_grads(program, (x,), order=1)
