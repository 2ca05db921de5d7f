"""Lists, dicts and arrays in buffers around a loop: what is recalled of them when it is recorded
again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ckad.place import Source
from ckad.tape.control import UNGUARDED
from ckad.trace.memory.context import Trace
from ckad.trace.memory.storage import Storage
from ckad.trace.source.control.body import Body
from ckad.trace.source.control.carried.findings import Findings, Mistaken
from ckad.trace.source.control.carried.kinds import Carried
from ckad.trace.source.memory.contents import ITEMS, Stacked, contents, length_unknown
from ckad.trace.source.memory.growing import (
    GUESS,
    ArrayHouse,
    Growing,
    Lengthening,
    not_followed,
)
from ckad.trace.source.memory.housing import AnyHouse, House, KeyedHouse
from ckad.trace.source.memory.keyed import Keyed
from ckad.trace.source.memory.rows.kinds import Kind
from ckad.trace.source.memory.rows.numbered import Rows
from ckad.trace.source.memory.rows.stacks import Stack
from ckad.trace.source.names.frame import depth_of, region
from ckad.trace.source.values import Slot, flatten, slot_of
from ckad.trace.values.filled import is_filled
from ckad.trace.values.tracer import Tracer


class Listed(NamedTuple):
    """Those of one list: the kind of its items, their space, and which of its numbers vary."""

    kind: Kind | None
    space: int
    is_ring: bool
    is_needed: bool
    is_longer: bool  # than it is in the buffers that it has from around
    varies: frozenset[str]
    written: tuple[bool, ...]  # of the buffers
    slots: tuple[Slot | None, ...]

    def keep(self, found: Findings, owner: Any) -> bool:
        """Keep the list in such buffers as before; whether it can be."""
        if not _is_plain(owner, Stack if self.is_longer else tuple):
            return False
        error = length_unknown(contents(owner))
        house = House(Stacked(owner, error, self.kind, self.is_needed))
        house.space, house.is_ring = self.space, self.is_ring
        found.housing.houses[house.mark] = house
        return True

    def carry(self, found: Findings, owner: Any, around: Trace) -> None:
        """Carry what varies of it, whose buffers are there now."""
        own = contents(owner)
        stack = own.names[ITEMS]
        if type(stack) is not Stack:
            raise Mistaken
        if len(stack.layout.buffers) != len(self.written):
            raise Mistaken
        for root, is_written in zip(_roots(stack), self.written, strict=True):
            if not is_written:
                found.written.pop(id(root), None)
        stack.layout.varies |= self.varies
        _carry(found, (own, ITEMS), stack, self.slots, around)


class Numbered(NamedTuple):
    """Those of one dict: the kind of its items, for which keys, which of them steps write into."""

    kind: Kind
    span: range
    written: tuple[bool, ...]

    def keep(self, found: Findings, owner: Any) -> bool:
        """The same of a dict."""
        if type(owner) is not dict or not _is_plain(owner, tuple):
            return False
        house = KeyedHouse(Keyed(owner, self.kind, self.span))
        found.housing.houses[house.mark] = house
        return True

    def carry(self, found: Findings, owner: Any, _: Trace) -> None:
        """Let steps write into its buffers."""
        rows = contents(owner).names[ITEMS]
        if type(rows) is not Rows or len(rows.stack.layout.buffers) != len(self.written):
            raise Mistaken
        pairs = zip(_roots(rows.stack), self.written, strict=True)
        found.written.update((id(root), root) for root, is_written in pairs if is_written)


class Lengthened(NamedTuple):
    """That of an array that each step makes longer: how it starts, how it grows, its space."""

    name: str
    first: Slot
    step: Lengthening
    space: int
    is_bounded: bool
    copied: frozenset[Source]
    varies: bool
    slots: tuple[Slot | None, ...]

    def keep(self, found: Findings, owner: Any) -> bool:
        """The same of an array to which a name of ``owner``, a frame, is bound."""
        x = owner.names.get(self.name)
        if type(x) not in (Tracer, np.ndarray) or is_filled(x) or slot_of(x) != self.first:
            return False
        key = owner, self.name
        house = ArrayHouse(Growing(key, self.step, not_followed(key, self.step)), 0, GUESS)
        house.space, house.is_bounded, house.copied = self.space, self.is_bounded, {*self.copied}
        found.housing.houses[house.mark] = house
        return True

    def carry(self, found: Findings, owner: Any, around: Trace) -> None:
        """Carry how many rows it has, and let steps write them."""
        key = owner, self.name
        house = found.housing.houses.get((key, self.step.path))
        if not isinstance(house, ArrayHouse) or house.buffer is None:
            raise Mistaken
        house.buffer.varies |= self.varies
        _carry(found, key, owner.names[self.name], self.slots, around)
        root = house.buffer.rows.storage.root
        found.written[id(root)] = root


Buffers = Listed | Numbered | Lengthened


def _is_plain(owner: Any, kind: type) -> bool:
    """Whether the body being recorded has made a container, which holds its items as ``kind``."""
    around, own = region(), contents(owner)
    held = own.names[ITEMS]
    is_held = type(held) is Stack if kind is Stack else type(held) not in (Stack, Rows)
    return is_held and own.unclear is None and depth_of(owner) == (around.depth if around else 0)


def _carry(
    found: Findings, key: Any, value: Any, slots: tuple[Slot | None, ...], around: Trace
) -> None:
    leaves, tree = flatten(value)
    if len(leaves) != len(slots):
        raise Mistaken
    found.carry(key, Carried(tree, list(slots), leaves), around)


def _roots(stack: Stack) -> list[Storage]:
    return [x.storage.root for x in stack.layout.buffers]


def described(body: Body) -> list[tuple[Any, Buffers]]:
    """What a loop keeps in buffers: containers, and frames of which a name is bound to an array.

    None if it does without some of them.
    """
    made: list[tuple[Any, Buffers]] = []
    for house in body.loop.housing.houses.values():
        known = _described(house, body)
        if known is None:
            return []
        made.append((house.key[0] if isinstance(house, ArrayHouse) else house.owner, known))
    return made


def _described(house: AnyHouse, body: Body) -> Buffers | None:
    if not _is_used(house, body):
        return None
    carried = body.loop.carried.get(house.key)
    slots = () if carried is None else tuple(carried.slots)
    if isinstance(house, KeyedHouse):
        rows = house.contents.names[ITEMS]
        if type(rows) is not Rows or house.kind is None or carried is not None:
            return None
        written = tuple(_is_written(root, body) for root in _roots(rows.stack))
        return Numbered(house.kind, house.span, written)
    if carried is None:
        return None
    if isinstance(house, ArrayHouse):
        first = slot_of(house.before)
        if house.buffer is None or house.step.path or first is None:
            return None
        step, space, bounded, copied = house.step, house.space, house.is_bounded, house.copied
        varies = house.buffer.varies
        return Lengthened(
            house.key[1], first, step, space, bounded, frozenset(copied), varies, slots
        )
    stack = house.contents.names[ITEMS]
    if type(stack) is not Stack:
        return None
    about = house.kind, house.space, house.is_ring, house.is_needed
    written = tuple(_is_written(root, body) for root in _roots(stack))
    is_longer, numbers = type(house.before) is Stack, frozenset(stack.layout.varies)
    return Listed(*about, is_longer, numbers, written, slots)


def _is_written(root: Storage, body: Body) -> bool:
    adopted = body.trace.adopted.get(id(root))
    return adopted is not None and bool(adopted.writes)


def _is_used(house: AnyHouse, body: Body) -> bool:
    """Whether steps do with a container or an array what they cannot do without buffers."""
    if isinstance(house, KeyedHouse):
        return house.mark in body.region.keyed
    growth = body.region.growth.get(house.growth_mark)
    if isinstance(house, ArrayHouse):
        return growth is not None and growth.pushed > 0
    if growth is None or not (growth.now or house.is_ring):
        return False  # as long after a step as before it
    if house.mark in body.region.looked:
        return True
    stack = house.contents.names[ITEMS]
    is_of_one_leaf = type(stack) is Stack and stack.layout.kind.tree.num_nodes == 1
    takes_more = body.loop.guard == UNGUARDED and is_of_one_leaf and type(house.owner) is list
    return not takes_more or body.outcome.writes_carried


def are_used(body: Body) -> bool:
    """Whether all buffers around a loop are needed, and are written into if steps may do so."""
    houses = body.loop.housing.houses.values()
    rows = [x.contents.names[ITEMS] for x in houses if isinstance(x, KeyedHouse)]
    roots = [root for x in rows if type(x) is Rows for root in _roots(x.stack)]
    adopted = [root for root in roots if id(root) in body.loop.written]
    return all(_is_used(x, body) for x in houses) and all(_is_written(x, body) for x in adopted)
