"""Lists, dicts and dataclasses that loops and branches bind anew: which may be one in Python.

What a name is bound to in a step or after a branch is made from its parts, so a container is
another object than in Python, where other names may show it. That does not matter before one of
the two is changed; then it is an error if a name that is still read shows the other.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ckad.errors import AliasError, ConcreteValueError
from ckad.trace.dispatch import Traced
from ckad.trace.memory.storage import Storage, are_one
from ckad.trace.source.choices import Choice
from ckad.trace.source.memory.aliases import is_shown, names_showing
from ckad.trace.source.memory.contents import change
from ckad.trace.source.memory.rows.stacks import Stack
from ckad.trace.source.names.absence import OrNone
from ckad.trace.source.names.frame import MISSING, enclosing, ledger
from ckad.trace.source.names.instances import Instance, is_passing
from ckad.trace.source.outside.kinds import attributes
from ckad.trace.source.values import arrays_of
from ckad.trace.values.tracer import Number, Tracer


def containers(*values: Any, around: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The containers in values of one structure that can be changed, place by place."""
    values = tuple(x.value if type(x) is OrNone else x for x in values if x is not None)
    shown = tuple(x.origin if type(x) is Instance else x for x in values)
    if not shown or any(type(x) is not type(shown[0]) for x in shown):
        return
    first = shown[0]
    if any(first is x for x in around):
        return
    if is_container(first):
        yield shown
    parts_of = _attributes if is_passing(first) else _parts
    for parts in zip(*map(parts_of, values), strict=False):
        yield from containers(*parts, around=(*around, first))


def is_container(x: Any) -> bool:
    """Whether a value is made from its parts after a loop or branch, and can be changed."""
    made = isinstance(x, (list, dict, deque)) or dataclasses.is_dataclass(type(x))
    return made or is_passing(x)


def can_differ(x: Any) -> bool:
    """Whether equal values may be told apart, by changing one of them."""
    return is_container(x) or isinstance(x, set)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, (list, tuple, deque)):
        return value
    if isinstance(value, dict):
        return [value[key] for key in sorted(value, key=repr)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, x.name, None) for x in dataclasses.fields(value)]
    return ()


def _attributes(x: Any) -> Iterable[Any]:
    held = x.held if type(x) is Instance else attributes(x)
    return [held[name] for name in sorted(held)]


def twins_of(container: Any) -> Iterable[Any]:
    """The other objects that may be this one in Python."""
    return ledger().twins.get(id(container), (container, {}))[1].values()


def are_twins(one: Any, other: Any) -> bool:
    return one is other or id(other) in ledger().twins.get(id(one), (one, {}))[1]


def is_one(one: Any, other: Any) -> Any:
    """``one is other``; an error where a loop or branch decides which object a name shows."""
    if one is not other and type(one) is type(other):
        if (same := _are_one_row(one, other)) is not MISSING:
            return same
        shown = zip(map(_memory, arrays_of(one)), map(_memory, arrays_of(other)), strict=False)
        if any(x and y and x.root is not y.root and are_one(x, y) for x, y in shown):
            _refuse(one)
        if are_twins(one, other) or (can_differ(one) and (is_copy(one) or is_copy(other))):
            _refuse(one)
        if any(are_twins(x, other) for x in twins_of(one)):
            _refuse(one)  # both are picked from the same ones
    return one is other


def _memory(x: Tracer) -> Storage | None:
    return None if x.scalar else x.storage


def is_told_by_identity(x: Any) -> bool:
    """Whether Python calls no object equal to ``x`` but itself."""
    kind: Any = type(x)
    return bool(kind.__eq__ is object.__eq__) and (can_differ(x) or bool(twins_of(x)))


def check_key(x: Any) -> None:
    """An error where what tells ``x`` from others is its identity, and that is not known."""
    if isinstance(x, tuple):
        for item in x:
            check_key(item)
    elif is_told_by_identity(x):
        check_identity(x)


def check_identity(x: Any) -> None:
    """An error where it is not known which object in Python ``x`` is."""
    row = ledger().rows.get(id(x))
    is_read = row is not None and row.place is not None
    if is_read or type(x) is Choice or twins_of(x) or is_copy(x):
        _refuse(x)


#: Methods of containers and sets that look for what is equal to their first argument.
_FINDING = frozenset("add count discard get index pop remove setdefault".split())


def check_found(callee: Any, owner: Any, args: Sequence[Any]) -> None:
    """The same of the arguments of a call that asks which object something is."""
    if callee is id:
        check_identity(*args)
    elif callee is hash or (can_differ(owner) and callee.__name__ in _FINDING):
        check_key(tuple(args[:1]))


def is_copy(x: Any) -> bool:
    """Whether ``x`` stands for the objects that the steps of a loop begin with."""
    return any(id(x) in inner.copies for inner in enclosing())


def _refuse(x: Any) -> NoReturn:
    kind = "array" if isinstance(x, Traced) else type(x).__name__
    raise ConcreteValueError.here(
        f"which {kind} this is depends on a loop or a traced condition, and it is told from "
        "others by its identity here (is, ==, in, id, the key of a dict). Tell them by a "
        "number that they hold, or keep the number of the one that is meant."
    )


def _pair(one: Any, other: Any) -> None:
    if one is other:
        return
    for x, y in ((one, other), (other, one)):
        ledger().twins.setdefault(id(x), (x, {}))[1][id(y)] = y


def changing(container: Any) -> None:
    """Note that a container is about to change; an error if not all would see that."""
    change(container)
    check_alone(container)


def check_alone(container: Any) -> None:
    """AliasError where a container is about to change that another name may show."""
    if _is_held(container):
        raise AliasError.here(
            f"a {type(container).__name__} is changed here that is an item of a list whose "
            "length a loop or branch changes. Put a changed copy into the list."
        )
    twins = twins_of(container)
    name = next(names_showing(*twins), None) if twins else None
    if name is not None:
        raise AliasError.here(
            f"a {type(container).__name__} is changed here that may be the one which "
            f"{name!r} shows: a loop or branch has bound a name to one of several. "
            "Change a copy, or make a new one."
        )


class Row(NamedTuple):
    """A container, of which a list in buffers holds a copy that does not show what is changed."""

    container: Any
    stack: Stack | None  # None for a copy of one of several lists
    place: Number | None  # where it was read; None for one that is put there
    part: int  # which of the containers of an item
    is_out: bool = False  # whether it was taken out of the list


def noted_row(item: Any, stack: Stack) -> Any:
    """``item``, which is put into a list in buffers."""
    rows = ledger().rows
    for k, (x,) in enumerate(containers(item)):
        if _is_held(x) or is_copy(x) or twins_of(x):  # it may be one of those in the list
            stack.layout.identity.are_distinct = False
            if stack.layout.identity.are_told:
                _refuse(x)
        if not _is_held(x):
            rows[id(x)] = Row(x, stack, None, k)
    return item


def read_row(stack: Stack, place: Number, is_out: bool = False) -> Any:
    """The item at a place of a list in buffers; ``is_out`` of one that is taken out of it."""
    item = stack.read(place)
    for k, (x,) in enumerate(containers(item)):
        ledger().rows[id(x)] = Row(x, stack, place, k, is_out)
    return item


def one_of_several(x: Any) -> Any:
    """``x``, a copy of the one of several lists that is meant."""
    ledger().rows[id(x)] = Row(x, None, 0, 0, is_out=True)
    return x


def _is_held(x: Any) -> bool:
    """Whether a list in buffers holds a copy of ``x``."""
    row = ledger().rows.get(id(x))
    return row is not None and not row.is_out


def _are_one_row(one: Any, other: Any) -> Any:
    """Whether two containers, of which one was read from a list in buffers, are one in Python;
    MISSING if none was."""
    rows = ledger().rows
    a, b = rows.get(id(one)), rows.get(id(other))
    if (a is None or a.place is None) and (b is None or b.place is None):
        return MISSING
    if a is None or b is None or a.place is None or b.place is None or a.stack is not b.stack:
        _refuse(one)
    if a.stack is None or a.part != b.part or not a.stack.layout.identity.are_distinct:
        _refuse(one)
    a.stack.layout.identity.are_told = True
    return np.equal(a.place, b.place)


# --- branches ------------------------------------------------------------------------------------


class Merged(NamedTuple):
    """A container after a branch, and what it is on each side."""

    result: Any
    sides: tuple[Any, ...]


def merged_containers(result: Any, *sides: Any) -> Iterator[Merged]:
    given = [x for x in sides if x is not MISSING]
    return (Merged(found[0], found[1:]) for found in containers(result, *given))


def settle_merged(found: Sequence[Merged]) -> None:
    """Note which containers may be one object after a branch."""
    pairs = [(x.result, y) for x in found for side in x.sides for y in (side, *twins_of(side))]
    for one, other in combinations(found, 2):
        both = len(one.sides) == len(other.sides) > 1
        sides = (
            zip(one.sides, other.sides, strict=True) if both else product(one.sides, other.sides)
        )
        if any(are_twins(x, y) for x, y in sides):
            pairs.append((one.result, other.result))
    for x, y in pairs:
        _pair(x, y)


def settle_picked(results: Sequence[Any], items: Sequence[Any]) -> None:
    """Note that the containers in each of the ``results`` may be those of any of the ``items``.

    They are no twins of each other: what is picked twice is no order, nor a single item.
    """
    pairs = [
        (found, y)
        for result in results
        for found, *sides in containers(result, *items)
        for side in sides
        for y in (side, *filter(is_shown, twins_of(side)))
    ]
    for x, y in pairs:
        _pair(x, y)


# --- loops ---------------------------------------------------------------------------------------


class Copy(NamedTuple):
    """A container as a step starts with it: what it is at first, and after each step."""

    entered: Any
    first: Any
    end: Any


#: The sources of containers, all by their identity, as long as nothing is paired.
_Known = dict[int, frozenset[int]]


class Copies:
    """The containers that a loop carries, as its body was recorded."""

    def __init__(self, found: Iterable[Copy]) -> None:
        self._found = {id(copy.entered): copy for copy in found}

    def sources(self, container: Any) -> list[Any]:
        """Objects that are none of a step's start, which a container may be at some step."""
        return self._met(container)[0]

    def objects(self, container: Any) -> list[Any]:
        """The same, and those that steps start with in their place."""
        found, entered = self._met(container)
        return found + entered

    def _met(self, container: Any) -> tuple[list[Any], list[Any]]:
        found: list[Any] = []
        entered: dict[int, Any] = {}
        pending = [container]
        while pending:
            x = pending.pop()
            copy = self._found.get(id(x))
            if copy is None:
                twins = [*twins_of(x)]
                found += [x, *twins]
                pending += [y for y in twins if id(y) in self._found]  # a branch may have given it
            elif id(x) not in entered:
                entered[id(x)] = x
                pending += [copy.first, copy.end]
        return found, [*entered.values()]

    def after(self, container: Any, count: int) -> Any:
        """The object that the last of ``count`` steps ends with; MISSING for one that it made."""
        path = [container]
        while len(path) <= count and (copy := self._found.get(id(path[-1]))) is not None:
            if len(path) == count:
                return copy.first
            if any(copy.end is x for x in path):
                at = next(k for k, x in enumerate(path) if copy.end is x)
                last = at + (count - 1 - at) % (len(path) - at)
                return self._found[id(path[last])].first
            path.append(copy.end)
        return MISSING

    def changed(self, objects: Iterable[Any]) -> Any:
        """One of ``objects``, which a body changes, that a step may start with as another."""
        carried = {id(x) for copy in self._found.values() for x in self.sources(copy.entered)}
        carried |= {id(c.entered) for c in self._found.values() if _is_held(c.end)}
        return next((x for x in objects if id(x) in carried), None)

    def is_met(self, copy: Copy) -> bool:
        """Whether a step may start with the same container in two places."""
        others = [x.entered for x in self._found.values() if x is not copy]
        known: _Known = {}
        return any(self._are_one(copy.entered, x, set(), known) for x in others)

    def settle(self, shown: Sequence[Merged]) -> None:
        """Note which of the containers after the loop may be one object, or one from before it.

        The sides are what a container is after the last step, and, if no step may be run, before.
        """
        pairs = [(x.result, y) for x in shown for side in x.sides for y in self.sources(side)]
        known: _Known = {}
        for one, other in combinations(shown, 2):
            sides = zip(one.sides, other.sides, strict=False)
            if any(self._are_one(x, y, set(), known) for x, y in sides):
                pairs.append((one.result, other.result))
        for x, y in pairs:
            _pair(x, y)

    def _are_one(self, one: Any, other: Any, seen: set[frozenset[int]], known: _Known) -> bool:
        """Whether two containers of a step may be one object; ``known`` are sources met before."""
        if one is other:
            return True
        key = frozenset((id(one), id(other)))
        a, b = self._found.get(id(one)), self._found.get(id(other))
        if key in seen:
            return False
        if a is None or b is None:
            return not self._sources_of(one, known).isdisjoint(self._sources_of(other, known))
        seen.add(key)
        return are_twins(a.first, b.first) or self._are_one(a.end, b.end, seen, known)

    def _sources_of(self, container: Any, known: _Known) -> frozenset[int]:
        """Their identities, once for all that ask."""
        if id(container) not in known:
            known[id(container)] = frozenset(map(id, self.sources(container)))
        return known[id(container)]
