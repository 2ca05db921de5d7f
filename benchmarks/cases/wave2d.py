"""Acoustic waves in a field of velocities; sources shoot and receivers listen at each step.

The value is half the sum of squares of the recorded traces minus those observed: the misfit of
full-waveform inversion, whose gradient is that in the velocity model. Second order in time and
space; the pressure vanishes at the edges. The velocity is in units of dx / dt.

Source: A. Tarantola, Inversion of seismic reflection data in the acoustic approximation, Geophysics
49 (1984) 1259-1266.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isqrt

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings
from benchmarks.peers import ckad_builders
from benchmarks.two_level import compiled, period_of, two_level

PERIOD = 24.0  # of the sources' wavelets, in steps


def inputs(settings: Settings) -> Inputs:
    """The velocity model: faster with depth, rough."""
    size = int(settings["size"])
    rough = np.random.default_rng(84).uniform(-0.03, 0.03, (size, size))
    return (np.linspace(0.3, 0.5, size)[:, None] + rough,)


def n_steps(settings: Settings) -> int:
    return int(settings["n_steps"])


def sources(settings: Settings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns of the sources; their wavelets, delayed, (n_steps, n_sources)."""
    size = int(settings["size"])
    columns = np.array([size // 4, size // 2, 3 * size // 4])
    delay = PERIOD * np.array([1.0, 1.5, 2.0])
    phase = (np.pi * (np.arange(n_steps(settings))[:, None] - delay) / PERIOD) ** 2
    return np.full(columns.size, size // 8), columns, (1.0 - 2.0 * phase) * np.exp(-phase)


def receivers(settings: Settings) -> tuple[int, slice]:
    """Their row and columns, none at an edge."""
    size = int(settings["size"])
    spacing = max(1, size // 64)
    return max(1, size // 16), slice(spacing, size - 1, spacing)


def observed_traces(settings: Settings) -> np.ndarray:
    """Waves of the wavelets' period: arrivals in a medium that is not the model."""
    _, columns = receivers(settings)
    time = np.arange(n_steps(settings))[:, None]
    distance = np.arange(columns.start, columns.stop, columns.step)
    return 0.1 * np.sin((2 * np.pi * time + 0.5 * distance) / PERIOD)


def next_pressure(older, old, squared):
    """In the interior, sources apart; `squared` is the squared velocity there."""
    sum_of_four = old[2:, 1:-1] + old[:-2, 1:-1] + old[1:-1, 2:] + old[1:-1, :-2]
    middle = old[1:-1, 1:-1]
    return 2.0 * middle - older[1:-1, 1:-1] + squared * (sum_of_four - 4.0 * middle)


# ckad --------------------------------------------------------------------------------------------


def ckad_value(settings: Settings) -> Callable:
    import ckad

    rows, columns, wavelets = sources(settings)
    listen = receivers(settings)
    observed = observed_traces(settings)

    def value(velocity):
        squared = velocity[1:-1, 1:-1] ** 2

        def advance(waves, wavelet):
            older, old = waves
            new = older.copy()
            new[1:-1, 1:-1] = next_pressure(older, old, squared)
            new[rows, columns] += wavelet
            return (old, new), new[listen]

        silence = np.zeros(velocity.shape)
        _, traces = ckad.scan(advance, (silence, silence), wavelets)
        return 0.5 * np.sum((traces - observed) ** 2)

    return value


build_ckad, build_primal = ckad_builders(ckad_value, n_inputs=1)


# JAX and PyTorch ---------------------------------------------------------------------------------


def jax_traces(advance: Callable, start, wavelets: np.ndarray, levels: int, remat_step: bool):
    """What `advance` records, by one scan or by a scan of checkpointed scans."""
    import jax
    import jax.numpy as jnp

    advance = jax.checkpoint(advance) if remat_step else advance
    if levels == 1:
        return jax.lax.scan(advance, start, wavelets)[1]
    period = max(1, isqrt(len(wavelets)))
    whole = len(wavelets) // period * period
    blocks = wavelets[:whole].reshape(-1, period, wavelets.shape[1])
    block = jax.checkpoint(lambda waves, part: jax.lax.scan(advance, waves, part))
    waves, traces = jax.lax.scan(block, start, blocks)
    traces = traces.reshape(whole, -1)
    return jnp.concatenate([traces, jax.lax.scan(advance, waves, wavelets[whole:])[1]])


def build_jax(settings: Settings, levels: int, update: str, remat_step: bool) -> Gradient:
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient

    rows, columns, wavelets = sources(settings)
    listen = receivers(settings)
    observed = observed_traces(settings)
    set_interior = {
        "at": lambda older, interior: older.at[1:-1, 1:-1].set(interior),
        "pad": lambda older, interior: jnp.pad(interior, 1),
    }[update]

    def value(velocity):
        squared = velocity[1:-1, 1:-1] ** 2

        def advance(waves, wavelet):
            older, old = waves
            new = set_interior(older, next_pressure(older, old, squared))
            new = new.at[rows, columns].add(wavelet)
            return (old, new), new[listen]

        silence = jnp.zeros(velocity.shape)
        traces = jax_traces(advance, (silence, silence), wavelets, levels, remat_step)
        return 0.5 * jnp.sum((traces - observed) ** 2)

    return jax_gradient(jax, value, n_inputs=1)


def build_torch(settings: Settings) -> Gradient:
    import torch

    from benchmarks.peers import torch_gradient

    rows, columns, wavelets = (torch.tensor(part) for part in sources(settings))
    listen = receivers(settings)
    observed = torch.tensor(observed_traces(settings))

    def value(velocity):
        squared = velocity[1:-1, 1:-1] ** 2
        older = old = torch.zeros_like(velocity)
        traces = []
        for wavelet in wavelets:
            new = torch.nn.functional.pad(next_pressure(older, old, squared), (1, 1, 1, 1))
            new = new.index_put((rows, columns), wavelet, accumulate=True)
            older, old = old, new
            traces.append(new[listen])
        return 0.5 * torch.sum((torch.stack(traces) - observed) ** 2)

    return torch_gradient(value)


# Numba, the adjoint by hand ----------------------------------------------------------------------
# Only the pressures are stored, one field per step. The reverse runs the same recurrence backward,
# driven by the traces' residuals; the Laplacian is symmetric, so it is applied to squared velocity
# times cotangent, of which three rows stay in L1.


@compiled
def numba_step(new, old, older, i, parameters):
    squared, (rows, columns, wavelets), (row, spacing), traces = parameters[:4]
    for k in range(1, old.shape[0] - 1):
        for j in range(1, old.shape[1] - 1):
            sum_of_four = old[k - 1, j] + old[k + 1, j] + old[k, j - 1] + old[k, j + 1]
            acceleration = squared[k, j] * (sum_of_four - 4.0 * old[k, j])
            new[k, j] = 2.0 * old[k, j] - older[k, j] + acceleration
    for k in range(rows.size):
        new[rows[k], columns[k]] += wavelets[i, k]
    for k in range(traces.shape[1]):
        traces[i, k] = new[row, (k + 1) * spacing]


@compiled
def weighted_row(weighted, squared, ct, k):
    """Row k, in the place of row k - 3."""
    place = k % 3
    for j in range(squared.shape[1]):
        weighted[place, j] = squared[k, j] * ct[k, j]


@compiled
def ct_row(new, ct, newer, weighted, k):
    above, here, below = (k - 1) % 3, k % 3, (k + 1) % 3
    for j in range(1, ct.shape[1] - 1):
        sum_of_two = weighted[here, j - 1] + weighted[here, j + 1]
        sum_of_four = weighted[above, j] + weighted[below, j] + sum_of_two
        new[k, j] = 2.0 * ct[k, j] - newer[k, j] + (sum_of_four - 4.0 * weighted[here, j])


@compiled
def add_residuals(ct, residuals, i, receivers):
    row, spacing = receivers
    for k in range(residuals.shape[1]):
        ct[row, (k + 1) * spacing] += residuals[i, k]


@compiled
def step_adjoint(new_ct, ct, newer_ct, old, i, parameters):
    squared, _, receivers, _, residuals, squared_ct, weighted = parameters
    weighted_row(weighted, squared, ct, 0)
    weighted_row(weighted, squared, ct, 1)
    for k in range(1, old.shape[0] - 1):
        weighted_row(weighted, squared, ct, k + 1)
        ct_row(new_ct, ct, newer_ct, weighted, k)
        for j in range(1, old.shape[1] - 1):
            sum_of_four = old[k - 1, j] + old[k + 1, j] + old[k, j - 1] + old[k, j + 1]
            squared_ct[k, j] += ct[k, j] * (sum_of_four - 4.0 * old[k, j])
    if i > 0:
        add_residuals(new_ct, residuals, i - 1, receivers)


@compiled
def misfit(ct, _last, parameters):
    _, _, receivers, traces, residuals, _, _ = parameters
    value = 0.0
    for i in range(traces.shape[0]):
        for k in range(traces.shape[1]):
            residuals[i, k] += traces[i, k]
            value += 0.5 * residuals[i, k] ** 2
    add_residuals(ct, residuals, traces.shape[0] - 1, receivers)
    return value


def build_numba(settings: Settings, store_all: bool) -> Gradient:
    length, shots, observed = n_steps(settings), sources(settings), observed_traces(settings)
    row, columns = receivers(settings)
    period = period_of(length, store_all)

    def gradient(arrays):
        (velocity,) = arrays
        squared, squared_ct = velocity**2, np.zeros_like(velocity)
        weighted = np.zeros((3, velocity.shape[1]))
        recorded = np.empty_like(observed), -observed
        parameters = squared, shots, (row, columns.step), *recorded, squared_ct, weighted
        silence = np.zeros((2, *velocity.shape))
        value, _ = two_level(silence, length, period, numba_step, misfit, step_adjoint, parameters)
        return value, (2.0 * velocity * squared_ct,)

    return gradient


JAX_FORMS = {
    f"{scan}, {update}{', remat step' * remat_step}": partial(
        build_jax, levels=levels, update=update, remat_step=remat_step
    )
    for levels, scan in ((2, "nested scan"), (1, "scan"))
    for update in ("pad", "at")
    for remat_step in (True, False)
}

CASE = Case(
    name="wave2d",
    title="acoustic waves, sources and receivers each step: misfit of traces in the velocity model",
    defaults={"size": 256, "n_steps": 400},
    tiny={"size": 12, "n_steps": 40},
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
