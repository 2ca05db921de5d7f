"""``solve_ivp``: SciPy's, where nothing is recorded, and its steps inside of a recording."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numpy as np
from scipy import integrate

from ckad.errors import UnrecordableError
from ckad.integrate import fixed, recorded
from ckad.integrate.events import prepared
from ckad.integrate.methods import IMEX, METHODS, STIFF, Asked
from ckad.integrate.outside import solver_of
from ckad.integrate.problem import (
    Problem,
    arguments,
    control,
    finite_at_first,
    in_parts,
    observer,
    problem,
)
from ckad.integrate.result import OdeResult
from ckad.integrate.tableaux import PAIRS
from ckad.place import at_place
from ckad.trace.memory.opened import is_tracing
from ckad.trace.source.outside.purity import pure

#: SciPy's alone, and those that are SciPy's outside of recordings.
SCIPYS = ("Radau", "LSODA")
SAME_OUTSIDE = {**{name: pair.solver for name, pair in PAIRS.items()}, "BDF": "BDF"}


@pure
def solve_ivp(
    fun: Any,
    t_span: Sequence[Any],
    y0: Any,
    method: str = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    args: Any = None,
    *,
    rtol: Any = 1e-3,
    atol: Any = 1e-6,
    first_step: float | None = None,
    max_step: float = math.inf,
    n_steps: int | None = None,
    step: float | None = None,
    differentiate_steps: bool | None = None,
    max_events: int = 64,
    saveat: Callable[..., Any] | None = None,
    jac: Any = None,
    jac_sparsity: Any = None,
    vectorized: bool = False,
    **options: Any,
) -> OdeResult:
    """Solve dy/dt = fun(t, y) with y(t0) = y0, as ``scipy.integrate.solve_ivp`` does.

    Inside of a function that is transformed the result depends on ``y0``, ``args``, ``t_span``,
    ``t_eval`` and on what ``fun`` and ``events`` read from outside, and is differentiated with
    respect to them. The derivative is that of the steps that are made (the discrete adjoint), with
    their lengths held fixed; a step that is cut at the end of ``t_span`` moves with that end.

    Args:
        fun: ``fun(t, y, *args)`` gives dy/dt, float64[n], or a list of n numbers; for "KenCarp4"
            also a pair of such functions, (explicit, implicit), whose sum dy/dt is.
        t_span: (t0, tf); tf below t0 integrates backwards.
        y0: float64[n], or complex128[n].
        method: adaptive "RK23", "RK45", "DOP853" or "Tsit5"; of fixed step "Euler", "Midpoint",
            "Heun", "RK4", and for y = (q, p) with dq/dt a function of p, and dp/dt of q, "Leapfrog"
            and "Yoshida4". For stiff equations "Rodas5P", "Kvaerno3", "Kvaerno5", "KenCarp4" and
            "BDF"; outside of recordings SciPy's "Radau" and "LSODA", too.
        t_eval: float64[m], sorted from t0 to tf, the times of the states that are returned. An
            adaptive method needs it inside of a recording for more than the last state.
        dense_output: return a function of time, ``sol``; inside of a recording it solves again.
        events: a function ``event(t, y, *args)`` or a list of such, whose zeros are found, with
            SciPy's attributes ``terminal`` and ``direction``; for adaptive methods.
        rtol, atol: bounds on a step's error, relative and absolute: numbers or float64[n]. As
            arguments of what is recorded they are not compiled into it; derivatives by them are 0.
        first_step, max_step: lengths, in units of t.
        n_steps: how many steps of equal length a method of fixed step makes.
        step: its longest step in place of ``n_steps``, where ``t_span`` is known.
        differentiate_steps: differentiate the choice of the steps' lengths, too; None does so for
            what reads all steps of an adaptive method without ``t_eval``, if ``fun`` is smooth.
        max_events: inside of a recording the room for the zeros of an event that is not terminal.
        saveat: ``saveat(t, y, *args)`` gives an array that is kept at ``t_eval`` in place of ``y``.
        jac: ``jac(t, y, *args)`` or a matrix, float64[n, n], for the Newton iterations of implicit
            methods; None for that of the tape, which derivatives have in any case.
        jac_sparsity: a matrix [n, n], not zero where that of ``fun`` may be; bands are made use of.
        vectorized: call ``fun`` with a state of shape (n, 1), as SciPy does.
        options: of SciPy's own methods (``min_step``, ...).

    Returns:
        An object with SciPy's fields ``t, y, sol, t_events, y_events, nfev, njev, nlu, status,
        message, success``. Inside of a recording ``t`` and ``y`` of an adaptive method without
        ``t_eval`` have a first and a last column only, and a step that becomes too small ends the
        program with an `UnfinishedError`, unless that asks for ``status`` or ``success``.

    Raises:
        ValueError: shapes, times, tolerances or options do not fit.
        UnrecordableError: what is asked for is not known while the program is recorded.

    >>> import numpy as np, ckad
    >>> from ckad.integrate import solve_ivp
    >>> def end(rate):
    ...     sol = solve_ivp(lambda t, y: -rate * y, (0.0, 2.0), [1.0], rtol=1e-9, atol=1e-9)
    ...     return sol.y[0, -1]
    >>> value, gradient = ckad.value_and_grad(end)(0.5)
    >>> print(round(value, 8), round(gradient, 8))
    0.36787944 -0.73575888
    """
    if jac is not None or jac_sparsity is not None:
        _refuse_jacobian(method)
    parts, fun = in_parts(fun, args) if isinstance(fun, (tuple, list)) else (None, fun)
    if parts is not None and method not in IMEX:
        raise ValueError(at_place(f"fun=(explicit, implicit) is for {', '.join(IMEX)} alone."))
    asked = problem(fun, t_span, y0, t_eval, args, vectorized)
    observe = observer(saveat, asked, args)
    if method in fixed.METHODS:
        _refuse_for_fixed(method, dense_output, events, options)
        control(rtol, atol, None, math.inf, differentiate_steps, asked)
        _refuse_lengths(method, first_step, max_step)
        n = _steps(method, asked, n_steps, step)
        return fixed.solve(fixed.METHODS[method], asked, n, observe)
    _check_method(method, options)
    if n_steps is not None or step is not None:
        raise ValueError(
            at_place(f"{method} chooses its steps: n_steps= and step= are for fixed steps.")
        )
    bounds = control(rtol, atol, first_step, max_step, differentiate_steps, asked)
    about = parts, jac, jac_sparsity, arguments(args)
    if is_tracing():
        now = Asked(asked, bounds, prepared(events, arguments(args), max_events), *about)
        return _recorded(METHODS[method], now, observe, dense_output)
    if method in STIFF or method in SCIPYS:
        options |= {"jac": jac, "jac_sparsity": jac_sparsity}
    options |= {"first_step": first_step, "max_step": max_step, "vectorized": vectorized}
    options |= {"rtol": bounds.rtol, "atol": bounds.atol}
    solver: Any = SAME_OUTSIDE.get(method, method)
    if method in METHODS and method not in SAME_OUTSIDE:
        whole = asked._replace(t_eval=np.array([asked.t0]))  # so that it keeps its last step
        solver = solver_of(lambda: METHODS[method](Asked(whole, bounds, (), *about)))
    result = integrate.solve_ivp(
        *(finite_at_first(fun), (asked.t0, asked.tf), asked.y0, solver),
        *(asked.t_eval, dense_output, events),
        args=None if args is None else arguments(args),
        **options,
    )
    if saveat is not None:
        columns = [observe(t, y) for t, y in zip(result.t, result.y.T, strict=True)]
        result["y"] = np.stack(columns, axis=-1)
    return OdeResult(**result)


def _recorded(
    made: Callable[[Asked], Any], now: Asked, observe: Callable[..., Any], dense_output: bool
) -> OdeResult:
    """The steps of an adaptive method as part of what is recorded."""
    later = now.as_now() if dense_output or now.problem.t_eval is None else now
    found = recorded.solve(made(now), observe, lambda: made(later.with_lengths()))
    if dense_output:
        found.sol = recorded.Solution(lambda t: made(later.at(t)))
    return found


def _refuse_lengths(method: str, first_step: float | None, max_step: float) -> None:
    if first_step is not None or max_step != math.inf:
        told = f"{method} has fixed steps, no first_step= and max_step=: give n_steps= or step=."
        raise ValueError(at_place(told))


def _check_method(method: str, options: dict[str, Any]) -> None:
    if method in SCIPYS:
        if is_tracing():
            raise UnrecordableError.here(
                f"{method} is SciPy's own, whose steps are not recorded: it is for use outside "
                f"of transformed functions. Take one of {', '.join(METHODS)}."
            )
        return
    if method not in METHODS:
        names = ", ".join([*METHODS, *fixed.METHODS, *SCIPYS])
        raise ValueError(at_place(f"method={method!r} is not known. Take one of {names}."))
    _refuse_unknown(method, options)


def _refuse_unknown(method: str, options: dict[str, Any]) -> None:
    if options:
        parameters = signature(solve_ivp).parameters.values()
        known = [x.name for x in parameters if x.kind is x.KEYWORD_ONLY]
        raise TypeError(
            at_place(
                f"{method} has no option {', '.join(options)}; solve_ivp has {', '.join(known)}."
            )
        )


def _refuse_jacobian(method: str) -> None:
    if method in PAIRS or method in fixed.METHODS:
        raise TypeError(
            at_place(f"{method} has no option jac: it is for {', '.join([*STIFF, *SCIPYS])}.")
        )


def _refuse_for_fixed(
    method: str, dense_output: bool, events: Any, options: dict[str, Any]
) -> None:
    _refuse_unknown(method, options)
    if dense_output or events is not None:
        name = "dense_output" if dense_output else "events"
        raise ValueError(
            at_place(
                f"{name}= is for adaptive methods ({', '.join(METHODS)}), and not for {method}."
            )
        )


def _steps(method: str, problem: Problem, n_steps: int | None, step: float | None) -> int:
    if fixed.METHODS[method].halves and problem.y0.size % 2:
        raise ValueError(
            at_place(f"{method} takes positions, then momenta; y0 has {problem.y0.size} numbers.")
        )
    if (n_steps is None) == (step is None):
        raise ValueError(
            at_place(f"{method} has fixed steps: give n_steps= or step=, one of them.")
        )
    if step is None:
        if not (isinstance(n_steps, (int, np.integer)) and n_steps > 0):
            raise ValueError(at_place(f"n_steps={n_steps} must be a positive integer."))
        return int(n_steps)
    if not (isinstance(problem.t0, float) and isinstance(problem.tf, float)):
        raise UnrecordableError.here(
            "t_span is computed, so step= makes an unknown number of steps. Give n_steps=."
        )
    if not 0 < step < math.inf:
        raise ValueError(at_place(f"step={step} must be positive and finite."))
    return max(1, math.ceil(abs(problem.tf - problem.t0) / step * (1.0 - 1e-12)))
