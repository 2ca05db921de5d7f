"""What loops were found to carry when their function was recorded before, as a guess.

A body is recorded until it is known what it carries. When its function is recorded again, for
arrays of another shape or with another option, that is most likely the same, and one round is
enough. What a guess has too much is noticed, and the loop begins as if nothing were known.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ckad import trees
from ckad.errors import CkadError
from ckad.place import running
from ckad.tape.control import WHILE
from ckad.tape.types import DType
from ckad.trace.memory.context import Trace, current
from ckad.trace.memory.storage import Storage
from ckad.trace.source.control.body import Body
from ckad.trace.source.control.carried.findings import Findings
from ckad.trace.source.control.carried.kinds import Carried
from ckad.trace.source.control.flow import Flow
from ckad.trace.source.memory.contents import Contents, contents
from ckad.trace.source.memory.objects import Attributes, attributes_of
from ckad.trace.source.names.frame import MISSING, Frame, Key, ledger
from ckad.trace.source.outside.kinds import CONTAINERS, MAPPINGS, SEQUENCES, attributes
from ckad.trace.source.values import Slot, arrays_of, flatten, slot_of
from ckad.trace.values.part import Part
from ckad.trace.values.short import Short
from ckad.trace.values.tracer import Tracer

K = TypeVar("K")
V = TypeVar("V")
#: Loops that are remembered.
KEPT = 2048
#: A frame by its number among those in sight, and names that lead to an object from there.
Path = tuple[Any, ...]
NOTHING: Mapping[Any, Any] = MappingProxyType({})
#: Containers and objects are looked into to this depth, containers of more items not at all.
DEEPEST, MOST_ITEMS = 4, 16


class Start(NamedTuple):
    """The kind of a leaf that a loop carries, and what it was at first."""

    slot: Slot | None
    first: object


class Guess(NamedTuple):
    """What a loop carried, wrote into and appended to, by the names that showed it before.

    Of what starts as another type, and of memory that no name shows, only the order is known.
    """

    carried: tuple[tuple[Path, str, trees.Treedef, tuple[Start, ...] | None], ...]
    written: tuple[tuple[Path, str, int] | None, ...]
    lists: tuple[Path, ...]
    signals: bool


class Order(NamedTuple):
    """In which order a loop carries names and arrays; None for what is found meanwhile."""

    carried: list[Key]
    written: list[int | None]

    def restore(self, found: Findings) -> None:
        """Bring what is found into this order."""
        at = {key: k for k, key in enumerate(self.carried)}
        found.carried = _sorted(found.carried, [at.get(key, len(at)) for key in found.carried])
        known = {key: k for k, key in enumerate(self.written) if key is not None}
        free = iter([k for k, key in enumerate(self.written) if key is None])
        last = len(self.written)
        places = [known[key] if key in known else next(free, last) for key in found.written]
        found.written = _sorted(found.written, places)


def _sorted(found: dict[K, V], places: list[int]) -> dict[K, V]:
    return dict(
        item
        for _, item in sorted(zip(places, found.items(), strict=True), key=lambda pair: pair[0])
    )


_guesses: OrderedDict[Hashable, Guess | None] = OrderedDict()


def clear() -> None:
    """Forget all loops."""
    _guesses.clear()


# --- after a loop --------------------------------------------------------------------------------


def remember(place: Hashable, frame: Frame, body: Body) -> None:
    """Note what a loop was found to do, if names from before it say that."""
    here, node = current().known_loops, body.loop.steps.node
    is_new = place not in _guesses or _guesses[place] is not None
    if not is_new and here.get(node, MISSING) is None:
        return
    guess = _described(frame, body.loop) if is_least(body) else None
    if here.get(node, MISSING) is not None:
        here[node] = guess
    if not is_new:
        return
    if guess is not None:
        _keep(place, guess)
    else:
        _guesses.pop(place, None)


def fail(place: Hashable, error: BaseException) -> None:
    """Note that a loop could not be recorded: what is found when it can be says little."""
    if isinstance(error, CkadError):
        _keep(place, None)


def _keep(place: Hashable, guess: Guess | None) -> None:
    _guesses[place] = guess
    if len(_guesses) > KEPT:
        _guesses.popitem(last=False)


def is_least(body: Body) -> bool:
    """Whether a loop carries, appends to and ends on nothing that its step does not need."""
    if body.loop.signals and not body.kinds & {Flow.BREAK, Flow.RETURN, Flow.RAISE}:
        return False
    read = {row for x in body.trace.builder.rows for row in x.operands}
    for key, entered in body.inputs.items():
        first = body.ends[key].first
        own = range(first, first + len(entered))
        read_elsewhere = {row for k, row in enumerate(body.outputs) if k not in own}
        rows = {x.storage.row for x in entered if not x.storage.writes}
        if len(rows) == len(entered) > 0 and not rows & (read | read_elsewhere):
            return False
    return all(entries for _, entries in body.region.appends.values())


def _described(frame: Frame, found: Findings) -> Guess | None:
    paths: dict[int, Path] = {}
    roots: dict[int, tuple[Path, str, int]] = {}
    for path, owner, names in _in_sight(frame):
        paths.setdefault(id(owner), path)
        for name, value in names.items() if found.written else ():
            for k, root in enumerate(_roots(value)):
                roots.setdefault(id(root), (path, name, k))
    if not found.lists.keys() <= paths.keys():
        return None
    carried = []
    for (owner, name), kept in found.carried.items():
        place = paths.get(id(owner.owner if isinstance(owner, (Attributes, Contents)) else owner))
        if place is None:
            return None
        starts = [_start(*leaf) for leaf in zip(kept.slots, kept.leaves, strict=True)]
        known = tuple(x for x in starts if x is not None)
        is_known = len(known) == len(starts) and owner.names.get(name, MISSING) is not MISSING
        is_known = is_known and id(getattr(owner, "owner", None)) not in found.housing.houses
        carried.append((place, name, kept.tree, known if is_known else None))
    written = tuple(map(roots.get, found.written))
    lists = tuple(paths[key] for key in found.lists)
    return Guess(tuple(carried), written, lists, bool(found.signals))


def _start(slot: Slot | None, leaf: Any) -> Start | None:
    """None for what becomes an array of another type: the next time it need not."""
    own = slot_of(leaf)
    if slot is None:
        return Start(None, type(leaf))
    if own is None or slot.type != own.type:
        return None
    return Start(slot._replace(type=own.type.with_shape(())), _first(leaf))


def _first(leaf: Any) -> object:
    if np.ndim(leaf) or isinstance(leaf, (Tracer, float)):
        return type(leaf), np.ndim(leaf)
    return type(leaf), leaf


# --- before it is recorded again -----------------------------------------------------------------


def recall(
    place: Hashable, frame: Frame, found: Findings, around: Trace, is_first: bool
) -> Order | None:
    """Let a loop begin with what it was found to do; None if nothing is known of it.

    The first time in a recording that is what was found in the one before it, else what was
    found of the same source in this one: when a loop around it was recorded, or at another call.
    """
    guess = _guesses.get(place) if is_first else None
    guess = guess or around.known_loops.get(found.steps.node)
    if guess is None:
        return None
    frames = _frames(frame)
    carried: dict[Key, Carried | None] = {}
    for path, name, tree, starts in guess.carried:
        owner = _frame_of(_found(frames, path), name)
        if owner is None:
            return None
        first = owner.names.get(name, MISSING)
        kept = None if starts is None else _fitting(first, tree, starts, around)
        carried[owner, name] = kept
        if starts is not None and kept is None:
            return None
    written = [None if path is None else _root(frames, *path) for path in guess.written]
    lists = [_found(frames, path) for path in guess.lists]
    for known, root in zip(guess.written, written, strict=True):
        if known is not None and (root is None or not around.may_write(root)):
            return None
    if any(type(x) is not list for x in lists):
        return None
    for key, kept in carried.items():
        if kept is not None:
            found.carry(key, kept, around)
    found.written.update((id(x), x) for x in written if x is not None)
    found.lists.update((id(x), x) for x in lists)
    if guess.signals:
        found.signals, found.guard = True, WHILE
    return Order(list(carried), [None if x is None else id(x) for x in written])


def _fitting(
    first: Any, tree: trees.Treedef, starts: tuple[Start, ...], around: Trace
) -> Carried | None:
    """What a name is carried as, if it starts with what it started with."""
    if first is MISSING:
        return None
    leaves, found = flatten(first)
    if found != tree:
        return None
    slots: list[Slot | None] = []
    for (slot, start), leaf in zip(starts, leaves, strict=True):
        own = slot_of(leaf)
        if slot is None or own is None:
            if slot is not None or start is not type(leaf):
                return None
            slots.append(None)
            continue
        if start != _first(leaf) or slot.type.dtype != own.type.dtype:
            return None
        if slot.weak != own.weak and _has_single(around):
            return None
        slots.append(slot._replace(type=own.type))
    return Carried(tree, slots, leaves)


def _has_single(trace: Trace | None) -> bool:
    """Whether there is float32, of which Python's numbers and NumPy's make different types."""
    while trace is not None:
        b = trace.builder
        if any(b.type(row).dtype == DType.F32 for row in b.inputs):
            return True
        if any(x.dtype == np.float32 for x in b.constants):
            return True
        trace = trace.parent
    return False


# --- what names lead to --------------------------------------------------------------------------


def _frames(frame: Frame) -> list[Frame]:
    """Those of the recording, and of the functions that are running, the innermost first."""
    frames: list[Frame] = [ledger()]
    for end in (frame, *reversed(running())):
        inner = end if isinstance(end, Frame) else None
        while inner is not None and inner not in frames:
            frames.append(inner)
            inner = inner.outer
    return frames


def _in_sight(frame: Frame) -> Iterator[tuple[Path, Any, Mapping[Any, Any]]]:
    """The frames, and what their names hold of containers and of objects that were met."""
    met, seen = ledger().objects.keys(), set()
    left: deque[tuple[Path, Any]] = deque(((k,), x) for k, x in enumerate(_frames(frame)))
    while left:
        path, owner = left.popleft()
        if id(owner) in seen:
            continue
        seen.add(id(owner))
        parts = _parts(owner)
        yield path, owner, parts
        if len(path) <= DEEPEST:
            for key, x in parts.items():
                if type(x) in CONTAINERS or id(x) in met:
                    left.append(((*path, key), x))


def _parts(owner: Any) -> Mapping[Any, Any]:
    """What names, keys or places lead to from a frame, a container or an object."""
    if isinstance(owner, Frame):
        return dict(owner.names)
    if type(owner) in SEQUENCES:
        return dict(enumerate(owner)) if len(owner) <= MOST_ITEMS else NOTHING
    return dict(owner if type(owner) in MAPPINGS else attributes(owner))


def _found(frames: list[Frame], path: Path) -> Any:
    """What lies there, None if nothing."""
    first, *keys = path
    owner: Any = frames[first] if first < len(frames) else None
    for key in keys:
        owner = _parts(owner).get(key)
    return owner


def _frame_of(owner: Any, name: str) -> Frame | None:
    """The frame of which a name of it is one."""
    if owner is None or isinstance(owner, Frame):
        return owner
    return contents(owner) if type(owner) in CONTAINERS else attributes_of(owner, name)


def _root(frames: list[Frame], path: Path, name: str, k: int) -> Storage | None:
    owner = _found(frames, path)
    roots = list(_roots(_parts(owner).get(name)))
    return roots[k] if k < len(roots) else None


def _roots(value: Any) -> Iterator[Storage]:
    """The memory of the arrays that a value is, or holds."""
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _roots(item)
    elif isinstance(value, (Part, Short)):
        yield from _roots(value.base if isinstance(value, Part) else value.numbers)
    else:
        yield from (x.storage.root for x in arrays_of(value) if not x.scalar)
