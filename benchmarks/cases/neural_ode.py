"""A neural ODE: a perceptron with two hidden layers gives the velocity of a batch of points; RK4.

The value is the mean squared distance of the final points from the initial ones turned by a right
angle. The gradient is that of one step of training: in all weights and biases.

Source: R. T. Q. Chen et al., Neural ordinary differential equations, NeurIPS 31 (2018), eq. 2-3.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings
from benchmarks.peers import ckad_builders

DIMENSION = 2


def inputs(settings: Settings) -> Inputs:
    """Three layers, each a matrix (before, after) and a bias (after,)."""
    generator, width = np.random.default_rng(2018), int(settings["width"])
    widths = (DIMENSION, width, width, DIMENSION)
    layers = []
    for before, after in pairwise(widths):
        layers.append(generator.normal(size=(before, after)) / np.sqrt(before))
        layers.append(0.1 * generator.normal(size=after))
    return tuple(layers)


def data(settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """The initial points (batch, 2) and the ones they should reach."""
    start = np.random.default_rng(31).normal(size=(int(settings["batch"]), DIMENSION))
    return start, np.stack([-start[:, 1], start[:, 0]], axis=1)


def n_steps(settings: Settings) -> int:
    return int(settings["n_steps"])


def step_size(settings: Settings) -> float:
    """The horizon in equal steps, but never a step beyond RK4's comfort."""
    return min(0.1, settings["horizon"] / settings["n_steps"])


def perceptron(y, weights, tanh):
    w1, b1, w2, b2, w3, b3 = weights
    return tanh(tanh(y @ w1 + b1) @ w2 + b2) @ w3 + b3


def rk4(velocity, y, h):
    """One classical Runge-Kutta step; ckad, JAX and PyTorch all run it."""
    k1 = velocity(y)
    k2 = velocity(y + h / 2 * k1)
    k3 = velocity(y + h / 2 * k2)
    k4 = velocity(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


# ckad --------------------------------------------------------------------------------------------


def ckad_value(settings: Settings) -> Callable:
    import ckad

    length, h, (start, target) = n_steps(settings), step_size(settings), data(settings)

    def value(*weights):
        def advance(_, y):
            return rk4(lambda point: perceptron(point, weights, np.tanh), y, h)

        y = ckad.fori_loop(0, length, advance, start)
        return np.sum((y - target) ** 2) / start.shape[0]

    return value


build_ckad, build_primal = ckad_builders(ckad_value, n_inputs=6)


# JAX and diffrax ---------------------------------------------------------------------------------


def build_jax(settings: Settings, levels: int, remat_step: bool, unroll: int = 1) -> Gradient:
    """A scan over the steps (levels=1), or over checkpointed blocks of about sqrt(n) of them."""
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient, jax_nested_scan

    length, h, (start, target) = n_steps(settings), step_size(settings), data(settings)

    def value(*weights):
        def advance(y, _):
            return rk4(lambda point: perceptron(point, weights, jnp.tanh), y, h), None

        y = jax_nested_scan(advance, jnp.asarray(start), length, levels, remat_step, unroll)
        return jnp.sum((y - target) ** 2) / start.shape[0]

    return jax_gradient(jax, value, n_inputs=6)


def build_diffrax(settings: Settings, checkpoints: int | None = None) -> Gradient:
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import diffrax_rk4, jax_gradient

    length, h, (start, target) = n_steps(settings), step_size(settings), data(settings)
    velocity = partial(perceptron, tanh=jnp.tanh)

    def value(*weights):
        y = diffrax_rk4(velocity, jnp.asarray(start), weights, length, h, checkpoints)
        return jnp.sum((y - target) ** 2) / start.shape[0]

    return jax_gradient(jax, value, n_inputs=6)


# PyTorch -----------------------------------------------------------------------------------------


def build_torch(settings: Settings, one_thread: bool) -> Gradient:
    import torch

    from benchmarks.peers import torch_gradient

    if one_thread:
        torch.set_num_threads(1)
    length, h = n_steps(settings), step_size(settings)
    start, target = map(torch.tensor, data(settings))

    def value(*weights):
        y = start
        for _ in range(length):
            y = rk4(lambda point: perceptron(point, weights, torch.tanh), y, h)
        return torch.sum((y - target) ** 2) / start.shape[0]

    return torch_gradient(value)


CASE = Case(
    name="neural_ode",
    title="A neural ODE (two hidden layers), RK4: misfit of final points in all weights",
    defaults={"batch": 32, "width": 64, "n_steps": 200, "horizon": 2.0},
    tiny={"batch": 3, "width": 8, "n_steps": 20, "horizon": 2.0},
    inputs=inputs,
    steps=n_steps,
    cells=lambda settings: int(settings["batch"]),
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
            "scan, unroll 4": partial(build_jax, levels=1, remat_step=False, unroll=4),
        },
        "diffrax": {"RK4, recursive checkpoints": build_diffrax},
        "torch": {
            "eager loop, one thread": partial(build_torch, one_thread=True),
            "eager loop": partial(build_torch, one_thread=False),
        },
    },
    primal=build_primal,
    cache_settings={"n_steps": 10},
    shorter={"torch": {"n_steps": 50}},
)
