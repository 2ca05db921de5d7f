"""SciPy's fits by least squares, where a program that is recorded asks for them.

A loss changes the residuals: q with q**2 = C**2 rho(r**2 / C**2) has the same least sum of squares
(B. Triggs et al., Bundle Adjustment, 2000, section 4.3).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from ckad.optimize import boxes
from ckad.optimize.hybrid import least_squares
from ckad.optimize.problem import closed, implicit, jacobian_at, problem, raising, solver
from ckad.optimize.result import Found
from ckad.optimize.zeros import refused, tupled, warn_of_method
from ckad.place import at_place
from ckad.trace.arrays import known, traced
from ckad.trace.dispatch import CALLING, always, put
from ckad.trace.source import follow
from ckad.trace.source.library.noted import by_library
from ckad.transforms import grad, stop_gradient
from ckad.transforms.primitives.implicit import FAILED, UNCLEAR

Function = Callable[[Any], Any]
TOLERANCE = 1e-10
#: So many unknowns are few: their slopes are columns of a Jacobian, side by side.
FEW = 8
#: A slope at a bound is none where it is smaller than this part of its terms.
_LEVEL = 1e-9


def _over(f: Function, of: float) -> Function:
    """f(z) / z, which is ``of`` at 0."""

    def quotient(z: Any) -> Any:
        small = z < 1e-300
        return np.where(small, of, f(np.where(small, 1.0, z)) / np.where(small, 1.0, z))

    return quotient


#: Of SciPy's losses rho: rho(z), and rho(z) / z.
LOSSES: dict[str, tuple[Function, Function]] = {
    "soft_l1": (
        lambda z: 2.0 * (np.sqrt(1.0 + z) - 1.0),
        lambda z: 2.0 / (np.sqrt(1.0 + z) + 1.0),
    ),
    "huber": (
        lambda z: np.where(z <= 1.0, z, 2.0 * np.sqrt(np.maximum(z, 1.0)) - 1.0),
        lambda z: np.where(
            z <= 1.0, 1.0, (2.0 * np.sqrt(np.maximum(z, 1.0)) - 1.0) / np.maximum(z, 1.0)
        ),
    ),
    "cauchy": (np.log1p, _over(np.log1p, 1.0)),
    "arctan": (np.arctan, _over(np.arctan, 1.0)),
}


def _half_squares(r: Any) -> Any:
    return 0.5 * np.sum(r * r)


class Fit:
    """Residuals at their least sum of squares, and what SciPy's functions tell of it."""

    def __init__(
        self, name: str, fun: Callable[..., Any], x0: Any, args: Any = (), bounds: Any = None,
        loss: str = "linear", scale: Any = 1.0,
    ) -> None:  # fmt: skip
        begin = np.atleast_1d(traced(x0))
        p = problem(fun, begin.reshape(begin.size), args, "residuals")
        within, n = None if boxes.is_free(bounds) else _box(bounds, begin), begin.size
        self._p = p
        own, self.cost = _objectives(loss, scale)
        q, limit, start = (lambda x: own(p(x))), 200 * (n + 1), p.x0
        low, high = np.full(n, -np.inf), np.full(n, np.inf)
        if within is not None:
            low, high = stop_gradient((within.low, within.high))
            start = stop_gradient(within.clipped(p.x0))
        run = follow(least_squares)
        shape = p.f.tape.output_types[0].shape  # of the residuals
        begun = (lambda x: jacobian_at(q, x)), start, traced(np.zeros(shape))
        found = run(q, *begun, traced(low), traced(high), TOLERANCE, limit)
        x, r, g, self.found, self.calls = found
        why: Any = np.where(self.found, 0, FAILED)
        if within is None:
            equations = closed(lambda x: self._slope(x), p.x0, p.shape)
        else:
            level = (
                _LEVEL * np.sqrt(np.sum(r * r)) * np.sqrt(np.sum(jacobian_at(q, x) ** 2, axis=0))
            )
            at = {"x": x, "g": g}
            equations, unclear = boxes.equations(p, within, at, level, self._slope)
            why = np.where(self.found & unclear, UNCLEAR, why)
        self.active = np.where(x <= low, -1, np.where(x >= high, 1, 0))
        self.x = implicit(name, equations.f, x, why, solver("auto", n, True))

    def residuals(self) -> Any:
        return self._at(self.x)

    def jacobian(self) -> Any:
        return jacobian_at(self._at, self.x)

    def _slope(self, x: Any) -> Any:
        """Of the cost; of few unknowns by their columns, since its derivatives take less so."""
        if x.size > FEW:
            return grad(lambda x: self.cost(self._at(x)))(x)
        return jacobian_at(self._at, x).T @ grad(self.cost)(self._at(x))

    def _at(self, x: Any) -> Any:
        return self._p.f(x, self._p.f.parameters)


def _objectives(loss: str, scale: Any) -> tuple[Function, Function]:
    """Residuals whose squares are summed, and half that sum."""
    if loss == "linear":
        return (lambda r: r), _half_squares
    rho, rate = LOSSES[loss]
    c = traced(scale) * 1.0
    return (
        lambda r: r * np.sqrt(rate((r / c) ** 2)),
        lambda r: 0.5 * np.sum(c**2 * rho((r / c) ** 2)),
    )


def _box(bounds: Any, begin: Any) -> boxes.Box:
    """Bounds as least_squares takes them, around where it begins."""
    if not hasattr(bounds, "lb"):
        if len(bounds) != 2:
            raise ValueError(at_place("bounds= has two elements: the lower ends and the upper."))
        ends = [np.broadcast_to(traced(x) * 1.0, begin.shape) for x in bounds]
        bounds = np.stack(ends, axis=-1)
    within = boxes.box(bounds, begin.size)
    x, low, high = (known(x) for x in (begin, within.low, within.high))
    if x is not None and low is not None and high is not None:
        if not np.all(low < high):
            raise ValueError(at_place("each lower bound has to be below its upper bound."))
        if not np.all((low <= x) & (x <= high)):
            raise ValueError(at_place(f"x0 is {x}, which is not within its bounds."))
    return within


def _least_squares(fun: Any, x0: Any, *rest: Any, **options: Any) -> Any:
    known = by_library(scipy.optimize.least_squares, fun, x0, *rest, **options)
    if known is not None:
        return known
    given = inspect.signature(scipy.optimize.least_squares).bind(fun, x0, *rest, **options)
    said = given.arguments
    loss, scale = said.get("loss", "linear"), said.get("f_scale", 1.0)
    if not (isinstance(loss, str) and loss in ("linear", *LOSSES)):
        raise refused("least_squares", f"loss={loss!r}", "Write the loss into fun.")
    bounds = said.get("bounds")
    _warn("least_squares", bounds, loss)
    followed, named = follow(fun, often=True), said.get("kwargs") or {}
    about = tupled(said.get("args", ())), bounds, loss, scale
    fit = Fit("least_squares", lambda x, *a: followed(x, *a, **named), x0, *about)
    r, jacobian = fit.residuals(), fit.jacobian()
    found = {"x": fit.x, "fun": r, "cost": fit.cost(r), "active_mask": fit.active}
    if loss == "linear":  # of another one SciPy gives scaled ones
        found |= {"jac": jacobian, "grad": jacobian.T @ r}
        if boxes.is_free(bounds):  # within bounds SciPy scales by the distance from them
            found["optimality"] = np.max(np.abs(jacobian.T @ r))
    found |= {"status": np.where(fit.found, 2, 0), "message": "status says which: 2: converged"}
    return Found(**found, success=fit.found, nfev=fit.calls, njev=fit.calls)


def _warn(name: str, bounds: Any, loss: str = "linear") -> None:
    if loss != "linear" or not boxes.is_free(bounds):
        call = f"scipy.optimize.{name} within bounds or with a loss"
        own = "ckad's own method of Levenberg and Marquardt"
        warn_of_method(call, own, "ckad.optimize.minimize(fun, x0, bounds=...)")


def _leastsq(
    func: Any, x0: Any, args: Any = (), Dfun: Any = None, full_output: Any = False,
    col_deriv: Any = False, **options: Any,
) -> Any:  # fmt: skip
    known = by_library(
        scipy.optimize.leastsq, func, x0, args, Dfun, full_output, col_deriv, **options
    )
    if known is not None:
        return known
    fit = Fit("leastsq", func, x0, tupled(args))
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
    if "loss" in options:
        raise refused("curve_fit", "loss=", "Write least_squares.")
    _warn("curve_fit", bounds)
    followed, x, y = follow(f, often=True), traced(xdata), traced(ydata)
    weighted = _weighted(sigma)
    n = np.size(p0) if p0 is not None else len(inspect.signature(f).parameters) - 1
    begin = _begin(bounds, n) if p0 is None else p0

    def residuals(p: Any) -> Any:
        return weighted(traced(followed(x, *(p[k] for k in range(n)))) - y)

    fit = Fit("curve_fit", residuals, begin, (), bounds)
    at = raising(fit.x, np.logical_not(fit.found))
    r, jacobian = fit.residuals(), fit.jacobian()
    covariance = np.linalg.inv(jacobian.T @ jacobian)
    if not absolute_sigma:
        spread = np.sum(r * r) / (r.size - n) if r.size > n else np.inf
        covariance = covariance * spread
    if full_output:
        told = {"fvec": r, "nfev": fit.calls}
        return at, covariance, told, "The fit has converged.", 1
    return at, covariance


def _weighted(sigma: Any) -> Function:
    """Residuals in units of their errors: one for each, or a matrix of covariances."""
    if sigma is None:
        return lambda r: r
    sigma = traced(sigma)
    if sigma.ndim < 2:
        return lambda r: r / sigma
    lower = np.linalg.cholesky(sigma)
    return lambda r: np.linalg.solve(lower, r)


def _begin(bounds: Any, n: int) -> Any:
    """Where SciPy begins if it is not told: at ones, or well within the bounds."""
    if boxes.is_free(bounds):
        return np.ones(n)
    low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    low, high = (np.broadcast_to(traced(x) * 1.0, (n,)) for x in (low, high))
    has_low, has_high = np.isfinite(low), np.isfinite(high)
    a, b = np.where(has_low, low, 0.0), np.where(has_high, high, 0.0)
    ends = np.where(has_low, a + 1.0, np.where(has_high, b - 1.0, 1.0))
    return np.where(has_low & has_high, 0.5 * (a + b), ends)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    scipy.optimize.least_squares: _least_squares,
    scipy.optimize.leastsq: _leastsq,
    scipy.optimize.curve_fit: _curve_fit,
}
for _scipys, _function in _FUNCTIONS.items():
    put(_scipys, _function, CALLING)
    always(_scipys)
