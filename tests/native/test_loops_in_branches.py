"""Loops in branches: the branch's reverse runs them forward once more."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from .agreement import assert_agreement


def loop(x):
    u = 2 * x
    if x[2] > 0:
        for _ in range(6):
            u = u + x * u
    return np.sum(u)


def early_return(x):
    u = x / (1 + x**2)
    if x[1] > 5:
        return x[1]
    for i in range(6):
        u[i:] += 0.2 * u[i:] * (x[i:] - u[i:])
    return np.sum(u)


def loop_in_loop(x):
    u = 2 * x
    if x[2] > 0:
        for i in range(4):
            for _ in range(5):
                u = u + 0.1 * x * u
            u[i] = u[i] ** 2
    return np.sum(u)


def one_in_each_side(x):
    u = 2 * x
    if x[2] < 0:
        for _ in range(6):
            u = u + x * u
    else:
        for _ in range(7):
            u = np.sin(u) * x
    return np.sum(u)


def branch_in_branch(x):
    u = 2 * x
    if x[2] > 0:
        if x[3] > -9:
            for _ in range(6):
                u = u + 0.2 * x * u
        for _ in range(5):
            u = u * u * 0.3
    return np.sum(u)


def branch_in_a_loop(x):
    u = 2 * x
    for i in range(6):
        if u[i] > 0:
            for _ in range(5):
                u = u + 0.1 * x * u
    return np.sum(u)


def while_in_branch(x):
    u, s = 2 * x, 1.0
    if x[2] > 0:
        while s > 0.1:
            u = np.sin(u) + x * u
            s = s * 0.6 * np.cos(0.1 * u[0])
    return np.sum(u) * s


def left_early(x):
    u = 2 * x
    if x[2] > 0:
        for _ in range(9):
            u = u + 0.2 * x * u
            if u[2] > 1.5:
                break
    return np.sum(u)


PROGRAMS: list[Callable[..., object]] = [
    loop,
    early_return,
    loop_in_loop,
    one_in_each_side,
    branch_in_branch,
    branch_in_a_loop,
    while_in_branch,
    left_early,
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n", [9, 100])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_cotangents(program, n):
    x = np.random.default_rng(n).normal(size=n)
    x[2] = 0.3
    assert_agreement(program, x)
