"""Error functions of complex numbers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import ckad
from ckad.rules.routines.error_functions import FUNCTIONS as ROUTINE
from ckad.trace.primitives.complex.error_functions import NAMES

FUNCTIONS = pytest.mark.parametrize("f", [getattr(scipy.special, n) for n in NAMES], ids=NAMES)
Z = np.array([[0.3 + 0.2j, -1.1 + 0.7j, 2.0 - 0.4j], [0j, 1e-8j, -3.0 + 0.1j]])
WEIGHTS = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])


def weighted(f):
    def function(a, b):
        w = f(a + 1j * b)
        return np.sum(WEIGHTS * w.real) + np.sum(w.imag**2)

    return function


def test_the_table_has_the_order_of_the_routine():
    assert tuple(name for name, _ in ROUTINE) == NAMES


@FUNCTIONS
@pytest.mark.parametrize("engine", ["vm", "native"])
def test_values_are_scipys(f, engine):
    assert np.array_equal(ckad.jit(f, engine=engine)(Z), f(Z))
    assert ckad.jit(f, engine=engine)(Z[0, 1]) == f(Z[0, 1])


@FUNCTIONS
def test_derivatives_in_both_modes_and_twice(f):
    function, args = weighted(f), (Z.real.copy(), Z.imag.copy())
    ckad.testing.check_grads(function, args)

    def slopes(a, b):
        by_a, by_b = ckad.grad(function, (0, 1))(a, b)
        return np.sum(by_a * WEIGHTS) + np.sum(by_b)

    ckad.testing.check_grads(slopes, args)


@pytest.mark.parametrize("name", ["erfi", "dawsn"])
def test_of_real_numbers(name):
    f, x = getattr(scipy.special, name), np.linspace(-2.0, 2.0, 7)
    assert np.array_equal(ckad.jit(f)(x), f(x))
    ckad.testing.check_grads(lambda x: np.sum(x * f(x)), (x,))


def test_in_a_loop_within_a_budget():
    def steps(z):
        for _ in range(200):
            z = 0.5 * scipy.special.wofz(z) + 0.1j
        return np.sum(np.abs(z) ** 2)

    value, gradient = ckad.value_and_grad(steps)(Z[0])
    again = ckad.value_and_grad(steps, memory="16 KB")(Z[0])
    assert value == pytest.approx(steps(Z[0]), rel=1e-13)
    assert value == again[0]
    assert np.array_equal(gradient, again[1])
