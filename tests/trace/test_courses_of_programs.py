"""More programs whose course the numbers decide: transformations within, lengths, keys."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ckad

pytestmark = pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
P = np.array([0.9, 1.3])


def differences(f, p):
    steps = 1e-6 * np.eye(len(p))
    return [(f(p + h) - f(p - h)) / 2e-6 for h in steps]


def agrees(f, plain=None, points=(P, 1.2 * P, P)):
    """Value and gradient at several points, with those of ``plain``, without transformations."""
    plain, both = plain or f, ckad.value_and_grad(f, engine="vm")
    for p in points:
        value, gradient = both(p)
        assert value == pytest.approx(plain(p), rel=1e-12)
        assert np.allclose(gradient, differences(plain, p), rtol=1e-5, atol=1e-6)


# --- transformations within -----------------------------------------------------------------------


def ranked(x):
    """The sum of squares of what is large, each times its rank."""
    kept = [v for v in x if v > 0.5]
    return sum((k + 1) * v * v for k, v in enumerate(sorted(kept))) + 0.0 * x[0]


def slopes(x):
    kept = sorted(v for v in x if v > 0.5)
    return np.array([2.0 * (kept.index(v) + 1) * v if v > 0.5 else 0.0 for v in x])


def values(p):
    return np.array([p[0], p[1], p[0] * p[1], 0.3 * p[0]])


def members(p):
    return np.outer(np.array([0.3, 1.0, 0.75]), p) * np.array([1.0, 0.6])


WITHIN = {
    "grad": (
        lambda p: np.sum(ckad.grad(ranked)(values(p)) * values(p)[::-1]),
        lambda p: np.sum(slopes(values(p)) * values(p)[::-1]),
    ),
    "jit": (lambda p: ckad.jit(ranked)(values(p)) ** 2, lambda p: ranked(values(p)) ** 2),
    "vjp": (
        lambda p: np.sum(ckad.vjp(ranked, values(p))[1](p[1])[0]),
        lambda p: np.sum(slopes(values(p))) * p[1],
    ),
    "jvp": (
        lambda p: ckad.jvp(ranked, (values(p),), (values(p) ** 2,))[1],
        lambda p: slopes(values(p)) @ values(p) ** 2,
    ),
    "vmap": (
        lambda p: np.sum(ckad.vmap(ranked)(members(p)) * np.arange(3.0)),
        lambda p: sum(k * ranked(x) for k, x in enumerate(members(p))),
    ),
    "vmap of grad": (
        lambda p: np.sum(ckad.vmap(ckad.grad(ranked))(members(p))[:, 1] * np.arange(3.0)),
        lambda p: sum(k * slopes(x)[1] for k, x in enumerate(members(p))),
    ),
}


@pytest.mark.parametrize("name", WITHIN)
def test_a_transformation_within(name):
    agrees(*WITHIN[name])


def test_a_gradient_of_a_gradient():
    second = ckad.grad(lambda p: ckad.grad(lambda q: ranked(values(q)))(p)[0])
    for p in (P, 1.2 * P, P):
        steps = 1e-6 * np.eye(2)
        first = ckad.grad(lambda q: ranked(values(q)))
        wanted = [(first(p + h)[0] - first(p - h)[0]) / 2e-6 for h in steps]
        assert np.allclose(second(p), wanted, rtol=1e-5)


def test_decisions_of_a_derivative():
    """Newton's method, with the derivative's numbers in the test."""

    def root(p, slope):
        x = 2.0 * p[0]
        while abs(x * x - p[1]) > 1e-12:
            x = x - (x * x - p[1]) / slope(x, p)
        return x

    def by_ckad(x, p):
        return ckad.grad(lambda y: y * y - p[1] if y > 0.5 else y)(x)

    agrees(lambda p: root(p, by_ckad), lambda p: root(p, lambda x, p: 2.0 * x))


# --- lengths and keys -----------------------------------------------------------------------------


def deleted(p):
    x = np.cos(np.arange(8) * p[0])
    while x.min() < -0.2:
        x = np.delete(x, np.argmin(x))
    x = np.insert(np.delete(x, np.where(x < 0.1)[0]), 1, p[1])
    return np.sum(x * np.arange(x.size))


def pieces(p):
    x = np.sin(np.arange(9) * p[0])
    large = x[x > -0.5][::2] * p[1]
    large[large < 0.0] = p[0]
    return np.sum(large[::-1] * np.arange(large.size))


def rows(p):
    x = np.sin(np.arange(12).reshape(4, 3) * p[0])
    some = x[x.sum(axis=1) > 0.0]
    return np.sum(some @ some.T) * p[1]


def corners(p):
    """Points that are items of a set."""
    points = {(math.cos(2.1 * k) * p[0], math.sin(k) * p[1]) for k in (0, 1, 2, 1, 3)}
    found = {x: k for k, (x, y) in enumerate(sorted(points)) if y > 0.0}
    return sum((k + 1) * x for x, k in found.items()) + len(points) * p[0]


@pytest.mark.parametrize("f", [deleted, pieces, rows, corners])
def test_lengths_and_keys(f):
    agrees(f)


def test_a_result_of_computed_length():
    def large(p):
        x = np.sin(np.arange(6) * p[0]) * p[1]
        return x[x > 0.3]

    found = ckad.jacobian(large)(P)
    wanted = [(large(P + h) - large(P - h)) / 2e-6 for h in 1e-6 * np.eye(2)]
    assert np.allclose(found, np.transpose(wanted), rtol=1e-6, atol=1e-8)


# --- what a step asks -----------------------------------------------------------------------------


def popped(p):
    """None, among what is given to a function that asks for a number, is not what it fails by."""
    items, total = {0: p[0], 2: p[1], 3: 1.0}, 0.0
    for k in range(9):
        items.pop(int(4.0 * abs(math.sin(k * p[0]))), None)
        if sum(items.values()) < 1.6:
            return total + k * p[1]
        total += sum(items.values())
    return total


def test_a_key_that_is_asked_for_in_a_step():
    agrees(popped)


def test_a_dict_whose_keys_a_loop_changes():
    """Keys that the numbers decide are others in the loop than those there is space for."""

    def f(p):
        items, a = {0: p[0]}, np.sin(np.arange(6) * p[0])
        for k in range(9):
            items.pop(int(a.sum() * 0.4), None)
            items[int(p[0] * 4)] = p[1] * k
        kept = [x for x in p if x > math.sin(p[0])]
        return sum(key * x for key, x in items.items()) + sum(kept)

    agrees(f)
