"""Whether what a guard compares is as it was when the recording was made, and where it is not.

Mostly all is the very same: then nothing has to be compared by value, and one expression made for a
guard tells. To go through its lists takes longer than many a program runs. Where numbers alone are
others, these may be arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CellType
from typing import Any, NamedTuple, cast

import numpy as np

from ckad.trace.memory.context import Trace
from ckad.trace.source.outside.guard import ABSENT, Guard, content, contents, is_same
from ckad.trace.source.outside.watch import LARGEST
from ckad.trace.values.tracer import Tracer

#: Comparisons for which there is code.
MOST = 500
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


def moved(guard: Guard) -> list[Place] | None:
    """Where ``guard`` does not hold; None if that is not by numbers alone."""
    if guard.shown or guard.once or guard.counters or guard.leaves:
        return None
    found: list[Place] = []
    met = set()  # arrays of places
    changed = {id(x) for x, before in guard.arrays if contents(x) != before}
    for place, value in _places(guard):
        now = place.value
        if id(value) in changed:
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
    return found if changed <= met and lasting.holds() else None


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
        trace.moved[place.key] = x


# --- in one expression ---------------------------------------------------------------------------


def unmoved(guard: Guard) -> Callable[[], bool]:
    """What says that ``guard`` holds, and may say that it does not where something is another
    object of the same value; while the guard holds."""
    values: dict[str, Any] = {}

    def of(x: Any) -> str:
        name = f"v{len(values)}"
        values[name] = x
        return name

    tests = []
    for names, name, _ in guard.names:
        found = names.get(name, ABSENT)
        if found is ABSENT:
            tests.append(f"{name!r} not in {of(names)}")
        else:
            tests.append(f"{of(names)}[{name!r}] is {of(found)}")
    for owner, kind, attributes in guard.objects:
        tests.append(f"type({of(owner)}) is {of(kind)}")
        if attributes is not None:
            tests.append(f"{of(owner)}.__dict__ is {of(attributes)}")
    for cell, value in guard.cells:
        if value is ABSENT:
            return guard.holds
        tests.append(f"{of(cell)}.cell_contents is {of(content(cell))}")
    for owner, part, value in guard.parts:
        if value is ABSENT or not part.isidentifier():
            return guard.holds
        tests.append(f"{of(owner)}.{part} is {of(getattr(owner, part))}")
    if guard.is_looked_into:
        tests.append(f"{of(guard.contents_hold)}()")
    if len(tests) > MOST:
        return guard.holds
    exec(_TEXT.format(" and ".join(tests) or "True"), values)
    holds: Callable[[], bool] = values["holds"]
    return holds if holds() else guard.holds


_TEXT = """
def holds():
    try:
        return {}
    except (AttributeError, KeyError, ValueError):
        return False
"""
