"""What names lead to before a loop: containers, objects and memory, by paths from frames."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ckad.place import running
from ckad.trace.memory.storage import Storage
from ckad.trace.source.memory.contents import contents
from ckad.trace.source.memory.objects import attributes_of
from ckad.trace.source.names.closures import Closure
from ckad.trace.source.names.frame import Frame, ledger
from ckad.trace.source.outside.kinds import CONTAINERS, MAPPINGS, SEQUENCES, attributes
from ckad.trace.source.values import arrays_of
from ckad.trace.values.part import Part
from ckad.trace.values.short import Short

#: A frame by its number among those in sight, and names that lead to an object from there.
NamePath = tuple[Any, ...]
#: Where memory lies: the path to what has the name, and the number of an array that it shows.
Root = tuple[NamePath, str, int]
NOTHING: Mapping[Any, Any] = MappingProxyType({})
#: The name by which a function leads to the frame in which it was made.
FRAME = "<frame>"
#: Containers and objects are looked into to this depth, containers of more items not at all, and
#: of all of them so many.
DEEPEST, MOST_ITEMS, MOST = 4, 64, 2048


def frames_of(frame: Frame) -> list[Frame]:
    """Those of the recording, and of the functions that are running, the innermost first."""
    frames: list[Frame] = [ledger()]
    for end in (frame, *reversed(running())):
        inner = end if isinstance(end, Frame) else None
        while inner is not None and inner not in frames:
            frames.append(inner)
            inner = inner.outer
    return frames


def in_sight(frame: Frame) -> Iterator[tuple[NamePath, Any, Mapping[Any, Any]]]:
    """The frames, and what their names hold of containers and of objects that were met."""
    met = ledger().objects.keys()
    seen: set[int] = set()
    left: deque[tuple[NamePath, Any]] = deque(((k,), x) for k, x in enumerate(frames_of(frame)))
    while left and len(seen) < MOST:
        path, owner = left.popleft()
        if id(owner) in seen:
            continue
        seen.add(id(owner))
        parts = parts_of(owner)
        yield path, owner, parts
        if len(path) <= DEEPEST:
            for key, x in parts.items():
                if type(x) in CONTAINERS or id(x) in met or isinstance(x, (Closure, Frame)):
                    left.append(((*path, key), x))


def parts_of(owner: Any) -> Mapping[Any, Any]:
    """What names, keys or places lead to from a frame, a container or an object."""
    if isinstance(owner, Frame):
        return dict(owner.names)
    if type(owner) is Closure:
        return {FRAME: owner.frame}
    if type(owner) in SEQUENCES:
        return dict(enumerate(owner)) if len(owner) <= MOST_ITEMS else NOTHING
    return dict(owner if type(owner) in MAPPINGS else attributes(owner))


def found_at(frames: list[Frame], path: NamePath) -> Any:
    """What lies there, None if nothing."""
    first, *keys = path
    owner: Any = frames[first] if first < len(frames) else None
    for key in keys:
        if isinstance(owner, Frame):
            owner = owner.names.get(key)
        elif type(owner) in SEQUENCES:
            owner = owner[key] if key < len(owner) <= MOST_ITEMS else None
        else:
            owner = parts_of(owner).get(key)
    return owner


def frame_of(owner: Any, name: str) -> Frame | None:
    """The frame of which a name of it is one."""
    if owner is None or isinstance(owner, Frame):
        return owner
    return contents(owner) if type(owner) in CONTAINERS else attributes_of(owner, name)


def memory_at(frames: list[Frame], path: NamePath, name: str, k: int) -> Storage | None:
    owner = found_at(frames, path)
    roots = list(memory_of(parts_of(owner).get(name)))
    return roots[k] if k < len(roots) else None


def memory_of(value: Any) -> Iterator[Storage]:
    """The memory of the arrays that a value is, or holds."""
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from memory_of(item)
    elif isinstance(value, (Part, Short)):
        yield from memory_of(value.base if isinstance(value, Part) else value.numbers)
    else:
        yield from (x.storage.root for x in arrays_of(value) if not x.scalar)
