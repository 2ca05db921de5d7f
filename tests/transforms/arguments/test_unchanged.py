"""Pullbacks and their like are of the numbers that they were made at."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.errors import DifferentiationError
from ckad.transforms.arguments.unchanged import KEPT


def cubes(x):
    return x**3


def made(kind, x):
    """A product with ones, to be asked for again and again."""
    ones = np.ones(x.shape)
    if kind == "vjp":
        pullback = ckad.vjp(cubes, x)[1]
        return lambda: pullback(ones)[0]
    pushforward = ckad.linearize(cubes, x)[1]
    return lambda: pushforward(ones)


@pytest.mark.parametrize("kind", ["vjp", "linearize"])
@pytest.mark.parametrize("n", [2, KEPT // 8 + 1])
def test_an_array_that_was_written_into_is_named(kind, n):
    x = np.linspace(1.0, 2.0, 3 * n)[::3]
    product = made(kind, x)
    expected = 3 * x**2
    np.testing.assert_allclose(product(), expected, rtol=1e-14)
    x[[0, -1]] = x[[-1, 0]]
    with pytest.raises(DifferentiationError, match=r"has been written into since.*x\.copy\(\)"):
        product()
    x[[0, -1]] = x[[-1, 0]]
    np.testing.assert_allclose(product(), expected, rtol=1e-14)


def test_an_operator_has_an_array_of_its_own():
    x = np.array([1.0, 2.0])
    operator = ckad.linear_operator(cubes, x)
    x *= 2.0
    np.testing.assert_allclose(operator @ np.ones(2), [3.0, 12.0], rtol=1e-15)


def test_what_nothing_is_kept_of_may_change():
    x = np.array([1.0, 2.0])
    gradient = ckad.value_and_grad(lambda x: np.sum(x**3))
    for _ in range(3):
        np.testing.assert_allclose(gradient(x)[1], 3 * x**2, rtol=1e-15)
        x *= 2.0
