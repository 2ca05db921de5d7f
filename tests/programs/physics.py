"""Complex amplitudes, spheres, detectors."""

import numpy as np


def go_fast(a):
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


def arc_distance(theta_1, phi_1, theta_2, phi_2):
    s = np.sin((theta_2 - theta_1) / 2) ** 2
    t = np.cos(theta_1) * np.cos(theta_2) * np.sin((phi_2 - phi_1) / 2) ** 2
    return 2 * (np.arctan2(np.sqrt(s + t), np.sqrt(1 - s - t)))


def azimuthal_integration(data, radius, npt=4):
    rmax = radius.max()
    res = np.zeros(npt, dtype=np.float64)
    for i in range(npt):
        r1 = rmax * i / npt
        r2 = rmax * (i + 1) / npt
        mask_r12 = np.logical_and((r1 <= radius), (radius < r2))
        values_r12 = data[mask_r12]
        res[i] = values_r12.mean()
    return res


def mandelbrot_complex(xs, ys, maxiter=8, horizon=2.0):
    C = xs + ys[:, None] * 1j
    N = np.zeros(C.shape, dtype=np.int64)
    Z = np.zeros(C.shape, dtype=np.complex128)
    for n in range(maxiter):
        inside = np.less(abs(Z), horizon)
        N[inside] = n
        Z[inside] = Z[inside] ** 2 + C[inside]
    N[maxiter - 1 == N] = 0
    return abs(Z), N


def schroedinger(potential, x0, momentum, dt=0.1, steps=6):
    """A wave packet by Crank–Nicolson with a complex Thomas sweep."""
    n = potential.size
    x = np.linspace(0, 1, n)
    psi = np.exp(-40 * (x - x0) ** 2) * np.exp(1j * momentum * x)
    off = -0.5j * dt * np.ones(n)
    for _ in range(steps):
        right = psi.copy()
        right[1:-1] += 0.5j * dt * (psi[2:] - 2 * psi[1:-1] + psi[:-2])
        right -= 0.5j * dt * potential * psi
        main = 1 + 1j * dt + 0.5j * dt * potential
        c = np.zeros(n, dtype=complex)
        d = np.zeros(n, dtype=complex)
        c[0] = off[0] / main[0]
        d[0] = right[0] / main[0]
        for i in range(1, n):
            m = main[i] - off[i] * c[i - 1]
            c[i] = off[i] / m
            d[i] = (right[i] - off[i] * d[i - 1]) / m
        psi[n - 1] = d[n - 1]
        for i in range(n - 2, -1, -1):
            psi[i] = d[i] - c[i] * psi[i + 1]
    return np.abs(psi) ** 2


def ladder_impedance(R, L, C, omega):
    """A chain of resistors, coils and capacitors, from its far end."""
    z = np.full(omega.shape, 50.0 + 0.0j)
    for k in range(len(R) - 1, -1, -1):
        series = R[k] + 1j * omega * L[k] + z
        z = 1 / (1 / series + 1j * omega * C[k])
    return np.abs(z), np.angle(z)


def spectrum_by_loops(signal):
    n = len(signal)
    power = np.zeros(n)
    for k in range(n):
        total = 0j
        for t in range(n):
            total += signal[t] * np.exp(-2j * np.pi * k * t / n)
        power[k] = (total * np.conj(total)).real
    return power


def self_energies(neighbours, hopping, green):
    """Products of small complex matrices, gathered by a table of neighbours."""
    n_atoms, n_neighbours = neighbours.shape
    sigma = np.zeros(green.shape, dtype=np.complex128)
    for a in range(n_atoms):
        for b in range(n_neighbours):
            left = hopping[a, b] @ (green[neighbours[a, b]] * (1 + 0.5j))
            sigma[a] += left @ hopping[a, b].T
    return sigma.real, sigma.imag


def planck_by_layers(temperature, opacity, frequencies):
    """Radiation through layers, upwards."""
    intensity = np.zeros(len(frequencies))
    for t, tau in zip(temperature, opacity, strict=True):
        source = frequencies**3 / (np.exp(frequencies / t) - 1)
        intensity = intensity * np.exp(-tau) + source * (1 - np.exp(-tau))
    return intensity


def ising_mean_field(field, coupling, beta, tolerance=1e-13):
    m = np.tanh(beta * field)
    for _sweep in range(300):
        new = np.tanh(beta * (field + coupling @ m))
        if np.max(np.abs(new - m)) < tolerance:
            break
        m = new
    return new
