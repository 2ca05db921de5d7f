"""Methods of fixed step: Runge-Kutta of orders 1 to 4, and symplectic ones for y = (q, p)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ckad.integrate.problem import Problem
from ckad.integrate.result import OdeResult
from ckad.integrate.stages import Rhs, weighted
from ckad.trace.arrays import stopping, traced
from ckad.trace.memory.opened import is_tracing
from ckad.transforms import scan

Stepper = Callable[[Rhs, Any, Any, Any], Any]  # (fun, t, y, h) -> the state at t + h


class Method(NamedTuple):
    step: Stepper
    order: int
    evaluations: int  # of fun, in a step
    halves: bool = False  # whether the state is of positions, then as many momenta


def euler(fun: Rhs, t: Any, y: Any, h: Any) -> Any:
    return y + h * fun(t, y)


def midpoint(fun: Rhs, t: Any, y: Any, h: Any) -> Any:
    return y + h * fun(t + 0.5 * h, y + 0.5 * h * fun(t, y))


def heun(fun: Rhs, t: Any, y: Any, h: Any) -> Any:
    k1 = fun(t, y)
    return y + 0.5 * h * (k1 + fun(t + h, y + h * k1))


def rk4(fun: Rhs, t: Any, y: Any, h: Any) -> Any:
    """W. Kutta, Z. Math. Phys. 46 (1901) 435-453."""
    k1 = fun(t, y)
    k2 = fun(t + 0.5 * h, y + 0.5 * h * k1)
    k3 = fun(t + 0.5 * h, y + 0.5 * h * k2)
    k4 = fun(t + h, y + h * k3)
    return y + h * weighted((1 / 6, 1 / 3, 1 / 3, 1 / 6), (k1, k2, k3, k4))


def leapfrog(fun: Rhs, t: Any, y: Any, h: Any) -> Any:
    """Kick, drift, kick: L. Verlet, Phys. Rev. 159 (1967) 98-103."""
    n = y.size // 2
    q, p = y[:n], y[n:]
    p = p + 0.5 * h * fun(t, y)[n:]
    q = q + h * fun(t + 0.5 * h, np.concatenate([q, p]))[:n]
    p = p + 0.5 * h * fun(t + h, np.concatenate([q, p]))[n:]
    return np.concatenate([q, p])


def yoshida4(fun: Rhs, t: Any, y: Any, h: Any) -> Any:
    """Three leapfrogs, the middle one backwards: H. Yoshida, Phys. Lett. A 150 (1990) 262-268."""
    outer = 1.0 / (2.0 - 2.0 ** (1 / 3))
    for part in (outer, 1.0 - 2.0 * outer, outer):
        y = leapfrog(fun, t, y, part * h)
        t = t + part * h
    return y


METHODS = {
    "Euler": Method(euler, 1, 1),
    "Midpoint": Method(midpoint, 2, 2),
    "Heun": Method(heun, 2, 2),
    "RK4": Method(rk4, 4, 4),
    "Leapfrog": Method(leapfrog, 2, 3, halves=True),
    "Yoshida4": Method(yoshida4, 4, 9, halves=True),
}


def solve(
    method: Method, problem: Problem, n_steps: int, observe: Callable[[Any, Any], Any]
) -> OdeResult:
    """All states on the grid, or at ``t_eval`` those of cubic Hermite interpolation."""
    t0, tf = problem.t0, problem.tf
    h = (tf - t0) / n_steps

    def advance(y: Any, k: Any) -> tuple[Any, Any]:
        y = method.step(problem.fun, t0 + k * h, y, h)
        return y, y

    last, later = _scan(advance, problem.y0, np.arange(float(n_steps)))
    times = t0 + np.arange(n_steps + 1.0) * h
    evaluations = n_steps * method.evaluations
    # what is not finite stays so: a step adds to a state
    if is_tracing():
        wrong = np.logical_not(np.all(np.isfinite(last)))
        later = later + stopping(np.float64(0.0), wrong, "STATE")
    states = np.concatenate([problem.y0[np.newaxis], later])
    reached = len(states) if is_tracing() else int(np.isfinite(states).all(axis=1).sum())
    status = {} if reached == len(states) else {"success": False}
    if problem.t_eval is not None:
        wanted = _reached(problem.t_eval, times, reached)
        times, states = wanted, _at(problem._replace(t_eval=wanted), times, states, h, observe)
        evaluations += 2 * times.size
    elif status:
        times, states = times[:reached], states[:reached]
    rows = np.moveaxis(states, 0, -1) if states.ndim > 1 else states
    message = UNBOUNDED if status else FINISHED
    return OdeResult(times, rows, -1 if status else 0, message, nfev=evaluations, **status)


FINISHED = "The solver successfully reached the end of the integration interval."
UNBOUNDED = "A state is not finite."


def _reached(t_eval: Any, times: Any, n: int) -> Any:
    """Those of ``t_eval`` up to the last finite state."""
    if n == len(times):
        return t_eval
    return t_eval[np.abs(t_eval - times[0]) <= np.abs(times[n - 1] - times[0])]


def _scan(step: Any, carry: Any, xs: Any) -> tuple[Any, Any]:
    if is_tracing():
        return scan(step, carry, xs)
    rows = []
    for x in xs:
        carry, row = step(carry, x)
        rows.append(row)
    return carry, np.array(rows)


def _at(
    problem: Problem, times: Any, states: Any, h: Any, observe: Callable[[Any, Any], Any]
) -> Any:
    """The cubic through the states and derivatives at both ends of a step, at each of t_eval."""
    n_steps = len(states) - 1
    h = np.where(h == 0.0, 1.0, h)  # of a span without length
    if is_tracing():
        times, states = traced(times), traced(states)

    def one(_: Any, t: Any) -> tuple[Any, Any]:
        k = np.clip(np.floor((t - times[0]) / h), 0, n_steps - 1).astype(np.int64)
        y0, y1 = states[k], states[k + 1]
        f0, f1 = problem.fun(times[k], y0), problem.fun(times[k + 1], y1)
        x = (t - times[k]) / h
        cubic = (x - 1.0) * ((1.0 - 2.0 * x) * (y1 - y0) + h * ((x - 1.0) * f0 + x * f1))
        return _, observe(t, (1.0 - x) * y0 + x * y1 + x * cubic)

    return _scan(one, np.float64(0.0), problem.t_eval)[1]
