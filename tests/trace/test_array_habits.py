"""Habits of programs as they are found: lists where NumPy takes arrays, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad

X = np.array([0.7, 1.3, 0.4])
PROGRAMS: list[Callable[[Any], Any]] = []


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS.append(function)
    return function


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_like_numpy_and_its_gradient(engine, function):
    np.testing.assert_allclose(ckad.jit(function)(X), function(X.copy()), rtol=1e-12)
    ckad.testing.check_grads(function, (X,))


@program
def lists_as_operands(x):
    both, pair = [x[0], 2 * x[1]], x[:2]
    total = np.sum(np.square(both)) + np.sum(np.add(both, [1.0, x[2]]) ** 2)
    total += np.sum((pair * both) ** 2) + np.sum((both - np.ones(2)) ** 2)
    total += np.sum(np.sin([[x[0], 1.0], [x[1], 2.0]])) + np.sum(np.exp((x[0], x[1])))
    total += np.matmul([[x[0], 1.0], [2.0, x[1]]], both).sum() + ([[1.0, 2.0], [3.0, 4.0]] @ pair)[1]
    return total + np.sum(np.abs([x[0] + 1j * x[1], 1.0])) + np.sum(np.hypot([x, 2 * x], [x, x]))


@program
def lists_in_methods_of_ufuncs(x):
    total = np.add.reduce([x[0] * x[1], 2 * x[2]]) + np.maximum.reduce([x, 2 * x[::-1]]).sum()
    total += np.sum(np.multiply.outer([x[0], 1.0], [x[1], 2.0]) ** 2)
    return total + np.add.accumulate([x[0], x[1] ** 2])[1]


@program
def lists_written(x):
    a, o = np.zeros((2, 2)), np.zeros(2)
    a[:, 0] = [x[0], x[1] * 3]
    a[1] += [x[0], 1.0]
    a *= [x[2], x[1]]
    np.multiply([x[0], 3.0], [x[1], x[2]], out=o)
    return np.sum(a**2) + np.sum(o**2)


@program
def lists_in_functions(x):
    both, rows = [x[0], x[1]], [[x[0], 1.0], [2.0, x[1]]]
    total = np.sum(np.clip(both, 0.8, 2)) + np.fix(both) @ both + np.trapezoid(both, [x[2], 2.0])
    total += np.sum(np.where([x[0] > 1, x[1] > 1], both, [x[1], x[1] ** 2]))
    total += np.sum(np.append(both, rows) ** 2) + np.sum(np.vstack([both, rows]) ** 2)
    total += np.nansum(both) + np.ptp(both) + np.nanmean(rows, 0) @ both
    total += np.sum(np.dstack([both, both]) ** 3) + np.hstack([both, x[2]])[2] ** 2
    total += np.sum(np.isposinf(both)) + np.sum(np.imag(both)) + np.searchsorted(both, 1.0) * x[0]
    return total + np.sum(np.histogram(both, 3, (0, 2), weights=both)[0] ** 2)
