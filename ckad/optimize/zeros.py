"""SciPy's roots, where a program that is recorded asks for them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

from ckad.errors import SolverWarning, UnrecordableError
from ckad.optimize.brackets import bisect, brent, newton, newton_of_all, secant, secants
from ckad.optimize.hybrid import hybrid
from ckad.optimize.points import fixed_point
from ckad.optimize.problem import Problem, implicit, jacobian_at, problem, raising, solver
from ckad.optimize.result import Found, OptimizeResult
from ckad.optimize.roots import root
from ckad.place import at_place, user_place
from ckad.trace.arrays import traced
from ckad.trace.dispatch import CALLING, always, put
from ckad.trace.source import follow
from ckad.trace.source.library.noted import by_library
from ckad.transforms import jvp, stop_gradient

_EPS4 = 4.0 * float(np.finfo(np.float64).eps)
#: Of ``fsolve``, by its ``ier``.
MESSAGES = {
    1: "The solution converged.",
    2: "The number of calls to function has reached maxfev.",
    3: "xtol is too small, no further improvement in the approximate solution is possible.",
    4: "The iteration is not making good progress, by the last five Jacobians.",
    5: "The iteration is not making good progress, by the last ten iterations.",
}


def tupled(args: Any) -> tuple[Any, ...]:
    return args if isinstance(args, tuple) else (args,)


def frozen(x: Any) -> Any:
    """A number as float64 without derivative."""
    return stop_gradient(traced(x).astype(np.float64).reshape(()))


def of_number(fun: Callable[..., Any], args: tuple[Any, ...], like: Any, size: str) -> Problem:
    """``fun`` of a number, as a problem of one unknown."""
    followed = follow(fun, often=True)
    return problem(lambda x: followed(x[0], *args), like.reshape(1), (), size)


def warn_of_method(call: str, own: str, write: str) -> None:
    place = user_place()
    warnings.warn_explicit(
        f"{call} is recorded with {own}: within the same tolerances, not to the last digit, and "
        f"where there are several solutions perhaps another. Write {write} to choose.",
        SolverWarning,
        place.file,
        place.line,
    )


def refused(call: str, what: str, remedy: str) -> UnrecordableError:
    return UnrecordableError.here(f"{call} with {what} is not recorded. {remedy}")


def _root(p: Problem, x: Any, found: Any, name: str, stops: Any) -> Any:
    failed = np.logical_not(found)
    x = implicit(name, p.f, np.reshape(x, (p.x0.size,)), failed, solver("auto", p.x0.size, False))
    return raising(x, failed) if stops else x


# --- one unknown, in a bracket -------------------------------------------------------------------


def _of_bracket(scipys: Any, iteration: Any, variant: bool) -> Callable[..., Any]:
    def between(
        f: Any, a: Any, b: Any, args: Any = (), xtol: Any = 2e-12, rtol: Any = _EPS4,
        maxiter: int = 100, full_output: bool = False, disp: bool = True,
    ) -> Any:  # fmt: skip
        given = (f, a, b, args, xtol, rtol, maxiter, full_output, disp)
        known = by_library(scipys, *given)
        if known is not None:
            return known
        ends = frozen(a), frozen(b)
        p = of_number(f, tupled(args), ends[0], "vector")
        x, found = follow(iteration)(
            lambda x: p(np.reshape(x, (1,)))[0], *ends, xtol, rtol, maxiter, variant
        )
        x = _root(p, x, found, scipys.__name__, disp)[0]
        return (x, Found(root=x, converged=found)) if full_output else x

    return between


def _toms748(
    f: Any, a: Any, b: Any, args: Any = (), k: int = 1, xtol: Any = 2e-12, rtol: Any = _EPS4,
    maxiter: int = 100, full_output: bool = False, disp: bool = True,
) -> Any:  # fmt: skip
    given = (f, a, b, args, k, xtol, rtol, maxiter, full_output, disp)
    known = by_library(scipy.optimize.toms748, *given)
    if known is not None:
        return known
    warn_of_method("toms748", "Brent's method", "scipy.optimize.brentq")
    return _BRACKETS["brentq"](f, a, b, args, xtol, rtol, maxiter, full_output, disp)


_BRACKETS: dict[str, Callable[..., Any]] = {
    "toms748": _toms748,
    "brentq": _of_bracket(scipy.optimize.brentq, brent, False),
    "brenth": _of_bracket(scipy.optimize.brenth, brent, True),
    "bisect": _of_bracket(scipy.optimize.bisect, bisect, False),
    "ridder": _of_bracket(scipy.optimize.ridder, bisect, True),
}


# --- one unknown, or each of an array by itself, from a point -----------------------------------


def _newton(
    func: Any, x0: Any, fprime: Any = None, args: Any = (), tol: float = 1.48e-8,
    maxiter: int = 50, fprime2: Any = None, x1: Any = None, rtol: float = 0.0,
    full_output: bool = False, disp: bool = True,
) -> Any:  # fmt: skip
    given = (func, x0, fprime, args, tol, maxiter, fprime2, x1, rtol, full_output, disp)
    known = by_library(scipy.optimize.newton, *given)
    if known is not None:
        return known
    args = tupled(args)
    begin = stop_gradient(traced(x0).astype(np.float64))
    if begin.size > 1:
        return _newton_of_all(func, begin, fprime, fprime2, args, (tol, maxiter), full_output)
    begin = begin.reshape(())
    p = of_number(func, args, begin, "vector")

    def value(x: Any) -> Any:
        return p(np.reshape(x, (1,)))[0]

    slope, bend = (_number(g, args, begin) for g in (fprime, fprime2))
    if slope is not None:
        x, found = follow(newton)(value, slope, bend, begin, tol, rtol, maxiter)
    else:
        near = begin * (1.0 + 1e-4)
        other = near + np.where(near >= 0.0, 1e-4, -1e-4) if x1 is None else frozen(x1)
        x, found = follow(secant)(value, begin, other, tol, rtol, maxiter)
    x = _root(p, x, found, "newton", disp)[0]
    return (x, Found(root=x, converged=found)) if full_output else x


def _number(g: Any, args: tuple[Any, ...], like: Any) -> Any:
    """A derivative that is given, without derivative."""
    if g is None:
        return None
    p = of_number(g, args, like, "vector")
    return lambda x: p(np.reshape(x, (1,)))[0]


class _OfAll(NamedTuple):
    """What ``newton`` gives of arrays with ``full_output=True``."""

    root: Any
    converged: Any
    zero_der: Any


def _newton_of_all(
    func: Any, x0: Any, fprime: Any, fprime2: Any, args: tuple[Any, ...], ends: tuple[float, int],
    full_output: bool,
) -> Any:  # fmt: skip
    p = problem(func, x0, args, "vector")
    slope, bend = (problem(g, x0, args, "vector") if g else None for g in (fprime, fprime2))
    if slope is None:
        x, found = follow(secants)(p, p.x0, *ends)
    else:
        x, found = follow(newton_of_all)(p, slope, bend, p.x0, *ends)
    x = np.reshape(_root(p, x, found, "newton", True), x0.shape)
    return _OfAll(x, found, np.zeros(x0.shape, dtype=bool)) if full_output else x


def _root_scalar(
    f: Any, args: Any = (), method: Any = None, bracket: Any = None, fprime: Any = None,
    fprime2: Any = None, x0: Any = None, x1: Any = None, xtol: Any = None, rtol: Any = None,
    maxiter: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    given = (f, args, method, bracket, fprime, fprime2, x0, x1, xtol, rtol, maxiter, options)
    known = by_library(scipy.optimize.root_scalar, *given)
    if known is not None:
        return known
    ends = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter} | dict(options or {})
    ends = {k: v for k, v in ends.items() if v is not None and k in ("xtol", "rtol", "maxiter")}
    method = (method or ("brentq" if bracket is not None else "secant" if x1 else "newton")).lower()
    rest = {"args": args, "full_output": True, "disp": False}
    if method in _BRACKETS:
        found = _BRACKETS[method](f, *bracket, **rest, **ends)[1]
    elif method in ("newton", "halley", "secant"):
        if "xtol" in ends:
            ends["tol"] = ends.pop("xtol")
        fun, slope, bend = _derivatives(f, fprime, fprime2, method, tupled(args))
        found = _newton(fun, x0, slope, fprime2=bend, x1=x1, **rest, **ends)[1]
    else:
        raise refused("root_scalar", f"method={method!r}", f"Take one of {[*_BRACKETS]}.")
    return Found(**vars(found), flag="converged says which", method=method)


def _derivatives(f: Any, fprime: Any, fprime2: Any, method: str, args: Any) -> tuple[Any, ...]:
    """The function and its derivatives; ``True`` says that the function gives them too."""
    if method == "secant":
        return f, None, None
    followed = follow(f, often=True)

    def several(k: int) -> Callable[..., Any]:
        return lambda x, *args: followed(x, *args)[k]

    fun = several(0) if fprime is True or fprime2 is True else f

    def tangent(x: Any, *args: Any) -> Any:
        return jvp(lambda x: followed(x, *args), (x,), (np.ones(()),))[1]

    slope = several(1) if fprime is True else fprime or tangent
    return fun, slope, several(2) if fprime2 is True else fprime2


# --- several unknowns ----------------------------------------------------------------------------


def _hybrid(
    func: Any, x0: Any, args: Any, fprime: Any, xtol: float, maxfev: int, factor: float
) -> tuple[Any, ...]:
    """(x, f(x), ier, evaluations)"""
    begin = traced(x0)
    p = problem(func, begin.reshape(begin.size), tupled(args), "vector")
    n, shape = p.x0.size, (p.x0.size, p.x0.size)
    given = follow(fprime, often=True) if callable(fprime) else None

    def slopes(x: Any) -> Any:
        if given is None:
            return jacobian_at(p, x)
        return stop_gradient(traced(given(x, *tupled(args))).reshape(shape) * 1.0)

    limit = maxfev or 100 * (n + 1)
    x, value, status, calls, near = follow(hybrid)(p, slopes, p.x0, xtol, limit, factor)
    x = _root(p, x, (status == 1) | near, "fsolve", False)
    return x, stop_gradient(value), status, calls


def _fsolve(
    func: Any, x0: Any, args: Any = (), fprime: Any = None, full_output: Any = 0,
    col_deriv: Any = 0, xtol: float = 1.49012e-8, maxfev: int = 0, band: Any = None,
    epsfcn: Any = None, factor: float = 100.0, diag: Any = None,
) -> Any:  # fmt: skip
    rest = (args, fprime, full_output, col_deriv, xtol, maxfev, band, epsfcn, factor, diag)
    known = by_library(scipy.optimize.fsolve, func, x0, *rest)
    if known is not None:
        return known
    if diag is not None or col_deriv:
        raise refused("fsolve", "diag= or col_deriv=", "Leave it out.")
    x, value, status, calls = _hybrid(func, x0, args, fprime, xtol, maxfev, factor)
    if not full_output:
        return x
    return x, {"nfev": calls, "fvec": value}, status, "ier says which"


def _root_of_several(
    fun: Any, x0: Any, args: Any = (), method: str = "hybr", jac: Any = None, tol: Any = None,
    callback: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    known = by_library(scipy.optimize.root, fun, x0, args, method, jac, tol, callback, options)
    if known is not None:
        return known
    options = dict(options or {})
    if jac is True:
        both = follow(fun, often=True)
        fun, jac = (lambda x, *a: both(x, *a)[0]), (lambda x, *a: both(x, *a)[1])
    if method == "hybr":
        xtol = options.get("xtol", 1.49012e-8 if tol is None else tol)
        ends = xtol, options.get("maxfev", 0), options.get("factor", 100.0)
        x, value, status, calls = _hybrid(fun, x0, args, jac, *ends)
        shape = np.shape(x0) or (1,)
        found = {"x": np.reshape(x, shape), "fun": value, "nfev": calls, "status": status}
        return OptimizeResult(MESSAGES, success=status == 1, **found)
    if method not in _OTHERS:
        raise ValueError(at_place(f"root has no method {method!r}; it has hybr, {_OTHERS}."))
    return _by_newton(f"scipy.optimize.root by {method}", fun, x0, args, method, jac, tol)


#: Methods of ``root`` in whose place is Newton's; some are functions, too.
_OTHERS = (
    *("lm", "krylov", "df-sane", "broyden1", "broyden2", "anderson", "linearmixing"),
    *("diagbroyden", "excitingmixing"),
)
_ALONE = {"newton_krylov": "krylov", **{name: name for name in _OTHERS[3:]}}


def _by_newton(
    call: str, fun: Any, x0: Any, args: Any, method: str, jac: Any, tol: Any, raises: bool = False
) -> OptimizeResult:
    own = "krylov" if method == "krylov" else "newton"
    write = f"ckad.optimize.root(fun, x0, method={own!r})"
    warn_of_method(call, f"Newton's method ({write})", write)
    given = jac if callable(jac) and own == "newton" else None
    return root(fun, x0, tupled(args), own, given, tol, raises=raises)


def _alone(name: str, method: str) -> Callable[..., Any]:
    scipys = getattr(scipy.optimize, name)

    def solve(F: Any, xin: Any, *rest: Any, **options: Any) -> Any:
        known = by_library(scipys, F, xin, *rest, **options)
        if known is not None:
            return known
        call = f"scipy.optimize.{name}"
        return _by_newton(call, F, xin, (), method, None, None, True).x.reshape(np.shape(xin))

    return solve


def _fixed_point(
    func: Any, x0: Any, args: Any = (), xtol: float = 1e-8, maxiter: int = 500,
    method: str = "del2",
) -> Any:  # fmt: skip
    known = by_library(scipy.optimize.fixed_point, func, x0, args, xtol, maxiter, method)
    if known is not None:
        return known
    return fixed_point(func, x0, args, xtol, maxiter, method)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{getattr(scipy.optimize, name): function for name, function in _BRACKETS.items()},
    scipy.optimize.newton: _newton,
    scipy.optimize.root_scalar: _root_scalar,
    scipy.optimize.fsolve: _fsolve,
    scipy.optimize.root: _root_of_several,
    scipy.optimize.fixed_point: _fixed_point,
    **{getattr(scipy.optimize, name): _alone(name, method) for name, method in _ALONE.items()},
}
for _scipys, _function in _FUNCTIONS.items():
    put(_scipys, _function, CALLING)
    always(_scipys)
