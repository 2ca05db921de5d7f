"""Items of lists, tuples and texts at places that are traced."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import isinf
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import AliasError, UnrecordableError, UnsupportedFunctionError
from ckad.tape.ops import Op
from ckad.trace.integers.affine import is_at_least, range_of
from ckad.trace.integers.spans import is_traced_slice, minus, number, plus
from ckad.trace.primitives.part.extents import checked_index
from ckad.trace.source.choices import can_be_chosen, one_of, refuse
from ckad.trace.source.control.checks import note_index, note_raise
from ckad.trace.source.libraries import is_library
from ckad.trace.source.memory.contents import stack_of
from ckad.trace.source.memory.sharing import picked_memory
from ckad.trace.source.memory.twins import settle_picked
from ckad.trace.source.names.absence import OrNone
from ckad.trace.source.names.frame import depth_of, region
from ckad.trace.source.outside.kinds import SEQUENCES
from ckad.trace.source.values import Slot, one_of_classes, slot_of, weakened
from ckad.trace.values.apply import apply
from ckad.trace.values.tracer import Number, Tracer, decided, known, known_as_run, lift

#: Lists of these are soon an array.
_PLAIN = (int, float)
#: Parts of so many items are written out.
LONGEST_PART = 64


class Letters(tuple[Any, ...]):
    """A part of a text at a traced place: its letters, and no more than these."""

    def _refuse(self, *_: Any) -> Any:
        refuse()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _refuse
    __add__ = __radd__ = __mul__ = __rmul__ = __mod__ = __contains__ = __getattr__ = _refuse
    count = index = _refuse


trees.register(Letters, lambda x: (tuple(x), None), lambda _, letters: Letters(letters))


def item(items: Any, index: Tracer) -> Any:
    """``items[index]`` with a traced index."""
    if (place := decided(index)) is not None:
        return items[int(place)]
    if isinstance(items, dict):
        return _entry(items, index)
    if len(set(map(type, items))) == 1 and type(items[0]) in _PLAIN:
        return weakened(stacked(items)[index])
    if items and (all(map(_is_one_of, items)) or all(type(x) in SEQUENCES for x in items)):
        note_index(index, len(items))  # what is asked of items that are alike is known without it
        return _one_at(items, index)
    if items and all(type(x) is tuple and len(x) == len(items[0]) for x in items):
        return tuple(item(column, index) for column in zip(*items, strict=True))
    flat = [trees.flatten(x) for x in items]
    trees_of = [tree for _, tree in flat]
    kinds = [slot_of(x) for leaves, _ in flat for x in leaves]
    plain = all(isinstance(x, (tuple, OrNone)) or slot_of(x) is not None for x in items)
    if not (items and plain) or any(kind is None or kind.type.shape for kind in kinds):
        return items[index.__index__()]  # says why this cannot be
    if any(tree != trees_of[0] for tree in trees_of):
        return items[index.__index__()]
    if any(_are_one(column) for column in zip(*(leaves for leaves, _ in flat), strict=True)):
        note_index(index, len(items))
    return picked(items, [index])[0]


def live(owner: list[Any], items: Sequence[Any], k: Any) -> Any:
    """An item of a list that steps may change: the one that is there now."""
    is_same = len(owner) == len(items)
    if isinstance(k, Tracer):
        is_same = is_same and all(map(operator.is_, owner, items))
    if stack_of(owner) is not None or not is_same:
        raise UnrecordableError.here(
            "a loop runs over several lists at once, and its steps change one that is not made "
            "by a loop. Use the items' index: for k in range(len(xs)): xs[k]."
        )
    return item(owner, k) if isinstance(k, Tracer) else owner[k]


def _is_one_of(x: Any) -> bool:
    return can_be_chosen(x) or type(x) is dict


def _known_entry(entries: dict[Any, Any], key: Tracer) -> Any:
    """``entries[key]`` where the program is recorded for that number; else this says why not."""
    try:
        return entries[key]
    except KeyError:
        number = known_as_run(key)
        raise KeyError(key if number is None else number.item()) from None


def _entry(entries: dict[Any, Any], key: Tracer) -> Any:
    """``entries[key]`` of a dict whose keys are integers; a KeyError when the program runs."""
    if known(key) is not None or not entries or any(type(k) is not int for k in entries):
        return _known_entry(entries, key)
    is_it = np.equal(np.array(list(entries)), key)
    note_raise(np.logical_not(np.any(is_it)))
    return item(list(entries.values()), lift(np.argmax(is_it)))


def part(items: Any, index: Any) -> Any:
    """``items[p : p + n]`` with a traced ``p``; None if that are not certainly ``n``, or many.

    Where nothing is known of ``p``, a check stops the program at the ends of the items.
    """
    if not is_traced_slice(index) or index.step not in (None, 1):
        return None
    if index.start is None or index.stop is None:
        return None
    start = number(index.start)
    length = minus(number(index.stop), start)
    if not isinstance(length, int) or not 0 < length <= min(LONGEST_PART, len(items)):
        return None
    first = _checked(start, len(items) - length)
    if first is None:
        return None
    found = [item(items, lift(plus(first, k))) for k in range(length)]
    if isinstance(items, str):
        return Letters(found)
    return found if isinstance(items, list) else tuple(found)


def _checked(start: Number, last: int) -> Number | None:
    """``start``, which is checked to be in [0, last]; None if it is known to be elsewhere, too."""
    if is_at_least(start, 0) and is_at_least(last, start):
        return start
    least, most = range_of(start)
    if not (isinf(least) or least >= 0) or not (isinf(most) or most <= last):
        return None
    inside = start if least >= 0 else np.where(np.less(start, 0), last + 1, start)[()]
    return apply(Op.WRAP, lift(inside), attrs=(last + 1,))


def picked(items: Sequence[Any], places: Sequence[Any]) -> list[Any]:
    """The items at traced places: each of their leaves is read from all items' at once.

    In Python they are the very items, so what is changed in one of both has to show in the other.
    """
    numbers = [x for place in places if (x := decided(place)) is not None]
    if len(numbers) == len(places):
        return [items[int(x)] for x in numbers]
    if all(x is items[0] for x in items):
        return [items[0]] * len(places)
    if all(map(can_be_chosen, items)):
        return [_one_at(items, place) for place in places]
    lists = [id(x) for x in items if isinstance(x, (list, dict))]
    if len({*lists}) < len(lists):
        raise AliasError.here(
            "a traced value decides the order or choice of lists or dicts of which two are one "
            "and the same, so that a change of one shows in the other. Make copies: list(x)."
        )
    if all(type(x) is tuple for x in items) and len(set(map(len, items))) == 1:
        columns = [picked(column, places) for column in zip(*items, strict=True)]
        return list(zip(*columns, strict=True)) if columns else [()] * len(places)
    taken = [trees.flatten(x) for x in items]
    (first, tree), leaves = taken[0], []
    if not _are_alike(taken) and all(map(_has_lasted, items)):
        return [_one_at(items, place) for place in places]
    if any(own != tree for _, own in taken):
        raise refused("among items of different kinds")
    for k in range(len(first)):
        leaves.append(_leaves_at([own[k] for own, _ in taken], places))
    found = [trees.unflatten(tree, [column[k] for column in leaves]) for k in range(len(places))]
    settle_picked(found, items)
    return found


def _are_alike(taken: Sequence[tuple[list[Any], Any]]) -> bool:
    """Whether items of one structure hold numbers and arrays of one shape at each of its places, or
    the very same objects."""
    if any(tree != taken[0][1] for _, tree in taken):
        return False
    for column in zip(*(leaves for leaves, _ in taken), strict=True):
        shapes = {None if s is None else s.type.shape for s in map(slot_of, column)}
        if not _are_one(column) and (None in shapes or len(shapes) > 1):
            return False
    return True


def _has_lasted(x: Any) -> bool:
    """Whether ``x`` is an object, or a dict, that was there before the body being recorded."""
    inner = region()
    own = type(x) is dict or not is_library(type(x).__module__)
    return own and (inner is None or depth_of(x) < inner.depth)


def _leaves_at(column: list[Any], places: Sequence[Any]) -> list[Any]:
    """One leaf of the items at traced places, given that leaf of all items."""
    if _are_one(column):
        return [column[0]] * len(places)
    leaf = leaf_of(column)
    if leaf is None:
        raise refused("among items that hold more than numbers and arrays of one shape")
    return [leaf(place) for place in places]


def leaf_of(column: list[Any]) -> Callable[[Any], Any] | None:
    """The leaf of the item at a place, from that leaf of all items; None if they are not alike."""
    slots = [slot_of(x) for x in column]
    kinds = {None if s is None else s.type.shape for s in slots}
    if None in kinds or len(kinds) > 1:
        return None
    stack, weak = stacked(column), _are_weak(slots)
    if kinds != {()}:
        picked_memory(stack, column)
        return lambda place: stack[place]

    def at(place: Any) -> Any:
        x = stack[place]
        return one_of_classes(weakened(x) if weak and type(x) is Tracer else x, column)

    return at


def stacked(numbers: Sequence[Any]) -> Any:
    """Numbers or arrays, of which some may be traced, as an array."""
    if type(numbers[0]) in (*_PLAIN, np.ndarray) and len(set(map(type, numbers))) == 1:
        return lift(np.array(numbers))
    return np.stack([lift(x) for x in numbers])


def _one_at(items: Any, place: Any) -> Any:
    return one_of(list(items), lambda numbers: _number_at(numbers, place))


def _number_at(numbers: Sequence[Any], place: Any) -> Any:
    n, first = len(numbers), numbers[0]
    if all(type(x) is int and x == first + k for k, x in enumerate(numbers)):
        return plus(checked_index(number(place), n, n), first)
    return stacked(numbers)[place]


def _are_one(values: Sequence[Any]) -> bool:
    return all(x is values[0] for x in values)


def _are_weak(slots: Sequence[Slot | None]) -> bool:
    return all(slot is not None and slot.weak for slot in slots)


def refused(what: str) -> UnsupportedFunctionError:
    return UnsupportedFunctionError.here(
        f"a traced value decides an order (sorted, min, max with key=) {what}, and which item "
        "comes where is not known. Order numbers by np.argsort, and index arrays with that."
    )
