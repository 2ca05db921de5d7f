"""What several of the programs import, as a user's own module of helpers."""

import numba
import numpy as np

GRAVITY = 9.81


def minmod(a, b):
    if a * b <= 0.0:
        return 0.0
    if abs(a) < abs(b):
        return a
    return b


def tridiagonal(lower, diagonal, upper, right):
    """Thomas algorithm; the arguments stay as they are."""
    n = len(diagonal)
    c = np.empty(n)
    d = np.empty(n)
    c[0] = upper[0] / diagonal[0]
    d[0] = right[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - lower[i] * c[i - 1]
        c[i] = upper[i] / pivot
        d[i] = (right[i] - lower[i] * d[i - 1]) / pivot
    x = np.empty(n)
    x[-1] = d[-1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return x


def rk4(f, t, y, dt):
    k1 = f(t, y)
    k2 = f(t + dt / 2, y + dt / 2 * k1)
    k3 = f(t + dt / 2, y + dt / 2 * k2)
    k4 = f(t + dt, y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def softmax(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


@numba.njit
def distance2(xi, yi, xj, yj):
    dx = xi - xj
    dy = yi - yj
    return dx * dx + dy * dy


@numba.njit
def laplacian(u, i, j):
    return u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4.0 * u[i, j]
