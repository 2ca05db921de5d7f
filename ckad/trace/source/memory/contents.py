"""What lists, dicts, sets and deques hold: a variable of each, which loops and branches carry.

The items of a container together are one name of a frame of its own. A body that changes a
container from outside changes that name, so the container is put back like a variable, carried from
step to step if it keeps its length, and merged after a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from functools import partial
from typing import Any, ClassVar, NoReturn

from ckad.errors import CkadError, UnrecordableError
from ckad.place import Source, user_place
from ckad.trace.source.memory.rows.kinds import Kind, kind_of_all
from ckad.trace.source.memory.rows.numbered import Rows, entries_of
from ckad.trace.source.memory.rows.stacks import Stack
from ckad.trace.source.names.frame import Apart, Unclear, ledger, outermost_ledger
from ckad.trace.source.names.instances import pair_all
from ckad.trace.source.names.region import (
    Key,
    Region,
    check_changeable,
    depth_of,
    enclosing,
    made,
    region,
)
from ckad.trace.source.outside.kinds import CONTAINERS, MAPPINGS, SEQUENCES
from ckad.trace.source.values import holds_tracer

#: The name under which a container's items stand in its frame.
ITEMS = "items"
#: Containers in containers are looked into to this depth.
_DEEPEST = 4


class Elsewhere:
    """Stands in a list whose items are rows of buffers: who sees it has not asked for them."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __repr__(self) -> str:
        return "a list whose length is only known when the program runs"

    def _refuse(self, *_: Any) -> NoReturn:
        raise length_unknown(contents(self.owner))

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __neg__ = __abs__ = __pow__ = __lt__ = _refuse
    __gt__ = __le__ = __ge__ = __float__ = __int__ = _refuse
    __getitem__ = __iter__ = __len__ = __call__ = __bool__ = __deepcopy__ = __copy__ = _refuse


class _Held(MutableMapping[str, Any]):
    """The one name of a container's frame; to bind it puts other items into the container."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.unclear: Unclear | None = None
        self.stack: Stack | Rows | None = None

    def __getitem__(self, name: str) -> Any:
        if name != ITEMS:
            raise KeyError(name)
        if self.unclear is not None:
            return self.unclear
        if self.stack is not None:
            return self.stack
        if type(self.owner) is set:
            return frozenset(self.owner)
        if type(self.owner) in MAPPINGS:
            return entries_of(self.owner, self.owner.values())
        return tuple(self.owner)

    def __setitem__(self, name: str, items: Any) -> None:
        self.unclear = items if type(items) is Unclear else None
        self.stack = items if type(items) in (Stack, Rows) else None
        self.owner.clear()
        if self.stack is not None:
            at = Elsewhere(self.owner)
            self.owner.update({at: at}) if type(self.owner) is dict else self.owner.append(at)
        if self.unclear is not None or self.stack is not None:
            return
        if type(self.owner) in MAPPINGS:
            for key, item in zip(items.keys, items, strict=True):
                self.owner[key] = item  # update() of a Counter would count them
        elif type(self.owner) is set:
            self.owner.update(items)
        else:
            self.owner.extend(items)

    def __delitem__(self, name: str) -> None:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield ITEMS

    def __len__(self) -> int:
        return 1


class Contents(Apart):
    """The items of one container, as the name of a frame."""

    __slots__ = ("appended", "has_changed", "owner")

    def __init__(self, owner: Any) -> None:
        super().__init__()
        self.owner, self.names = owner, _Held(owner)
        self.has_changed = False
        self.appended: Source | None = None  # where a body has appended to it last

    def note_change(self, name: str) -> None:
        inner, key = region(), (self, name)
        self.has_changed = True
        for one in enclosing():
            if id(self.owner) in one.copies:
                one.altered.add(id(self.owner))
        self.meet(name)
        if inner is not None and inner.depth > self.depth and key not in inner.changed:
            inner.changed[key] = self.names[name]

    def meet(self, name: str) -> None:
        key, before = (self, name), ledger().before
        if key not in before and not holds_tracer(held := self.names[name]):
            before[key] = held  # it may be a global, where no tracer may stay

    def note_read(self, name: str, hands_on: bool = False) -> None:
        key = self, name
        for inner in enclosing(self.depth):
            if key in inner.changed and id(self.owner) not in inner.grown:
                return
            inner.read.add(key)

    @property
    def unclear(self) -> Unclear | None:
        """Why it is not known what the container holds."""
        held = self.names[ITEMS] if self.has_changed else None
        return held if type(held) is Unclear else None

    @property
    def in_buffers(self) -> Stack | Rows | None:
        """The items as rows of buffers, if they are kept so."""
        held = self.names
        assert isinstance(held, _Held)
        return held.stack

    @property
    def stack(self) -> Stack | None:
        return found if type(found := self.in_buffers) is Stack else None


def contents(owner: Any) -> Contents:
    known = ledger().contents
    if id(owner) not in known:
        known[id(owner)] = Contents(owner)
    found = known[id(owner)]
    assert isinstance(found, Contents)
    found.depth = depth_of(owner)
    return found


def said(key: Key) -> str:
    """What a message calls a name, or the items of a container."""
    frame, name = key
    is_owned = isinstance(frame, Contents)
    return f"what a {type(frame.owner).__name__} holds" if is_owned else f"the variable {name!r}"


def changed_contents() -> Iterator[Contents]:
    """Of the containers that bodies have changed; names show the others."""
    for found in list(ledger().contents.values()):
        if isinstance(found, Contents) and found.has_changed:
            yield found


class Stacked(BaseException):
    """A list whose length a body changes: it is recorded again, with the items in buffers.

    ``kind`` is that of an item, if it is known; ``error`` is raised where there can be no buffers.
    """

    grows: ClassVar[bool] = True

    def __init__(
        self, owner: Any, error: CkadError, kind: Kind | None = None, is_needed: bool = True
    ) -> None:
        self.owner, self.error, self.kind = owner, error, kind
        self.is_needed = is_needed  # whether the body cannot be recorded without


class Whole(BaseException):
    """A body does more with a list than append to it: it is recorded again, with that known."""

    def __init__(self, target: Any, region: Region) -> None:
        self.target, self.region = target, region


def read(owner: Any) -> None:
    """Note that a container is looked into."""
    if type(owner) not in CONTAINERS:
        return
    if region() is None and id(owner) not in ledger().contents:
        return
    found = contents(owner)
    if found.unclear is not None:
        raise found.unclear.error
    if found.in_buffers is not None:
        _fill(found, found.in_buffers)
    _check_appends(owner)
    found.note_read(ITEMS)


def stack_of(owner: Any) -> Stack | None:
    """What a list holds, if that is rows of buffers; it may be read and changed as such."""
    if type(owner) not in SEQUENCES or id(owner) not in ledger().contents:
        return None
    return contents(owner).stack


def rows_of(owner: Any) -> Rows | None:
    """What a dict holds whose keys are numbers of steps, if that is rows of buffers."""
    if type(owner) is not dict or id(owner) not in ledger().contents:
        return None
    return found if type(found := contents(owner).in_buffers) is Rows else None


def holding(new: Any, stack: Stack) -> Any:
    """A new list with the items of a stack."""
    found = contents(made(new))
    found.has_changed = True
    found.names[ITEMS] = stack
    return new


def is_in_buffers(owner: Any) -> bool:
    return stack_of(owner) is not None or rows_of(owner) is not None


def holds_buffers(x: Any) -> bool:
    """Whether ``x`` is a container whose items are rows of buffers, or one such is in it."""
    if is_in_buffers(x):
        return True
    parts = x.values() if isinstance(x, dict) else x if isinstance(x, (tuple, list)) else ()
    return any(map(holds_buffers, parts))


def _fill(found: Contents, stack: Stack | Rows) -> None:
    """Give a list its items, which are as many as is known, and no body has changed."""
    if not stack.is_known:
        raise length_unknown(found)
    if any((found, ITEMS) in inner.changed for inner in enclosing(found.depth)):
        raise changes_length(type(found.owner).__name__)
    views = stack.views()
    if type(stack) is Stack and not stack.layout.identity.are_distinct:
        pair_all(views, stack.layout.identity)
    found.names[ITEMS] = entries_of(stack.keys, views) if type(stack) is Rows else tuple(views)


def read_deep(value: Any, depth: int = _DEEPEST) -> None:
    """The same for what is in it, too."""
    if type(value) in CONTAINERS:
        read(value)
    if depth and isinstance(value, (tuple, *CONTAINERS)):
        for part in value.values() if isinstance(value, dict) else value:
            if isinstance(part, (tuple, *CONTAINERS)):
                read_deep(part, depth - 1)


def change(owner: Any) -> None:
    """Note that a container is about to change."""
    if type(owner) not in CONTAINERS:
        check_changeable(owner)
        return
    read(owner)
    inner = region()
    if inner is not None:
        inner.grown.discard(id(owner))
        contents(owner).note_change(ITEMS)
        return
    opened = outermost_ledger()
    is_noted = (opened.contents.get(id(owner)), ITEMS) in opened.before
    if not is_noted and id(owner) not in opened.put_back:
        opened.put_back[id(owner)] = partial(_put_back, owner, type(owner).copy(owner))


def _put_back(owner: Any, before: Any, always: bool) -> None:
    """Give a container what it held before the recording, outside of which no tracer may stay."""
    held = tuple(owner.values()) if isinstance(owner, dict) else tuple(owner)
    is_python = not holds_tracer(held) and not any(type(x) is Elsewhere for x in held)
    if is_python and not always:
        return
    owner.clear()
    if isinstance(owner, SEQUENCES):
        owner.extend(before)
    else:
        owner.update(before)


def is_unclear(owner: Any) -> bool:
    return id(owner) in ledger().contents and contents(owner).unclear is not None


def grow(owner: Any, items: Iterable[Any]) -> None:
    """Append items to a list that may be from outside of the body; nothing else is done with it."""
    if is_unclear(owner):
        return
    inner = region()
    if inner is None or id(owner) in inner.made or is_whole(owner):
        change(owner)
        owner.extend(items)
        return
    _check_appends(owner)
    found = contents(owner)
    found.appended = user_place()
    if inner.ends_unknown and not is_unhoused(owner):
        wanted = Stacked(owner, length_unknown(found), kind_of_all(list(items)))
        if inner.depth > found.depth + 1:
            raise wanted
        inner.wanted.append(wanted)  # the body goes on, so that it shows all such lists
    inner.grown.add(id(owner))
    found.note_change(ITEMS)
    if inner.ends_unknown:
        found.names[ITEMS] = Unclear(length_unknown(found))
    else:
        owner.extend(items)


def is_unhoused(owner: Any) -> bool:
    """Whether it has been found that there can be no buffers for a list."""
    return is_in_no_buffer(id(owner))


def is_in_no_buffer(mark: Any) -> bool:
    return any(mark in inner.unhoused for inner in enclosing())


def bodies_around(owner: Any) -> list[Region]:
    """The bodies being recorded within that which has made a container, the innermost first."""
    return [*enclosing(contents(owner).depth)]


def _check_appends(owner: Any) -> None:
    for inner in enclosing():
        if id(owner) in inner.appends:
            raise Whole(owner, inner)


def is_whole(owner: Any) -> bool:
    """Whether the body recorded now, or one around it, changes more of a list than its end."""
    mark, key = id(owner), (contents(owner), ITEMS)
    return any(
        mark in inner.whole or (key in inner.changed and mark not in inner.grown)
        for inner in enclosing()
    )


def new(result: Any, given: Iterable[Any]) -> Any:
    """``result`` of a call: the containers in it that were not ``given`` are new."""
    if type(result) not in CONTAINERS and not isinstance(result, tuple):
        return result
    old: set[int] = set()
    for x in given:
        _visit(x, lambda part: old.add(id(part)))
    _visit(result, lambda part: made(part) if id(part) not in old else part)
    return result


def _visit(value: Any, note: Callable[[Any], Any], depth: int = _DEEPEST) -> None:
    if type(value) not in CONTAINERS and not isinstance(value, tuple):
        return
    note(value)
    if depth:
        for part in value.values() if isinstance(value, dict) else value:
            _visit(part, note, depth - 1)


def changes_length(kind: str) -> UnrecordableError:
    return UnrecordableError.here(
        f"the loop reads a {kind} whose length or keys its steps change, and is recorded once "
        "for all of them. Write into an array made before it: history = np.zeros((n, "
        "*x.shape)), and in the loop history[k] = x."
    )


def length_unknown(found: Contents) -> UnrecordableError:
    remedy = (
        "Make it with all its keys before: counts = {'opened': 0, 'closed': 0}."
        if isinstance(found.owner, dict)
        else "Write into an array made before, and count: times = np.zeros(n) and m = 0, then "
        "times[m] = t and m += 1."
    )
    said = f"which items a {type(found.owner).__name__} has depends on a traced condition. {remedy}"
    return UnrecordableError.here(said, found.appended)
