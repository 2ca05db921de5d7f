"""Routines on what a loop does not change are called before it, where that fails no program."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.passes.calls.hoist import hoist
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of
from ckad.tape.verify import verify

from .recorded import recorded

N = 12
A = np.random.default_rng(0).normal(size=(N, N)) + N * np.eye(N)
Y = np.linspace(1.0, 2.0, N)


def calls(tape):
    return [routine_of(row).name for row in tape.rows if row.op is Op.CALL]


def inside(tape):
    return [name for body in tape.bodies for name in [*calls(body), *inside(body)]]


def steps(a, y):
    for _ in range(5):
        y = np.linalg.solve(a, y) + np.sin(y)
    return np.sum(y)


def of_a_sum(a, y):
    for _ in range(5):
        y = np.linalg.solve(2.0 * a + np.eye(N), y)
    return np.sum(y)


def nested(a, y):
    for _ in range(10):
        for _ in range(10):
            y = np.linalg.solve(a, y) + 0.1
    return np.sum(y)


def changing(a, y):
    for _ in range(5):
        y = np.linalg.solve(a, y)
        a = a + np.outer(y, y)
    return np.sum(y)


def by_step(a, y):
    for k in range(5):
        y = np.linalg.solve(a + k * np.eye(N), y)
    return np.sum(y)


def until_small(a, y):
    while np.sum(y * y) > 1e-3:
        y = np.linalg.solve(a, y)
    return np.sum(y)


def in_a_branch(a, y):
    for k in range(5):
        if y[0] > 0.5 * k:
            y = np.linalg.solve(a, y) + 1.0
    return np.sum(y)


@pytest.mark.parametrize(
    ("fun", "before", "within"),
    [
        (steps, ["lu"], ["lu_solve"]),
        (of_a_sum, ["lu"], ["lu_solve"]),
        (nested, ["lu"], ["lu_solve"]),
        (changing, [], ["lu", "lu_solve"]),
        (by_step, [], ["lu", "lu_solve"]),
        (until_small, ["lu"], ["lu_solve"]),
        (in_a_branch, [], ["lu", "lu_solve"]),
    ],
)
def test_what_is_called_where(fun, before, within):
    tape = verify(hoist(recorded(fun, (A, Y))))
    assert calls(tape) == before
    assert inside(tape) == within


@pytest.mark.parametrize("fun", [steps, of_a_sum, nested, until_small, in_a_branch])
@pytest.mark.parametrize("engine", ["vm", "native"])
def test_value_and_gradient(fun, engine):
    value, (by_a, _) = ckad.value_and_grad(fun, (0, 1), engine=engine)(A, Y)
    assert value == pytest.approx(fun(A, Y), rel=1e-13)
    seed = np.random.default_rng(1).normal(size=A.shape)
    slope = (fun(A + 1e-6 * seed, Y) - fun(A - 1e-6 * seed, Y)) / 2e-6
    assert np.sum(by_a * seed) == pytest.approx(slope, rel=1e-6)


def constant_right_side(a, y):
    """The solution itself does not change, and fails where the matrix is singular."""
    total = 0.0
    while total < 1.0:
        total = total + np.sum(np.linalg.solve(a, y) ** 2)
    return total


def test_what_may_fail_stays_in_a_loop_that_may_not_run():
    tape = hoist(recorded(constant_right_side, (A, Y)))
    assert calls(tape) == ["lu"]
    assert inside(tape) == ["lu_solve"]


def test_a_tape_without_calls_in_loops_is_itself():
    tape = recorded(lambda a, y: np.sum(np.linalg.solve(a, y)), (A, Y))
    assert hoist(tape) is tape
