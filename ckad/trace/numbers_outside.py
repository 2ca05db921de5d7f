"""Numbers that a recording reads from outside: where they are, which are others now, and how they
become arguments."""

from __future__ import annotations

from collections.abc import Iterator
from types import CellType
from typing import Any, NamedTuple, cast

import numpy as np

from ckad.trace.memory.context import Trace
from ckad.trace.source.outside.guard import ABSENT, Guard, content, contents, is_same
from ckad.trace.source.outside.watch import LARGEST
from ckad.trace.values.tracer import Tracer

#: What may be an argument as it is.
_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))
_NUMBERS = (float, np.float64, np.float32)


class Place(NamedTuple):
    """A name of a module or of an object, or the variable of a closure, bound to numbers."""

    owner: dict[str, Any] | CellType
    name: str

    @property
    def key(self) -> tuple[int, str]:
        return id(self.owner), self.name

    @property
    def value(self) -> Any:
        owner = self.owner
        return content(owner) if isinstance(owner, CellType) else owner.get(self.name, ABSENT)


def are_numbers(x: Any) -> bool:
    """Whether these may be an argument instead: floats, or an array of them."""
    return type(x) in _NUMBERS or (type(x) is np.ndarray and x.dtype in _DTYPES)


def changed(guard: Guard) -> list[Place] | None:
    """Where ``guard`` does not hold; None if that is not by numbers alone."""
    if guard.shown or guard.once or guard.counters or guard.leaves:
        return None
    found: list[Place] = []
    met = set()  # arrays of places
    written = {id(x) for x, before in guard.arrays if contents(x) != before}
    for place, value in _places(guard):
        now = place.value
        if id(value) in written:
            met.add(id(value))
        elif now is value or is_same(now, value):
            continue
        if not _may_be_bound(place) or not _are_alike(now, value):
            return None
        found.append(place)
    lasting = Guard()
    lasting.objects, lasting.parts, lasting.bare = guard.objects, guard.parts, guard.bare
    lasting.containers, lasting.answers = guard.containers, guard.answers
    lasting.numbers = guard.numbers
    return found if written <= met and lasting.holds() else None


def large(guard: Guard) -> list[Place]:
    """Where arrays lie that are too large to be compared; none if ``guard`` is complete."""
    found = [(place, x) for place, x in _places(guard) if type(x) is np.ndarray and are_numbers(x)]
    if guard.nbytes + max((x.nbytes for _, x in found), default=0) <= LARGEST:
        return []
    return [place for place, x in found if x.nbytes > LARGEST >> 6 and _may_be_bound(place)]


def _may_be_bound(place: Place) -> bool:
    return type(place.owner) in (dict, CellType)


def _places(guard: Guard) -> Iterator[tuple[Place, Any]]:
    for names, name, value in guard.names:
        yield Place(cast("dict[str, Any]", names), name), value
    for cell, value in guard.cells:
        yield Place(cell, "cell"), value


def _are_alike(x: Any, y: Any) -> bool:
    """Whether a recording for one would do for the other, if they were arguments."""
    if type(x) is not type(y) or not are_numbers(x):
        return False
    return not isinstance(x, np.ndarray) or (x.dtype, x.shape) == (y.dtype, y.shape)


def take_as_arguments(trace: Trace, places: tuple[Place, ...], numbers: tuple[Tracer, ...]) -> None:
    """Have the program read ``numbers`` from its last arguments, not from where they are."""
    for place, x in zip(places, numbers, strict=True):
        x.storage.shared = "an array from outside"
        trace.outside[place.key] = x
