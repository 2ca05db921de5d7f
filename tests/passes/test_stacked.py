"""Arrays that steps write in order are not carried: values, derivatives, restart states."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.tape.ops import Op

X, K = np.linspace(0.3, 1.0, 5), np.linspace(0.5, 1.5, 5)
STEPS = 30


def numbers(x, k):
    """One number of each step."""
    energy = np.zeros(STEPS)
    for t in range(STEPS):
        x = x + 0.1 * np.sin(k * x)
        energy[t] = np.sum(x * x)
    return energy * np.arange(STEPS)


def rows(x, k):
    """Not all rows are written."""
    history = np.full((STEPS + 3, 5), 2.0)
    history[0] = x
    for t in range(STEPS):
        x = x + 0.1 * np.sin(k * x)
        history[t + 1] = x
    return history * k


def one_before(x, k):
    history = np.zeros((STEPS + 1, 5))
    history[0] = x
    for t in range(STEPS):
        history[t + 1] = history[t] + 0.1 * np.sin(k * history[t])
    return history


def two_before(x, k):
    """The wave equation, its time on the last axis."""
    u = np.zeros((5, STEPS))
    u[:, 0], u[:, 1] = x, 0.9 * x
    for t in range(2, STEPS):
        u[:, t] = 2 * u[:, t - 1] - u[:, t - 2] + 0.01 * k * np.cos(u[:, t - 2])
    return u


def inside(x, k):
    """What is at the ends of each row was there before."""
    u = np.outer(np.linspace(1.0, 2.0, STEPS + 2), k)
    u[0] = x
    for t in range(STEPS):
        u[t + 1, 1:-1] = u[t, 1:-1] + 0.1 * u[t, 2:] * u[t, :-2] + 0.01 * u[t + 2, 1:-1]
    return u


def columns(x, k):
    u = np.outer(k, np.linspace(1.0, 2.0, STEPS)) * x[0]
    for t in range(1, STEPS):
        u[1:-1, t] *= 0.5 * u[1:-1, t - 1] - 0.1 * u[2:, t - 1]
    return u


def two_arrays(x, k):
    a, b = np.zeros((STEPS, 5)), np.zeros(STEPS)
    for t in range(STEPS):
        a[t] = x * k
        x = np.tanh(x + 0.1 * a[t])
        b[t] = x[0] * x[1]
    return a, b, x


def backwards(x, k):
    """An adjoint by hand, from the last row to the first."""
    u = np.outer(np.linspace(1.0, 2.0, STEPS + 1), k)
    u[STEPS] = x
    for t in range(STEPS - 1, -1, -1):
        u[t] = u[t + 1] + 0.1 * np.sin(k * u[t + 1]) + 0.01 * u[t]
    return u


def from_the_end(x, k):
    """By negative indices, all rows."""
    u = np.zeros((STEPS, 5))
    for t in range(STEPS):
        x = x + 0.1 * np.sin(k * x)
        u[-1 - t] = x
    return u * k


def every_third(x, k):
    u = np.outer(k, np.linspace(1.0, 2.0, 3 * STEPS)) * x[0]
    for t in range(STEPS):
        x = np.sin(x * k) + 0.1 * u[:, 3 * t] + 0.1 * u[:, 3 * t + 2]
        u[:, 3 * t + 1] = x
    return u


def two_of_a_step(x, k):
    """The predictor's row and the corrector's; the one before of each is read."""
    u = np.zeros((2 * STEPS + 2, 5))
    u[0], u[1] = x, 0.5 * x
    for t in range(STEPS):
        guess = u[2 * t + 1] + 0.1 * np.sin(k * u[2 * t])
        u[2 * t + 2] = guess
        u[2 * t + 3] = u[2 * t + 1] + 0.05 * np.cos(guess)
    return u


def read_again(x, k):
    """What the step has just written, and what it is about to write over."""
    u = np.outer(np.linspace(1.0, 2.0, 2 * STEPS), k)
    for t in range(STEPS):
        was = u[2 * t + 1]
        u[2 * t : 2 * t + 2] = np.stack([x * k, np.cos(x)])
        x = np.tanh(x + 0.1 * u[2 * t] * u[2 * t + 1] + 0.1 * was)
    return u


def two_at_once(x, k):
    u = np.full((2 * STEPS + 3, 5), 0.5)
    for t in range(STEPS):
        x = x + 0.1 * np.sin(k * x)
        u[2 * t + 1 : 2 * t + 3] = np.stack([x, 2.0 * x])
    return u


def element_by_element(x, k):
    u = np.ones((STEPS, 3))
    for t in range(STEPS):
        x = x + 0.1 * np.sin(k * x)
        u[t, 0] = x[0]
        u[t, 2] = np.sum(x)
    return u * k[0]


def counted(x, k):
    u, n = np.zeros((2 * STEPS + 1, 5)), 1
    for _ in range(STEPS):
        x = x + 0.1 * np.sin(k * x)
        u[n] = x
        n += 2
    return u


STRIDED = (
    read_again,
    backwards,
    from_the_end,
    every_third,
    two_of_a_step,
    two_at_once,
    element_by_element,
)
PROGRAMS = (numbers, rows, one_before, two_before, inside, columns, two_arrays, *STRIDED, counted)
TWO_ROWS = (two_before, two_of_a_step)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("engine", ["vm", "native"])
def test_values_and_derivatives(program, engine):
    mine, theirs = ckad.jit(program, engine=engine)(X, K), program(X, K)
    pairs = zip(mine, theirs, strict=True) if isinstance(theirs, tuple) else [(mine, theirs)]
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
    ckad.testing.check_grads(lambda x, k: program(x, k), (X, K), engine=engine)


def total(program):
    def function(x, k):
        found = program(x, k)
        parts = found if isinstance(found, tuple) else (found,)
        return sum(np.sum(part**2) for part in parts)

    return function


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_restart_state_has_the_rows_that_are_read(program):
    plan = ckad.plan(total(program), X, K, argnums=(0, 1), engine="native", schedule="revolve")
    assert plan.loops[0].state_bytes <= 64 * (2 if program in TWO_ROWS else 1)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_the_bits_do_not_depend_on_the_schedule(program):
    found = [
        ckad.value_and_grad(total(program), (0, 1), engine="native", schedule=schedule)(X, K)
        for schedule in ("store_all", "revolve")
    ]
    np.testing.assert_array_equal(found[0][0], found[1][0])
    for one, other in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_array_equal(one, other)


def carried(function, *args):
    """How many values the first loop carries."""
    tape = ckad.grad(function).compiled(*args).tape
    return next(row.attrs[3] for row in tape.rows if row.op is Op.TAPED_LOOP)


def written_twice(x):
    y = np.zeros(STEPS)
    for t in range(STEPS - 1):
        y[t] = y[t] + x
        y[t + 1] = y[t] * x
        x = 0.5 * np.sin(x + 0.1 * y[t + 1])
    return np.sum(y)


def far_before(x):
    y = np.zeros(STEPS) + x
    for t in range(9, STEPS):
        y[t] = np.sin(y[t - 9] * x)
    return np.sum(y)


def handed_on(x):
    """What is read is the whole array."""
    y = np.zeros(STEPS) + x
    for t in range(STEPS):
        y[t] = np.sin(np.sum(y) * x)
    return np.sum(y)


def one_class(x):
    """The next step writes over what this one has written."""
    y = np.zeros(2 * STEPS + 2)
    for t in range(STEPS):
        y[2 * t] = y[2 * t] + x
        y[2 * t + 2] = y[2 * t] * x
        x = 0.5 * np.sin(x + 0.1 * y[2 * t + 2])
    return np.sum(y)


def two_strides(x):
    y = np.zeros(2 * STEPS)
    for t in range(STEPS):
        x = 0.9 * np.sin(x)
        y[t] = x
        y[2 * t] = 2.0 * x
    return np.sum(y * np.arange(2 * STEPS))


def another_stride(x):
    y = np.zeros(2 * STEPS) + x
    for t in range(STEPS):
        x = 0.9 * np.sin(x + y[t])
        y[2 * t] = x
    return np.sum(y * np.arange(2 * STEPS))


def between_two_writes(x):
    y = np.zeros(2 * STEPS) + x
    for t in range(STEPS):
        y[2 * t] = x
        x = 0.9 * np.sin(x + 0.01 * np.sum(y))
        y[2 * t + 1] = x
    return np.sum(y * np.arange(2 * STEPS))


CARRIED = [written_twice, far_before, handed_on, one_class, two_strides, another_stride]


@pytest.mark.parametrize("function", [*CARRIED, between_two_writes])
def test_what_else_is_read_or_written_is_carried(function):
    assert ckad.jit(function)(0.3) == pytest.approx(function(0.3), rel=1e-13)
    ckad.testing.check_grads(lambda x: function(x), (0.3,))
    assert carried(function, 0.3) >= 1


def test_a_loop_without_steps_gives_the_array_as_it_was():
    def empty(x):
        y = np.ones(4) * x
        for t in range(0):
            y[t] = 0.0
        return np.sum(y)

    assert ckad.value_and_grad(empty)(2.0) == (8.0, 4.0)


def test_an_array_that_is_made_anew_in_another_shape_is_no_array_of_writes():
    def enlarged(x):
        image, a = np.zeros((4, 6)), np.arange(6.0).reshape(2, 3)
        for _ in range(STEPS):
            image = np.kron(a, np.ones((2, 2)))
            a = a + 0.01 * x * np.sin(a)
        return np.sum(image**2) + np.sum(a)

    assert ckad.jit(enlarged)(0.3) == pytest.approx(enlarged(0.3), rel=1e-13)
    ckad.testing.check_grads(lambda x: enlarged(x), (0.3,))
