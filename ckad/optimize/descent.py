"""``minimize``: BFGS and Newton's method by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ckad.optimize import boxes
from ckad.optimize.lines import along
from ckad.optimize.problem import (
    Problem,
    check_solver,
    closed,
    implicit,
    problem,
    raising,
    recorded,
    settings,
    solver,
)
from ckad.optimize.result import OptimizeResult
from ckad.place import at_place
from ckad.trace.source import follow
from ckad.trace.source.outside.purity import pure
from ckad.transforms import grad, jvp, stop_gradient, value_and_grad, while_loop
from ckad.transforms.primitives.implicit import FAILED, UNCLEAR

MESSAGES = {
    0: "Optimization terminated successfully.",
    1: "Maximum number of iterations has been exceeded.",
    2: "Desired error not necessarily achieved due to precision loss.",
    3: "The function or its gradient is not finite.",
}
_RUNNING, _CONVERGED, _TOO_MANY, _STUCK, _NOT_FINITE = -1, 0, 1, 2, 3
BOUNDED = "L-BFGS-B"
EPS = float(np.finfo(np.float64).eps)


@pure
def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str | None = None,
    jac: Callable[..., Any] | None = None,
    bounds: Any = None,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    linear_solver: str = "auto",
    raises: bool = False,
    **refused: Any,
) -> OptimizeResult:
    """Find x where fun(x) is least, as ``scipy.optimize.minimize`` does, free or within bounds.

    The derivative of ``x`` by all that ``fun`` reads is that of the root of the gradient: one
    system with the Hessian at the minimum, whatever the number of iterations. It is as exact as
    the minimum: an error of ``gtol`` in the gradient is one of that size in the derivative. An
    unknown at a bound has the derivative of that bound.

    Args:
        fun: ``fun(x, *args)`` gives a number.
        x0: where to begin, float64 of any shape; a number is taken as an array of one.
        args: further arguments; a tuple, or one that is none.
        method: "BFGS", or "Newton-CG" with products of the Hessian; within bounds "L-BFGS-B", which
            is a projected BFGS here, with the whole matrix.
        jac: ``jac(x, *args)`` gives the gradient for the iteration; by default it is derived.
        bounds: a pair per unknown, None for none, or SciPy's ``Bounds``; they may be traced.
        tol: sets ``gtol`` of BFGS, ``xtol`` of Newton-CG.
        options: ``maxiter``, and ``gtol`` (1e-5), the largest element of the gradient at the end,
            or ``xtol`` (1e-5), the mean of the last change of x.
        linear_solver: of the derivative: "dense", "cg", or "auto": dense up to 500 unknowns.
        raises: end with a `RaisedError` at this line if the iteration does not converge.

    Returns:
        An `OptimizeResult` with ``x, success, status, message, fun, jac, nfev, njev, nit``.
        ``fun`` is differentiated as well. Where ``success`` is False ``x`` is the last iterate,
        and a derivative of it is a `RaisedError`; so it is where an unknown is at a bound though
        its slope is zero (no strict complementarity), since it moves to one side alone.

    Raises:
        LinAlgError: the Hessian at the minimum is singular, and a derivative is asked for.
        ValueError: shapes, methods or options do not fit.

    >>> import numpy as np, ckad
    >>> def lowest(a):
    ...     return ckad.optimize.minimize(lambda x: np.cosh(x[0] - a) + x[1] ** 2, [0.0, 1.0]).x[0]
    >>> print(np.round(ckad.grad(lowest)(0.5), 5))
    1.0
    """
    method = method or ("BFGS" if bounds is None else "L-BFGS-B")
    _check(method, jac, bounds, refused)
    check_solver(linear_solver)
    name = "xtol" if method == "Newton-CG" else "gtol"
    known = {name: 1e-5 if tol is None else tol, "maxiter": None}
    chosen = settings(options, known, method)

    def run(x0: Any, args: tuple[Any, ...]) -> dict[str, Any]:
        p = problem(fun, x0, args, "number")
        valued, system = _valued(p, jac, args), solver(linear_solver, p.x0.size, True)
        slope: Any = grad(lambda x: p.f(x, p.f.parameters))
        if method == BOUNDED:
            within = boxes.box(bounds, p.x0.size)
            found = _within(p, valued, within, chosen)
            equations, unclear = boxes.equations(p, within, found, chosen["gtol"], slope)
        else:
            found, unclear = METHODS[method](p, valued, chosen), np.bool_(False)
            equations = closed(lambda x: slope(x), p.x0, p.shape)
        failed = found["status"] != _CONVERGED
        why = np.where(failed, FAILED, np.where(unclear, UNCLEAR, 0))
        x = implicit("minimize", equations.f, found["x"], why, system)
        x = raising(x, failed) if raises else x
        result = {k: found[k] for k in ("status", "nfev", "nit")}
        return {
            **result,
            "x": np.reshape(x, p.shape),
            "fun": p.f(x, p.f.parameters),
            "jac": np.reshape(stop_gradient(found["g"]), p.shape),
            "success": np.logical_not(failed),
            "njev": found["nfev"],
        }

    return OptimizeResult(MESSAGES, **recorded(run, x0, args))


def _check(method: str, jac: Any, bounds: Any, refused: dict[str, Any]) -> None:
    if method not in METHODS and method != BOUNDED:
        names = ", ".join([*METHODS, BOUNDED])
        raise ValueError(
            at_place(
                f"method={method!r} is not recorded. Take one of {names}, or SciPy's outside of "
                "transformed functions, with ckad.value_and_grad(fun) and jac=True."
            )
        )
    if (bounds is not None) != (method == BOUNDED):
        raise ValueError(at_place(f"bounds= belong to {BOUNDED!r}, and method is {method!r}."))
    unknown = [name for name, value in refused.items() if value is not None and value != ()]
    if unknown:
        raise ValueError(
            at_place(f"minimize takes no {', '.join(unknown)}: it is for bounds alone.")
        )
    if not (jac is None or callable(jac)):
        raise ValueError(at_place(f"jac={jac!r}: it is a function or None."))


def _valued(p: Problem, jac: Any, args: tuple[Any, ...]) -> Callable[[Any], tuple[Any, Any]]:
    """x to the function and its gradient."""
    if jac is None:
        return value_and_grad(p)
    own = follow(jac, often=True)
    return lambda x: (p(x), np.reshape(own(np.reshape(x, p.shape), *args), x.shape) * 1.0)


def _begun(p: Problem, valued: Any, is_done: Callable[[Any], Any]) -> dict[str, Any]:
    f, g = valued(p.x0)
    finite = np.isfinite(f) & np.all(np.isfinite(g))
    status = np.where(finite, np.where(is_done(g), _CONVERGED, _RUNNING), _NOT_FINITE)
    counts = {"nfev": np.int64(1), "nit": np.int64(0)}
    return {"x": p.x0, "f": f, "g": g, "status": status, **counts}


def _within(p: Problem, valued: Any, box: boxes.Box, options: dict[str, Any]) -> Any:
    box = boxes.Box(*stop_gradient((box.low, box.high)))
    begin = _begun(replace(p, x0=box.clipped(p.x0)), valued, lambda g: np.bool_(False))
    return boxes.least(valued, begin, box, options["gtol"], options["maxiter"] or 200 * p.x0.size)


def _running(s: dict[str, Any]) -> Any:
    return s["status"] == _RUNNING


def _moved(s: dict[str, Any], tried: dict[str, Any], done: Any, maxiter: int) -> dict[str, Any]:
    """The state after a line search."""
    ok, nit = tried["ok"], s["nit"] + 1
    new = {k: np.where(ok, tried[k], s[k]) for k in ("x", "f", "g")}
    goes_on = np.where(nit >= maxiter, _TOO_MANY, _RUNNING)
    status = np.where(done, _CONVERGED, np.where(ok, goes_on, _STUCK))
    return {**new, "status": status, "nit": nit, "nfev": s["nfev"] + tried["n"]}


def _bfgs(p: Problem, valued: Any, options: dict[str, Any]) -> Any:
    """Nocedal & Wright (2006), algorithm 6.1, with the first scale of equation 6.20."""
    n = p.x0.size
    gtol, maxiter = options["gtol"], options["maxiter"] or 200 * n

    def is_done(g: Any) -> Any:
        return np.max(np.abs(g)) <= gtol

    def iterate(s: dict[str, Any]) -> dict[str, Any]:
        x, g = s["x"], s["g"]
        d = -(s["inverse"] @ g)
        d = np.where(d @ g < 0.0, d, -g)
        first = s["nit"] == 0
        t = np.where(first, np.minimum(1.0, 1.0 / np.sqrt(g @ g)), 1.0)
        tried = along(valued, x, s["f"], g, d, t)
        dx, dg = tried["x"] - x, tried["g"] - g
        curvature = dx @ dg
        right = tried["ok"] & (curvature > EPS * (dg @ dg))
        rho = 1.0 / np.where(right, curvature, 1.0)
        scale = curvature / np.where(right, dg @ dg, 1.0)
        before = np.where(first, scale * np.eye(n), s["inverse"])
        hy = before @ dg
        outer = dx[:, np.newaxis] * hy
        change = (1.0 + rho * (dg @ hy)) * rho * (dx[:, np.newaxis] * dx) - rho * (outer + outer.T)
        made = _moved(s, tried, tried["ok"] & is_done(tried["g"]), maxiter)
        return {**made, "inverse": np.where(right, before + change, s["inverse"])}

    begin = {**_begun(p, valued, is_done), "inverse": np.eye(n)}
    return while_loop(_running, iterate, begin)


def _newton_cg(p: Problem, valued: Any, options: dict[str, Any]) -> Any:
    """Nocedal & Wright (2006), algorithm 7.1, ended as SciPy ends it."""
    n = p.x0.size
    xtol, maxiter = options["xtol"], options["maxiter"] or 200 * n

    def slope(x: Any) -> Any:
        return valued(x)[1]

    def iterate(s: dict[str, Any]) -> dict[str, Any]:
        x, g = s["x"], s["g"]
        d = _truncated(lambda v: jvp(slope, (x,), (v,))[1], g)
        tried = along(valued, x, s["f"], g, d, np.float64(1.0))
        change = np.sum(np.abs(np.where(tried["ok"], tried["x"] - x, d)))
        return _moved(s, tried, change <= n * xtol, maxiter)

    begin = _begun(p, valued, lambda g: np.all(g == 0.0))
    return while_loop(_running, iterate, begin)


def _truncated(product: Callable[[Any], Any], g: Any) -> Any:
    """Conjugate gradients for H d = -g until the residual is small or the curvature negative."""
    size = np.sum(np.abs(g))
    enough = np.minimum(0.5, np.sqrt(size)) * size

    def advance(s: dict[str, Any]) -> dict[str, Any]:
        v = s["v"]
        hv = product(v)
        curvature = v @ hv
        rr = s["r"] @ s["r"]
        positive = curvature > 3.0 * EPS * (v @ v)
        alpha = rr / np.where(positive, curvature, 1.0)
        r = s["r"] + alpha * hv
        down = np.where(s["k"] == 0, 1.0, 0.0) * v  # along the gradient, if that is all there is
        return {
            "d": np.where(positive, s["d"] + alpha * v, s["d"] + down),
            "r": r,
            "v": (r @ r) / rr * v - r,
            "k": s["k"] + 1,
            "on": positive & (np.sum(np.abs(r)) > enough),
        }

    begin = {"d": np.zeros_like(g), "r": g, "v": -g, "k": np.int64(0), "on": np.bool_(True)}
    limit = 20 * g.size
    return while_loop(lambda s: s["on"] & (s["k"] < limit), advance, begin)["d"]


METHODS: dict[str, Any] = {"BFGS": _bfgs, "Newton-CG": _newton_cg}
