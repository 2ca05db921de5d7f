"""Elements one after the other by ``np.nditer``, read, written, counted, side by side."""

import numpy as np
import pytest

import ckad
from ckad.errors import UnsupportedFunctionError

from .idioms import check

A = np.linspace(0.1, 1.0, 12).reshape(3, 4)


def differences(a):
    """A gradient by differences, which changes the very array that it runs over."""
    w, slope = np.tanh(a), np.zeros_like(a)
    it = np.nditer(w, flags=["multi_index"], op_flags=["readwrite"])
    while not it.finished:
        idx = it.multi_index
        kept = w[idx]
        w[idx] = kept + 1e-2
        above = np.sum(w**3)
        w[idx] = kept - 1e-2
        slope[idx] = (above - np.sum(w**3)) / 2e-2
        w[idx] = kept
        it.iternext()
    return np.sum(slope**2)


def doubled(a):
    b = 1.0 * a
    with np.nditer(b, op_flags=["readwrite"]) as it:
        for x in it:
            x[...] = 2 * x + x**2
    return np.sum(b**3)


def by_places(a):
    total, it = 0.0, np.nditer(a, flags=["c_index", "multi_index"])
    for x in it:
        total += x * it.index + it.multi_index[1] * x**2
    return total


def side_by_side(a):
    total = 0.0
    for x, y in np.nditer([a, np.cos(a)]):
        total = total * x + y
    return total


def of_a_row(a):
    it, total = np.nditer(a[1], flags=["multi_index"]), 0.0
    while True:
        total += it[0] * a[(0, *it.multi_index)]
        if not it.iternext():
            return total


@pytest.mark.parametrize("program", [differences, doubled, by_places, side_by_side, of_a_row])
def test_elements_one_after_the_other(program):
    check(program, A)


def test_elements_by_differences_are_recorded_once():
    assert len(ckad.trace(differences)(A).rows) < 10


def test_orders_that_memory_decides_are_refused():
    def turned(a):
        total = 0.0
        for x in np.nditer(a.T):
            total = total * 0.5 + x
        return total

    with pytest.raises(UnsupportedFunctionError, match="another order than C"):
        ckad.grad(turned)(A)
