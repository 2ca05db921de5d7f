"""What names lead to before a loop: containers, objects and memory, by paths from frames."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from types import FunctionType, MappingProxyType
from typing import Any
from weakref import ref

from ckad.place import running
from ckad.trace.memory.storage import Storage
from ckad.trace.source.memory.contents import ITEMS, contents
from ckad.trace.source.memory.objects import attributes_of
from ckad.trace.source.memory.rows.stacks import Stack
from ckad.trace.source.names.closures import Closure
from ckad.trace.source.names.frame import Apart, Frame, Outside, ledger, outermost_ledger, outside
from ckad.trace.source.outside.kinds import CONTAINERS, MAPPINGS, SEQUENCES, attributes
from ckad.trace.source.values import arrays_of
from ckad.trace.values.grown import Grown
from ckad.trace.values.part import Part
from ckad.trace.values.short import Short

#: A frame by its number among those in sight, and names that lead to an object from there.
NamePath = tuple[Any, ...]
#: Where memory lies: the path to what has the name, and the number of an array that it shows.
Root = tuple[NamePath, str, int]
NOTHING: Mapping[Any, Any] = MappingProxyType({})
#: The name by which a function leads to the frame in which it was made.
FRAME = "<frame>"
#: That by which a list leads to the buffers in which it is kept.
ROWS = "<rows>"
#: Those by which a frame leads to the names of its module, and to its variables of closures.
GLOBALS, CELL = "<globals>", "<cell>"
#: That of objects of which a name may show one or another, by their numbers.
MET = "<met>"
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


def path_to(owner: Any, frames: list[Frame]) -> NamePath | None:
    """The path to what no name shows: names of a module, a variable of a closure, a function with
    attributes, an object that is one of several; None if there is none."""
    if type(owner) is FunctionType:
        return (ref(owner),)
    if type(owner) is not Outside:
        return next(((MET, k) for k, x in enumerate(outermost_ledger().met) if x is owner), None)
    for k, frame in enumerate(frames):
        if isinstance(frame, Apart):
            continue
        function, (names, cell) = frame.function, (owner.names.owner, owner.names.cell)
        if cell is None and function.__globals__ is names:
            return k, GLOBALS
        cells = function.__closure__ or ()
        if cell is not None and cell in cells:
            return k, CELL, cells.index(cell)
    return None


def _outside_of(frame: Any, keys: NamePath) -> Any:
    """What such a path leads to from a frame."""
    if not isinstance(frame, Frame) or isinstance(frame, Apart):
        return None
    function = frame.function
    if keys[0] is GLOBALS:
        return outside(function.__globals__)
    cells = function.__closure__ or ()
    return outside(function.__globals__, cells[keys[1]]) if keys[1] < len(cells) else None


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
    if isinstance(first, ref):
        return first()
    if first is MET:
        met = outermost_ledger().met
        return met[keys[0]] if keys[0] < len(met) else None
    if keys and (keys[0] is GLOBALS or keys[0] is CELL):
        return _outside_of(frames[first], tuple(keys)) if first < len(frames) else None
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
    if owner is None:
        return None
    roots = list(rows_of(owner) if name is ROWS else memory_of(parts_of(owner).get(name)))
    return roots[k] if k < len(roots) else None


def rows_of(owner: Any) -> Iterator[Storage]:
    """The memory of the buffers in which a list is kept."""
    known = ledger().contents.get(id(owner)) if type(owner) in SEQUENCES else None
    held = known.names[ITEMS] if known is not None else None
    if type(held) is Stack:
        yield from (x.storage.root for x in held.layout.buffers)


def memory_of(value: Any) -> Iterator[Storage]:
    """The memory of the arrays that a value is, or holds."""
    if type(value) is Grown:
        return  # in a buffer, which is another one in each recording
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from memory_of(item)
    elif isinstance(value, (Part, Short)):
        yield from memory_of(value.base if isinstance(value, Part) else value.numbers)
    else:
        yield from (x.storage.root for x in arrays_of(value) if not x.scalar)
