"""Roots of sums of squares where these are 0, as in distances of a point to itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad


def distances(x: Any) -> Any:
    away = x[:, None] - x[None, :]
    return np.sum(np.sqrt(away**2 + 0.5 * away**2))


def upwind(x: Any) -> Any:
    """Godunov's flux: at most places one side of it rests."""
    left, right = np.maximum(x[1:] - x[:-1], 0), np.minimum(x[1:] - x[:-1], 0)
    return np.sum(np.sqrt(left**2)) + 2 * np.sum(np.sqrt(right**2 + left[::-1] ** 2))


def speeds(x: Any) -> Any:
    """Friction of a fluid at rest."""
    u, v = x.copy(), 0 * x
    for _ in range(12):
        speed = np.sqrt(u * u + v * v)
        u, v = u - 0.1 * speed * u, v - 0.1 * speed * v
    return np.sum(u)


def fourth(x: Any) -> Any:
    return np.sum(np.sqrt(x**4)) + np.sum(np.sqrt(np.exp(x) * x * x))


def cut_off(x: Any) -> Any:
    """The root of what is negative is left out; no element is at the edge itself."""
    return np.sum(np.sqrt(np.maximum(x - 0.5, 0)))


CASES: list[tuple[Callable[[Any], Any], list[float]]] = [
    (distances, [1.0, 2.0, 4.0]),
    (upwind, [1.0, 2.0, 4.0, 4.5]),
    (speeds, [0.0, 1.0, 2.0]),
    (fourth, [0.0, 2.0]),
    (cut_off, [0.0, 2.0, -1.0]),
]


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize(("function", "at"), CASES)
def test_a_root_of_squares_at_zero(function, at, engine):
    x, h = np.array(at), 1e-6
    central = [(function(x + h * e) - function(x - h * e)) / (2 * h) for e in np.eye(x.size)]
    slopes = ckad.grad(function, engine=engine)(x)
    np.testing.assert_allclose(slopes, central, rtol=1e-6, atol=1e-5)
    pushed = [ckad.jvp(function, (x,), (e,))[1] for e in np.eye(x.size)]
    np.testing.assert_allclose(pushed, slopes, rtol=1e-12, atol=1e-14)


def test_the_root_of_a_variable_keeps_its_infinite_slope():
    slopes = ckad.grad(lambda x: np.sum(np.sqrt(x)))(np.array([0.0, 4.0]))
    np.testing.assert_array_equal(slopes, [np.inf, 0.25])
