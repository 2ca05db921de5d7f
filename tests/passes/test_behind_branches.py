"""What both sides of a branch write is written behind it."""

from __future__ import annotations

import numpy as np
import pytest

import ckad


def nested(depth, x):
    """So many branches, each on a side of the one before."""
    if depth and x > 0.1 * depth:
        return nested(depth - 1, 1.01 * x)
    return x * x


def test_deep_branches_are_looked_at_once_each():
    # twice each would be 2^40 bodies
    value, slope = ckad.value_and_grad(lambda x: nested(40, x))(5.0)
    end = 5.0 * 1.01**40
    assert value == pytest.approx(end**2, rel=1e-12)
    assert slope == pytest.approx(2.0 * end**2 / 5.0, rel=1e-12)


def test_writes_of_both_sides():
    def program(u, x):
        for k in range(30):
            if u[k] > x:
                u[k + 1] = 0.5 * u[k]
            else:
                u[k + 1] = u[k] + x
        return np.sum(u * u)

    u, x = np.linspace(0.2, 1.0, 100), np.array(0.3)
    value, gradient = ckad.value_and_grad(lambda u, x: program(u.copy(), x))(u, x)
    assert value == pytest.approx(program(u.copy(), x), rel=1e-13)
    h = 1e-6
    for k in (0, 7, 99):
        step = h * (np.arange(100) == k)
        ends = program(u + step, x), program(u - step, x)
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / (2.0 * h), abs=1e-7)


def test_writes_of_the_second_side_into_an_array_that_the_first_leaves():
    def program(u, v, x):
        n = 0
        while n < 3 and u @ u < 100.0:
            n += 1
            if u[9] * x < 0.5:
                v[5:90] *= 0.6
            else:
                u[2 * n + 47] = v[n - 39] * x
        return np.sum(u * u) + np.sum(v * v)

    u, v = np.linspace(0.2, 1.0, 100), np.cos(np.arange(100.0))
    for x in (0.3, 2.5):
        value, gradient = ckad.value_and_grad(program, (0, 1))(u, v, np.array(x))
        assert value == pytest.approx(program(u.copy(), v.copy(), x), rel=1e-13)
        kept, scaled = np.delete(u, [49, 51, 53]), x > 1.0
        np.testing.assert_allclose(
            np.delete(gradient[0], [49, 51, 53]) if scaled else gradient[0],
            2.0 * (kept if scaled else u),
        )


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_a_part_that_only_the_longer_side_writes(engine):
    def program(u, x):
        u = u.copy()
        for k in range(30):
            if x > k:
                u = u + 0.0
            else:
                w = np.sin(u) * np.cos(u) + np.exp(-u * u)
                w = w / (1.0 + w * w)
                u[k % 7] = w[3] + 0.01 * np.sum(w)
        return np.sum(u**2)

    u, h = np.linspace(0.0, 1.0, 100), 1e-6 * np.cos(np.arange(100.0))
    gradient = ckad.grad(program, engine=engine)(u, 4.5)
    change = (program(u + h, 4.5) - program(u - h, 4.5)) / 2e-6
    assert gradient @ h * 1e6 == pytest.approx(change, rel=1e-7)
