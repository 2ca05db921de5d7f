"""Option prices: paths with given normals, trees, grids."""

import numba
import numpy as np


def european_call(S0, K, r, sigma, T, normals):
    n_steps, n_paths = normals.shape
    dt = T / n_steps
    S = np.full(n_paths, S0)
    for t in range(n_steps):
        S = S * np.exp((r - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * normals[t])
    return np.exp(-r * T) * np.mean(np.maximum(S - K, 0))


def asian_paths(S0, K, r, sigma, normals, T=1.0):
    """Path by path, step by step, scalars only."""
    n_steps, n_paths = normals.shape
    dt = T / n_steps
    payoff = 0.0
    for p in range(n_paths):
        s = S0
        total = 0.0
        for t in range(n_steps):
            s *= np.exp((r - 0.5 * sigma * sigma) * dt + sigma * np.sqrt(dt) * normals[t, p])
            total += s
        average = total / n_steps
        if average > K:
            payoff += average - K
    return np.exp(-r * T) * payoff / n_paths


@numba.njit
def barrier_paths(S0, K, barrier, sigma, normals, dt=0.1):
    """A path that reaches the barrier is worth nothing, and is followed no further."""
    n_steps, n_paths = normals.shape
    value = 0.0
    for p in range(n_paths):
        s = S0
        for t in range(n_steps):
            s = s * (1 + sigma * np.sqrt(dt) * normals[t, p])
            if s > barrier:
                break
        else:
            value += max(s - K, 0.0)
    return value / n_paths


def american_put_tree(S0, K, r, sigma, T, n=8):
    dt = T / n
    u = np.exp(sigma * np.sqrt(dt))
    d = 1 / u
    p = (np.exp(r * dt) - d) / (u - d)
    values = np.zeros(n + 1)
    for i in range(n + 1):
        values[i] = max(K - S0 * u**i * d ** (n - i), 0.0)
    for step in range(n - 1, -1, -1):
        for i in range(step + 1):
            hold = np.exp(-r * dt) * (p * values[i + 1] + (1 - p) * values[i])
            values[i] = max(hold, K - S0 * u**i * d ** (step - i))
    return values[0]


def american_put_grid(sigma, r, K, n_s=12, n_t=10, T=0.2):
    """Explicit finite differences with early exercise at every step."""
    S = np.linspace(0, 2, n_s) * K
    dS = S[1] - S[0]
    dt = T / n_t
    payoff = np.maximum(K - S, 0)
    V = payoff.copy()
    for _ in range(n_t):
        delta = (V[2:] - V[:-2]) / (2 * dS)
        gamma = (V[2:] - 2 * V[1:-1] + V[:-2]) / dS**2
        V[1:-1] += dt * (0.5 * sigma**2 * S[1:-1] ** 2 * gamma + r * S[1:-1] * delta - r * V[1:-1])
        np.maximum(V, payoff, out=V)
        V[0] = K
        V[-1] = 0.0
    return V


def heston_paths(S0, v0, kappa, theta, xi, z1, z2, rho=-0.6, dt=0.05):
    S = np.ones(z1.shape[1]) * S0
    v = np.ones(z1.shape[1]) * v0
    for a, b in zip(z1, z2, strict=True):
        w = rho * a + np.sqrt(1 - rho**2) * b
        positive = np.maximum(v, 1e-8)
        S *= np.exp(-0.5 * positive * dt + np.sqrt(positive * dt) * a)
        v += kappa * (theta - positive) * dt + xi * np.sqrt(positive * dt) * w
    return S.mean(), v.std()


def implied_volatility(price, S, K, T):
    """Newton on the Black–Scholes formula without rates."""
    from scipy.special import erf

    sigma = 0.5
    for _ in range(50):
        d1 = (np.log(S / K) + 0.5 * sigma**2 * T) / (sigma * np.sqrt(T))
        d2 = d1 - sigma * np.sqrt(T)
        value = 0.5 * S * (1 + erf(d1 / np.sqrt(2))) - 0.5 * K * (1 + erf(d2 / np.sqrt(2)))
        vega = S * np.sqrt(T) * np.exp(-0.5 * d1**2) / np.sqrt(2 * np.pi)
        change = (value - price) / vega
        sigma = sigma - change
        if np.abs(change) < 1e-12:
            break
    return sigma
