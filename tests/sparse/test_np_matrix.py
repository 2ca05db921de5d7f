"""``np.matrix`` of traced values: products by ``*``, two axes always, what is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg as la

import ckad
from ckad.errors import UnrecordableError, UnsupportedFunctionError

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
A = np.array([[1.2, 0.3, 0.4], [0.2, 2.0, -0.5], [0.7, 0.1, 1.5]])
V = np.array([1.0, -2.0, 0.5])
KNOWN = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [2.0, 0.0, 1.0]])


def a_filter(a, v):
    F = np.asmatrix([[1.0, a[0, 1]], [0.0, 1.0]])
    H, P = np.asmatrix([[1.0, 0.0]]), np.asmatrix(np.eye(2))
    x = np.asmatrix([[0.0], [v[0]]])
    total = 0.0
    for z in (0.1, 0.25, 0.3):
        x = F * x
        P = F * P * F.T + 0.01 * np.eye(2)
        K = P * H.T * (H * P * H.T + 0.1).I
        x = x + K * (z - H * x)
        P = (np.eye(2) - K * H) * P
        total += float(x[0, 0])
    return total + P[0, 0] + np.linalg.det(P)


def in_a_loop(a, v):
    M, x = np.asmatrix(a), np.matrix(v).T
    for _ in range(20):
        x = M * x * 0.3 + 0.1
    return np.sum(x.A**2) + x.size + len(x) + M.H[0, 1]


def known_ones(a, v):
    M, K = np.matrix(a), np.matrix(KNOWN)
    return np.asarray(K * M * K + (M - K) @ (K - M) @ K + K / M) * v[0]


def parts(a, v):
    M = np.matrix(a)
    whole = [M[0], M[0, :], M[:, 1].T, M[1:, 0].T * M[1:], M[-1, 1:], M[:, [0]].T, M[0].T.T]
    rows = sum(row[0, 2] for row in M)
    return (
        np.concatenate([np.asarray(part).ravel() for part in whole]) * rows
        + np.ravel(M)[3]
        + M.ravel()[0, 4]
    )


def powers(a, v):
    M = np.matrix(np.matrix(a))
    return np.asarray(M**2 - M**0 + M**-1 + np.linalg.inv(M).T) + np.asarray(np.asmatrix(M).I)


def seen_through(a, v):
    b = a * 1.0
    M, apart = np.asmatrix(b), np.matrix(b)
    b[0, 0] = v[1]
    return np.asarray(M * apart)


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("function", [a_filter, in_a_loop, known_ones, parts, powers, seen_through])
def test_values_and_gradients(function, engine):
    found, wanted = ckad.jit(function, engine=engine)(A, V), function(A, V)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert np.shape(found) == np.shape(wanted)
    ckad.testing.check_grads(function, (A, V), order=1, engine=engine)


def written(a, v):
    """The writes of a filter that fills its matrices element by element, and by parts."""
    M = np.matrix(np.zeros((3, 3)))
    M[0, 1] = v[0]
    M[:, 0] = np.matrix([[v[1]], [2 * v[0]], [3.0]])
    M[1] = np.array([1.0, v[0], v[1] ** 2])
    row = M[2]
    row += v[0]
    M[0:2, 1:3] -= np.eye(2) * v[1]
    M /= 2.0
    other = M
    other[2, 2] = v[0] * v[1]
    return (M * M).A


def written_in_loops(a, v):
    M = np.matrix(np.zeros((2, 2)))
    other = M
    for n in range(12):
        N = np.asmatrix(np.zeros((2, 2)))
        for k in range(2):
            N[k, :] = M[1 - k, :] * 0.5
            N[k, k] += v[k] * n
        if N[0, 0] > 3.0:
            M[0, 1] = v[0] * n
        else:
            M[1, 0] += v[1]
        M += N * 0.01
    return (M.T * other).A


def scaled_in_a_loop(a, v):
    M = np.matrix(np.eye(2))
    for _ in range(9):
        M[0, 1] = M[0, 1] * 0.5 + v[0]
        M = M * 0.9
    return M.A


def beside_arrays(a, v):
    M = np.matrix([[v[0], 1.0], [0.5, 2.0 * v[1]]])
    inverse = la.inv(M) * M * v[1] + np.array([[v[0], 2.0], [3.0, 4.0]]) * M
    known = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    known = known * v[0] + v[1] * known[0, :] + known * np.array([[v[0]], [v[1]]])
    below = np.vstack((M, np.matrix([v[0], v[1]]))).T * np.ones((3, 1))
    beside = np.hstack((M, M * 2)) * np.ones((4, 1))
    solved = -np.linalg.inv(M).dot(M[:, 0] * v[0]) + np.linalg.solve(M, np.matrix([[1.0], [v[0]]]))
    return (inverse + known + below + beside + solved).A


def asked(a, v):
    M = np.matrix([[v[0], 1.3], [0.6, 2.0 * v[1]]])
    found = abs(M - 3).max() + np.linalg.norm(M) + np.trace(M) + M.mean(0)[0, 1]
    if M[0].dot(M[:, 0]) < 1e5:
        found += np.where(M > 0.8, M, 0).sum() + copy.deepcopy(M)[0, 0] ** 2
    return found + np.multiply(M, M)[1, 1] + np.max(M, axis=1)[0, 0] + np.outer(M[0], M[1])[0, 1]


def added_to_an_array(a, v):
    """Stiffness of bars: blocks as a matrix, added to the rows and columns of a plain array."""
    K = np.zeros((4, 4))
    for e in range(12):
        T = np.bmat([[v[0] * np.eye(1), np.zeros((1, 1))], [np.ones((1, 1)), v[1] * np.eye(1)]])
        dofs = np.array([e % 3, e % 3 + 1])
        K[np.ix_(dofs, dofs)] += T.T * T * (e + 1)
    M = np.bmat([a[:2, :2], np.matrix([[v[0]], [1.0]])])
    K[:2, :3] -= M
    K[1:3, 1:4] *= M
    K[2:, :3] /= M + 5.0
    return np.add(K[:3, :3], np.bmat(a), out=K[:3, :3])


_CHANGING = [written, written_in_loops, scaled_in_a_loop, beside_arrays, asked, added_to_an_array]


@pytest.mark.parametrize("function", _CHANGING)
def test_matrices_that_are_written_and_stand_beside_arrays(function):
    found, wanted = ckad.jit(function, engine="vm")(A, V), function(A, V)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    ckad.testing.check_grads(function, (A, V), order=1, engine="vm")


def test_a_matrix_that_shows_an_array_from_outside_is_not_written():
    outside = np.zeros((2, 2))

    def write(a, v):
        np.asmatrix(outside)[0, 1] = v[0]
        return v[0]

    with pytest.raises(UnrecordableError, match="did not get as an argument"):
        ckad.jit(write)(A, V)


GIVING: list[Callable[[Any], Any]] = [
    *(np.square, np.exp, np.arctan, lambda m: np.arctan2(m, m.T), np.cumsum, np.sort),
    *(lambda m: np.cumprod(m, axis=1), lambda m: m.cumsum(0), lambda m: np.clip(m, 0.3, 1.0)),
    *(lambda m: np.maximum(m, 0.5), np.inner, np.squeeze, np.fliplr, np.kron, np.diag, np.tril),
    *(np.prod, lambda m: np.prod(m, 0), lambda m: (m > 1).any(), lambda m: np.argmax(m, axis=1)),
    *(lambda m: np.linalg.eig(m)[0], lambda m: abs(np.linalg.eig(m)[1]), np.linalg.eigvals),
    *(lambda m: np.linalg.svd(m)[1], lambda m: abs(np.linalg.svd(m)[0]), np.linalg.pinv),
    *(lambda m: np.linalg.cholesky(m * m.T), lambda m: np.linalg.slogdet(m)[1], np.cov),
    *(lambda m: abs(np.linalg.qr(m)[1]), np.linalg.matrix_rank, lambda m: np.linalg.eigvalsh(m)),
    *(lambda m: m.reshape(1, 9), lambda m: m.astype(float), lambda m: m.item(2)),
    *(lambda m: np.array(m.tolist()), lambda m: np.einsum("ij,ij->i", m, m)),
]


@pytest.mark.parametrize("function", GIVING)
def test_what_is_a_matrix_and_what_is_none(function):
    classes = []

    def given(a):
        m = np.matrix(a)
        found = function(m, m) if function in (np.inner, np.kron) else function(m)
        classes.append(type(found).__name__)
        return np.asarray(found) * 1.0

    wanted = given(A)
    found = ckad.jit(given, engine="vm")(A)
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert (classes[0] == "matrix") == (classes[-1] == "Dense")


def under_a_mask(a, v):
    m = np.matrix(a)
    m[m > 1] = v[0]
    return np.sum(np.square(m[m > 0.25])) + np.linalg.eig(np.matrix(a))[0] @ v


def test_masks_that_are_matrices():
    assert ckad.jit(under_a_mask, engine="vm")(A, V) == pytest.approx(under_a_mask(A, V))
    ckad.testing.check_grads(under_a_mask, (A, V), order=1, engine="vm")


def as_lists_of_matrices_are_pooled(a, v):
    maps = [np.asmatrix(a), np.asmatrix(a * a)]
    pooled = [np.average(part[0:1, 0:2]) for part in maps]
    row, column = np.dot(v, np.asmatrix(a)), np.dot(np.asmatrix(a), v)
    sizes = sum(np.shape(maps)) + 10 * np.shape(row)[0] + 100 * np.shape(column)[1]
    sizes = sizes + np.sum(np.multiply(a, np.multiply(maps[1], 1 - maps[0])))
    return (
        sizes
        + np.sum(maps[0].getA() ** 2)
        + pooled[0] * pooled[1]
        + np.sum(np.multiply(row, column))
    )


def test_lists_of_matrices_and_products_with_vectors():
    given = A, V
    found = ckad.jit(as_lists_of_matrices_are_pooled, engine="vm")(*given)
    assert found == pytest.approx(as_lists_of_matrices_are_pooled(*given))
    (lambda a, v: (np.matrix(a) ** 0.5).A,)


REFUSED = [
    *(lambda a, v: (np.matrix(a) @ v).A, lambda a, v: (2 ** np.matrix(a)).A),
    lambda a, v: (np.matrix(a) ** 0.5).A,
]


@pytest.mark.parametrize("function", REFUSED)
def test_what_is_refused(function):
    with pytest.raises(UnsupportedFunctionError, match=r"test_np_matrix\.py:\d+.*has no rule for"):
        ckad.jit(function)(A, V)


def kept_in_an_array(a, v):
    kept = np.zeros((3, 3, 2), dtype=complex)
    m = np.asmatrix(a) + 1j * np.eye(3)
    for k in range(2):
        kept[:, :, k] = m * (v[0] + k)
    kept[0, :, 1] = m[1]
    return np.sum(np.abs(kept) ** 2)


def test_a_matrix_is_written_into_a_part_of_an_array():
    value = ckad.jit(kept_in_an_array, engine="vm")(A, V)
    np.testing.assert_allclose(value, kept_in_an_array(A, V), rtol=1e-12)
    ckad.testing.check_grads(kept_in_an_array, (A, V), order=1, engine="vm")
