"""What solvers return: fields by their names, as SciPy's results have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ckad import trees
from ckad.place import at_place
from ckad.trace.values.part import Extent, Extents, Part
from ckad.trace.values.tracer import Tracer


class Result(Mapping[str, Any]):
    """An object with fields. Loops and branches hand on what they hold; texts are as they are."""

    #: Of fields that only SciPy's result has: what to write in their place.
    remedies: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        trees.register(cls, _children, _rebuilt)

    def __getitem__(self, name: str) -> Any:
        if name not in vars(self):
            raise KeyError(self._lacking(name))
        return vars(self)[name]

    def __getattr__(self, name: str) -> Any:
        """Of a field that is not there: other steps than SciPy's tell other things."""
        raise AttributeError(name if name.startswith("_") else self._lacking(name))

    def _lacking(self, name: str) -> str:
        has = f"It has {', '.join(vars(self))}; what tells of SciPy's own steps is left out."
        return at_place(f"this result has no {name}. {self.remedies.get(name, has)}")

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))

    def __repr__(self) -> str:
        return "\n".join(f"{name:>9}: {value}" for name, value in vars(self).items())


class _First:
    """In a structure, an array of which the first items along an axis are meant."""

    def __init__(self, array: Any, count: Any, axis: int) -> None:
        self.array, self.count, self.axis = array, count, axis


def _first(axis: int, parts: Any) -> _First:
    array, count = parts
    return _First(array, count, axis)


trees.register(_First, lambda x: ((x.array, x.count), x.axis), _first)


def _opened(x: Any) -> Any:
    if isinstance(x, list):
        return [_opened(item) for item in x]
    if not (isinstance(x, Part) and isinstance(x.where, Extents)):
        return x
    cut = [(e, axis) for axis, e in enumerate(x.where) if e is not None]
    (origin, count), axis = cut[0]
    whole = len(cut) == 1 and isinstance(origin, int) and origin == 0
    return _First(x.base, count, axis) if whole else x


def _closed(x: Any) -> Any:
    if isinstance(x, list):
        return [_closed(item) for item in x]
    if isinstance(x, _First) and isinstance(x.array, Tracer):
        extent, rank = Extent(0, x.count), x.array.ndim
        return Part(x.array, Extents(extent if k == x.axis else None for k in range(rank)))
    if isinstance(x, _First) and isinstance(x.array, np.ndarray):
        return np.take(x.array, range(int(x.count)), x.axis)
    return x


class _Form(NamedTuple):
    """What all results of one structure have in common."""

    cls: type[Result]
    names: tuple[str, ...]
    texts: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        return ", ".join(self.names)


def _children(x: Result) -> tuple[list[Any], _Form, tuple[str, ...]]:
    texts = tuple((name, value) for name, value in vars(x).items() if isinstance(value, str))
    names = tuple(name for name, value in vars(x).items() if not isinstance(value, str))
    return [_opened(vars(x)[name]) for name in names], _Form(type(x), tuple(vars(x)), texts), names


def _rebuilt(form: _Form, values: Any) -> Result:
    cls, names, texts = form
    told, left = dict(texts), map(_closed, values)
    new = cls.__new__(cls)
    vars(new).update({name: told[name] if name in told else next(left) for name in names})
    return new
