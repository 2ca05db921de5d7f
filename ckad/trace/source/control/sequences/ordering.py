"""``sorted``, ``min`` and ``max`` by a key, of items whose order a traced value decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import UnsupportedFunctionError
from ckad.place import at_place
from ckad.trace.source.choices import Choice, can_be_chosen, equal, one_of
from ckad.trace.source.control.checks import note_raise
from ckad.trace.source.values import holds_tracer, slot_of, weakened
from ckad.trace.values.tracer import Tracer, lift

Key = Callable[[Any], Any]


def ordered(items: Sequence[Any], key: Key, reverse: bool) -> list[Any]:
    """``sorted(items, key=key, reverse=reverse)``: items of equal keys stay in their order."""
    keys = [key(x) for x in items]
    if not holds_tracer(keys):
        places = sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
        return [items[k] for k in places]
    if len(items) < 2:
        return list(items)
    order = np.argsort(_stacked(keys[::-1] if reverse else keys), kind="stable")
    if reverse:
        order = len(items) - 1 - order[::-1]
    return _picked(items, [order[k] for k in range(len(items))])


def extreme(items: Sequence[Any], key: Key, is_max: bool) -> Any:
    """``max(items, key=key)`` or ``min``: the first of the best."""
    keys = [key(x) for x in items]
    if not holds_tracer(keys) or len(items) < 2:
        best = max if is_max else min
        return items[best(range(len(items)), key=keys.__getitem__)]
    place = (np.argmax if is_max else np.argmin)(_stacked(keys))
    return _picked(items, [place])[0]


def _at(items: Sequence[Any], place: Any) -> Choice:
    return one_of(list(items), lambda numbers: np.stack([lift(k) for k in numbers])[place])


def found_in(items: Sequence[Any], wanted: Any, counts: bool) -> Any:
    """``items.index(wanted)``, or ``items.count(wanted)``, where a traced value decides."""
    flags = np.stack([lift(_is_equal(x, wanted)) for x in items] or [lift(False)])
    if counts:
        return weakened(np.sum(flags))
    note_raise(np.logical_not(np.any(flags)))
    return weakened(np.argmax(flags))


def _is_equal(x: Any, y: Any) -> Any:
    return equal(x, y) if type(x) is Choice or type(y) is Choice else np.all(np.equal(x, y))


def _stacked(keys: Sequence[Any]) -> Any:
    slots = [slot_of(x) for x in keys]
    if any(s is None or s.type.shape for s in slots):
        raise _refused("by keys that are no numbers")
    return np.stack([lift(x) for x in keys])


def _picked(items: Sequence[Any], places: Sequence[Any]) -> list[Any]:
    """The items at traced places: each of their numbers is read from all items' at once."""
    if all(map(can_be_chosen, items)):
        return [_at(items, place) for place in places]
    taken = [trees.flatten(x) for x in items]
    (first, tree), leaves = taken[0], []
    if any(own != tree for _, own in taken):
        raise _refused("among items of different kinds")
    for k in range(len(first)):
        column = [own[k] for own, _ in taken]
        slots = [slot_of(x) for x in column]
        if all(x is column[0] for x in column):
            leaves.append([column[0]] * len(places))
            continue
        if any(s is None or s.type.shape for s in slots):
            raise _refused("among items that hold more than numbers")
        stack, weak = np.stack([lift(x) for x in column]), all(s and s.weak for s in slots)
        found = [stack[place] for place in places]
        leaves.append([weakened(x) if weak and type(x) is Tracer else x for x in found])
    return [trees.unflatten(tree, [column[k] for column in leaves]) for k in range(len(places))]


def _refused(what: str) -> UnsupportedFunctionError:
    return UnsupportedFunctionError(
        at_place(
            f"a traced value decides an order (sorted, min, max with key=) {what}, and which item "
            "comes where is not known. Order numbers by np.argsort, and index arrays with that."
        )
    )
