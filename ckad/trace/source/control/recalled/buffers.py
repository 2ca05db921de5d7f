"""Lists in buffers around a loop: what is recalled of them when it is recorded again."""

from __future__ import annotations

from typing import Any, NamedTuple

from ckad.tape.control import UNGUARDED
from ckad.trace.memory.context import Trace
from ckad.trace.source.control.body import Body
from ckad.trace.source.control.carried.findings import Findings, Mistaken
from ckad.trace.source.control.carried.kinds import Carried
from ckad.trace.source.memory.contents import ITEMS, Stacked, contents, length_unknown
from ckad.trace.source.memory.housing import House
from ckad.trace.source.memory.rows.kinds import Kind
from ckad.trace.source.memory.rows.stacks import Stack
from ckad.trace.source.names.frame import depth_of, region
from ckad.trace.source.values import Slot, flatten


class Buffers(NamedTuple):
    """Those of one list: the kind of its items, their space, and which of its numbers vary."""

    kind: Kind | None
    space: int
    is_ring: bool
    is_needed: bool
    varies: frozenset[str]
    slots: tuple[Slot | None, ...]


def described(body: Body) -> list[tuple[Any, Buffers]]:
    """The lists that a loop keeps in buffers; none if it does without some of them."""
    made, found = [], body.loop
    for house in found.housing.houses.values():
        if type(house) is not House or type(house.before) is Stack:
            return []
        stack, carried = house.contents.names[ITEMS], found.carried.get(house.key)
        if type(stack) is not Stack or carried is None or not _is_used(house, body):
            return []
        about = house.kind, house.space, house.is_ring, house.is_needed
        varies, slots = frozenset(stack.layout.varies), tuple(carried.slots)
        made.append((house.owner, Buffers(*about, varies, slots)))
    return made


def _is_used(house: House, body: Body) -> bool:
    """Whether steps do with a list what they cannot do without buffers."""
    growth = body.region.growth.get(house.mark)
    if growth is None or not (growth.now or house.is_ring):
        return False  # as long after a step as before it
    if house.mark in body.region.looked:
        return True
    stack = house.contents.names[ITEMS]
    is_of_one_leaf = type(stack) is Stack and stack.layout.kind.tree.num_nodes == 1
    takes_more = body.loop.guard == UNGUARDED and is_of_one_leaf and type(house.owner) is list
    return not takes_more or body.outcome.writes_carried


def are_used(body: Body) -> bool:
    houses = [x for x in body.loop.housing.houses.values() if isinstance(x, House)]
    return all(_is_used(house, body) for house in houses)


def keep(found: Findings, owner: Any, buffers: Buffers) -> bool:
    """Keep a list in such buffers as before; whether it can be."""
    around, own = region(), contents(owner)
    if type(own.names[ITEMS]) is Stack or own.unclear is not None:
        return False
    if depth_of(owner) != (around.depth if around else 0):
        return False
    error = length_unknown(own)
    house = House(Stacked(owner, error, buffers.kind, buffers.is_needed))
    house.space, house.is_ring = buffers.space, buffers.is_ring
    found.housing.houses[house.mark] = house
    return True


def carry(found: Findings, owner: Any, buffers: Buffers, around: Trace) -> None:
    """Carry what varies of a list, whose buffers are there now."""
    own = contents(owner)
    stack = own.names[ITEMS]
    if type(stack) is not Stack:
        raise Mistaken
    stack.layout.varies |= buffers.varies
    leaves, tree = flatten(stack)
    if len(leaves) != len(buffers.slots):
        raise Mistaken
    found.carry((own, ITEMS), Carried(tree, list(buffers.slots), leaves), around)
