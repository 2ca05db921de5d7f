"""SciPy's ``quad``, ``dblquad`` and ``tplquad``, where a program that is recorded calls them.

QUADPACK's rule of 21 points (15 where an end is infinite), the interval of the largest error halved
until the sum of the errors is small (Piessens et al. 1983, QAG); QUADPACK also extrapolates. Which
intervals there are is no part of a derivative: it is that of the sum over them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate

from ckad.errors import UnrecordableError
from ckad.integrate.rules import KRONROD_15, KRONROD_21
from ckad.place import at_place
from ckad.trace.arrays import known, traced
from ckad.trace.dispatch import always, put
from ckad.trace.source import follow
from ckad.trace.source.values import by_library
from ckad.transforms import scan, stop_gradient, while_loop

_TOLERANCE = 1.49e-8
_EPS = float(np.finfo(np.float64).eps)
#: Of ``quad``, what changes neither the integral nor how it is recorded.
_TAKEN = frozenset({"func", "a", "b", "args", "epsabs", "epsrel", "limit", "full_output"})


def _quad(*args: Any, **options: Any) -> Any:
    found = by_library(scipy.integrate.quad, *args, **options)
    if found is not None:
        return found
    said = inspect.signature(scipy.integrate.quad).bind(*args, **options).arguments
    for name in said.keys() - _TAKEN:
        if said[name] is not None and said[name] is not False:
            raise UnrecordableError(
                at_place(
                    f"quad with {name}= is not recorded. Write the weight into the function, and a "
                    "sum of integrals between the points."
                )
            )
    if said.get("full_output"):
        raise UnrecordableError(at_place("quad(full_output=1) tells of steps; leave it out."))
    func, rest = follow(said["func"], often=True), _tuple(said.get("args", ()))
    ends = said.get("epsabs", _TOLERANCE), said.get("epsrel", _TOLERANCE), said.get("limit", 50)
    return integral(lambda x: func(x, *rest), said["a"], said["b"], *ends)


def _tuple(args: Any) -> tuple[Any, ...]:
    """SciPy's ``args``: what is no tuple is one argument."""
    return args if isinstance(args, tuple) else (args,)


def integral(
    f: Callable[[Any], Any], a: Any, b: Any, epsabs: float, epsrel: float, limit: int
) -> tuple[Any, Any]:
    """(integral, estimate of its error) of a function of a number."""
    g, low, high, rule = _finite(f, traced(a), traced(b))
    nodes, weights, errors = rule

    def part(at: Any) -> Any:
        """The integral over a part, its error, and the integrals of |g| and of what varies."""
        middle, half = 0.5 * (at[0] + at[1]), 0.5 * (at[1] - at[0])
        values = _along(g, low + (high - low) * (middle + half * nodes)) * (high - low)
        whole = half * np.sum(weights * values)
        error = np.abs(half * np.sum(errors * values))
        size = half * np.sum(weights * np.abs(values))
        varies = half * np.sum(weights * np.abs(values - 0.5 * whole / half))
        safe = np.where(varies > 0.0, varies, 1.0)
        scaled = varies * np.minimum(1.0, (200.0 * error / safe) ** 1.5)
        error = np.where((varies > 0.0) & (error > 0.0), scaled, error)
        return np.stack(
            [whole, np.where(size > 1e-290, np.maximum(50.0 * _EPS * size, error), error)]
        )

    def evaluate(s: dict[str, Any]) -> dict[str, Any]:
        """One part; after both halves of the worst one the next is halved, while any has to be."""
        parts, found = s["at"].copy(), s["found"].copy()
        found[s["slot"]] = part(parts[s["slot"]])
        whole, n, last = np.sum(found, axis=0), s["n"], s["last"]
        enough = whole[1] <= np.maximum(epsabs, epsrel * np.abs(whole[0]))
        ready = s["slot"] == last
        done = ready & (enough | (n >= limit))
        halves = ready & np.logical_not(done)
        slot, last = np.where(halves, np.argmax(found[:, 1]), last), np.where(halves, n, last)
        at = parts[slot].copy()
        middle = 0.5 * (at[0] + at[1])
        parts[slot] = np.where(halves, np.stack([at[0], middle]), at)
        parts[last] = np.where(halves, np.stack([middle, at[1]]), parts[last])
        n = n + np.where(halves, 1, 0)
        return {"at": parts, "found": found, "slot": slot, "last": last, "n": n, "done": done}

    at = np.zeros((limit, 2))
    at[0, 1] = 1.0
    counts = {"slot": np.int64(0), "last": np.int64(0), "n": np.int64(1), "done": np.bool_(False)}
    begin = {"at": at, "found": np.zeros((limit, 2)), **counts}
    s = while_loop(lambda s: np.logical_not(s["done"]), evaluate, begin)
    parts, n = stop_gradient(s["at"]), s["n"]
    value = while_loop(
        lambda t: t["k"] < n,
        lambda t: {"k": t["k"] + 1, "sum": t["sum"] + part(parts[t["k"]])[0]},
        {"k": np.int64(0), "sum": np.float64(0.0)},
    )["sum"]
    return value, stop_gradient(np.sum(s["found"][:, 1]))


def _along(g: Callable[[Any], Any], points: Any) -> Any:
    def one(none: Any, x: Any) -> tuple[Any, Any]:
        return none, traced(g(x)).astype(np.float64).reshape(())

    return scan(one, np.float64(0.0), points)[1]


def _finite(f: Any, a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    """The integrand over a finite interval, its ends, and the rule for it (QUADPACK's QAGI)."""
    ends: list[Any] = [known(a), known(b)]
    infinite = [x is not None and bool(np.isinf(x)) for x in ends]
    a, b = (x.astype(np.float64) for x in (a, b))
    if not any(infinite):
        return f, a, b, KRONROD_21
    zero, one = traced(0.0), traced(1.0)
    if all(infinite):
        sign = 1.0 if ends[0] < ends[1] else -1.0

        def both(t: Any) -> Any:
            x = (1.0 - t) / t
            return sign * (traced(f(x)) + f(-x)) / (t * t)

        return both, zero, one, KRONROD_15
    end, far, sign = (b, ends[0], -1.0) if infinite[0] else (a, ends[1], 1.0)
    way = 1.0 if far > 0.0 else -1.0
    return (
        lambda t: sign * way * traced(f(end + way * (1.0 - t) / t))  / (t * t),
        zero, one, KRONROD_15,
    )  # fmt: skip


def _dblquad(
    func: Any, a: Any, b: Any, gfun: Any, hfun: Any, args: Any = (),
    epsabs: float = _TOLERANCE, epsrel: float = _TOLERANCE,
) -> Any:  # fmt: skip
    rest = (a, b, gfun, hfun, args, epsabs, epsrel)
    found = by_library(scipy.integrate.dblquad, func, *rest)
    if found is not None:
        return found
    followed, given = follow(func, often=True), _tuple(args)
    ends = epsabs, epsrel, 50

    def inner(x: Any) -> Any:
        low, high = (follow(g, often=True)(x) if callable(g) else g for g in (gfun, hfun))
        return integral(lambda y: followed(y, x, *given), low, high, *ends)[0]

    return integral(inner, a, b, *ends)


def _tplquad(
    func: Any, a: Any, b: Any, gfun: Any, hfun: Any, qfun: Any, rfun: Any, args: Any = (),
    epsabs: float = _TOLERANCE, epsrel: float = _TOLERANCE,
) -> Any:  # fmt: skip
    rest = (a, b, gfun, hfun, qfun, rfun, args, epsabs, epsrel)
    found = by_library(scipy.integrate.tplquad, func, *rest)
    if found is not None:
        return found
    followed, given = follow(func, often=True), _tuple(args)
    ends = epsabs, epsrel, 50

    def inner(y: Any, x: Any) -> Any:
        low, high = (follow(q, often=True)(x, y) if callable(q) else q for q in (qfun, rfun))
        return integral(lambda z: followed(z, y, x, *given), low, high, *ends)[0]

    return _dblquad(inner, a, b, gfun, hfun, (), epsabs, epsrel)


put(scipy.integrate.tplquad, _tplquad)
put(scipy.integrate.quad, _quad)
put(scipy.integrate.dblquad, _dblquad)
always(scipy.integrate.quad, scipy.integrate.dblquad, scipy.integrate.tplquad)
