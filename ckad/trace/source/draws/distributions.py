"""Calls of ``rvs``, by which SciPy's distributions draw: as they make numbers of a generator's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckad.errors import UnrecordableError
from ckad.trace.source.draws.generators import GLOBAL, Generator
from ckad.trace.source.draws.noted import has_place, is_in_body, keep
from ckad.trace.source.draws.rules import drawn
from ckad.trace.source.names.frame import made
from ckad.trace.source.values import holds_tracer
from ckad.trace.values.tracer import lift


class Sampler(NamedTuple):
    """The shapes of a distribution, the method that draws, and what is made of its numbers."""

    shapes: tuple[str, ...]
    method: str
    formula: Callable[..., Any] = lambda z, *shapes: z


_ONE_NUMBER = {
    "norm": Sampler((), "standard_normal"),
    "uniform": Sampler((), "random_sample"),
    "expon": Sampler((), "standard_exponential"),
    "lognorm": Sampler(("s",), "standard_normal", lambda z, s: np.exp(s * z)),
}


def draw_by_scipy(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What ``distribution.rvs(...)`` gives; NotImplemented for any other call, and where SciPy may
    draw now."""
    owner: Any = getattr(callee, "__self__", None)
    if getattr(callee, "__name__", "") != "rvs":
        return NotImplemented
    if not type(owner).__module__.startswith("scipy.stats"):
        return NotImplemented
    if hasattr(owner, "dist"):
        names = ("size", "random_state")
        options = dict(owner.kwds) | dict(zip(names, args, strict=False)) | options
        owner, args = owner.dist, owner.args
    if not is_in_body() and not holds_tracer([*args, *options.values()]):
        generator = _generator(owner, options.get("random_state"))
        if not has_place(generator):
            keep(generator)
            return NotImplemented
    name = type(owner).__name__.removesuffix("_gen")
    if name == "multivariate_normal":
        return _multivariate(owner, *args, **options)
    if name not in _ONE_NUMBER:
        raise UnrecordableError.here(
            f"{name}.rvs draws in a loop or branch, or by traced parameters, and only "
            f"multivariate_normal and {', '.join(_ONE_NUMBER)} are recorded there. Draw by a "
            "method of np.random.default_rng(seed)."
        )
    return _one_by_one(owner, _ONE_NUMBER[name], args, options)


def _generator(owner: Any, given: Any) -> Generator:
    if given is None:
        own = owner.random_state
        return GLOBAL if own is np.random else own
    if isinstance(given, (int, np.integer)):
        given = made(np.random.RandomState(given))
    found: Generator = given
    return found


def _one_by_one(owner: Any, how: Sampler, args: Sequence[Any], options: dict[str, Any]) -> Any:
    names = (*how.shapes, "loc", "scale", "size", "random_state")
    given = {"loc": 0, "scale": 1} | dict(zip(names, args, strict=False)) | options
    generator = _generator(owner, given.get("random_state"))
    numbers = [*(given[name] for name in how.shapes), given["loc"], given["scale"]]
    size = given.get("size")
    if size is None:
        size = np.broadcast_shapes(*(np.shape(x) for x in numbers)) or None
    is_new = isinstance(generator, np.random.Generator)
    method = "random" if is_new and how.method == "random_sample" else how.method
    z = drawn(generator, method, [], {"size": size})
    return how.formula(z, *numbers[:-2]) * given["scale"] + given["loc"]


def _multivariate(
    owner: Any, mean: Any = None, cov: Any = 1, size: Any = 1, random_state: Any = None
) -> Any:
    cov = lift(cov) * 1.0
    n = np.size(mean) if mean is not None else cov.shape[-1] if cov.ndim == 2 else 1
    cov = cov if cov.ndim == 2 else cov * np.eye(n)
    mean = np.zeros(n) if mean is None else lift(mean)
    generator = _generator(owner, random_state)
    found = np.squeeze(drawn(generator, "multivariate_normal", [mean, cov, size], {}))
    return found if found.shape else found[()]
