"""Arrays of which some elements are constants: what is picked of these is known, and decides."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import ckad

#: Kind, load, neighbour, weight.
TABLE = np.array([[0.0, 1.0, 2.0, 0.0], [1.0, 2.0, 3.0, 1.0], [0.0, 5.0, 1.0, 2.0]])
X = np.array([0.3, 0.4, 0.5])


def columns_of_a_table(load):
    table = TABLE.copy()
    table[:, 1] = load
    table = table[np.flatnonzero(table[:, 0] == 0)]
    total = np.zeros(len(table))
    for weight in table[:, 3].astype(int):
        total = total + table[:, 1] ** 2 * weight
    return np.sum(total) * int(table[1, 3])


def nodes_beside_numbers(y):
    pairs = np.append(np.array([np.arange(3.0), y]), [[4.0], [y[0] * 2.0]], axis=1)
    return np.sum(CubicSpline(pairs[0], pairs[1])(np.linspace(0.0, 4.0, 9)) ** 2)


def turned_and_padded(x):
    table = np.pad(np.stack([x, np.array([2.0, 0.0, 1.0])]).T, ((1, 1), (0, 0)))
    order = np.roll(table, 1, axis=0)[:, 1].astype(int)
    return sum(x[k] * (n + 1) for n, k in enumerate(order)) + np.zeros(int(table.T[1, 1]))[0]


def picked_again(x):
    table = np.concatenate([np.array([3.0, 1.0]), x])
    half = table[[1, 0, 3]]
    half[2] = x[0]
    return np.sum(x[: int(half[1])] ** 2) * half[0]


PROGRAMS = [columns_of_a_table, nodes_beside_numbers, turned_and_padded, picked_again]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_what_is_picked_of_constants_decides(program):
    assert ckad.value_and_grad(program)(X)[0] == pytest.approx(program(X))
    assert ckad.explain(program, X).anew == ""
    ckad.testing.check_grads(program, (X,), order=1, engine="vm")


def test_what_is_picked_of_traced_elements_does_not():
    def program(x):
        table = TABLE.copy()
        table[1] = np.append(x, 1.0)
        return table[0, 1] * x[1] if table[1, 0] > 0.35 else table[2, 1] * x[2]

    both = ckad.value_and_grad(program)
    for x in (X, X + 0.1):
        assert both(x)[0] == program(x)
