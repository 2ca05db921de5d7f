"""A heavy body and its satellites under softened gravity by leapfrog: small arrays, all pairs.

The value is the sum of squares of the final positions. The satellites' orbits are nearly circles,
on which gradients grow slowly and stay comparable to ten digits and more.

Source: L. Verlet, Phys. Rev. 159 (1967), eq. 4, for the scheme; H. C. Plummer, Mon. Not. R. Astron.
Soc. 71 (1911), for the softening.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings
from benchmarks.peers import ckad_builders
from benchmarks.two_level import compiled, copy_into, period_of, two_level

SOFTENING = 0.05


def inputs(settings: Settings) -> Inputs:
    """Initial positions (n, 3), velocities (n, 3) and the masses (n,)."""
    n = int(settings["n_bodies"])
    noise = np.random.default_rng(1687).uniform(-0.05, 0.05, (2, n, 3))
    radius, angle = 1.0 + 0.5 * np.arange(n), 2.4 * np.arange(n)
    circle = np.stack([np.cos(angle), np.sin(angle), np.zeros(n)], axis=1)
    ahead = np.stack([-np.sin(angle), np.cos(angle), np.zeros(n)], axis=1)
    positions, velocities = radius[:, None] * circle, ahead / np.sqrt(radius)[:, None]
    positions[0] = velocities[0] = 0.0
    masses = np.where(np.arange(n) == 0, 1.0, 0.01 * (1 + np.arange(n)))
    return positions + noise[0], velocities + noise[1], masses


def n_steps(settings: Settings) -> int:
    return int(settings["n_steps"])


def step_size(settings: Settings) -> float:
    """The horizon in equal steps, but never a step beyond leapfrog's comfort."""
    return min(0.02, settings["horizon"] / settings["n_steps"])


def leapfrog(state, masses, h, pull):
    """Drift by half a step, kick, drift by half a step; ckad, JAX and PyTorch all run it."""
    x, v = state
    x = x + h / 2 * v
    v = v + h * pull(x, masses)
    return x + h / 2 * v, v


def pull_by_broadcast(x, masses, sqrt):
    """The acceleration of each body by all others, through arrays (n, n, 3)."""
    between = x[None, :, :] - x[:, None, :]
    square = (between * between).sum(2) + SOFTENING**2
    weight = masses / (square * sqrt(square))
    return (weight[:, :, None] * between).sum(1)


# ckad --------------------------------------------------------------------------------------------


def ckad_value(settings: Settings) -> Callable:
    import ckad

    length, h = n_steps(settings), step_size(settings)
    pull = partial(pull_by_broadcast, sqrt=np.sqrt)

    def value(positions, velocities, masses):
        def advance(_, state):
            return leapfrog(state, masses, h, pull)

        x, _ = ckad.fori_loop(0, length, advance, (positions, velocities))
        return np.sum(x * x)

    return value


build_ckad, build_primal = ckad_builders(ckad_value, n_inputs=3)


# JAX and PyTorch ---------------------------------------------------------------------------------


def build_jax(settings: Settings, levels: int, remat_step: bool, unroll: int = 1) -> Gradient:
    """A scan over the steps (levels=1), or over checkpointed blocks of about sqrt(n) of them."""
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient, jax_nested_scan

    length, h = n_steps(settings), step_size(settings)

    pull = partial(pull_by_broadcast, sqrt=jnp.sqrt)

    def value(positions, velocities, masses):
        def advance(state, _):
            return leapfrog(state, masses, h, pull), None

        start = positions, velocities
        x, _ = jax_nested_scan(advance, start, length, levels, remat_step, unroll)
        return jnp.sum(x * x)

    return jax_gradient(jax, value, n_inputs=3)


def build_torch(settings: Settings, one_thread: bool) -> Gradient:
    import torch

    from benchmarks.peers import torch_gradient

    if one_thread:
        torch.set_num_threads(1)
    length, h = n_steps(settings), step_size(settings)
    pull = partial(pull_by_broadcast, sqrt=torch.sqrt)

    def value(positions, velocities, masses):
        state = positions, velocities
        for _ in range(length):
            state = leapfrog(state, masses, h, pull)
        return torch.sum(state[0] ** 2)

    return torch_gradient(value)


# Numba, the adjoint by hand ----------------------------------------------------------------------
# A state is (2, n, 3): positions, velocities. Each pair is met once, for both of its bodies.


@compiled
def drift(new, x, v, time):
    for i in range(x.shape[0]):
        for k in range(3):
            new[i, k] = x[i, k] + time * v[i, k]


@compiled
def pair(x, i, j):
    """From i to j, the square of the softened distance and its power -3/2."""
    a, b, c = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
    square = a * a + b * b + c * c + SOFTENING**2
    return a, b, c, square, 1.0 / (square * np.sqrt(square))


@compiled
def add(out, i, factor, a, b, c):
    out[i, 0] += factor * a
    out[i, 1] += factor * b
    out[i, 2] += factor * c


@compiled
def kick(v, x, masses, h):
    for i in range(masses.size):
        for j in range(i):
            a, b, c, _, weight = pair(x, i, j)
            add(v, i, h * masses[j] * weight, a, b, c)
            add(v, j, -h * masses[i] * weight, a, b, c)


@compiled
def kick_adjoint(x_ct, masses_ct, v_ct, x, masses, h):
    """Adds to the cotangents of positions and masses those that the kick's has."""
    for i in range(masses.size):
        for j in range(i):
            a, b, c, square, weight = pair(x, i, j)
            on_i = a * v_ct[i, 0] + b * v_ct[i, 1] + c * v_ct[i, 2]
            on_j = a * v_ct[j, 0] + b * v_ct[j, 1] + c * v_ct[j, 2]
            masses_ct[j] += h * weight * on_i
            masses_ct[i] -= h * weight * on_j
            along = 3.0 / square * (masses[j] * on_i - masses[i] * on_j)
            for k, component in enumerate((a, b, c)):
                pulled = masses[j] * v_ct[i, k] - masses[i] * v_ct[j, k]
                ct = h * weight * (pulled - along * component)
                x_ct[j, k] += ct
                x_ct[i, k] -= ct


@compiled
def numba_step(new, old, _older, _i, parameters):
    masses, _, midway, h = parameters
    drift(midway, old[0], old[1], h / 2)
    copy_into(new[1], old[1])
    kick(new[1], midway, masses, h)
    drift(new[0], midway, new[1], h / 2)


@compiled
def step_adjoint(new_ct, ct, _newer_ct, old, _i, parameters):
    masses, masses_ct, midway, h = parameters
    drift(midway, old[0], old[1], h / 2)
    copy_into(new_ct[0], ct[0])
    drift(new_ct[1], ct[1], ct[0], h / 2)
    kick_adjoint(new_ct[0], masses_ct, new_ct[1], midway, masses, h)
    drift(new_ct[1], new_ct[1], new_ct[0], h / 2)


@compiled
def squares(ct, last, _parameters):
    value = 0.0
    for i in range(last.shape[1]):
        for k in range(3):
            value += last[0, i, k] ** 2
            ct[0, i, k], ct[1, i, k] = 2.0 * last[0, i, k], 0.0
    return value


def build_numba(settings: Settings, store_all: bool) -> Gradient:
    length, h = n_steps(settings), step_size(settings)
    period = period_of(length, store_all)

    def gradient(arrays):
        positions, velocities, masses = arrays
        masses_ct, start = np.zeros_like(masses), np.stack([positions, velocities])[None]
        parameters = masses, masses_ct, np.empty_like(positions), h
        value, ct = two_level(start, length, period, numba_step, squares, step_adjoint, parameters)
        return value, (ct[0], ct[1], masses_ct)

    return gradient


CASE = Case(
    name="n_body",
    title="Gravity, leapfrog: final sum of squares in positions, velocities and masses",
    defaults={"n_bodies": 6, "n_steps": 10_000, "horizon": 12.0},
    tiny={"n_bodies": 4, "n_steps": 60, "horizon": 12.0},
    inputs=inputs,
    steps=n_steps,
    cells=lambda settings: int(settings["n_bodies"]) ** 2,
    forms={
        "ckad": {
            "auto": build_ckad,
            "1 MiB": partial(build_ckad, memory="1 MiB"),
            "64 MiB": partial(build_ckad, memory="64 MiB"),
            "vm": partial(build_ckad, engine="vm"),
        },
        "jax": {
            "scan": partial(build_jax, levels=1, remat_step=False),
            "scan, remat step": partial(build_jax, levels=1, remat_step=True),
            "nested scan": partial(build_jax, levels=2, remat_step=False),
            "nested scan, remat step": partial(build_jax, levels=2, remat_step=True),
            "scan, unroll 4": partial(build_jax, levels=1, remat_step=False, unroll=4),
        },
        "numba": {
            "two-level": partial(build_numba, store_all=False),
            "store-all": partial(build_numba, store_all=True),
        },
        "torch": {
            "eager loop, one thread": partial(build_torch, one_thread=True),
            "eager loop": partial(build_torch, one_thread=False),
        },
    },
    primal=build_primal,
    cache_settings={"n_steps": 100},
    shorter={"torch": {"n_steps": 1_000}},
)
