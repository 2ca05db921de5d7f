"""Rows that are equal in all but the order in which a symmetric op has its operands are one."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.passes.cse import cse
from ckad.tape.ops import Op

from .recorded import recorded

X, Y = np.linspace(0.5, 2.0, 9), np.linspace(2.0, 0.7, 9)


@pytest.mark.parametrize(
    ("fun", "op", "left"),
    [
        (lambda x, y: np.sin(x * y) + np.cos(y * x), Op.MUL, 1),
        (lambda x, y: np.sin(x + y) * np.cos(y + x), Op.ADD, 1),
        (lambda x, y: np.where((x == y) | (y == x), x, y), Op.EQ, 1),
        (lambda x, y: np.sin(x - y) * np.cos(y - x), Op.SUB, 2),
        (lambda x, y: np.where((x < y) | (y < x), x, y), Op.LT, 2),
        (lambda x, y: x[1:] * x[:-1] + y[1:] * x[1:], Op.SLICE, 3),
    ],
)
def test_rows_that_are_the_same_are_one(fun, op, left):
    tape = cse(recorded(fun, (X, Y)))
    assert sum(row.op is op for row in tape.rows) == left
    np.testing.assert_allclose(ckad.jit(fun)(X, Y), fun(X, Y), rtol=1e-15)


def test_the_derivative_of_a_cube_is_made_of_a_product():
    tape = ckad.value_and_grad(lambda x: np.sum(x**3)).compiled(np.ones(4)).tape
    powers = [row for row in tape.rows if row.op is Op.POW]
    assert len(powers) == 1  # the cube
    x = np.array([0.0, -0.0, -1.5, 1e-160, 3.0])
    gradient = ckad.grad(lambda x: np.sum(x**3))
    np.testing.assert_allclose(gradient(x), 3 * x * x, rtol=1e-15)
    np.testing.assert_allclose(ckad.grad(lambda x: np.sum(gradient(x)))(x), 6 * x, rtol=1e-15)
