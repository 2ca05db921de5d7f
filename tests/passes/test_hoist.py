"""Routines on what a loop does not change are called before it, where that fails no program."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.passes.calls.hoist import hoist
from ckad.passes.simplify import simplify
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


def scaled(a, y):
    for _ in range(5):
        y = y - 0.01 * a.T @ y
    return np.sum(y)


def squared(a, y):
    for _ in range(5):
        y = np.sin((a @ a + 1.0) @ y / 300)
    return np.sum(y)


def read_by_an_inner_loop(a, y):
    for _ in range(5):
        b = np.exp(-a)
        for k in range(3):
            y = np.tanh(b @ y) + k
    return np.sum(y)


def scaled_by_step(a, y):
    for k in range(5):
        y = y - (0.01 * k * a.T) @ y
    return np.sum(y)


def scaled_until_small(a, y):
    while np.sum(y * y) > 1e-3:
        y = y - 0.01 * a.T @ y
    return np.sum(y)


def read_by_elements_alone(a, y):
    for _ in range(5):
        y = y + (2.0 * a) * y
    return np.sum(y)


def computed(tape):
    """Whole matrices that bodies compute, and products that they multiply."""
    found = 0
    for body in tape.bodies:
        rows = [row for row in body.rows if row.type.shape[-2:] == (N, N)]
        found += sum(row.op.name in ("MUL", "EXP", "ADD", "MATMUL") for row in rows)
        found += computed(body)
    return found


@pytest.mark.parametrize(
    ("fun", "stays"),
    [
        (scaled, 0),
        (squared, 0),
        (read_by_an_inner_loop, 0),
        (scaled_by_step, 1),
        (scaled_until_small, 1),
        (read_by_elements_alone, 3),
    ],
)
def test_what_products_and_inner_loops_read_is_computed_once(fun, stays):
    y = np.outer(Y, Y) if fun is read_by_elements_alone else Y
    tape = verify(simplify(hoist(recorded(fun, (A, y)))))
    assert computed(tape) == stays
    for engine in ("vm", "native"):
        run = ckad.jit(fun, engine=engine)
        assert run(A, y) == pytest.approx(fun(A, y), rel=1e-13)
    ckad.testing.check_grads(fun, (A, 0.1 * y), order=2, rtol=1e-5, atol=1e-4)


def test_a_hoisted_product_keeps_the_bits_within_a_budget():
    a = np.random.default_rng(2).normal(size=(40, 40)) / 40

    def fun(a, y):
        for _ in range(200):
            y = np.sin(y - 0.3 * a.T @ y)
        return np.sum(y * y)

    y = np.linspace(0.0, 1.0, 40)
    plain = ckad.value_and_grad(fun, (0, 1), engine="native")(a, y)
    tight = ckad.value_and_grad(fun, (0, 1), engine="native", memory="100 KB")(a, y)
    assert plain[0].tobytes() == tight[0].tobytes()
    for x, z in zip(plain[1], tight[1], strict=True):
        assert x.tobytes() == z.tobytes()


def test_the_sign_of_a_factor_is_that_of_the_product():
    def fun(a, y):
        return (-a) @ y + a @ (-y[:, None])[:, 0]

    tape = simplify(recorded(fun, (A, Y)))
    assert not [row for row in tape.rows if row.op is Op.NEG and row.type.size == N * N]
    np.testing.assert_allclose(ckad.jit(fun)(A, Y), fun(A, Y), rtol=1e-14)


def test_a_sum_of_single_elements_is_no_sum():
    tape = simplify(recorded(lambda a, y: np.sum(a[:, None, :] * y, axis=1), (A, Y)))
    assert not [row for row in tape.rows if row.op is Op.SUM]


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
