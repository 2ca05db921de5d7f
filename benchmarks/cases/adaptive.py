"""Lorenz-63 by explicit methods of variable step, some ten thousand of them at tight tolerances.

Each library chooses its own steps, at the same tolerances, by the same pairs: Dormand and Prince's
(SciPy's RK45, diffrax's Dopri5) and Tsitouras'. diffrax reverses by its online checkpoints, its
default; ckad keeps what its budget allows.

Source: E. N. Lorenz, J. Atmos. Sci. 20 (1963).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings
from benchmarks.peers import ckad_builders

START = np.array([1.0, 1.0, 20.0])
MOST_STEPS = 65_536


def lorenz(y):
    a, b, c = y[0], y[1], y[2]
    return 10.0 * (b - a), a * (28.0 - c) - b, a * b - 8.0 / 3.0 * c


def tolerances(settings: Settings) -> dict[str, float]:
    return {"rtol": 10.0 ** -settings["digits"], "atol": 10.0 ** -settings["digits"]}


def ckad_value(settings: Settings, method: str) -> Callable:
    from ckad.integrate import solve_ivp

    span = 0.0, settings["horizon"]

    def value(y0):
        sol = solve_ivp(lambda t, y: np.stack(lorenz(y)), span, y0, method, **tolerances(settings))
        return np.sum(sol.y[:, -1] ** 2)

    return value


def diffrax_gradient(settings: Settings, method: str) -> Gradient:
    import diffrax
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient

    def value(y0: Any) -> Any:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: jnp.stack(lorenz(y))),
            getattr(diffrax, method)(),
            t0=0.0,
            t1=settings["horizon"],
            dt0=None,
            y0=y0,
            saveat=diffrax.SaveAt(t1=True),
            stepsize_controller=diffrax.PIDController(**tolerances(settings)),
            max_steps=MOST_STEPS,
        )
        return jnp.sum(solution.ys[0] ** 2)

    return jax_gradient(jax, value, n_inputs=1)


def inputs(settings: Settings) -> Inputs:
    """The first state."""
    return (START.copy(),)


CASE = Case(
    name="lorenz63-adaptive",
    title="Lorenz-63 by adaptive pairs: final sum of squares in the initial state",
    defaults={"horizon": 10.0, "digits": 13.0},
    tiny={"horizon": 1.0, "digits": 8.0},
    inputs=inputs,
    steps=lambda settings: 1,
    cells=lambda settings: 1,
    forms={
        "ckad": {
            method: ckad_builders(partial(ckad_value, method=method), n_inputs=1)[0]
            for method in ("RK45", "Tsit5")
        },
        "diffrax": {
            method: partial(diffrax_gradient, method=method) for method in ("Dopri5", "Tsit5")
        },
    },
    tolerance=1e-4,
)
