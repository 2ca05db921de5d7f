"""``sorted``, ``min`` and ``max`` by a key, of items whose order a traced value decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.trace.source.choices import Choice, equal
from ckad.trace.source.control.checks import note_raise
from ckad.trace.source.control.sequences.picking import picked, refused
from ckad.trace.source.values import holds_tracer, slot_of, weakened
from ckad.trace.values.tracer import lift

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
    return picked(items, [order[k] for k in range(len(items))])


def extreme(items: Sequence[Any], key: Key, is_max: bool) -> Any:
    """``max(items, key=key)`` or ``min``: the first of the best."""
    keys = [key(x) for x in items]
    if not holds_tracer(keys) or len(items) < 2:
        best = max if is_max else min
        return items[best(range(len(items)), key=keys.__getitem__)]
    place = (np.argmax if is_max else np.argmin)(_stacked(keys))
    return picked(items, [place])[0]


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
        raise refused("by keys that are no numbers")
    return np.stack([lift(x) for x in keys])
