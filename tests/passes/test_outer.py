"""Outer products that steps add to the cotangent of a matrix: one product behind the loop."""

import numpy as np
import pytest

import ckad
from ckad import testing
from ckad.errors import BudgetError
from ckad.tape.control import read_reverse_loop
from ckad.tape.ops import Op

N, M = 60, 40
RNG = np.random.default_rng(4)
A, C, X = 0.1 * RNG.normal(size=(N, M)), 0.1 * RNG.normal(size=(M, N)), RNG.normal(size=M)


def two_matrices(a, c, x):
    for _ in range(12):
        x = np.tanh(c @ np.sin(a @ x) - x)
    return np.sum(x * x)


def twice_in_a_step(a, c, x):
    y = np.zeros(N)
    for _ in range(12):
        y = np.cos(a @ x - 0.1 * y)
        x = x - 0.1 * (y @ a)
    return np.sum(x * x) + np.sum(y)


def also_outside(a, c, x):
    for _ in range(12):
        x = np.sin(c @ (a @ x))
    return np.sum((a @ x) ** 2) + np.sum(a * a)


def loops_in_loops(a, c, x):
    for _ in range(3):
        for _ in range(5):
            x = np.sin(c @ (a @ x))
        x = x / np.sqrt(x @ x)
    return np.sum(x * x * x)


def few_columns(a, c, x):
    y = np.stack([x, np.cos(x), x - 1.0], axis=1)
    for _ in range(8):
        y = np.tanh(c @ (a @ y) - y) + 0.1 * (y.T @ c @ a).T
    return np.sum(y * y)


PROGRAMS = [few_columns, two_matrices, twice_in_a_step, also_outside, loops_in_loops]


def stacked(tape):
    """How many values the reversals of steps give beside cotangents that are carried."""
    own = [read_reverse_loop(tape, row) for row in tape.rows if row.op is Op.REVERSE_LOOP]
    return sum(loop.n_ct_xs for loop in own) + sum(map(stacked, tape.bodies))


@pytest.mark.parametrize("program", PROGRAMS)
def test_vectors_are_kept(program):
    gradient = ckad.grad(program, argnums=(0, 1, 2))
    assert stacked(gradient.compiled(A, C, X).tape) >= 4 - 2 * (program is twice_in_a_step)
    testing.check_grads(program, (A, C, X), order=1)


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_bits_do_not_depend_on_budgets(program, engine):
    free = ckad.grad(program, argnums=(0, 1, 2), engine=engine)(A, C, X)
    least = ckad.plan(program, A, C, X, argnums=(0, 1, 2), engine=engine).peak_bytes
    for part in (1.0, 0.97, 0.94):
        budget = int(part * least)
        try:
            found = ckad.grad(program, (0, 1, 2), engine=engine, memory=budget)(A, C, X)
        except BudgetError:
            assert part < 1.0
            continue
        for x, y in zip(free, found, strict=True):
            np.testing.assert_array_equal(x, y)


def test_a_second_derivative():
    testing.check_grads(two_matrices, (A, C, X), order=2)


def test_long_loops_add_in_each_step():
    def long(a, c, x):
        for _ in range(400):
            x = np.tanh(c @ np.sin(a @ x) - x)
        return np.sum(x * x)

    assert stacked(ckad.grad(long, argnums=(0, 1)).compiled(A, C, X).tape) == 0


def test_a_product_that_is_more_than_vectors_stays():
    def squares(a, c, x):
        for _ in range(12):
            x = np.tanh(c @ (a @ x + np.sum(a * a, axis=1)) - x)
        return np.sum(x * x)

    compiled = ckad.grad(squares, argnums=(0, 1)).compiled(A, C, X)
    assert stacked(compiled.tape) == 2
    testing.check_grads(squares, (A, C, X), order=1)
