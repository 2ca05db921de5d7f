"""Life: epidemics, patterns, predators, hearts, doses, daisies, ages."""

import copy
import enum
import functools
from collections import deque, namedtuple
from dataclasses import dataclass

import numpy as np
from numpy.fft import fft2, fftshift, ifft2

from .program import Wild

Compartments = namedtuple("Compartments", "S I R D")


def epidemic_with_events(beta, gamma, days):
    """Measures begin when the hospitals fill and end when they empty; deaths lag by a deque."""
    N = 1000.0
    state = Compartments(S=N - 1, I=1.0, R=0.0, D=0.0)
    lag = deque([0.0] * 7, maxlen=7)
    history = [state]
    lockdown = False
    events = {"closed": 0, "opened": 0}
    for day in range(days):
        S, I, R, D = history[-1]
        if not lockdown and I > 0.1 * N:
            lockdown = True
            events["closed"] += 1
        elif lockdown and I < 0.05 * N:
            lockdown = False
            events["opened"] += 1
        rate = 0.4 * beta if lockdown else beta
        new = rate * S * I / N
        lag.append(0.02 * new)
        dying = lag[0]
        recovered = gamma * I
        state = Compartments(S - new, I + new - recovered - dying, R + recovered, D + dying)
        history.append(state)
    peak = max(h.I for h in history)
    return peak / N + history[-1].D / N + 0.001 * events["closed"]


def gray_scott_structured(F, k, n, nt):
    """Two species as fields of one structured array, views of their insides taken once."""
    Z = np.zeros((n + 2, n + 2), [("U", np.double), ("V", np.double)])
    U, V = Z["U"], Z["V"]
    u, v = U[1:-1, 1:-1], V[1:-1, 1:-1]
    np.random.seed(0)
    r = max(n // 10, 1)
    u[...] = 1.0
    c = n // 2
    U[c - r : c + r, c - r : c + r] = 0.50
    V[c - r : c + r, c - r : c + r] = 0.25
    u += 0.05 * np.random.uniform(-1, 1, (n, n))
    v += 0.05 * np.random.uniform(-1, 1, (n, n))
    for i in range(nt):
        Lu = U[0:-2, 1:-1] + U[1:-1, 0:-2] - 4 * U[1:-1, 1:-1] + U[1:-1, 2:] + U[2:, 1:-1]
        Lv = V[0:-2, 1:-1] + V[1:-1, 0:-2] - 4 * V[1:-1, 1:-1] + V[1:-1, 2:] + V[2:, 1:-1]
        uvv = u * v * v
        u += 0.16 * Lu - uvv + F * (1 - u)
        v += 0.08 * Lv + uvv - (F + k) * v
    return np.mean(V) + np.mean(U**2)


def laplacian(Z):
    Ztop, Zleft, Zbottom, Zright = Z[0:-2, 1:-1], Z[1:-1, 0:-2], Z[2:, 1:-1], Z[1:-1, 2:]
    return Ztop + Zleft + Zbottom + Zright - 4 * Z[1:-1, 1:-1]


def turing_frames(a, b, n, nt):
    """A generator yields the frames of the film; the loop outside looks at some of them."""
    rng = np.random.default_rng(100)
    U, V = rng.random((n, n)), rng.random((n, n))
    dx, dt, tau, k = 2.0 / n, 0.9 * (2.0 / n) ** 2 / 2, 0.1, -0.005

    def simulate(U, V):
        for i in range(nt):
            deltaU, deltaV = laplacian(U) / dx**2, laplacian(V) / dx**2
            Uc, Vc = U[1:-1, 1:-1], V[1:-1, 1:-1]
            U[1:-1, 1:-1], V[1:-1, 1:-1] = (
                Uc + dt * (a * deltaU * 1e3 + Uc - Uc**3 - Vc + k),
                Vc + dt * (b * deltaV * 1e2 + Uc - Vc) / tau,
            )
            for Z in (U, V):
                Z[0, :] = Z[1, :]
                Z[-1, :] = Z[-2, :]
                Z[:, 0] = Z[:, 1]
                Z[:, -1] = Z[:, -2]
            yield i, U

    contrast = 0.0
    for i, frame in simulate(U, V):
        contrast = contrast + np.std(frame)
    return contrast / nt


def odeint(f, y0, t, args=(), method="rk4"):
    """Like SciPy's, but its own; rows are stacked as they come."""
    tableaus = {"euler": [], "midpoint": [0.5], "rk4": [0.5, 0.5, 1.0]}
    weights = {"euler": [1.0], "midpoint": [0.0, 1.0], "rk4": [1 / 6, 1 / 3, 1 / 3, 1 / 6]}
    ys = np.atleast_2d(y0)
    for i in range(len(t) - 1):
        h = t[i + 1] - t[i]
        y = ys[-1]
        ks = [f(y, t[i], *args)]
        for c in tableaus[method]:
            ks.append(f(y + c * h * ks[-1], t[i] + c * h, *args))
        y = y + h * sum(w * k for w, k in zip(weights[method], ks))
        ys = np.vstack((ys, y))
    return ys


def lotka_volterra(alpha, beta, nt):
    def derivative(X, t, alpha, beta, delta, gamma):
        x, y = X
        dotx = x * (alpha - beta * y)
        doty = y * (-delta + gamma * x)
        return np.array([dotx, doty])

    t = np.linspace(0.0, 0.05 * nt, nt)
    res = odeint(derivative, [4.0, 2.0], t, args=(alpha, beta, 1.0, 0.4))
    x, y = res.T
    return np.mean(x) + np.max(y)


def mackey_glass(beta, tau_rate, nt):
    """A delay by a list from whose front an item is taken at each step."""
    delay, dt = 20, 0.5
    xs = [1.2 + 0.01 * k for k in range(delay)]
    out = []
    for _ in range(nt):
        x_tau = xs.pop(0)
        x = xs[-1]
        x = x + dt * (beta * x_tau / (1 + x_tau**10) - tau_rate * x)
        xs.append(x)
        out.append(x)
    return float(np.mean(out)) + out[-1]


@dataclass
class World:
    white: float
    black: float
    temperature: float = 0.0

    def albedo(self):
        bare = 1.0 - self.white - self.black
        return 0.75 * self.white + 0.25 * self.black + 0.5 * bare


def daisyworld(luminosity, death, steps):
    """The world of every step is kept by a deep copy."""
    world = World(white=0.2, black=0.2)
    worlds = []
    for step in range(steps):
        L = luminosity * (1 + 0.2 * step / steps)
        A = world.albedo()
        emission = 917.0 * L * (1 - A) / 5.67e-8
        world.temperature = emission**0.25 - 273.0
        T_w = 20.0 * (A - 0.75) + world.temperature
        T_b = 20.0 * (A - 0.25) + world.temperature
        growth = [max(0.0, 1 - 0.003265 * (22.5 - T) ** 2) for T in (T_w, T_b)]
        free = 1.0 - world.white - world.black
        world.white = max(world.white + 0.1 * world.white * (growth[0] * free - death), 0.01)
        world.black = max(world.black + 0.1 * world.black * (growth[1] * free - death), 0.01)
        worlds.append(copy.deepcopy(world))
    return sum(w.temperature for w in worlds) / steps + worlds[-1].white


def lenia(mu, sigma, n, nt):
    """A continuous game of life: neighbourhoods by a transform, growth by a bell."""
    R = max(n // 6, 2)
    y, x = np.ogrid[-n // 2 : n - n // 2, -n // 2 : n - n // 2]
    D = np.sqrt(x**2 + y**2) / R
    bell = lambda x, m, s: np.exp(-(((x - m) / s) ** 2) / 2)
    K = (D < 1) * bell(D, 0.5, 0.15)
    fK = fft2(fftshift(K / np.sum(K)))
    np.random.seed(3)
    A = np.random.rand(n, n) * (D < 2.5)

    def growth(U):
        return bell(U, mu, sigma) * 2 - 1

    for step in range(nt):
        U = np.real(ifft2(fK * fft2(A)))
        A = np.clip(A + 1 / 10 * growth(U), 0, 1)
    return np.mean(A) + np.mean(A**2)


class Route(enum.IntEnum):
    ORAL = 0
    BOLUS = 1


def doses(absorption, clearance, hours):
    """Events sorted by their time; each goes to the compartment of its route."""
    events = [(24.0, Route.BOLUS, 50.0), (0.0, Route.ORAL, 100.0), (12.0, Route.ORAL, 80.0)]
    events = sorted(events, key=lambda event: event[0])
    dt, t = 0.1, 0.0
    amounts = np.zeros(2)
    concentrations = []
    for step in range(int(hours / dt)):
        while events and events[0][0] <= t + 1e-9:
            _, route, amount = events.pop(0)
            amounts[route] += amount
        gut, blood = amounts
        flow = np.array([-absorption * gut, absorption * gut - clearance * blood])
        amounts = amounts + dt * flow
        t += dt
        concentrations.append(amounts[1] / 5.0)
    above = [c for c in concentrations if c > 4.0]
    return max(concentrations) + np.trapezoid(concentrations, dx=dt) / hours + len(above) * dt


def ages(fertility, survival, classes, years):
    """Leslie's matrix from a cached helper, with a crash in some years."""

    @functools.lru_cache(maxsize=None)
    def powers(k):
        return np.linspace(1.0, 0.5, classes) ** k

    n = np.ones(classes) * 10.0
    L = np.zeros((classes, classes))
    L[0, 1:] = fertility * powers(1)[1:]
    for i in range(classes - 1):
        L[i + 1, i] = survival * powers(2)[i]
    totals = np.empty(years)
    for year in range(years):
        n = L @ n
        n = n / (1 + n.sum() / 500.0)
        if year % 7 == 6:
            n[: classes // 2] *= 0.5
        totals[year] = n.sum()
    return np.log(totals).mean()


LIFE = (
    Wild(epidemic_with_events, lambda n: (0.5, 0.1, n), (40,), (2000,), step=1e-6),
    Wild(gray_scott_structured, lambda n, nt: (0.035, 0.065, n, nt), (6, 5), (80, 200)),
    Wild(turing_frames, lambda n, nt: (2.8e-4, 5e-4, n, nt), (8, 5), (60, 150)),
    Wild(lotka_volterra, lambda n: (1.1, 0.4, n), (8,), (600,)),
    Wild(mackey_glass, lambda n: (0.2, 0.1, n), (30,), (5000,)),
    Wild(daisyworld, lambda n: (1.0, 0.3, n), (8,), (300,)),
    Wild(lenia, lambda n, nt: (0.15, 0.05, n, nt), (12, 4), (64, 60), step=1e-5),
    Wild(doses, lambda n: (0.8, 0.2, n), (30,), (300,), step=1e-6),
    Wild(ages, lambda n, nt: (1.5, 0.8, n, nt), (5, 9), (20, 1000)),
)
