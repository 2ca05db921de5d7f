"""``fixed_point``: plain iteration, Aitken's Δ², Anderson's mixing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.optimize.problem import (
    Problem,
    check_solver,
    implicit,
    problem,
    raising,
    recorded,
    settings,
    solver,
)
from ckad.place import at_place
from ckad.trace.source.outside.purity import pure
from ckad.transforms import while_loop
from ckad.transforms.primitives.closed import Closed

#: Differences of iterates that Anderson's method keeps.
DEPTH = 5


@pure
def fixed_point(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    xtol: float = 1e-8,
    maxiter: int = 500,
    method: str = "del2",
    *,
    linear_solver: str = "auto",
) -> Any:
    """Find x with func(x) = x, as ``scipy.optimize.fixed_point`` does.

    The derivative is that of the implicit function, (1 - df/dx)⁻¹ df/dp: one transposed linear
    system, whatever the number of iterations.

    Args:
        func: ``func(x, *args)`` gives float64 of the shape of ``x``.
        x0: where to begin, float64 of any shape.
        args: further arguments; a tuple, or one that is none.
        xtol: the change relative to x, of each element, at which the iteration ends.
        maxiter: the most iterations.
        method: "del2" (Steffensen's, with Aitken's Δ² of each element by itself), "iteration", or
            "anderson" (Anderson 1965, of all elements together, with the last five differences).
        linear_solver: see `root`.

    Returns:
        x, of the shape of ``x0``.

    Raises:
        RaisedError: the iteration has not converged.
        ValueError: shapes or arguments do not fit.

    >>> import numpy as np, ckad
    >>> def point(a):
    ...     return ckad.optimize.fixed_point(lambda x: a * np.cos(x), 0.5)
    >>> value, gradient = ckad.value_and_grad(point)(1.0)
    >>> print(round(value, 8), round(gradient, 8))
    0.73908513 0.44161079
    """
    if method not in METHODS:
        raise ValueError(at_place(f"method={method!r} is not known. Take one of {[*METHODS]}."))
    check_solver(linear_solver)
    chosen = settings({"xtol": xtol, "maxiter": maxiter}, {"xtol": 0, "maxiter": 0}, method)

    def run(x0: Any, args: tuple[Any, ...]) -> dict[str, Any]:
        p = problem(func, x0, args, "vector")
        x, failed = _iterated(p, METHODS[method], chosen)
        g = Closed(lambda x: x - p.f(x, p.f.parameters), x)
        x = implicit("fixed_point", g, x, failed, solver(linear_solver, p.x0.size, False))
        x = raising(x, failed)
        return {"x": np.reshape(x, np.shape(x0)) if np.ndim(x0) else x[0]}

    return recorded(run, x0, args)["x"]


def _iterated(p: Problem, advance: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """The last iterate, and whether it is none to be used."""
    xtol, maxiter, n = options["xtol"], options["maxiter"], p.x0.size

    def iterate(s: dict[str, Any]) -> dict[str, Any]:
        x, old = s["x"], s["old"]
        new, old = advance(p, x, old)
        known = np.where(x == 0.0, 1.0, x)
        change = np.abs(np.where(x == 0.0, new, (new - x) / known))
        return {"x": new, "old": old, "change": np.max(change), "n": s["n"] + 1}

    def goes_on(s: dict[str, Any]) -> Any:
        return np.logical_not(s["change"] < xtol) & (s["n"] < maxiter) & np.isfinite(s["change"])

    old = {"x": np.zeros((DEPTH, n)), "g": np.zeros((DEPTH, n)), "last": (p.x0, p.x0)}
    begin = {"x": p.x0, "change": np.float64(1e300), "n": np.int64(0)}
    begin["old"] = old if advance is _anderson else np.float64(0.0)
    found = while_loop(goes_on, iterate, begin)
    return found["x"], np.logical_not(found["change"] < xtol)


def _plain(f: Any, x: Any, old: Any) -> tuple[Any, Any]:
    return f(x), old


def _del2(f: Any, x: Any, old: Any) -> tuple[Any, Any]:
    """SciPy's ``_fixed_point_helper``."""
    one = f(x)
    two = f(one)
    d = two - 2.0 * one + x
    return np.where(d != 0.0, x - (one - x) ** 2 / np.where(d != 0.0, d, 1.0), two), old


def _anderson(f: Any, x: Any, old: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Walker & Ni (2011), equation 2.5, by normal equations that are a little regularised."""
    g = f(x) - x
    x_last, g_last = old["last"]
    first = np.all(old["last"][0] == x)
    dx = np.concatenate([np.where(first, 0.0, x - x_last)[np.newaxis], old["x"][:-1]])
    dg = np.concatenate([np.where(first, 0.0, g - g_last)[np.newaxis], old["g"][:-1]])
    a = dg @ dg.T
    a = a + (1e-14 * np.trace(a) + 1e-300) * np.eye(DEPTH)
    gamma = np.linalg.solve(a, dg @ g)
    return x + g - gamma @ (dx + dg), {"x": dx, "g": dg, "last": (x, g)}


METHODS: dict[str, Any] = {"del2": _del2, "iteration": _plain, "anderson": _anderson}
