"""Lorenz's three equations under RK4: a tiny state and very many steps.

The value is the sum of squares of the final state. With the horizon fixed, sensitivities grow by
about e^9 whatever the number of steps, so gradients are comparable to ten digits and more.

Source: E. N. Lorenz, Deterministic nonperiodic flow, J. Atmos. Sci. 20 (1963), eq. 25-27.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit

from benchmarks.case import Case, Gradient, Inputs, Settings
from benchmarks.peers import ckad_builders


def inputs(settings: Settings) -> Inputs:
    """The initial state (x, y, z) and the parameters (sigma, rho, beta)."""
    return np.array([1.0, 1.0, 1.0]), np.array([10.0, 28.0, 8.0 / 3.0])


def n_steps(settings: Settings) -> int:
    return int(settings["n_steps"])


def step_size(settings: Settings) -> float:
    """The horizon in equal steps, but never a step beyond RK4's comfort."""
    return min(0.01, settings["horizon"] / settings["n_steps"])


def velocity(state, parameters):
    x, y, z = state
    sigma, rho, beta = parameters
    return sigma * (y - x), x * (rho - z) - y, x * y - beta * z


def along(state, h, slope):
    return tuple(s + h * k for s, k in zip(state, slope, strict=True))


def rk4(state, parameters, h):
    """One classical Runge-Kutta step on three scalars; ckad and JAX both trace it."""
    k1 = velocity(state, parameters)
    k2 = velocity(along(state, h / 2, k1), parameters)
    k3 = velocity(along(state, h / 2, k2), parameters)
    k4 = velocity(along(state, h, k3), parameters)
    mean = tuple(a + 2 * b + 2 * c + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
    return along(state, h / 6, mean)


# ckad --------------------------------------------------------------------------------------------


def ckad_value(settings: Settings) -> Callable:
    import ckad

    length, h = n_steps(settings), step_size(settings)

    def value(initial, parameters):
        constants = parameters[0], parameters[1], parameters[2]
        start = initial[0], initial[1], initial[2]
        x, y, z = ckad.fori_loop(0, length, lambda _, state: rk4(state, constants, h), start)
        return x * x + y * y + z * z

    return value


build_ckad, build_primal = ckad_builders(ckad_value, n_inputs=2)


# JAX and diffrax ---------------------------------------------------------------------------------


def build_jax(settings: Settings, levels: int, remat_step: bool, unroll: int = 1) -> Gradient:
    """A scan over the steps (levels=1), or over checkpointed blocks of about sqrt(n) of them."""
    import jax

    from benchmarks.peers import jax_gradient, jax_nested_scan

    length, h = n_steps(settings), step_size(settings)

    def value(initial, parameters):
        constants = parameters[0], parameters[1], parameters[2]

        def advance(state, _):
            return rk4(state, constants, h), None

        start = initial[0], initial[1], initial[2]
        x, y, z = jax_nested_scan(advance, start, length, levels, remat_step, unroll)
        return x * x + y * y + z * z

    return jax_gradient(jax, value, n_inputs=2)


def build_diffrax(settings: Settings, checkpoints: int | None = None) -> Gradient:
    import jax

    from benchmarks.peers import diffrax_rk4, jax_gradient

    length, h = n_steps(settings), step_size(settings)

    def value(initial, parameters):
        start = initial[0], initial[1], initial[2]
        constants = parameters[0], parameters[1], parameters[2]
        x, y, z = diffrax_rk4(velocity, start, constants, length, h, checkpoints)
        return x * x + y * y + z * z

    return jax_gradient(jax, value, n_inputs=2)


# CasADi and PyTorch ------------------------------------------------------------------------------


def build_casadi(settings: Settings, base: int, through_c: bool = False) -> Gradient:
    import casadi

    from benchmarks.peers import casadi_gradient, casadi_loop

    length, h = n_steps(settings), step_size(settings)

    def advance(state, parameters):
        return casadi.vertcat(*rk4(casadi.vertsplit(state), casadi.vertsplit(parameters), h))

    def value(initial, parameters):
        return casadi.sumsqr(casadi_loop(advance, initial, parameters, length, base))

    return casadi_gradient(value, inputs(settings), through_c)


def build_torch(settings: Settings) -> Gradient:
    from benchmarks.peers import torch_gradient

    length, h = n_steps(settings), step_size(settings)

    def value(initial, parameters):
        state, constants = initial.unbind(), parameters.unbind()
        for _ in range(length):
            state = rk4(state, constants, h)
        return sum(s * s for s in state)

    return torch_gradient(value)


# Numba, the adjoint by hand ----------------------------------------------------------------------

# A hand-written kernel may let the compiler contract a*b+c: nothing else must match it bit by bit.
inline = njit(inline="always", error_model="numpy", fastmath={"contract"})
compiled = njit(error_model="numpy", fastmath={"contract"})


@inline
def slope(x, y, z, sigma, rho, beta):
    return sigma * (y - x), x * (rho - z) - y, x * y - beta * z


@inline
def stage_points(x, y, z, sigma, rho, beta, h):
    """The points of stages 2 to 4, which the reverse of a step needs again."""
    ax, ay, az = slope(x, y, z, sigma, rho, beta)
    x2, y2, z2 = x + 0.5 * h * ax, y + 0.5 * h * ay, z + 0.5 * h * az
    bx, by, bz = slope(x2, y2, z2, sigma, rho, beta)
    x3, y3, z3 = x + 0.5 * h * bx, y + 0.5 * h * by, z + 0.5 * h * bz
    cx, cy, cz = slope(x3, y3, z3, sigma, rho, beta)
    x4, y4, z4 = x + h * cx, y + h * cy, z + h * cz
    partial_sum = ax + 2 * (bx + cx), ay + 2 * (by + cy), az + 2 * (bz + cz)
    return (x2, y2, z2), (x3, y3, z3), (x4, y4, z4), partial_sum


@inline
def numba_step(x, y, z, sigma, rho, beta, h):
    _, _, (x4, y4, z4), (sx, sy, sz) = stage_points(x, y, z, sigma, rho, beta, h)
    dx, dy, dz = slope(x4, y4, z4, sigma, rho, beta)
    w = h / 6
    return x + w * (sx + dx), y + w * (sy + dy), z + w * (sz + dz)


@inline
def slope_adjoint(x, y, z, sigma, rho, beta, a, b, c):
    """Cotangents of (x, y, z) and of (sigma, rho, beta) from those of the slope."""
    state = (rho - z) * b - sigma * a + y * c, sigma * a - b + x * c, -x * b - beta * c
    return state, ((y - x) * a, x * b, -z * c)


@inline
def step_adjoint(x, y, z, sigma, rho, beta, h, lx, ly, lz):
    (x2, y2, z2), (x3, y3, z3), (x4, y4, z4), _ = stage_points(x, y, z, sigma, rho, beta, h)
    wx, wy, wz = h / 6 * lx, h / 6 * ly, h / 6 * lz
    (qx, qy, qz), (s4, r4, b4) = slope_adjoint(x4, y4, z4, sigma, rho, beta, wx, wy, wz)
    (rx, ry, rz), (s3, r3, b3) = slope_adjoint(
        x3, y3, z3, sigma, rho, beta, 2 * wx + h * qx, 2 * wy + h * qy, 2 * wz + h * qz
    )
    k = 0.5 * h
    (tx, ty, tz), (s2, r2, b2) = slope_adjoint(
        x2, y2, z2, sigma, rho, beta, 2 * wx + k * rx, 2 * wy + k * ry, 2 * wz + k * rz
    )
    (ux, uy, uz), (s1, r1, b1) = slope_adjoint(
        x, y, z, sigma, rho, beta, wx + k * tx, wy + k * ty, wz + k * tz
    )
    state = lx + qx + rx + tx + ux, ly + qy + ry + ty + uy, lz + qz + rz + tz + uz
    return state, (s1 + s2 + s3 + s4, r1 + r2 + r3 + r4, b1 + b2 + b3 + b4)


@compiled
def two_level(initial, parameters, length, h, period):
    """Forward with a checkpoint every `period` steps; then block by block from its checkpoint.

    A period of `length` keeps every state in the one forward sweep: no step is run twice.
    """
    sigma, rho, beta = parameters
    n_blocks = (length + period - 1) // period
    checkpoints = np.empty((n_blocks, 3))
    states = np.empty((min(period, length), 3))
    x, y, z = initial
    for block in range(n_blocks):
        checkpoints[block, 0], checkpoints[block, 1], checkpoints[block, 2] = x, y, z
        for i in range(min(period, length - block * period)):
            if block == n_blocks - 1:
                states[i, 0], states[i, 1], states[i, 2] = x, y, z
            x, y, z = numba_step(x, y, z, sigma, rho, beta, h)
    value = x * x + y * y + z * z
    lx, ly, lz = 2 * x, 2 * y, 2 * z
    sigma_bar = rho_bar = beta_bar = 0.0
    for block in range(n_blocks - 1, -1, -1):
        stop = min(period, length - block * period)
        if block < n_blocks - 1:
            x, y, z = checkpoints[block]
            states[0, 0], states[0, 1], states[0, 2] = x, y, z
            for i in range(1, stop):
                x, y, z = numba_step(x, y, z, sigma, rho, beta, h)
                states[i, 0], states[i, 1], states[i, 2] = x, y, z
        for i in range(stop - 1, -1, -1):
            x, y, z = states[i, 0], states[i, 1], states[i, 2]
            (lx, ly, lz), (ds, dr, db) = step_adjoint(x, y, z, sigma, rho, beta, h, lx, ly, lz)
            sigma_bar, rho_bar, beta_bar = sigma_bar + ds, rho_bar + dr, beta_bar + db
    return value, np.array([lx, ly, lz]), np.array([sigma_bar, rho_bar, beta_bar])


def build_numba(settings: Settings, store_all: bool) -> Gradient:
    length, h = n_steps(settings), step_size(settings)
    period = length if store_all else max(1, round(length**0.5))

    def gradient(arrays):
        initial, parameters = (tuple(array) for array in arrays)
        value, *cotangents = two_level(initial, parameters, length, h, period)
        return value, tuple(cotangents)

    return gradient


CASE = Case(
    name="lorenz63",
    title="Lorenz-63, RK4: final sum of squares in the initial state and the three parameters",
    defaults={"n_steps": 1_000_000, "horizon": 10.0},
    tiny={"n_steps": 200, "horizon": 10.0},
    inputs=inputs,
    steps=n_steps,
    cells=lambda settings: 1,
    forms={
        "ckad": {
            "auto": build_ckad,
            "1 MiB": partial(build_ckad, memory="1 MiB"),
            "two-level": partial(build_ckad, memory="1 MiB", schedule="two_level"),
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
        "torch": {"eager loop": build_torch},
    },
    primal=build_primal,
    cache_settings={"n_steps": 10_000},
    shorter={"diffrax": {"n_steps": 100_000}, "torch": {"n_steps": 1000}},
    also=("1 MiB",),
)
