"""Van der Pol's oscillator by implicit Euler: Newton's method in every step, none of it kept.

The derivative is that of the implicit function: one system of two unknowns per step in the reverse,
in ckad by ``ckad.optimize.root``, in JAX by ``jax.lax.custom_root``. Both iterate until the last
change is 1.5e-8 of the state; the value is the sum of squares of the final state.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings
from benchmarks.peers import ckad_builders

XTOL = 1.49012e-8


def inputs(settings: Settings) -> Inputs:
    """The initial state and mu."""
    return np.array([2.0, 0.0]), np.array([5.0])


def step_size(settings: Settings) -> float:
    """A horizon of about half a turn, in equal steps, so that gradients stay comparable."""
    return settings["horizon"] / settings["n_steps"]


def residual(new, old, mu, h, stack):
    x, v = new
    return stack([x - old[0] - h * v, v - old[1] - h * (mu[0] * (1.0 - x * x) * v - x)])


def ckad_value(settings: Settings) -> Callable:
    import ckad

    length, h = int(settings["n_steps"]), step_size(settings)

    def value(initial, mu):
        def advance(_, y):
            return ckad.optimize.root(lambda new: residual(new, y, mu, h, np.stack), y).x

        y = ckad.fori_loop(0, length, advance, initial)
        return np.sum(y * y)

    return value


build_ckad, build_primal = ckad_builders(ckad_value, n_inputs=2)


def build_jax(settings: Settings, levels: int, remat_step: bool) -> Gradient:
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient, jax_nested_scan

    length, h = int(settings["n_steps"]), step_size(settings)

    def newton(equation, start):
        def unfinished(state):
            y, change = state
            return jnp.linalg.norm(change) > XTOL * jnp.linalg.norm(y)

        def improve(state):
            y, _ = state
            change = -jnp.linalg.solve(jax.jacfwd(equation)(y), equation(y))
            return y + change, change

        return jax.lax.while_loop(unfinished, improve, improve((start, start)))[0]

    def tangent_solve(linear, b):
        return jnp.linalg.solve(jax.jacfwd(linear)(jnp.zeros_like(b)), b)

    def value(initial, mu):
        def advance(y, _):
            equation = partial(residual, old=y, mu=mu, h=h, stack=jnp.stack)
            return jax.lax.custom_root(equation, y, newton, tangent_solve), None

        y = jax_nested_scan(advance, initial, length, levels, remat_step)
        return jnp.sum(y * y)

    return jax_gradient(jax, value, n_inputs=2)


CASE = Case(
    name="implicit",
    title="implicit Euler of van der Pol's oscillator: a root in every step",
    defaults={"n_steps": 20_000, "horizon": 5.0},
    tiny={"n_steps": 20, "horizon": 0.5},
    inputs=inputs,
    steps=lambda settings: int(settings["n_steps"]),
    cells=lambda settings: 1,
    forms={
        "ckad": {"auto": build_ckad, "1 MiB": partial(build_ckad, memory="1 MiB")},
        "jax": {
            "scan": partial(build_jax, levels=1, remat_step=False),
            "scan, remat step": partial(build_jax, levels=1, remat_step=True),
        },
    },
    primal=build_primal,
)
