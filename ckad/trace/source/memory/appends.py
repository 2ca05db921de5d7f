"""Lists that the body of a loop appends to: what each step appends is an output of the loop.

After the loop the list holds views of the stacked outputs. While the body is recorded the list is
as it was before, so the body may do nothing else with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from ckad.trace.arrays import Array
from ckad.trace.memory.context import current
from ckad.trace.memory.storage import link, may_be
from ckad.trace.memory.views import ReshapeView
from ckad.trace.source.memory import listed
from ckad.trace.source.memory.contents import (
    ITEMS,
    Stacked,
    changes_length,
    contents,
    grow,
    is_unclear,
    is_whole,
    read,
    stack_of,
)
from ckad.trace.source.memory.rows.kinds import Kind, kind_of, kind_of_all
from ckad.trace.source.memory.rows.stacks import views_of_rows, with_rows
from ckad.trace.source.memory.twins import check_alone
from ckad.trace.source.names.absence import as_told
from ckad.trace.source.names.frame import Region, depth_of, enclosing, region
from ckad.trace.source.outside.kinds import CONTAINERS
from ckad.trace.source.values import Slot, flatten, slot_of
from ckad.trace.values.array import Array as Traced
from ckad.trace.values.tracer import Tracer, lift


class Entry(NamedTuple):
    """What one call appends in each step: one item, or with ``many`` a stack of items."""

    value: Tracer
    many: bool
    slot: Slot


class Appended(BaseException):
    """A body appends to a list from outside: it is recorded again, with that known."""

    def __init__(self, target: list[Any], region: Region) -> None:
        self.target, self.region = target, region


class _Allowed(threading.local):
    def __init__(self) -> None:
        self.now = False


_allowed = _Allowed()

#: Methods of a list that a body may call without reading it.
LENGTHENING = ("append", "extend")


@contextmanager
def appending() -> Iterator[None]:
    """Within, a list that is appended to may be looked up, for just that."""
    before, _allowed.now = _allowed.now, True
    try:
        yield
    finally:
        _allowed.now = before


def seen(value: Any) -> Any:
    """``value``, which the program looked up."""
    if type(value) in CONTAINERS and not (type(value) is list and _allowed.now):
        read(value)
    return value


def appender(callee: Any, args: Sequence[Any]) -> Callable[..., None] | None:
    """What makes a list longer where ``callee`` does, and Python does not know how."""
    owner = getattr(callee, "__self__", None)
    if type(owner) is not list or len(args) != 1:
        return None
    known = {"append": append, "extend": extend if is_extended(owner, args[0]) else None}
    return known.get(callee.__name__)


def is_extended(target: Any, new: Any) -> bool:
    """Whether ``target += new`` is the same as to append the items of ``new`` one by one."""
    if stack_of(target) is not None:
        return not isinstance(new, (Traced, np.ndarray))
    return type(target) is list and (type(new) in (list, tuple) or listed.is_open(new))


def extend(target: list[Any], new: Any) -> None:
    """``target.extend(new)``."""
    if listed.is_open(new):
        return listed.extend(target, new)
    for item in tuple(new):  # it may be ``target``
        append(target, item)


def append(target: list[Any], item: Any) -> None:
    """``target.append(item)``."""
    item = as_told(item)
    if stack_of(target) is not None:
        return listed.append(target, item)
    check_alone(target)
    inner = region()
    check_probed(target, item)
    if inner is not None and inner.is_trial and _is_appended(inner.outer, target):
        raise Appended(target, inner)
    one = type(item) is Tracer and not item.scalar and item.storage.root.trace is not current()
    slot = slot_of(item)
    if _takes(inner, target) and slot is not None and not one:
        _note(inner, target, Entry(lift(item), False, slot))
        return
    grow(target, [item])  # ``one``: each item would be the same array, as it is in the end


def check_probed(target: Any, item: Any) -> None:
    """Tell what is appended to an empty list that is to be kept as rows of buffers."""
    if any(id(target) in inner.probed for inner in enclosing()):
        raise Stacked(target, changes_length(type(target).__name__), kind_of(item))


def _takes(inner: Region | None, target: list[Any]) -> TypeGuard[Region]:
    """Whether what the steps of the present body append to a list is an output of its loop."""
    if inner is None or not inner.takes_appends or id(target) in inner.made:
        return False
    return type(target) is list and not is_whole(target) and not is_unclear(target)


def _is_appended(inner: Region | None, target: list[Any]) -> bool:
    return inner is not None and (id(target) in inner.appends or _is_appended(inner.outer, target))


def _note(inner: Region, target: list[Any], entry: Entry) -> None:
    if id(target) in inner.appends:
        inner.appends[id(target)][1].append(entry)
    elif inner.is_trial:
        raise Appended(target, inner)
    else:
        inner.new_lists[id(target)] = target


def extend_by_steps(
    target: list[Any], entries: list[tuple[Tracer, bool]], slots: Sequence[Slot], length: int
) -> None:
    """Append what ``length`` steps have: each entry stacked, and whether one step's is a stack."""
    inner = region()
    is_taken = _takes(inner, target)
    is_own = depth_of(target) == (inner.depth if inner else 0) and not is_unclear(target)
    slot = slots[0] if all(x == slots[0] for x in slots) else None
    stacked = None
    if slot is not None and (is_taken or is_own):
        stacked = _interleaved(entries, slot, length)
    if inner is not None and is_taken and slot is not None and stacked is not None:
        _note(inner, target, Entry(stacked, True, slot))
        return
    if slot is not None and stacked is not None and is_own and _keep(target, stacked, slot):
        return
    items = [_items(stack, many) for stack, many in entries]
    found: list[Any] = []
    for k in range(length):
        for part, (_, many) in zip(items, entries, strict=True):
            each = len(part) // length if many else 1
            found += part[k * each : (k + 1) * each]
    grow(target, found)


def _keep(target: list[Any], items: Tracer, slot: Slot) -> bool:
    """Let the rows of an array be the items at the end of a list, if all are of one kind."""
    kind = Kind(flatten(0.0)[1], [slot])
    before = kind_of_all(target) if target else kind
    kind_now = before and before.joined(kind)
    if kind_now is None:
        return False
    check_alone(target)
    found = contents(target)
    found.note_change(ITEMS)
    found.has_changed = True
    found.names[ITEMS] = with_rows(list(target), kind_now, items)
    return True


def _interleaved(entries: list[tuple[Tracer, bool]], slot: Slot, length: int) -> Tracer | None:
    """All items in their order in one stack; None if there are none."""
    shape = slot.type.shape
    if not length:
        return None
    each = [s if many else _seen_as(s, (length, 1, *shape)) for s, many in entries]
    joined: Array = np.concatenate(each, axis=1) if len(each) > 1 else each[0]
    for part in each:
        for root in may_be(part.storage):
            link(joined.storage.root, root)
    return _seen_as(joined, (joined.shape[0] * joined.shape[1], *shape))


def _seen_as(stack: Tracer, shape: tuple[int, ...]) -> Tracer:
    return Tracer(stack.storage, (*stack.path, ReshapeView(shape)))


def _items(stack: Tracer, many: bool) -> list[Tracer]:
    """Views of the items of a stack; nothing is recorded before they are read."""
    if many:
        stack = _seen_as(stack, (stack.shape[0] * stack.shape[1], *stack.shape[2:]))
    return views_of_rows(stack, range(stack.shape[0]), stack.ndim == 1)
