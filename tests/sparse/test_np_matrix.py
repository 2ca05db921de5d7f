"""``np.matrix`` of traced values: products by ``*``, two axes always, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.errors import UnsupportedFunctionError

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


def times_arrays(a, v):
    M, K = np.matrix(a.tolist(), dtype=float), np.asmatrix(KNOWN, dtype=float)
    total = KNOWN * M + a * K + (v * M).T * v + V * M
    return np.asarray(total + np.matrix([[v[0], v[1], 1]], dtype=np.float64))


def powers(a, v):
    M = np.matrix(np.matrix(a))
    return np.asarray(M**2 - M**0 + M**-1 + np.linalg.inv(M).T) + np.asarray(np.asmatrix(M).I)


def seen_through(a, v):
    b = a * 1.0
    M, apart = np.asmatrix(b), np.matrix(b)
    b[0, 0] = v[1]
    return np.asarray(M * apart)


PROGRAMS = [a_filter, in_a_loop, known_ones, parts, times_arrays, powers, seen_through]


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("function", PROGRAMS)
def test_values_and_gradients(function, engine):
    found, wanted = ckad.jit(function, engine=engine)(A, V), function(A, V)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert np.shape(found) == np.shape(wanted)
    ckad.testing.check_grads(function, (A, V), order=1, engine=engine)


def written(a, v):
    M = np.matrix(a)
    M[0, 1] = v[0]
    return M[0, 0]


def changed(a, v):
    M = np.matrix(a)
    M += M
    return M[0, 0]


REFUSED = [
    *(written, changed, lambda a, v: (np.matrix(a) @ v).A),
    *(lambda a, v: np.multiply(np.matrix(a), a).A, lambda a, v: (2 ** np.matrix(a)).A),
    *(lambda a, v: (np.matrix(a) ** 0.5).A, lambda a, v: np.hstack([np.matrix(a), a]).A),
]


@pytest.mark.parametrize("function", REFUSED)
def test_what_is_refused(function):
    with pytest.raises(UnsupportedFunctionError, match=r"test_np_matrix\.py:\d+.*has no rule for"):
        ckad.jit(function)(A, V)
