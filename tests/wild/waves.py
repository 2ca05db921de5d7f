"""Waves: electromagnetic, acoustic, on strings and plates, in spectral space."""

import functools
from collections import deque

import numpy as np
from numpy.fft import fft, fft2, fftn, ifft, ifft2, ifftn
from tqdm import tqdm

from .program import Wild


# Electromagnetic waves, by objects ---------------------------------------------------------------
class PointSource:
    def __init__(self, period, amplitude):
        self.grid = None
        self.position = None
        self.period = period
        self.amplitude = amplitude

    def _register(self, grid, x):
        self.grid = grid
        self.position = x
        grid.sources.append(self)

    def update_E(self):
        q = self.grid.time_steps_passed
        src = self.amplitude * np.sin(2 * np.pi * q / self.period)
        self.grid.E[self.position] += src


class Absorber:
    def __init__(self, profile):
        self.profile = profile
        self.grid = None

    def _register(self, grid, x):
        self.grid, self.x = grid, x
        grid.boundaries.append(self)

    def update_E(self):
        self.grid.E[self.x] *= self.profile

    def update_H(self):
        self.grid.H[self.x] *= self.profile


class Detector:
    def __init__(self, name):
        self.name = name
        self.E = []

    def _register(self, grid, x):
        self.grid, self.x = grid, x
        grid.detectors.append(self)

    def detect(self):
        self.E.append(self.grid.E[self.x].sum())


class Grid:
    """``grid[3] = PointSource(...)`` puts an object at a place."""

    def __init__(self, shape, courant=0.7):
        self.E = np.zeros(shape)
        self.H = np.zeros(shape)
        self.inverse_permittivity = np.ones(shape)
        self.courant_number = courant
        self.time_steps_passed = 0
        self.sources, self.boundaries, self.detectors = [], [], []

    @property
    def time_passed(self):
        return self.time_steps_passed * self.courant_number

    def __setitem__(self, key, obj):
        if isinstance(obj, float | np.ndarray):
            self.inverse_permittivity[key] = obj
        else:
            obj._register(self, key)

    def step(self):
        self.update_E()
        self.update_H()
        self.time_steps_passed += 1

    def update_E(self):
        self.E[1:] += self.courant_number * self.inverse_permittivity[1:] * np.diff(self.H)
        for boundary in self.boundaries:
            boundary.update_E()
        for source in self.sources:
            source.update_E()
        for det in self.detectors:
            det.detect()

    def update_H(self):
        self.H[:-1] += self.courant_number * np.diff(self.E)
        for boundary in self.boundaries:
            boundary.update_H()

    def run(self, total_time, progress_bar=True):
        time = range(0, total_time, 1)
        if progress_bar:
            time = tqdm(time, disable=True)
        for _ in time:
            self.step()


def fdtd_with_objects(permittivity, amplitude, nx, nt):
    grid = Grid(nx)
    grid[nx // 2 : nx // 2 + 3] = 1.0 / permittivity
    grid[nx // 8] = PointSource(period=20, amplitude=amplitude)
    grid[-nx // 6 :] = Absorber(np.linspace(1.0, 0.7, len(grid.E[-nx // 6 :])))
    grid[2 * nx // 3 : 2 * nx // 3 + 2] = Detector(name="behind")
    grid.run(nt, progress_bar=False)
    seen = np.array(grid.detectors[0].E)
    return np.sum(seen**2) + 0.0 * grid.time_passed


# Waves on a line ---------------------------------------------------------------------------------
def wave_by_closures(c, width, nx, nt):
    """The solver of a lecture: the state lives in the closure of its stepping function."""
    x = np.linspace(0, 1, nx)
    dx = x[1] - x[0]
    dt = 0.5 * dx
    n = 0

    def I(x):
        return np.exp(-(((x - 0.4) / width) ** 2))

    def make_solver(I, f):
        u_n = I(x)
        u_nm1 = u_n.copy()
        u = np.zeros(nx)

        def advance():
            nonlocal u, u_n, u_nm1, n
            C2 = (c * dt / dx) ** 2
            u[1:-1] = -u_nm1[1:-1] + 2 * u_n[1:-1] + C2 * (u_n[2:] - 2 * u_n[1:-1] + u_n[:-2])
            u[1:-1] += dt**2 * f(x[1:-1], n * dt)
            u[0] = 0
            u[-1] = 0
            u_nm1, u_n, u = u_n, u, u_nm1
            n += 1
            return u_n

        return advance

    advance = make_solver(I, lambda x, t: np.sin(np.pi * x) * np.cos(t))
    for _ in range(nt):
        last = advance()
    return np.sum(last**2) * dx


def plucked_string(pluck, loss, n, samples):
    """Karplus-Strong: a delay line that is averaged as it goes round."""
    buffer = deque([pluck * (1 if k < n // 2 else -1) for k in range(n)], maxlen=n)
    sound = []
    for _ in range(samples):
        first = buffer.popleft()
        sound.append(first)
        buffer.append(loss * 0.5 * (first + buffer[0]))
    sound = np.array(sound)
    return np.sum(sound * np.cos(0.3 * np.arange(samples)))


def seismic_shot(velocity, peak, nz, nt):
    """One shot over a layered model; every trace is a list, the wave field a history of three."""
    nx = nz
    dx, dt = 10.0, 0.001
    vp = np.full((nz, nx), velocity)
    vp[nz // 2 :, :] = 1.4 * velocity
    time = np.arange(nt) * dt
    ricker = (1 - 2 * (np.pi * peak * (time - 0.02)) ** 2) * np.exp(
        -((np.pi * peak * (time - 0.02)) ** 2)
    )
    p, pold, pnew = np.zeros((nz, nx)), np.zeros((nz, nx)), np.zeros((nz, nx))
    d2px, d2pz = np.zeros((nz, nx)), np.zeros((nz, nx))
    receivers = [(2, i) for i in range(2, nx - 2, 4)]
    seismogram = [[] for _ in receivers]
    for it in range(nt):
        for i in range(1, nx - 1):
            d2px[:, i] = (p[:, i - 1] - 2 * p[:, i] + p[:, i + 1]) / dx**2
        for j in range(1, nz - 1):
            d2pz[j, :] = (p[j - 1, :] - 2 * p[j, :] + p[j + 1, :]) / dx**2
        pnew = 2 * p - pold + vp**2 * dt**2 * (d2px + d2pz)
        pnew[3, nx // 2] = pnew[3, nx // 2] + ricker[it] * dt**2 * 1e4
        pold, p = p, pnew
        for trace, (iz, ix) in zip(seismogram, receivers):
            trace.append(p[iz, ix])
    return 1e2 * np.sum(np.array(seismogram) ** 2)


def plate_with_views(stiffness, blow, n, nt):
    """Arrays of the past, now and the next step are swapped by name; views of them were taken."""
    w, w_old, w_new = np.zeros((3, n, n))
    y, x = np.mgrid[0:n, 0:n] / (n - 1)
    w[...] = blow * np.sin(np.pi * x) * np.sin(np.pi * y) * x
    w_old[...] = w
    inner, mid = (slice(1, -1), slice(1, -1)), n // 2
    microphone = []
    for it in range(nt):
        lap = w[2:, 1:-1] + w[:-2, 1:-1] + w[1:-1, 2:] + w[1:-1, :-2] - 4 * w[inner]
        now, before, then = w[inner], w_old[inner], w_new[inner]
        then[...] = 2 * now - before + stiffness * lap
        then *= 0.999
        w_old, w, w_new = w, w_new, w_old
        microphone.append(w[mid, mid])
    return np.sum(np.square(microphone))


# In spectral space -------------------------------------------------------------------------------
def kuramoto_sivashinsky(amplitude, mean, N, nt):
    """Exponential Runge-Kutta of the fourth order, its coefficients by a contour integral."""
    x = 32 * np.pi * np.arange(1, N + 1) / N
    u = amplitude * np.cos(x / 16) * (1 + np.sin(x / 16)) + mean
    v = fft(u)
    h = 0.25
    k = np.r_[np.arange(0, N / 2), [0], np.arange(-N / 2 + 1, 0)] / 16
    L = k**2 - k**4
    E = np.exp(h * L)
    E_2 = np.exp(h * L / 2)
    M = 16
    r = np.exp(1j * np.pi * (np.arange(1, M + 1) - 0.5) / M)
    LR = h * L[:, None] + r[None, :]
    Q = h * np.real(np.mean((np.exp(LR / 2) - 1) / LR, axis=1))
    f1 = h * np.real(np.mean((-4 - LR + np.exp(LR) * (4 - 3 * LR + LR**2)) / LR**3, axis=1))
    f2 = h * np.real(np.mean((2 + LR + np.exp(LR) * (-2 + LR)) / LR**3, axis=1))
    f3 = h * np.real(np.mean((-4 - 3 * LR - LR**2 + np.exp(LR) * (4 - LR)) / LR**3, axis=1))
    uu = [u]
    tt = [0.0]
    g = -0.5j * k
    for n in range(1, nt + 1):
        t = n * h
        Nv = g * fft(np.real(ifft(v)) ** 2)
        a = E_2 * v + Q * Nv
        Na = g * fft(np.real(ifft(a)) ** 2)
        b = E_2 * v + Q * Na
        Nb = g * fft(np.real(ifft(b)) ** 2)
        c = E_2 * a + Q * (2 * Nb - Nv)
        Nc = g * fft(np.real(ifft(c)) ** 2)
        v = E * v + Nv * f1 + 2 * (Na + Nb) * f2 + Nc * f3
        if n % 5 == 0:
            uu.append(np.real(ifft(v)))
            tt.append(t)
    return np.mean(uu[-1] ** 2) + 0.1 * np.mean(uu[1] ** 3)


def quantum_split_step(strength, momentum, N, Nt):
    """A wave packet in its own gravity; everything complex."""
    t, dt, L = 0, 0.001, 1.0
    xlin = np.linspace(0, L, num=N + 1)[0:N]
    xx, yy = np.meshgrid(xlin, xlin)
    rho = 0.9 + 0.5 * np.exp(-((xx - 0.5) ** 2 + (yy - 0.5) ** 2) / 2 / 0.15**2)
    rho /= np.mean(rho)
    psi = np.sqrt(rho).astype(complex) * np.exp(1j * momentum * np.sin(2 * np.pi * xx))
    klin = 2.0 * np.pi / L * np.arange(-N / 2, N / 2)
    kx, ky = np.meshgrid(klin, klin)
    kx, ky = np.fft.ifftshift(kx), np.fft.ifftshift(ky)
    kSq = kx**2 + ky**2
    Vhat = -fftn(4.0 * np.pi * strength * (np.abs(psi) ** 2 - 1.0)) / (kSq + (kSq == 0))
    V = np.real(ifftn(Vhat))
    for i in range(Nt):
        psi = np.exp(-1j * dt / 2.0 * V) * psi
        psihat = fftn(psi)
        psihat = np.exp(dt * (-1j * kSq / 2.0)) * psihat
        psi = ifftn(psihat)
        Vhat = -fftn(4.0 * np.pi * strength * (np.abs(psi) ** 2 - 1.0)) / (kSq + (kSq == 0))
        V = np.real(ifftn(Vhat))
        psi = np.exp(-1j * dt / 2.0 * V) * psi
        t += dt
    return np.mean(np.abs(psi) ** 4)


def turbulence_spectral(w0, nu, N, Nt):
    """Vorticity in a box: products in real space, the rest in Fourier's, dealiased."""
    k = np.fft.fftfreq(N, 1.0 / N)
    kx, ky = np.meshgrid(k, k, indexing="ij")
    k2 = kx**2 + ky**2
    k2_inv = 1.0 / np.where(k2 == 0, 1, k2)
    k2_inv[0, 0] = 0
    dealias = (np.abs(kx) < N / 3) & (np.abs(ky) < N / 3)
    x = 2 * np.pi * np.arange(N) / N
    X, Y = np.meshgrid(x, x, indexing="ij")
    dt = 0.02
    what = fft2(w0 * (np.cos(2 * X) * np.sin(Y) + 0.3 * np.sin(3 * X + Y)))

    @functools.lru_cache(maxsize=None)
    def wavenumbers(axis):
        return 1j * (kx if axis == 0 else ky)

    def rhs(what):
        psi = what * k2_inv
        u = np.real(ifft2(wavenumbers(1) * psi))
        v = -np.real(ifft2(wavenumbers(0) * psi))
        wx = np.real(ifft2(wavenumbers(0) * what))
        wy = np.real(ifft2(wavenumbers(1) * what))
        return -(dealias * fft2(u * wx + v * wy)) - nu * k2 * what

    for it in range(Nt):
        k1 = rhs(what)
        k2_ = rhs(what + dt / 2 * k1)
        what = what + dt * k2_
        if it % 20 == 0:
            energy = 0.5 * np.sum(np.abs(what) ** 2 * k2_inv) / N**4
            print(f"{it:5d} energy {energy:.6f}")
    return 0.5 * np.sum(np.abs(what) ** 2 * k2_inv) / N**4


WAVES = (
    Wild(fdtd_with_objects, lambda nx, nt: (1.7, 1.0, nx, nt), (24, 40), (200, 500)),
    Wild(wave_by_closures, lambda nx, nt: (1.0, 0.1, nx, nt), (12, 7), (200, 500)),
    Wild(plucked_string, lambda n, nt: (0.5, 0.996, n, nt), (7, 30), (100, 20000)),
    Wild(seismic_shot, lambda n, nt: (2000.0, 25.0, n, nt), (10, 12), (50, 100)),
    Wild(plate_with_views, lambda n, nt: (0.2, 1.0, n, nt), (7, 9), (60, 300)),
    Wild(kuramoto_sivashinsky, lambda n, nt: (1.0, 0.1, n, nt), (16, 11), (128, 200)),
    Wild(quantum_split_step, lambda n, nt: (50.0, 0.3, n, nt), (8, 4), (64, 40)),
    Wild(turbulence_spectral, lambda n, nt: (1.0, 0.01, n, nt), (8, 4), (64, 40)),
)
