"""Sums over known runs of places: products of sparse matrices, and only what is under the mask."""

import numpy as np
import pytest

import ckad
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of

N, LENGTH = 60, 300
GENERATOR = np.random.default_rng(5)
P = np.sort(GENERATOR.integers(0, LENGTH + 1, N + 1))
P[0], P[7], P[-1] = 0, P[6], LENGTH
COLUMNS = GENERATOR.integers(-N, N, LENGTH)
FIRST, LAST = GENERATOR.integers(0, LENGTH, N), GENERATOR.integers(0, 20, N) - 3
DATA, X = GENERATOR.normal(size=LENGTH), GENERATOR.normal(size=N)


def by_rows(data, x):
    y = np.zeros_like(x)
    for i in range(N):
        y[i] = data[P[i] : P[i + 1]] @ x[COLUMNS[P[i] : P[i + 1]]]
    return y


def runs_that_overlap(data, x):
    y = np.zeros_like(x)
    for i in range(N):
        y[i] = np.sum(data[FIRST[i] : FIRST[i] + LAST[i]] * np.sin(x[i]))
    return y


def differences(data, x):
    """As on a graph: each with its neighbours."""
    y = np.zeros_like(x)
    for i in range(N):
        run = slice(P[i], P[i + 1])
        y[i] = np.sum(data[run] * (x[COLUMNS[run]] - x[i]) ** 2) + x[i]
    return y


def of_its_own(data, x):
    """A sum of what is not a product with another vector."""
    y = np.zeros_like(x)
    for i in range(N):
        y[i] = -np.sum(np.exp(data[P[i] : P[i + 1]]))
    return y * x


PROGRAMS = [by_rows, runs_that_overlap, differences, of_its_own]


def rows_of(tape):
    yield from tape.rows
    for body in tape.bodies:
        yield from rows_of(body)


@pytest.mark.parametrize("program", PROGRAMS)
def test_runs_are_a_sparse_product(program):
    tape = ckad.trace(program)(DATA, X)
    routines = [routine_of(row).name for row in rows_of(tape) if row.op is Op.CALL]
    assert routines == ["sparse_dot"]
    assert max(row.type.size for row in rows_of(tape)) <= 2 * LENGTH
    np.testing.assert_allclose(ckad.jit(program, engine="vm")(DATA, X), program(DATA, X), 1e-12)
    ckad.testing.check_grads(program, (DATA, X), engine="vm")


def test_single_precision_stays():
    data, x = DATA.astype(np.float32), X.astype(np.float32)
    found = ckad.jit(by_rows, engine="vm")(data, x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, by_rows(DATA, X), 1e-4, 1e-5)


def test_what_is_outside_of_runs_is_not_computed():
    """An infinity between two runs, and one that no run reads."""
    data = DATA.copy()
    data[P[3] : P[4]] = np.inf
    found = ckad.jit(by_rows, engine="vm")(data, X)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(by_rows(data, X)))
    assert np.sum(~np.isfinite(found)) == 1


def test_columns_out_of_range_are_found():
    wrong = COLUMNS.copy()
    wrong[LENGTH // 2] = N

    def program(data, x):
        y = np.zeros_like(x)
        for i in range(N):
            y[i] = data[P[i] : P[i + 1]] @ x[wrong[P[i] : P[i + 1]]]
        return np.sum(y)

    with pytest.raises(IndexError, match=r"out of bounds|out of range"):
        ckad.grad(program)(DATA, X)
