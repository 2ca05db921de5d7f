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

from ckad import locks
from ckad.errors import CkadError
from ckad.tape.control import UNGUARDED, WHILE
from ckad.trace.memory.context import Trace, WrittenOut, current
from ckad.trace.memory.layout import Layout, layout
from ckad.trace.source.control.body import Body
from ckad.trace.source.control.carried.findings import Findings
from ckad.trace.source.control.carried.kinds import Carried
from ckad.trace.source.control.flow import Flow
from ckad.trace.source.control.recalled import buffers, failures, sight
from ckad.trace.source.control.recalled.buffers import Buffers, Lengthened
from ckad.trace.source.control.recalled.sight import NamePath, Root
from ckad.trace.source.control.recalled.starts import Form, Start, fitting, form_of, start_of
from ckad.trace.source.control.recalled.widened import are_floats
from ckad.trace.source.memory.contents import Contents
from ckad.trace.source.memory.objects import Attributes
from ckad.trace.source.memory.sharing import obstacle, outside_of
from ckad.trace.source.names.frame import MISSING, Frame, Key
from ckad.trace.source.outside import free
from ckad.trace.source.outside.kinds import CONTAINERS
from ckad.trace.source.values import slot_of

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
#: Loops that are remembered.
KEPT = 2048


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

    carried: tuple[tuple[NamePath, str, Form | None, tuple[Start, ...] | None], ...]
    written: tuple[Root | None, ...]
    lists: tuple[NamePath, ...]
    signals: bool
    met: tuple[Met, ...]
    whole: tuple[NamePath, ...]
    buffers: tuple[tuple[NamePath, Buffers], ...]
    needs_more: bool  # whether there were other buffers
    unclear: tuple[tuple[NamePath, str, CkadError], ...]  # names of which no value is known
    draws: int  # for how many steps random numbers are drawn; 0 if that is known or there are none


class Order(NamedTuple):
    """In which order a loop carries names and arrays; None for what is found meanwhile."""

    carried: list[Key]
    written: list[int | None]
    buffers: list[tuple[Any, Buffers]]  # what is kept in buffers, what is recalled of these
    needs_more: bool  # whether other buffers have to be found
    widened: dict[Key, list[int]]  # names, and which of their leaves are no floats at first
    guess: Guess

    def enter(self, found: Findings, around: Trace) -> None:
        """Carry what is in buffers, which are built."""
        for owner, known in self.buffers:
            known.carry(found, owner, around)
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
_lock = locks.lock()  # while they change


class _Attempt(threading.local):
    """What one recording does with guesses."""

    allowed = True
    used = False


_attempt = _Attempt()


def clear() -> None:
    """Forget all loops."""
    with _lock:
        _guesses.clear()
        _refused.clear()
    failures.clear()
    free.clear()


def attempted(record: Callable[[], T], about: Hashable = None) -> T:
    """What ``record`` gives; an error is one only if it comes without guesses too. What recordings
    are ``about`` says in which of them the same loops fail."""
    _attempt.allowed, _attempt.used = True, False
    try:
        with failures.recalled(about):
            return record()
    except CkadError as error:
        if not (_attempt.used or failures.are_used()) or str(error) in _refused:
            raise
    _attempt.allowed = False
    try:
        return record()
    except CkadError as error:
        with _lock:
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
    is_new = _guesses.get(place, MISSING) is not None
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
        with _lock:
            _guesses.pop(place, None)


def fail(place: Hashable, error: BaseException) -> None:
    """Note that a loop could not be recorded: what is found when it can be says little."""
    if isinstance(error, CkadError):
        _keep(place, None)


def _keep(place: Hashable, guess: Guess | None) -> None:
    with _lock:
        _guesses[place] = guess
        if len(_guesses) > KEPT:
            _guesses.popitem(last=False)


def holds(body: Body, order: Order) -> bool:
    """Whether all that was recalled of a loop would have been found."""
    if not is_least(body) or (order.buffers and not buffers.are_used(body)):
        return False
    return _are_floats(body, order.widened)


def _are_floats(body: Body, widened: Mapping[Key, Sequence[int]]) -> bool:
    """Whether leaves that are carried as floats, and are none at first, have to be that."""
    ends: dict[int, int] = {}
    for key, leaves in widened.items():
        carried, found = body.loop.carried[key], body.bound[key].leaves
        first, entered = body.ends[key].first, [s is not None for s in carried.slots]
        for k in leaves:
            if carried.leaves[k] is MISSING and slot_of(found[k]) != carried.slots[k]:
                return False
            at = sum(entered[:k])
            ends[body.inputs[key][at].storage.row] = body.outputs[first + at]
    return are_floats(body.trace.builder, ends)


def is_least(body: Body) -> bool:
    """Whether a loop carries, appends to and ends on nothing that its step does not need."""
    if body.loop.signals and not body.kinds - {Flow.NEXT, Flow.CONTINUE}:
        return False
    read = {row for x in body.trace.builder.rows for row in x.operands}
    for key, entered in body.inputs.items():
        if isinstance(key[0], Contents):
            continue  # whose items are carried wherever a step changes them
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
        is_from_around = is_memory_met and id(owner) not in found.housing.houses
        for k, root in enumerate(sight.rows_of(owner)) if is_from_around else ():
            roots.setdefault(id(root), (path, sight.ROWS, k))
    if not found.lists.keys() <= paths.keys():
        return None
    carried = []
    frames = sight.frames_of(frame)
    in_buffers = {house.key for house in found.housing.houses.values()}
    for (owner, name), kept in found.carried.items():
        shown = _shown(owner)
        place = paths.get(id(shown)) or sight.path_to(shown, frames)
        if place is None:
            return None
        starts = [start_of(*leaf) for leaf in zip(kept.slots, kept.leaves, strict=True)]
        known = tuple(x for x in starts if x is not None)
        is_known = len(known) == len(starts) and owner.names.get(name, MISSING) is not MISSING
        is_known = is_known and (owner, name) not in in_buffers
        nothing = [k for k, x in enumerate(kept.leaves) if x is MISSING]
        is_known = is_known and (not nothing or _are_floats(body, {(owner, name): nothing}))
        carried.append((place, name, *((form_of(kept), known) if is_known else (None, None))))
    written = tuple(map(roots.get, found.written))
    lists = tuple(paths[key] for key in found.lists)
    housed = buffers.described(body)
    if not (found.whole.keys() <= paths.keys() and all(id(_shown(x)) in paths for x, _ in housed)):
        housed = []
    return Guess(
        tuple(carried),
        written,
        lists,
        bool(found.signals),
        tuple(_met(found, roots)),
        tuple(paths[key] for key in found.whole) if housed else (),
        tuple((paths[id(_shown(x))], known) for x, known in housed),
        bool(found.housing.houses) and not housed,
        tuple(_unclear(found, paths)),
        body.region.steps if body.region.draws and found.guard != UNGUARDED else 0,
    )


def _unclear(
    found: Findings, paths: Mapping[int, NamePath]
) -> Iterator[tuple[NamePath, str, CkadError]]:
    for (owner, name), unclear in found.unclear.items():
        error = unclear.error.error if isinstance(unclear.error, WrittenOut) else unclear.error
        if id(_shown(owner)) in paths and failures.is_of_words(error):
            yield paths[id(_shown(owner))], name, failures.anew(error)


def _shown(owner: Any) -> Any:
    """What has a name: a frame, or the object or container whose names a frame holds."""
    return owner.owner if isinstance(owner, (Attributes, Contents)) else owner


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


# --- before it is recorded again -----------------------------------------------------------------


def recall(place: Hashable, frame: Frame, found: Findings, around: Trace) -> Order | None:
    """Let a loop begin with what it was found to do; None if nothing is known of it.

    That is what was found in the recording before this one, if loops around it begin so too, else
    what was found of the same source in this one: when a loop around it was recorded, or at
    another call.
    """
    if not _attempt.allowed:
        return None
    first = _guesses.get(place) if around.recalls else None
    guess = first or around.known_loops.get(found.steps.node)
    if guess is None:
        return None
    frames = sight.frames_of(frame)
    carried: dict[Key, Carried | None] = {}
    widened: dict[Key, list[int]] = {}
    for path, name, form, starts in guess.carried:
        owner = sight.frame_of(sight.found_at(frames, path), name)
        if owner is None:
            return None
        owner.meet(name)
        first = owner.names.get(name, MISSING)
        if form is None or starts is None:
            carried[owner, name] = None
            continue
        kept = carried[owner, name] = fitting(first, form, starts, around)
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
    housed = [(_housed(frames, path, known), known) for path, known in guess.buffers]
    if not all(type(x) in (list, deque) for x in whole) or any(x is None for x, _ in housed):
        return None
    if not all(known.keep(found, owner) for owner, known in housed):
        found.housing.houses.clear()
        return None
    for key, kept in carried.items():
        if kept is not None:
            found.carry(key, kept, around)
    _meet(found, list(carried), guess.met, frames)
    found.written.update((id(x), x) for x in written if x is not None)
    found.lists.update((id(x), x) for x in lists)
    found.whole.update((id(x), x) for x in whole)
    for path, name, error in guess.unclear:
        within = sight.frame_of(sight.found_at(frames, path), name)
        if within is not None:
            found.leave((within, name), failures.anew(error))
    if guess.draws:
        around.steps_of_draws.setdefault(found.places[-1], guess.draws)
    if guess.signals:
        found.signals, found.guard = True, WHILE
    _attempt.used = True
    places = [None if x is None else id(x) for x in written]
    return Order(list(carried), places, housed, guess.needs_more, widened, guess)


def _housed(frames: list[Frame], path: NamePath, known: Buffers) -> Any:
    """What was kept in buffers: a container, or the frame of which a name is bound to an array."""
    owner = sight.found_at(frames, path)
    if isinstance(known, Lengthened):
        return sight.frame_of(owner, known.name)
    return owner if type(owner) in CONTAINERS else None


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
