"""What is known of a loop so far: what it carries, writes into and appends to, how it ends."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple

from ckad.errors import CarryError, CkadError
from ckad.tape.control import COUNTED, UNBOUNDED, UNGUARDED, WHILE
from ckad.trace.memory.context import Trace, WrittenOut
from ckad.trace.memory.storage import Storage
from ckad.trace.source.control.carried.kinds import Carried, End, carried_from
from ckad.trace.source.control.flow import Flow
from ckad.trace.source.memory.contents import ITEMS, Contents
from ckad.trace.source.memory.housing import ContainerHouse, Housing
from ckad.trace.source.memory.objects import OfFunction
from ckad.trace.source.memory.rows.numbered import Entries
from ckad.trace.source.memory.sharing import Origin, Place, memory
from ckad.trace.source.names.absence import OrNone
from ckad.trace.source.names.frame import (
    MISSING,
    RETURN,
    Frame,
    Key,
    Outside,
    Region,
    Unclear,
    ledger,
)
from ckad.trace.source.outside import free
from ckad.trace.source.values import (
    Slot,
    classes_of,
)
from ckad.trace.values.tracer import Tracer


class Stepping(NamedTuple):
    """What a loop does: how often at most, and what one step is.

    ``count`` is an int, a traced int, or None for a loop that runs while ``goes_on``. ``most`` is
    a bound of a count that is not an int. ``step`` gets the step's number and says how it ends.
    """

    node: ast.For | ast.While
    count: Any
    most: int | None
    step: Callable[[Tracer], Flow | None]
    goes_on: Callable[[], Any] | None = None
    first: Any = None  # what ``goes_on`` has given before the first step


class Again(Exception):
    """The body has to be recorded again, with more that it carries."""


class Mistaken(Again):
    """What was recalled of the loop is not as it was."""


NOTHING: Mapping[Key, Any] = MappingProxyType({})
#: Loops of at most so many steps may be written out for the objects that they put into lists.
MOST_FILLED = 256


class Findings:
    """What is known of a loop so far: what it carries, writes into and appends to, how it ends."""

    def __init__(self, steps: Stepping) -> None:
        self.steps = steps
        self.carried: dict[Key, Carried] = {}
        self.unclear: dict[Key, Unclear] = {}  # what changes its kind, and no step reads
        self.origins: dict[Place, Origin] = {}  # of the arrays among what is carried
        self.spoilt: set[Key] = set()  # of which it holds what a step had, not what they start with
        self.written: dict[int, Storage] = {}
        self.lists: dict[int, list[Any]] = {}  # what the body only appends to
        self.whole: dict[int, Any] = {}  # lists that it appends to, and reads or changes
        self.guard = UNGUARDED if isinstance(steps.count, int) else COUNTED
        if steps.goes_on is not None:
            self.guard = WHILE
        self.housing = Housing()
        self.signals = False  # whether a signal is carried: how the loop ended
        # under which it is remembered: its source and the how-manieth of it this is, then any
        self.places: tuple[Any, ...] = ()
        self.path: tuple[Any, ...] | None = None  # the first of these, behind loops around it
        self.first_read: int | None = None  # of the numbers from outside that it reads

    def carry(self, key: Key, carried: Carried, around: Trace, ends: Sequence[Any] = ()) -> None:
        """Let a name go from step to step; ``ends`` are its leaves after one."""
        self.carried[key] = carried
        for first in filter(None, map(memory, carried.leaves)):  # it may be written by this name
            self.written.pop(id(first.root), None)
        for k, (first, end) in enumerate(zip_longest(carried.leaves, ends)):
            self.origins[key, k] = origin = Origin(first)
            for x in (first, end):
                origin.add(x, around)

    def carried_from(self, key: Key, before: Any, end: Any, is_asked: bool) -> Carried | None:
        """A name as what holds its first value and that after a step; None if there is no such,
        and steps may do without it."""
        try:
            return carried_from(key, before, end)
        except CarryError as error:
            if is_asked or isinstance(key[0], Contents):
                raise
            self.leave(key, error)
            return None

    def before(self, x: Any, changed: Mapping[Key, Any] = NOTHING) -> Any:
        """What a name was bound to before the first step; for a list or dict that a step changes,
        one of what that held then."""
        known = ledger().contents.get(id(x)) if type(x) in (list, dict) else None
        if known is None:
            return x
        house = self.housing.houses.get(id(x))
        items = changed.get((known, ITEMS))
        if isinstance(house, ContainerHouse) and house.is_built:
            items = house.before
        if type(items) is Entries:
            return dict(zip(items.keys, items, strict=True))
        return list(items) if type(items) is tuple else x

    def knows(self, key: Key) -> bool:
        """Whether it is settled what becomes of a name."""
        return key in self.carried or key in self.unclear

    def rebound(self, inner: Region) -> set[Key]:
        """The items of lists and dicts of which later steps have others, by names that will be
        carried."""
        changed = ((k, x) for k, x in inner.changed.items() if type(x) in (list, dict))
        others = (
            x
            for (frame, name), x in changed
            if frame.names.get(name, x) is not x
            and (frame, name) in inner.read
            and (frame, name) not in self.unclear
        )
        return {(ledger().contents[id(x)], ITEMS) for x in others if id(x) in ledger().contents}

    def leave(self, key: Key, error: CkadError) -> None:
        """A name is of another kind after a step, which is an error where it is read."""
        node, can_be = self.steps.node, self.may_be_written_out
        self.unclear[key] = Unclear(WrittenOut(node, error) if can_be else error)

    def forget(self, key: Key) -> None:
        """A name is not carried any more."""
        del self.carried[key]
        for place in [place for place in self.origins if place[0] == key]:
            del self.origins[place]

    def begin(self, around: Trace) -> None:
        """Take up anew what names start with whose containers were changed when it was found."""
        if self.first_read is None:
            self.first_read = free.mark()
        free.forget(self.first_read)
        for key in filter(self.carried.__contains__, self.spoilt):
            before = self.carried[key].starting_with(self.before(key[0].names.get(key[1])))
            self.forget(key)
            if before is not None:
                self.carry(key, before, around)
        self.spoilt.clear()

    def anew(self) -> Findings:
        """Nothing is known."""
        found = Findings(self.steps)
        found.places, found.path, found.first_read = self.places, self.path, self.first_read
        return found

    def is_known(self, place: Any, around: Trace) -> bool:
        """Whether this loop was recorded before, or one of the same source."""
        turn = around.turns[place]
        around.turns[place] += 1
        self.places = ((place, turn), place)
        self.path = None if around.path is None else (*around.path, (place, turn))
        return place in around.known_carries

    @property
    def key(self) -> Any:
        """Under which it is remembered from one recording to the next."""
        return self.path or self.places[0]

    def remember(self, frame: Frame, around: Trace) -> None:
        """A nest is recorded again and again, each time a loop around finds something new."""
        for place in self.places:
            around.known_writes[place] = dict(self.written)
            around.known_carries[place] = {
                name: carried
                for (other, name), carried in self.carried.items()
                if other is frame and name != RETURN
            }

    def as_before(self, frame: Frame, around: Trace) -> list[Key]:
        """Begin with what was found then: the names that are likely to be carried."""
        place = next(place for place in self.places if place in around.known_carries)
        written = around.known_writes[place]
        self.written = {k: x for k, x in written.items() if around.may_write(x)}
        likely: list[Key] = []
        for name, before in around.known_carries[place].items():
            first = frame.names.get(name, MISSING)
            fits = first is not MISSING and (before.tree.type is not OrNone or first is None)
            if fits and (carried := before.starting_with(first)) is not None:
                likely.append((frame, name))
                self.carry((frame, name), carried, around)
        return likely

    def mark(self, inner: Region) -> None:
        """Note in a body how lists are kept that it appends to."""
        inner.takes_appends = self.guard == UNGUARDED
        inner.may_be_written_out = self.may_be_written_out
        inner.ends_unknown = not inner.takes_appends
        inner.appends = {key: (target, []) for key, target in self.lists.items()}
        inner.whole = self.whole
        self.housing.mark(inner)

    def given_up(self) -> list[Key]:
        """What was carried in buffers until now, and is no more."""
        keys = [key for key in self.housing.given_up if key in self.carried]
        self.housing.given_up.clear()
        return keys

    def of_last(self, slots: Sequence[Slot | None], ends: Sequence[Any]) -> list[Slot | None]:
        """The kinds of what is there after the loop, of which a last step is known to be one."""
        if self.guard != UNGUARDED or not self.length:
            return [*slots]
        pairs = zip(slots, ends, strict=True)
        return [s and s.of_classes(classes_of(x)) for s, x in pairs]

    @property
    def length(self) -> int:
        """The bound of the number of steps."""
        if isinstance(self.steps.count, int):
            return self.steps.count
        return UNBOUNDED if self.steps.most is None else max(0, self.steps.most)

    @property
    def may_be_written_out(self) -> bool:
        """Whether it is known while recording that there is a first step, and may be of others."""
        return isinstance(self.steps.count, int) or (
            self.steps.first is True and not self.is_endless
        )

    @property
    def fills_lists(self) -> bool:
        """Whether it is short, and makes lists longer by arrays or objects, which may be changed
        where they are seen only if it is written out."""
        return self.length <= MOST_FILLED and self.may_be_written_out and self.housing.is_of_objects

    @property
    def is_endless(self) -> bool:
        """Whether the loop only ends where its body leaves it: ``while True``."""
        node = self.steps.node
        return isinstance(node, ast.While) and isinstance(node.test, ast.Constant)


def freed(ends: Mapping[Key, Any], initial: list[tuple[Slot, Any]]) -> None:
    """Let numbers from outside with which names start be inputs of the recording."""
    for (frame, name), end in ends.items():
        if not isinstance(end, End):
            continue
        if isinstance(frame, Outside):
            owner = frame.names.holder
        elif isinstance(frame, OfFunction):
            owner = vars(frame.owner)
        else:
            continue
        for k in range(end.first, end.first + sum(s is not None for s in end.slots)):
            slot, first = initial[k]
            found = free.started(owner, name, first)
            initial[k] = slot, first if found is None else found


def forget_loop(node: ast.For | ast.While, around: Trace) -> None:
    """Begin a loop, and those within, as if nothing were known: what it starts with is of another
    kind now."""
    nodes = set(ast.walk(node))
    for known in (around.known_carries, around.known_writes):
        for place in [p for p in known if _node_of(p) in nodes]:
            del known[place]
    for inner in nodes & set(around.known_loops):
        del around.known_loops[inner]


def _node_of(place: Any) -> Any:
    while isinstance(place, tuple):
        place = place[0]
    return place
