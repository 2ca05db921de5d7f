"""SciPy's own solvers, where a program that is recorded calls them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.integrate

from ckad.errors import SolverWarning, UnrecordableError
from ckad.integrate.called.stepping import Ode, Stepper
from ckad.integrate.called.steps import Steps, chooses
from ckad.integrate.problem import arguments, control, finite_at_first, has_kinks, problem
from ckad.integrate.solve import solve_ivp
from ckad.integrate.tableaux import PAIRS
from ckad.place import at_place, user_place
from ckad.trace.arrays import known, traced
from ckad.trace.dispatch import CALLING, always, put
from ckad.trace.results import Result
from ckad.trace.source import follow
from ckad.trace.source.library.noted import by_library

#: Tolerances of ODEPACK in SciPy, ``1.49012e-8``.
_ODEINT = 1.49012e-8
#: Methods of SciPy that are not recorded, and what is in their place: stiff ones, too.
_INSTEAD = {"Radau": "Kvaerno5", "LSODA": "BDF"}
#: Options that SciPy's methods look at.
_OF_ALL = frozenset({"first_step", "max_step", "rtol", "atol"})
_OF_NEWTON = frozenset({"jac", "jac_sparsity"})
_OPTIONS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("RK23", "RK45", "DOP853"), frozenset()),
    **dict.fromkeys(("Radau", "BDF"), _OF_NEWTON),
    "LSODA": frozenset({"jac", "lband", "uband", "min_step"}),
}
#: Classes of SciPy whose objects take one step at a time.
STEPPERS: tuple[type, ...] = (
    scipy.integrate.RK23, scipy.integrate.RK45,
    scipy.integrate.DOP853, scipy.integrate.Radau, scipy.integrate.BDF, scipy.integrate.LSODA,
)  # fmt: skip
#: Options of ``odeint`` that choose how LSODA works, or what it says.
_OF_LSODA = frozenset(
    """Dfun col_deriv ml mu ixpr mxstep mxhnil mxordn mxords printmessg hmin tcrit""".split()
)


def _solve_ivp(
    fun: Callable[..., Any], t_span: Any, y0: Any, method: Any = "RK45", t_eval: Any = None,
    dense_output: bool = False, events: Any = None, vectorized: bool = False, args: Any = None,
    **options: Any,
) -> Any:  # fmt: skip
    name = method.__name__ if isinstance(method, type) else method
    options = _heeded(name, options)
    rest = (t_span, y0, method, t_eval, dense_output, events, vectorized, args)
    found = by_library(scipy.integrate.solve_ivp, finite_at_first(fun), *rest, **options)
    if found is not None:
        return found
    if isinstance(method, type) and getattr(scipy.integrate, name, None) is not method:
        raise UnrecordableError.here(
            f"method={name} is a class of its own, whose steps are not recorded."
        )
    if name == "LSODA":
        options = _of_bdf(options, traced(y0).size)
    if name in _INSTEAD:
        _warn_of_steps(name, _INSTEAD[name])
        name = _INSTEAD[name]
    if name in PAIRS:
        asked = problem(fun, t_span, y0, None, args, vectorized)
        options["differentiate_steps"] = chooses(asked, options.get("rtol", 1e-3))
    about = t_eval, dense_output, events, args
    return solve_ivp(fun, t_span, y0, name, *about, vectorized=vectorized, **options)


def _heeded(method: str, options: dict[str, Any]) -> dict[str, Any]:
    """Options without those that a method of SciPy's does not look at; a warning says so."""
    if method not in _OPTIONS:
        return options
    known_here = _OF_ALL | _OPTIONS[method]
    if without := [name for name in options if name not in known_here]:
        told = f"{method} of solve_ivp makes no use of {', '.join(f'{x}=' for x in without)}."
        _warn(UserWarning, told)
    return {name: x for name, x in options.items() if name in known_here}


def _of_bdf(options: dict[str, Any], n: int) -> dict[str, Any]:
    """Options of LSODA as those of BDF."""
    lower, upper = options.pop("lband", None), options.pop("uband", None)
    if options.pop("min_step", 0.0):
        raise UnrecordableError.here(
            "LSODA's min_step= is not recorded: its steps are those of BDF. Leave it out."
        )
    if lower is not None or upper is not None:
        if options.pop("jac", None) is not None:
            raise UnrecordableError.here(
                "LSODA's jac= of diagonals is not recorded. Leave it out, or give all of it."
            )
        below = np.subtract.outer(np.arange(n), np.arange(n))
        options["jac_sparsity"] = (below <= (lower or 0)) & (-below <= (upper or 0))
    return options


def _warn_of_steps(method: str, own: str) -> None:
    _warn(
        SolverWarning,
        f"solve_ivp(method={method!r}) is recorded with the steps of {own}, within the same rtol "
        f"and atol: states agree with SciPy's to these. Write method={own!r} to say so.",
    )


def _warn(kind: type[Warning], told: str) -> None:
    place = user_place()
    warnings.warn_explicit(told, kind, place.file, place.line)


def _odeint(func: Callable[..., Any], y0: Any, t: Any, args: Any = (), **options: Any) -> Any:
    found = by_library(scipy.integrate.odeint, func, y0, t, args, **options)
    if found is not None:
        return found
    asked = options.pop("full_output", False)
    followed, rest = follow(func, often=True), arguments(args)
    first = options.pop("tfirst", False)
    rtol, atol = options.pop("rtol", None), options.pop("atol", None)
    h0, longest = options.pop("h0", 0.0), options.pop("hmax", 0.0)
    if unknown := options.keys() - _OF_LSODA:
        raise TypeError(at_place(f"odeint has no option {', '.join(sorted(unknown))}."))
    begin = np.atleast_1d(traced(y0))
    if begin.dtype.kind == "c":
        raise TypeError(at_place("odeint takes real states; solve_ivp takes complex ones."))
    _warn_of_method()

    def derivative(time: Any, y: Any) -> Any:
        return followed(*((time, y) if first else (y, time)), *rest)

    times = traced(t)
    numbers, again = known(times), None
    if numbers is not None and numbers.ndim == 1:
        fresh = np.append(True, np.diff(numbers) != 0.0)  # ODEPACK takes a time twice
        times, again = times[np.flatnonzero(fresh)], np.cumsum(fresh) - 1
    states = solve_ivp(
        *(derivative, (times[0], times[-1]), begin, "DOP853", times),
        rtol=_ODEINT if rtol is None else rtol,
        atol=_ODEINT if atol is None else atol,
        first_step=h0 or None,
        max_step=longest or np.inf,
    ).y.T
    if again is not None and len(again) != len(states):
        states = states[again]
    return (states, OfLsoda()) if asked else states


class OfLsoda(Result):
    """What ``odeint`` tells beside the states: its message. LSODA's steps have not been made."""

    def __init__(self) -> None:
        self.message = "Integration successful."


def _warn_of_method() -> None:
    _warn(
        SolverWarning,
        "scipy.integrate.odeint is recorded with the steps of DOP853 in place of LSODA's, within "
        "the same rtol and atol: states agree with SciPy's to these, not to the last digit. "
        "Write ckad.integrate.solve_ivp(f, (t[0], t[-1]), y0, method, t_eval=t).y.T to choose.",
    )


def _taken_by(name: str) -> Callable[..., Stepper]:
    """One of SciPy's classes whose steps are ckad's."""
    own = _INSTEAD.get(name, name)

    def made(
        fun: Any, t0: Any, y0: Any, t_bound: Any, max_step: Any = np.inf, rtol: Any = 1e-3,
        atol: Any = 1e-6, jac: Any = None, jac_sparsity: Any = None, vectorized: bool = False,
        first_step: Any = None, **others: Any,
    ) -> Stepper:  # fmt: skip
        if own != name:
            _warn(
                SolverWarning,
                f"scipy.integrate.{name} is recorded with the steps of {own}, within the same rtol "
                "and atol: they lie elsewhere, and there may be more or fewer of them.",
            )
        asked = problem(fun, (t0, t_bound), y0, None, None, vectorized)
        lengths = not has_kinks(asked)  # whoever takes steps reads where they lie
        bounds = control(rtol, atol, first_step, max_step, lengths, asked)
        return Stepper(Steps(own, asked, bounds, jac, jac_sparsity))

    return made


put(scipy.integrate.solve_ivp, _solve_ivp, CALLING)
put(scipy.integrate.odeint, _odeint, CALLING)
put(scipy.integrate.ode, Ode, CALLING)
put(scipy.integrate.complex_ode, partial(Ode, scalar=complex), CALLING)
for _kind in STEPPERS:
    put(_kind, _taken_by(_kind.__name__), CALLING)
always(scipy.integrate.solve_ivp, scipy.integrate.odeint)
always(scipy.integrate.ode, scipy.integrate.complex_ode, *STEPPERS)
