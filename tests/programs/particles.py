"""Bodies, springs and molecules."""

import numba
import numpy as np

from .numerics import distance2, rk4


def nbody(mass, pos, vel, dt=0.01, steps=5, G=1.0, softening=0.1):
    """All pairs at once, kick-drift-kick."""

    def acceleration(pos):
        x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
        dx, dy, dz = x.T - x, y.T - y, z.T - z
        inv_r3 = dx**2 + dy**2 + dz**2 + softening**2
        inv_r3[inv_r3 > 0] = inv_r3[inv_r3 > 0] ** (-1.5)
        ax = G * (dx * inv_r3) @ mass
        ay = G * (dy * inv_r3) @ mass
        az = G * (dz * inv_r3) @ mass
        return np.hstack((ax, ay, az))

    acc = acceleration(pos)
    kinetic = np.zeros(steps)
    for i in range(steps):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = acceleration(pos)
        vel += acc * dt / 2.0
        kinetic[i] = 0.5 * np.sum(mass * vel**2)
    return kinetic


def nbody_loops(mass, pos, vel, dt=0.01, steps=3):
    n = mass.shape[0]
    acc = np.zeros((n, 3))
    for _ in range(steps):
        for i in range(n):
            for k in range(3):
                acc[i, k] = 0.0
            for j in range(n):
                if i == j:
                    continue
                dx = pos[j, 0] - pos[i, 0]
                dy = pos[j, 1] - pos[i, 1]
                dz = pos[j, 2] - pos[i, 2]
                r2 = dx * dx + dy * dy + dz * dz + 1e-2
                inv = mass[j] / (r2 * np.sqrt(r2))
                acc[i, 0] += inv * dx
                acc[i, 1] += inv * dy
                acc[i, 2] += inv * dz
        for i in range(n):
            for k in range(3):
                vel[i, k] += dt * acc[i, k]
                pos[i, k] += dt * vel[i, k]


def nbody_pairs(mass, x, y, vx, vy, dt=0.02, steps=4):
    """Each pair once, by Newton's third law."""
    n = len(mass)
    for _ in range(steps):
        for i in range(n - 1):
            for j in range(i + 1, n):
                dx = x[i] - x[j]
                dy = y[i] - y[j]
                magnitude = dt / (dx * dx + dy * dy + 0.05) ** 1.5
                vx[i] -= dx * mass[j] * magnitude
                vy[i] -= dy * mass[j] * magnitude
                vx[j] += dx * mass[i] * magnitude
                vy[j] += dy * mass[i] * magnitude
        x += dt * vx
        y += dt * vy
    return x, y, vx, vy


@numba.njit
def lennard_jones(x, y, cutoff=2.5):
    energy = 0.0
    n = x.size
    for i in range(n):
        for j in range(i):
            r2 = distance2(x[i], y[i], x[j], y[j])
            if r2 > cutoff * cutoff:
                continue
            s6 = 1.0 / r2**3
            energy += 4.0 * (s6 * s6 - s6)
    return energy


def velocity_verlet(q, p, stiffness, dt=0.1, steps=10):
    """A chain of springs with a cubic term, fixed at both ends."""

    def force(q):
        stretch = np.diff(q, prepend=0.0, append=0.0)
        tension = stiffness * stretch + 0.3 * stretch**3
        return tension[1:] - tension[:-1]

    f = force(q)
    for _ in range(steps):
        p = p + 0.5 * dt * f
        q = q + dt * p
        f = force(q)
        p = p + 0.5 * dt * f
    return q, p


def double_pendulum(state, lengths, dt=0.05, steps=12):
    def derivative(t, y):
        a, b, va, vb = y
        l1, l2 = lengths
        d = a - b
        den = 3 - np.cos(2 * d)
        aa = (
            -3 * 9.81 * np.sin(a)
            - 9.81 * np.sin(a - 2 * b)
            - 2 * np.sin(d) * (vb**2 * l2 + va**2 * l1 * np.cos(d))
        ) / (l1 * den)
        ab = (
            2
            * np.sin(d)
            * (2 * va**2 * l1 + 2 * 9.81 * np.cos(a) + vb**2 * l2 * np.cos(d))
            / (l2 * den)
        )
        return np.array([va, vb, aa, ab])

    t = 0.0
    y = state
    for _ in range(steps):
        y = rk4(derivative, t, y, dt)
        t += dt
    return y


def particles_in_cells(x, v, charge, cells=6, dt=0.1, steps=4):
    """Linear weights to the grid and back; positions wrap around."""
    for _ in range(steps):
        density = np.zeros(cells)
        left = np.floor(x).astype(int)
        weight = x - left
        np.add.at(density, left % cells, charge * (1 - weight))
        np.add.at(density, (left + 1) % cells, charge * weight)
        field = np.cumsum(density - density.mean())
        v = v + dt * ((1 - weight) * field[left % cells] + weight * field[(left + 1) % cells])
        x = np.mod(x + dt * v, cells)
    return x, v


def flock(position, velocity, dt=0.1, steps=3):
    n = position.shape[0]
    for _ in range(steps):
        new = velocity.copy()
        for i in range(n):
            delta = position - position[i]
            distance = np.sqrt((delta**2).sum(axis=1) + 1e-6)
            near = distance < 1.0
            new[i] += 0.1 * (velocity[near].mean(axis=0) - velocity[i]) if near.sum() > 1 else 0.0
            new[i] += 0.05 * np.sum(delta * np.exp(-distance)[:, None], axis=0)
        velocity = new
        position = position + dt * velocity
    return position
