"""The numbers of items and rows that a loop carries: how many there are, and how many at most."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ckad import trees
from ckad.trace.memory.foreseen import UNKNOWN, Foreseen
from ckad.trace.source.memory.contents import ITEMS, Contents, contents
from ckad.trace.source.memory.growing import ArrayHouse, settled
from ckad.trace.source.memory.rows.stacks import Stack
from ckad.trace.source.names.frame import Key, ledger, region
from ckad.trace.source.values import flatten
from ckad.trace.values.grown import Buffer, Grown
from ckad.trace.values.tracer import Tracer


def full_deques() -> int:
    """How many of the deques that bodies have looked into are as long as they may be."""
    seen = (x for x in ledger().contents.values() if isinstance(x, Contents))
    deques = (x.owner for x in seen if type(x.owner) is deque and x.in_buffers is None)
    return sum(x.maxlen is not None and len(x) == x.maxlen for x in deques)


#: A name, which leaf of it, and the buffer whose number of rows that is.
_Row = tuple[Key, int, Buffer]


class Counts:
    """What the carry of a loop holds of lists and arrays that grow, by the position there.

    ``bound`` are the names that it carries: what each is at the end of a step, and its place.
    """

    def __init__(self, bound: Mapping[Key, tuple[Any, Any]], lead: int) -> None:
        self.keys = list(bound)
        self.lists: dict[int, tuple[Any, str]] = {}
        self.rows: dict[int, _Row] = {}
        for key, (value, end) in bound.items():
            self.lists.update(_of_list(key, value, lead + end.first))
            self.rows.update(_of_arrays(key, value, end.slots, lead + end.first))

    @property
    def positions(self) -> list[int]:
        return [*self.lists, *self.rows]

    def most(self, foreseen: Foreseen, houses: Sequence[ArrayHouse]) -> dict[int, int]:
        """How long lists and arrays become at most, as far as that is known."""
        found: dict[int, int] = {}
        for position, longest in foreseen.most.items():
            if longest is UNKNOWN:
                continue
            if position in self.lists and self.lists[position][1] == "count":
                found[id(self.lists[position][0])] = int(longest)
            for house in houses if position in self.rows else ():
                key, _, buffer = self.rows[position]
                if key == house.key and buffer is house.buffer:
                    found[house.growth_mark] = int(longest)
        return found

    def settle(self, foreseen: Foreseen | None, houses: Sequence[ArrayHouse], is_run: bool) -> None:
        """After the loop: what is known of lengths now, and arrays of their own memory."""
        if foreseen is not None:
            self._settle_lists(foreseen)
        if not houses:
            return
        last = {} if foreseen is None else foreseen.last
        known = {place: last.get(position, UNKNOWN) for position, place in self.rows.items()}
        for key in self.keys:
            frame, name = key
            found = _numbered(frame.names[name], key, known)
            frame.names[name] = settled(found, houses, is_run)

    def _settle_lists(self, foreseen: Foreseen) -> None:
        """Lists of which it is known now which items they have."""
        known: dict[int, dict[str, Any]] = {}
        for position, (owner, name) in self.lists.items():
            known.setdefault(id(owner), {})[name] = foreseen.last[position]
        for owner, _ in self.lists.values():
            found = contents(owner)
            if found.stack is None or found.stack.layout.varies.difference(known[id(owner)]):
                continue
            numbers = {"first": found.stack.first, "count": found.stack.count, **known[id(owner)]}
            if not any(x is UNKNOWN or isinstance(x, Tracer) for x in numbers.values()):
                after = found.stack.after if region() is None else found.stack.moved
                found.names[ITEMS] = after(numbers["first"], numbers["count"])


def _of_list(key: Key, value: Any, first: int) -> Iterator[tuple[int, tuple[Any, str]]]:
    frame, _ = key
    if type(value) is not Stack or not isinstance(frame, Contents):
        return
    varies = value.layout.varies
    if "count" not in varies:  # where a ring begins matters to nobody
        return
    for k, name in enumerate(x for x in ("first", "count") if x in varies):
        yield first + k, (frame.owner, name)


def _of_arrays(
    key: Key, value: Any, slots: Sequence[Any], position: int
) -> Iterator[tuple[int, _Row]]:
    for k, (slot, grown) in enumerate(zip(slots, _counted(value), strict=False)):
        if slot is not None and grown is not None:
            yield position, (key, k, grown.buffer)
        position += slot is not None


def _counted(x: Any) -> list[Grown | None]:
    """For each leaf of a value, the array that grows whose number of rows it is."""
    if type(x) is Grown:
        return [x] if x.buffer.varies else []
    if isinstance(x, tuple):
        return [found for item in x for found in _counted(item)]
    return [None] * len(flatten(x)[0])


def _numbered(x: Any, key: Key, known: Mapping[_Row, Any]) -> Any:
    """What a name is bound to, with the numbers of rows that are known now."""
    grown = _counted(x)
    if all(g is None for g in grown):
        return x
    leaves, tree = flatten(x)
    for k, g in enumerate(grown):
        number = UNKNOWN if g is None else known.get((key, k, g.buffer), UNKNOWN)
        leaves[k] = leaves[k] if number is UNKNOWN else number
    return trees.unflatten(tree, leaves)
