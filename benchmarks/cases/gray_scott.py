"""Gray and Scott's reaction and diffusion on a periodic square: a large state, hundreds of steps.

The value is the sum of squares of the final v minus a target. Arrays of length size x size.

Source: J. E. Pearson, Complex patterns in a simple system, Science 261 (1993) 189-192.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from benchmarks.case import Case, Gradient, Inputs, Settings

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


def build_ckad(settings: Settings, **options) -> Gradient:
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

    gradient = ckad.value_and_grad(value, argnums=(0, 1, 2), **options)
    return lambda arrays: gradient(*arrays)


# JAX ---------------------------------------------------------------------------------------------


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

    rolled = partial(laplacian_by_roll, roll=jnp.roll)
    laplacian = {"roll": rolled, "slices": laplacian_by_slices}[stencil]

    def value(u, v, rates):
        feed, kill = rates[0], rates[1]

        def advance(state, _):
            u, v = state
            return react(u, v, laplacian(u), laplacian(v), feed, kill), None

        u, v = jax_nested_scan(advance, (u, v), length, levels, remat_step)
        return jnp.sum((v - observed) ** 2)

    return jax_gradient(jax, value, n_inputs=3)


# Numba, the adjoint by hand ----------------------------------------------------------------------
# A state is stored with a border that repeats the other side, so that no index wraps around. Rows
# of Laplacians lie in two temporaries that stay in the L1 cache, and no loop writes more than one
# array: so few pointers that each loop is vectorised after a check that they do not overlap.

compiled = njit(error_model="numpy", fastmath={"contract", "reassoc"})


@compiled
def wrap_border(w):
    last = w.shape[0] - 1
    for j in range(1, last):
        w[0, j], w[last, j] = w[last - 1, j], w[1, j]
    for i in range(last + 1):
        w[i, 0], w[i, last] = w[i, last - 1], w[i, 1]


@compiled
def laplacian_row(out, above, row, below):
    for j in range(out.size):
        out[j] = above[j + 1] + below[j + 1] + row[j] + row[j + 2] - 4.0 * row[j + 1]


@compiled
def laplacian_rows(row_u, row_v, state, i):
    laplacian_row(row_u, state[0, i - 1], state[0, i], state[0, i + 1])
    laplacian_row(row_v, state[1, i - 1], state[1, i], state[1, i + 1])


@compiled
def numba_step(new, old, row_u, row_v, feed, kill):
    size = row_u.size
    for i in range(1, size + 1):
        laplacian_rows(row_u, row_v, old, i)
        u, v = old[0, i, 1:-1], old[1, i, 1:-1]
        new_u, new_v = new[0, i, 1:-1], new[1, i, 1:-1]
        for j in range(size):
            new_u[j] = u[j] + (DIFFUSION_U * row_u[j] - u[j] * v[j] * v[j] + feed * (1.0 - u[j]))
        for j in range(size):
            new_v[j] = v[j] + (DIFFUSION_V * row_v[j] + u[j] * v[j] * v[j] - (feed + kill) * v[j])
    wrap_border(new[0])
    wrap_border(new[1])


@compiled
def step_adjoint(new, ct, state, row_u, row_v, feed, kill):
    """The cotangents `new` of `state` from those of its successor; returns those of (F, k)."""
    size = row_u.size
    feed_ct = kill_ct = 0.0
    for i in range(1, size + 1):
        laplacian_rows(row_u, row_v, ct, i)
        u, v = state[0, i, 1:-1], state[1, i, 1:-1]
        ct_u, ct_v = ct[0, i, 1:-1], ct[1, i, 1:-1]
        new_u, new_v = new[0, i, 1:-1], new[1, i, 1:-1]
        for j in range(size):
            new_u[j] = (
                (1.0 - feed) * ct_u[j] + DIFFUSION_U * row_u[j] + (ct_v[j] - ct_u[j]) * v[j] * v[j]
            )
        for j in range(size):
            new_v[j] = (
                (1.0 - feed - kill) * ct_v[j]
                + DIFFUSION_V * row_v[j]
                + (ct_v[j] - ct_u[j]) * 2.0 * u[j] * v[j]
            )
        for j in range(size):
            feed_ct += ct_u[j] * (1.0 - u[j])
            kill_ct -= ct_v[j] * v[j]
    wrap_border(new[0])
    wrap_border(new[1])
    return feed_ct + kill_ct, kill_ct


@compiled
def advance(states, stop, row_u, row_v, feed, kill):
    for i in range(stop):
        numba_step(states[i + 1], states[i], row_u, row_v, feed, kill)


@compiled
def with_border(out, w):
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            out[i + 1, j + 1] = w[i, j]
    wrap_border(out)


@compiled
def copy_into(out, state):
    # A loop, since `out[:] = state` takes Numba over two seconds to compile.
    flat, source = out.reshape(-1), state.reshape(-1)
    for i in range(flat.size):
        flat[i] = source[i]


@compiled
def misfit(v, observed, ct_v):
    """The value; its cotangent goes to `ct_v`. Both v and ct_v have a border."""
    value = 0.0
    for i in range(observed.shape[0]):
        for j in range(observed.shape[1]):
            difference = v[i + 1, j + 1] - observed[i, j]
            value += difference * difference
            ct_v[i + 1, j + 1] = 2.0 * difference
    wrap_border(ct_v)
    return value


@compiled
def two_level(u0, v0, rates, observed, length, period):
    """Forward with a checkpoint every `period` steps; then block by block from its checkpoint.

    A period of `length` keeps every state in the one forward sweep: no step is run twice.
    """
    size = u0.shape[0]
    feed, kill = rates
    n_blocks = (length + period - 1) // period
    checkpoints = np.empty((n_blocks, 2, size + 2, size + 2))
    states = np.empty((period + 1, 2, size + 2, size + 2))
    row_u, row_v = np.empty(size), np.empty(size)
    with_border(states[0, 0], u0)
    with_border(states[0, 1], v0)
    stop = 0
    for block in range(n_blocks):
        copy_into(states[0], states[stop])
        copy_into(checkpoints[block], states[0])
        stop = min(period, length - block * period)
        advance(states, stop, row_u, row_v, feed, kill)
    ct, new_ct = np.zeros_like(states[0]), np.zeros_like(states[0])
    value = misfit(states[stop, 1], observed, ct[1])
    rates_ct = np.zeros(2)
    for block in range(n_blocks - 1, -1, -1):
        stop = min(period, length - block * period)
        if block < n_blocks - 1:
            copy_into(states[0], checkpoints[block])
            advance(states, stop - 1, row_u, row_v, feed, kill)
        for i in range(stop - 1, -1, -1):
            feed_ct, kill_ct = step_adjoint(new_ct, ct, states[i], row_u, row_v, feed, kill)
            rates_ct[0] += feed_ct
            rates_ct[1] += kill_ct
            ct, new_ct = new_ct, ct
    return value, ct, rates_ct


def build_numba(settings: Settings, store_all: bool) -> Gradient:
    length, observed = n_steps(settings), target(settings)
    period = length if store_all else max(1, round(length**0.5))

    def gradient(arrays):
        u, v, rates = arrays
        value, ct, rates_ct = two_level(u, v, tuple(rates), observed, length, period)
        return value, (ct[0, 1:-1, 1:-1], ct[1, 1:-1, 1:-1], rates_ct)

    return gradient


JAX_FORMS = {
    f"{scan}, {stencil}{', remat step' * remat_step}": partial(
        build_jax, levels=levels, stencil=stencil, remat_step=remat_step
    )
    for levels, scan in ((1, "scan"), (2, "nested scan"))
    for stencil in ("roll", "slices")
    for remat_step in (False, True)
}

CASE = Case(
    name="gray_scott",
    title="Gray-Scott on a periodic square: final misfit in the initial u, v and the rates F, k",
    defaults={"size": 256, "n_steps": 400},
    tiny={"size": 12, "n_steps": 10},
    inputs=inputs,
    steps=n_steps,
    cells=lambda settings: int(settings["size"]) ** 2,
    forms={
        "ckad": {
            "auto": build_ckad,
            "64 MiB": partial(build_ckad, memory="64 MiB"),
            "two-level": partial(build_ckad, memory="64 MiB", schedule="two_level"),
        },
        "jax": JAX_FORMS,
        "numba": {
            "two-level": partial(build_numba, store_all=False),
            "store-all": partial(build_numba, store_all=True),
        },
    },
)
