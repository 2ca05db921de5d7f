"""Burgers' equation in one dimension: a conservative upwind flux, many steps of little work each.

The value is the sum of squares of the final velocity minus a target. The two end cells keep theirs.

Source: B. Engquist and S. Osher, Stable and entropy satisfying approximations for transonic flow
calculations, Math. Comp. 34 (1980) 45-75: the flux, differentiable once where the velocity is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings
from benchmarks.peers import ckad_builders
from benchmarks.two_level import compiled, period_of, two_level

COURANT = 0.25  # dt / dx; the velocity stays below 1


def inputs(settings: Settings) -> Inputs:
    """The initial velocity and the viscosity in units of dx (one entry)."""
    x = np.linspace(0.0, 1.0, int(settings["size"]))
    noise = np.random.default_rng(48).uniform(-0.05, 0.05, x.size)
    return 0.2 + 0.7 * np.sin(2 * np.pi * x) * np.exp(-x) + noise, np.array([0.8])


def target(settings: Settings) -> np.ndarray:
    return 0.3 + 0.2 * np.linspace(-1.0, 1.0, int(settings["size"]))


def n_steps(settings: Settings) -> int:
    return int(settings["n_steps"])


def upwind_flux(here, there, viscosity, clip):
    """From each cell to the next; `clip` is np.clip or does the same."""
    right, left = clip(here, 0.0, None), clip(there, None, 0.0)
    return 0.5 * (right * right + left * left) - viscosity * (there - here)


def flux_difference(u, viscosity, clip):
    """What leaves the interior cells in one step."""
    flux = upwind_flux(u[:-1], u[1:], viscosity, clip)
    return COURANT * (flux[1:] - flux[:-1])


# ckad --------------------------------------------------------------------------------------------


def ckad_value(settings: Settings) -> Callable:
    import ckad

    length, observed = n_steps(settings), target(settings)

    def value(u0, viscosity):
        def advance(_, u):
            new = u.copy()
            new[1:-1] -= flux_difference(u, viscosity[0], np.clip)
            return new

        return np.sum((ckad.fori_loop(0, length, advance, u0) - observed) ** 2)

    return value


build_ckad, build_primal = ckad_builders(ckad_value, n_inputs=2)


# JAX and PyTorch ---------------------------------------------------------------------------------


def build_jax(settings: Settings, levels: int, update: str, remat_step: bool) -> Gradient:
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient, jax_nested_scan

    length, observed = n_steps(settings), target(settings)
    inside = np.pad(np.ones(observed.size - 2), 1)

    def by_pad(u, viscosity):
        return u - jnp.pad(flux_difference(u, viscosity, jnp.clip), 1)

    def by_concatenate(u, viscosity):
        inner = u[1:-1] - flux_difference(u, viscosity, jnp.clip)
        return jnp.concatenate([u[:1], inner, u[-1:]])

    def by_roll(u, viscosity):
        flux = upwind_flux(u, jnp.roll(u, -1), viscosity, jnp.clip)
        return u - COURANT * inside * (flux - jnp.roll(flux, 1))

    step = {"pad": by_pad, "concatenate": by_concatenate, "roll": by_roll}[update]

    def value(u0, viscosity):
        def advance(u, _):
            return step(u, viscosity[0]), None

        u = jax_nested_scan(advance, u0, length, levels, remat_step)
        return jnp.sum((u - observed) ** 2)

    return jax_gradient(jax, value, n_inputs=2)


def build_torch(settings: Settings) -> Gradient:
    import torch

    from benchmarks.peers import torch_gradient

    length, observed = n_steps(settings), torch.tensor(target(settings))

    def value(u0, viscosity):
        u = u0
        for _ in range(length):
            change = flux_difference(u, viscosity[0], torch.clip)
            u = u - torch.nn.functional.pad(change, (1, 1))
        return torch.sum((u - observed) ** 2)

    return torch_gradient(value)


# Numba, the adjoint by hand ----------------------------------------------------------------------


@compiled
def numba_step(new, old, _older, _i, parameters):
    viscosity, flux, _, _ = parameters
    last = old.size - 1
    for j in range(last):
        right, left = max(old[j], 0.0), min(old[j + 1], 0.0)
        flux[j] = 0.5 * (right * right + left * left) - viscosity[0] * (old[j + 1] - old[j])
    for j in range(1, last):
        new[j] = old[j] - COURANT * (flux[j] - flux[j - 1])
    new[0], new[last] = old[0], old[last]


@compiled
def step_adjoint(new_ct, ct, _newer_ct, old, _i, parameters):
    """`flux_ct[j + 1]` belongs to the flux from cell j to the next; zeros lie outside."""
    viscosity, flux_ct, viscosity_ct, _ = parameters
    last = old.size - 1
    nu = viscosity[0]
    for j in range(1, last - 1):
        flux_ct[j + 1] = COURANT * (ct[j + 1] - ct[j])
    flux_ct[0], flux_ct[1] = 0.0, COURANT * ct[1]
    flux_ct[last], flux_ct[last + 1] = -COURANT * ct[last - 1], 0.0
    for j in range(last + 1):
        outgoing = flux_ct[j + 1] * (max(old[j], 0.0) + nu)
        new_ct[j] = ct[j] + outgoing + flux_ct[j] * (min(old[j], 0.0) - nu)
    total = 0.0
    for j in range(last):
        total += flux_ct[j + 1] * (old[j] - old[j + 1])
    viscosity_ct[0] += total


@compiled
def misfit(ct, last, parameters):
    observed = parameters[-1]
    value = 0.0
    for j in range(last.size):
        difference = last[j] - observed[j]
        value += difference * difference
        ct[j] = 2.0 * difference
    return value


def build_numba(settings: Settings, store_all: bool) -> Gradient:
    length, observed = n_steps(settings), target(settings)
    period = period_of(length, store_all)

    def gradient(arrays):
        u0, viscosity = arrays
        viscosity_ct = np.zeros(1)
        parameters = viscosity, np.empty(u0.size + 1), viscosity_ct, observed
        value, ct = two_level(
            u0[None], length, period, numba_step, misfit, step_adjoint, parameters
        )
        return value, (ct, viscosity_ct)

    return gradient


JAX_FORMS = {
    f"{scan}, {update}{', remat step' * remat_step}": partial(
        build_jax, levels=levels, update=update, remat_step=remat_step
    )
    for levels, scan in ((2, "nested scan"), (1, "scan"))
    for update in ("roll", "concatenate", "pad")
    for remat_step in (True, False)
}

CASE = Case(
    name="burgers",
    title="Burgers in one dimension, upwind: final misfit in the initial state and the viscosity",
    defaults={"size": 1000, "n_steps": 10_000},
    tiny={"size": 20, "n_steps": 30},
    inputs=inputs,
    steps=n_steps,
    cells=lambda settings: int(settings["size"]),
    forms={
        "ckad": {
            "auto": build_ckad,
            "64 MiB": partial(build_ckad, memory="64 MiB"),
            "vm": partial(build_ckad, engine="vm"),
        },
        "jax": JAX_FORMS,
        "numba": {
            "two-level": partial(build_numba, store_all=False),
            "store-all": partial(build_numba, store_all=True),
        },
        "torch": {"eager loop": build_torch},
    },
    primal=build_primal,
    cache_settings={"n_steps": 100},
    shorter={"torch": {"n_steps": 200}},
)
