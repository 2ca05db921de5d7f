"""Leapfrog in time: three levels, staggered fields, receivers."""

import numpy as np

from .numerics import GRAVITY


def wave_1d(u, c, dt=0.5, steps=20):
    previous = u.copy()
    current = u.copy()
    following = np.zeros_like(u)
    for _ in range(steps):
        following[1:-1] = (
            2 * current[1:-1]
            - previous[1:-1]
            + (c[1:-1] * dt) ** 2 * (current[2:] - 2 * current[1:-1] + current[:-2])
        )
        previous, current, following = current, following, previous
    return current


def wave_2d_loops(c, source, steps=6):
    n, m = c.shape
    u0 = np.zeros((n, m))
    u1 = np.zeros((n, m))
    u2 = np.zeros((n, m))
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                lap = u1[i + 1, j] + u1[i - 1, j] + u1[i, j + 1] + u1[i, j - 1] - 4.0 * u1[i, j]
                u2[i, j] = 2.0 * u1[i, j] - u0[i, j] + 0.2 * c[i, j] ** 2 * lap
        u2[n // 2, m // 2] += source[t]
        u0, u1, u2 = u1, u2, u0
    return u1


def seismogram(velocity, wavelet, receivers=(1, 5), dt=0.4):
    """Records what receivers see; levels are rows of one array, chosen by the step's remainder."""
    nt = wavelet.shape[0]
    levels = np.zeros((3, velocity.size))
    trace = np.zeros((nt, len(receivers)))
    for it in range(nt):
        old, now, new = levels[(it - 1) % 3], levels[it % 3], levels[(it + 1) % 3]
        lap = np.zeros(velocity.size)
        lap[1:-1] = now[2:] - 2 * now[1:-1] + now[:-2]
        new[:] = 2 * now - old + (velocity * dt) ** 2 * lap
        new[3] += wavelet[it] * dt**2
        for r, place in enumerate(receivers):
            trace[it, r] = new[place]
    return trace


def shallow_water(h, u, dx=1.0, dt=0.05, steps=12):
    """Staggered; buffers change their names every step."""
    hn = np.empty_like(h)
    un = np.empty_like(u)
    for _ in range(steps):
        un[1:-1] = u[1:-1] - dt / dx * (
            GRAVITY * (h[1:] - h[:-1]) + 0.5 * u[1:-1] * (u[2:] - u[:-2])
        )
        un[0] = un[-1] = 0.0
        edges = un[1:-1] * 0.5 * (h[1:] + h[:-1])
        flux = np.concatenate(([0.0], edges, [0.0]))
        hn[:] = h - dt / dx * (flux[1:] - flux[:-1])
        h, hn = hn, h
        u, un = un, u
    return h, u


def shallow_water_2d(h, u, v, dt=0.05, steps=5):
    for n in range(steps):
        u[1:-1, :] -= dt * (h[1:, :] - h[:-1, :])
        v[:, 1:-1] -= dt * (h[:, 1:] - h[:, :-1])
        u[0, :] = u[-1, :] = 0
        v[:, 0] = v[:, -1] = 0
        h -= dt * (1 + 0.1 * n) * (np.diff(u, axis=0) + np.diff(v, axis=1))


def maxwell_1d(permittivity, steps=12):
    n = permittivity.size
    ez = np.zeros(n)
    hy = np.zeros(n - 1)
    for step in range(steps):
        hy[:] = hy + 0.5 * (ez[1:] - ez[:-1])
        ez[1:-1] = ez[1:-1] + 0.5 / permittivity[1:-1] * (hy[1:] - hy[:-1])
        ez[0] = ez[1]
        ez[n // 2] += np.exp(-((step - 6.0) ** 2) / 8.0)
    return ez


def korteweg_de_vries(u, dt=0.002, dx=0.2, steps=8):
    n = len(u)
    old = u.copy()
    k = np.arange(n)
    left, right = (k - 1) % n, (k + 1) % n
    left2, right2 = (k - 2) % n, (k + 2) % n
    for step in range(steps):
        mean = (u[right] + u[k] + u[left]) / 3
        advection = 6 * mean * (u[right] - u[left]) / (2 * dx)
        dispersion = (u[right2] - 2 * u[right] + 2 * u[left] - u[left2]) / (2 * dx**3)
        if step == 0:
            new = u - dt * (advection + dispersion)
        else:
            new = old - 2 * dt * (advection + dispersion)
        old, u = u, new
    return u
