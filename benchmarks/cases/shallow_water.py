"""Shallow water on a periodic square: three fields on a staggered grid, forward-backward in time.

The value is the sum of squares of the final elevation minus a target. Velocities lie on the faces
between cells (Arakawa's C grid) and are advanced first; the elevation follows from the new ones.
Lengths in units of dx, times of dt; arrays of size x size.

Source: F. Mesinger and A. Arakawa, Numerical Methods Used in Atmospheric Models, GARP Publications
17 (1976), chapters III and IV.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings
from benchmarks.peers import ckad_builders
from benchmarks.two_level import compiled, period_of, two_level, wrap_border

GRAVITY = 0.1


def inputs(settings: Settings) -> Inputs:
    """The initial elevation (a hump), the depth at rest and the friction (one entry)."""
    size = int(settings["size"])
    noise = np.random.default_rng(76).uniform(-0.01, 0.01, (2, size, size))
    x = np.arange(size) / size - 0.4
    hump = np.exp(-30.0 * (x[:, None] ** 2 + x**2))
    slope = 1.0 + 0.2 * np.outer(np.cos(2 * np.pi * x), np.sin(2 * np.pi * x))
    return 0.2 * hump + noise[0], slope + noise[1], np.array([0.01])


def target(settings: Settings) -> np.ndarray:
    size = int(settings["size"])
    return 0.02 * np.add.outer(np.arange(size) % 5, np.arange(size) % 7)


def n_steps(settings: Settings) -> int:
    return int(settings["n_steps"])


def face_depths(depth, east, _west, south, _north):
    """Sums over the two cells beside each face of u and of v."""
    return depth + east(depth), depth + south(depth)


def flow(state, depths, friction, east, west, south, north):
    """One step; the last four shift a field so that each cell sees that neighbour."""
    elevation, u, v = state
    to_east, to_south = east(elevation), south(elevation)
    u = (1.0 - friction) * u - GRAVITY * (to_east - elevation)
    v = (1.0 - friction) * v - GRAVITY * (to_south - elevation)
    flux_x = 0.5 * u * (depths[0] + elevation + to_east)
    flux_y = 0.5 * v * (depths[1] + elevation + to_south)
    return elevation - (flux_x - west(flux_x) + flux_y - north(flux_y)), u, v


def by_roll(roll):
    """The four shifts, by np.roll or what does the same."""
    return tuple(partial(shifted, roll=roll, by=by, axis=axis) for axis in (1, 0) for by in (-1, 1))


def shifted(w, roll, by, axis):
    return roll(w, by, axis)


# ckad --------------------------------------------------------------------------------------------


def ckad_value(settings: Settings) -> Callable:
    import ckad

    length, observed = n_steps(settings), target(settings)
    shifts = by_roll(np.roll)

    def value(elevation, depth, friction):
        rest = np.zeros(depth.shape)
        depths = face_depths(depth, *shifts)

        def advance(_, state):
            return flow(state, depths, friction[0], *shifts)

        elevation, _, _ = ckad.fori_loop(0, length, advance, (elevation, rest, rest))
        return np.sum((elevation - observed) ** 2)

    return value


build_ckad, build_primal = ckad_builders(ckad_value, n_inputs=3)


# JAX and PyTorch ---------------------------------------------------------------------------------


def build_jax(settings: Settings, levels: int, remat_step: bool) -> Gradient:
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient, jax_nested_scan

    length, observed = n_steps(settings), target(settings)
    shifts = by_roll(jnp.roll)

    def value(elevation, depth, friction):
        rest = jnp.zeros(depth.shape)
        depths = face_depths(depth, *shifts)

        def advance(state, _):
            return flow(state, depths, friction[0], *shifts), None

        elevation, _, _ = jax_nested_scan(
            advance, (elevation, rest, rest), length, levels, remat_step
        )
        return jnp.sum((elevation - observed) ** 2)

    return jax_gradient(jax, value, n_inputs=3)


def build_torch(settings: Settings) -> Gradient:
    import torch

    from benchmarks.peers import torch_gradient

    length, observed = n_steps(settings), torch.tensor(target(settings))
    shifts = by_roll(torch.roll)

    def value(elevation, depth, friction):
        state = elevation, torch.zeros_like(depth), torch.zeros_like(depth)
        depths = face_depths(depth, *shifts)
        for _ in range(length):
            state = flow(state, depths, friction[0], *shifts)
        return torch.sum((state[0] - observed) ** 2)

    return torch_gradient(value)


# Numba, the adjoint by hand ----------------------------------------------------------------------
# Fields have a border that repeats the other side. Face [i, j] of u lies between cells [i, j] and
# [i, j + 1], that of v between [i, j] and [i + 1, j]. What a row needs lies in a temporary; what
# the next row needs too, in two that take turns. No loop writes more than one array, so that each
# is vectorised.


@compiled
def u_row(new_u, flux, elevation, u, depth, keep, i):
    for j in range(u.shape[1] - 1):
        slope = elevation[i, j + 1] - elevation[i, j]
        new_u[i, j] = keep * u[i, j] - GRAVITY * slope
    for j in range(u.shape[1] - 1):
        height = elevation[i, j] + elevation[i, j + 1] + depth[i, j] + depth[i, j + 1]
        flux[j] = 0.5 * new_u[i, j] * height


@compiled
def v_row(new_v, flux, elevation, v, depth, keep, i):
    place = i % 2
    for j in range(v.shape[1]):
        slope = elevation[i + 1, j] - elevation[i, j]
        new_v[i, j] = keep * v[i, j] - GRAVITY * slope
    for j in range(v.shape[1]):
        height = elevation[i, j] + elevation[i + 1, j] + depth[i, j] + depth[i + 1, j]
        flux[place, j] = 0.5 * new_v[i, j] * height


@compiled
def elevation_row(new, old, flux_x, flux_y, i):
    place, above = i % 2, (i + 1) % 2
    for j in range(1, old.shape[1] - 1):
        new[i, j] = old[i, j] - (flux_x[j] - flux_x[j - 1] + flux_y[place, j] - flux_y[above, j])


@compiled
def numba_step(new, old, _older, _i, parameters):
    depth, friction, ((flux_x, _), (flux_y, _)), _, _, _ = parameters
    keep = 1.0 - friction[0]
    elevation, u, v = old[0], old[1], old[2]
    new_elevation, new_u, new_v = new[0], new[1], new[2]
    v_row(new_v, flux_y, elevation, v, depth, keep, 0)
    for i in range(1, depth.shape[0] - 1):
        u_row(new_u, flux_x, elevation, u, depth, keep, i)
        v_row(new_v, flux_y, elevation, v, depth, keep, i)
        elevation_row(new_elevation, elevation, flux_x, flux_y, i)
    wrap_border(new_elevation)
    wrap_border(new_u)
    wrap_border(new_v)


@compiled
def u_ct_row(new_u_ct, height_ct, ct, u_ct, elevation, u, depth, keep, i):
    """Cotangents of the new u, and of the heights beside it through the flux."""
    for j in range(u.shape[1] - 1):
        height = elevation[i, j] + elevation[i, j + 1] + depth[i, j] + depth[i, j + 1]
        new_u_ct[j] = u_ct[i, j] + 0.5 * (ct[i, j + 1] - ct[i, j]) * height
    for j in range(u.shape[1] - 1):
        new_u = keep * u[i, j] - GRAVITY * (elevation[i, j + 1] - elevation[i, j])
        height_ct[j] = 0.5 * (ct[i, j + 1] - ct[i, j]) * new_u


@compiled
def v_ct_row(new_v_ct, height_ct, ct, v_ct, elevation, v, depth, keep, i):
    place = i % 2
    for j in range(v.shape[1]):
        height = elevation[i, j] + elevation[i + 1, j] + depth[i, j] + depth[i + 1, j]
        new_v_ct[place, j] = v_ct[i, j] + 0.5 * (ct[i + 1, j] - ct[i, j]) * height
    for j in range(v.shape[1]):
        new_v = keep * v[i, j] - GRAVITY * (elevation[i + 1, j] - elevation[i, j])
        height_ct[place, j] = 0.5 * (ct[i + 1, j] - ct[i, j]) * new_v


@compiled
def elevation_ct_row(new_ct, depth_ct, ct, east, east_h, south, south_h, i):
    place, above = i % 2, (i + 1) % 2
    for j in range(1, ct.shape[1] - 1):
        depth_ct[i, j] += east_h[j - 1] + east_h[j] + south_h[above, j] + south_h[place, j]
    for j in range(1, ct.shape[1] - 1):
        height_ct = east_h[j - 1] + east_h[j] + south_h[above, j] + south_h[place, j]
        pushed = east[j] - east[j - 1] + south[place, j] - south[above, j]
        new_ct[i, j] = ct[i, j] + height_ct + GRAVITY * pushed


@compiled
def old_velocity_ct_rows(new_u, new_v, u, v, east, south, keep, i):
    """Writes the old velocities' cotangents; returns that of `keep`."""
    place = i % 2
    keep_ct = 0.0
    for j in range(1, u.shape[1] - 1):
        new_u[i, j] = keep * east[j]
    for j in range(1, u.shape[1] - 1):
        new_v[i, j] = keep * south[place, j]
    for j in range(1, u.shape[1] - 1):
        keep_ct += u[i, j] * east[j] + v[i, j] * south[place, j]
    return keep_ct


@compiled
def step_adjoint(new_ct, ct, _newer_ct, old, _i, parameters):
    depth, friction, ((east, east_h), (south, south_h)), depth_ct, friction_ct, _ = parameters
    elevation, u, v = old[0], old[1], old[2]
    elevation_ct, u_ct, v_ct = ct[0], ct[1], ct[2]
    new_elevation_ct, new_u_ct, new_v_ct = new_ct[0], new_ct[1], new_ct[2]
    keep, keep_ct = 1.0 - friction[0], 0.0
    v_ct_row(south, south_h, elevation_ct, v_ct, elevation, v, depth, keep, 0)
    for i in range(1, depth.shape[0] - 1):
        u_ct_row(east, east_h, elevation_ct, u_ct, elevation, u, depth, keep, i)
        v_ct_row(south, south_h, elevation_ct, v_ct, elevation, v, depth, keep, i)
        elevation_ct_row(new_elevation_ct, depth_ct, elevation_ct, east, east_h, south, south_h, i)
        keep_ct += old_velocity_ct_rows(new_u_ct, new_v_ct, u, v, east, south, keep, i)
    friction_ct[0] -= keep_ct
    wrap_border(new_elevation_ct)
    wrap_border(new_u_ct)
    wrap_border(new_v_ct)


@compiled
def misfit(ct, last, parameters):
    observed = parameters[-1]
    elevation, elevation_ct = last[0], ct[0]
    value = 0.0
    for i in range(observed.shape[0]):
        for j in range(observed.shape[1]):
            difference = elevation[i + 1, j + 1] - observed[i, j]
            value += difference * difference
            elevation_ct[i + 1, j + 1] = 2.0 * difference
    wrap_border(elevation_ct)
    return value


def build_numba(settings: Settings, store_all: bool) -> Gradient:
    length, observed = n_steps(settings), target(settings)
    period = period_of(length, store_all)

    def gradient(arrays):
        elevation, depth, friction = arrays
        size = depth.shape[0]
        start = np.zeros((1, 3, size + 2, size + 2))
        start[0, 0] = np.pad(elevation, 1, "wrap")
        depth_ct, friction_ct = np.zeros((size + 2, size + 2)), np.zeros(1)
        rows = tuple(np.empty((2, size + 2))), tuple(np.empty((2, 2, size + 2)))
        parameters = np.pad(depth, 1, "wrap"), friction, rows, depth_ct, friction_ct, observed
        value, ct = two_level(start, length, period, numba_step, misfit, step_adjoint, parameters)
        return value, (ct[0, 1:-1, 1:-1], depth_ct[1:-1, 1:-1], friction_ct)

    return gradient


CASE = Case(
    name="shallow_water",
    title="shallow water, C grid: final misfit in initial elevation, depth and friction",
    defaults={"size": 256, "n_steps": 200},
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
        "jax": {
            "nested scan, remat step": partial(build_jax, levels=2, remat_step=True),
            "nested scan": partial(build_jax, levels=2, remat_step=False),
            "scan, remat step": partial(build_jax, levels=1, remat_step=True),
            "scan": partial(build_jax, levels=1, remat_step=False),
        },
        "numba": {
            "two-level": partial(build_numba, store_all=False),
            "store-all": partial(build_numba, store_all=True),
        },
        "torch": {"eager loop": build_torch},
    },
    primal=build_primal,
    cache_settings={"size": 64, "n_steps": 20},
    shorter={"torch": {"n_steps": 25}},
)
