"""Lists that loops append to."""

from __future__ import annotations

import numpy as np
import pytest

import ckad

pytestmark = pytest.mark.usefixtures("engine")
PROGRAMS = []


def a(n):
    return np.random.default_rng(n).random(n) + 0.5


def prog(x):
    def register(function):
        PROGRAMS.append((function, x))
        return function

    return register


@prog(a(5))
def hist(x):
    h = [x]
    for _i in range(20):
        x = np.sin(x) * 1.1
        h.append(x)
    return np.sum(np.array(h) ** 2) + np.sum(h[3] * h[-1])


@prog(a(5))
def losses(x):
    h = []
    for i in range(20):
        x = x - 0.1 * x**2
        h.append(np.sum(x))
        h.append(i * 1.0)
    return sum(h) + h[7] * h[-2] + len(h)


@prog(a(5))
def nested(x):
    h = []
    for i in range(6):
        for j in range(7):
            x = x * 0.9 + 0.01 * i * j
            h.append(x.copy())
        h.append(x * 2)
    a = np.array(h)
    return np.sum(a * np.arange(len(h))[:, None])


@prog(a(5))
def inplace(x):
    h = []
    u = x.copy()
    for _i in range(9):
        u[1:] = u[:-1] * 0.5
        h.append(u.copy())
    return np.sum(np.stack(h)[:, 2]) + np.sum(h[4] ** 2)


@prog(a(5))
def reads(x):
    h = [x[0]]
    for _i in range(9):
        h.append(h[-1] * 0.5 + x[1])
    return h[-1] * h[3]


@prog(a(5))
def alias(x):
    h = []
    u = x.copy()
    for _i in range(9):
        u[1:] = u[:-1] * 0.5
        h.append(u)
    return np.sum(h[2])


@prog(a(20))
def idx(x):
    h = []
    for i in range(10):
        h.append(2 * i)
    return np.sum(x[h] ** 2)


@prog(a(5))
def dct(x):
    h = {"a": [], "b": []}
    for _i in range(10):
        x = x * 0.9
        h["a"].append(x)
        h["b"].append(np.mean(x))
    return np.sum(np.mean(h["a"], axis=0)) + np.max(h["b"])


@prog(a(5))
def condapp(x):
    h = []
    for i in range(10):
        x = x * 0.9
        if i % 2 == 0:
            h.append(x.sum())
    return sum(h)


@prog(a(5))
def comp(x):
    h = []
    for _i in range(10):
        x = x * 0.9
        h.append(x.sum())
    return sum([v**2 for v in h])


@pytest.mark.parametrize(("program", "x"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_it_is_what_python_gives(program, x):
    expected = program(x.copy())
    np.testing.assert_allclose(ckad.jit(program)(x), expected, rtol=1e-12)
    ckad.testing.check_grads(program, (x,), order=1)
