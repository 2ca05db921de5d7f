"""Minima under constraints: multipliers by augmented Lagrangians, then Newton's method.

R. T. Rockafellar, SIAM J. Control 12 (1974) 268-285; E. G. Birgin, J. M. Martínez, Practical
Augmented Lagrangian Methods, 2014, algorithm 4.1. Where a minimum is, the constraints that hold it
and the slopes of the Lagrangian are 0: that system is solved to rounding, and differentiated.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ckad.optimize.boxes import Box, least
from ckad.optimize.constrained.given import FAR, Constraints, constraints
from ckad.optimize.problem import Problem, closed, implicit, jacobian_at, problem, solver
from ckad.optimize.result import OptimizeResult
from ckad.trace.arrays import traced
from ckad.transforms import grad, stop_gradient, value_and_grad, while_loop
from ckad.transforms.primitives.implicit import FAILED, UNCLEAR

MESSAGES = {
    0: "Optimization terminated successfully",
    4: "Inequality constraints incompatible",
    9: "Iteration limit reached",
}
_CONVERGED, _INCOMPATIBLE, _TOO_MANY = 0, 4, 9
#: Multipliers are followed until constraints hold by this, within so many turns.
CLOSE, TURNS, HEAVIEST = 1e-7, 60, 1e9
#: Newton's steps on the conditions, and how well these have to hold in the end.
STEPS, EXACT = 12, 1e-9
#: By how much the constraints of a problem that can be solved may be missed.
FEASIBLE = 1e-6
#: A multiplier, and a constraint, that is smaller may be 0.
LEVEL = 1e-7


class Found(NamedTuple):
    """A minimum, its multipliers, which constraints hold it, and the equations of all that."""

    z: Any  # float64[n + m]
    active: Any  # bool[m]
    free: Any  # bool[n]: those that no bound holds
    status: Any
    counts: dict[str, Any]


def minimum(fun: Any, x0: Any, args: tuple[Any, ...], given: Any, box: Box) -> OptimizeResult:
    """As ``scipy.optimize.minimize`` with constraints; traced, and derived as a root."""
    p = problem(fun, x0, args, "number")
    start = stop_gradient(box.clipped(p.x0))
    conditions = constraints(given, start)
    held = Problem(*_recorded(conditions, p))
    found = _found(p, held, conditions.equal, box)
    equations, unclear = _conditions(p, held, found, conditions.equal, box)
    failed = found.status != _CONVERGED
    why = np.where(failed, FAILED, np.where(unclear, UNCLEAR, 0))
    system = solver("dense", found.z.size, False)
    n = p.x0.size
    x = implicit("minimize", equations.f, found.z, why, system)[:n]
    slope = grad(lambda x: p(x))(found.z[:n])
    fields = {"x": np.reshape(x, p.shape), "fun": p.f(x, p.f.parameters), "jac": slope}
    fields |= {"status": found.status, "success": np.logical_not(failed)}
    return OptimizeResult(MESSAGES, **fields, **found.counts)


def _recorded(conditions: Constraints, p: Problem) -> tuple[Any, ...]:
    made = closed(conditions.value, p.x0, p.shape)
    return made.f, made.x0, made.shape, made.frozen


def _found(p: Problem, held: Problem, equal: np.ndarray, box: Box) -> Found:
    box = Box(*stop_gradient((box.low, box.high)))
    s = _multipliers(p, held, equal, box)
    x, c = s["x"], held(s["x"])
    active = traced(equal) | (s["lam"] - s["rho"] * c > 0.0)
    lagrangian = grad(lambda x: p(x) - s["lam"] @ held(x))(x)
    still = box.still(x, lagrangian)
    bound = np.where(x <= box.low, box.low, box.high)
    x = np.where(still, bound, x)
    free = np.logical_not(still)
    z = np.concatenate([x, np.where(active, s["lam"], 0.0)])
    equations = closed(_residual(p, held, (free, x, active), False), z, z.shape)
    z, error = _polished(equations, z)
    far, wrong = _judged(p, held, z, equal, box)
    ended = (error <= EXACT * (1.0 + np.max(np.abs(z)))) & np.logical_not(far | wrong)
    status = np.where(ended, _CONVERGED, np.where(far, _INCOMPATIBLE, _TOO_MANY))
    counts = {"nfev": s["nfev"], "njev": s["nfev"], "nit": s["turn"]}
    return Found(z, active, free, status, counts)


def _judged(p: Problem, held: Problem, z: Any, equal: np.ndarray, box: Box) -> tuple[Any, Any]:
    """Whether constraints do not hold; whether it is no minimum, or outside of bounds."""
    x, lam = z[: p.x0.size], z[p.x0.size :]
    c = held(x)
    far = np.max(np.where(equal, np.abs(c), -c)) > FEASIBLE
    slope = grad(lambda x: p(x) - lam @ held(x))(x)
    slope = np.where(x <= box.low, slope, np.where(x >= box.high, -slope, 0.0))
    slope = np.where(box.low < box.high, slope, 0.0)
    outside = (x < box.low - LEVEL) | (x > box.high + LEVEL) | (slope < -LEVEL)
    negative = ((c < -LEVEL) | (lam < -LEVEL)) & ~equal
    return far, np.any(outside) | np.any(negative)


def _multipliers(p: Problem, held: Problem, equal: np.ndarray, box: Box) -> dict[str, Any]:
    """Of the function and constraints in units of their slopes where it begins."""
    x = box.clipped(p.x0)
    lam = np.zeros(len(equal)) * held(x)
    unit = 1.0 / np.maximum(1.0, np.max(np.abs(grad(lambda x: p(x))(x))))
    steep = np.max(np.abs(jacobian_at(held, x)), axis=1)
    units = 1.0 / np.where((steep > 1e-6) & (steep < FAR), steep, 1.0)

    def augmented(x: Any, lam: Any, rho: Any) -> Any:
        t = lam - rho * units * held(x)
        t = np.where(equal, t, np.maximum(t, 0.0))
        return unit * p(x) + np.sum(t * t - lam * lam) / (2.0 * rho)

    def turn(s: dict[str, Any]) -> dict[str, Any]:
        lam, rho = s["lam"], s["rho"]
        valued = value_and_grad(lambda x: augmented(x, lam, rho))
        f, g = valued(s["x"])
        begin = {"x": s["x"], "f": f, "g": g, "status": np.int64(-1) + 0 * s["turn"]}
        begin |= {"nit": 0 * s["turn"], "nfev": 0 * s["turn"] + 1}
        gtol = np.maximum(CLOSE, 0.01 * s["off"])
        made = least(valued, begin, box, gtol, 100 * s["x"].size)
        c = units * held(made["x"])
        t = lam - rho * c
        off = np.max(np.abs(np.where(equal, c, np.minimum(c, lam / rho))))
        heavier = np.where(off > 0.25 * s["off"], 10.0 * rho, rho)
        return {
            "x": made["x"],
            "lam": np.where(equal, t, np.maximum(t, 0.0)),
            "rho": np.minimum(heavier, HEAVIEST),
            "off": off,
            "left": np.maximum(off, gtol),
            "turn": s["turn"] + 1,
            "nfev": s["nfev"] + made["nfev"],
        }

    c = units * held(x)
    off = np.where(equal, np.abs(c), np.maximum(-c, 0.0))
    weight = np.maximum(1.0, unit * np.abs(p(x))) / np.maximum(1.0, 0.5 * np.sum(off * off))
    rho = np.minimum(np.maximum(10.0 * weight, 1e-3), 1e3)
    count = np.int64(0) + 0 * np.sum(c > 0.0)
    begin = {"x": x, "lam": lam, "rho": rho, "turn": count, "nfev": count}
    begin |= {"off": 1.0 + np.max(off), "left": 1.0 + np.max(off)}
    found = while_loop(lambda s: (s["left"] > CLOSE) & (s["turn"] < TURNS), turn, begin)
    return {**found, "lam": units / unit * found["lam"], "rho": units**2 / unit * found["rho"]}


def _residual(p: Problem, held: Problem, at: tuple[Any, Any, Any], moving: bool) -> Any:
    """What is 0 of (x, multipliers): slopes, and constraints that hold, or their multipliers.

    ``moving`` says whether what the functions read from outside is differentiated.
    """
    free, bound, active = at
    read, held_by = (q.f.parameters if moving else q.frozen for q in (p, held))

    def residual(z: Any) -> Any:
        n = free.size
        x, lam = np.where(free, z[:n], bound), z[n:]
        slope = grad(lambda x: p.f(x, read) - lam @ held.f(x, held_by))(x)
        first = np.where(free, slope, z[:n] - bound)
        return np.concatenate([first, np.where(active, held.f(x, held_by), lam)])

    return residual


def _polished(equations: Problem, z: Any) -> tuple[Any, Any]:
    """Newton's method; a little is added to the diagonal, for constraints that say one thing."""

    def step(s: dict[str, Any]) -> dict[str, Any]:
        z, r = s["z"], s["r"]
        matrix = jacobian_at(equations, z)
        scale = 1e-11 * np.maximum(np.max(np.abs(matrix)), 1.0)
        signs = np.where(np.arange(z.size) < equations.x0.size, scale, -scale)
        new = z - np.linalg.solve(matrix + np.diag(signs), r)
        tried = equations(new)
        better = np.max(np.abs(tried)) < s["error"]  # false of NaN, too
        return {
            "z": np.where(better, new, z),
            "r": np.where(better, tried, r),
            "error": np.where(better, np.max(np.abs(tried)), s["error"]),
            "on": better,
            "k": s["k"] + 1,
        }

    r = equations(z)
    error = np.max(np.abs(r))
    begin = {"z": z, "r": r, "error": error, "on": error > 0.0, "k": np.int64(0)}
    found = while_loop(lambda s: s["on"] & (s["k"] < STEPS), step, begin)
    return found["z"], found["error"]


def _conditions(
    p: Problem, held: Problem, found: Found, equal: np.ndarray, box: Box
) -> tuple[Problem, Any]:
    """The equations of the minimum, and whether they hold to one side of it alone."""
    n = p.x0.size
    x, lam = found.z[:n], found.z[n:]
    low = stop_gradient(box.low)
    bound = np.where(found.free, 0.0, np.where(x <= low, box.low, box.high))
    at = found.free, bound, found.active
    equations = closed(_residual(p, held, at, True), found.z, found.z.shape)
    c = held(x)
    weak = (np.abs(c) <= LEVEL) & (np.abs(lam) <= LEVEL) & ~equal
    slope = grad(lambda x: p(x) - lam @ held(x))(x)
    fixed = stop_gradient(box.low) >= stop_gradient(box.high)
    touching = (x <= stop_gradient(box.low)) | (x >= stop_gradient(box.high))
    return equations, np.any(weak) | np.any(touching & ~fixed & (np.abs(slope) <= LEVEL))
