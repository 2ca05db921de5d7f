"""What a call that draws needs to know, and what is computed from its standard numbers.

NumPy's generators scale a standard number: ``loc + scale * z``. With a traced ``loc`` or ``scale``
the standard numbers are drawn, and the same formula gives NumPy's numbers to the bit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckad.errors import UnrecordableError
from ckad.place import at_place
from ckad.trace.arrays import stopping
from ckad.trace.memory.context import current
from ckad.trace.source.actions import element
from ckad.trace.source.draws.events import StepNumber
from ckad.trace.source.draws.generators import Generator
from ckad.trace.source.draws.noted import draw, has_place
from ckad.trace.source.memory.sharing import picked_memory
from ckad.trace.source.values import holds_tracer, is_weak, slot_of, weakened
from ckad.trace.values.apply import astype
from ckad.trace.values.tracer import Tracer, known, lift, localise, value


class Scaled(NamedTuple):
    """A distribution whose numbers are made from standard ones: its parameters, and how."""

    parameters: tuple[str, ...]
    standard: tuple[float | None, ...]  # None: the parameter has to be known
    formula: Callable[..., Any]
    draws: str = ""  # another method, whose numbers it computes from
    defaults: tuple[float, ...] = ()


def _located(z: Any, loc: Any, scale: Any) -> Any:
    return loc + scale * z


def _between(z: Any, low: Any, high: Any) -> Any:
    return low + (high - low) * z


def _exponential_of(z: Any, mean: Any, sigma: Any) -> Any:
    return np.exp(mean + sigma * z)


_NORMAL = (0.0, 1.0)
_LOCATED = Scaled(("loc", "scale"), _NORMAL, _located, defaults=_NORMAL)
_SCALED = Scaled(("scale",), (1.0,), lambda z, scale: scale * z, defaults=(1.0,))
_NUMPY: dict[str, Scaled] = {
    **dict.fromkeys(("normal", "laplace", "logistic", "gumbel"), _LOCATED),
    **dict.fromkeys(("exponential", "rayleigh"), _SCALED),
    "lognormal": Scaled(("mean", "sigma"), _NORMAL, _exponential_of, "normal", _NORMAL),
    "uniform": Scaled(("low", "high"), _NORMAL, _between, defaults=_NORMAL),
    "gamma": Scaled(("shape", "scale"), (None, 1.0), lambda z, _, scale: scale * z),
}
_GAUSS = Scaled(("mu", "sigma"), _NORMAL, lambda z, mu, sigma: mu + z * sigma, defaults=_NORMAL)
_PYTHON: dict[str, Scaled] = {
    **dict.fromkeys(("gauss", "normalvariate"), _GAUSS),
    "lognormvariate": Scaled(("mu", "sigma"), _NORMAL, _exponential_of, "normalvariate", _NORMAL),
    "uniform": Scaled(("a", "b"), _NORMAL, _between),
    "expovariate": Scaled(("lambd",), (1.0,), lambda z, rate: z / rate, defaults=(1.0,)),
}
#: As exactly NumPy wants the sum of probabilities.
_EXACT = float(np.sqrt(np.finfo(np.float64).eps))
#: Integers between bounds, which may be others at each step.
_BOUNDED = frozenset("randint integers random_integers randrange".split())


def drawn(generator: Generator, name: str, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """``generator.name(*args, **options)`` of traced values, or in a body."""
    if name == "shuffle":
        return _shuffle(generator, args, options)
    if name == "multivariate_normal" and holds_tracer([*args, *options.values()]):
        return _multivariate(generator, *args, **options)
    args = [_numbers(x) for x in args]
    options = {key: _numbers(x) for key, x in options.items()}
    if name == "choice" and not isinstance(generator, random.Random):
        weighed = _weighed(generator, args, options)
        if weighed is not None:
            return weighed
    items = _items(name, args, options)
    if items is not None:
        return _CHOOSING[name](generator, items, args[1:], options)
    if not holds_tracer([*args, *options.values()]):
        return draw(generator, name, args, options)
    scaled = (_PYTHON if isinstance(generator, random.Random) else _NUMPY).get(name)
    if scaled is not None:
        return _from_standard(generator, scaled, name, args, options)
    if name in _BOUNDED and has_place(generator) and not holds_tracer([*args[2:], options]):
        return draw(generator, name, [_bound(name, x) for x in args], options)
    raise _refused(name)


def _items(name: str, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What a call chooses from, if that are items of which it is not known which it gives."""
    if name not in _CHOOSING:
        return None
    if not args:
        key = next((k for k in ("a", "x", "seq", "population") if k in options), None)
        items = None if key is None else options.pop(key)
    else:
        items = args[0]
    return items if isinstance(items, (Tracer, list, tuple, range, str)) else None


def _refused(name: str) -> UnrecordableError:
    return UnrecordableError.here(
        f"{name} draws random numbers whose distribution or number depends on a traced value "
        "in a way that has no derivative, or is not known. Draw standard numbers "
        "(standard_normal, random) and compute from them."
    )


def _numbers(x: Any) -> Any:
    """An argument whose numbers are known, as NumPy and Python want it."""
    if isinstance(x, Tracer):
        numbers = known(x)
        if numbers is None:
            return x
        return numbers.item() if is_weak(x) else np.array(numbers)[()]
    if isinstance(x, (list, tuple)) and type(x) in (list, tuple):
        return type(x)(_numbers(item) for item in x)
    return x


def _bound(name: str, x: Any) -> Any:
    """A bound that is a number of the step."""
    if not isinstance(x, Tracer):
        return x
    if x.shape or x.dtype.kind not in "iub":
        raise _refused(name)
    return StepNumber(current(), value(localise(x)))


def _from_standard(
    generator: Generator, scaled: Scaled, name: str, args: Sequence[Any], options: dict[str, Any]
) -> Any:
    given = dict(zip((*scaled.parameters, "size"), args, strict=False)) | options
    defaults = dict(zip(scaled.parameters[::-1], scaled.defaults[::-1], strict=False))
    values: list[Any] = [given.get(p, defaults.get(p)) for p in scaled.parameters]
    fixed = [x for x, s in zip(values, scaled.standard, strict=True) if s is None]
    if holds_tracer([*fixed, given.get("size")]):
        raise _refused(name)
    values = [lift(x) if isinstance(x, (list, tuple)) else x for x in values]
    standard: list[Any] = [
        x if s is None else s for x, s in zip(values, scaled.standard, strict=True)
    ]
    rest = {key: x for key, x in given.items() if key not in scaled.parameters}
    if not isinstance(generator, random.Random) and rest.get("size") is None:
        rest["size"] = np.broadcast_shapes(*(np.shape(x) for x in values)) or None
    z = draw(generator, scaled.draws or name, standard, rest)
    return scaled.formula(z, *values)


def _multivariate(
    generator: Generator,
    mean: Any,
    cov: Any,
    size: Any = None,
    check_valid: str = "warn",
    tol: float = 1e-8,
    *,
    method: str = "svd",
) -> Any:
    """As NumPy makes them of standard normal numbers; that the covariance is one is not checked."""
    if holds_tracer(size):
        raise _refused("multivariate_normal")
    mean, cov = (astype(lift(x), np.float64) for x in (mean, cov))
    shape = () if size is None else tuple(size) if isinstance(size, Sequence) else (size,)
    z = draw(generator, "standard_normal", [(*shape, mean.shape[0])], {})
    if isinstance(generator, np.random.RandomState):
        _, s, vh = np.linalg.svd(cov)
        return z @ (np.sqrt(s)[:, None] * vh) + mean
    if method == "cholesky":
        return mean + z @ np.linalg.cholesky(cov).T
    if method == "eigh":
        s, u = np.linalg.eigh(cov)
        return mean + z @ (u * np.sqrt(np.abs(s))).T
    u, s, _ = np.linalg.svd(cov)
    return mean + z @ (u * np.sqrt(s)).T


# --- permutations and choices --------------------------------------------------------------------


def _shuffle(generator: Generator, args: Sequence[Any], options: dict[str, Any]) -> None:
    if options or len(args) != 1 or not isinstance(args[0], Tracer):
        raise UnrecordableError.here(
            "a list is shuffled in a loop or branch, which is recorded once for all its steps. "
            "Shuffle an array, or draw a permutation of its length and index with it."
        )
    (x,) = args
    x[...] = x[draw(generator, "permutation", [len(x)], {})]


def _permuted(generator: Generator, x: Any, rest: Sequence[Any], options: dict[str, Any]) -> Any:
    if rest or options or isinstance(x, str):
        raise _refused("permutation")
    return _picked(x, draw(generator, "permutation", [len(x)], {}))


def _shuffled(generator: Generator, x: Any, rest: Sequence[Any], options: dict[str, Any]) -> Any:
    """``permuted``: each line along an axis by itself, by the places that NumPy moves."""
    given = {"axis": None, "out": None, **dict(zip(("axis", "out"), rest, strict=False)), **options}
    if not isinstance(x, Tracer) or given["out"] is not None or holds_tracer(given["axis"]):
        raise _refused("permuted")
    places = np.arange(x.size).reshape(x.shape)
    found = draw(generator, "permuted", [places], {"axis": given["axis"]})
    return np.reshape(x, -1)[found]


def _choice(generator: Generator, items: Any, rest: Sequence[Any], options: dict[str, Any]) -> Any:
    """By NumPy an item or an array of them, by Python one item."""
    if holds_tracer([*rest, *options.values()]) or options.get("axis"):
        raise _refused("choice")
    is_item = isinstance(generator, random.Random)
    numbers = range(len(items)) if is_item else len(items)
    return _picked(items, draw(generator, "choice", [numbers, *rest], options), is_item)


def _weighed(generator: Generator, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """A choice by traced probabilities, as NumPy makes it; None if none are traced."""
    given = dict(zip(("a", "size", "replace", "p"), args, strict=False)) | options
    items, p = given.pop("a", None), given.pop("p", None)
    size = given.pop("size", None)
    if not isinstance(p, Tracer):
        return None
    if holds_tracer(size) or given not in ({}, {"replace": True}):
        raise _refused("choice")
    is_old = isinstance(generator, np.random.RandomState)
    u = draw(generator, "random_sample" if is_old else "random", [size], {})
    wrong = np.logical_or(np.abs(np.sum(p) - 1.0) > _EXACT, np.any(p < 0.0))
    steps = np.cumsum(stopping(p, wrong, "WEIGHTS"))
    numbers = np.searchsorted(steps / steps[-1], u, side="right")
    return numbers if is_weak(items) or type(items) is int else _picked(items, numbers)


def _by_weights(
    generator: Generator, items: Any, weights: Any = None, *, cum_weights: Any = None, k: Any = 1
) -> list[Any]:
    """Items by traced weights, as Python chooses them."""
    if holds_tracer(k) or (weights is None) is (cum_weights is None):
        raise _refused("choices")
    given = lift(weights if cum_weights is None else cum_weights)
    if len(given) != len(items):
        raise ValueError(at_place("The number of weights does not match the population"))
    steps = np.cumsum(given) if cum_weights is None else given
    total = steps[-1] + 0.0
    steps = stopping(steps, np.logical_not(total > 0.0), "WEIGHTS")
    drawn = [draw(generator, "random", [], {}) for _ in range(k)]
    places = [np.searchsorted(steps[:-1], u * total, side="right") for u in drawn]
    return [_picked(items, place, True) for place in places]


def _several(name: str) -> Callable[..., Any]:
    def several(
        generator: Generator, items: Any, rest: Sequence[Any], options: dict[str, Any]
    ) -> Any:
        if holds_tracer([*rest, *options.values()]):
            if name != "choices":
                raise _refused(name)
            return _by_weights(generator, items, *rest, **options)
        numbers = draw(generator, name, [range(len(items)), *rest], options)
        return [_picked(items, k, True) for k in numbers]

    return several


def _picked(items: Any, numbers: Any, is_item: bool = False) -> Any:
    """The items with some numbers, which may be traced; in Python one of the very items."""
    if isinstance(numbers, (int, np.integer)) and not isinstance(items, Tracer):
        return items[numbers]
    if is_item and isinstance(items, (list, tuple)) and not all(slot_of(x) for x in items):
        return element(items, numbers)
    if isinstance(items, str) or not all(slot_of(x) for x in items):
        raise UnrecordableError.here(
            "a loop or branch chooses among items that are no numbers, and is recorded once "
            "for all its steps. Choose a number, and compare it in an if."
        )
    if isinstance(items, range):
        items = list(items)
    weak = isinstance(items, (list, tuple)) and all(map(is_weak, items))
    stack = items if isinstance(items, Tracer) else lift(_stacked(items))
    if is_item and stack is not items and stack.ndim > 1:
        picked_memory(stack, items)
    found = stack[numbers]
    return weakened(found) if weak and not np.shape(numbers) else found


def _stacked(items: Sequence[Any]) -> Any:
    return np.stack([lift(x) for x in items]) if holds_tracer(items) else np.array(items)


_CHOOSING: dict[str, Callable[..., Any]] = {
    "permutation": _permuted,
    "permuted": _shuffled,
    "choice": _choice,
    "choices": _several("choices"),
    "sample": _several("sample"),
}
