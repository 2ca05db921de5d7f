"""Iterated maps; some points leave."""

import numpy as np


def logistic(r, x, n=12):
    """Stops early if the orbit is lost."""
    if r < 0.0:
        return x
    for i in range(n):
        x = r * x * (1.0 - x)
        if x < 1e-6:
            return x + i
    return x


def lyapunov(r, x=0.3, n=40):
    total = 0.0
    for _ in range(n):
        x = r * x * (1 - x)
        total += np.log(np.abs(r * (1 - 2 * x)))
    return total / n


def mandelbrot(cx, cy, limit=12):
    """Masks: points that escaped stay where they are."""
    zx = np.zeros_like(cx)
    zy = np.zeros_like(cy)
    count = np.zeros(cx.shape, dtype=np.int64)
    for _ in range(limit):
        inside = zx * zx + zy * zy < 4.0
        new_x = zx * zx - zy * zy + cx
        new_y = 2 * zx * zy + cy
        zx[inside] = new_x[inside]
        zy[inside] = new_y[inside]
        count[inside] += 1
    return count + 1 - np.log(np.log(zx**2 + zy**2 + 2.0))


def escape_time(cx, cy, limit=30):
    """One point after the other, each as long as it takes."""
    out = np.zeros(len(cx))
    for p in range(len(cx)):
        x = y = 0.0
        n = 0
        while x * x + y * y <= 16.0 and n < limit:
            x, y = x * x - y * y + cx[p], 2 * x * y + cy[p]
            n += 1
        out[p] = n if n == limit else n + 1 - np.log(np.log(x * x + y * y))
    return out


def henon(start, a, b, n=8):
    x, y = start
    orbit = []
    for _ in range(n):
        x, y = 1 - a * x**2 + y, b * x
        orbit.append((x, y))
    return np.array(orbit)


def tent(x, mu, n=12):
    for _ in range(n):
        x = mu * x if x < 0.5 else mu * (1 - x)
    return x


def ikeda(x, y, u, n=6):
    for _ in range(n):
        t = 0.4 - 6 / (1 + x**2 + y**2)
        x, y = 1 + u * (x * np.cos(t) - y * np.sin(t)), u * (x * np.sin(t) + y * np.cos(t))
    return x, y


def lorenz(state, sigma=10.0, rho=28.0, beta=8 / 3, dt=0.01, steps=40):
    x, y, z = state[0], state[1], state[2]
    for _ in range(steps):
        dx = sigma * (y - x)
        dy = x * (rho - z) - y
        dz = x * y - beta * z
        x += dx * dt
        y += dy * dt
        z += dz * dt
    return np.array([x, y, z])


def arithmetic_geometric_mean(a, b):
    while abs(a - b) > 1e-14 * a:
        a, b = (a + b) / 2, np.sqrt(a * b)
    return np.pi / (2 * a)


def collatz_weights(w, start=7):
    """The path is of integers, known beforehand; the weights are what is differentiated."""
    n = start
    total = 0.0
    while n != 1:
        if n % 2 == 0:
            n //= 2
            total = total * w[0] + 1
        else:
            n = 3 * n + 1
            total = total + w[1] * n
    return total
