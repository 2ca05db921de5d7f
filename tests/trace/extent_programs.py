"""Programs with slices whose length depends on a loop, written as for NumPy alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Program(NamedTuple):
    function: Callable[..., Any]
    args: tuple[np.ndarray, ...]


PROGRAMS: dict[str, Program] = {}
_rng = np.random.default_rng(7)
_N = 6
VECTOR = _rng.normal(size=_N)
OTHER = _rng.normal(size=_N)
MATRIX = _rng.normal(size=(_N, _N))
TALL = _rng.normal(size=(_N + 2, _N))
DEFINITE = MATRIX @ MATRIX.T + _N * np.eye(_N)
WEIGHTS = np.cos(np.arange(_N * _N)).reshape(_N, _N)


def program(*args: np.ndarray) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        PROGRAMS[function.__name__] = Program(function, args)
        return function

    return register


# --- linear algebra ----------------------------------------------------------------------------


@program(DEFINITE)
def cholesky_by_rows(A):
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[j, :j]
            A[i, j] /= A[j, j]
        A[i, i] = np.sqrt(A[i, i] - np.dot(A[i, :i], A[i, :i]))
    return np.sum(np.tril(A) * WEIGHTS)


@program(DEFINITE)
def cholesky_by_columns(A):
    n = len(A)
    for k in range(n):
        A[k, k] = np.sqrt(A[k, k])
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k + 1 :, k])
    return np.sum(np.tril(A) * WEIGHTS)


@program(DEFINITE)
def lu(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] = (A[i, j] - A[i, :j] @ A[:j, j]) / A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]
    return np.sum(A * WEIGHTS)


@program(DEFINITE, VECTOR)
def ludcmp(A, b):
    n = len(b)
    for k in range(n - 1):
        A[k + 1 :, k] = A[k + 1 :, k] / A[k, k]
        A[k + 1 :, k + 1 :] -= A[k + 1 :, k, None] * A[k, k + 1 :]
    y = np.zeros(n)
    for i in range(n):
        y[i] = b[i] - A[i, :i] @ y[:i]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - np.dot(A[i, i + 1 : n], x[i + 1 :])) / A[i, i]
    return np.sum(x * np.arange(n))


@program(DEFINITE, VECTOR)
def trisolv(L, b):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return np.sum(x**2)


@program(0.1 * VECTOR)
def durbin(r):
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * y[k - 1 :: -1]
        y[k] = alpha
    return np.sum(y * WEIGHTS[0])


@program(TALL)
def gramschmidt(A):
    n = A.shape[1]
    Q, R = np.zeros_like(A), np.zeros((n, n))
    for k in range(n):
        R[k, k] = np.sqrt(np.dot(A[:, k], A[:, k]))
        Q[:, k] = A[:, k] / R[k, k]
        R[k, k + 1 :] = Q[:, k] @ A[:, k + 1 :]
        A[:, k + 1 :] -= np.outer(Q[:, k], R[k, k + 1 :])
    return np.sum(R * WEIGHTS) + np.sum(Q[:n] * WEIGHTS)


@program(DEFINITE)
def householder(A):
    n = A.shape[0]
    for k in range(n - 1):
        v = A[k:, k].copy()
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        v /= np.linalg.norm(v)
        A[k:, k:] -= 2 * np.outer(v, v @ A[k:, k:])
    return np.sum(np.abs(np.diag(A)))


@program(DEFINITE, MATRIX)
def trmm(A, B):
    for i in range(B.shape[0]):
        B[i] += A[i + 1 :, i] @ B[i + 1 :]
    return np.sum(B**2)


@program(DEFINITE, MATRIX)
def symm(A, B):
    C = np.zeros_like(B)
    for i in range(A.shape[0]):
        C[:i] += np.outer(A[i, :i], B[i])
        C[i] += B[i] * A[i, i] + A[i, :i] @ B[:i]
    return np.sum(C**2)


@program(MATRIX)
def syrk(A):
    C = np.ones_like(A)
    for i in range(A.shape[0]):
        C[i, : i + 1] *= 0.5
        for k in range(A.shape[1]):
            C[i, : i + 1] += A[i, k] * A[: i + 1, k]
    return np.sum(C**2)


@program(TALL)
def covariance(X):
    n = X.shape[1]
    X -= np.mean(X, axis=0)
    C = np.zeros((n, n))
    for i in range(n):
        C[i:n, i] = C[i, i:n] = X[:, i] @ X[:, i:n] / (X.shape[0] - 1.0)
    return np.sum(C * WEIGHTS)


# --- sequences ---------------------------------------------------------------------------------


@program(VECTOR)
def windows(x):
    n, w, out = len(x), np.array([0.25, 0.5, 0.25]), np.zeros_like(x)
    for i in range(1, n - 2):
        out[i] += np.dot(w, x[i - 1 : i + 2]) + np.max(x[i - 1 : i + 3])
        out[i - 1 : i + 2] += x[i : i + 3] ** 2
    return np.sum(out**2)


@program(VECTOR)
def clipped_windows(x):
    n, out = len(x), np.zeros_like(x)
    for i in range(n):
        out[i] = np.mean(x[max(i - 2, 0) : i + 3]) + np.std(x[i : i + 4])
        out[i] += np.min(x[i:]) - np.max(x[: i + 1]) + np.prod(x[i : i + 3])
        out[i] += np.sum(x[-i - 1 :] ** 3) + np.sum(np.log(x[:i] ** 2 + 1e-3))
    return np.sum(out**2)


@program(VECTOR)
def shifts(x):
    n = len(x)
    for k in range(1, n):
        x[1:k] = x[: k - 1]  # source and target overlap
        x[k:] = x[k:][::-1]
        x[:k][0] = x[:k][-1] * 1.5
        v = x[k:]
        v *= 1.1
        x[: n - k] = np.sqrt(np.abs(x[k:])) + 0.1
    return np.sum(x * np.arange(n))


@program(VECTOR)
def scans(x):
    s = 0.0
    for k in range(1, len(x)):
        v = x[:k]
        for i, t in enumerate(v):
            s += i * t * t
        s += len(v) * max(v) + sum(v) - min(v) + v[-1] * v.shape[0]
        s += np.cumsum(v)[-1] + np.sum(np.diff(x[: k + 1]) ** 2) * np.argmax(v)
    return s


@program(VECTOR)
def through_helpers(x):
    def grow(a, k):
        a[:k] += a[k]
        return a[:k]

    s = 0.0
    for k in range(1, len(x)):
        s += np.sum(grow(x, k) ** 2)
        if x[k] > 0:
            x[k:] = x[: len(x) - k]
        elif np.sum(x[:k]) > 3:
            break
    return s + np.sum(x * np.arange(len(x)))


@program(VECTOR)
def length_from_data(x):
    k = 0
    for i in range(len(x)):
        if x[i] > 0:
            k += 1
    return np.sum(x[:k] ** 2) + np.max(x[:k]) + x[: np.argmax(x) + 1].sum() + x[np.argmin(x) :][0]


@program(VECTOR)
def window_in_while(x):
    i, s = 0, 0.0
    while i < len(x) and s < 50.0:
        s += x[i : i + 2].sum() ** 2 + np.mean(x[max(i - 1, 0) : i + 2])
        i += 1
    return s


@program(VECTOR)
def harmless_outside(x):
    """Functions that have no value, or no derivative, where zeros lie outside of the part."""
    s, y = 0.0, np.full(len(x), np.nan)
    for k in range(1, len(x)):
        y[:k] = x[:k] ** 2 + 0.1
        s += np.sum(np.log(y[:k]) + np.sqrt(y[:k]) + 1 / y[:k] + np.arccosh(1 + y[:k]))
        s += np.sum(np.arctan2(y[:k], x[:k]) + np.power(y[:k], y[:k]) + np.sqrt(y[:k] - 0.05))
    return s


@program(VECTOR)
def new_arrays(x):
    n, s = len(x), 0.0
    for k in range(1, n):
        z = np.zeros(k)
        z[:] = x[:k] * np.arange(k)
        z[0] = np.full(k, 0.5) @ z
        w = np.concatenate((x[k:], z, x[:1]))
        w = np.append(np.hstack((w, np.ones((k,)))), x[k])
        s += w @ np.arange(n - k, 2 * n + 2)[: len(w)] + np.sum(np.ones_like(z) * z**2)
        s += np.sum(np.stack((z, x[:k])) ** 3) + np.sum(np.vstack((z, z))[:, 0])
    return s


@program(VECTOR)
def in_order(x):
    s = 0.0
    for k in range(2, len(x) + 1):
        x[:k] = np.concatenate((x[k - 1 : k], x[: k - 1])) + 0.1 * np.sort(x[:k])
        s += np.roll(x[k - 2 :], 1)[0] * np.roll(x[:k], -k - 1)[1] + np.trapezoid(x[:k])
    return s + np.sum(x * np.arange(len(x)))


@program(VECTOR)
def chosen_parts(x):
    n, s = len(x), 0.0
    for i in range(1, n):
        v = x[:i] if x[i] > 0 else x[i:]
        s += np.sum(v**2) * v.shape[0]
        w = x[i:] * 1.5
        if x[i] > 0.2:
            w = w * 2
        elif i == 3:
            w = 3 * x
        s += np.max(w) + np.cumsum(w)[-1]
        u = x[i:].copy()
        while u[0] > 0.3:
            u *= 0.5
        s += u @ u
    return s + np.sum(w * w) + np.sum(x * np.arange(n))


# --- items of several axes ---------------------------------------------------------------------


@program(MATRIX, DEFINITE)
def items(A, B):
    n, s = len(A), 0.0
    for i in range(n):
        A[i, 2] = A[i, 1] * B[2, i]
        A[i, i] += s
        v = A[i, 1:3]
        v *= 2
        w = A[:, i]
        w += B[i]
        w[i] = 3.0 * A[i - 1, 0]
        row = A[i]
        row[i] *= 0.5
        s = s + A[i][i] + A[1, i, None].sum() + B[i, i - 2] * B[-1, i]
    return np.sum(A**2) + s


@program(np.arange(24.0).reshape(2, 3, 4) / 10)
def items_of_three_axes(A):
    s = 0.0
    for i in range(2):
        for j in range(3):
            A[i, j] += A[1 - i, j, ::-1]
            A[i, :, j] *= 1.1
            A[:, j, 2] -= 0.1 * A[i, j, 0]
            for k in range(1, 4):
                A[i, j, k] += A[i, j - 1, k - 1] * A[i - 1, j, k]
                s += A[i, 1:, k].sum() + A[1, j, k]
    return s


@program(MATRIX[:5, :5], VECTOR)
def items_of_views(A, x):
    n, s = len(A), 0.0
    u, B = x[1:-1], A[1:, ::-1]
    T = np.stack([A, A * 2, A * 3])[:, 1:, :-1]
    for i in range(1, n - 1):
        for j in range(n - 1):
            A[i][j] += B[i - 1, j] * u[i - 1]
            B[i - 1][j] *= 1.5
            T[1, i - 1, j] += T[i % 3][0][j] + T[:, 1, j][i % 2] + T[:, :, j][1, i - 1]
            s += T[i % 3, 0, 1:][j - 1] + A[:, j][i] + A[i, :][j] + B[0, j]
            T[0][i - 1][1 : j + 1] -= 0.1
            u[j % 2] -= 0.01 * A[1:, 1:][i - 1][j % 3]
    return s + np.sum(A**2) + np.sum(T) + x @ x


# --- formulas of NumPy -------------------------------------------------------------------------


@program(VECTOR, OTHER, MATRIX)
def statistics_of_parts(x, w, A):
    s = 0.0
    for k in range(2, 6):
        p, q, P = x[:k], np.abs(w[:k]) + 0.1, A[1:, :k]
        mean, total = np.average(p, weights=q, returned=True)
        s += mean * total + np.ptp(p) + np.sum(np.average(P, axis=1, weights=q))
        s += np.sum(np.average(A[:k, 1:], axis=0, weights=q)) + np.ptp(P, axis=1)[2]
        s += np.linalg.norm(p, 3) + np.linalg.norm(p, 0) + np.linalg.norm(P, 1)
        s += np.linalg.vector_norm(P) + np.linalg.matrix_norm(P)
        s += np.nansum(p) + np.nanprod(p) + np.nanmax(p) + np.sum(np.nanmin(P, axis=1))
        s += np.nancumsum(q)[-1] + p[np.nanargmax(p)]
    return s


@program(VECTOR, OTHER, MATRIX)
def differences_of_parts(x, w, A):
    s = 0.0
    for k in range(3, 6):
        p, P = x[:k], A[:, :k]
        s += np.sum(np.diff(p, prepend=0.0, append=w[:2]) ** 2) + np.sum(np.trapezoid(P) * w)
        s += np.trapezoid(P, axis=0) @ w[:k] + np.sum(np.rot90(P) ** 2 * w)
        s += np.sum(np.atleast_1d(p) * np.hstack([w[0], x[1:k]])) + np.sum(np.fliplr(P) * P)
    return s


@program(VECTOR, OTHER, MATRIX)
def joins_of_parts(x, w, A):
    s = 0.0
    for k in range(2, 6):
        p, P = x[:k], A[:, :k]
        s += np.sum(np.vstack([p, P, w[-k:] * p]) ** 2 @ p)
        s += np.sum(np.concatenate([P, p[None], A[:2, 1 : k + 1]]) ** 2 @ w[:k])
        s += np.sum(np.dstack([P, 2 * P]) ** 2) + np.sum(np.atleast_3d(p) * w)
    return s


@program(VECTOR, OTHER, MATRIX)
def looked_up_in_tables(x, w, A):
    s = 0.0
    for k in range(2, 6):
        p, P = x[:k], A[:, :k]
        s += np.sum(np.interp(P, [-1.0, 0.0, 1.0], w[:3])) + np.sum(np.polyval(w[:3], p))
        s += np.sum(np.digitize(p, [-0.5, 0.5]) * p) + np.sum(np.sinc(p)) + np.unwrap(5 * p)[k - 1]
        s += np.searchsorted([-0.5, 0.5], p, side="right") @ p - np.sum(np.isposinf(p) * p)
    return s


@program(VECTOR, OTHER, MATRIX)
def axes_of_parts(x, w, A):
    s = 0.0
    for k in range(2, 6):
        p, P = x[:k], A[:, :k]
        s += np.sum(np.moveaxis(P, 0, 1) @ w * p) + np.sum(np.rollaxis(P, 1) @ x)
        s += np.sum(np.matrix_transpose(P) * P.mT) + np.sum(np.linalg.outer(p, w) ** 2)
        s += np.sum(np.linalg.matmul(P, p))
    return s


@program(VECTOR, OTHER, MATRIX)
def each_second_place(x, w, A):
    s = 0.0
    for k in range(1, 6):
        x[1:k:2] *= w[k]
        A[:k:2, 1::2] -= w[1::2]
        y = w[:k:3]
        y += 0.5 * x[k]
        s += np.sum(x[:k:2] ** 2) + np.sum(A[k::-1, :k:3]) + len(w[5:k:4]) * x[0]
        s += np.mean(A[:, :k][::2, ::2]) * np.sum(w[: k + 1 : 1 + k // 8])
    return s


# --- beside index arrays and masks ---------------------------------------------------------------


@program(VECTOR, OTHER, MATRIX)
def rows_beside_slices(x, w, A):
    s, B = 0.0, np.stack([A, 2 * A])
    for k in range(1, 5):
        A[[0, 2], k:] *= w[0]
        A[k - 1 :, np.array([1, 1])] += 0.1
        A[np.arange(len(A)) % 2 == 0, :k] = x[:k]
        B[:, np.array([[0, 1], [2, 0]]), k:] += w[1]
        s += np.sum(A[:k, [3, 0]] ** 2) + np.sum(B[1, :, :k] * B[0, :, :k])
    return s + np.sum(A**2)


@program(VECTOR, OTHER, MATRIX)
def masks_beside_slices(x, w, A):
    B = np.stack([A, 2 * A])
    for k in range(1, 5):
        A[A[:, k] > 0, k:] = 0.5 * w[0]
        A[A[:, 0] < 0, :k] = x[:k] * w[1]
        A[A[:, 1] > 0, k:] = A[:1, k:]
        B[:, x > 0, k:] = w[2]
    return np.sum(A**2) + np.sum(B**2)
