"""Arrays that a loop makes longer by as many rows as a traced condition says."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import ckad
from ckad.errors import AsRunWarning, UnrolledLoopWarning

X = np.linspace(0.2, 0.9, 7)


def spikes(x):
    """Rows of a time and the number of a cell: what is plotted, and counted."""
    v, firings = x.copy(), np.empty((0, 2))
    for t in range(1, 31):
        fired = np.where(v >= 1.0)[0]
        firings = np.concatenate((firings, np.column_stack((t + 0 * fired, fired))))
        v[fired] = 0.1 * x[fired]
        v = 1.1 * v
    return np.sum(v**2) + firings.shape[0] + np.sum(firings[:, 1] * 0.1)


def values(x):
    v, seen = x.copy(), np.array([1.0, 2.0])
    for _ in range(30):
        seen = np.append(seen, v[v >= 1.0])
        v = np.where(v >= 1.0, 0.1 * x, 1.1 * v)
    return np.sum(seen**2) + seen[-1] + len(seen)


@pytest.mark.parametrize("f", [spikes, values])
def test_the_loop_is_recorded_once(f):
    with warnings.catch_warnings():
        warnings.simplefilter("error", AsRunWarning)
        warnings.simplefilter("error", UnrolledLoopWarning)
        value, gradient = ckad.value_and_grad(f, engine="vm")(X)
    assert value == pytest.approx(f(X), rel=1e-14)
    differences = [(f(X + h) - f(X - h)) / 2e-7 for h in 1e-7 * np.eye(7)]
    assert gradient == pytest.approx(differences, rel=1e-6, abs=1e-6)
