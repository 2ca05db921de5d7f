"""Long formulas over arrays whose last axis is no whole number of vectors."""

import numpy as np
import pytest

import ckad


def long_formula(u):
    return term(term(term(term(u, u, 1), u, 2), u, 3), u, 4)


def term(y, u, k):
    return np.sin(y) * u + np.exp(-y) / (k + u * u)


def summed(u):
    return np.sum(long_formula(u)) + long_formula(u[:2])[0]


def moved(u):
    return long_formula(u[1:] - 0.5 * u[:-1])


def in_rows(u):
    return np.sum(long_formula(u[:, 1:] - u[:, :-1]), axis=1)


CASES = [
    (long_formula, (71,)),
    (summed, (71,)),
    (summed, (5003,)),
    (moved, (71,)),
    (moved, (70, 2)),
    (in_rows, (6, 72)),
]


@pytest.mark.parametrize(("fun", "shape"), CASES)
def test_each_element_is_that_of_numpy(fun, shape):
    u = np.linspace(0.1, 1.2, np.prod(shape)).reshape(shape)
    np.testing.assert_allclose(ckad.jit(fun, engine="native")(u), fun(u), rtol=1e-13)


def test_an_element_is_the_same_wherever_it_is():
    """In a vector, or one of the rest of an axis."""
    u = np.linspace(0.1, 1.2, 71)
    last, padded = u[64:], np.concatenate([u[64:], np.zeros(9)])
    single = ckad.jit(long_formula, engine="native")
    np.testing.assert_array_equal(single(last), single(padded)[:7])


def test_the_rest_of_an_axis_is_code_once():
    def quotients(n):
        compiled = ckad.jit(long_formula, engine="native").compiled(np.ones(n))
        return compiled.llvm.count("fdiv")

    assert quotients(71) == quotients(65)
