"""Large arrays that loops in loops carry: each cotangent has a place of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from .agreement import assert_agreement

SIZES = (9, 65, 1000)


def two_elements(x, y):
    u, v, s = x, y, 0.1
    for _ in range(6):
        for _ in range(5):
            s = s * 0.5 + v[2] * u[1]
        v = 0.5 * v
        u = u * 0.9
    return np.sum(v) + 3 * np.sum(u) + s


def in_the_other_order(x, y):
    u, v, s = x, y, 0.1
    for _ in range(6):
        for _ in range(5):
            s = s * 0.5 + u[1] * v[2]
        u = u * 0.9
        v = 0.5 * v
    return np.sum(v) + 3 * np.sum(u) + s


def after_the_inner_loop_swapped(x, y):
    u, v, s = x, y, 0.1
    for _ in range(6):
        for _ in range(5):
            s = s * 0.5 + v[2] * u[1]
        u, v = 0.5 * v, u * 0.9
    return np.sum(v) + 3 * np.sum(u) + s


def three_arrays(x, y):
    u, v, w, s = x, y, x - y, 0.1
    for _ in range(4):
        for _ in range(5):
            s = s * 0.5 + v[2] * u[1] - w[3] * u[0]
        u, v, w = 0.5 * w, u * 0.9, 0.7 * v
    return np.sum(v) + 3 * np.sum(u) - np.sum(w * w) + s


def three_deep(x, y):
    u, v, s = x, y, 0.1
    for _ in range(3):
        for _ in range(2):
            for _ in range(5):
                s = s * 0.5 + v[2] * u[1]
            v = 0.5 * v
        u = u * 0.9
    return np.sum(v) + 3 * np.sum(u) + s


def elements_written(x, y):
    u, v = x.copy(), y.copy()
    for _ in range(4):
        for j in range(5):
            u[j] = 0.9 * v[j + 1]
            v[j] = 0.5 * u[j + 2]
        u, v = v, u
    return np.sum(v) + 3 * np.sum(u * u)


def one_copied_into_the_other(x, y):
    u, v, s = x, y, 0.1
    for _ in range(5):
        for _ in range(6):
            s = s * 0.5 + v[2] * u[1]
        v, u = u, 0.5 * v + u
    return np.sum(v) + 3 * np.sum(u) + s


def while_inside(x, y):
    u, v, s = x, y, 1.0
    for _ in range(5):
        while s > 0.3:
            s = s * 0.5 + 0.01 * v[2] * u[1]
        v = 0.5 * v
        u = u * 0.9
        s = s + 1.0
    return np.sum(v) + 3 * np.sum(u) + s


PROGRAMS: list[Callable[..., object]] = [
    two_elements,
    in_the_other_order,
    after_the_inner_loop_swapped,
    three_arrays,
    three_deep,
    elements_written,
    one_copied_into_the_other,
    while_inside,
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_cotangents(program, n):
    assert_agreement(program, *np.random.default_rng(n).normal(size=(2, n)))
