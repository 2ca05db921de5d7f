"""Python rounds a float to the nearest decimal number, not to the nearest product."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ckad


def _halfway(n: int) -> list[float]:
    """Numbers whose product by 10**n is halfway between integers, or is rounded to that."""
    rng = np.random.default_rng(n + 100)
    ties = (rng.integers(-3000, 3000, 25) + 0.5) * 10.0**-n
    around = [*ties, *np.nextafter(ties, np.inf), *np.nextafter(ties, -np.inf)]
    return [*map(float, around), 0.0, -0.0, 0.04, -0.04, 1e300, 2.0**52 + 1, math.inf, math.nan]


@pytest.mark.parametrize("n", [1, 2, 5, 11, 15, 0, -1, -3])
@pytest.mark.parametrize("engine", ["vm", pytest.param("native", marks=pytest.mark.sampled(3))])
def test_floats_are_rounded_as_python_rounds_them(engine, n):
    rounded = ckad.jit(lambda x: round(x, n), engine=engine)
    numbers = _halfway(n)
    found = np.array([rounded(x) for x in numbers])
    assert found.tobytes() == np.array([round(x, n) for x in numbers]).tobytes()


def test_numbers_of_numpy_are_rounded_as_numpy_rounds_them():
    x = np.array([0.05, 0.15, 0.35, 2.675])

    def f(x):
        return np.array([round(x[k], 1 + k // 3) for k in range(4)])

    assert np.array_equal(ckad.jit(f, engine="vm")(x), f(x))


def test_a_rounded_number_has_no_derivative():
    assert ckad.value_and_grad(lambda x: x * round(x, 1), engine="vm")(0.35) == (0.35 * 0.3, 0.3)
