"""Space for the items of lists whose length a loop or a branch changes.

A list is housed where it was made, before the outermost loop or branch that makes it longer: its
items become rows of buffers with space for all that is appended. How much that is, the recording of
the body tells; until that is known it is recorded again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ckad.errors import CkadError
from ckad.trace.memory.storage import Storage
from ckad.trace.source.memory.aliases import is_shown_after
from ckad.trace.source.memory.contents import (
    ITEMS,
    Contents,
    Stacked,
    contents,
    is_unhoused,
    length_unknown,
)
from ckad.trace.source.memory.growing import (
    ASSUMED_BYTES,
    GUESS,
    MOST_BYTES,
    ArrayHouse,
    Growing,
    Outgrown,
    assumed_rows,
)
from ckad.trace.source.memory.keyed import Keyed, build
from ckad.trace.source.memory.rows.kinds import Kind, kind_of_all
from ckad.trace.source.memory.rows.numbered import Rows, empty, joined, span_of
from ckad.trace.source.memory.rows.stacks import RowLayout, Stack, shelve, stacked
from ckad.trace.source.names.frame import Key, Region, Unclear, depth_of, region
from ckad.trace.source.names.region import Growth

NONE: Mapping[int, int] = MappingProxyType({})


class ContainerHouse:
    """The buffers of one container: between ``build`` and ``leave`` it holds rows of them."""

    def __init__(self, found: Stacked) -> None:
        self.owner, self.error, self.kind = found.owner, found.error, found.kind
        self.mark = self.growth_mark = id(found.owner)
        self.is_needed = found.is_needed
        self.contents: Contents = contents(found.owner)
        self.before = self.contents.names[ITEMS]
        self.is_built = False
        self.roots: dict[int, Storage] = {}  # the buffers of a list, as they were built last

    @property
    def key(self) -> Key:
        return self.contents, ITEMS

    @property
    def is_probed(self) -> bool:
        """Whether nothing is known of its items yet."""
        return self.kind is None and not self.before

    def build(self) -> None:
        if self.is_built or self.is_probed:
            return
        rows = self._rows()
        self.is_built = True
        self.contents.note_change(ITEMS)
        self.contents.names[ITEMS] = rows

    def _rows(self) -> Stack | Rows:
        raise NotImplementedError

    def leave(self) -> None:
        """The container as it was."""
        if self.is_built:
            self.contents.names[ITEMS] = self.before
            self.is_built = False


class House(ContainerHouse):
    """The buffers of one list."""

    def __init__(self, found: Stacked) -> None:
        super().__init__(found)
        self.is_ring = type(self.owner) is deque and self.owner.maxlen is not None
        self.space = 0  # rows for what is appended
        self.grows = found.grows

    def suppose(self, most: float) -> None:
        """Leave space for what steps append if each of ``most`` appends one item."""
        if self.is_ring or not self.grows:
            return
        each = self.kind.nbytes if self.kind else ASSUMED_BYTES
        if math.isinf(most):
            most = self.assumed() or GUESS
        self.space = int(most if most * each <= ASSUMED_BYTES else min(most, GUESS))

    def _rows(self) -> Stack:
        rows = self._stack()
        roots = [x.storage.root for x in rows.layout.buffers]
        self.roots = {id(root): root for root in roots}
        return rows

    def _stack(self) -> Stack:
        before, space = self.before, self.space
        if type(before) is Stack:
            return self._extended(before, space)
        kind = kind_of_all(before) if before else self.kind
        if kind is not None and self.kind is not None:
            kind = kind.joined(self.kind)
        most = self.owner.maxlen if type(self.owner) is deque else None
        capacity = len(before) + space if most is None else most
        if kind is None or not _fits(kind, capacity):
            raise self.error
        return stacked(before, kind, capacity, self.is_ring, most)

    def _extended(self, before: Stack, space: int) -> Stack:
        old = before.layout
        kind = old.kind if self.kind is None else old.kind.joined(self.kind)
        if kind is None or not _fits(kind, old.capacity + space):
            raise self.error
        is_same = kind.is_like(old.kind)
        if old.is_ring and is_same and (not space or old.maxlen is not None):
            return Stack(old.alone(), before.first, before.count)
        if not before.is_known and old.is_ring:
            raise self.error
        rows: list[Any] = list(old.buffers)
        if before.is_known:
            rows = [x[before.first : before.first + before.count] for x in rows]
        buffers = joined([rows, empty(kind, max(space, 1))])
        shelve([x.storage.root for x in old.buffers], [x.storage.root for x in buffers])
        layout = RowLayout(kind, buffers, self.is_ring)
        layout.identity = old.identity
        if self.is_ring:
            layout.capacity = buffers[0].shape[0]
        return Stack(layout, 0 if before.is_known else before.first, before.count)

    def room(self, growth: Growth, length: float, most: int | None) -> tuple[bool, int | None]:
        """Whether it is a ring, and the space for what ``length`` steps append, if it is known."""
        is_ring = self.is_ring or growth.now <= 0
        if not (self.grows or growth.pushed or growth.now) and growth.is_monotonic:
            return self.is_ring, 0
        space = _whole(growth.peak if is_ring else _times(length, growth.pushed))
        if most is not None and growth.is_monotonic and type(self.before) is not Stack:
            space = max(most - len(self.before), 0)
        if is_ring and type(self.owner) is deque and self.owner.maxlen is not None:
            space = 0
        return is_ring, space

    def assumed(self) -> int | None:
        """The space where nothing tells how much is appended; None if that is too little."""
        kind = self.kind
        if kind is None and type(self.before) is tuple and self.before:
            kind = kind_of_all(self.before)
        if kind is None:
            return None
        each = max(kind.nbytes, 1)
        return assumed_rows(each)


class KeyedHouse(ContainerHouse):
    """The buffers of one dict whose keys are numbers of steps."""

    def __init__(self, found: Keyed) -> None:
        super().__init__(found)
        self.span = found.span

    def widen(self, found: Keyed) -> None:
        """Leave space for more keys, and for items of both kinds."""
        assert self.kind is not None
        assert found.kind is not None
        both = self.kind.joined(found.kind)
        if both is None:
            raise found.error
        self.leave()
        self.kind, self.span = both, span_of(self.span, found.span)

    def _rows(self) -> Rows:
        if self.kind is None or not _fits(self.kind, len(self.span)):
            raise self.error
        return build(self.before, self.kind, self.span)


def _fits(kind: Kind, capacity: int) -> bool:
    return kind.nbytes * capacity <= MOST_BYTES


AnyHouse = House | ArrayHouse | KeyedHouse


class Housing:
    """The lists that are housed around one loop or branch."""

    def __init__(self) -> None:
        self.houses: dict[Any, AnyHouse] = {}
        self.unhoused: set[Any] = set()
        self.given_up: list[Key] = []  # what was carried in buffers, and is no more
        self.error: BaseException | None = None  # why a list has no buffers

    @property
    def rounds(self) -> int:
        """How often a body may be recorded until its lists are housed."""
        return 4 * (len(self.houses) + len(self.unhoused))

    def want(self, found: Stacked | Growing, most: float) -> bool:
        """House a list, of which ``most`` bounds how often it is appended to at one place.

        False if that is for a body around to do.
        """
        if isinstance(found, Growing):
            self.houses[found.mark] = ArrayHouse(found, most, GUESS)
            return True
        around = region()
        if depth_of(found.owner) != (around.depth if around else 0):
            return False
        known = self.houses.get(id(found.owner))
        if isinstance(found, Keyed):
            if isinstance(known, KeyedHouse):
                known.widen(found)
            else:
                self.houses[id(found.owner)] = KeyedHouse(found)
            return True
        if isinstance(known, KeyedHouse):
            raise found.error
        if found.kind is None and (known or id(found.owner) in self.unhoused):
            raise found.error
        if known is None:
            known = self.houses[id(found.owner)] = House(found)
            known.suppose(most)
        else:
            known.leave()
            is_other, known.kind = known.is_probed, found.kind
            if isinstance(known, House):
                is_other |= known.grows < found.grows
                known.grows |= found.grows
                known.is_needed |= found.is_needed
                if is_other:
                    known.suppose(most)
        return True

    @property
    def is_of_objects(self) -> bool:
        """Whether items of a list are arrays or objects, not numbers."""
        kinds = [x.kind for x in self.houses.values() if isinstance(x, House)]
        known = [kind for kind in kinds if kind is not None]
        return any(kind.tree.num_nodes > 1 or kind.slots[0].type.shape for kind in known)

    @property
    def arrays(self) -> list[ArrayHouse]:
        return [house for house in self.houses.values() if isinstance(house, ArrayHouse)]

    def refuse(self, house: AnyHouse) -> None:
        """There can be no buffers for a list."""
        house.leave()
        self.error = house.error
        del self.houses[house.mark]
        self.unhoused.add(house.mark)
        self.given_up.append(house.key)

    def forget(self, keys: Collection[Key]) -> None:
        """Keep in no buffers what steps are not expected to meet again."""
        for house in [x for x in self.houses.values() if x.key in keys]:
            house.leave()
            del self.houses[house.mark]
            self.given_up.append(house.key)

    def outgrown(self, found: Outgrown) -> bool:
        """Keep an array in no buffer; False if it is one of a loop around."""
        for house in self.arrays:
            if house.buffer is found.buffer:
                if house.copies_more():
                    self.given_up.append(house.key)
                else:
                    self.refuse(house)
                return True
        return False

    def drop(self) -> bool:
        """Do without the buffers that are not needed; whether there are any."""
        dropped = [house for house in self.houses.values() if not house.is_needed]
        for house in dropped:
            self.refuse(house)
        return bool(dropped)

    def enter(self, written: dict[int, Storage]) -> dict[int, Storage]:
        """Build what is not; the buffers that are new, which are likely to be ``written`` into."""
        new: dict[int, Storage] = {}
        for house in list(self.houses.values()):
            if house.is_built:
                continue
            for key in house.roots:
                written.pop(key, None)
            try:
                house.build()
            except CkadError:
                self.refuse(house)
                continue
            new |= house.roots
        written |= new
        return new

    def mark(self, inner: Region) -> None:
        """Note in a body which lists have space."""
        inner.housed = set(self.houses)
        inner.filled = {
            key for key, x in self.houses.items() if isinstance(x, House) and not x.grows
        }
        inner.probed = {key for key, house in self.houses.items() if house.is_probed}
        inner.unhoused = self.unhoused

    def is_enough(
        self, grown: Mapping[int, Growth], length: float, most: Mapping[Any, int] = NONE
    ) -> bool:
        """Whether there is space for what ``length`` steps append; if not, there will be.

        ``most`` are lists of which it is known how long they become.
        """
        enough = True
        for house in list(self.houses.values()):
            if isinstance(house, KeyedHouse):
                continue
            growth = grown.get(house.growth_mark, Growth())
            is_ring, space = house.room(growth, length, most.get(house.growth_mark))
            if space is None:
                space = house.assumed()
            if space is None:
                self.refuse(house)
            elif (is_ring, space) == (house.is_ring, house.space):
                continue
            else:
                house.leave()
                house.is_ring, house.space = is_ring, space
            enough = False
        return enough

    def leave(self) -> None:
        for house in self.houses.values():
            house.leave()


def _whole(x: float) -> int | None:
    return int(x) if math.isfinite(x) else None


def _times(length: float, each: float) -> float:
    return length * each if each else 0.0


def is_alike(one: Any, other: Any) -> bool:
    """Whether a container has as many items on both sides, or is kept as rows of buffers."""
    if type(one) is Stack or type(other) is Stack:
        return type(one) is type(other) and one.layout is other.layout
    return len(one) == len(other)


def check_alike(sides: Sequence[Mapping[Key, Any]]) -> None:
    """Have lists housed that are longer after one side of a branch than after the other."""
    for frame, name in dict.fromkeys(key for side in sides for key in side):
        if not isinstance(frame, Contents) or not isinstance(frame.owner, (list, deque)):
            continue
        ends = [side.get((frame, name), frame.names[name]) for side in sides]
        if len(ends) < 2:
            continue
        if any(type(x) is Unclear for x in ends) or is_unhoused(frame.owner):
            continue
        if is_alike(*ends):
            continue
        shown = [is_shown_after(frame.owner, side) for side in sides]
        if all(shown) or not any(shown):  # else no name shows it after one side
            raise Stacked(frame.owner, length_unknown(frame))


def merge_growth(sides: list[dict[int, Growth]], around: dict[int, Growth]) -> None:
    """Add what one of two sides of a branch appends to what the body around them does."""
    for key in dict.fromkeys(key for side in sides for key in side):
        found = [side.get(key, Growth()) for side in sides]
        joined = around.setdefault(key, Growth())
        joined.add(
            max(g.now for g in found), max(g.peak for g in found), max(g.pushed for g in found)
        )
        joined.is_monotonic &= all(g.is_monotonic for g in found)


def repeat_growth(grown: dict[int, Growth], length: float) -> None:
    """What the steps of a loop append, to what the body around it does."""
    inner = region()
    if inner is None:
        return
    for key, g in grown.items():
        now, pushed = _times(length, max(g.now, 0.0)), _times(length, g.pushed)
        around = inner.growth.setdefault(key, Growth())
        around.add(now, g.peak + now, pushed)
        around.is_monotonic &= g.is_monotonic
