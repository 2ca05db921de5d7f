"""Which names see the memory of an array: what decides whether a value may stand for it."""

from __future__ import annotations

import ast
import functools
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any

from ckad.place import running
from ckad.trace.memory.storage import Storage
from ckad.trace.source.memory.contents import Contents, changed_contents
from ckad.trace.source.names.absence import OrNone
from ckad.trace.source.names.closures import Closure
from ckad.trace.source.names.frame import Frame, Key, ledger
from ckad.trace.source.outside.kinds import attributes
from ckad.trace.source.values import arrays_of
from ckad.trace.values.array import Array
from ckad.trace.values.complex import ComplexTracer
from ckad.trace.values.fields import Fields
from ckad.trace.values.part import Part
from ckad.trace.values.short import Short
from ckad.trace.values.tracer import Tracer

#: Containers in containers are looked into to this depth.
DEEPEST = 4
#: Classes of what holds nothing else.
_WITHOUT_PARTS = frozenset({int, float, bool, str, type(None)})


def live_names(root: Storage, but: Collection[Key], loop: ast.stmt | None = None) -> Iterator[Key]:
    """The names, other than ``but``, that show ``root`` and may be read later, or in ``loop``."""
    if root.watched:
        yield next(_frames()), "an argument to be returned"
    known = {id(frame.owner) for frame, _ in but if isinstance(frame, Contents)}
    for frame in _frames():
        for name, value in frame.names.items():
            if (frame, name) in but or not _shows(value, root, known):
                continue
            if frame.is_read_later(name) or (loop is not None and frame.is_read_in(name, loop)):
                yield frame, name


def shows_elsewhere(root: Storage, owner: Any, place: Any) -> str | None:
    """What shows ``root`` beside one place of a container or object, and may be read later."""
    but = {id(owner)}
    for frame in _frames():
        if getattr(frame, "owner", None) is not owner:
            for name, value in frame.names.items():
                if _shows(value, root, but) and frame.is_read_later(name):
                    return name
    held = attributes(owner) if not isinstance(owner, Iterable) else owner
    items = held.items() if isinstance(held, Mapping) else enumerate(_parts(held))
    others = (key for key, value in items if key != place and _shows(value, root))
    return next((repr(key) for key in others), None)


def names_showing(*containers: Any) -> Iterator[str]:
    """The names that show one of these very objects and may be read later."""
    found = _Search(containers)
    for frame in _frames():
        for name, value in frame.names.items():
            if frame.is_read_later(name) and found.is_held_by(value):
                yield name


def holders(found: Sequence[Any], key: Key, loop: ast.For | ast.While) -> Iterator[str]:
    """The names, other than ``key``, that show one of these very objects and may be read later, or
    by the next step of ``loop``."""
    search = _Search(found, getattr(key[0], "owner", None))
    for frame in _frames():
        for name, value in frame.names.items():
            is_live = frame.is_read_later(name) or frame.is_read_by_next(name, loop)
            if (frame, name) != key and is_live and search.is_held_by(value):
                yield name


def is_shown_after(container: Any, ends: Mapping[Key, Any]) -> bool:
    """Whether a name that may be read later shows a very object once ``ends`` are bound."""
    now = {(frame, name): x for frame in _frames() for name, x in frame.names.items()} | {**ends}
    found = _Search((container,))
    return any(
        frame.is_read_later(name) and found.is_held_by(x) for (frame, name), x in now.items()
    )


def is_shown(container: Any) -> bool:
    """Whether a name shows a very object."""
    found = _Search((container,))
    return any(found.is_held_by(x) for frame in _frames() for x in frame.names.values())


class _Search:
    """A look for some objects in values and in what these hold, in each of them once."""

    def __init__(self, containers: Iterable[Any], but: Any = None) -> None:
        self.wanted = {id(x) for x in containers}
        self._kept: dict[int, Any] = {}  # whose places in memory are not given to others meanwhile
        # how deep was looked into what does not hold them
        self._seen: dict[int, int] = {id(but): DEEPEST + 1}

    def is_held_by(self, value: Any, depth: int = DEEPEST) -> bool:
        if id(value) in self.wanted:
            return True
        if type(value) in _WITHOUT_PARTS or depth <= self._seen.get(id(value), 0):
            return False
        if isinstance(value, Array):
            return False
        self._seen[id(value)], self._kept[id(value)] = depth, value
        return any(self.is_held_by(part, depth - 1) for part in _parts(value))


def _frames() -> Iterator[Frame]:
    seen: set[int] = set()
    yield ledger()
    yield from ledger().objects.values()
    yield from changed_contents()
    for function in running():
        frame = function if isinstance(function, Frame) else None
        while frame is not None and id(frame) not in seen:
            seen.add(id(frame))
            yield frame
            frame = frame.outer


def _shows(value: Any, root: Storage, but: Collection[int] = (), depth: int = DEEPEST) -> bool:
    if type(value) in (Tracer, ComplexTracer, Fields, OrNone):
        return any(not x.scalar and x.storage.root is root for x in arrays_of(value))
    if isinstance(value, (Part, Short)):
        return _shows(value.base if isinstance(value, Part) else value.numbers, root)
    parts = _parts(value) if depth and id(value) not in but else ()
    return any(_shows(part, root, but, depth - 1) for part in parts)


def _parts(value: Any) -> Iterable[Any]:
    """What a container, an object or a function holds."""
    if isinstance(value, (tuple, list, set, frozenset, deque)):
        return value
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, Closure):
        return (*value.defaults, *value.named_defaults.values(), *vars(value).values())
    if isinstance(value, functools.partial):
        return (*value.args, *value.keywords.values())
    if isinstance(value, (MethodType, BuiltinMethodType)):
        return (value.__self__,)
    if isinstance(value, (type, ModuleType, FunctionType)):
        return ()
    return attributes(value).values()


def names_of(root: Storage) -> list[str]:
    """Names that show ``root``, one per function."""
    found = ((name, value) for frame in _frames() for name, value in frame.names.items())
    return list(dict.fromkeys(name for name, value in found if _shows(value, root)))[:1]
