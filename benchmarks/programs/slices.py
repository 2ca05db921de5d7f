"""Programs that read and write rows, slices and elements of arrays, in plain NumPy."""

from __future__ import annotations

import numpy as np


def trsv(a, b):
    """Forward substitution by slices of rows."""
    x = np.zeros_like(b)
    for i in range(b.shape[0]):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
    return np.sum(x * x)


def trsm(a, b):
    """Forward substitution with several right sides."""
    x = b.copy()
    for i in range(b.shape[0]):
        x[i] = (x[i] - a[i, :i] @ x[:i]) / a[i, i]
    return np.sum(x * x)


def trmm(a, b):
    """B becomes A^T B with a unit lower triangular A (PolyBench)."""
    b = b.copy()
    n = b.shape[0]
    for i in range(n):
        b[i] += a[i + 1 :, i] @ b[i + 1 :]
    return np.sum(b * b)


def cholesky(a):
    """By columns of the lower triangle."""
    a = a.copy()
    n = a.shape[0]
    for j in range(n):
        a[j, j] = np.sqrt(a[j, j] - a[j, :j] @ a[j, :j])
        a[j + 1 :, j] = (a[j + 1 :, j] - a[j + 1 :, :j] @ a[j, :j]) / a[j, j]
    return np.sum(np.tril(a) ** 2 * 0.1)


def cholesky2(a):
    """By rows, each element from two slices of rows (PolyBench)."""
    a = a.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] = (a[i, j] - a[i, :j] @ a[j, :j]) / a[j, j]
        a[i, i] = np.sqrt(a[i, i] - a[i, :i] @ a[i, :i])
    return np.sum(np.tril(a) ** 2 * 0.1)


def lu(a):
    """One outer product per pivot."""
    a = a.copy()
    for k in range(a.shape[0] - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.sum(a * a)


def durbin(r):
    """Yule-Walker equations by Durbin's recursion (PolyBench)."""
    n = r.shape[0]
    y = np.zeros_like(r)
    y[0] = alpha = -r[0]
    beta = 1.0
    for k in range(1, n):
        beta = (1.0 - alpha * alpha) * beta
        alpha = -(r[k] + r[:k][::-1] @ y[:k]) / beta
        y[:k] = y[:k] + alpha * y[:k][::-1]
        y[k] = alpha
    return np.sum(y * y)


def gram_schmidt(a):
    """Columns made orthonormal, one after the other (PolyBench)."""
    a = a.copy()
    n = a.shape[1]
    q, r = np.zeros_like(a), np.zeros((n, n))
    for k in range(n):
        r[k, k] = np.sqrt(a[:, k] @ a[:, k])
        q[:, k] = a[:, k] / r[k, k]
        r[k, k + 1 :] = q[:, k] @ a[:, k + 1 :]
        a[:, k + 1 :] -= np.outer(q[:, k], r[k, k + 1 :])
    return np.sum(q**4) + np.sum(r * r)


def covariance(x):
    """One row of the upper triangle after the other (PolyBench)."""
    n, m = x.shape
    x = x - np.mean(x, axis=0)
    c = np.zeros((m, m))
    for i in range(m):
        c[i, i:] = x[:, i] @ x[:, i:] / (n - 1.0)
        c[i:, i] = c[i, i:]
    return np.sum(c * c)


def correlation(x):
    """The same of columns of standard deviation one (PolyBench)."""
    n, m = x.shape
    x = (x - np.mean(x, axis=0)) / (np.sqrt(n) * np.std(x, axis=0))
    c = np.eye(m)
    for i in range(m - 1):
        c[i, i + 1 :] = x[:, i] @ x[:, i + 1 :]
        c[i + 1 :, i] = c[i, i + 1 :]
    return np.sum(c * c)


def syrk(a, c):
    """The lower triangle of C + A A^T, row by row (PolyBench)."""
    c = c.copy()
    for i in range(a.shape[0]):
        c[i, : i + 1] *= 0.5
        for k in range(a.shape[1]):
            c[i, : i + 1] += a[i, k] * a[: i + 1, k]
    return np.sum(c * c)


def lu_elements(a):
    """LU by loops over elements."""
    a = a.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[k, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            for k in range(i):
                a[i, j] -= a[i, k] * a[k, j]
    return np.sum(a * a)


def sor(u, f, omega=1.3, sweeps=10):
    """Successive over-relaxation in red-black order, by elements."""
    u = u.copy()
    n, m = u.shape
    for _ in range(sweeps):
        for colour in range(2):
            for i in range(1, n - 1):
                for j in range(1 + (i + colour) % 2, m - 1, 2):
                    residual = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]
                    u[i, j] += omega * 0.25 * (residual - f[i, j])
    return np.sum(u * u)
