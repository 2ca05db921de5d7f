"""What NumPy gives of one element, and of parts that functions from around do not take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ckad


def lengths(x: Any) -> Any:
    return np.hypot.reduce(x[:1]) + 3 * np.sum(np.hypot.reduce(x[:, None], axis=1) * x)


def by_parts(x: Any) -> Any:
    total = 0.0
    for k in range(1, 6):
        total += k * np.hypot.reduce(x[:k])
    return total


def by_a_vectorized_function(x: Any) -> Any:
    total = 0.0
    for k in range(1, 6):
        total += k * np.sum(np.vectorize(lambda t: t * t)(x[:k]))
    return total


def by_shifted_parts(x: Any) -> Any:
    z, total = x + 1j * x**2, 0.0
    for k in range(1, 6):
        total += (np.fft.fftshift(z[:k])[0] * k).imag
    return total


@pytest.mark.parametrize("fun", [lengths, by_parts, by_a_vectorized_function, by_shifted_parts])
@pytest.mark.filterwarnings("ignore::ckad.errors.UnrolledLoopWarning")
def test_as_numpy(fun: Any) -> None:
    x = np.array([-1.1, 0.4, -0.7, 0.2, 0.9])
    value, gradient = ckad.value_and_grad(fun, engine="vm")(x)
    assert value == pytest.approx(fun(x), rel=1e-14)
    differences = [(fun(x + 1e-6 * e) - fun(x - 1e-6 * e)) / 2e-6 for e in np.eye(5)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-8)
