"""What solvers return: fields by their names, as SciPy's results have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ckad import trees
from ckad.trace.values.part import Extent, Extents, Part
from ckad.trace.values.tracer import Tracer


class Result(Mapping[str, Any]):
    """An object with fields. Loops and branches hand on what they hold; texts are as they are."""

    def __init_subclass__(cls) -> None:
        trees.register(cls, _children, _rebuilt)

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))

    def __repr__(self) -> str:
        return "\n".join(f"{name:>9}: {value}" for name, value in vars(self).items())


class _First(NamedTuple):
    """In a structure, an array of which the first items are meant: how many is computed."""

    array: Any
    count: Any


def _opened(x: Any) -> Any:
    if isinstance(x, list):
        return [_opened(item) for item in x]
    if not (isinstance(x, Part) and isinstance(x.where, Extents) and x.where[0]):
        return x
    origin, count = x.where[0]
    whole = isinstance(origin, int) and origin == 0 and not any(x.where[1:])
    return _First(x.base, count) if whole else x


def _closed(x: Any) -> Any:
    if isinstance(x, list):
        return [_closed(item) for item in x]
    if isinstance(x, _First) and isinstance(x.array, Tracer):
        return Part(x.array, Extents([Extent(0, x.count), *[None] * (x.array.ndim - 1)]))
    if isinstance(x, _First) and isinstance(x.array, np.ndarray):
        return x.array[: int(x.count)]
    return x


Aux = tuple[type[Result], tuple[str, ...], tuple[tuple[str, str], ...]]


def _children(x: Result) -> tuple[list[Any], Aux, tuple[str, ...]]:
    texts = tuple((name, value) for name, value in vars(x).items() if isinstance(value, str))
    names = tuple(name for name, value in vars(x).items() if not isinstance(value, str))
    return [_opened(vars(x)[name]) for name in names], (type(x), tuple(vars(x)), texts), names


def _rebuilt(aux: Aux, values: Any) -> Result:
    cls, names, texts = aux
    told, left = dict(texts), map(_closed, values)
    new = cls.__new__(cls)
    vars(new).update({name: told[name] if name in told else next(left) for name in names})
    return new
