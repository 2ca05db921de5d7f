"""Lorenz's ring of 40 variables under RK4: a small vector and very many steps.

The value is the sum of squares of the final state. The horizon is fixed and short, so that
sensitivities grow by a few thousand and gradients stay comparable to ten digits and more.

Source: E. N. Lorenz, Predictability: a problem partly solved, Proc. ECMWF seminar (1996), eq. 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit

from benchmarks.case import Case, Gradient, Inputs, Settings
from benchmarks.peers import ckad_builders


def inputs(settings: Settings) -> Inputs:
    """The initial state and the forcing F."""
    size = int(settings["size"])
    return 8.0 + np.sin(1.0 + np.arange(size) ** 1.5), np.array([8.0])


def n_steps(settings: Settings) -> int:
    return int(settings["n_steps"])


def step_size(settings: Settings) -> float:
    """The horizon in equal steps, but never a step beyond RK4's comfort."""
    return min(0.02, settings["horizon"] / settings["n_steps"])


def rk4(velocity, x, h):
    """One classical Runge-Kutta step; ckad, JAX and CasADi all trace it."""
    k1 = velocity(x)
    k2 = velocity(x + h / 2 * k1)
    k3 = velocity(x + h / 2 * k2)
    k4 = velocity(x + h * k3)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def velocity_by_roll(x, forcing, roll):
    return (roll(x, -1) - roll(x, 2)) * roll(x, 1) - x + forcing


# ckad --------------------------------------------------------------------------------------------


def ckad_value(settings: Settings) -> Callable:
    import ckad

    length, h = n_steps(settings), step_size(settings)

    def value(initial, forcing):
        def advance(_, x):
            return rk4(lambda point: velocity_by_roll(point, forcing, np.roll), x, h)

        x = ckad.fori_loop(0, length, advance, initial)
        return np.sum(x * x)

    return value


build_ckad, build_primal = ckad_builders(ckad_value, n_inputs=2)


# JAX ---------------------------------------------------------------------------------------------


def build_jax(
    settings: Settings, levels: int, remat_step: bool, stencil: str, unroll: int = 1
) -> Gradient:
    """A scan over the steps (levels=1), or over checkpointed blocks of about sqrt(n) of them."""
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient, jax_nested_scan

    length, h = n_steps(settings), step_size(settings)

    def velocity_by_slices(x, forcing):
        x = jnp.concatenate([x[-2:], x, x[:1]])
        return (x[3:] - x[:-3]) * x[1:-2] - x[2:-1] + forcing

    rolled = partial(velocity_by_roll, roll=jnp.roll)
    velocity = {"roll": rolled, "slices": velocity_by_slices}[stencil]

    def value(initial, forcing):
        def advance(x, _):
            return rk4(lambda point: velocity(point, forcing), x, h), None

        x = jax_nested_scan(advance, initial, length, levels, remat_step, unroll)
        return jnp.sum(x * x)

    return jax_gradient(jax, value, n_inputs=2)


# CasADi ------------------------------------------------------------------------------------------


def build_casadi(settings: Settings, base: int, through_c: bool = False) -> Gradient:
    import casadi

    from benchmarks.peers import casadi_gradient, casadi_loop

    length, h = n_steps(settings), step_size(settings)

    def roll(x, shift):
        return casadi.vertcat(x[-shift:], x[:-shift])

    def advance(x, forcing):
        return rk4(lambda point: velocity_by_roll(point, forcing, roll), x, h)

    def value(initial, forcing):
        return casadi.sumsqr(casadi_loop(advance, initial, forcing, length, base))

    return casadi_gradient(value, inputs(settings), through_c)


# Numba, the adjoint by hand ----------------------------------------------------------------------
# A state is stored with two entries from the other side at either end, so that no index wraps. A
# step is far too short to pay for views of rows: the work arrays are handed down one by one.

compiled = njit(error_model="numpy", fastmath={"contract", "reassoc"})


@compiled
def wrap(x):
    n = x.size - 4
    x[0], x[1], x[n + 2], x[n + 3] = x[n], x[n + 1], x[2], x[3]


@compiled
def stage(new, x, weight, point, forcing):
    """new = x + weight * velocity(point)."""
    for i in range(x.size - 4):
        change = (point[i + 3] - point[i]) * point[i + 1] - point[i + 2] + forcing
        new[i + 2] = x[i + 2] + weight * change
    wrap(new)


@compiled
def stages(x, a, b, c, h, forcing):
    """The points of stages 2 to 4, which the reverse of a step needs again."""
    stage(a, x, 0.5 * h, x, forcing)
    stage(b, x, 0.5 * h, a, forcing)
    stage(c, x, h, b, forcing)


@compiled
def numba_step(x, a, b, c, mean, h, forcing):
    """The slopes' weighted mean is taken from the points: h k1 = 2 (a - x), and so on."""
    stages(x, a, b, c, h, forcing)
    third = 1.0 / 3.0
    for i in range(x.size):
        mean[i] = third * (a[i] - x[i] + 2.0 * b[i] + c[i])
    stage(x, mean, h / 6, c, forcing)


@compiled
def slope_ct(out, a, ct, b, ct_point):
    """out = a * ct + b * ct_point: the cotangent of a slope."""
    for i in range(out.size):
        out[i] = a * ct[i] + b * ct_point[i]
    wrap(out)


@compiled
def velocity_adjoint(ct_point, point, ct_slope):
    for i in range(point.size - 4):
        ct_point[i + 2] = (
            ct_slope[i + 1] * point[i]
            + ct_slope[i + 3] * (point[i + 4] - point[i + 1])
            - ct_slope[i + 4] * point[i + 3]
            - ct_slope[i + 2]
        )


@compiled
def stage_adjoint(total, ct_point, ct_slope, point, a, ct, b, forcing_ct):
    """Adds to `total` the cotangent of the state through a stage's point; returns the forcing's."""
    slope_ct(ct_slope, a, ct, b, ct_point)
    velocity_adjoint(ct_point, point, ct_slope)
    for i in range(total.size):
        total[i] += ct_point[i]
    for i in range(total.size - 4):
        forcing_ct += ct_slope[i + 2]
    return forcing_ct


@compiled
def step_adjoint(ct, x, a, b, c, total, ct_slope, ct_point, h, forcing, forcing_ct):
    """Turns `ct` into the cotangent of `x`; returns the forcing's."""
    stages(x, a, b, c, h, forcing)
    copy_into(total, ct)
    forcing_ct = stage_adjoint(total, ct_point, ct_slope, c, h / 6, ct, 0.0, forcing_ct)
    forcing_ct = stage_adjoint(total, ct_point, ct_slope, b, h / 3, ct, h, forcing_ct)
    forcing_ct = stage_adjoint(total, ct_point, ct_slope, a, h / 3, ct, 0.5 * h, forcing_ct)
    forcing_ct = stage_adjoint(total, ct_point, ct_slope, x, h / 6, ct, 0.5 * h, forcing_ct)
    copy_into(ct, total)
    return forcing_ct


@compiled
def copy_into(out, x):
    for i in range(out.size):
        out[i] = x[i]


@compiled
def store(states, row, x):
    for i in range(x.size):
        states[row, i] = x[i]


@compiled
def load(x, states, row):
    for i in range(x.size):
        x[i] = states[row, i]


@compiled
def two_level(initial, forcing, length, h, period):
    """Forward with a checkpoint every `period` steps; then block by block from its checkpoint.

    A period of `length` keeps every state in the one forward sweep: no step is run twice.
    """
    width = initial.size + 4
    n_blocks = (length + period - 1) // period
    checkpoints, states = np.empty((n_blocks, width)), np.empty((period, width))
    a, b, c, x = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    total, ct_slope, ct_point = np.zeros(width), np.zeros(width), np.zeros(width)
    x[2:-2] = initial
    wrap(x)
    for block in range(n_blocks):
        store(checkpoints, block, x)
        for i in range(min(period, length - block * period)):
            if block == n_blocks - 1:
                store(states, i, x)
            numba_step(x, a, b, c, total, h, forcing)
    value, forcing_ct = np.sum(x[2:-2] * x[2:-2]), 0.0
    ct = 2.0 * x
    for block in range(n_blocks - 1, -1, -1):
        stop = min(period, length - block * period)
        if block < n_blocks - 1:
            load(x, checkpoints, block)
            store(states, 0, x)
            for i in range(1, stop):
                numba_step(x, a, b, c, total, h, forcing)
                store(states, i, x)
        for i in range(stop - 1, -1, -1):
            load(x, states, i)
            forcing_ct = step_adjoint(
                ct, x, a, b, c, total, ct_slope, ct_point, h, forcing, forcing_ct
            )
    return value, ct[2:-2], np.array([forcing_ct])


def build_numba(settings: Settings, store_all: bool) -> Gradient:
    length, h = n_steps(settings), step_size(settings)
    period = length if store_all else max(1, round(length**0.5))

    def gradient(arrays):
        initial, (forcing,) = arrays
        value, *cotangents = two_level(initial, forcing, length, h, period)
        return value, tuple(cotangents)

    return gradient


JAX_FORMS = {
    f"{scan}, {stencil}{', remat step' * remat_step}": partial(
        build_jax, levels=levels, stencil=stencil, remat_step=remat_step
    )
    for levels, scan in ((1, "scan"), (2, "nested scan"))
    for stencil in ("slices", "roll")
    for remat_step in (True, False)
} | {
    "scan, slices, remat step, unroll 4": partial(
        build_jax, levels=1, stencil="slices", remat_step=True, unroll=4
    )
}

CASE = Case(
    name="lorenz96",
    title="Lorenz-96 with 40 variables, RK4: final sum of squares in the initial state and forcing",
    defaults={"size": 40, "n_steps": 10_000, "horizon": 2.0},
    tiny={"size": 40, "n_steps": 100, "horizon": 2.0},
    inputs=inputs,
    steps=n_steps,
    cells=lambda settings: int(settings["size"]),
    forms={
        "ckad": {
            "auto": build_ckad,
            "1 MiB": partial(build_ckad, memory="1 MiB"),
            "64 MiB": partial(build_ckad, memory="64 MiB"),
            "vm": partial(build_ckad, engine="vm"),
        },
        "jax": JAX_FORMS,
        "numba": {
            "two-level": partial(build_numba, store_all=False),
            "store-all": partial(build_numba, store_all=True),
        },
        "casadi": {
            "mapaccum, base 100": partial(build_casadi, base=100),
            "mapaccum, base 1000": partial(build_casadi, base=1000),
            "mapaccum, base 100, C": partial(build_casadi, base=100, through_c=True),
        },
    },
    primal=build_primal,
    cache_settings={"n_steps": 100},
)
