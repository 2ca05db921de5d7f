"""Implicit equations of a step: solved without derivative, differentiated where they are solved.

No iteration is differentiated: the derivative is that of the implicit function, one system with the
factors at the solution, or one transposed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ckad.integrate.stages import EPS, rms
from ckad.trace.arrays import traced
from ckad.trace.memory.opened import is_tracing
from ckad.transforms import stop_gradient, while_loop
from ckad.transforms.primitives.closed import Closed
from ckad.transforms.primitives.implicit import root_by

Function = Callable[[Any], Any]


def implicit(solution: Any, residual: Function, solve: Function) -> Any:
    """The root of ``residual`` with its derivatives: ``solution`` to the bit.

    ``solve`` solves systems with the derivative of ``residual`` there.
    """
    solution = stop_gradient(solution)
    if not is_tracing():
        return solution
    equation, inverse = Closed(residual, solution), Closed(solve, solution)
    return root_by("solve_ivp", equation, traced(solution), inverse)


class Solved(NamedTuple):
    x: Any
    converged: Any
    iterations: Any


def tolerance(rtol: Any) -> Any:
    """SciPy's, of the iteration's error in units of a step's."""
    least = np.min(rtol)
    return np.maximum(10.0 * EPS / least, np.minimum(0.03, np.sqrt(least)))


def newton(
    start: Any, change: Function, scale: Any, most: int, tol: Any, enough: Any = 0.0
) -> Solved:
    """Simplified Newton steps x + change(x), ended as SciPy's BDF ends them.

    A step of a size up to ``enough`` is the last: where the start is good already, those that
    follow are rounding, whose sizes do not fall.

    E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II" (1996), section IV.8.
    """

    def step(state: dict[str, Any]) -> dict[str, Any]:
        dx = change(state["x"])
        size = rms(dx / scale)
        k, before = state["iterations"], state["size"]
        rate = np.where(k > 0, size / np.where(before > 0.0, before, 1.0), 0.0)
        left = most - k
        hopeless = (rate >= 1.0) | (
            rate**left / (1.0 - np.where(rate < 1.0, rate, 0.0)) * size > tol
        )
        small_enough = size <= enough
        failed = np.logical_not(np.isfinite(size)) | ((k > 0) & hopeless & ~small_enough)
        small = (k > 0) & (rate / (1.0 - np.where(rate < 1.0, rate, 0.0)) * size < tol)
        converged = np.logical_not(failed) & (small_enough | small)
        return {
            "x": np.where(failed, state["x"], state["x"] + dx),
            "size": size,
            "iterations": k + 1,
            "converged": converged,
            "failed": failed,
        }

    def goes_on(state: dict[str, Any]) -> Any:
        return (state["iterations"] < most) & ~state["converged"] & ~state["failed"]

    begin = {
        "x": start,
        "size": np.float64(0.0),
        "iterations": np.int64(0),
        "converged": np.bool_(False),
        "failed": np.bool_(False),
    }
    end = stop_gradient(while_loop(goes_on, step, stop_gradient(begin)))
    return Solved(end["x"], end["converged"], end["iterations"])
