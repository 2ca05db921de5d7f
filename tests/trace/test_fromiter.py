"""``np.fromiter``: an array of what an iterator gives."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import ckad

X = np.array([0.3, 1.2, 0.7, 0.9])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.fromiter((math.sin(v) for v in x), dtype=float) ** 2),
        lambda x: np.sum(np.fromiter((v * k for k, v in enumerate(x)), float, count=4)),
        lambda x: np.fromiter((v**2 for v in x), float, 2) @ np.fromiter(x[2:], np.float64),
        lambda x: np.fromiter(itertools.chain(x[:1], x[3:]), float)[1] * x[0],
        lambda x: np.fromiter(range(4), float) @ x,
    ],
)
def test_items_of_an_iterator_are_an_array(f):
    value, gradient = ckad.value_and_grad(f, engine="vm")(X)
    assert value == pytest.approx(f(X), rel=1e-14)
    differences = [(f(X + h) - f(X - h)) / 2e-6 for h in 1e-6 * np.eye(4)]
    assert gradient == pytest.approx(differences, abs=1e-8)


def test_an_iterator_that_ends_too_early_is_numpy_s_error():
    with pytest.raises(ValueError, match="iterator too short"):
        ckad.grad(lambda x: np.sum(np.fromiter((v for v in x), float, count=5)))(X)
