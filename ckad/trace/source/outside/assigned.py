"""Names from outside that a recording binds before it reads them.

What they were bound to before is nothing that it depends on. What they are bound to afterwards, as
Python would leave it, they are bound to again each time that the recording is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from types import CellType
from typing import Any, NamedTuple

import numpy as np

from ckad.trace.memory.changes import note
from ckad.trace.source.outside.guard import ABSENT, IMMUTABLE, content
from ckad.trace.source.outside.kinds import DISPLAYS, top_of
from ckad.trace.source.outside.watch import MOST, Watch

_COPIED = (list, dict, set)


class Place(NamedTuple):
    """A name of a module, or the variable of a closure, and what Python had it bound to."""

    owner: Any  # a dict of names, or a cell
    name: str
    before: Any

    @property
    def key(self) -> tuple[int, str]:
        return key_of(self.owner, self.name)

    @property
    def now(self) -> Any:
        """What it is bound to."""
        if type(self.owner) is CellType:
            return content(self.owner)
        return self.owner.get(self.name, ABSENT)

    def bind(self, value: Any) -> None:
        if type(self.owner) is CellType:
            if value is ABSENT:
                del self.owner.cell_contents
            else:
                self.owner.cell_contents = value
        elif value is ABSENT:
            del self.owner[self.name]
        else:
            self.owner[self.name] = value


def key_of(owner: Any, name: str) -> tuple[int, str]:
    """What a watch calls it."""
    return id(owner), "cell" if type(owner) is CellType else name


def assign(watch: Watch, owner: Any, name: str) -> None:
    """A name is about to be bound, whatever the numbers are."""
    key = key_of(owner, name)
    if key in watch.noted or type(owner) not in (dict, CellType):
        return
    watch.noted.add(key)
    watch.assigned[key] = Place(owner, name, Place(owner, name, ABSENT).now)


def depend(watch: Watch, key: tuple[int, str]) -> None:
    """What a name was bound to before may be read after all."""
    place = watch.assigned.pop(key, None)
    if place is not None:
        if type(place.owner) is CellType:
            watch.guard.cells.append((place.owner, place.before))
        else:
            watch.guard.names.append((place.owner, place.name, place.before))
        watch.enter(place.before)


def depend_if_back(watch: Watch, key: tuple[int, str], value: Any, missing: Any) -> None:
    """The same if a name is about to be bound to that again, as where something was only tried."""
    place = watch.assigned.get(key)
    if place is not None and (value is missing or value is place.before):
        depend(watch, key)


def depend_on_all(watch: Watch | None) -> None:
    """The same of all names, where a recording has failed, and another may follow it."""
    if watch is not None:
        for key in list(watch.assigned):
            depend(watch, key)


def depend_on_left(watch: Watch) -> None:
    """The same of names that the recording has left bound to something, once it is over."""
    for left in watch.guard.leaves:
        if isinstance(left, _Leaves):
            for place in left.places:
                watch.assigned[place.key] = place
    watch.guard.leaves.clear()
    depend_on_all(watch)


@contextmanager
def settling(watch: Watch | None) -> Iterator[dict[tuple[int, str], Any]]:
    """A recording is over for this ``watch``, if there is one: gives what is to be filled with what
    it leaves names bound to as Python would, by their keys; all others are as they were."""
    found: dict[tuple[int, str], Any] = {}
    if watch is None:
        yield found
        return
    watch.guard.note_counted()
    places = list(watch.assigned.values())
    watch.assigned.clear()  # what is put back now, was not read
    yield found
    _settle(watch, places, found)


def _settle(watch: Watch, places: Sequence[Place], found: Mapping[Any, Any]) -> None:
    lasting = []
    for place in places:
        if place.key not in found:
            watch.noted.discard(place.key)
        elif _is_remade(watch, found[place.key], [MOST]):
            watch.noted.discard(place.key)
            lasting.append(place)
        else:
            watch.assigned[place.key] = place
            depend(watch, place.key)
    if lasting:
        watch.guard.leaves.append(_Leaves(lasting, [found[place.key] for place in lasting]))


class _Leaves:
    """Bind names to what the recording has left them bound to, or to copies of that; to the very
    pictures that it has drawn."""

    def __init__(self, places: list[Place], values: list[Any]) -> None:
        self.places = places
        self.pictures = {id(x): x for x in _pictures(values)}
        self.values = deepcopy(values, dict(self.pictures))
        self.is_plain = all(type(value) in IMMUTABLE for value in values)

    def __call__(self) -> None:
        values = self.values if self.is_plain else deepcopy(self.values, dict(self.pictures))
        for place, value in zip(self.places, values, strict=True):
            note(partial(place.bind, place.now))
            place.bind(value)


def _is_remade(watch: Watch, x: Any, left: list[int]) -> bool:
    """Whether a copy of ``x`` is what the program would make anew; ``left`` is how much is copied
    at most."""
    kind = type(x)
    left[0] -= 1 + (x.size if kind is np.ndarray else 0)
    if left[0] < 0:
        return False
    if kind in IMMUTABLE or _is_picture(x):
        return True
    if kind is np.ndarray:
        return watch.is_own(x) and x.base is None and not x.dtype.hasobject
    if kind is tuple:
        return all(_is_remade(watch, part, left) for part in x)
    if kind not in _COPIED or not watch.is_own(x):
        return False
    parts = (*x, *x.values()) if kind is dict else tuple(x)
    return all(_is_remade(watch, part, left) for part in parts)


def _is_picture(x: Any) -> bool:
    """Whether it is a figure, a part of one, or another object of what shows things."""
    return top_of(type(x)) in DISPLAYS


def _pictures(x: Any) -> Iterator[Any]:
    """All of them that a container holds."""
    if _is_picture(x):
        yield x
    elif type(x) in (tuple, *_COPIED):
        for part in (*x, *x.values()) if type(x) is dict else x:
            yield from _pictures(part)
