"""``root``: Newton's method with the Jacobian of the program."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ckad.optimize.problem import (
    Problem,
    check_solver,
    chosen,
    implicit,
    jacobian_at,
    norm,
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
from ckad.transforms import jvp, while_loop
from ckad.transforms.primitives.linear import krylov

MESSAGES = {
    1: "The solution converged.",
    2: "The number of iterations has reached maxiter.",
    5: "The iteration is not making good progress: no shorter step makes the function smaller.",
    6: "The function is not finite at x0.",
}
_RUNNING, _CONVERGED, _TOO_MANY, _STUCK, _NOT_FINITE = 0, 1, 2, 5, 6
METHODS = ("newton", "krylov")
#: A step is halved at most so often.
HALVINGS = 30
#: Of the systems of "krylov", which need not be exact (Dembo, Eisenstat & Steihaug 1982).
FORCING = 1e-3
#: A step that makes nothing smaller, and is so short beside x, is rounding.
ROUNDING = 16 * float(np.finfo(np.float64).eps)


@pure
def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "newton",
    jac: Callable[..., Any] | None = None,
    tol: float | None = None,
    callback: None = None,
    options: Mapping[str, Any] | None = None,
    *,
    linear_solver: str = "auto",
    raises: bool = False,
) -> OptimizeResult:
    """Find x with fun(x) = 0, as ``scipy.optimize.root`` does.

    Newton's method, whose step is halved until the norm of ``fun`` falls. The derivative of ``x``
    by all that ``fun`` reads is that of the implicit function: one system with the transposed
    Jacobian, whatever the number of iterations, and nothing of them is kept. By ``x0`` it is zero.

    Args:
        fun: ``fun(x, *args)`` gives float64 of the shape of ``x``.
        x0: where to begin, float64 of any shape; a number is taken as an array of one.
        args: further arguments; a tuple, or one that is none.
        method: ``"newton"``, or ``"krylov"``, which solves by GMRES and makes no matrix. Of SciPy's
            methods neither "hybr" nor the others.
        jac: ``jac(x, *args)`` gives the Jacobian that is used for the steps, float64[n, n]; by
            default it is derived. The derivative of the result never uses it.
        tol: sets ``xtol``.
        callback: none is taken.
        options: ``xtol`` (1.49e-8), the length of the last step relative to that of x; ``fatol``
            (none), a norm of ``fun`` that is small enough; ``maxiter`` (100).
        linear_solver: "dense", "gmres", "bicgstab", or "auto": dense up to 500 unknowns.
        raises: end with a `RaisedError` at this line if the iteration does not converge.

    Returns:
        An `OptimizeResult` with ``x, success, status, message, fun, nfev, njev, nit``. Where
        ``success`` is False ``x`` is the last iterate, and a derivative of it is a `RaisedError`.

    Raises:
        LinAlgError: a Jacobian is singular.
        ValueError: shapes, methods or options do not fit.

    >>> import numpy as np, ckad
    >>> def side(area):
    ...     return ckad.optimize.root(lambda x: x**2 - area, 1.0).x[0]
    >>> value, gradient = ckad.value_and_grad(side)(9.0)
    >>> print(round(value, 12), round(gradient, 12))
    3.0 0.166666666667
    """
    _check(method, jac, callback)
    check_solver(linear_solver)
    known = {"xtol": 1.49012e-8 if tol is None else tol, "fatol": None, "maxiter": 100}
    bounds = settings(options, known, method)

    def run(x0: Any, args: tuple[Any, ...]) -> dict[str, Any]:
        p = problem(fun, x0, args, "vector")
        found = _newton(p, bounds, _steps(p, method, jac, args, linear_solver))
        failed = found["status"] != _CONVERGED
        name = "gmres" if method == "krylov" and linear_solver == "auto" else linear_solver
        x = implicit("root", p.f, found["x"], failed, solver(name, p.x0.size, False))
        x = raising(x, failed) if raises else x
        x, fun_x = (np.reshape(v, p.shape) for v in (x, found["fun"]))
        return {**found, "x": x, "fun": fun_x, "success": np.logical_not(failed)}

    return OptimizeResult(MESSAGES, **recorded(run, x0, args))


def _check(method: str, jac: Any, callback: Any) -> None:
    if method not in METHODS:
        raise ValueError(
            at_place(
                f"method={method!r}: of SciPy's methods none is recorded. Take 'newton', which "
                "makes a Jacobian, or 'krylov', which makes none."
            )
        )
    if callback is not None or not (jac is None or callable(jac)):
        what = "callback" if callback is not None else f"jac={jac!r}"
        raise ValueError(at_place(f"{what} is not taken: jac is a function or None, no callback."))
    if jac is not None and method == "krylov":
        raise ValueError(at_place("method='krylov' makes no Jacobian: leave jac out."))


def _steps(
    p: Problem, method: str, jac: Any, args: tuple[Any, ...], name: str
) -> Callable[[Any, Any], Any]:
    """(x, fun(x)) to Newton's step."""
    n = p.x0.size
    if jac is not None:
        own = follow(jac, often=True)
        return lambda x, f: np.linalg.solve(
            np.reshape(own(np.reshape(x, p.shape), *args), (n, n)), -f
        )
    makes_none = method == "krylov" and name in ("auto", "dense")
    solves = "gmres" if makes_none else chosen(name, n, False)
    if solves == "dense":
        return lambda x, f: np.linalg.solve(jacobian_at(p, x), -f)
    return lambda x, f: krylov(solves, lambda v: jvp(p, (x,), (v,))[1], -f, rtol=FORCING)[0]


def _newton(p: Problem, options: dict[str, Any], step_of: Callable[[Any, Any], Any]) -> Any:
    """Newton's method with halved steps (Dennis & Schnabel 1983, chapter 6)."""
    xtol, fatol, maxiter = options["xtol"], options["fatol"] or 0.0, options["maxiter"]
    least = max(math.sqrt(xtol) * xtol, ROUNDING)
    f0 = p(p.x0)
    size = norm(f0)
    status = np.where(np.isfinite(size), np.where(size <= fatol, _CONVERGED, _RUNNING), _NOT_FINITE)
    begin = {"x": p.x0, "fun": f0, "status": status, "nfev": np.int64(1), "nit": np.int64(0)}

    def iterate(s: dict[str, Any]) -> dict[str, Any]:
        step = step_of(s["x"], s["fun"])
        tried = _halved(p, s["x"], s["fun"], step)
        x, f = (np.where(tried["ok"], tried[k], s[k]) for k in ("x", "fun"))
        made = np.where(tried["ok"], tried["t"], 1.0) * norm(step)
        # where nothing shorter helps, rounding may be all that is left
        enough = np.where(tried["ok"], xtol * (norm(x) + xtol), least * norm(x))
        done = (made <= enough) | (norm(f) <= fatol)
        nit = s["nit"] + 1
        goes_on = np.where(nit >= maxiter, _TOO_MANY, _RUNNING)
        status = np.where(done, _CONVERGED, np.where(tried["ok"], goes_on, _STUCK))
        nfev = s["nfev"] + tried["n"]
        return {"x": x, "fun": f, "status": status, "nfev": nfev, "nit": nit}

    found = while_loop(lambda s: s["status"] == _RUNNING, iterate, begin)
    return {**found, "njev": found["nit"]}


def _halved(p: Problem, x: Any, f: Any, step: Any) -> Any:
    """The first of the steps t = 1, 1/2, 1/4 ... that makes the function smaller."""
    size = norm(f)

    def halve(s: dict[str, Any]) -> dict[str, Any]:
        t = 0.5 * s["t"]
        new = x + t * step
        value = p(new)
        ok = norm(value) <= (1.0 - 1e-4 * t) * size  # false of NaN, too
        return {"t": t, "x": new, "fun": value, "ok": ok, "n": s["n"] + 1}

    begin = {"t": np.float64(2.0), "x": x, "fun": f, "ok": np.bool_(False), "n": np.int64(0)}
    return while_loop(lambda s: np.logical_not(s["ok"]) & (s["n"] < HALVINGS), halve, begin)
