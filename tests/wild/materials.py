"""Materials and numerics: phases, spins, trusses, ovens, with memory layouts and odd idioms."""

import functools
import sys
import time

import matplotlib.pyplot as plt
import numpy as np
from numpy.lib.stride_tricks import as_strided
from tqdm import tqdm

from .program import Wild

STEPS_DONE = 0


def cahn_hilliard(mobility, gradient_energy, n, nt):
    """Two phases part; a bar of progress, the time taken and the energy are shown."""
    rng = np.random.default_rng(12)
    c = 0.5 + 0.02 * rng.standard_normal((n, n))
    start = time.time()
    energies = np.zeros(nt)

    def lap(a):
        return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a

    for it in tqdm(range(nt), desc="phase field", disable=True):
        mu = 2 * c * (1 - c) ** 2 - 2 * c**2 * (1 - c) - gradient_energy * lap(c)
        c += 0.05 * mobility * lap(mu)
        energies[it] = np.sum(c**2 * (1 - c) ** 2)
        if it % 100 == 0:
            sys.stdout.write(f"\r{it}/{nt} {time.time() - start:.1f} s")
    return energies[-1] / n**2 + np.std(c)


def dendrite(latent, anisotropy, n, nt):
    """A crystal grows from a seed; the field is shown in the middle of the run."""
    phi, T = np.zeros((n, n)), np.zeros((n, n))
    y, x = np.mgrid[0:n, 0:n] - n / 2 + 0.3
    # nowhere flat: the angle of a gradient that is 0 but for rounding has no derivative
    phi[...] = np.exp(-(x**2 + 1.1 * y**2 + 0.2 * x * y) / 12)
    d, dt, tau = 0.05, 1e-4, 3e-4
    for it in range(nt):
        gx = (np.roll(phi, -1, 1) - np.roll(phi, 1, 1)) / (2 * d)
        gy = (np.roll(phi, -1, 0) - np.roll(phi, 1, 0)) / (2 * d)
        theta = np.arctan2(gy, gx + 1e-12)
        eps = 0.01 * (1 + anisotropy * np.cos(6 * (theta - 0.2)))
        m = 0.9 / np.pi * np.arctan(10 * (1.0 - T))
        lap = (
            np.roll(phi, 1, 0)
            + np.roll(phi, -1, 0)
            + np.roll(phi, 1, 1)
            + np.roll(phi, -1, 1)
            - 4 * phi
        ) / d**2
        lapT = (
            np.roll(T, 1, 0) + np.roll(T, -1, 0) + np.roll(T, 1, 1) + np.roll(T, -1, 1) - 4 * T
        ) / d**2
        old = phi.copy()
        phi = phi + dt / tau * (eps**2 * lap + phi * (1 - phi) * (phi - 0.5 + m))
        T = T + dt * lapT + latent * (phi - old)
        if it == nt // 2:
            plt.imshow(phi)
            plt.title(f"step {it}")
            plt.close()
    return np.mean(phi) + np.mean(T**2)


def xy_relaxation(coupling, field, n, nt):
    """Spins on a plane turn towards their neighbours, seen through strides of the padded array."""
    rng = np.random.default_rng(5)
    angle = rng.uniform(-1, 1, (n, n))
    for sweep in range(nt):
        padded = np.asfortranarray(np.pad(angle, 1, mode="wrap"))
        s = padded.strides
        windows = as_strided(padded, shape=(n, n, 3, 3), strides=(s[0], s[1], s[0], s[1]))
        centre = windows[:, :, 1, 1]
        torque = np.zeros((n, n))
        for i, j in [(0, 1), (2, 1), (1, 0), (1, 2)]:
            torque += np.sin(windows[:, :, i, j] - centre)
        angle = angle + 0.1 * (coupling * torque - field * np.sin(angle))
    return np.cos(angle).mean()


def oven(power, loss, n, nt):
    """Shapes are set, a flat iterator writes, rows of a transposed array are swapped."""
    T = np.zeros(n * n)
    T.shape = (n, n)
    T.flat[:: n + 1] = 1.0
    profile = np.linspace(0, 1, n)
    for it in range(nt):
        T[1:-1, 1:-1] += 0.1 * (
            T[2:, 1:-1] + T[:-2, 1:-1] + T[1:-1, 2:] + T[1:-1, :-2] - 4 * T[1:-1, 1:-1]
        )
        T[0] += power * 0.01 * profile
        T *= 1 - 0.01 * loss
        T = T.T
        if it % 10 == 9:
            T.flat[0] = 1.0
    edge = T.ravel(order="F")[:n]
    return np.sum(T**2) / n + edge.sum()


def truss(stiffness, load, bays, nt):
    """Bars whose stiffness falls with their strain: assembly by np.ix_, a solve at each step."""
    nodes = np.array([[float(i // 2), float(i % 2)] for i in range(2 * (bays + 1))])
    bars = []
    for i in range(bays):
        a = 2 * i
        bars += [(a, a + 2), (a + 1, a + 3), (a, a + 3), (a + 1, a + 2), (a + 2, a + 3)]
    ndof = 2 * len(nodes)
    free = np.setdiff1d(np.arange(ndof), [0, 1, 2, 3])
    damage = np.zeros(len(bars))
    u = np.zeros(ndof)
    for step in range(nt):
        K = np.zeros((ndof, ndof))
        for e, (i, j) in enumerate(bars):
            d = nodes[j] - nodes[i]
            L = np.sqrt(d @ d)
            c, s = d / L
            T = np.array([[c * c, c * s], [c * s, s * s]])
            k = stiffness * (1 - damage[e]) / L * np.block([[T, -T], [-T, T]])
            dofs = [2 * i, 2 * i + 1, 2 * j, 2 * j + 1]
            K[np.ix_(dofs, dofs)] += k
        F = np.zeros(ndof)
        F[-1] = -load * (step + 1) / nt
        u[free] = np.linalg.solve(K[np.ix_(free, free)], F[free])
        for e, (i, j) in enumerate(bars):
            d = nodes[j] - nodes[i]
            stretch = (u[2 * j : 2 * j + 2] - u[2 * i : 2 * i + 2]) @ d / (d @ d)
            damage[e] = np.maximum(damage[e], 0.5 * stretch**2 / (stretch**2 + 1.0))
    return -u[-1] + damage.sum()


def newton_with_care(a, b, n):
    """Newton's method inside try, with a fallback, a counter of the module and a finally."""
    global STEPS_DONE
    x = np.linspace(0.5, 2.0, n)
    failures = 0
    for it in range(30):
        try:
            f = x**3 + a * x - b * np.roll(x, 1)
            J = np.diag(3 * x**2 + a) - b * np.roll(np.eye(n), 1, axis=0)
            dx = np.linalg.solve(J, -f)
        except np.linalg.LinAlgError:
            failures += 1
            dx = -0.1 * f
        finally:
            STEPS_DONE += 1
        x = x + 0.5 * dx
        if np.linalg.norm(dx) < 1e-12:
            break
    return np.sum(x**2) + failures


def counted(limit=None):
    def decorate(f):
        @functools.wraps(f)
        def wrapped(*args, **kwargs):
            begin = time.perf_counter()
            result = f(*args, **kwargs)
            wrapped.seconds += time.perf_counter() - begin
            return result

        wrapped.seconds = 0.0
        return wrapped

    return decorate


@counted()
def collision(rho, u, tau, f, c, w):
    feq = rho * w[:, None] * (1 + 3 * c[:, None] * u + 3 * (c[:, None] * u) ** 2 - 1.5 * u**2)
    return f - (f - feq) / tau


def pulse_in_a_tube(tau, height, n, nt):
    """Three populations in a list of arrays, indexed by the number of a loop, streamed by swaps."""
    c, w = np.array([0, 1, -1]), np.array([2 / 3, 1 / 6, 1 / 6])
    x = np.arange(n) / n
    rho = 1 + height * np.exp(-200 * (x - 0.3) ** 2)
    old = [w[q] * rho for q in range(3)]
    new = [np.empty(n) for _ in range(3)]
    for it in range(nt):
        rho = sum(old)
        u = (old[1] - old[2]) / rho
        post = collision(rho, u, tau, np.array(old), c, w)
        for q in range(3):
            new[q][:] = np.roll(post[q], c[q])
        new[1][0], new[2][-1] = post[2][0], post[1][-1]
        old, new = new, old
    return np.sum(rho**2 * (1 + u)) / n


def extracted_cells(threshold, rate, n, nt):
    """What is above a threshold burns down, by boolean extraction and by indices."""
    rng = np.random.RandomState(9)
    u = rng.uniform(0, 1, (n, n))
    fuel = np.ones((n, n))
    burnt = []
    for it in range(nt):
        u[1:-1, 1:-1] += 0.1 * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
        hot = (u > threshold) & (fuel > 0)
        heat = rate * fuel[hot]
        u[hot] += heat
        fuel[hot] -= heat
        rows, cols = np.where(u > 2.0)
        u[rows, cols] = 2.0
        u[np.where(fuel < 0.1)] *= 0.9
        burnt.append(np.count_nonzero(hot))
    return np.mean(u) + fuel[fuel > 0.5].sum() / n**2 + 0.0 * sum(burnt)


MATERIALS = (
    Wild(cahn_hilliard, lambda n, nt: (1.0, 0.5, n, nt), (6, 5), (64, 300)),
    Wild(dendrite, lambda n, nt: (1.6, 0.04, n, nt), (8, 5), (60, 100)),
    Wild(xy_relaxation, lambda n, nt: (1.0, 0.1, n, nt), (5, 4), (40, 200)),
    Wild(oven, lambda n, nt: (1.0, 0.5, n, nt), (6, 12), (50, 500)),
    Wild(truss, lambda n, nt: (10.0, 1.0, n, nt), (1, 2), (6, 20)),
    Wild(newton_with_care, lambda n: (1.0, 0.8, n), (4,), (40,)),
    Wild(pulse_in_a_tube, lambda n, nt: (0.8, 0.1, n, nt), (10, 6), (200, 300)),
    Wild(extracted_cells, lambda n, nt: (0.8, 0.2, n, nt), (6, 4), (60, 200), step=1e-6),
)
