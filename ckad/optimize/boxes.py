"""Minima within bounds: a projected quasi-Newton method, and the equations of what it has found.

D. P. Bertsekas, SIAM J. Control Optim. 20 (1982) 221-246: unknowns at a bound that the slope pushes
against it stay there, the others take a Newton step, which is bent at the bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ckad.optimize.lines import DECREASE, NOISE, TRIALS
from ckad.optimize.problem import Problem, closed
from ckad.place import at_place
from ckad.trace.arrays import is_traced, known, traced
from ckad.transforms import stop_gradient, while_loop

Valued = Callable[[Any], tuple[Any, Any]]
EPS = float(np.finfo(np.float64).eps)


class Box(NamedTuple):
    """Bounds, float64[n], infinite where there is none."""

    low: Any
    high: Any

    def clipped(self, x: Any) -> Any:
        return np.minimum(np.maximum(x, self.low), self.high)

    def still(self, x: Any, g: Any) -> Any:
        """Which unknowns the slope holds at their bound."""
        return ((x <= self.low) & (g >= 0.0)) | ((x >= self.high) & (g <= 0.0))


def is_free(bounds: Any) -> bool:
    """Whether there are no bounds."""
    if bounds is None:
        return True
    if is_traced(bounds):
        return False
    pairs = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    flat = [x for pair in pairs for x in (pair if isinstance(pair, (tuple, list)) else [pair])]
    return not any(is_traced(x) or (x is not None and np.any(np.isfinite(x))) for x in flat)


def box(bounds: Any, n: int) -> Box:
    """Of pairs, of which None is no bound, or an object with ``lb`` and ``ub``, as SciPy's.

    Raises ValueError, as SciPy does, for bounds that do not fit.
    """
    if hasattr(bounds, "lb"):
        ends = [traced(x) * 1.0 + np.zeros(n) for x in (bounds.lb, bounds.ub)]
    else:
        pairs = bounds if is_traced(bounds) else [tuple(pair) for pair in bounds]
        if len(pairs) != n or any(len(pair) != 2 for pair in pairs):
            raise ValueError(at_place(f"bounds has {len(pairs)} pairs for {n} unknowns."))
        ends = [
            np.stack([traced(none if pair[k] is None else pair[k]) * 1.0 for pair in pairs])
            for k, none in enumerate((-np.inf, np.inf))
        ]
    low, high = map(known, ends)
    if low is not None and high is not None and not np.all(low <= high):
        raise ValueError(at_place("one of the lower bounds is greater than its upper bound."))
    return Box(*ends)


def least(valued: Valued, begin: dict[str, Any], box: Box, gtol: float, most: int) -> Any:
    """From a state with "x", "f", "g", "status", "nit", "nfev"; it goes on while status is -1."""

    def size(x: Any, g: Any) -> Any:
        return np.max(np.abs(box.clipped(x - g) - x))

    def iterate(s: dict[str, Any]) -> dict[str, Any]:
        x, g, matrix = s["x"], s["g"], s["matrix"]
        free = np.logical_not(box.still(x, g))
        slope = np.where(free, g, 0.0)
        both = free[:, np.newaxis] & free
        d = -np.linalg.solve(np.where(both, matrix, np.eye(x.size)), slope)
        d = np.where(d @ slope < 0.0, d, -slope)
        first = s["nit"] == 0
        t = np.where(first, np.minimum(1.0, 1.0 / np.sqrt(slope @ slope)), 1.0)
        tried = _along(valued, s, box, (d, slope), t, size)
        ok, nit = tried["ok"], s["nit"] + 1
        new = {k: np.where(ok, tried[k], s[k]) for k in ("x", "f", "g")}
        status = np.where(size(new["x"], new["g"]) <= gtol, 0, np.where(nit >= most, 1, -1))
        return {
            **new,
            "status": np.where(ok, status, 2),
            "nit": nit,
            "nfev": s["nfev"] + tried["n"],
            "matrix": _updated(matrix, new["x"] - x, new["g"] - g, first),
        }

    done = size(begin["x"], begin["g"]) <= gtol
    begin = {**begin, "status": np.where((begin["status"] == -1) & done, 0, begin["status"])}
    begin["matrix"] = np.eye(begin["x"].size)
    return while_loop(lambda s: s["status"] == -1, iterate, begin)


def _updated(matrix: Any, dx: Any, dg: Any, first: Any) -> Any:
    """The BFGS formula for the Hessian, where the curvature is positive."""
    curvature = dx @ dg
    right = curvature > EPS * (dg @ dg)
    scale = (dg @ dg) / np.where(right, curvature, 1.0)
    before = np.where(first, scale * np.eye(dx.size), matrix)
    turned = before @ dx
    lost = turned[:, np.newaxis] * turned / np.where(right, dx @ turned, 1.0)
    gained = dg[:, np.newaxis] * dg / np.where(right, curvature, 1.0)
    return np.where(right, before - lost + gained, matrix)


def _along(
    valued: Valued, s: dict[str, Any], box: Box, ways: tuple[Any, Any], t: Any, size: Any
) -> Any:
    """The first of halved steps, bent at the bounds, that makes the function smaller.

    Of a step that is bent that need not be so for any length: then the slope itself is taken.
    """
    x, f, g = s["x"], s["f"], s["g"]
    d, slope = ways
    before = size(x, g)

    def tried(s: dict[str, Any]) -> dict[str, Any]:
        n = s["n"]
        t = np.where(n == TRIALS // 2, 1.0, s["t"])
        new = box.clipped(x + t * np.where(n < TRIALS // 2, d, -slope))
        f_new, g_new = valued(new)
        falls = g @ (new - x)
        by_value = (falls < 0.0) & (f_new <= f + DECREASE * falls)
        level = (f_new <= f + NOISE * np.abs(f)) & (size(new, g_new) < before)
        return {"t": 0.5 * t, "x": new, "f": f_new, "g": g_new, "ok": by_value | level, "n": n + 1}

    begin = {"t": t, "x": x, "f": f, "g": g, "ok": np.bool_(False), "n": np.int64(0)}
    return while_loop(lambda s: np.logical_not(s["ok"]) & (s["n"] < TRIALS), tried, begin)


def equations(
    p: Problem, box: Box, found: dict[str, Any], gtol: Any, slope: Callable[[Any], Any]
) -> tuple[Problem, Any]:
    """What is zero at the minimum found: slopes of free unknowns, distances of others to bounds.

    With a flag where that is not told apart: at a bound to which the slope does not hold.
    """
    x, g = found["x"], found["g"]
    low, high = stop_gradient((box.low, box.high))
    at_low, at_high = x <= low, x >= high
    free = np.logical_not(at_low | at_high)
    bound = np.where(at_low, box.low, np.where(at_high, box.high, 0.0))
    unclear = np.any((at_low | at_high) & (low < high) & (np.abs(g) <= gtol))

    def residual(x: Any) -> Any:
        return np.where(free, slope(np.where(free, x, bound)), x - bound)

    return closed(residual, p.x0, p.shape), unclear
