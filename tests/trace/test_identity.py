"""Which object a name shows, where a loop or branch decides it: told where known, else refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import ckad
from ckad.errors import ConcreteValueError


@dataclass(eq=False)
class Point:
    x: float


def by_is(p, q, r):
    return r is p


def by_equal(p, q, r):
    return r == p


def by_not_equal(p, q, r):
    return r != p


def in_a_list(p, q, r):
    return r in [p]


def in_a_set(p, q, r):
    return r in {p}


def as_a_key(p, q, r):
    return {p: 1.0, q: 2.0}.get(r, 3.0) > 1.5


def as_part_of_a_key(p, q, r):
    return (r, 0) in {(p, 0): 1.0}


def by_index(p, q, r):
    return [p, q].index(r) == 0


def by_id(p, q, r):
    return id(r) == id(p)


ASKED = [
    *(by_is, by_equal, by_not_equal, in_a_list, in_a_set),
    *(as_a_key, as_part_of_a_key, by_index, by_id),
]


@pytest.mark.parametrize("asked", ASKED)
def test_objects_that_branches_choose(asked):
    def program(x):
        p, q = Point(x), Point(2.0 * x)
        r = p if x > 0.0 else q
        return r.x * (2.0 if asked(p, q, r) else 3.0)

    with pytest.raises(ConcreteValueError, match="which Point this is depends on a loop"):
        ckad.grad(program)(1.0)


@pytest.mark.parametrize("asked", ASKED)
def test_objects_that_are_known(asked):
    def program(x):
        p, q = Point(x), Point(2.0 * x)
        r = p if x is not None else q
        return r.x * (2.0 if asked(p, q, r) else 3.0)

    assert ckad.value_and_grad(program)(1.0) == (program(1.0), program(1.0))


class Plain:
    def __init__(self, x):
        self.x = x


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("turned", [False, True])
def test_objects_that_one_side_makes(asked, turned):
    def program(x):
        p = Plain(x)
        q = p if x > 0.0 else Plain(2.0 * x)
        one, other = (q, p) if turned else (p, q)
        return p.x * (2.0 if asked(one, Plain(x), other) else 3.0)

    with pytest.raises(ConcreteValueError, match="which Plain this is"):
        ckad.grad(program)(1.0)


@pytest.mark.parametrize("asked", [by_is, by_id])
def test_lists_that_branches_choose(asked):
    def program(x):
        p, q = [x], [2.0 * x]
        r = p if x > 0.0 else q
        return r[0] * (2.0 if asked(p, q, r) else 3.0)

    with pytest.raises(ConcreteValueError, match="which list this is"):
        ckad.grad(program)(1.0)


def test_objects_that_steps_bind():
    def program(x):
        p = q = Point(x)
        n = 0
        for _ in range(10):
            if p.x < 4.5:
                p = Point(p.x + x)
            if p is q:
                n += 1
        return p.x * n

    with pytest.raises(ConcreteValueError, match="which Point this is"):
        ckad.grad(program)(1.0)


def test_objects_after_the_loop_that_binds_them():
    def program(x):
        p = q = Point(x)
        for _ in range(10):
            if p.x < 4.5:
                p = q = Point(p.x + x)
        return p.x * (2.0 if p is q else 3.0)

    with pytest.raises(ConcreteValueError, match="which Point this is"):
        ckad.grad(program)(1.0)


def of_numbers(u):
    return 2.0 * u


def of_complex_numbers(u):
    return (1.0 + 2.0j) * u


@pytest.mark.parametrize("of", [of_numbers, of_complex_numbers])
def test_arrays_that_branches_choose(of):
    def program(u, x):
        v, w = of(u), 2.0 * of(u)
        r = v if x > 0.5 else w
        return np.sum(np.abs(r)) * (2.0 if r is v else 3.0)

    with pytest.raises(ConcreteValueError, match="which array this is"):
        ckad.grad(program)(np.ones(3), 1.0)


def test_arrays_that_steps_bind():
    def program(u):
        v, n = 2.0 * u, 0
        r = v
        for k in range(10):
            if k * u[0] > 5.0:
                r = u
            if r is u:
                n += 1
        return np.sum(r) * n

    with pytest.raises(ConcreteValueError, match="which array this is"):
        ckad.grad(program)(np.ones(3))


def test_arrays_that_are_known():
    def program(u):
        v = w = u.copy()
        part, n = v[:], 0
        for _ in range(7):
            v, u = u, v
            n += 10 * (part is w)
        return np.sum(v) * (1 + n + 100 * (w is u) + 1000 * (w is v))

    u = np.ones(3)
    value, gradient = ckad.value_and_grad(program)(u)
    assert value == program(u)
    assert np.array_equal(gradient, np.full(3, value / 3))


def modes(p):
    """Constants as states, which `is` tells from each other."""
    rising, falling = 1, 2
    mode, before, x, total = rising, 0, p, 0.0
    for _ in range(40):
        if mode is rising:
            x = 1.1 * x
            if x > 2.0:
                mode = falling
        elif mode is not rising:
            x = 0.8 * x
            if x < 0.5:
                mode = rising
        total += x * (3.0 if mode is before else 1.0)
        before = mode
    return total


def past_the_small(p):
    many = 300
    last, total = many, 0.0
    for k in range(40):
        if p > k:
            last = 300 + k
        total += p if last is many else 2.0 * p
    return total


def floats(p):
    x = last = p
    for _ in range(40):
        if x > 0.5:
            x = x * 0.9
    return p * (2.0 if x is last else 3.0)


def by_numpy(p):
    one, n, total = 1, np.int64(1), 0.0
    for k in range(40):
        if p > k:
            n = np.int64(1)
        total += p if n is one else 2.0 * p
    return total


@pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
@pytest.mark.parametrize("program", [modes, past_the_small, by_numpy])
def test_numbers_by_identity(program):
    for p in (0.3, 1.7):
        assert np.isclose(ckad.jit(program, engine="vm")(p), program(p), rtol=1e-13)


def test_floats_by_identity():
    with pytest.raises(ConcreteValueError, match="Compare them by =="):
        ckad.jit(floats)(1.7)
