"""Van der Pol's oscillator under RK4: two scalars and very many steps.

The value is the sum of squares of the final state. The horizon is fixed: about three turns of the
limit cycle, on which the memory of the initial amplitude fades and that of the phase remains.

Source: B. van der Pol, On relaxation-oscillations, Phil. Mag. 2 (1926).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit

from benchmarks.case import Case, Gradient, Inputs, Settings
from benchmarks.peers import ckad_builders


def inputs(settings: Settings) -> Inputs:
    """The initial (x, dx/dt) and the damping mu."""
    return np.array([0.5, 0.25]), np.array([1.2])


def n_steps(settings: Settings) -> int:
    return int(settings["n_steps"])


def step_size(settings: Settings) -> float:
    """The horizon in equal steps, but never a step beyond RK4's comfort."""
    return min(0.02, settings["horizon"] / settings["n_steps"])


def velocity(state, mu):
    x, y = state
    return y, mu * (1.0 - x * x) * y - x


def along(state, h, slope):
    return tuple(s + h * k for s, k in zip(state, slope, strict=True))


def rk4(state, mu, h):
    """One classical Runge-Kutta step on two scalars; ckad, JAX and CasADi all trace it."""
    k1 = velocity(state, mu)
    k2 = velocity(along(state, h / 2, k1), mu)
    k3 = velocity(along(state, h / 2, k2), mu)
    k4 = velocity(along(state, h, k3), mu)
    mean = tuple(a + 2 * b + 2 * c + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
    return along(state, h / 6, mean)


# ckad --------------------------------------------------------------------------------------------


def ckad_value(settings: Settings) -> Callable:
    import ckad

    length, h = n_steps(settings), step_size(settings)

    def value(initial, damping):
        mu, start = damping[0], (initial[0], initial[1])
        x, y = ckad.fori_loop(0, length, lambda _, state: rk4(state, mu, h), start)
        return x * x + y * y

    return value


build_ckad, build_primal = ckad_builders(ckad_value, n_inputs=2)


# JAX ---------------------------------------------------------------------------------------------


def build_jax(settings: Settings, levels: int, remat_step: bool, unroll: int = 1) -> Gradient:
    """A scan over the steps (levels=1), or over checkpointed blocks of about sqrt(n) of them."""
    import jax

    from benchmarks.peers import jax_gradient, jax_nested_scan

    length, h = n_steps(settings), step_size(settings)

    def value(initial, damping):
        mu, start = damping[0], (initial[0], initial[1])

        def advance(state, _):
            return rk4(state, mu, h), None

        x, y = jax_nested_scan(advance, start, length, levels, remat_step, unroll)
        return x * x + y * y

    return jax_gradient(jax, value, n_inputs=2)


# diffrax and CasADi ------------------------------------------------------------------------------


def build_diffrax(settings: Settings, checkpoints: int | None = None) -> Gradient:
    import jax

    from benchmarks.peers import diffrax_rk4, jax_gradient

    length, h = n_steps(settings), step_size(settings)

    def value(initial, damping):
        start = initial[0], initial[1]
        x, y = diffrax_rk4(velocity, start, damping[0], length, h, checkpoints)
        return x * x + y * y

    return jax_gradient(jax, value, n_inputs=2)


def build_casadi(settings: Settings, base: int, through_c: bool = False) -> Gradient:
    import casadi

    from benchmarks.peers import casadi_gradient, casadi_loop

    length, h = n_steps(settings), step_size(settings)

    def advance(state, mu):
        return casadi.vertcat(*rk4((state[0], state[1]), mu, h))

    def value(initial, mu):
        return casadi.sumsqr(casadi_loop(advance, initial, mu, length, base))

    return casadi_gradient(value, inputs(settings), through_c)


# Numba, the adjoint by hand ----------------------------------------------------------------------

# A hand-written kernel may let the compiler contract a*b+c: nothing else must match it bit by bit.
inline = njit(inline="always", error_model="numpy", fastmath={"contract"})
compiled = njit(error_model="numpy", fastmath={"contract"})


@inline
def slope(x, y, mu):
    return y, mu * (1.0 - x * x) * y - x


@inline
def stage_points(x, y, mu, h):
    """The points of stages 2 to 4, which the reverse of a step needs again."""
    ax, ay = slope(x, y, mu)
    x2, y2 = x + 0.5 * h * ax, y + 0.5 * h * ay
    bx, by = slope(x2, y2, mu)
    x3, y3 = x + 0.5 * h * bx, y + 0.5 * h * by
    cx, cy = slope(x3, y3, mu)
    x4, y4 = x + h * cx, y + h * cy
    return (x2, y2), (x3, y3), (x4, y4), (ax + 2 * (bx + cx), ay + 2 * (by + cy))


@inline
def numba_step(x, y, mu, h):
    _, _, (x4, y4), (sx, sy) = stage_points(x, y, mu, h)
    dx, dy = slope(x4, y4, mu)
    return x + h / 6 * (sx + dx), y + h / 6 * (sy + dy)


@inline
def slope_adjoint(x, y, mu, a, b):
    """Cotangents of (x, y) and of mu from those of the slope."""
    gain = 1.0 - x * x
    return -(2 * mu * x * y + 1.0) * b, a + mu * gain * b, gain * y * b


@inline
def step_adjoint(x, y, mu, h, lx, ly):
    (x2, y2), (x3, y3), (x4, y4), _ = stage_points(x, y, mu, h)
    wx, wy, k = h / 6 * lx, h / 6 * ly, 0.5 * h
    qx, qy, m4 = slope_adjoint(x4, y4, mu, wx, wy)
    rx, ry, m3 = slope_adjoint(x3, y3, mu, 2 * wx + h * qx, 2 * wy + h * qy)
    tx, ty, m2 = slope_adjoint(x2, y2, mu, 2 * wx + k * rx, 2 * wy + k * ry)
    ux, uy, m1 = slope_adjoint(x, y, mu, wx + k * tx, wy + k * ty)
    return lx + qx + rx + tx + ux, ly + qy + ry + ty + uy, m1 + m2 + m3 + m4


@compiled
def two_level(x, y, mu, length, h, period):
    """Forward with a checkpoint every `period` steps; then block by block from its checkpoint.

    A period of `length` keeps every state in the one forward sweep: no step is run twice.
    """
    n_blocks = (length + period - 1) // period
    checkpoints = np.empty((n_blocks, 2))
    states = np.empty((min(period, length), 2))
    for block in range(n_blocks):
        checkpoints[block, 0], checkpoints[block, 1] = x, y
        for i in range(min(period, length - block * period)):
            if block == n_blocks - 1:
                states[i, 0], states[i, 1] = x, y
            x, y = numba_step(x, y, mu, h)
    value = x * x + y * y
    lx, ly, mu_bar = 2 * x, 2 * y, 0.0
    for block in range(n_blocks - 1, -1, -1):
        stop = min(period, length - block * period)
        if block < n_blocks - 1:
            x, y = checkpoints[block]
            states[0, 0], states[0, 1] = x, y
            for i in range(1, stop):
                x, y = numba_step(x, y, mu, h)
                states[i, 0], states[i, 1] = x, y
        for i in range(stop - 1, -1, -1):
            lx, ly, change = step_adjoint(states[i, 0], states[i, 1], mu, h, lx, ly)
            mu_bar += change
    return value, np.array([lx, ly]), np.array([mu_bar])


def build_numba(settings: Settings, store_all: bool) -> Gradient:
    length, h = n_steps(settings), step_size(settings)
    period = length if store_all else max(1, round(length**0.5))

    def gradient(arrays):
        (x, y), (mu,) = arrays
        value, *cotangents = two_level(x, y, mu, length, h, period)
        return value, tuple(cotangents)

    return gradient


CASE = Case(
    name="van_der_pol",
    title="Van der Pol, RK4: final sum of squares in the initial state and the damping",
    defaults={"n_steps": 100_000, "horizon": 20.0},
    tiny={"n_steps": 200, "horizon": 20.0},
    inputs=inputs,
    steps=n_steps,
    cells=lambda settings: 1,
    forms={
        "ckad": {
            "auto": build_ckad,
            "1 MiB": partial(build_ckad, memory="1 MiB"),
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
        "numba": {
            "two-level": partial(build_numba, store_all=False),
            "store-all": partial(build_numba, store_all=True),
        },
        "casadi": {
            "mapaccum, base 100": partial(build_casadi, base=100),
            "mapaccum, base 1000": partial(build_casadi, base=1000),
            "mapaccum, base 100, C": partial(build_casadi, base=100, through_c=True),
        },
        "diffrax": {"RK4, recursive checkpoints": build_diffrax},
    },
    primal=build_primal,
    cache_settings={"n_steps": 2_000},
    shorter={"diffrax": {"n_steps": 10_000}},
)
