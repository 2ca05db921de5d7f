"""SciPy's integrals of functions, where a program that is recorded calls them.

QUADPACK's rule of 21 points (15 where an end is infinite), the interval of the largest error halved
until the sum of the errors is small (Piessens et al. 1983, QAG); QUADPACK also extrapolates. Which
intervals there are is no part of a derivative: it is that of the sum over them.
``quad_vec`` does the same with norms of arrays.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate
import scipy.special

from ckad.errors import UnrecordableError
from ckad.integrate.rules import KRONROD_15, KRONROD_21
from ckad.place import at_place
from ckad.trace.arrays import known, stopping, traced
from ckad.trace.dispatch import CALLING, always, put
from ckad.trace.results import Result
from ckad.trace.source import follow
from ckad.trace.source.library.noted import by_library, refusing
from ckad.transforms import scan, stop_gradient, while_loop

_TOLERANCE = 1.49e-8
_EPS = float(np.finfo(np.float64).eps)
#: Of ``quad``, what changes neither the integral nor how it is recorded.
_TAKEN = frozenset("func a b args epsabs epsrel limit full_output points".split())


def _quad(*args: Any, **options: Any) -> Any:
    found = by_library(scipy.integrate.quad, *args, **options)
    if found is not None:
        return found
    said = inspect.signature(scipy.integrate.quad).bind(*args, **options).arguments
    _refuse_options("quad", said, _TAKEN)
    func, rest = follow(said["func"], often=True), _tuple(said.get("args", ()))
    ends = said.get("epsabs", _TOLERANCE), said.get("epsrel", _TOLERANCE), said.get("limit", 50)
    over = said["a"], said["b"]
    about = (lambda x: func(x, *rest)), *over, *ends
    points = said.get("points")
    parted = points is not None and len(points) > 0
    found = _between_points(*about, points) if parted else integral(*about)
    return (*found, OfQuadpack()) if said.get("full_output") else found


class OfQuadpack(Result):
    """What ``quad`` tells of its intervals, of which there are others here: nothing."""


def _between_points(
    f: Callable[[Any], Any], a: Any, b: Any, epsabs: float, epsrel: float, limit: int, points: Any
) -> tuple[Any, Any]:
    """The sum of the integrals between the ends and the points that lie between them."""
    a, b = traced(a) * 1.0, traced(b) * 1.0
    for end in (known(a), known(b)):
        if end is not None and not np.isfinite(end):
            raise ValueError(at_place("Infinity inputs cannot be used with break points."))
    low, high = np.minimum(a, b), np.maximum(a, b)
    inner = np.sort(np.clip(np.atleast_1d(traced(points)) * 1.0, low, high))
    edges = np.concatenate([np.stack([low]), inner, np.stack([high])])

    def part(sums: Any, ends: Any) -> tuple[Any, None]:
        value, error = integral(f, ends[0], ends[1], epsabs, epsrel, limit)
        return sums + np.stack([value, error]), None

    sums, _ = scan(part, np.zeros(2), np.stack([edges[:-1], edges[1:]], axis=1))
    return np.where(a <= b, sums[0], -sums[0]), sums[1]


def _tuple(args: Any) -> tuple[Any, ...]:
    """SciPy's ``args``: what is no tuple is one argument."""
    return args if isinstance(args, tuple) else (args,)


def integral(
    f: Callable[[Any], Any], a: Any, b: Any, epsabs: float, epsrel: float, limit: int
) -> tuple[Any, Any]:
    """(integral, estimate of its error) of a function of a number."""
    value, error, _ = adapted(f, a, b, Tolerance(epsabs, epsrel, limit, lambda x: np.abs(x[0])))
    return value.reshape(()), error


class Tolerance(NamedTuple):
    """How exact an integral is to be."""

    epsabs: float
    epsrel: float
    limit: int  # of intervals
    norm: Callable[[Any], Any]  # of float64[n]


def adapted(f: Callable[[Any], Any], a: Any, b: Any, tolerance: Tolerance) -> tuple[Any, Any, Any]:
    """Integral of a function whose values are arrays, its error, and how many intervals it took."""
    g, low, high, (nodes, weights, errors) = _finite(f, traced(a), traced(b))
    shape = np.shape(g(low + 0.5 * (high - low)))
    size, (epsabs, epsrel, limit, norm) = math.prod(shape), tolerance

    def part(at: Any) -> Any:
        """The integral over a part; its error, and what rounding leaves of that at least."""
        middle, half = 0.5 * (at[0] + at[1]), 0.5 * (at[1] - at[0])
        values = _along(g, low + (high - low) * (middle + half * nodes), size) * (high - low)
        whole = half * (weights @ values)
        error = norm(half * (errors @ values))
        rounding = norm(50.0 * _EPS * half * (weights @ np.abs(values)))
        varies = norm(half * (weights @ np.abs(values - 0.5 * whole / half)))
        safe = np.where(varies > 0.0, varies, 1.0)
        scaled = varies * np.minimum(1.0, (200.0 * error / safe) ** 1.5)
        error = np.where((varies > 0.0) & (error > 0.0), scaled, error)
        error = np.where(rounding > 1e-300, np.maximum(rounding, error), error)
        return np.concatenate([whole, np.stack([error, rounding])])

    def evaluate(s: dict[str, Any]) -> dict[str, Any]:
        """One part; after both halves of the worst one the next is halved, while any has to be."""
        parts, found = s["at"].copy(), s["found"].copy()
        found[s["slot"]] = part(parts[s["slot"]])
        whole, n, last = np.sum(found, axis=0), s["n"], s["last"]
        enough = whole[-2] <= np.maximum(epsabs, epsrel * norm(whole[:-2]))
        ready = s["slot"] == last
        done = ready & (enough | (whole[-2] <= whole[-1]) | (n >= limit))
        halves = ready & np.logical_not(done)
        slot, last = np.where(halves, np.argmax(found[:, -2]), last), np.where(halves, n, last)
        at = parts[slot].copy()
        middle = 0.5 * (at[0] + at[1])
        parts[slot] = np.where(halves, np.stack([at[0], middle]), at)
        parts[last] = np.where(halves, np.stack([middle, at[1]]), parts[last])
        n = n + np.where(halves, 1, 0)
        return {"at": parts, "found": found, "slot": slot, "last": last, "n": n, "done": done}

    at = np.zeros((limit, 2))
    at[0, 1] = 1.0
    counts = {"slot": np.int64(0), "last": np.int64(0), "n": np.int64(1), "done": np.bool_(False)}
    begin = {"at": at, "found": np.zeros((limit, size + 2)), **counts}
    s = while_loop(lambda s: np.logical_not(s["done"]), evaluate, begin)
    parts, n = stop_gradient(s["at"]), s["n"]
    value = while_loop(
        lambda t: t["k"] < n,
        lambda t: {"k": t["k"] + 1, "sum": t["sum"] + part(parts[t["k"]])[:-2]},
        {"k": np.int64(0), "sum": np.zeros(size)},
    )["sum"]
    return value.reshape(shape), stop_gradient(np.sum(s["found"][:, -2])), n


def _along(g: Callable[[Any], Any], points: Any, size: int) -> Any:
    def one(none: Any, x: Any) -> tuple[Any, Any]:
        return none, traced(g(x)).astype(np.float64).reshape((size,))

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


def _nquad(
    func: Any, ranges: Any, args: Any = None, opts: Any = None, full_output: bool = False
) -> Any:
    found = by_library(scipy.integrate.nquad, func, ranges, args, opts, full_output)
    if found is not None:
        return found
    if full_output:
        raise UnrecordableError.here("nquad(full_output=True) tells of steps; leave it out.")
    followed, given = follow(func, often=True), () if args is None else _tuple(args)
    bounds = list(ranges)
    options = list(opts) if isinstance(opts, (list, tuple)) else [opts or {}] * len(bounds)

    def over(axis: int, outer: tuple[Any, ...]) -> tuple[Any, Any]:
        """The integral over this axis and those before it, the others being ``outer``."""
        a, b = _called(bounds[axis], outer, given)
        asked = _called(options[axis], outer, given)
        _refuse_options("nquad", asked, _OF_ERRORS)
        ends = asked.get("epsabs", _TOLERANCE), asked.get("epsrel", _TOLERANCE)
        inner = (lambda x: over(axis - 1, (x, *outer))[0]) if axis else (
            lambda x: followed(x, *outer, *given)
        )  # fmt: skip
        return integral(inner, a, b, *ends, asked.get("limit", 50))

    return over(len(bounds) - 1, ())


_OF_ERRORS = frozenset({"epsabs", "epsrel", "limit"})


def _called(x: Any, *given: tuple[Any, ...]) -> Any:
    """What is given for one axis, or what a function gives of the axes outside of it."""
    return follow(x, often=True)(*(v for more in given for v in more)) if callable(x) else x


def _refuse_options(name: str, asked: dict[str, Any], taken: frozenset[str]) -> None:
    for option in asked.keys() - taken:
        if asked[option] is not None and asked[option] is not False:
            raise UnrecordableError.here(
                f"{name} with {option}= is not recorded. Write a weight into the function, and "
                "a sum of integrals between the points."
            )


#: Intervals of ``quad_vec`` for which there is room.
_ROOM = 500
_NORMS: dict[Any, Callable[[Any], Any]] = {
    "2": lambda x: np.sqrt(np.sum(x * x)),
    "max": lambda x: np.max(np.abs(x)),
}


def _quad_vec(
    f: Any, a: Any, b: Any, epsabs: float = 1e-200, epsrel: float = 1e-8, norm: Any = "2",
    cache_size: Any = None, limit: Any = 10000, workers: Any = 1, points: Any = None,
    quadrature: Any = None, full_output: bool = False, *, args: Any = (),
) -> Any:  # fmt: skip
    asked = {"epsabs": epsabs, "epsrel": epsrel, "norm": norm, "limit": limit, "points": points}
    rest = {"quadrature": quadrature, "full_output": full_output, "args": args}
    found = by_library(scipy.integrate.quad_vec, f, a, b, **asked, **rest)
    if found is not None:
        return found
    _refuse_options("quad_vec", asked | rest, frozenset({*asked, "args"} - {"points"}))
    if norm not in _NORMS:
        raise ValueError(at_place(f"norm={norm!r} is not known. Take one of {[*_NORMS]}."))
    followed, given = follow(f, often=True), _tuple(args)
    # SciPy goes on until an eighth of the tolerance is reached.
    how = Tolerance(epsabs / 8.0, epsrel / 8.0, min(limit, _ROOM), _NORMS[norm])
    value, error, n = adapted(lambda x: followed(x, *given), a, b, how)
    if limit > _ROOM:
        value = stopping(value, n >= _ROOM, "UNCONVERGED")
    return value, error


def _fixed_quad(func: Any, a: Any, b: Any, args: Any = (), n: int = 5) -> Any:
    found = by_library(scipy.integrate.fixed_quad, func, a, b, args, n)
    if found is not None:
        return found
    nodes, weights = scipy.special.roots_legendre(n)
    low, high = traced(a).astype(np.float64), traced(b).astype(np.float64)
    points = (high - low) * (nodes + 1.0) / 2.0 + low
    values = follow(func)(points, *args)
    return (high - low) / 2.0 * np.sum(weights * values, axis=-1), None


#: Functions that find how many numbers they return, and what to write in their place.
_REMEDIES = {
    "cubature": "Write nquad, or quad_vec along one axis and a sum of known nodes along the other.",
    "tanhsinh": "Write quad, which takes infinite ends and halves where it has to.",
    "nsum": "Write a loop, or np.sum over as many terms as are wanted.",
}


_OWN: dict[Any, Callable[..., Any]] = {
    scipy.integrate.quad: _quad,
    scipy.integrate.dblquad: _dblquad,
    scipy.integrate.tplquad: _tplquad,
    scipy.integrate.nquad: _nquad,
    scipy.integrate.quad_vec: _quad_vec,
    scipy.integrate.fixed_quad: _fixed_quad,
}
_OWN |= {
    vars(scipy.integrate)[name]: refusing(vars(scipy.integrate)[name], remedy)
    for name, remedy in _REMEDIES.items()
    if name in vars(scipy.integrate)
}
for _scipys, _own in _OWN.items():
    put(_scipys, _own, CALLING)
always(*_OWN)
