"""Loops that make Cholesky's factor become calls of a routine, whichever triangle they read."""

from __future__ import annotations

import numpy as np
import pytest

import ckad

from .test_eliminations import RNG, A, N

GIVEN = A @ A.T / N
W = RNG.normal(size=(N, N))


def by_rows(a):
    a = a.copy()
    for i in range(N):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[j, :j]
            a[i, j] /= a[j, j]
        a[i, i] -= a[i, :i] @ a[i, :i]
        a[i, i] = np.sqrt(a[i, i])
    return a


def by_elements(a):
    root = np.zeros((N, N))
    for i in range(N):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= root[i, k] * root[j, k]
            root[i, j] = np.sqrt(total) if i == j else total / root[j, j]
    return root


def by_columns(a):
    root = np.zeros_like(a)
    for j in range(N):
        root[j, j] = np.sqrt(a[j, j] - np.sum(root[j, :j] ** 2))
        root[j + 1 :, j] = (a[j + 1 :, j] - root[j + 1 :, :j] @ root[j, :j]) / root[j, j]
    return root


def by_outer_products(a):
    a = a.copy()
    for k in range(N):
        a[k, k] = np.sqrt(a[k, k])
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k + 1 :, k])
    return np.tril(a)


def upper(a):
    """Of the other triangle, to the transpose of the factor."""
    root = np.zeros((N, N))
    for i in range(N):
        root[i, i] = np.sqrt(a[i, i] - root[:i, i] @ root[:i, i])
        root[i, i + 1 :] = (a[i, i + 1 :] - root[:i, i] @ root[:i, i + 1 :]) / root[i, i]
    return root


EACH = [by_rows, by_elements, by_columns, upper]


def calls(program):
    return "rooted" in str(ckad.trace(program)(GIVEN))


@pytest.mark.parametrize("program", EACH)
def test_value_and_derivatives(program):
    assert calls(program)
    not_symmetric = GIVEN + 0.01 * W
    for given in (GIVEN, not_symmetric):
        found = [ckad.jit(program, engine=e)(given) for e in ("vm", "native")]
        np.testing.assert_allclose(found[0], program(given), rtol=1e-10, atol=1e-13)
        np.testing.assert_array_equal(*found)
    ckad.testing.check_grads(program, (not_symmetric,), engine="vm")


@pytest.mark.parametrize("program", [by_rows, upper])
def test_second_derivatives(program):
    ckad.testing.check_grads(program, (GIVEN,), order=2, engine="vm", rtol=1e-5)


def test_a_program_that_changes_both_triangles_is_right():
    ckad.testing.check_grads(by_outer_products, (GIVEN,), engine="vm")


@pytest.mark.parametrize("n", [17, 40, 70])
def test_sizes(n):
    x = RNG.normal(size=(n, n))
    given, weights = x @ x.T + n * np.eye(n), RNG.normal(size=(n, n))

    def program(a):
        root = np.zeros((n, n))
        for j in range(n):
            root[j, j] = np.sqrt(a[j, j] - np.sum(root[j, :j] ** 2))
            root[j + 1 :, j] = (a[j + 1 :, j] - root[j + 1 :, :j] @ root[j, :j]) / root[j, j]
        return np.sum(root * weights)

    assert "rooted" in str(ckad.trace(program)(given))
    value, gradient = ckad.value_and_grad(program)(given)
    assert value == pytest.approx(np.sum(np.linalg.cholesky(given) * weights), rel=1e-10)
    along = RNG.normal(size=(n, n))
    slope = (program(given + 1e-6 * along) - program(given - 1e-6 * along)) / 2e-6
    assert np.sum(gradient * along) == pytest.approx(slope, rel=1e-6)


def of_both_triangles(a):
    root = np.zeros((N, N))
    for i in range(N):
        for j in range(i + 1):
            given = a[i, j] if j < 3 else a[j, i]
            total = given - root[i, :j] @ root[j, :j]
            root[i, j] = np.sqrt(total) if i == j else total / root[j, j]
    return root


def shifted(a):
    root = np.zeros((N, N))
    for j in range(N):
        root[j, j] = np.sqrt(a[j, j] - np.sum(root[j, :j] ** 2) + 1e-14)
        root[j + 1 :, j] = (a[j + 1 :, j] - root[j + 1 :, :j] @ root[j, :j]) / root[j, j]
    return root


def of_magnitudes(a):
    """Of pivots that are negative, too."""
    root = np.zeros((N, N))
    for j in range(N):
        root[j, j] = np.sqrt(np.sqrt((a[j, j] - np.sum(root[j, :j] ** 2)) ** 2))
        root[j + 1 :, j] = (a[j + 1 :, j] - root[j + 1 :, :j] @ root[j, :j]) / root[j, j]
    return root


@pytest.mark.parametrize("program", [of_both_triangles, shifted, of_magnitudes])
def test_what_only_looks_like_it_stays_a_loop(program):
    assert not calls(program)
    ckad.testing.check_grads(program, (GIVEN + 0.01 * W,), engine="vm")


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_a_matrix_that_is_not_positive_raises_nothing(engine):
    with np.errstate(all="ignore"):
        expected = by_rows(-GIVEN)
    found = ckad.jit(by_rows, engine=engine)(-GIVEN)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
