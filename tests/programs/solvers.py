"""Linear and nonlinear systems, roots, eigenvalues: direct sweeps and iterations that stop."""

import numpy as np

from .numerics import tridiagonal


def thomas(a, b, c, d):
    """In place: the upper diagonal and the right-hand side are overwritten."""
    n = len(d)
    c[0] = c[0] / b[0]
    d[0] = d[0] / b[0]
    for i in range(1, n):
        m = 1.0 / (b[i] - a[i] * c[i - 1])
        c[i] = c[i] * m
        d[i] = (d[i] - a[i] * d[i - 1]) * m
    for i in reversed(range(n - 1)):
        d[i] = d[i] - c[i] * d[i + 1]


def crank_nicolson(u, kappa, dt=0.02, steps=5):
    n = u.size
    dx = 1.0 / (n - 1)
    r = kappa * dt / (2 * dx**2)
    lower = np.zeros(n)
    upper = np.zeros(n)
    diagonal = np.ones(n)
    lower[1:-1] = -r
    upper[1:-1] = -r
    diagonal[1:-1] = 1 + 2 * r
    for _ in range(steps):
        right = u.copy()
        right[1:-1] += r * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = tridiagonal(lower, diagonal, upper, right)
    return u


def gauss_seidel(A, b, sweeps=6):
    n = len(b)
    x = np.zeros(n)
    for _ in range(sweeps):
        for i in range(n):
            s = b[i]
            for j in range(n):
                if j != i:
                    s -= A[i, j] * x[j]
            x[i] = s / A[i, i]
    return x


def gauss_seidel_until(A, b, tolerance=1e-13, limit=500):
    x = np.zeros_like(b)
    for _ in range(limit):
        old = x.copy()
        for i in range(b.size):
            x[i] = (b[i] - A[i, :i] @ x[:i] - A[i, i + 1 :] @ old[i + 1 :]) / A[i, i]
        if np.max(np.abs(x - old)) < tolerance:
            break
    else:
        raise RuntimeError(f"not converged in {limit} sweeps")
    return x


def jacobi_until(A, b, tolerance=1e-13):
    diagonal = np.diag(A)
    rest = A - np.diag(diagonal)
    x = np.zeros(len(b))
    error = 1.0
    count = 0
    while error > tolerance:
        new = (b - rest @ x) / diagonal
        error = np.linalg.norm(new - x)
        x = new
        count += 1
    return x


def conjugate_gradient(B, b, tolerance=1e-26):
    """Of the normal equations, so that the matrix stays symmetric."""
    A = B.T @ B + np.eye(B.shape[1])
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    for _ in range(2 * len(b)):
        Ap = A @ p
        alpha = rs / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        new = r @ r
        if new < tolerance:
            break
        p = r + (new / rs) * p
        rs = new
    return x


def newton_sqrt(a):
    x = a
    while abs(x * x - a) > 1e-13 * a:
        x = 0.5 * (x + a / x)
    return x


def newton_with_limit(a, b):
    x = 1.0
    iterations = 0
    while True:
        fx = x**3 + a * x - b
        step = fx / (3 * x**2 + a)
        x -= step
        iterations += 1
        if abs(step) < 1e-12 or iterations >= 50:
            break
    return x


def newton_2x2(p, q):
    x, y = 1.0, 1.0
    for _ in range(20):
        f = x * x + p * y - 3.0
        g = x * y + q * y * y - 2.0
        a, b, c, d = 2 * x, p, y, x + 2 * q * y
        det = a * d - b * c
        dx, dy = (d * f - b * g) / det, (a * g - c * f) / det
        x, y = x - dx, y - dy
        if dx * dx + dy * dy < 1e-28:
            return x, y
    return x, y


def kepler(mean_anomaly, eccentricity):
    """Each anomaly until it has converged."""
    E = np.empty_like(mean_anomaly)
    for i, M in enumerate(mean_anomaly):
        guess = M + eccentricity * np.sin(M)
        delta = 1.0
        while abs(delta) > 1e-12:
            delta = (guess - eccentricity * np.sin(guess) - M) / (1 - eccentricity * np.cos(guess))
            guess -= delta
        E[i] = guess
    return E


def bisection(target, rate):
    """The last step is a Newton step, so that the derivative is that of the root."""

    def f(x):
        return x + np.exp(rate * x) - target

    low, high = -10.0, 10.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        if f(middle) > 0:
            high = middle
        else:
            low = middle
    x = 0.5 * (low + high)
    return x - f(x) / (1 + rate * np.exp(rate * x))


def interpolate_by_search(table, values, x):
    """Binary search in a table that grows, then linear interpolation."""
    low, high = 0, len(table) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if table[middle] <= x:
            low = middle
        else:
            high = middle
    weight = (x - table[low]) / (table[high] - table[low])
    return (1 - weight) * values[low] + weight * values[high]


def secant(a, c):
    x0, x1 = 1.0, 2.0
    f0 = np.exp(a * x0) - c
    while np.abs(x1 - x0) > 1e-11:
        f1 = np.exp(a * x1) - c
        x0, x1, f0 = x1, x1 - f1 * (x1 - x0) / (f1 - f0), f1
    return x1


def power_iteration(A, iterations=15):
    x = np.ones(A.shape[0])
    for _ in range(iterations):
        x = A @ x
        x /= np.linalg.norm(x)
    return x @ A @ x


def gradient_descent(x, y, rate=0.1, steps=30):
    w = b = 0.0
    n = len(x)
    for _ in range(steps):
        residual = w * x + b - y
        w, b = w - rate * 2 / n * np.sum(residual * x), b - rate * 2 / n * residual.sum()
    return w, b


def momentum_descent(A, b, steps=20):
    x = np.zeros(b.shape)
    velocity = np.zeros(b.shape)
    history = []
    for _ in range(steps):
        g = A.T @ (A @ x - b)
        velocity = 0.8 * velocity - 0.05 * g
        x = x + velocity
        history.append(0.5 * np.sum((A @ x - b) ** 2))
    return x, np.array(history)


def two_grid(f, sweeps=2, cycles=2):
    """Damped Jacobi, a coarse correction by strided slices, and again."""

    def smooth(u, f, h):
        for _ in range(sweeps):
            u[1:-1] += 2 / 3 * (0.5 * (u[2:] + u[:-2] + h * h * f[1:-1]) - u[1:-1])
        return u

    n = f.size
    h = 1.0 / (n - 1)
    u = np.zeros(n)
    for _ in range(cycles):
        u = smooth(u, f, h)
        r = np.zeros(n)
        r[1:-1] = f[1:-1] + (u[2:] - 2 * u[1:-1] + u[:-2]) / h**2
        coarse = r[::2].copy()
        coarse[1:-1] = 0.25 * (r[1:-2:2] + 2 * r[2:-1:2] + r[3::2])
        e = np.zeros(coarse.size)
        for _ in range(20):
            e = smooth(e, coarse, 2 * h)
        u[::2] += e
        u[1::2] += 0.5 * (e[1:] + e[:-1])
        u = smooth(u, f, h)
    return u


def fixed_point(x, limit=200):
    """Returns early from inside the loop."""
    y = 1.0
    for _ in range(limit):
        new = np.cos(x * y)
        if abs(new - y) < 1e-13:
            return new
        y = new
    return y
