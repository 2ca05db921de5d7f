"""Loops over elements in the native engine: arrays stay where they are, in branches too."""

import numpy as np
import pytest

import ckad
from ckad.engines.native.nests.in_place import takes_place_of

N = 90
X = np.linspace(-1.0, 1.0, N)


def recurrence(x):
    y = x * 0.0

    def body(i, y):
        y[i] = 0.5 * y[i - 1] + x[i]
        return y

    return np.sum(ckad.fori_loop(1, N, body, y) ** 2)


def branches(x):
    """A branch that writes an element or leaves the array as it is."""
    y = x * 2.0

    def body(i, y):
        def write(y):
            y[i] = y[i] * y[i - 1]
            return y

        return ckad.cond(i % 3 > 0, write, lambda y: y, y)

    return np.sum(ckad.fori_loop(1, N, body, y) ** 2)


def nested(x):
    y = x.reshape(9, 10) * 1.0

    def row(i, y):
        def column(j, y):
            y[i, j] = y[i, j] - 0.3 * y[i - 1, j] * y[i, j - 1]
            return y

        return ckad.fori_loop(1, 10, column, y)

    def sweep(t, y):
        return ckad.fori_loop(1, 9, row, y)

    return np.sum(ckad.fori_loop(0, 3, sweep, y) ** 2)


def two_arrays(x):
    """Values that change places from step to step are not taken for ones that stay."""

    def body(i, s):
        a, b = s
        a[i] = b[i] * 2.0
        return b, a

    a, b = ckad.fori_loop(0, N, body, (x * 1.0, x * 3.0))
    return np.sum(a * b)


def shared(x):
    """One array as state and, in another shape, as what is read."""
    y = x * 1.0
    z = y.reshape(9, 10)

    def body(i, y):
        y[i] = z[i // 10, i % 10] + y[i - 1]
        return y

    return np.sum(ckad.fori_loop(1, N, body, y) * z.reshape(N))


PROGRAMS = [recurrence, branches, nested, two_arrays, shared]


def copies(fun):
    """How often compiled code copies an array of the program's size."""
    program = ckad.jit(fun, engine="native", threads=1).compiled(X)
    return program.llvm.count(f"i64 {8 * N}, i1")


@pytest.mark.parametrize("fun", [recurrence, branches])
def test_no_step_copies_an_array(fun):
    assert copies(fun) == 0


@pytest.mark.parametrize("fun", PROGRAMS)
def test_the_engines_agree(fun):
    expected, gradient = ckad.value_and_grad(fun, engine="vm")(X)
    value, found = ckad.value_and_grad(fun, engine="native")(X)
    assert value == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(found, gradient, rtol=1e-12, atol=1e-13)
    ckad.testing.check_grads(fun, (X,), modes=("fwd", "rev"), order=1)


@pytest.mark.parametrize("fun", PROGRAMS)
def test_the_same_bits_under_every_schedule(fun):
    value, gradient = ckad.value_and_grad(fun, engine="native", schedule="store_all")(X)
    again, found = ckad.value_and_grad(fun, engine="native", schedule="two_level")(X)
    assert again == value
    np.testing.assert_array_equal(found, gradient)


def test_which_outputs_take_the_place_of_an_input():
    def inner(fun):
        return ckad.trace(fun)(X).bodies[0]

    assert takes_place_of(inner(recurrence), 0) == 1
    assert takes_place_of(inner(branches), 0) == 1
    assert takes_place_of(inner(nested), 0) == 1
    assert takes_place_of(inner(two_arrays), 0) == 2
