"""Numbers from outside that change from call to call: they become arguments.

A recording holds while what the function reads from outside is as it was. Where only floats, and
arrays of them, are found to be others at one call and again at a later one, as batches of data or a
parameter in a global are, the function is recorded with these as further arguments, by which
nothing is differentiated, and that is used from then on. Where this cannot be done, as where a
number decides what is run, it is recorded anew for each of them, as before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any

from ckad import locks
from ckad.trace.numbers_outside import Place, are_numbers, changed, large
from ckad.trace.source.outside.guard import Guard

#: How often a place has to be found changed.
TIMES = 2
#: Functions for which it is known what changes.
KEPT = 128
known: OrderedDict[Hashable, Changing] = OrderedDict()
_lock = locks.lock()


class Changing:
    """What was found to change outside of one function, between calls of one form."""

    def __init__(self) -> None:
        self._times: dict[tuple[int, str], tuple[Place, int]] = {}
        self.places: tuple[Place, ...] = ()
        self.is_refused = False

    def note(self, guard: Guard) -> None:
        """A recording does not hold any more."""
        self._count(changed(guard) or (), 1)

    def is_of_use(self, guard: Guard) -> bool:
        """Whether a recording with these arguments reads them nowhere else: what Python runs by
        itself, or has no source, does."""
        keys = {place.key for place in self.places}
        return not any(place.key in keys for place in changed(guard) or ())

    def note_large(self, guard: Guard) -> None:
        """A recording reads more than is compared at each call."""
        self._count(large(guard), TIMES)

    def _count(self, places: Sequence[Place], by: int) -> None:
        with _lock:
            for place in places:
                _, times = self._times.get(place.key, (place, 0))
                self._times[place.key] = place, times + by
            self.places = tuple(x for x, times in self._times.values() if times >= TIMES)

    def refuse(self) -> None:
        """It is recorded with these numbers as they are."""
        self.is_refused, self.places = True, ()


def numbers_at(places: Sequence[Place]) -> list[Any] | None:
    """The present numbers; None if there are none, or they are no arguments."""
    found = [place.value for place in places]
    return found if found and all(map(are_numbers, found)) else None


def of(key: Hashable) -> Changing | None:
    """What is known of calls with this key; None if that is nothing, or does not help."""
    found = known.get(key)
    return None if found is None or found.is_refused else found


def note(key: Hashable, guard: Guard | None) -> None:
    """The recording of calls with this key does not hold any more."""
    if guard is not None and (found := _of_all(key)) is not None:
        found.note(guard)


def note_large(key: Hashable, guard: Guard) -> None:
    """A recording of calls with this key is made anew each time; ``guard`` has what it read until
    that was known."""
    if large(guard) and (found := _of_all(key)) is not None:
        found.note_large(guard)


def _of_all(key: Hashable) -> Changing | None:
    with _lock:
        found = known.setdefault(key, Changing())
        known.move_to_end(key)
        while len(known) > KEPT:
            known.popitem(last=False)
    return None if found.is_refused else found


def clear() -> None:
    """Forget all of it."""
    with _lock:
        known.clear()
