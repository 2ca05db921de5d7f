"""Stiff equations by implicit methods of variable step: Robertson's reactions, a Brusselator.

Every library chooses its own steps at the same tolerances, so that gradients agree as well as
these say, and times are those of a whole solution. diffrax has dense Jacobians alone.

Sources: H. H. Robertson, in "Numerical Analysis, an Introduction" (1966); E. Hairer, G. Wanner,
"Solving Ordinary Differential Equations II" (1996), section IV.10.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings
from benchmarks.peers import ckad_builders

RATES = np.array([0.04, 3e7, 1e4])


def tolerances(settings: Settings) -> dict[str, float]:
    return {"rtol": 10.0 ** -settings["digits"], "atol": 10.0 ** -settings["atol_digits"]}


def ckad_forms(value_of: Callable[[Settings, str], Callable], first: str) -> dict[str, Callable]:
    methods = [first, *(m for m in ("Rodas5P", "Kvaerno5", "BDF") if m != first)]
    return {
        method: ckad_builders(partial(value_of, method=method), n_inputs=1)[0] for method in methods
    }


def diffrax_end(velocity: Callable, start: Any, args: Any, settings: Settings) -> Any:
    """The state at the horizon by Kvaerno5; to be traced by JAX."""
    import diffrax

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(velocity),
        diffrax.Kvaerno5(),
        t0=0.0,
        t1=settings["horizon"],
        dt0=1e-6,
        y0=start,
        args=args,
        saveat=diffrax.SaveAt(t1=True),
        stepsize_controller=diffrax.PIDController(**tolerances(settings)),
        max_steps=4096,
    )
    return solution.ys[0]


# Robertson ---------------------------------------------------------------------------------------


def robertson(t, y, factors):
    k1, k2, k3 = (factors[i] * float(RATES[i]) for i in range(3))
    a, b, c = y[0], y[1], y[2]
    return -k1 * a + k3 * b * c, k1 * a - k3 * b * c - k2 * b * b, k2 * b * b


def robertson_ckad(settings: Settings, method: str) -> Callable:
    from ckad.integrate import solve_ivp

    def value(factors):
        def fun(t, y):
            return np.stack(robertson(t, y, factors))

        span = 0.0, settings["horizon"]
        return solve_ivp(fun, span, [1.0, 0.0, 0.0], method, **tolerances(settings)).y[0, -1]

    return value


def robertson_diffrax(settings: Settings) -> Gradient:
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient

    def value(factors):
        def velocity(t, y, args):
            return jnp.stack(robertson(t, y, args))

        return diffrax_end(velocity, jnp.array([1.0, 0.0, 0.0]), factors, settings)[0]

    return jax_gradient(jax, value, n_inputs=1)


def robertson_casadi(settings: Settings) -> Gradient:
    """CVODES, and its adjoint."""
    import casadi

    from benchmarks.peers import casadi_gradient

    y, p = casadi.SX.sym("y", 3), casadi.SX.sym("p", 3)
    bounds = tolerances(settings)
    options = {"reltol": bounds["rtol"], "abstol": bounds["atol"], "max_num_steps": 100_000}
    system = {"x": y, "p": p, "ode": casadi.vertcat(*robertson(0.0, y, p))}
    end = casadi.integrator("end", "cvodes", system, 0.0, settings["horizon"], options)

    def value(factors):
        return end(x0=casadi.DM([1.0, 0.0, 0.0]), p=factors)["xf"][0]

    return casadi_gradient(value, robertson_inputs(settings), False)


def robertson_inputs(settings: Settings) -> Inputs:
    """Factors of the three rates."""
    return (np.ones(3),)


# Brusselator -------------------------------------------------------------------------------------


def brusselator(numpy, y, p, n):
    """u and v in turn, with u = 1, v = 3 at both ends; p is the feed and the diffusion."""
    ends = numpy.array([1.0, 3.0])
    w = numpy.concatenate([ends, y, ends]).reshape(n + 2, 2)
    spread = p[1] * (n + 1) ** 2 * (w[2:] - 2.0 * w[1:-1] + w[:-2])
    u, v = w[1:-1, 0], w[1:-1, 1]
    cubed = u * u * v
    reaction = numpy.stack([p[0] + cubed - 4.0 * u, 3.0 * u - cubed], axis=1)
    return (spread + reaction).reshape(-1)


def brusselator_start(n: int) -> np.ndarray:
    x = np.arange(1, n + 1) / (n + 1)
    return np.stack([1.0 + np.sin(2.0 * np.pi * x), np.full(n, 3.0)], axis=1).ravel()


def brusselator_ckad(settings: Settings, method: str) -> Callable:
    from scipy import sparse

    from ckad.integrate import solve_ivp

    n = int(settings["n_cells"])
    start = brusselator_start(n)
    diagonals = [np.ones(2 * n - abs(k)) for k in range(-2, 3)]
    pattern = sparse.diags_array(diagonals, offsets=range(-2, 3))

    def value(p):
        span, about = (0.0, settings["horizon"]), {"jac_sparsity": pattern, **tolerances(settings)}
        sol = solve_ivp(lambda t, y: brusselator(np, y, p, n), span, start, method, **about)
        return np.mean(sol.y[::2, -1] ** 2)

    return value


def brusselator_diffrax(settings: Settings) -> Gradient:
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient

    n = int(settings["n_cells"])
    start = jnp.array(brusselator_start(n))

    def value(p):
        end = diffrax_end(lambda t, y, p: brusselator(jnp, y, p, n), start, p, settings)
        return jnp.mean(end[::2] ** 2)

    return jax_gradient(jax, value, n_inputs=1)


def brusselator_inputs(settings: Settings) -> Inputs:
    """The feed and the diffusion."""
    return (np.array([1.0, 0.02]),)


CASES = (
    Case(
        name="robertson",
        title="Robertson's reactions, stiff: a final concentration in the three rates",
        defaults={"horizon": 1e5, "digits": 8.0, "atol_digits": 12.0},
        tiny={"horizon": 40.0, "digits": 8.0, "atol_digits": 12.0},
        inputs=robertson_inputs,
        steps=lambda settings: 1,
        cells=lambda settings: 1,
        forms={
            "ckad": ckad_forms(robertson_ckad, "Rodas5P"),
            "casadi": {"CVODES": robertson_casadi},
            "diffrax": {"Kvaerno5": robertson_diffrax},
        },
        tolerance=1e-4,
    ),
    Case(
        name="brusselator",
        title="Stiff Brusselator on a line: mean square of u in the feed and the diffusion",
        defaults={"n_cells": 500, "horizon": 2.0, "digits": 6.0, "atol_digits": 8.0},
        tiny={"n_cells": 16, "horizon": 2.0, "digits": 6.0, "atol_digits": 8.0},
        inputs=brusselator_inputs,
        steps=lambda settings: 1,
        cells=lambda settings: int(settings["n_cells"]),
        forms={
            "ckad": ckad_forms(brusselator_ckad, "Kvaerno5"),
            "diffrax": {"Kvaerno5, dense": brusselator_diffrax},
        },
        tolerance=1e-3,
    ),
)
