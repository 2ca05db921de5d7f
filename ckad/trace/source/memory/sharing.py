"""Arrays that loops and branches bind anew: what else may be their memory in NumPy.

Names are carried and chosen by value, so what they are bound to in a step or after a branch has a
storage of its own. In NumPy it may be memory that others see: another name, an attribute, an item
of a list. Such storages are rivals, and a write into one of them spoils the others (``context``),
in a body as around it. What a body captures from outside it sees as it was before the first step;
where steps write into that by another name, the loop is not recorded at all.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ckad.errors import AliasError
from ckad.trace.memory.context import Trace
from ckad.trace.memory.layout import Layout, layout
from ckad.trace.memory.storage import Storage, are_one, link, may_be, spoil
from ckad.trace.memory.views import Path, is_static
from ckad.trace.source.names.frame import MISSING, Key
from ckad.trace.source.values import Slot
from ckad.trace.values.tracer import Tracer

#: A leaf of what a name is bound to.
Place = tuple[Key, int]
OUTSIDE = "an array from outside of the function"


def memory(x: Any) -> Storage | None:
    """The storage of an array; None for numbers and what is not traced."""
    return x.storage if isinstance(x, Tracer) and not x.scalar else None


def part_of_root(x: Tracer) -> Path | None:
    """Which part of its memory an array shows, whatever trace it is seen from; None if unknown."""
    path = (*x.storage.part, *x.path)
    return path if x.storage is x.storage.root or is_static(path) else None


def obstacle(x: Any) -> str | None:
    """What keeps a program from writing into an array."""
    if isinstance(x, np.ndarray) and x.ndim:
        return OUTSIDE
    found = memory(x)
    return None if found is None else found.shared or found.root.shared


def lies_as(result: Storage, xs: Iterable[Any]) -> None:
    """``result`` may be written into, and lies in memory, as any of ``xs`` may."""
    found = list(xs)
    result.plain, result.dense = functools.reduce(Layout.or_as, map(layout, found))
    result.shared = next(filter(None, map(obstacle, found)), None)


def picked_memory(stack: Tracer, xs: Iterable[Any]) -> None:
    """Rows of ``stack`` stand for some of the arrays ``xs``, which are the memory in NumPy."""
    found = list(xs)
    lies_as(stack.storage, found)
    for x in found:
        for root in may_be(x.storage) if memory(x) is not None else ():
            link(stack.storage, root)


# --- loops ---------------------------------------------------------------------------------------


class Origin:
    """What an array that a step starts with may be: memory of others, and how it lies there."""

    def __init__(self, first: Any) -> None:
        self.roots: dict[int, Storage] = {}
        self.others: set[Place] = set()  # carried arrays that may be the same memory then
        self.layout, self.shared = layout(first), obstacle(first)

    def add(self, x: Any, around: Trace) -> bool:
        """Let it be ``x`` too, an array of ``around``; whether that is anything new."""
        before = len(self.roots), self.layout, self.shared
        self.roots.update((id(root), root) for root in outside_of(x, around))
        self.layout = self.layout.or_as(layout(x))
        self.shared = self.shared or obstacle(x)
        return before != (len(self.roots), self.layout, self.shared)

    def enter(self, storage: Storage) -> None:
        storage.plain, storage.dense = self.layout
        storage.shared = self.shared
        for root in self.roots.values():
            link(storage, root)


def outside_of(x: Any, around: Trace) -> list[Storage]:
    """The memory of ``around``, or around that, which an array may be."""
    found = memory(x)
    return [root for root in may_be(found) if around.is_inside(root.trace)] if found else []


def together(one: Any, other: Any) -> bool:
    """Whether two leaves may be the same memory."""
    a, b = memory(one), memory(other)
    return a is not None and b is not None and are_one(a, b)


class Turn(NamedTuple):
    """One array that goes from step to step: where it starts, enters a step, and ends."""

    place: Place
    slot: Slot
    first: Any
    entered: Storage
    end: Any


class Turns:
    """The arrays that a loop carries, as its body was recorded."""

    def __init__(self, turns: Sequence[Turn], body: Trace) -> None:
        self.turns, self.body = turns, body

    def grow(self, origins: dict[Place, Origin]) -> bool:
        """Note what else a step may start with, now that it is known what it ends with."""
        assert self.body.parent is not None
        found = False
        for turn in self.turns:
            found |= origins[turn.place].add(turn.end, self.body.parent)
        for one, other in combinations(self.turns, 2):
            if together(one.end, other.end) and one.place not in origins[other.place].others:
                origins[other.place].others.add(one.place)
                origins[one.place].others.add(other.place)
                found = True
        return found

    def changed(self, spoilt: Iterable[Storage]) -> list[Storage]:
        """Memory from outside that steps write into by other names than its own.

        AliasError if the body reads it: it sees what was there before the first step.
        """
        assert self.body.parent is not None
        seen = {root for _, root, _ in self.body.mirrors} | self.body.adopted.keys()
        changed = [root for root in spoilt if self.body.parent.is_inside(root.trace)]
        if any(id(root) in seen for root in changed):
            raise AliasError.here(
                "the loop binds a name to an array that its body also reads by another name, "
                "and writes into it. Which of them a step sees is not recorded. Bind a copy: "
                "b = a.copy()."
            )
        return changed

    def before(self, storage: Storage) -> tuple[list[Storage], bool]:
        """What an array of a step is in terms of that step and those before it.

        And whether that may be one and the same in two steps.
        """
        entered = {id(turn.entered): turn for turn in self.turns}
        found: list[Storage] = []
        seen: set[int] = set()
        repeats, pending = False, [storage.root]
        while pending:
            found.append(last := pending.pop())
            starts = [entered[id(x)] for x in may_be(last) if id(x) in entered]
            # memory from around the loop that a step starts with is gone with the first one
            around = any(x.trace is not self.body for x in may_be(last))
            repeats |= around and id(last) not in entered
            for turn in starts:
                repeats |= id(turn.entered) in seen
                end = memory(turn.end)
                if id(turn.entered) not in seen and end is not None:
                    pending.append(end.root)
                seen.add(id(turn.entered))
        return found, repeats

    def of(self, root: Storage, origins: dict[Place, Origin]) -> Turn | None:
        """An array that may be ``root`` at the start of a step."""
        found = (turn for turn in self.turns if id(root) in origins[turn.place].roots)
        return next(found, None)


class Shown(NamedTuple):
    """An array after a loop: its place, what it may be memory of, and how it lies there."""

    place: Place
    end: Any
    first: Any  # what it is if no step is run; None if one is
    roots: list[Storage]

    def settle(self, result: Storage) -> None:
        lies_as(result, [self.end] if self.first is None else [self.end, self.first])
        for root in self.roots:
            link(result, root)


def shown_after(place: Place, end: Any, first: Any, around: Trace) -> Shown:
    roots = {id(x): x for leaf in (end, first) for x in outside_of(leaf, around)}
    return Shown(place, end, first, list(roots.values()))


def pairs_after(shown: Sequence[Shown]) -> list[tuple[Place, Place]]:
    """Which arrays may be the same memory after the loop."""
    return [
        (one.place, other.place)
        for one, other in combinations(shown, 2)
        if together(one.end, other.end) or together(one.first, other.first)
    ]


# --- branches ------------------------------------------------------------------------------------


class Chosen(NamedTuple):
    """An array after a branch, and what it is on each side that gives one."""

    result: Storage
    sides: tuple[Any, ...]

    def roots(self) -> Iterator[Storage | None]:
        """Its memory on each side; None for what has none."""
        for x in self.sides:
            found = memory(x)
            yield None if found is None else found.root


def settle_branch(chosen: Sequence[Chosen], spoilt: Sequence[Sequence[Storage]]) -> None:
    """Note which arrays may be the same memory after the branch.

    What is not known of an array on one side is not known of what may be that array afterwards.
    """
    for root in (x for side in spoilt for x in side):
        spoil(root)
    for one in chosen:
        pairs = zip(one.roots(), spoilt, strict=True)
        if any(root is x for root, side in pairs for x in side):
            spoil(one.result)
        lies_as(one.result, (x for x in one.sides if x is not MISSING))
    partners = [[may_be(root) if root else [] for root in c.roots()] for c in chosen]
    for one, sides in zip(chosen, partners, strict=True):
        for root in (x for side in sides for x in side):
            link(one.result, root)
    for k, one in enumerate(chosen):
        for j in range(k):
            known = zip(partners[k], chosen[j].roots(), strict=True)
            if any(root is x for side, root in known for x in side):
                link(one.result, chosen[j].result)
