"""Programs of loops over elements, as one writes them for Numba; ckad takes them as they are."""

from __future__ import annotations

import numpy as np


def jacobi2d(a, b, n_steps=20):
    """Two sweeps of a five-point mean per step (PolyBench)."""
    a, b = a.copy(), b.copy()
    n = a.shape[0]
    for _ in range(n_steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = 0.2 * (b[i, j] + b[i, j - 1] + b[i, j + 1] + b[i + 1, j] + b[i - 1, j])
    total = 0.0
    for i in range(n):
        for j in range(n):
            total += a[i, j] * a[i, j]
    return total


def seidel2d(a, n_steps=10):
    """Gauss-Seidel sweeps of a nine-point mean, each reading what it has just written."""
    a = a.copy()
    n = a.shape[0]
    for _ in range(n_steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                above = a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1]
                below = a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                a[i, j] = (above + a[i, j - 1] + a[i, j] + a[i, j + 1] + below) / 9.0
    total = 0.0
    for i in range(n):
        for j in range(n):
            total += a[i, j] * a[i, j]
    return total


def thomas(a, b, c, d):
    """A tridiagonal system: elimination, then substitution backwards."""
    n = d.shape[0]
    upper, right, x = np.zeros(n), np.zeros(n), np.zeros(n)
    upper[0] = c[0] / b[0]
    right[0] = d[0] / b[0]
    for i in range(1, n):
        pivot = b[i] - a[i] * upper[i - 1]
        upper[i] = c[i] / pivot
        right[i] = (d[i] - a[i] * right[i - 1]) / pivot
    x[n - 1] = right[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = right[i] - upper[i] * x[i + 1]
    total = 0.0
    for i in range(n):
        total += x[i] * x[i]
    return total


def lu(a):
    """LU decomposition in place, without pivots."""
    a = a.copy()
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    total = 0.0
    for i in range(n):
        for j in range(n):
            total += a[i, j] * a[i, j]
    return total


def n_body(x, v, n_steps=5, dt=0.01):
    """Attraction between all pairs of bodies, one component after the other."""
    x, v = x.copy(), v.copy()
    n = x.shape[0]
    for _ in range(n_steps):
        for i in range(n):
            ax, ay, az = 0.0, 0.0, 0.0
            for j in range(n):
                if i != j:
                    dx = x[j, 0] - x[i, 0]
                    dy = x[j, 1] - x[i, 1]
                    dz = x[j, 2] - x[i, 2]
                    r2 = dx * dx + dy * dy + dz * dz + 0.01
                    w = 1.0 / (r2 * np.sqrt(r2))
                    ax += w * dx
                    ay += w * dy
                    az += w * dz
            v[i, 0] += dt * ax
            v[i, 1] += dt * ay
            v[i, 2] += dt * az
        for i in range(n):
            for k in range(3):
                x[i, k] += dt * v[i, k]
    total = 0.0
    for i in range(n):
        for k in range(3):
            total += x[i, k] * x[i, k] + v[i, k] * v[i, k]
    return total
