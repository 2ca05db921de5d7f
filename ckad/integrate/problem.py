"""What is to be solved, checked as SciPy checks it, and what comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from warnings import warn_explicit

import numpy as np

from ckad.integrate.stages import EPS
from ckad.place import at_place, user_place
from ckad.trace.arrays import is_traced, known, stopping, traced
from ckad.trace.memory.opened import is_tracing
from ckad.trace.source import follow
from ckad.trace.values.tracer import alike
from ckad.transforms import stop_gradient
from ckad.transforms.primitives import closed


class Control(NamedTuple):
    """What bounds the steps of an adaptive method."""

    rtol: Any  # a number, or float64[n]
    atol: Any  # a number, or float64[n]
    first_step: Any  # a number, or None
    max_step: Any
    differentiate_steps: bool | None  # None: where all steps are read


class Problem(NamedTuple):
    """dy/dt = fun(t, y) from y(t0) = y0 to tf; numbers, or traced values."""

    fun: Callable[[Any, Any], Any]
    t0: Any
    tf: Any
    y0: Any  # float64[n]
    t_eval: Any  # float64[m], or None
    ends: bool = False  # whether the last of t_eval is known to be tf


def problem(
    fun: Any, t_span: Any, y0: Any, t_eval: Any, args: Any, vectorized: bool = False
) -> Problem:
    """Raises ValueError, as SciPy does, for shapes, times and states that do not fit."""
    t0, tf = (number(t) for t in _ends(t_span))
    y0 = array(y0, "y0")
    if y0.ndim != 1:
        raise ValueError(at_place(f"y0 has shape {y0.shape}; it must be 1-dimensional."))
    numbers = y0 if not is_tracing() else known(y0) if y0.dtype.kind == "f" else None
    if numbers is not None and not np.all(np.isfinite(numbers)):
        raise ValueError(at_place(f"y0 is {numbers}; all of it must be finite."))
    ends = False
    if t_eval is not None:
        times = array(t_eval, "t_eval")
        t_eval = _sorted(times, t0, tf)
        ends = is_tracing() and alike(times[-1], tf)
    return Problem(_derivative(fun, args, y0, vectorized), t0, tf, y0, t_eval, ends)


def has_kinks(problem: Problem) -> bool:
    """Whether the derivative chooses by time or state: a table, a branch, an absolute value."""
    begin = traced(np.float64(0.0)) + problem.t0
    return closed.has_kinks(problem.fun, begin, traced(problem.y0))


def _ends(t_span: Any) -> Any:
    try:
        t0, tf = t_span
    except (TypeError, ValueError):
        raise ValueError(at_place(f"t_span is {t_span}; give its two ends, (t0, tf).")) from None
    return t0, tf


def array(x: Any, what: str) -> Any:
    """Numbers in double precision, real or complex; traced where that is recorded."""
    found = _numbers(x, what, traced if is_tracing() else np.asarray)
    return found.astype(np.complex128 if found.dtype.kind == "c" else np.float64)


def _numbers(x: Any, what: str, made: Callable[[Any], Any]) -> Any:
    """Raises TypeError for what is no array of numbers."""
    try:
        found = made(x)
    except ValueError:  # rows of several lengths
        found = np.asarray(None)
    if found.dtype.kind not in "fiubc":
        raise TypeError(at_place(f"{what} is {x!r}; it must be a number, or an array of numbers."))
    return found


def number(t: Any) -> Any:
    what = "an end of t_span"
    found = known(t) if is_tracing() else _numbers(t, what, np.asarray)
    if found is None:
        return array(t, what)
    if found.size != 1 or not np.isfinite(_numbers(found[()], what, np.asarray)):
        raise ValueError(at_place(f"t_span holds {found}; both ends must be finite numbers."))
    return float(found.reshape(()))


def _sorted(t_eval: Any, t0: Any, tf: Any) -> Any:
    """``t_eval``, of which traced times are compared when the program runs."""
    if t_eval.ndim != 1 or t_eval.size == 0:
        raise ValueError(at_place(f"t_eval has shape {t_eval.shape}; it must be of times, 1-D."))
    times, begin, end = (known(x) if is_tracing() else x for x in (t_eval, t0, tf))
    if times is None or begin is None or end is None:
        right = _is_within(t_eval, t0, tf) & _is_sorted(t_eval, t0, tf)
        return stopping(t_eval, np.logical_not(right), "TIMES")
    if not _is_within(times, begin, end):
        raise ValueError(at_place(f"t_eval reaches out of t_span, from {begin} to {end}."))
    if not _is_sorted(times, begin, end):
        raise ValueError(at_place("t_eval is not sorted from the start of t_span to its end."))
    return t_eval


def _is_within(times: Any, begin: Any, end: Any) -> Any:
    low, high = np.minimum(begin, end), np.maximum(begin, end)
    return np.all((times >= low) & (times <= high))


def _is_sorted(times: Any, begin: Any, end: Any) -> Any:
    return np.all((times[1:] - times[:-1]) * np.where(end >= begin, 1.0, -1.0) > 0.0)


def arguments(args: Any) -> tuple[Any, ...]:
    if args is None:
        return ()
    if isinstance(args, (tuple, list)):
        return tuple(args)
    if (is_traced(args) or isinstance(args, np.ndarray)) and args.ndim:
        return tuple(args[k] for k in range(len(args)))
    raise TypeError(at_place(f"args is a {type(args).__name__}; give a tuple, args=(x,)."))


def _derivative(fun: Any, args: Any, y0: Any, vectorized: bool) -> Callable[[Any, Any], Any]:
    rest, followed, shape = arguments(args), follow(fun, often=True), y0.shape

    def derivative(t: Any, y: Any) -> Any:
        found = followed(t, y[:, np.newaxis] if vectorized else y, *rest)
        if found is None:
            raise TypeError(at_place("fun returns None; it must return dy/dt, as many numbers."))
        dy = array(found, "what fun returns")
        if vectorized:
            dy = dy.reshape(-1)
        if dy.dtype.kind == "c" and y0.dtype.kind != "c":
            raise ValueError(
                at_place("fun returns complex numbers for a real state: give y0 as complex, too.")
            )
        if dy.shape != shape:
            if dy.size != 1 and dy.shape != (1, *shape):
                raise ValueError(
                    at_place(f"fun returns shape {dy.shape} for a state of shape {shape}.")
                )
            dy = dy.reshape(-1) + np.zeros(shape)
        return dy

    return derivative


def finite_at_first(fun: Any) -> Callable[..., Any]:
    """``fun``, whose first value is looked at: SciPy tries for ever to begin with NaN."""
    met: list[bool] = []

    def looked_at(t: Any, y: Any, *args: Any) -> Any:
        dy = fun(t, y, *args)
        if not met:
            met.append(True)
            if dy is None or not np.all(np.isfinite(_numbers(dy, "what fun returns", np.asarray))):
                told = f"fun returns {dy} at the start; it must be finite."
                raise ValueError(at_place(told, user_place()))
        return dy

    return looked_at


def in_parts(fun: Any, args: Any) -> tuple[tuple[Any, Any], Callable[..., Any]]:
    """The explicit and the implicit part of a right side, and their sum as a function for SciPy."""
    if len(fun) != 2:
        raise ValueError(at_place(f"fun has {len(fun)} parts; give fun=(explicit, implicit)."))
    slow, fast = fun
    rest = arguments(args)

    def part(given: Any) -> Callable[[Any, Any], Any]:
        followed = follow(given, often=True)
        return lambda t, y: array(followed(t, y, *rest), "what fun returns") + np.zeros(np.shape(y))

    parts = part(slow), part(fast)
    return parts, lambda t, y, *_: parts[0](t, y) + parts[1](t, y)


def observer(saveat: Any, problem: Problem, args: Any) -> Callable[[Any, Any], Any]:
    """What is kept of a state: the state itself, or ``saveat(t, y, *args)``."""
    if saveat is None:
        return lambda t, y: y
    if problem.t_eval is None:
        raise ValueError(at_place("saveat= is called at the times of t_eval=, which is not given."))
    rest, followed = arguments(args), follow(saveat, often=True)
    return lambda t, y: array(followed(t, y, *rest), "what saveat returns")


def control(
    rtol: Any,
    atol: Any,
    first_step: Any,
    max_step: Any,
    differentiate_steps: bool | None,
    problem: Problem,
) -> Control:
    """Raises ValueError for what SciPy refuses, and for tolerances that are NaN or negative."""
    rtol, atol = _bound("rtol", rtol), _bound("atol", atol)
    max_step = _bound("max_step", max_step, is_length=True)
    for name, x in (("rtol", rtol), ("atol", atol)):
        if x.ndim > 0 and x.shape != problem.y0.shape:
            raise ValueError(at_place(f"{name} has shape {x.shape}, the state {problem.y0.shape}."))
    if isinstance(rtol, np.ndarray) and np.any(rtol < 100 * EPS):
        place = user_place()
        told = f"rtol={rtol} is below {100 * EPS:.3g}, which is taken instead."
        warn_explicit(told, UserWarning, place.file, place.line)
    if first_step is not None:
        first_step = _bound("first_step", first_step, is_length=True)
        if isinstance(first_step, float):
            _check_first_step(first_step, problem)
    return Control(np.maximum(rtol, 100 * EPS), atol, first_step, max_step, differentiate_steps)


def _bound(name: str, x: Any, is_length: bool = False) -> Any:
    """A tolerance, or a length of steps; one that the program computes is no variable."""
    found = known(x)
    if found is None:
        x = stop_gradient(array(x, name))
        return stopping(x, np.logical_not(np.all(x > 0 if is_length else x >= 0)), "BOUNDS")
    if found.dtype.kind not in "fiub":
        raise TypeError(at_place(f"{name}={x!r}; give a number, or an array of numbers."))
    numbers = found.astype(float)
    if not np.all(numbers > 0 if is_length else numbers >= 0.0):
        raise ValueError(at_place(f"{name}={numbers} must be positive."))
    return np.float64(numbers) if is_length else numbers


def _check_first_step(first_step: Any, problem: Problem) -> None:
    if isinstance(problem.t0, float) and isinstance(problem.tf, float):
        length = abs(problem.tf - problem.t0)
        if first_step > length:
            raise ValueError(
                at_place(f"first_step={first_step} exceeds t_span, whose length is {length}.")
            )
