"""An array is changed in place only where nothing behind the change reads it."""

from __future__ import annotations

import numpy as np
import pytest

import ckad

X = np.linspace(1.0, 2.0, 3000)


def strips(x):
    y = np.sin(x)
    w = y.copy()
    w[:100] = 7.0
    return np.sum(w * y)


def running_sums(x):
    y = np.cumsum(x)
    w = y.copy()
    w[5] = 7.0
    return np.sum(w * np.cumsum(y))


def turned(x):
    y = np.cumsum(x)
    w = y.copy()
    w[5] = 7.0
    return np.sum(w * y[::-1])


@pytest.mark.parametrize("program", [strips, running_sums, turned])
def test_what_is_read_by_the_next_row_stays(program):
    value, gradient = ckad.value_and_grad(program, engine="vm")(X)
    np.testing.assert_allclose(value, program(X), rtol=1e-13)
    direction = np.cos(X)
    above, below = (program(X + h * direction) for h in (1e-6, -1e-6))
    np.testing.assert_allclose(gradient @ direction, (above - below) / 2e-6, rtol=1e-7)
