"""Python's own control flow and functions on traced values, each against plain NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import odeint

import ckad
from ckad.errors import ConcreteValueError

pytestmark = pytest.mark.usefixtures("engine")
X = np.linspace(0.1, 1.0, 5)


def data_dependent_if(x):
    if x[0] > 0:
        return np.sum(x**2)
    return x[0]


def data_dependent_while(x):
    while np.sum(x) < 10:
        x = 2 * x
    return np.sum(x)


def builtin_max(x):
    return max(x) * x[0]


def calls_float(x):
    return float(x[0]) * 2


def calls_int(x):
    return x[int(x[0])] ** 2


def the_math_module(x):
    return math.sin(x[0]) + math.hypot(x[1], x[2])


def traced_slice_bound(x):
    return np.sum(x[: np.argmax(x)] ** 2)


def traced_mask(x):
    return np.sum(x[x > 0.5] ** 2)


def complex_inside(x):
    return np.sum(np.abs(x * 1j + 2.0))


PROGRAMS = [
    data_dependent_if,
    data_dependent_while,
    builtin_max,
    calls_float,
    calls_int,
    the_math_module,
    traced_slice_bound,
    traced_mask,
    complex_inside,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_it_is_what_numpy_gives(program):
    value = ckad.jit(program)(X)
    np.testing.assert_allclose(value, program(X.copy()), rtol=1e-13)
    ckad.testing.check_grads(program, (X,), order=1)


def test_a_plain_array_is_read_at_a_traced_index():
    def f(s):
        for i in range(5):
            s = 0.5 * s + X[i] ** 2
        return s

    assert ckad.jit(f)(2.0) == pytest.approx(f(2.0))
    assert ckad.fori_loop(0, 5, lambda i, s: 0.5 * s + X[i] ** 2, 2.0) == pytest.approx(f(2.0))


def test_numbers_of_integer_arguments_are_known_where_the_program_asks_for_them():
    mask, order = X > 0.4, np.array([3, 1, 2])

    def f(x, mask, order):
        chosen = np.nonzero(mask)[0]
        u = np.zeros(int(order[0]) + 2)
        for k in order:
            u[k] = x[k] ** 2
        return np.sum(x[chosen] ** 2) + u.sum()

    value, gradient = ckad.value_and_grad(f)(X, mask, order)
    assert value == pytest.approx(f(X, mask, order))
    expected = 2 * X * mask
    expected[order] += 2 * X[order]
    np.testing.assert_allclose(gradient, expected)
    assert ckad.value_and_grad(f)(X, ~mask, order)[0] == pytest.approx(f(X, ~mask, order))


def test_an_error_in_a_function_that_python_runs_says_why_it_does():
    def program(x):
        async def wait():
            return x

        return odeint(lambda y, t: -x * y, [3.0], [0.0, 1.0])[-1, 0]

    with pytest.raises(ConcreteValueError) as caught:
        ckad.jit(program)(0.5)
    assert "Move that out of the function" in "".join(caught.value.__notes__)
