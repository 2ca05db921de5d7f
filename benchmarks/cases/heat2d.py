"""Heat in a plate whose conductivity varies from cell to cell; explicit, written with slices.

The value is the sum of squares of the final temperature minus a target. Arrays of size x
size whose edges keep their temperature. The conductivity is in units of dx^2 / dt.

Source: R. J. LeVeque, Finite Difference Methods for Ordinary and Partial Differential Equations
(SIAM, 2007), section 9.7.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings
from benchmarks.peers import ckad_builders
from benchmarks.two_level import compiled, period_of, two_level


def inputs(settings: Settings) -> Inputs:
    """The conductivity and the initial temperature."""
    size = int(settings["size"])
    noise = np.random.default_rng(9).uniform(size=(2, size, size))
    x = np.linspace(0.0, 1.0, size)
    return 0.1 + 0.1 * noise[0], np.outer(np.sin(3 * x), np.cos(2 * x)) + 0.1 * noise[1]


def target(settings: Settings) -> np.ndarray:
    x = np.linspace(0.0, 1.0, int(settings["size"]))
    return np.outer(x, 1.0 - x)


def n_steps(settings: Settings) -> int:
    return int(settings["n_steps"])


def laplacian(u):
    """Of the interior."""
    return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]


# ckad --------------------------------------------------------------------------------------------


def ckad_value(settings: Settings) -> Callable:
    import ckad

    length, observed = n_steps(settings), target(settings)

    def value(kappa, u0):
        def advance(_, u):
            new = u.copy()
            new[1:-1, 1:-1] += kappa[1:-1, 1:-1] * laplacian(u)
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

    def by_pad(u, kappa):
        return u + jnp.pad(kappa[1:-1, 1:-1] * laplacian(u), 1)

    def by_roll(u, kappa):
        sum_of_four = sum(jnp.roll(u, by, axis) for axis in (0, 1) for by in (1, -1))
        return u + kappa * (sum_of_four - 4.0 * u)

    step = {"pad": by_pad, "roll": by_roll}[update]

    def value(kappa, u0):
        inner = jnp.pad(kappa[1:-1, 1:-1], 1)

        def advance(u, _):
            return step(u, inner), None

        u = jax_nested_scan(advance, u0, length, levels, remat_step)
        return jnp.sum((u - observed) ** 2)

    return jax_gradient(jax, value, n_inputs=2)


def build_torch(settings: Settings) -> Gradient:
    import torch

    from benchmarks.peers import torch_gradient

    length, observed = n_steps(settings), torch.tensor(target(settings))

    def value(kappa, u0):
        u = u0
        for _ in range(length):
            change = kappa[1:-1, 1:-1] * laplacian(u)
            u = u + torch.nn.functional.pad(change, (1, 1, 1, 1))
        return torch.sum((u - observed) ** 2)

    return torch_gradient(value)


# Numba, the adjoint by hand ----------------------------------------------------------------------
# A conductivity of zero keeps an edge as it is, and a ring of zeros around the plate is read where
# an edge has no neighbour: one formula for all cells. The reverse gathers: the Laplacian is
# symmetric, so it is applied to conductivity times cotangent, of which three rows stay in L1.


@compiled
def numba_step(new, old, _older, _i, parameters):
    kappa = parameters[0]
    for i in range(1, old.shape[0] - 1):
        for j in range(1, old.shape[1] - 1):
            sum_of_four = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]
            new[i, j] = old[i, j] + kappa[i, j] * (sum_of_four - 4.0 * old[i, j])


@compiled
def weighted_row(rows, kappa, ct, i):
    """Row i, in the place of row i - 3."""
    place = i % 3
    for j in range(kappa.shape[1]):
        rows[place, j] = kappa[i, j] * ct[i, j]


@compiled
def ct_row(new, ct, rows, i):
    above, here, below = (i - 1) % 3, i % 3, (i + 1) % 3
    for j in range(1, ct.shape[1] - 1):
        sum_of_four = rows[above, j] + rows[below, j] + rows[here, j - 1] + rows[here, j + 1]
        new[i, j] = ct[i, j] + (sum_of_four - 4.0 * rows[here, j])


@compiled
def step_adjoint(new_ct, ct, _newer_ct, old, _i, parameters):
    kappa, kappa_ct, rows, _ = parameters
    weighted_row(rows, kappa, ct, 0)
    weighted_row(rows, kappa, ct, 1)
    for i in range(1, old.shape[0] - 1):
        weighted_row(rows, kappa, ct, i + 1)
        ct_row(new_ct, ct, rows, i)
        for j in range(1, old.shape[1] - 1):
            sum_of_four = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]
            kappa_ct[i, j] += ct[i, j] * (sum_of_four - 4.0 * old[i, j])


@compiled
def misfit(ct, last, parameters):
    observed = parameters[-1]
    value = 0.0
    for i in range(1, last.shape[0] - 1):
        for j in range(1, last.shape[1] - 1):
            difference = last[i, j] - observed[i - 1, j - 1]
            value += difference * difference
            ct[i, j] = 2.0 * difference
    return value


def build_numba(settings: Settings, store_all: bool) -> Gradient:
    length, observed = n_steps(settings), target(settings)
    period = period_of(length, store_all)

    def gradient(arrays):
        kappa, u0 = arrays
        inner = np.pad(kappa[1:-1, 1:-1], 2)
        kappa_ct = np.zeros_like(inner)
        parameters = inner, kappa_ct, np.zeros((3, inner.shape[1])), observed
        value, ct = two_level(
            np.pad(u0, 1)[None], length, period, numba_step, misfit, step_adjoint, parameters
        )
        return value, (np.pad(kappa_ct[2:-2, 2:-2], 1), ct[1:-1, 1:-1])

    return gradient


JAX_FORMS = {
    f"{scan}, {update}{', remat step' * remat_step}": partial(
        build_jax, levels=levels, update=update, remat_step=remat_step
    )
    for levels, scan in ((2, "nested scan"), (1, "scan"))
    for update in ("roll", "pad")
    for remat_step in (True, False)
}

CASE = Case(
    name="heat2d",
    title="heat in a plate, explicit: final misfit in the conductivity field and the initial state",
    defaults={"size": 256, "n_steps": 400},
    tiny={"size": 12, "n_steps": 10},
    inputs=inputs,
    steps=n_steps,
    cells=lambda settings: int(settings["size"]) ** 2,
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
    cache_settings={"size": 64, "n_steps": 20},
    shorter={"torch": {"n_steps": 50}},
)
