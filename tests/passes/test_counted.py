"""Loops whose number of steps is computed, under masks: where that leaves no loop, and to the same
numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ckad
from ckad.passes.vectorise import vectorise
from ckad.testing import check_grads

from .recorded import recorded
from .test_vectorise import loops_in


def triangle(a: Any) -> Any:
    """PolyBench's syrk, element by element."""
    n, m = a.shape
    c = np.ones((n, n))
    for i in range(n):
        for j in range(i + 1):
            c[i, j] *= 1.2
        for k in range(m):
            for j in range(i + 1):
                c[i, j] += 1.5 * a[i, k] * a[j, k]
    return np.sum(np.sin(c))


def pairs(a: Any) -> Any:
    energy = 0.0
    for i in range(a.shape[0]):
        for j in range(i + 1, a.shape[0]):
            energy += 1.0 / np.abs(a[i, 0] - a[j, 1])
    return energy


def upper(a: Any) -> Any:
    n, y = min(a.shape), np.zeros(a.shape[0])
    for i in range(n):
        for j in range(i, n):
            if a[i, j] > 0.0:
                y[i] += np.sqrt(a[i, j]) * j
    return np.sum(y**2)


@pytest.fixture
def a() -> np.ndarray:
    return np.random.default_rng(5).normal(size=(6, 5))


@pytest.mark.parametrize("program", [triangle, pairs, upper])
def test_no_loop_is_left(program: Any, a: np.ndarray, engine: str) -> None:
    tape = recorded(program, [a])
    assert loops_in(tape) > 1
    assert loops_in(vectorise(tape)) == 0
    np.testing.assert_allclose(ckad.jit(program)(a), program(a), rtol=1e-13)
    check_grads(program, (a,))


def test_a_step_that_reads_what_others_wrote_keeps_its_loops() -> None:
    """Under masks each step of the outer loop would read whole axes for a few elements."""

    def cholesky(a: Any) -> Any:
        a = a.copy()
        for i in range(a.shape[0]):
            for j in range(i):
                for k in range(j):
                    a[i, j] -= a[i, k] * a[j, k]
                a[i, j] /= a[j, j]
            for k in range(i):
                a[i, i] -= a[i, k] ** 2
            a[i, i] = np.sqrt(a[i, i])
        return a

    tape = recorded(cholesky, [np.eye(5)])
    assert loops_in(vectorise(tape)) == loops_in(tape)


def test_data_that_say_how_many_steps_there_are_keep_their_loops() -> None:
    """They may be few of many."""

    def rows(x: Any, count: Any) -> Any:
        y = np.zeros(4)
        for i in range(4):
            for j in range(count[i]):
                y[i] += x[j]
        return y

    tape = recorded(rows, [np.ones(9), np.array([1, 0, 2, 1])])
    assert loops_in(vectorise(tape)) == loops_in(tape)


def test_a_place_out_of_bounds_stops_the_program(engine: str) -> None:
    def beyond(x: Any) -> Any:
        s = 0.0
        for i in range(5):
            for j in range(i, 5):
                s += x[i + j]
        return s

    np.testing.assert_allclose(ckad.jit(beyond)(np.arange(9.0)), beyond(np.arange(9.0)))
    with pytest.raises(IndexError):
        ckad.jit(beyond)(np.arange(8.0))
