"""SciPy's minima, where a program that is recorded asks for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from ckad.optimize import boxes
from ckad.optimize.brackets import bracketed, least, least_between
from ckad.optimize.constrained.least import minimum
from ckad.optimize.descent import minimize
from ckad.optimize.problem import closed, implicit, solver
from ckad.optimize.result import Found, OptimizeResult
from ckad.optimize.zeros import frozen, of_number, refused, tupled, warn_of_method
from ckad.trace.arrays import traced
from ckad.trace.dispatch import CALLING, always, put
from ckad.trace.source import follow
from ckad.trace.source.library.noted import by_library
from ckad.transforms import grad

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
    bounds = None if boxes.is_free(bounds) else bounds
    if not (isinstance(constraints, (tuple, list)) and not constraints):
        return _under(constraints, fun, x0, tupled(args), jac, bounds)
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


def _under(
    given: Any, fun: Any, x0: Any, args: tuple[Any, ...], jac: Any, bounds: Any
) -> OptimizeResult:
    """A minimum under constraints."""
    own = "ckad's own augmented Lagrangians and Newton's method"
    warn_of_method("scipy.optimize.minimize under constraints", own, "the x0 that is nearest")
    if jac is True:
        both = follow(fun, often=True)
        fun = lambda x, *a: both(x, *a)[0]  # noqa: E731
    begin = np.atleast_1d(traced(x0))
    free = boxes.Box(*(np.full(begin.size, end) for end in (-np.inf, np.inf)))
    box = free if bounds is None else boxes.box(bounds, begin.size)
    return minimum(fun, begin.reshape(begin.size), args, given, box)


#: Functions from before ``minimize``, and its methods.
_FORMER = {
    "fmin": "Nelder-Mead", "fmin_powell": "Powell", "fmin_cg": "CG", "fmin_bfgs": "BFGS",
    "fmin_ncg": "Newton-CG", "fmin_l_bfgs_b": "L-BFGS-B", "fmin_tnc": "TNC",
    "fmin_slsqp": "SLSQP",
}  # fmt: skip
#: Of these, what asks for more than the minimum.
_ASKING = ("full_output", "retall")
#: Constraints of ``fmin_slsqp``: a list of functions, or one of which an array is.
_CONDITIONS = {"eqcons": "eq", "f_eqcons": "eq", "ieqcons": "ineq", "f_ieqcons": "ineq"}


def _former(name: str) -> Callable[..., Any]:
    scipys = getattr(scipy.optimize, name)

    def least_of(*args: Any, **options: Any) -> Any:
        known = by_library(scipys, *args, **options)
        if known is not None:
            return known
        said = inspect.signature(scipys).bind(*args, **options).arguments
        for option in _ASKING:
            if option in said and (callable(said[option]) or bool(said[option])):
                raise refused(name, f"{option}=", "Write minimize(fun, x0) without it.")
        fun, x0 = said["func" if "func" in said else "f"], said["x0"]
        jac, bounds = said.get("fprime"), said.get("bounds")
        bounds = bounds if bounds is not None and len(bounds) else None
        if name == "fmin_slsqp" and (held := _conditions(said)):
            return _under(held, fun, x0, tupled(said.get("args", ())), jac, bounds).x
        if name in ("fmin_l_bfgs_b", "fmin_tnc") and jac is None and not said.get("approx_grad"):
            jac = True
        gtol = said.get("gtol", said.get("pgtol"))
        limits = {} if gtol is None or name == "fmin_tnc" else {"gtol": gtol}
        about = tupled(said.get("args", ())), _FORMER[name], jac
        found = _minimize(fun, x0, *about, bounds=bounds, options=limits)
        if name == "fmin_l_bfgs_b":
            told = {"grad": found.jac, "warnflag": found.status, "funcalls": found.nfev}
            return found.x, found.fun, told
        return (found.x, found.nfev, found.status) if name == "fmin_tnc" else found.x

    return least_of


def _conditions(said: dict[str, Any]) -> list[dict[str, Any]]:
    """What ``fmin_slsqp`` is given, as constraints of ``minimize``."""
    found = []
    for option, kind in _CONDITIONS.items():
        given = said.get(option)
        each = [given] if callable(given) else given or []
        found += [{"type": kind, "fun": fun, "args": said.get("args", ())} for fun in each]
    return found


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
    slope = closed(lambda x: grad(lambda x: p.f(x, p.f.parameters))(x), p.x0, p.shape)
    system = solver("auto", 1, True)
    x = implicit("minimize_scalar", slope.f, np.reshape(x, (1,)), np.logical_not(found), system)
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


# --- the function that SciPy has to try them on --------------------------------------------------


def _in_bracket(name: str) -> Callable[..., Any]:
    """SciPy's ``brent`` or ``golden``, which end at the same place."""
    ask = getattr(scipy.optimize, name)

    def least_of(
        func: Any, args: Any = (), brack: Any = None, tol: float = 1.48e-8, full_output: Any = 0,
        maxiter: int = 500,
    ) -> Any:  # fmt: skip
        known = by_library(ask, func, args, brack, tol, full_output, maxiter)
        if known is not None:
            return known
        if full_output:
            raise refused(name, "full_output=", "Leave it out, or write minimize_scalar.")
        return _minimize_scalar(func, brack, None, args, "brent", None, {"xtol": tol}).x

    return least_of


def _rosen(x: Any) -> Any:
    x = np.true_divide(x, 1.0)
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0, axis=0)


def _rosen_der(x: Any) -> Any:
    x = np.true_divide(x, 1.0)
    beyond, zero = 200.0 * (x[1:] - x[:-1] ** 2), np.zeros_like(x[:1])
    below = -2.0 * beyond * x[:-1] - 2.0 * (1.0 - x[:-1])
    return np.concatenate((below, zero)) + np.concatenate((zero, beyond))


put(scipy.optimize.rosen, _rosen)
put(scipy.optimize.rosen_der, _rosen_der)

_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    scipy.optimize.minimize: _minimize,
    scipy.optimize.minimize_scalar: _minimize_scalar,
    scipy.optimize.fminbound: _fminbound,
    scipy.optimize.brent: _in_bracket("brent"),
    scipy.optimize.golden: _in_bracket("golden"),
    **{getattr(scipy.optimize, name): _former(name) for name in _FORMER},
}
for _scipys, _function in _FUNCTIONS.items():
    put(_scipys, _function, CALLING)
    always(_scipys)
