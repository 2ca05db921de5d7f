"""Loops that substitute become calls, both by the factors of one elimination a single one."""

from __future__ import annotations

import numpy as np
import pytest

import ckad

from .test_eliminations import RNG, A, B, N


def forwards(a, b):
    x = np.zeros(N)
    for i in range(N):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
    return x


def backwards(a, b):
    x = np.zeros(N)
    for i in range(N - 1, -1, -1):
        x[i] = b[i]
        for j in range(i + 1, N):
            x[i] -= a[i, j] * x[j]
        x[i] /= a[i, i]
    return x


def by_columns(a, b):
    x = b.copy()
    for j in range(N):
        x[j] /= a[j, j]
        x[j + 1 :] -= x[j] * a[j + 1 :, j]
    return x


def with_ones(a, b):
    x = np.zeros(N)
    for i in range(N):
        x[i] = b[i] - np.sum(a[i, :i] * x[:i])
    return x


def by_the_transpose(a, b):
    x = np.zeros(N)
    for i in range(N - 1, -1, -1):
        x[i] = (b[i] - a[i + 1 :, i] @ x[i + 1 :]) / a[i, i]
    return x


EACH = [forwards, backwards, by_columns, with_ones, by_the_transpose]


def factors(a):
    lower, upper = np.eye(N), np.zeros((N, N))
    for i in range(N):
        upper[i, i:] = a[i, i:] - lower[i, :i] @ upper[:i, i:]
        lower[i + 1 :, i] = (a[i + 1 :, i] - lower[i + 1 :, :i] @ upper[:i, i]) / upper[i, i]
    return lower, upper


def solved(a, b):
    lower, upper = factors(a)
    return backwards(upper, with_ones(lower, b))


def solved_in_steps(a, b):
    """The factors are made once."""
    lower, upper = factors(a)
    for _ in range(3):
        b = 0.5 * b + np.sin(backwards(upper, with_ones(lower, b)))
    return b


def eliminated(a, b):
    a, b = a.copy(), b.copy()
    for k in range(N - 1):
        for i in range(k + 1, N):
            factor = a[i, k] / a[k, k]
            a[i, k:] -= factor * a[k, k:]
            b[i] -= factor * b[k]
    return backwards(a, b)


def calls(program):
    return str(ckad.trace(program)(A, B))


@pytest.mark.parametrize("program", [*EACH, solved, solved_in_steps, eliminated])
def test_value_and_derivatives(program):
    text = calls(program)
    assert "loop" not in text or program is solved_in_steps
    assert "solved_by" in text if program in (solved, eliminated) else "substituted" in text
    found = [ckad.jit(program, engine=e)(A, B) for e in ("vm", "native")]
    np.testing.assert_allclose(found[0], program(A, B), rtol=1e-12)
    np.testing.assert_allclose(*found, rtol=1e-13)
    ckad.testing.check_grads(program, (A, B), engine="vm")


@pytest.mark.parametrize("program", [backwards, with_ones, by_the_transpose, solved, eliminated])
def test_second_derivatives(program):
    ckad.testing.check_grads(program, (A, B), modes=("rev",), order=2, engine="vm", rtol=1e-5)


def test_members_of_a_batch():
    stack, sides = np.stack([A, A.T]), np.stack([B, B[::-1]])
    found = ckad.vmap(solved)(stack, sides)
    np.testing.assert_allclose(found, [solved(A, B), solved(A.T, B[::-1])], rtol=1e-10)
    jacobian = ckad.jacobian(solved, 1)(A, B)
    np.testing.assert_allclose(jacobian @ A, np.eye(N), atol=1e-10)


def test_a_solution_that_reads_the_other_triangle_has_its_own_derivatives():
    """What solves the system of the factors, but of others."""

    def program(a, b):
        lower, upper = factors(a)
        return backwards(upper + np.diag(np.ones(N)), with_ones(lower, b))

    assert "solved_by" not in calls(program)
    ckad.testing.check_grads(program, (A, B), engine="vm")


def both_triangles(a, b):
    x = np.zeros(N)
    for i in range(N):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i] + a[0, N - 1]
    return x


def last_row_apart(a, b):
    x = np.zeros(N)
    for i in range(N):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / (a[i, i] if i < N - 1 else a[0, 0])
    return x


@pytest.mark.parametrize("program", [both_triangles, last_row_apart])
def test_what_only_looks_like_it_stays_a_loop(program):
    assert "substituted" not in calls(program)
    np.testing.assert_allclose(ckad.jit(program)(A, B), program(A, B), rtol=1e-12)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_a_zero_on_the_diagonal_raises_nothing(engine):
    zero = A.copy()
    zero[3, 3] = 0.0
    found = ckad.jit(forwards, engine=engine)(zero, B)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(forwards(zero, B)))


def test_sides_of_other_sizes():
    a = RNG.normal(size=(40, 40)) + 40 * np.eye(40)

    def program(a, b):
        x = np.zeros(40)
        for i in range(40):
            x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
        return x

    assert "substituted" in str(ckad.trace(program)(a, a[0]))
    np.testing.assert_allclose(ckad.jit(program)(a, a[0]), program(a, a[0]), rtol=1e-12)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_pivots_of_which_the_reciprocal_overflows(engine):
    def solution(a, b):
        x = np.zeros(18)
        for i in range(18):
            x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
        return x

    rng = np.random.default_rng(1)
    a = (rng.normal(size=(18, 18)) + 18 * np.eye(18)) * 1e-310
    b = rng.normal(size=18) * 1e-310
    assert "substituted" in str(ckad.trace(solution)(a, b))
    found = ckad.jit(solution, engine=engine)(a, b)
    np.testing.assert_allclose(found, solution(a, b), rtol=1e-9)
