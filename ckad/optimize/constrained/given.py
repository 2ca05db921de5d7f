"""Constraints as SciPy takes them, as one function whose elements are 0, or not negative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ckad.patterns import is_sparse
from ckad.place import at_place
from ckad.trace.arrays import known, traced
from ckad.trace.source import follow

Function = Callable[[Any], Any]
#: Traced bounds are at most so far away: whether there is one is not known.
FAR = 1e100


class Constraints(NamedTuple):
    """float64[m] of a vector, and which elements are to be 0; the others may be greater."""

    value: Function
    equal: np.ndarray  # bool[m]


class _Part(NamedTuple):
    value: Function
    equal: bool


def constraints(given: Any, x0: Any) -> Constraints:
    """Of dicts with "type" and "fun", and SciPy's objects with ``lb`` and ``ub``.

    Raises TypeError and ValueError for what does not fit.
    """
    items = given if isinstance(given, (tuple, list)) else [given]
    parts = [part for item in items for part in _parts(item, x0)]
    sizes = [part.value(x0).size for part in parts]
    equal = np.repeat([part.equal for part in parts], sizes)

    def value(x: Any) -> Any:
        return np.concatenate([part.value(x) for part in parts])

    return Constraints(value, equal)


def _parts(item: Any, x0: Any) -> list[_Part]:
    if isinstance(item, dict):
        return [_of_dict(item)]
    if not (hasattr(item, "lb") and hasattr(item, "ub")):
        raise TypeError(
            at_place(
                f"constraints= holds {type(item).__name__}; it takes dicts with 'type' and 'fun', "
                "LinearConstraint and NonlinearConstraint."
            )
        )
    if hasattr(item, "A"):
        matrix = item.A.toarray() if is_sparse(item.A) else traced(item.A)
        return _between(lambda x: np.atleast_2d(matrix) @ x, item.lb, item.ub, x0)
    fun = follow(item.fun, often=True)
    return _between(lambda x: fun(x), item.lb, item.ub, x0)


def _of_dict(item: dict[str, Any]) -> _Part:
    kind = str(item.get("type")).lower()
    if kind not in ("eq", "ineq") or not callable(item.get("fun")):
        raise ValueError(
            at_place(f"a constraint has 'type' 'eq' or 'ineq', and 'fun': its type is {kind!r}.")
        )
    fun, args = follow(item["fun"], often=True), item.get("args", ())
    args = args if isinstance(args, (tuple, list)) else (args,)
    return _Part(lambda x: _vector(fun(x, *args)), kind == "eq")


def _between(fun: Function, low: Any, high: Any, x0: Any) -> list[_Part]:
    """What lies between two bounds; those that are equal are told apart where they are known."""
    n = _vector(fun(x0)).size
    ends = [np.broadcast_to(traced(x) * 1.0, (n,)) for x in (low, high)]
    numbers = [known(x) for x in ends]
    ends = [
        x if number is not None else np.clip(x, -FAR, FAR)
        for x, number in zip(ends, numbers, strict=True)
    ]
    first, last = numbers
    same = np.full(n, low is high) if first is None or last is None else np.equal(first, last)
    finite = [np.full(n, True) if x is None else np.isfinite(x) for x in numbers]

    def part(where: np.ndarray, of: Function, equal: bool) -> _Part:
        at = np.flatnonzero(where)
        return _Part(lambda x: of(_vector(fun(x)))[at], equal)

    parts = (
        (same, lambda x: x - ends[0], True),
        (finite[0] & ~same, lambda x: x - ends[0], False),
        (finite[1] & ~same, lambda x: ends[1] - x, False),
    )
    return [part(*about) for about in parts if about[0].any()]


def _vector(found: Any) -> Any:
    found = traced(found)
    return np.reshape(found, (found.size,)).astype(np.float64)
