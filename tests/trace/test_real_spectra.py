"""Eigenvalues that are real in NumPy: ellipses of covariances, plotted or computed with."""

import math

import numpy as np
import pytest

import ckad
from ckad.errors import RaisedError

from .idioms import check


def ellipse(P):
    values, vectors = np.linalg.eig(P)
    big, small = (0, 1) if values[0] >= values[1] else (1, 0)
    a, b = math.sqrt(values[big]), math.sqrt(values[small])
    return a, b, math.atan2(vectors[1, big], vectors[0, big])


def filtered(a, b):
    P, total = np.eye(2), 0.0
    for k in range(6):
        F = np.array([[1.0, a * 0.1], [0.05 * k, b]])
        P = F @ P @ F.T + np.diag([0.1, 0.2])
        long, short, angle = ellipse(P)
        total += long * short + math.cos(angle) ** 2
    return total


def largest(a, b):
    values, vectors = np.linalg.eig(np.array([[2.0 + a, b], [b, 1.0]]))
    big = np.argmax(values)
    angle = math.degrees(np.arctan2(vectors[1, big], vectors[0, big]))
    return float(values[big]) * max(values) + min(list(values)) + angle**2 * 1e-3


@pytest.mark.parametrize("function", [filtered, largest])
def test_real_eigenvalues(function):
    check(function, 0.8, 0.7)


def test_complex_eigenvalues_stop_where_real_ones_are_needed():
    def turned(a):
        return math.sqrt(np.linalg.eigvals(np.array([[2.0, 1.0], [a, 2.0]]))[0])

    assert ckad.value_and_grad(turned)(0.25)[0] == pytest.approx(turned(0.25))
    with pytest.raises(RaisedError, match=r"math\.sqrt"):
        ckad.grad(turned)(-0.25)
