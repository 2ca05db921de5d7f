"""SciPy's minima and fits, where a program that is recorded asks for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from ckad.optimize.brackets import bracketed, least, least_between
from ckad.optimize.descent import minimize
from ckad.optimize.hybrid import least_squares
from ckad.optimize.problem import (
    Problem,
    closed,
    implicit,
    jacobian_at,
    problem,
    raising,
    solver,
)
from ckad.optimize.result import Found
from ckad.optimize.zeros import frozen, of_number, refused, tupled, warn_of_method
from ckad.trace.arrays import is_traced, traced
from ckad.trace.dispatch import CALLING, always, put
from ckad.trace.source import follow
from ckad.trace.source.library.noted import by_library
from ckad.transforms import grad

#: Of ``bounds=``: what says that there are none.
_UNBOUNDED = "Write x = lower + np.exp(z) or the like, and minimise by z without bounds."


def _defined(p: Problem, objective: Any, x: Any, failed: Any, name: str) -> Any:
    """``x`` derived as a zero of the objective's gradient."""
    slope = closed(lambda x: grad(lambda x: objective(p.f(x, p.f.parameters)))(x), p.x0, p.shape)
    return implicit(name, slope.f, x, failed, solver("auto", p.x0.size, True))


def _same(x: Any) -> Any:
    return x


def _half_squares(r: Any) -> Any:
    return 0.5 * np.sum(r * r)


# --- a minimum of several unknowns ---------------------------------------------------------------


def _minimize(
    fun: Any, x0: Any, args: Any = (), method: Any = None, jac: Any = None, hess: Any = None,
    hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: Any = None,
    callback: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    rest = (args, method, jac, hess, hessp, bounds, constraints, tol, callback, options)
    known = by_library(scipy.optimize.minimize, fun, x0, *rest)
    if known is not None:
        return known
    bounds = None if _unbounded(bounds) else bounds
    if not (isinstance(constraints, (tuple, list)) and not constraints):
        raise refused(
            "minimize", "constraints=", "Write the conditions of Lagrange, and find their root."
        )
    own = "Newton-CG" if method == "Newton-CG" else "BFGS"
    own = own if bounds is None else "L-BFGS-B"
    name = getattr(method, "__name__", method) or "BFGS"
    call = f"ckad.optimize.minimize(fun, x0, method={own!r})"
    warn_of_method(f"scipy.optimize.minimize by {name}", f"ckad's own {own}", call)
    if jac is True:
        both = follow(fun, often=True)
        fun, jac = (lambda x, *a: both(x, *a)[0]), (lambda x, *a: both(x, *a)[1])
    limits = {k: v for k, v in dict(options or {}).items() if k == "maxiter" and v is not None}
    if own != "Newton-CG" and "gtol" in (options or {}):
        limits["gtol"] = options["gtol"]
    jac = jac if callable(jac) else None
    begin = np.atleast_1d(traced(x0))
    return minimize(fun, begin.reshape(begin.size), tupled(args), own, jac, bounds, tol, limits)


def _unbounded(bounds: Any) -> bool:
    if bounds is None:
        return True
    if is_traced(bounds):
        return False
    pairs = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    flat = [x for pair in pairs for x in (pair if isinstance(pair, (tuple, list)) else [pair])]
    return not any(is_traced(x) or (x is not None and np.any(np.isfinite(x))) for x in flat)


# --- a minimum of one unknown --------------------------------------------------------------------


def _minimize_scalar(
    fun: Any, bracket: Any = None, bounds: Any = None, args: Any = (), method: Any = None,
    tol: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    known = by_library(
        scipy.optimize.minimize_scalar, fun, bracket, bounds, args, method, tol, options
    )
    if known is not None:
        return known
    options = dict(options or {})
    limit = options.get("maxiter", 500)
    bounded = (method or ("brent" if bounds is None else "bounded")).lower() == "bounded"
    given = bounds if bounded else bracket if bracket is not None else (0.0, 1.0)
    points = [frozen(x) for x in given]
    p = of_number(fun, tupled(args), points[0], "number")

    def value(x: Any) -> Any:
        return p(np.reshape(x, (1,)))

    if bounded:
        xatol = options.get("xatol", 1e-5 if tol is None else tol)
        x, found = follow(least_between)(value, *points, xatol, min(limit, 500))
        near = 2.0 * xatol + 1e-7 * np.abs(x)  # a bound's own derivative, not that of a zero
        found = found & (x - points[0] > near) & (points[1] - x > near)
    else:
        x, found = _by_brent(value, points, options.get("xtol", 1.48e-8 if tol is None else tol))
    x = _defined(p, _same, np.reshape(x, (1,)), np.logical_not(found), "minimize_scalar")
    return Found(x=x[0], fun=p.f(x, p.f.parameters), success=found)


def _by_brent(value: Callable[[Any], Any], points: list[Any], tol: float) -> tuple[Any, Any]:
    right = traced(True)
    if len(points) == 2:
        *points, right = follow(bracketed)(value, *points, 110.0, 1000)
    x, found = follow(least)(value, *points, tol, 500)
    return x, found & right


def _fminbound(
    func: Any, x1: Any, x2: Any, args: Any = (), xtol: float = 1e-5, maxfun: int = 500,
    full_output: Any = 0, disp: Any = 1,
) -> Any:  # fmt: skip
    known = by_library(scipy.optimize.fminbound, func, x1, x2, args, xtol, maxfun, full_output)
    if known is not None:
        return known
    if full_output:
        raise refused("fminbound", "full_output=", "Leave it out, or write minimize_scalar.")
    ends = {"xatol": xtol, "maxiter": maxfun}
    return _minimize_scalar(func, None, (x1, x2), args, "bounded", None, ends).x


# --- least squares -------------------------------------------------------------------------------


class _Fit:
    """Residuals at their least sum of squares, and what SciPy's functions tell of it."""

    def __init__(self, fun: Callable[..., Any], x0: Any, args: Any, tol: float, name: str) -> None:
        begin = np.atleast_1d(traced(x0))
        p = problem(fun, begin.reshape(begin.size), args, "residuals")
        limit = 200 * (begin.size + 1)
        run = follow(least_squares)
        x, _, self.found, self.calls = run(p, lambda x: jacobian_at(p, x), p.x0, tol, limit)
        self.x = _defined(p, _half_squares, x, np.logical_not(self.found), name)
        self._p = p

    def residuals(self) -> Any:
        return self._at(self.x)

    def jacobian(self) -> Any:
        return jacobian_at(self._at, self.x)

    def _at(self, x: Any) -> Any:
        return self._p.f(x, self._p.f.parameters)


def _least_squares(fun: Any, x0: Any, *rest: Any, **options: Any) -> Any:
    known = by_library(scipy.optimize.least_squares, fun, x0, *rest, **options)
    if known is not None:
        return known
    given = inspect.signature(scipy.optimize.least_squares).bind(fun, x0, *rest, **options)
    said = given.arguments
    if not _unbounded(said.get("bounds")):
        raise refused("least_squares", "bounds=", _UNBOUNDED)
    if said.get("loss", "linear") != "linear":
        raise refused("least_squares", f"loss={said['loss']!r}", "Write the loss into fun.")
    followed, named = follow(fun, often=True), said.get("kwargs") or {}
    fit = _Fit(lambda x, *a: followed(x, *a, **named), x0, tupled(said.get("args", ())), 1e-10,
               "least_squares")  # fmt: skip
    r, jacobian = fit.residuals(), fit.jacobian()
    return Found(
        x=fit.x, fun=r, cost=_half_squares(r), jac=jacobian, grad=jacobian.T @ r,
        success=fit.found, status=np.where(fit.found, 2, 0), nfev=fit.calls,
    )  # fmt: skip


def _leastsq(
    func: Any, x0: Any, args: Any = (), Dfun: Any = None, full_output: Any = False,
    col_deriv: Any = False, **options: Any,
) -> Any:  # fmt: skip
    known = by_library(
        scipy.optimize.leastsq, func, x0, args, Dfun, full_output, col_deriv, **options
    )
    if known is not None:
        return known
    fit = _Fit(func, x0, tupled(args), 1e-10, "leastsq")
    status = np.where(fit.found, 1, 5)
    if not full_output:
        return fit.x, status
    jacobian = fit.jacobian()
    told = {"fvec": fit.residuals(), "nfev": fit.calls}
    return fit.x, np.linalg.inv(jacobian.T @ jacobian), told, "ier says which", status


def _curve_fit(
    f: Any, xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None,
    absolute_sigma: bool = False, check_finite: Any = None, bounds: Any = (-np.inf, np.inf),
    method: Any = None, jac: Any = None, *, full_output: bool = False, nan_policy: Any = None,
    **options: Any,
) -> Any:  # fmt: skip
    known = by_library(
        scipy.optimize.curve_fit, f, xdata, ydata, p0, sigma, absolute_sigma, check_finite, bounds,
        method, jac, full_output=full_output, nan_policy=nan_policy, **options,
    )  # fmt: skip
    if known is not None:
        return known
    if not _unbounded(bounds):
        raise refused("curve_fit", "bounds=", _UNBOUNDED)
    if full_output or np.ndim(sigma) > 1:
        raise refused("curve_fit", "full_output= or a matrix sigma=", "Write least_squares.")
    followed, x, y = follow(f, often=True), traced(xdata), traced(ydata)
    begin = np.ones(len(inspect.signature(f).parameters) - 1) if p0 is None else p0
    weights = 1.0 if sigma is None else 1.0 / traced(sigma)
    n = np.size(begin)

    def residuals(p: Any) -> Any:
        return (traced(followed(x, *(p[k] for k in range(n)))) - y) * weights

    fit = _Fit(residuals, begin, (), 1e-10, "curve_fit")
    at = raising(fit.x, np.logical_not(fit.found))
    r, jacobian = fit.residuals(), fit.jacobian()
    covariance = np.linalg.inv(jacobian.T @ jacobian)
    if not absolute_sigma:
        covariance = covariance * (np.sum(r * r) / (r.size - n))
    return at, covariance


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    scipy.optimize.minimize: _minimize,
    scipy.optimize.minimize_scalar: _minimize_scalar,
    scipy.optimize.fminbound: _fminbound,
    scipy.optimize.least_squares: _least_squares,
    scipy.optimize.leastsq: _leastsq,
    scipy.optimize.curve_fit: _curve_fit,
}
for _scipys, _function in _FUNCTIONS.items():
    put(_scipys, _function, CALLING)
    always(_scipys)
