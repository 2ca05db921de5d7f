"""Lists of which a traced number says which one is meant: ``spikes[i].append(t)``.

The list is a `Choice`. What is appended to it is written into all of them, where it is theirs; who
reads it is given a list of its own items, as they are then.
"""

from __future__ import annotations

import ast
import gc
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ckad.errors import UnrecordableError
from ckad.trace.integers.spans import minus
from ckad.trace.memory.context import current
from ckad.trace.source.actions import unread
from ckad.trace.source.choices import Choice
from ckad.trace.source.control import chosen
from ckad.trace.source.libraries import is_library
from ckad.trace.source.library import lists
from ckad.trace.source.memory import listed, object_arrays
from ckad.trace.source.memory.appends import seen
from ckad.trace.source.memory.contents import (
    ITEMS,
    Stacked,
    contents,
    holding,
    is_unclear,
    is_unhoused,
    length_unknown,
    stack_of,
)
from ckad.trace.source.memory.growing import Filled
from ckad.trace.source.memory.rows.kinds import Kind, kind_of, kind_of_all, kind_of_numbers
from ckad.trace.source.memory.rows.numbered import empty, joined
from ckad.trace.source.memory.rows.stacks import RowLayout, Stack, stacked
from ckad.trace.source.memory.twins import check_alone, one_of_several
from ckad.trace.source.names.frame import MISSING, Frame, depth_of, enclosing, made, region
from ckad.trace.source.outside.kinds import SEQUENCES
from ckad.trace.source.values import is_weak, one_of_classes, slot_of, weakened
from ckad.trace.values.tracer import Tracer, decided, fresh, lift, value

#: How many iterators may stand in each other: enumerate(zip(xs, ys)).
_DEEPEST = 4


def is_list(x: Any) -> bool:
    """Whether a traced number decides which of several lists ``x`` is."""
    return type(x) is Choice and all(type(one) in SEQUENCES for one in x.objects)


def opened(x: Any) -> Any:
    """``x``; of several lists, the items of the one that is meant."""
    return _read(x) if is_list(x) else x


def shown(x: Any) -> Any:
    """The same of what the program looked up."""
    if type(x) is Tracer:
        return x
    return _read(x) if is_list(x) else seen(x)


def condition(x: Any) -> Any:
    """What decides of ``if xs``."""
    return listed.condition(object_arrays.condition(opened(x)))


def given(callee: Any, args: list[Any]) -> list[Any]:
    """The arguments of a call: functions of libraries look at what lists hold."""
    is_read = is_library(str(getattr(callee, "__module__", "")))
    return list(map(opened, args)) if is_read else args


def index_of(frame: Frame, node: ast.Subscript) -> Any:
    """The index of a subscript; lists whose items are rows of buffers as arrays."""
    index = unread(frame, node.slice)
    if type(index) is tuple:
        return tuple(lists.opened(list(map(opened, index))))
    return seen(lists.opened([opened(index)])[0])


def method(choice: Choice, name: str) -> Callable[..., Any]:
    """A method of the list that is meant."""
    if name == "append":
        return partial(_append, choice)
    return partial(_asked, choice, name)


def _asked(choice: Choice, name: str, *args: Any, **options: Any) -> Any:
    if name in listed.METHODS_BY_NAME:
        _house(choice, {id(one): kind_of_all(list(one)) for one in choice.objects})
    functions = [_method_of(one, name) for one in choice.objects]
    return chosen.call_one(choice, functions, *args, **options)


def _method_of(one: Any, name: str) -> Callable[..., Any]:
    own = listed.method(one, name)
    found: Callable[..., Any] = getattr(one, name) if own is None else partial(own, one)
    return found


def extend(choice: Choice, items: Sequence[Any]) -> None:
    """``lists[k] += items``."""
    for item in items:
        _append(choice, item)


def store(choice: Choice, index: Any, new: Any, put: Callable[..., None]) -> None:
    """``lists[k][index] = new``, by ``put`` in the one that is meant."""
    if isinstance(index, Tracer):
        _house_numbers(choice, new)
        if _put_in_buffers(choice, index, new):
            return
    plain = type(index) is int and not any(stack_of(x) or is_unclear(x) for x in choice.objects)
    if not plain or not chosen.put_number(choice, index, new, put):
        chosen.done_by(choice, [partial(put, one, index, new) for one in choice.objects])


def _house_numbers(choice: Choice, new: Any) -> None:
    """Have lists of numbers, equally long, kept in buffers: what is put at a traced place of one of
    them is written into each, and not by branches for each of their items."""
    lists = choice.objects
    if not all(type(x) is list and not stack_of(x) and chosen.can_be_filled(x) for x in lists):
        return
    for one in lists:
        check_alone(one)
    kind = kind_of_numbers([*(x for one in lists for x in one), new])
    if len({*map(len, lists)}) == 1 and kind is not None:
        _house(choice, {id(one): kind for one in lists}, Filled)


def _put_in_buffers(choice: Choice, index: Tracer, new: Any) -> bool:
    """Put a number into each list, of rows of buffers, where it is meant; whether this can be."""
    stacks, slot = [stack_of(x) for x in choice.objects], slot_of(new)
    counts = {x.count if x and isinstance(x.count, int) else None for x in stacks}
    if slot is None or not slot.scalar or len(counts) > 1 or None in counts:
        return False
    for one in choice.objects:
        flag = choice.where(partial(operator.is_, one))
        listed.store(one, index, chosen.one_of_two(flag, new, listed.item(one, index)))
    return True


# --- appending -----------------------------------------------------------------------------------


def _append(choice: Choice, item: Any) -> None:
    if not any(map(_is_from_outside, choice.objects)):
        _asked(choice, "append", item)
        return
    _house(choice, {id(one): kind_of(item) for one in choice.objects})
    for one in choice.objects:
        listed.append(one, item, choice.where(partial(operator.is_, one)))


def _house(choice: Choice, kinds: dict[int, Kind | None], wanted: Any = Stacked) -> None:
    """Have lists kept in buffers by the bodies within which they were made."""
    lists = [x for x in choice.objects if stack_of(x) is None and _is_from_outside(x)]
    if not lists:
        return
    refused = next(filter(is_unhoused, lists), None)
    if refused is not None:
        raise length_unknown(contents(refused))
    last, *others = (wanted(x, length_unknown(contents(x)), kinds[id(x)]) for x in lists)
    for found in others:
        around = [x for x in enclosing() if x.depth == depth_of(found.owner) + 1]
        around[0].wanted.append(found)
    raise last


def _is_from_outside(one: Any) -> bool:
    """Whether a list was made before the body that is being recorded, which is run often."""
    inner = region()
    return inner is not None and depth_of(one) < inner.depth


class RunOver:
    """Lists that a loop runs over: how many items they have may not depend on traced numbers.

    Python takes the items that are there when their turn comes. ``iterable`` may be an iterator.
    """

    def __init__(self, iterable: Any) -> None:
        self._lists = iterable.objects if is_list(iterable) else lists_behind(iterable)
        self._is_live = not is_list(iterable) and not any(map(stack_of, self._lists))
        self._before = [_count(x) for x in self._lists]

    def check(self) -> None:
        """Nothing has changed that the loop does not see."""
        now = [_count(x) for x in self._lists]
        known = self._is_live and all(type(x) is int for x in now)
        if not known and any(x is not y for x, y in zip(now, self._before, strict=True)):
            raise UnrecordableError.here(
                "a loop runs over a list that its steps make longer or shorter, and how "
                "long it is depends on a traced number. Loop by number: while k < len(xs): ..."
            )


def lists_behind(iterable: Any, depth: int = _DEEPEST) -> list[Any]:
    """The lists that an iterator takes its items from."""
    if type(iterable) in SEQUENCES:
        return [iterable]
    if not isinstance(iterable, Iterator) or not depth:
        return []
    inner = gc.get_referents(iterable)
    inner += [y for x in inner if type(x) is tuple for y in gc.get_referents(x)]
    return [found for x in inner for found in lists_behind(x, depth - 1)]


def _count(one: Any) -> Any:
    """How many items a list has; None if that is not known."""
    stack = stack_of(one)
    return stack.count if stack else None if is_unclear(one) else len(one)


# --- reading -------------------------------------------------------------------------------------


def _read(choice: Choice) -> Any:
    """A list of its own of the items of the one that is meant."""
    lists = choice.objects
    return one_of_several(_copy(choice, lists))


def item(choice: Choice, index: Any) -> Any:
    """``lists[k][index]`` of lists of known items, all equally many; MISSING of any others."""
    lists = choice.objects
    if type(index) is Tracer and (place := decided(index)) is not None:
        index = int(place)
    if type(index) not in (int, Tracer) or any(stack_of(x) or is_unclear(x) for x in lists):
        return MISSING
    if len({*map(len, lists)}) > 1:
        return MISSING
    for one in lists:
        seen(one)
    if type(index) is int:
        return chosen.of_several(choice, [one[index] for one in lists])
    items = [x for one in lists for x in one]
    slots = {slot_of(x) for x in items}
    if len({None if slot is None else (slot.type, slot.scalar, slot.weak) for slot in slots}) > 1:
        return MISSING
    if None in slots or not all(slot.scalar for slot in slots if slot):
        return MISSING
    found = _table(items, len(lists))[_place(choice), index]
    return one_of_classes(weakened(found) if is_weak(items[0]) else found, items)


def _place(choice: Choice) -> Any:
    """Which of its lists it is."""
    first, *others = sorted(choice.options)
    if others and others[-1] - first == len(others):  # met one after the other
        return minus(choice.number, first)
    return choice.looked_up([*range(len(choice.options))])


def _table(items: Sequence[Any], n: int) -> Any:
    """Numbers as a matrix of ``n`` rows, made once of the same ones."""
    tables, rows = current().tables, tuple(map(value, items))
    if rows not in tables:
        stack: Any = np.stack([fresh(row) for row in rows])
        tables[rows] = value(stack.reshape(n, -1))
    return fresh(tables[rows], scalar=False)


def _copy(choice: Choice, lists: list[Any]) -> Any:
    for one in lists:
        seen(one) if stack_of(one) is None else contents(one).note_read(ITEMS)
    plain = all(stack_of(one) is None for one in lists)
    if plain and len({len(one) for one in lists}) == 1:
        columns = zip(*lists, strict=True)
        return made([chosen.of_several(choice, list(column)) for column in columns])
    stacks = _stacks(lists)
    number = choice.looked_up([*range(len(lists))])
    table = [np.stack(buffers) for buffers in zip(*(x.layout.buffers for x in stacks), strict=True)]
    buffers = [fresh(value(x[number]), scalar=False) for x in table]
    count: Any = np.stack([lift(x.count) for x in stacks])[number]
    return holding([], Stack(RowLayout(stacks[0].layout.kind, buffers), 0, count))


def _stacks(lists: Sequence[Any]) -> list[Stack]:
    """Lists as rows of buffers of one kind and length."""
    kind: Kind | None = None
    for one in lists:
        stack = stack_of(one)
        own = stack.layout.kind if stack else kind_of_all(list(one)) if one else kind
        kind = own if kind is None else own and kind.joined(own)
    firsts = [x.first for x in map(stack_of, lists) if x]
    if kind is None or any(not isinstance(x, int) or x for x in firsts):
        raise _differ()
    size = max(x.layout.capacity if (x := stack_of(one)) else len(one) for one in lists)
    return [_stack(stack_of(one), one, kind, size) for one in lists]


def _stack(stack: Stack | None, items: Any, kind: Kind, size: int) -> Stack:
    if stack is None:
        return stacked(list(items), kind, size)
    if not kind.is_like(stack.layout.kind) or stack.layout.is_ring:
        raise _differ()
    missing = size - stack.layout.capacity
    if not missing:
        return stack
    padded = joined([stack.layout.buffers, empty(kind, missing)])
    return Stack(RowLayout(kind, padded), 0, stack.count)


def _differ() -> UnrecordableError:
    return UnrecordableError.here(
        "a traced number decides which of several lists is read, and their items are not all "
        "of one kind. Keep them in arrays: one of all items, and one of their counts."
    )
