"""What a loop stacks, of which only the end is read, is carried: values, derivatives, budgets."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.passes.ends import ends
from ckad.rules.evaluate import evaluate
from ckad.tape.control import read_loop
from ckad.tape.ops import Op
from ckad.tape.verify import verify

from .recorded import raw, recorded

X, K = np.linspace(0.3, 1.0, 5), np.linspace(0.5, 1.5, 5)
STEPS = 40


def states(x, k):
    rows = []
    for _ in range(STEPS):
        x = x + 0.1 * np.sin(k * x)
        rows.append(x)
    return np.array(rows)


def last_of_a_list(x, k):
    return states(x, k)[-1] ** 2


def last_column(x, k):
    """As `solve_ivp` gives it: the first state, then the others, the steps on the last axis."""
    both = np.concatenate([x[np.newaxis], 0.5 * states(x, k) + 1.0])
    return both.T[:, STEPS] * k + both.T[2, -1]


def last_written(x, k):
    history = np.zeros((STEPS, 5))
    for t in range(STEPS):
        x = x + 0.1 * np.sin(k * x)
        history[t] = x
    return history[STEPS - 1]


def last_after_the_first(x, k):
    history = np.full((STEPS + 3, 5), 2.0)
    history[0] = x
    for t in range(STEPS):
        history[t + 1] = history[t] + 0.1 * np.sin(k * history[t])
    return history[STEPS] + history[-1] * history[0]


def no_carry(x, k):
    """What is stacked is none of the states."""
    energy = []
    for _ in range(STEPS):
        energy.append(np.sum(x * x))
        x = x + 0.1 * np.sin(k * x)
    return np.array(energy)[-1] * k


def several(x, k):
    rows = states(x, k)
    return np.sum(rows[-1:-4:-1] ** 2, axis=0) + rows[-4:-1:2].sum(axis=0) * (rows[-2] - rows[-3])


def backwards(x, k):
    u = np.outer(np.linspace(1.0, 2.0, STEPS + 1), k)
    u[STEPS] = x
    for t in range(STEPS - 1, -1, -1):
        u[t] = u[t + 1] + 0.1 * np.sin(k * u[t + 1])
    return u[0]


def within_steps(x, k):
    """Inner loops, each of which stacks."""
    for _ in range(6):
        inner = []
        for _ in range(7):
            x = np.tanh(x * k) + 0.1 * x
            inner.append(x * 2.0)
        x = np.array(inner)[-1] - np.array(inner)[-2] * 0.5
    return x


PROGRAMS = (
    last_of_a_list,
    last_column,
    last_written,
    last_after_the_first,
    no_carry,
    several,
    backwards,
    within_steps,
)
every_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)


def total(program):
    return lambda x, k: np.sum(program(x, k) ** 2)


def stacks(tape):
    """Whether a loop of the tape, or of a body of it, stacks anything."""
    loops = [read_loop(tape, row) for row in tape.rows if row.op in (Op.LOOP, Op.TAPED_LOOP)]
    return any(loop.n_ys for loop in loops) or any(map(stacks, tape.bodies))


@pytest.mark.sampled(3)
@every_program
@pytest.mark.parametrize("engine", ["vm", "native"])
def test_values_and_derivatives(program, engine):
    found = ckad.jit(program, engine=engine)(X, K)
    np.testing.assert_allclose(found, program(X, K), rtol=1e-13, atol=1e-14)
    ckad.testing.check_grads(lambda x, k: program(x, k), (X, K), engine=engine, order=2)


@every_program
def test_nothing_is_stacked(program):
    assert not stacks(ckad.value_and_grad(total(program), (0, 1)).compiled(X, K).tape)


@every_program
def test_the_pass_keeps_the_bits_of_a_tape(program):
    tape = recorded(program, (X, K))
    made = ends(tape)
    verify(made)
    for found, expected in zip(evaluate(made, X, K), evaluate(tape, X, K), strict=True):
        np.testing.assert_array_equal(found, expected)


@every_program
@pytest.mark.parametrize("engine", ["vm", "native"])
def test_the_bits_do_not_depend_on_the_schedule(program, engine):
    found = [
        ckad.value_and_grad(total(program), (0, 1), engine=engine, schedule=schedule)(X, K)
        for schedule in ("store_all", "revolve", "two_level")
    ]
    for value, cotangents in found[1:]:
        np.testing.assert_array_equal(value, found[0][0])
        np.testing.assert_array_equal(cotangents, found[0][1])


def test_the_gradient_is_that_of_the_last_state():
    def last(x, k):
        for _ in range(STEPS):
            x = x + 0.1 * np.sin(k * x)
        return x

    programs = (lambda x, k: states(x, k)[-1], last_written, last)
    expected, *others = (ckad.value_and_grad(total(p), (0, 1))(X, K) for p in programs)
    for value, cotangents in others:
        np.testing.assert_array_equal(value, expected[0])
        np.testing.assert_array_equal(cotangents, expected[1])


@pytest.mark.parametrize(
    "read",
    [
        lambda rows: rows[-5],
        lambda rows: rows[0] * rows[-1],
        lambda rows: rows[::-1][:2] + rows[-2:] * np.sum(rows),
        lambda rows: np.cumsum(rows, axis=0)[-1],
        lambda rows: rows[-1:-30:-7],
    ],
)
def test_what_is_read_elsewhere_stays_stacked(read):
    def program(x, k):
        return read(states(x, k))

    tape = recorded(program, (X, K))
    assert stacks(ends(tape))
    np.testing.assert_allclose(ckad.jit(program)(X, K), program(X, K), rtol=1e-13)
    ckad.testing.check_grads(program, (X, K))


def test_a_tape_without_stacks_stays_the_same():
    tape = raw(lambda x, k: x * k, (X, K))
    assert ends(tape) is tape


def test_an_index_of_a_row_that_is_not_read_is_checked():
    def program(x, places):
        rows = []
        for t in range(8):
            rows.append(places[t])
            x = x * 1.1
        return x * np.arange(5.0)[np.array(rows)][-1]

    with pytest.raises(IndexError):
        ckad.grad(lambda x, p: np.sum(program(x, p)))(X, np.array([0, 9, 1, 2, 1, 1, 1, 1]))


@pytest.mark.parametrize("n", [1, 2])
def test_few_steps(n):
    def program(x, k):
        _, rows = ckad.scan(lambda c, _: (c * k, c), x, length=n)
        return rows[-1] + rows[-n]

    np.testing.assert_array_equal(ckad.jit(program)(X, K), 2 * X if n == 1 else X * K + X)
    ckad.testing.check_grads(program, (X, K))


@pytest.mark.parametrize("steps", [2_000, 20_000])
def test_the_last_state_of_fixed_steps_takes_no_room_for_the_others(steps):
    def end(y0, rate):
        found = ckad.integrate.solve_ivp(
            lambda t, y, r: -r * y * (1.0 + y), (0.0, 5.0), y0, "RK4", args=(rate,), n_steps=steps
        )
        return np.sum(found.y[:, -1])

    args = np.array([1.0, 0.5, 0.1]), np.array([0.4, 1.0, 2.0])
    limited = ckad.value_and_grad(end, (0, 1), memory="30 KB")(*args)
    free = ckad.value_and_grad(end, (0, 1))(*args)
    np.testing.assert_array_equal(limited[0], free[0])
    np.testing.assert_array_equal(limited[1], free[1])
