"""Gray and Scott's reaction and diffusion on a periodic square: a large state, hundreds of steps.

The value is the sum of squares of the final v minus a target. Arrays of length size x size.

Source: J. E. Pearson, Complex patterns in a simple system, Science 261 (1993) 189-192.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings
from benchmarks.peers import ckad_builders
from benchmarks.two_level import compiled, period_of, two_level, wrap_border

DIFFUSION_U, DIFFUSION_V = 0.16, 0.08


def inputs(settings: Settings) -> Inputs:
    """The initial u and v (a rough square in the middle) and the rates (F, k)."""
    size = int(settings["size"])
    noise = np.random.default_rng(63).uniform(-0.01, 0.01, (2, size, size))
    u, v = 1.0 + noise[0], 0.02 + noise[1]
    middle = slice(3 * size // 8, 5 * size // 8)
    u[middle, middle] -= 0.5
    v[middle, middle] += 0.25
    return u, v, np.array([0.04, 0.06])


def target(settings: Settings) -> np.ndarray:
    size = int(settings["size"])
    wave = np.sin(2 * np.pi * np.arange(size) / size)
    return 0.15 + 0.1 * np.outer(wave, wave)


def n_steps(settings: Settings) -> int:
    return int(settings["n_steps"])


def react(u, v, laplacian_u, laplacian_v, feed, kill):
    """One explicit Euler step of unit length; ckad and JAX both trace it."""
    reaction = u * v * v
    return (
        u + (DIFFUSION_U * laplacian_u - reaction + feed * (1.0 - u)),
        v + (DIFFUSION_V * laplacian_v + reaction - (feed + kill) * v),
    )


def laplacian_by_roll(w, roll):
    return roll(w, 1, 0) + roll(w, -1, 0) + roll(w, 1, 1) + roll(w, -1, 1) - 4.0 * w


# ckad --------------------------------------------------------------------------------------------


def ckad_value(settings: Settings) -> Callable:
    import ckad

    length, observed = n_steps(settings), target(settings)

    def value(u, v, rates):
        feed, kill = rates[0], rates[1]

        def advance(_, state):
            u, v = state
            return react(
                u, v, laplacian_by_roll(u, np.roll), laplacian_by_roll(v, np.roll), feed, kill
            )

        u, v = ckad.fori_loop(0, length, advance, (u, v))
        return np.sum((v - observed) ** 2)

    return value


build_ckad, build_primal = ckad_builders(ckad_value, n_inputs=3)


# JAX and PyTorch ---------------------------------------------------------------------------------


def build_jax(settings: Settings, levels: int, stencil: str, remat_step: bool) -> Gradient:
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient, jax_nested_scan

    length, observed = n_steps(settings), target(settings)

    def laplacian_by_slices(w):
        w = jnp.concatenate([w[-1:], w, w[:1]], axis=0)
        w = jnp.concatenate([w[:, -1:], w, w[:, :1]], axis=1)
        neighbours = w[2:, 1:-1] + w[:-2, 1:-1] + w[1:-1, 2:] + w[1:-1, :-2]
        return neighbours - 4.0 * w[1:-1, 1:-1]

    def roll_by_pad(w, by, axis):
        # The sum of both parts, each among zeros: XLA fuses pads better than a concatenation.
        size, split = w.shape[axis], -by % w.shape[axis]
        head, tail = jnp.split(w, [split], axis)
        widths = np.zeros((2, 2, 2), int)
        widths[:, axis] = (0, split), (size - split, 0)
        return jnp.pad(tail, widths[0]) + jnp.pad(head, widths[1])

    laplacian = {
        "pad": partial(laplacian_by_roll, roll=roll_by_pad),
        "roll": partial(laplacian_by_roll, roll=jnp.roll),
        "slices": laplacian_by_slices,
    }[stencil]

    def value(u, v, rates):
        feed, kill = rates[0], rates[1]

        def advance(state, _):
            u, v = state
            return react(u, v, laplacian(u), laplacian(v), feed, kill), None

        u, v = jax_nested_scan(advance, (u, v), length, levels, remat_step)
        return jnp.sum((v - observed) ** 2)

    return jax_gradient(jax, value, n_inputs=3)


def build_torch(settings: Settings) -> Gradient:
    import torch

    from benchmarks.peers import torch_gradient

    length, observed = n_steps(settings), torch.tensor(target(settings))

    def value(u, v, rates):
        feed, kill = rates.unbind()
        laplacian = partial(laplacian_by_roll, roll=torch.roll)
        for _ in range(length):
            u, v = react(u, v, laplacian(u), laplacian(v), feed, kill)
        return torch.sum((v - observed) ** 2)

    return torch_gradient(value)


# Numba, the adjoint by hand ----------------------------------------------------------------------
# A state is stored with a border that repeats the other side, so that no index wraps around. Rows
# of Laplacians lie in two temporaries that stay in the L1 cache, and no loop writes more than one
# array: so few pointers that each loop is vectorised after a check that they do not overlap.


@compiled
def laplacian_row(out, w, i):
    for j in range(1, out.size - 1):
        out[j] = w[i - 1, j] + w[i + 1, j] + w[i, j - 1] + w[i, j + 1] - 4.0 * w[i, j]


@compiled
def numba_step(new, old, _older, _i, parameters):
    (feed, kill), (row_u, row_v), _, _ = parameters
    (u, v), (new_u, new_v) = (old[0], old[1]), (new[0], new[1])
    last = u.shape[0] - 1
    for i in range(1, last):
        laplacian_row(row_u, u, i)
        laplacian_row(row_v, v, i)
        for j in range(1, last):
            reaction = u[i, j] * v[i, j] * v[i, j]
            change = DIFFUSION_U * row_u[j] - reaction + feed * (1.0 - u[i, j])
            new_u[i, j] = u[i, j] + change
        for j in range(1, last):
            reaction = u[i, j] * v[i, j] * v[i, j]
            change = DIFFUSION_V * row_v[j] + reaction - (feed + kill) * v[i, j]
            new_v[i, j] = v[i, j] + change
    wrap_border(new_u)
    wrap_border(new_v)


@compiled
def step_adjoint(new, ct, _newer_ct, state, _i, parameters):
    (feed, kill), (row_u, row_v), rates_ct, _ = parameters
    (u, v), (new_u, new_v), (ct_u, ct_v) = (state[0], state[1]), (new[0], new[1]), (ct[0], ct[1])
    last = u.shape[0] - 1
    feed_ct = kill_ct = 0.0
    for i in range(1, last):
        laplacian_row(row_u, ct_u, i)
        laplacian_row(row_v, ct_v, i)
        for j in range(1, last):
            reaction_ct = (ct_v[i, j] - ct_u[i, j]) * v[i, j]
            direct = (1.0 - feed) * ct_u[i, j] + DIFFUSION_U * row_u[j]
            new_u[i, j] = direct + reaction_ct * v[i, j]
        for j in range(1, last):
            reaction_ct = (ct_v[i, j] - ct_u[i, j]) * v[i, j]
            direct = (1.0 - feed - kill) * ct_v[i, j] + DIFFUSION_V * row_v[j]
            new_v[i, j] = direct + 2.0 * reaction_ct * u[i, j]
        for j in range(1, last):
            feed_ct += ct_u[i, j] * (1.0 - u[i, j])
            kill_ct -= ct_v[i, j] * v[i, j]
    wrap_border(new_u)
    wrap_border(new_v)
    rates_ct[0] += feed_ct + kill_ct
    rates_ct[1] += kill_ct


@compiled
def misfit(ct, last, parameters):
    observed = parameters[-1]
    v, ct_v = last[1], ct[1]
    value = 0.0
    for i in range(observed.shape[0]):
        for j in range(observed.shape[1]):
            difference = v[i + 1, j + 1] - observed[i, j]
            value += difference * difference
            ct_v[i + 1, j + 1] = 2.0 * difference
    wrap_border(ct_v)
    return value


def build_numba(settings: Settings, store_all: bool) -> Gradient:
    length, observed = n_steps(settings), target(settings)
    period = period_of(length, store_all)

    def gradient(arrays):
        u, v, rates = arrays
        start = np.stack([np.pad(u, 1, "wrap"), np.pad(v, 1, "wrap")])[None]
        rates_ct = np.zeros(2)
        parameters = tuple(rates), tuple(np.empty((2, u.shape[1] + 2))), rates_ct, observed
        value, ct = two_level(start, length, period, numba_step, misfit, step_adjoint, parameters)
        return value, (ct[0, 1:-1, 1:-1], ct[1, 1:-1, 1:-1], rates_ct)

    return gradient


# C, the adjoint by hand --------------------------------------------------------------------------


def build_c(settings: Settings) -> Gradient:
    from benchmarks.peers import compile_c

    length, observed = n_steps(settings), target(settings)
    period = period_of(length)
    library = compile_c(Path(__file__).with_suffix(".c").read_text())
    array = np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")
    library.gray_scott_gradient.argtypes = [ctypes.c_size_t] * 3 + [array] * 7
    library.gray_scott_gradient.restype = ctypes.c_double

    def gradient(arrays):
        cotangents = tuple(np.empty_like(array) for array in arrays)
        size = observed.shape[0]
        value = library.gray_scott_gradient(size, length, period, *arrays, observed, *cotangents)
        return value, cotangents

    return gradient


JAX_FORMS = {
    f"{scan}, {stencil}{', remat step' * remat_step}": partial(
        build_jax, levels=levels, stencil=stencil, remat_step=remat_step
    )
    for levels, scan in ((2, "nested scan"), (1, "scan"))
    for stencil in ("pad", "roll", "slices")
    for remat_step in (True, False)
}

CASE = Case(
    name="gray_scott",
    title="Gray-Scott on a periodic square: final misfit in the initial u, v and the rates F, k",
    defaults={"size": 256, "n_steps": 400},
    tiny={"size": 12, "n_steps": 10},
    inputs=inputs,
    steps=n_steps,
    cells=lambda settings: int(settings["size"]) ** 2,
    also=("threads=1", "threads=2"),
    forms={
        "ckad": {
            "auto": build_ckad,
            "64 MiB": partial(build_ckad, memory="64 MiB"),
            "two-level": partial(build_ckad, memory="64 MiB", schedule="two_level"),
            "threads=1": partial(build_ckad, threads=1),
            "threads=2": partial(build_ckad, threads=2),
            "vm": partial(build_ckad, engine="vm"),
        },
        "jax": JAX_FORMS,
        "numba": {
            "two-level": partial(build_numba, store_all=False),
            "store-all": partial(build_numba, store_all=True),
        },
        "c": {"two-level": build_c},
        "torch": {"eager loop": build_torch},
    },
    primal=build_primal,
    cache_settings={"size": 64, "n_steps": 20},
    shorter={"torch": {"n_steps": 50}},
)
