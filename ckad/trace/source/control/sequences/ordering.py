"""``sorted``, ``min`` and ``max`` by a key, of items whose order a traced value decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.tape.reasons import Reason
from ckad.trace import dispatch
from ckad.trace.source.control.checks import note_raise
from ckad.trace.source.control.sequences.picking import picked, stacked
from ckad.trace.source.library.written import orders
from ckad.trace.source.memory.twins import changing
from ckad.trace.source.names.closures import call_from_source
from ckad.trace.source.values import are_numbers, asks_traced, weakened
from ckad.trace.values.tracer import Tracer, lift

KeyFunction = Callable[[Any], Any]


def ordered(items: Any, key: KeyFunction, reverse: bool) -> list[Any]:
    """``sorted(items, key=key, reverse=reverse)``: items of equal keys stay in their order."""
    if isinstance(items, Tracer):
        check_ordered(items)
        found: list[Any] = dispatch.call(sorted, (items,), {"reverse": reverse})
        return found
    keys = [key(x) for x in items]
    if not asks_traced(keys):
        places = sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
        return [items[k] for k in places]
    if len(items) < 2:
        return list(items)
    order = _order(keys[::-1] if reverse else keys)
    if reverse:
        order = len(items) - 1 - order[::-1]
    return picked(items, [order[k] for k in range(len(items))])


def extreme(items: Sequence[Any], key: KeyFunction, is_max: bool) -> Any:
    """``max(items, key=key)`` or ``min``: the first of the best."""
    keys = [key(x) for x in items]
    if not asks_traced(keys) or len(items) < 2:
        best = max if is_max else min
        return items[best(range(len(items)), key=keys.__getitem__)]
    if are_numbers(keys):
        place = _first_best(stacked(keys), is_max)
    elif (columns := _columns(keys)) is not None:
        place = _first_by_columns(columns, is_max)
    else:
        place = np.argmin(_n_before(orders.more if is_max else orders.less, keys))
    return picked(items, [place])[0]


def _first_best(keys: Any, is_max: bool) -> Any:
    """The place of the best key. A NaN is better than none before, nor is any better than it."""
    best = np.argmax if is_max else np.argmin
    if keys.dtype.kind != "f":
        return best(keys)
    unordered = np.isnan(keys)
    return np.where(
        unordered[0], 0, best(np.where(unordered, -np.inf if is_max else np.inf, keys))
    )[()]


def _first_by_columns(columns: Sequence[Any], is_max: bool) -> Any:
    """The same of tuples: the best of those that are the best by all columns before."""
    best, among = (np.max if is_max else np.min), lift(True)
    for column in columns:
        if column.dtype.kind == "f":
            note_raise(np.any(np.logical_and(among, np.isnan(column))), Reason.ORDER)
        found = best(np.where(among, column, _worst(column.dtype, is_max)))
        among = np.logical_and(among, np.equal(column, found))
    return np.argmax(among)


def _worst(dtype: Any, is_max: bool) -> Any:
    if dtype.kind == "f":
        return -np.inf if is_max else np.inf
    if dtype.kind == "b":
        return not is_max
    return np.iinfo(dtype).min if is_max else np.iinfo(dtype).max


def check_ordered(x: Any) -> None:
    """The program stops where Python would sort NaN among numbers, wherever it leaves them."""
    if x.dtype.kind == "f":
        note_raise(np.any(np.isnan(x)), Reason.ORDER)


def found_by(flags: Sequence[Any], counts: bool) -> Any:
    """``items.index(x)``, or ``items.count(x)``: ``flags`` say which items are equal to ``x``."""
    there = np.stack([lift(np.all(flag)) for flag in flags] or [lift(False)])
    if counts:
        return weakened(np.sum(there))
    note_raise(np.logical_not(np.any(there)))
    return weakened(np.argmax(there))


def taken_out(owner: Any, flags: Sequence[Any]) -> None:
    """``owner.remove(x)``: ``flags`` say which items are equal to ``x``."""
    first = next((k for k, flag in enumerate(flags) if flag is not False), None)
    if first is not None and flags[first] is True:
        changing(owner)
        del owner[first]
        return
    place, items = found_by(flags, False), list(owner)
    left = picked(items, [np.where(np.less(k, place), k, k + 1)[()] for k in range(len(items) - 1)])
    changing(owner)
    owner.clear()
    owner.extend(left)


def _order(keys: Sequence[Any]) -> Any:
    """The places of keys in their order, in which equal keys stay."""
    columns = _columns(keys)
    if columns is None:
        return np.argsort(_n_before(orders.less, keys))
    for column in columns:
        check_ordered(column)
    order = np.argsort(columns[-1], kind="stable")
    for column in columns[-2::-1]:
        order = order[np.argsort(column[order], kind="stable")]
    return order


def _n_before(comes_first: Any, keys: Sequence[Any]) -> Any:
    """How many keys come before each, as comparisons of two of them say."""
    return stacked(call_from_source(orders.n_before, (comes_first, list(keys)), {}))


def _columns(keys: Sequence[Any]) -> list[Any] | None:
    """Numbers that order keys, the first of them first; None if these are no numbers alone."""
    if are_numbers(keys):
        return [stacked(keys)]
    kinds = {tuple if isinstance(x, tuple) else type(x) for x in keys}
    if len(kinds) > 1 or not kinds <= {tuple, list} or len(set(map(len, keys))) > 1:
        return None
    found = [_columns(column) for column in zip(*keys, strict=True)]
    if not found or any(columns is None for columns in found):
        return None
    return [x for columns in found for x in columns or ()]
