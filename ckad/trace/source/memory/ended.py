"""Lists, dicts and dataclasses as one side of a branch leaves them.

When a side has been recorded, what it changed is put back for the other one. Where a name is bound
to a container that a side has changed, the branch merges what that held at the end of the side.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable
from typing import Any

from ckad import trees
from ckad.trace.source.memory.contents import contents, length_unknown, read
from ckad.trace.source.memory.rows.stacks import Stack
from ckad.trace.source.memory.twins import can_differ
from ckad.trace.source.names.frame import Unclear
from ckad.trace.source.names.instances import copied, is_passing
from ckad.trace.source.outside.kinds import CONTAINERS, MAPPINGS, SEQUENCES, attributes


class Ended:
    """What some containers hold now."""

    def __init__(self, owners: Iterable[Any]) -> None:
        self._held = {id(x): (x, _held(x)) for x in owners if can_differ(x)}
        self._copies: dict[int, Any] = {}
        self._originals: dict[int, tuple[Any, Any]] = {}

    def of(self, value: Any) -> Any:
        """``value``, with copies of these containers where it holds one."""
        return self._of(value) if self._held else value

    def has(self, x: Any) -> bool:
        return id(x) in self._held

    def original(self, x: Any) -> Any:
        """What a copy is one of; what is none, itself."""
        return self._originals.get(id(x), (x, x))[1]

    def _of(self, value: Any) -> Any:
        if id(value) in self._copies:
            return self._copies[id(value)]
        now: Any = self._held.get(id(value), (value, value))[1]
        if type(now) is Unclear:
            raise now.error
        is_changed = now is not value
        if is_changed and isinstance(now, Stack):
            now = type(value)(now.views())
        if is_changed:
            self._note(value, now)
        names, parts = _parts(now)
        ended = [self._of(x) for x in parts]
        if all(x is y for x, y in zip(parts, ended, strict=True)):
            return now
        if isinstance(value, tuple):
            return trees.with_items(value, ended)
        if not is_changed:
            self._note(value, now := _copied(value))
        for name, part in zip(names, ended, strict=True):
            if type(now) in CONTAINERS:
                now[name] = part
            else:
                object.__setattr__(now, name, part)
        return now

    def _note(self, value: Any, now: Any) -> None:
        self._copies[id(value)] = now
        self._originals[id(now)] = now, value


def _held(owner: Any) -> Any:
    """A copy of a container as it is now; why there is none."""
    if type(owner) in CONTAINERS:
        found = contents(owner)
        if found.unclear is not None:
            return found.unclear
        if found.in_buffers is not None:
            if not found.in_buffers.is_known:
                return Unclear(length_unknown(found))
            if isinstance(found.in_buffers, Stack):
                return found.in_buffers
            read(owner)
    return _copied(owner)


def _copied(owner: Any) -> Any:
    if is_passing(owner):
        return copied(owner)
    if not dataclasses.is_dataclass(owner):
        return type(owner).copy(owner)
    return copy.copy(owner)


def _parts(x: Any) -> tuple[Iterable[Any], list[Any]]:
    """What a container or a tuple holds, and the keys or names of it."""
    if isinstance(x, MAPPINGS):
        return x.keys(), list(x.values())
    if isinstance(x, (tuple, *SEQUENCES)):
        return range(len(x)), trees.items_of(x) if isinstance(x, tuple) else list(x)
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        names = [field.name for field in dataclasses.fields(x) if field.name in vars(x)]
        return names, [vars(x)[name] for name in names]
    if is_passing(x):
        return attributes(x).keys(), list(attributes(x).values())
    return (), []
