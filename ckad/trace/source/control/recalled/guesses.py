"""What loops were found to carry when their function was recorded before, as a guess.

A body is recorded until it is known what it carries. When its function is recorded again, for
arrays of another shape or with another option, that is most likely the same, and one round is
enough. What a guess has too much is noticed, and the loop begins as if nothing were known.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ckad import trees
from ckad.errors import CkadError
from ckad.tape.control import WHILE
from ckad.tape.types import DType, Type
from ckad.trace.memory.context import Trace, current
from ckad.trace.memory.layout import Layout, layout
from ckad.trace.source.control.body import Body
from ckad.trace.source.control.carried.findings import Findings
from ckad.trace.source.control.carried.kinds import Carried
from ckad.trace.source.control.flow import Flow
from ckad.trace.source.control.recalled import buffers, sight
from ckad.trace.source.control.recalled.buffers import Buffers
from ckad.trace.source.control.recalled.sight import NamePath, Root
from ckad.trace.source.control.recalled.widened import are_floats
from ckad.trace.source.memory.contents import Contents
from ckad.trace.source.memory.objects import Attributes
from ckad.trace.source.memory.sharing import obstacle, outside_of
from ckad.trace.source.names.frame import MISSING, Frame, Key
from ckad.trace.source.values import Slot, flatten, slot_of
from ckad.trace.values.tracer import Tracer

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
#: Loops that are remembered.
KEPT = 2048
FLOAT = Type(DType.F64, ())


class Start(NamedTuple):
    """The kind of a leaf that a loop carries, and what it was at first."""

    slot: Slot | None
    first: object
    widened: bool = False  # an integer that becomes a float


class Met(NamedTuple):
    """What an array that a loop carries may be in its steps, by what it starts as."""

    place: tuple[int, int]  # which name, which leaf
    first: tuple[Layout, str | None]
    found: tuple[Layout, str | None]
    roots: tuple[Root, ...]
    others: tuple[tuple[int, int], ...]


class Guess(NamedTuple):
    """What a loop carried, wrote into and appended to, by the names that showed it before.

    Of what starts as another type, and of memory that no name shows, only the order is known.
    """

    carried: tuple[tuple[NamePath, str, trees.Treedef | None, tuple[Start, ...] | None], ...]
    written: tuple[Root | None, ...]
    lists: tuple[NamePath, ...]
    signals: bool
    met: tuple[Met, ...]
    whole: tuple[NamePath, ...]
    buffers: tuple[tuple[NamePath, Buffers], ...]
    needs_more: bool  # whether there were other buffers


class Order(NamedTuple):
    """In which order a loop carries names and arrays; None for what is found meanwhile."""

    carried: list[Key]
    written: list[int | None]
    buffers: list[tuple[Any, Buffers]]  # lists and what is recalled of their buffers
    needs_more: bool  # whether other buffers have to be found
    widened: dict[Key, list[int]]  # names, and which of their leaves are integers at first
    guess: Guess

    def enter(self, found: Findings, around: Trace) -> None:
        """Carry what is in buffers, which are built."""
        for owner, known in self.buffers:
            buffers.carry(found, owner, known, around)
        if self.buffers:
            self.restore(found)

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
#: Errors of programs that cannot be recorded without guesses either.
_refused: OrderedDict[str, None] = OrderedDict()


class _Attempt(threading.local):
    """What one recording does with guesses."""

    allowed = True
    used = False


_attempt = _Attempt()


def clear() -> None:
    """Forget all loops."""
    _guesses.clear()
    _refused.clear()


def attempted(record: Callable[[], T]) -> T:
    """What ``record`` gives; an error is one only if it comes without guesses too."""
    _attempt.allowed, _attempt.used = True, False
    try:
        return record()
    except CkadError as error:
        if not _attempt.used or str(error) in _refused:
            raise
    _attempt.allowed = False
    try:
        return record()
    except CkadError as error:
        _refused[str(error)] = None
        if len(_refused) > KEPT:
            _refused.popitem(last=False)
        raise
    finally:
        _attempt.allowed = True


# --- after a loop --------------------------------------------------------------------------------


def remember(place: Hashable, frame: Frame, body: Body, known: Guess | None) -> None:
    """Note what a loop was found to do, if names from before it say that: what was ``known``."""
    here, node = current().known_loops, body.loop.steps.node
    is_new = place not in _guesses or _guesses[place] is not None
    if not is_new and here.get(node, MISSING) is None:
        return
    guess = known or (_described(frame, body) if is_least(body) else None)
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


def holds(body: Body, order: Order) -> bool:
    """Whether all that was recalled of a loop would have been found."""
    if not is_least(body) or (order.buffers and not buffers.are_used(body)):
        return False
    ends: dict[int, int] = {}
    for key, leaves in order.widened.items():
        first, entered = body.ends[key].first, [s is not None for s in body.loop.carried[key].slots]
        for k in leaves:
            at = sum(entered[:k])
            ends[body.inputs[key][at].storage.row] = body.outputs[first + at]
    return are_floats(body.trace.builder, ends)


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


def _described(frame: Frame, body: Body) -> Guess | None:
    found = body.loop
    paths: dict[int, NamePath] = {}
    roots: dict[int, Root] = {}
    is_memory_met = found.written or any(origin.roots for origin in found.origins.values())
    for path, owner, names in sight.in_sight(frame):
        paths.setdefault(id(owner), path)
        for name, value in names.items() if is_memory_met else ():
            for k, root in enumerate(sight.memory_of(value)):
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
        carried.append((place, name, *((kept.tree, known) if is_known else (None, None))))
    written = tuple(map(roots.get, found.written))
    lists = tuple(paths[key] for key in found.lists)
    housed = buffers.described(body)
    if not (found.whole.keys() <= paths.keys() and all(id(x) in paths for x, _ in housed)):
        housed = []
    return Guess(
        tuple(carried),
        written,
        lists,
        bool(found.signals),
        tuple(_met(found, roots)),
        tuple(paths[key] for key in found.whole) if housed else (),
        tuple((paths[id(x)], known) for x, known in housed),
        bool(found.housing.houses) and not housed,
    )


def _met(found: Findings, known: Mapping[int, Root]) -> Iterator[Met]:
    """The arrays that may be more in later steps than in the first."""
    at = {key: k for k, key in enumerate(found.carried)}
    for (key, k), origin in found.origins.items():
        leaves = found.carried[key].leaves
        if k >= len(leaves):
            continue
        first, now = _lies(leaves[k]), (origin.layout, origin.shared)
        own = {id(x) for x in outside_of(leaves[k], current())}
        roots = [known[x] for x in origin.roots if x not in own and x in known]
        others = tuple((at[other], n) for other, n in origin.others)
        if roots or others or first != now:
            yield Met((at[key], k), first, now, tuple(roots), others)


def _lies(x: Any) -> tuple[Layout, str | None]:
    return layout(x), obstacle(x)


def _start(slot: Slot | None, leaf: Any) -> Start | None:
    """None for what becomes an array of another type: the next time it need not."""
    own = slot_of(leaf)
    if slot is None:
        return Start(None, type(leaf))
    if type(leaf) is int and slot.type == FLOAT:
        return Start(slot, _first(leaf), widened=True)
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
    if not _attempt.allowed:
        return None
    guess = (_guesses.get(place) if is_first else None) or around.known_loops.get(found.steps.node)
    if guess is None:
        return None
    frames = sight.frames_of(frame)
    carried: dict[Key, Carried | None] = {}
    widened: dict[Key, list[int]] = {}
    for path, name, tree, starts in guess.carried:
        owner = sight.frame_of(sight.found_at(frames, path), name)
        if owner is None:
            return None
        first = owner.names.get(name, MISSING)
        if tree is None or starts is None:
            carried[owner, name] = None
            continue
        kept = carried[owner, name] = _fitting(first, tree, starts, around)
        if kept is None:
            return None
        if leaves := [k for k, start in enumerate(starts) if start.widened]:
            widened[owner, name] = leaves
    written = [None if path is None else sight.memory_at(frames, *path) for path in guess.written]
    lists = [sight.found_at(frames, path) for path in guess.lists]
    for known, root in zip(guess.written, written, strict=True):
        if known is not None and (root is None or not around.may_write(root)):
            return None
    if any(type(x) is not list for x in lists):
        return None
    whole = [sight.found_at(frames, path) for path in guess.whole]
    housed = [(sight.found_at(frames, path), known) for path, known in guess.buffers]
    if not all(type(x) in (list, deque) for x in (*whole, *(owner for owner, _ in housed))):
        return None
    if not all(buffers.keep(found, owner, known) for owner, known in housed):
        found.housing.houses.clear()
        return None
    for key, kept in carried.items():
        if kept is not None:
            found.carry(key, kept, around)
    _meet(found, list(carried), guess.met, frames)
    found.written.update((id(x), x) for x in written if x is not None)
    found.lists.update((id(x), x) for x in lists)
    found.whole.update((id(x), x) for x in whole)
    if guess.signals:
        found.signals, found.guard = True, WHILE
    _attempt.used = True
    places = [None if x is None else id(x) for x in written]
    return Order(list(carried), places, housed, guess.needs_more, widened, guess)


def _meet(found: Findings, keys: list[Key], met: Sequence[Met], frames: list[Frame]) -> None:
    """Let arrays start as what steps may find them to be."""
    for (at, k), first, (lies, hindered), roots, others in met:
        key = keys[at]
        origin = found.origins.get((key, k))
        if origin is None or _lies(found.carried[key].leaves[k]) != first:
            continue
        origin.layout, origin.shared = lies, hindered
        origin.others |= {(keys[n], m) for n, m in others if (keys[n], m) in found.origins}
        for root in (sight.memory_at(frames, *path) for path in roots):
            if root is not None and current().is_inside(root.trace):
                origin.roots[id(root)] = root


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
    for (slot, start, is_widened), leaf in zip(starts, leaves, strict=True):
        own = slot_of(leaf)
        if slot is None or own is None:
            if slot is not None or start is not type(leaf):
                return None
            slots.append(None)
            continue
        if start != _first(leaf) or not (is_widened or slot.type.dtype == own.type.dtype):
            return None
        if slot.weak != own.weak and _has_single(around):
            return None
        slots.append(slot if is_widened else slot._replace(type=own.type))
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
