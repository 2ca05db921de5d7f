"""Operations on lists and deques whose items are rows of buffers (``stacks``)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.errors import UnrecordableError
from ckad.trace.integers.affine import is_at_least
from ckad.trace.integers.spans import minus, plus, smaller, span_of
from ckad.trace.source.memory import keyed
from ckad.trace.source.memory.aliases import names_showing
from ckad.trace.source.memory.contents import (
    ITEMS,
    Stacked,
    bodies_around,
    changes_length,
    contents,
    holding,
    is_unhoused,
    read,
    rows_of,
    stack_of,
)
from ckad.trace.source.memory.object_arrays import check_item
from ckad.trace.source.memory.rows import by_items
from ckad.trace.source.memory.rows.gaps import close_gap, open_gap
from ckad.trace.source.memory.rows.kinds import Kind, kind_of
from ckad.trace.source.memory.rows.stacks import RowLayout, Stack
from ckad.trace.source.memory.twins import check_alone, containers, noted_row, read_row
from ckad.trace.source.names.absence import OrNone, as_told, given
from ckad.trace.source.names.closures import call_from_source
from ckad.trace.source.names.frame import made, region
from ckad.trace.source.names.generated import Filtered
from ckad.trace.source.names.region import Growth, enclosing
from ckad.trace.source.values import as_bound, weakened
from ckad.trace.values.part import Part, unsupported
from ckad.trace.values.tracer import Number, fresh, lift, value

_OF_ANOTHER_KIND = (
    "a list whose length is only known when the program runs gets an item of another type or "
    "shape after the loop or branch that made it. Make another list."
)
#: Slices of so many items are lists of them; longer ones stay rows of buffers.
FEW = 16


def stack_in(owner: Any) -> Stack:
    """What a list holds, which is looked at now."""
    _note_look(owner)
    return _stack(owner)


def _note_look(owner: Any) -> None:
    for inner in enclosing():
        inner.looked.add(id(owner))


def _stack(owner: Any) -> Stack:
    found = contents(owner)
    found.note_read(ITEMS)
    stack = found.stack
    if stack is None:  # who was asked for the items meanwhile has made it a plain list
        raise changes_length(type(owner).__name__)
    return stack


# --- reads ---------------------------------------------------------------------------------------


def length(owner: Any) -> Any:
    return weakened(stack_in(owner).count)


def condition(x: Any) -> Any:
    """What decides of ``if xs``: how many items there are; what is no list in buffers, itself."""
    if rows_of(x) is not None:
        return keyed.length(x)
    return x if stack_of(x) is None else length(x)


def item(owner: Any, index: Any) -> Any:
    """``xs[index]``."""
    stack = stack_in(owner)
    if isinstance(index, slice):
        return _part(owner, stack, index)
    place = stack.place(index)
    tree = stack.layout.kind.tree
    may_change = tree.num_nodes > 1 and tree.type is not OrNone
    if region() is None and stack.is_known and may_change:
        read(owner)  # a plain list again, whose items may be changed
        return owner[index]
    return read_row(stack, place)


def _part(owner: Any, stack: Stack, index: slice) -> Any:
    """``xs[-3:]``: a list of its own."""
    check_item(owner, index)
    if index.step not in (None, 1) and isinstance(stack.count, int):
        return made(_like(owner, [read_row(stack, k) for k in range(stack.count)[index]]))
    span = span_of(index, stack.count)
    if isinstance(span.length, int) and span.length <= FEW:
        places = [plus(span.start, span.step * k) for k in range(span.length)]
        return made(_like(owner, [read_row(stack, k) for k in places]))
    if span.step > 1:
        unsupported("each k-th element of a list of computed length (write np.array(xs)[::k])")
    if span.step == -1:
        return holding(type(owner)(), stack.turned(span.start, span.length))
    return _made(owner, stack.moved(stack.row(span.start), span.length))


def _like(owner: Any, items: Sequence[Any]) -> Any:
    return type(owner)(items)


def copied(owner: Any) -> Any:
    """``list(xs)``, ``xs.copy()``."""
    return _made([], stack_in(owner))


def _made(owner: Any, stack: Stack) -> Any:
    """A new list of what a stack holds now."""
    old = stack.layout
    buffers = [fresh(value(x), scalar=False) for x in old.buffers]
    layout = RowLayout(old.kind, buffers, old.is_ring, None)
    return holding(type(owner)(), Stack(layout, stack.first, stack.count))


def of_values(owner: Any) -> Any:
    """A list of items that may be None as one of values: the program stops where one is None."""
    stack = stack_in(owner)
    old = stack.layout
    if old.kind.tree.type is not OrNone:
        return owner
    held = [fresh(value(x), scalar=False) for x in old.buffers[:-1]]
    given(OrNone(held, np.all(stack.leaves()[-1])))
    kind = Kind(old.kind.tree.children()[0], old.kind.slots[:-1], old.kind.options[:-1])
    return holding([], Stack(RowLayout(kind, held, old.is_ring), stack.first, stack.count))


def array(owner: Any) -> Any:
    """``np.array(xs)``; None if it is no array of numbers."""
    return stack_in(owner).array()


# --- changes -------------------------------------------------------------------------------------


def _changed(owner: Any, stack: Stack) -> None:
    found = contents(owner)
    found.note_change(ITEMS)
    found.has_changed = True
    found.names[ITEMS] = stack


def _note_growth(owner: Any, now: int, pushed: int = 0) -> None:
    inner = region()
    if inner is not None:
        inner.growth.setdefault(id(owner), Growth()).add(now, max(now, 0), pushed)


def _room(owner: Any, new: Any = None) -> Stack | None:
    """The stack of a list that is about to get another item; None if it becomes a plain list."""
    check_alone(owner)
    stack = _stack(owner)
    around = bodies_around(owner)
    if not around and stack.is_known:
        read(owner)  # a plain list again
        return None
    kind = kind_of(new)
    both = None if kind is None else stack.layout.kind.joined(kind)
    if not around:
        if both is None or both.slots != stack.layout.kind.slots:
            raise UnrecordableError.here(_OF_ANOTHER_KIND)
        return Stack(stack.layout.of_kind(both), stack.first, stack.count)
    if both is None or is_unhoused(owner):
        raise changes_length(type(owner).__name__)
    if all(id(owner) not in x.housed for x in around) or not both.is_like(stack.layout.kind):
        raise Stacked(owner, changes_length(type(owner).__name__), both)
    return stack


def _check_unnamed(owner: Any, new: Any) -> None:
    """An item that has a name may be changed by it: rows of buffers would not show that."""
    if any(next(names_showing(x), None) is not None for (x,) in containers(new)):
        raise changes_length(type(owner).__name__)


def append(owner: Any, new: Any, flag: Any = True) -> None:
    """``owner.append(new)`` where ``flag`` is true."""
    new = as_told(new)
    _check_unnamed(owner, new)
    stack = _room(owner, new)
    if stack is None:
        owner.append(new)
        return
    if any(id(owner) in inner.filled for inner in bodies_around(owner)):
        raise Stacked(owner, changes_length(type(owner).__name__), stack.layout.kind)
    if _is_full(stack):  # it is also made shorter, so that the space was thought to be enough
        raise changes_length(type(owner).__name__)
    if not bodies_around(owner) and stack.layout.maxlen is None:
        stack = stack.longer()
    stack.shelve(new)
    _note_growth(owner, 1, 1)
    if flag is not True or len(bodies_around(owner)) > 1:
        _note_look(owner)
    if flag is True:
        _put(owner, stack, stack.count, new)
    elif stack.layout.is_ring:
        raise changes_length(type(owner).__name__)
    else:
        _put_if(owner, stack, flag, new)


def _put_if(owner: Any, stack: Stack, flag: Any, new: Any) -> None:
    """One more item where ``flag`` is true; else the first row is given what it has."""
    place = stack.with_space(lift(np.where(flag, stack.count, 0)))
    stack.write(place, noted_row(new, stack), flag)
    _changed(owner, stack.moved(stack.first, plus(stack.count, lift(np.where(flag, 1, 0)))))


def _is_full(stack: Stack) -> bool:
    layout, count = stack.layout, stack.count
    has_end = layout.maxlen is None and not layout.is_ring
    return has_end and isinstance(count, int) and count >= layout.capacity


def _put(owner: Any, stack: Stack, place: Number, new: Any) -> None:
    stack.write(stack.with_space(place), noted_row(new, stack))
    first, count, most = stack.first, stack.count, stack.layout.maxlen
    if most is None or (isinstance(count, int) and count < most):
        return _changed(owner, stack.moved(first, plus(count, 1)))
    if isinstance(count, int) or is_at_least(count, most):
        return _changed(owner, stack.moved(stack.wrapped(plus(first, 1)), count))
    is_full = np.greater_equal(count, most)
    moved: Any = np.where(is_full, stack.wrapped(plus(first, 1)), first)[()]
    return _changed(owner, stack.moved(moved, smaller(plus(count, 1), most)))


def append_left(owner: Any, new: Any) -> None:
    new = as_told(new)
    stack = _room(owner, new)
    if stack is None:
        owner.appendleft(new) if isinstance(owner, deque) else owner.insert(0, new)
        return
    if not stack.layout.is_ring:
        raise changes_length(type(owner).__name__)
    if not bodies_around(owner) and stack.layout.maxlen is None:
        stack = stack.longer()
    stack.shelve(new)
    _note_growth(owner, 1, 1)
    _note_look(owner)
    moved = stack.moved(stack.wrapped(minus(stack.first, 1)), stack.count)
    moved.write(0, noted_row(new, stack))
    most = stack.layout.maxlen
    count = plus(stack.count, 1)
    _changed(owner, moved.moved(moved.first, count if most is None else smaller(count, most)))


def pop(owner: Any, index: Any = -1) -> Any:
    check_alone(owner)
    stack = stack_in(owner)
    found = read_row(stack, stack.place(index), is_out=True)
    if not bodies_around(owner) and stack.is_known:
        read(owner)
        if type(owner) is list:
            return owner.pop(index)
        return owner.popleft() if index == 0 else owner.pop()
    _note_growth(owner, -1)
    first = stack.first
    if isinstance(index, int) and index == 0:
        first = stack.wrapped(plus(first, 1))
    elif not isinstance(index, int) or index != -1:
        close_gap(stack, stack.place(index))
    _changed(owner, stack.moved(first, stack.place(-1)))  # checked: none is shorter than empty
    return found


def store(owner: Any, index: Any, new: Any) -> None:
    """``xs[index] = new``."""
    if isinstance(index, slice):
        raise changes_length(type(owner).__name__)
    stack = _room(owner, new)
    if stack is None:
        owner[index] = new
        return
    _note_look(owner)
    stack.shelve(new)
    place = stack.place(index)
    stack.write(place, noted_row(new, stack))
    _changed(owner, stack.moved(stack.first, stack.count))


def _rotate(owner: Any, by: int = 1) -> None:
    stack = stack_in(owner)
    size = stack.layout.capacity
    if not (stack.layout.is_ring and stack.count == size and type(stack.count) is int):
        raise changes_length("deque")
    check_alone(owner)
    _changed(owner, stack.moved(stack.wrapped(minus(stack.first, by)), stack.count))


def _clear(owner: Any) -> None:
    check_alone(owner)
    stack = stack_in(owner)
    if not bodies_around(owner) and stack.is_known:
        read(owner)  # a plain list again
        owner.clear()
        return
    inner = region()
    if inner is not None:  # it may have been longer than it is in the end
        inner.growth.setdefault(id(owner), Growth()).is_monotonic = False
    _changed(owner, stack.moved(0, 0))


def extend(owner: Any, new: Any) -> None:
    """``owner.extend(new)``, also of what is as long as is only known when the program runs."""
    if is_open(new):
        call_from_source(by_items.extended, (owner, new), {})
        return
    for one in new:
        append(owner, one)


def is_open(items: Any) -> bool:
    """Whether a loop alone can run over some items: how many there are is no plain number."""
    return isinstance(items, (Part, Filtered)) or stack_of(items) is not None


def _insert(owner: Any, at: Any, new: Any) -> None:
    at, before = as_bound(at), stack_in(owner)
    if before.layout.maxlen is not None:  # a full one raises
        raise changes_length("deque")
    if before.layout.is_ring and isinstance(at, int) and at == 0:
        append_left(owner, new)
        return
    place = span_of(slice(at, None), before.count).start
    append(owner, new)
    stack = stack_of(owner)
    if stack is None:  # a plain list again
        owner.insert(at, owner.pop())
        return
    open_gap(stack, place)
    stack.write(place, noted_row(new, stack))


def delete(owner: Any, index: Any) -> None:
    """``del xs[index]``; a slice is taken from one end."""
    if not isinstance(index, slice):
        pop(owner, index)
        return
    if index.start is None and index.stop is None and index.step is None:
        _clear(owner)
        return
    raise changes_length(type(owner).__name__)


def _remove(owner: Any, item: Any) -> None:
    call_from_source(by_items.removed, (owner, item), {})


def _index(owner: Any, item: Any) -> Any:
    return call_from_source(by_items.found, (owner, item), {})


def _count(owner: Any, item: Any) -> Any:
    return call_from_source(by_items.counted, (owner, item), {})


METHODS_BY_NAME: dict[str, Callable[..., Any]] = {
    "append": append,
    "appendleft": append_left,
    "clear": _clear,
    "copy": copied,
    "count": _count,
    "extend": extend,
    "index": _index,
    "insert": _insert,
    "pop": pop,
    "popleft": lambda owner: pop(owner, 0),
    "remove": _remove,
    "rotate": _rotate,
}


METHODS = frozenset(METHODS_BY_NAME.values())


def method(owner: Any, name: str) -> Callable[..., Any] | None:
    """The method of a list whose items are rows of buffers."""
    return METHODS_BY_NAME.get(name) if stack_of(owner) is not None else None
