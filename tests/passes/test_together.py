"""Loops that are alike are the steps of one: values, derivatives, what stays apart."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.passes.loops.together import LEAST, together
from ckad.rules.evaluate import evaluate
from ckad.tape.ops import Op
from ckad.tape.verify import verify

from .recorded import recorded

N = 12
P = np.array([1.0, 2.0])


def root(a, b):
    x = 5.0 + a
    for _ in range(60):
        change = (x * x * x - a * x - b) / (3 * x * x - a)
        x = x - change
        if abs(change) < 1e-12:
            break
    return x


def path(x, k):
    xs = []
    for _ in range(30):
        x = x + 0.01 * np.sin(k * x) * np.cos(x)
        x = x - 0.01 * np.tanh(x * x)
        xs.append(x)
    return x, np.array(xs)


class Item:
    def __init__(self, k):
        self.k = k


def items():
    """What a loop is not recorded over once."""
    return [type(f"Item{k}", (Item,), {})(0.1 * k) for k in range(N)]


def roots(p):
    total = 0.0
    for item in items():
        total = total + root(p[0] + item.k, p[1]) * item.k
    return total**2


def one_after_another(p):
    """Each loop reads what the one before gave: of two loops per item one waits for nothing."""
    x = p[0]
    for item in items():
        x = 0.1 * root(x, p[1]) + root(p[1] + item.k, p[0])
    return x


def with_history(p):
    total = 0.0
    for item in items():
        x, xs = path(p[0] * item.k, p[1])
        total = total + x * xs[3] + path(x + item.k, p[1])[0]
    return total


@pytest.fixture(autouse=True)
def _for_less(monkeypatch):
    monkeypatch.setattr("ckad.passes.loops.together.ROWS", 100)


PROGRAMS = [roots, one_after_another, with_history]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_values_stay(program):
    tape = recorded(program, [P])
    made = together(tape)
    verify(made)
    assert count(made) < count(tape) - N + 2
    assert evaluate(made, P)[0].tobytes() == evaluate(tape, P)[0].tobytes()
    assert np.isclose(evaluate(made, P)[0], program(P), rtol=1e-13)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients(program):
    value, gradient = ckad.value_and_grad(program, engine="vm")(P)
    assert np.isclose(value, program(P), rtol=1e-13)
    steps = 1e-5 * np.eye(2)
    wanted = [(program(P + step) - program(P - step)) / 2e-5 for step in steps]
    assert np.allclose(gradient, wanted, rtol=1e-7)


def few(p):
    return sum(root(p[0] + item.k, p[1]) for item in items()[: LEAST - 1])


def a_chain(p):
    x = p[0]
    for item in items():
        x = 0.1 * root(x, p[1]) + item.k
    return x


@pytest.mark.parametrize("program", [few, a_chain])
def test_what_stays_apart(program):
    tape = recorded(program, [P])
    assert together(tape) is tape


def count(tape):
    return sum(row.op is Op.LOOP for row in tape.rows)
