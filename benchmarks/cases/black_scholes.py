"""An average-price call option by Monte Carlo: many paths of Black and Scholes's model, few steps.

The value is the discounted mean of max(average price - strike, 0). Its pathwise gradient is in the
spot price, the volatility and the rate. The normal numbers of all steps are drawn once, as data.

Source: P. Glasserman, Monte Carlo Methods in Financial Engineering (Springer, 2003), section 3.2
for the path, 7.2 for the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit

from benchmarks.case import Case, Gradient, Inputs, Settings
from benchmarks.peers import ckad_builders

STRIKE, YEARS = 100.0, 1.0


def inputs(settings: Settings) -> Inputs:
    """The spot price, the volatility and the rate."""
    return np.array([98.0]), np.array([0.25]), np.array([0.04])


def n_steps(settings: Settings) -> int:
    return int(settings["n_steps"])


def draw_normals(settings: Settings) -> np.ndarray:
    """(n_steps, n_paths), the same on every call."""
    shape = n_steps(settings), int(settings["n_paths"])
    return np.random.default_rng(1973).normal(size=shape)


def log_growth(normals, volatility, rate, dt):
    """The change of a price's logarithm in one step."""
    return (rate - volatility**2 / 2) * dt + volatility * dt**0.5 * normals


def move(state, normals, volatility, rate, dt, exp):
    """One step of all paths and of the sum of their prices; ckad, JAX and PyTorch all run it."""
    price, total = state
    price = price * exp(log_growth(normals, volatility, rate, dt))
    return price, total + price


# ckad --------------------------------------------------------------------------------------------


def ckad_value(settings: Settings) -> Callable:
    import ckad

    length = n_steps(settings)
    dt = YEARS / length

    def value(spot, volatility, rate, normals):
        def step(state, row):
            return move(state, row, volatility, rate, dt, np.exp), None

        zero = np.zeros(normals.shape[1:])
        (_, total), _ = ckad.scan(step, (zero + spot, zero), normals)
        payoff = np.maximum(total / length - STRIKE, 0.0)
        return np.exp(-rate[0] * YEARS) * np.mean(payoff)

    return value


build_ckad, build_primal = ckad_builders(
    ckad_value, n_inputs=3, data_of=lambda settings: (draw_normals(settings),)
)


# JAX and PyTorch ---------------------------------------------------------------------------------


def build_jax(settings: Settings, levels: int, remat_step: bool, unroll: int = 1) -> Gradient:
    """A scan over the steps (levels=1), or over checkpointed blocks of about sqrt(n) of them."""
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient, jax_nested_scan

    length = n_steps(settings)
    dt = YEARS / length

    def value(spot, volatility, rate, normals):
        def advance(state, _):
            i, *state = state
            moved = move(state, normals[i], volatility, rate, dt, jnp.exp)
            return (i + 1, *moved), None

        zero = jnp.zeros(normals.shape[1])
        start = 0, zero + spot, zero
        _, _, total = jax_nested_scan(advance, start, length, levels, remat_step, unroll)
        payoff = jnp.maximum(total / length - STRIKE, 0.0)
        return jnp.exp(-rate[0] * YEARS) * jnp.mean(payoff)

    # On the device once, as an argument: a constant would be copied into the program.
    gradient = jax_gradient(jax, value, n_inputs=3)
    normals = jax.device_put(draw_normals(settings))
    return lambda arrays: gradient((*arrays, normals))


def build_torch(settings: Settings, one_thread: bool) -> Gradient:
    import torch

    from benchmarks.peers import torch_gradient

    if one_thread:
        torch.set_num_threads(1)
    normals, length = torch.tensor(draw_normals(settings)), n_steps(settings)
    dt = YEARS / length

    def value(spot, volatility, rate):
        zero = torch.zeros(normals.shape[1], dtype=torch.float64)
        state = zero + spot, zero
        for row in normals:
            state = move(state, row, volatility, rate, dt, torch.exp)
        payoff = torch.clamp(state[1] / length - STRIKE, min=0.0)
        return torch.exp(-rate[0] * YEARS) * torch.mean(payoff)

    return torch_gradient(value)


# Numba, the adjoint by hand ----------------------------------------------------------------------
# Strips of paths run through all steps and back while their prices lie in the L2 cache. With the
# cotangent of log(price), the prices are all that the reverse reads: no exponential is repeated.

compiled = njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})

STRIP = 512


@compiled
def forward_row(new, price, total, normals, drift, deviation):
    for j in range(new.size):
        new[j] = price[j] * np.exp(drift + deviation * normals[j])
    for j in range(new.size):
        total[j] += new[j]


@compiled
def reverse_row(log_ct, mean_ct, price, normals):
    """Adds this step's share to the cotangent of log(price); returns the sums with normals."""
    drift_ct = deviation_ct = 0.0
    for j in range(price.size):
        log_ct[j] += mean_ct[j] * price[j]
    for j in range(price.size):
        drift_ct += log_ct[j]
        deviation_ct += log_ct[j] * normals[j]
    return drift_ct, deviation_ct


@compiled
def strip_gradient(prices, total, mean_ct, log_ct, normals, drift, deviation):
    """The sum of payoffs, and the cotangents of log(spot), drift and deviation; no discount."""
    length = normals.shape[0]
    total[:] = 0.0
    for i in range(length):
        forward_row(prices[i + 1], prices[i], total, normals[i], drift, deviation)
    payoff = drift_ct = deviation_ct = log_spot_ct = 0.0
    for j in range(total.size):
        gain = total[j] / length - STRIKE
        payoff += max(gain, 0.0)
        mean_ct[j] = 1.0 / length if gain > 0.0 else 0.0
        log_ct[j] = 0.0
    for i in range(length - 1, -1, -1):
        drift_share, deviation_share = reverse_row(log_ct, mean_ct, prices[i + 1], normals[i])
        drift_ct += drift_share
        deviation_ct += deviation_share
    for j in range(total.size):
        log_spot_ct += log_ct[j]
    return payoff, log_spot_ct, drift_ct, deviation_ct


@compiled
def pathwise(spot, volatility, rate, normals):
    length, n_paths = normals.shape
    dt = YEARS / length
    drift, deviation = (rate - volatility**2 / 2) * dt, volatility * np.sqrt(dt)
    prices, work = np.empty((length + 1, STRIP)), np.empty((3, STRIP))
    prices[0] = spot
    payoff = log_spot_ct = drift_ct = deviation_ct = 0.0
    for first in range(0, n_paths, STRIP):
        width = min(STRIP, n_paths - first)
        total, mean_ct, log_ct = work[0, :width], work[1, :width], work[2, :width]
        strip = normals[:, first : first + width]
        a, b, c, d = strip_gradient(
            prices[:, :width], total, mean_ct, log_ct, strip, drift, deviation
        )
        payoff, log_spot_ct = payoff + a, log_spot_ct + b
        drift_ct, deviation_ct = drift_ct + c, deviation_ct + d
    scale = np.exp(-rate * YEARS) / n_paths
    volatility_ct = scale * (np.sqrt(dt) * deviation_ct - volatility * dt * drift_ct)
    rate_ct = scale * (dt * drift_ct - YEARS * payoff)
    return scale * payoff, scale * log_spot_ct / spot, volatility_ct, rate_ct


def build_numba(settings: Settings) -> Gradient:
    normals = draw_normals(settings)

    def gradient(arrays):
        value, *cotangents = pathwise(*(array[0] for array in arrays), normals)
        return value, tuple(np.array([ct]) for ct in cotangents)

    return gradient


CASE = Case(
    name="black_scholes",
    title="An average-price call by Monte Carlo: price in spot, volatility and rate",
    defaults={"n_paths": 20_000, "n_steps": 100},
    tiny={"n_paths": 600, "n_steps": 10},
    inputs=inputs,
    steps=n_steps,
    cells=lambda settings: int(settings["n_paths"]),
    forms={
        "ckad": {
            "auto": build_ckad,
            "32 MiB": partial(build_ckad, memory="32 MiB"),
            "64 MiB": partial(build_ckad, memory="64 MiB"),
            "vm": partial(build_ckad, engine="vm"),
        },
        "jax": {
            "scan, remat step": partial(build_jax, levels=1, remat_step=True),
            "scan": partial(build_jax, levels=1, remat_step=False),
            "nested scan": partial(build_jax, levels=2, remat_step=False),
            "nested scan, remat step": partial(build_jax, levels=2, remat_step=True),
            "scan, remat step, unroll 2": partial(build_jax, levels=1, remat_step=True, unroll=2),
        },
        "numba": {"strips, store-all": build_numba},
        "torch": {
            "eager loop, one thread": partial(build_torch, one_thread=True),
            "eager loop": partial(build_torch, one_thread=False),
        },
    },
    primal=build_primal,
    cache_settings={"n_paths": 500},
)
