"""Particles: stars, molecules, plasma, flocks, rain, cloth, with the containers that hold them."""

import copy
import random
from collections import namedtuple
from dataclasses import dataclass, field

import matplotlib.pyplot as plt
import numpy as np

from .program import Wild


# Stars -------------------------------------------------------------------------------------------
def getAcc(pos, mass, G, softening):
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inv_r3 = dx**2 + dy**2 + dz**2 + softening**2
    inv_r3[inv_r3 > 0] = inv_r3[inv_r3 > 0] ** (-1.5)
    ax = G * (dx * inv_r3) @ mass
    ay = G * (dy * inv_r3) @ mass
    az = G * (dz * inv_r3) @ mass
    return np.hstack((ax, ay, az))


def getEnergy(pos, vel, mass, G):
    KE = 0.5 * np.sum(np.sum(mass * vel**2))
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inv_r = np.sqrt(dx**2 + dy**2 + dz**2)
    inv_r[inv_r > 0] = 1.0 / inv_r[inv_r > 0]
    PE = G * np.sum(np.sum(np.triu(-(mass * mass.T) * inv_r, 1)))
    return KE, PE


def nbody(softening, G, N, Nt):
    """Leapfrog; positions and energies of all steps are kept for the figure at the end."""
    t, dt = 0, 0.01
    np.random.seed(17)
    mass = 20.0 * np.ones((N, 1)) / N
    pos = np.random.randn(N, 3)
    vel = np.random.randn(N, 3)
    vel -= np.mean(mass * vel, 0) / np.mean(mass)
    acc = getAcc(pos, mass, G, softening)
    KE, PE = getEnergy(pos, vel, mass, G)
    pos_save = np.zeros((N, 3, Nt + 1))
    pos_save[:, :, 0] = pos
    KE_save = np.zeros(Nt + 1)
    KE_save[0] = KE
    PE_save = np.zeros(Nt + 1)
    PE_save[0] = PE
    for i in range(Nt):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = getAcc(pos, mass, G, softening)
        vel += acc * dt / 2.0
        t += dt
        KE, PE = getEnergy(pos, vel, mass, G)
        pos_save[:, :, i + 1] = pos
        KE_save[i + 1] = KE
        PE_save[i + 1] = PE
    fig = plt.figure(figsize=(4, 5), dpi=80)
    plt.scatter(pos[:, 0], pos[:, 1], s=10, color="blue")
    plt.close(fig)
    return np.mean(np.linalg.norm(pos_save, axis=1)) + np.max(KE_save)


# Molecules in lists ------------------------------------------------------------------------------
def lennard_jones_lists(epsilon, sigma, n, steps):
    """Positions, velocities and forces are lists of lists, as beginners write them."""
    random.seed(3)
    box, dt, m = 1.6 * n, 0.004, 1.0
    positions = [[1.5 * (i % n), 1.5 * (i // n)] for i in range(n * n)]
    velocities = [[random.uniform(-0.5, 0.5), random.uniform(-0.5, 0.5)] for _ in positions]

    def compute_forces(positions):
        forces = [[0.0, 0.0] for _ in positions]
        energy = 0.0
        for i in range(len(positions)):
            for j in range(i + 1, len(positions)):
                dx = positions[i][0] - positions[j][0]
                dy = positions[i][1] - positions[j][1]
                dx -= box * round(dx / box)
                dy -= box * round(dy / box)
                r2 = dx * dx + dy * dy
                if r2 < 9.0:
                    sr6 = (sigma * sigma / r2) ** 3
                    energy += 4 * epsilon * (sr6 * sr6 - sr6)
                    f = 24 * epsilon * (2 * sr6 * sr6 - sr6) / r2
                    forces[i][0] += f * dx
                    forces[i][1] += f * dy
                    forces[j][0] -= f * dx
                    forces[j][1] -= f * dy
        return forces, energy

    forces, energy = compute_forces(positions)
    energies = [energy]
    for step in range(steps):
        for p, v, f in zip(positions, velocities, forces):
            for d in range(2):
                v[d] += 0.5 * dt * f[d] / m
                p[d] += dt * v[d]
        forces, energy = compute_forces(positions)
        for v, f in zip(velocities, forces):
            for d in range(2):
                v[d] += 0.5 * dt * f[d] / m
        energies.append(energy)
        if len(energies) > 10:
            energies.pop(0)
    return energies[-1] + sum(v[0] ** 2 + v[1] ** 2 for v in velocities)


def argon_cells(epsilon, temperature, N, steps):
    """Arrays, a cut-off by boolean indices, and a thermostat that reads the last item of a list."""
    rng = np.random.default_rng(7)
    L = 1.2 * N ** (1 / 3)
    side = int(np.ceil(N ** (1 / 3)))
    lattice = np.array([[i, j, k] for i in range(side) for j in range(side) for k in range(side)])
    r = lattice[:N] * (L / side) + 0.05 * rng.standard_normal((N, 3))
    v = rng.standard_normal((N, 3))
    dt = 0.002
    T_history = [np.sum(v**2) / (3 * N)]
    for step in range(steps):
        d = r[:, None, :] - r[None, :, :]
        d -= L * np.round(d / L)
        r2 = np.sum(d**2, axis=-1) + np.eye(N)
        inv6 = 1.0 / r2**3
        near = r2 < 2.5**2
        magnitude = 24 * epsilon * (2 * inv6**2 - inv6) / r2
        magnitude[~near] = 0.0
        np.fill_diagonal(magnitude, 0.0)
        v += dt * np.sum(np.clip(magnitude, -1e3, 1e3)[:, :, None] * d, axis=1)
        r = (r + dt * v) % L
        if T_history[-1] > 0:
            v *= np.sqrt(1 + dt / 0.1 * (temperature / T_history[-1] - 1))
        T_history.append(np.sum(v**2) / (3 * N))
    return np.mean(T_history[-3:]) + np.mean(r)


# Plasma ------------------------------------------------------------------------------------------
def pic_acc(pos, Nx, boxsize, n0, Gmtx, Lmtx):
    N = pos.shape[0]
    dx = boxsize / Nx
    j = np.floor(pos / dx).astype(int)
    jp1 = j + 1
    weight_j = (jp1 * dx - pos) / dx
    weight_jp1 = (pos - j * dx) / dx
    jp1 = np.mod(jp1, Nx)
    n = np.bincount(j[:, 0], weights=weight_j[:, 0], minlength=Nx)
    n += np.bincount(jp1[:, 0], weights=weight_jp1[:, 0], minlength=Nx)
    n *= n0 * boxsize / N / dx
    phi_grid = np.linalg.solve(Lmtx, n - n0)
    E_grid = -Gmtx @ phi_grid
    E = weight_j * E_grid[j] + weight_jp1 * E_grid[jp1]
    return -E


def particle_in_cell(beam, thermal, N, Nt):
    Nx, boxsize, n0, dt, t = N // 8, 50, 1, 1, 0
    np.random.seed(42)
    pos = np.random.rand(N, 1) * boxsize
    vel = thermal * np.random.randn(N, 1) + beam
    vel[N // 2 :] *= -1
    vel *= 1 + 0.1 * np.sin(2 * np.pi * pos / boxsize)
    dx = boxsize / Nx
    e = np.ones(Nx)
    Gmtx = (np.diag(e[:-1], 1) - np.diag(e[:-1], -1)) / (2 * dx)
    Gmtx[0, Nx - 1] = -1 / (2 * dx)
    Gmtx[Nx - 1, 0] = 1 / (2 * dx)
    Lmtx = (np.diag(e[:-1], -1) - 2 * np.diag(e) + np.diag(e[:-1], 1)) / dx**2
    Lmtx[0, Nx - 1] = Lmtx[Nx - 1, 0] = 0.9 / dx**2
    acc = pic_acc(pos, Nx, boxsize, n0, Gmtx, Lmtx)
    for i in range(Nt):
        vel += acc * dt / 20.0
        pos += vel * dt / 10
        pos = np.mod(pos, boxsize)
        acc = pic_acc(pos, Nx, boxsize, n0, Gmtx, Lmtx)
        vel += acc * dt / 20.0
        t += dt
    return np.mean(vel**2)


Particle = namedtuple("Particle", ["x", "v"])


def boris_mover(charge, field, steps):
    """A charge in crossed fields: named tuples replaced step by step, a list as its trajectory."""
    B0 = np.array([0.0, 0.0, 1.0])
    E = np.array([0.1, 0.02, 0.0])
    dt = 0.05
    p = Particle(x=np.zeros(3), v=np.array([1.0, 0.0, 0.2]))
    trajectory = [p.x]
    for _ in range(steps):
        B = field * B0 * (1 + 0.1 * p.x[0])
        t = charge * B * 0.5 * dt
        s = 2 * t / (1 + np.dot(t, t))
        v_minus = p.v + charge * E * 0.5 * dt
        v_prime = v_minus + np.cross(v_minus, t)
        v_plus = v_minus + np.cross(v_prime, s)
        v = v_plus + charge * E * 0.5 * dt
        p = p._replace(x=p.x + v * dt, v=v)
        trajectory.append(p.x)
    trajectory = np.array(trajectory)
    return np.sum(trajectory[-1] ** 2) + np.mean(np.linalg.norm(trajectory, axis=1))


# Flocks, rain, cloth -----------------------------------------------------------------------------
class Flock:
    def __init__(self, count, width, alignment, cohesion, rng):
        angle = rng.uniform(0, 2 * np.pi, count)
        self.velocity = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        self.position = width * rng.uniform(0, 1, (count, 2))
        self.width, self.alignment, self.cohesion = width, alignment, cohesion

    @property
    def speed(self):
        return np.sqrt((self.velocity**2).sum(axis=1))

    def run(self):
        position, velocity = self.position, self.velocity
        dx = np.subtract.outer(position[:, 0], position[:, 0])
        dy = np.subtract.outer(position[:, 1], position[:, 1])
        distance = np.hypot(dx, dy)
        near = (distance > 0) * (distance < 2.5)
        count = np.maximum(near.sum(axis=1), 1).reshape(-1, 1)
        target = np.dot(near, velocity) / count
        steer = self.alignment * (target - velocity)
        center = np.dot(near, position) / count
        lonely = near.sum(axis=1) == 0
        center[lonely] = position[lonely]
        steer += self.cohesion * (center - position)
        self.velocity = velocity + 0.05 * steer
        norm = self.speed.reshape(-1, 1)
        self.velocity *= np.where(norm > 2.0, 2.0 / norm, 1.0)
        self.position += 0.05 * self.velocity
        self.position %= self.width


def boids(alignment, cohesion, n, steps):
    flock = Flock(n, 10.0, alignment, cohesion, np.random.default_rng(1))
    for frame in range(steps):
        flock.run()
    return np.sum(np.mean(flock.velocity, axis=0) ** 2) + np.mean(flock.position**2)


def rain(growth, fade, n, steps):
    """Drops as rows of a structured array; one of them starts anew at each frame."""
    np.random.seed(19680801)
    drops = np.zeros(n, dtype=[("position", float, (2,)), ("size", float), ("grey", float)])
    drops["position"] = np.random.uniform(0, 1, (n, 2))
    drops["size"] = np.random.uniform(0.5, 1.0, n)
    ink = 0.0
    for frame in range(steps):
        current = frame % n
        drops["grey"] *= fade
        drops["size"] += growth * (1 + drops["position"][:, 0])
        drops["position"][current] = np.random.uniform(0, 1, 2)
        drops["size"][current] = 0.5
        drops["grey"][current] = 1.0
        ink += np.sum(drops["grey"] * drops["size"])
    return ink / n


@dataclass
class Node:
    position: np.ndarray
    previous: np.ndarray
    fixed: bool = False
    neighbours: list = field(default_factory=list)


def hanging_rope(gravity, stiffness, n, steps):
    """Verlet with constraints, relaxed one after the other; a copy is kept for the print."""
    rope = [Node(np.array([0.1 * k, 0.0]), np.array([0.1 * k, 0.0])) for k in range(n)]
    rope[0].fixed = True
    for a, b in zip(rope[:-1], rope[1:]):
        a.neighbours.append(b)
    g = np.array([0.0, -gravity])
    for step in range(steps):
        snapshot = copy.deepcopy(rope)
        for node in rope:
            if not node.fixed:
                node.position, node.previous = (
                    node.position + 0.99 * (node.position - node.previous) + g * 0.01**2,
                    node.position,
                )
        for _ in range(4):
            for node in rope:
                for other in node.neighbours:
                    delta = other.position - node.position
                    length = np.sqrt(delta @ delta)
                    push = stiffness * 0.5 * (length - 0.1) / length * delta
                    if not node.fixed:
                        node.position = node.position + push
                    other.position = other.position - push
    moved = sum(np.abs(a.position - b.position).sum() for a, b in zip(rope, snapshot))
    return rope[-1].position[1] + moved


def langevin(friction, temperature, n, steps):
    """Noise drawn at every step from the generator of the module."""
    np.random.seed(0)
    dt = 0.01
    x = np.random.rand(n) - 0.5
    v = np.zeros(n)
    msd = []
    for i in range(steps):
        force = x - x**3
        v = (
            v
            + dt * (force - friction * v)
            + np.sqrt(2 * friction * temperature * dt) * (np.random.randn(n))
        )
        x = x + dt * v
        if i % 10 == 0:
            msd.append(np.mean(x**2))
    return np.mean(msd)


PARTICLES = (
    Wild(nbody, lambda n, nt: (0.1, 1.0, n, nt), (4, 3), (60, 80), step=1e-4),
    Wild(lennard_jones_lists, lambda n, nt: (1.0, 1.0, n, nt), (2, 4), (5, 20)),
    Wild(
        argon_cells,
        lambda n, nt: (1.0, 1.2, n, nt),
        (8, 4),
        (64, 60),
        step=1e-5,
        difference=1e-4,  # by the temperature it is small
    ),
    Wild(
        particle_in_cell,
        lambda n, nt: (1.5, 0.3, n, nt),
        (32, 4),
        (1000, 60),
        step=1e-6,
        difference=1e-5,  # the step must not move a particle to another cell
    ),
    Wild(boris_mover, lambda n: (1.0, 1.0, n), (8,), (1000,)),
    Wild(boids, lambda n, nt: (0.5, 0.1, n, nt), (6, 5), (100, 100), step=1e-3, difference=1e-5),
    Wild(rain, lambda n, nt: (0.05, 0.97, n, nt), (6, 9), (50, 600)),
    Wild(hanging_rope, lambda n, nt: (9.81, 0.8, n, nt), (4, 4), (10, 60)),
    Wild(langevin, lambda n, nt: (0.5, 0.3, n, nt), (5, 12), (500, 1000)),
)
