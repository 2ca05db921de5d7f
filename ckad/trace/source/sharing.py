"""Arrays that loops and branches bind anew: what else may be their memory in NumPy.

Names are carried and chosen by value, so what they are bound to afterwards has a storage of its
own. In NumPy it may be memory that others see: a name outside of the loop, an attribute, an element
of a list. Where that could show in the body, the loop is not recorded at all; where it could show
later, the storages become rivals, and a write into one of them spoils the others (``context``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ckad.errors import AliasError
from ckad.place import at_place
from ckad.trace.memory.context import Trace
from ckad.trace.memory.storage import Storage, link, may_be, spoil, spoil_first
from ckad.trace.source.frame import Key
from ckad.trace.values.tracer import Tracer


def memory(x: Any) -> Storage | None:
    """The storage of an array; None for numbers and what is not traced."""
    return x.storage if isinstance(x, Tracer) and not x.scalar else None


# --- loops ---------------------------------------------------------------------------------------


class Turn(NamedTuple):
    """One array that goes from step to step: where it starts, enters a step, and ends."""

    key: Key
    first: Storage | None
    entered: Storage
    end: Storage | None

    @property
    def is_written(self) -> bool:
        return self.entered.writes > 0 or self.entered.spoilt is not None


class Turns:
    """The arrays that a loop carries, as its body was recorded."""

    def __init__(self, turns: Sequence[Turn], body: Trace) -> None:
        self.turns, self.body = turns, body
        self._entered = {id(t.entered): t for t in turns}
        self._next = {id(t): self._source(t) for t in turns}

    def _source(self, turn: Turn) -> Turn | None:
        return None if turn.end is None else self._entered.get(id(turn.end.root))

    def reached(self, turn: Turn) -> list[Turn]:
        """The carried arrays whose first memory ``turn``'s name may show at some step."""
        found = [turn]
        while (after := self._next[id(found[-1])]) is not None and after not in found:
            found.append(after)
        return found

    def check(self, spoilt: Collection[Storage]) -> None:
        """AliasError where a step may write into memory that a later one reads by another name."""
        seen = {root for _, root in self.body.mirrors} | self.body.adopted.keys()
        changed = {id(root) for root in spoilt}
        changed |= {key for key, own in self.body.adopted.items() if own.writes}
        if any(id(root) in seen for root in spoilt):
            raise _shares("an array that its body reads")
        for turn in self.turns:
            if turn.end is not None and id(turn.end.root) in changed:
                raise _shares(repr(turn.key[1]))
            if turn.is_written:
                self._check_written(turn, seen)

    def _check_written(self, turn: Turn, seen: Collection[int]) -> None:
        for other in self.reached(turn):
            roots = [*(may_be(other.first) if other.first else ())]
            roots += [other.end.root] if other.end is not None else []
            if any(id(root) in seen for root in roots):
                raise _shares(repr(turn.key[1]))
        for other in self.turns:
            if other is not turn and _same(other.end, turn.end):
                raise _shares(f"{turn.key[1]!r} and {other.key[1]!r}")
            if any(other is not x and _same(other.first, x.first) for x in self.reached(turn)):
                raise _shares(f"{turn.key[1]!r} and {other.key[1]!r}")

    def outside(self, end: Storage | None, first: Storage | None, runs: bool) -> list[Storage]:
        """Memory from outside of the body that an array may be after the loop.

        It ``runs`` if it is certain that at least one step is run.
        """
        found = may_be(first) if first is not None and not runs else []
        if end is None:
            return found
        if end.root.trace is not self.body:
            return found + may_be(end)
        start = self._entered.get(id(end.root))
        for turn in self.reached(start) if start else ():
            found += may_be(turn.first) if turn.first is not None else []
            if turn.end is not None and turn.end.root.trace is not self.body:
                found += may_be(turn.end)
        return found

    def written(self, but: Collection[Key]) -> Iterator[Turn]:
        return (turn for turn in self.turns if turn.is_written and turn.key not in but)

    def spoil(self, but: Collection[Key]) -> None:
        """The memory that steps have written into without its storage."""
        for turn in self.written(but):
            for other in self.reached(turn):
                if other.first is not None:
                    spoil_first(other.first.root)

    def take_turns(self, one: Storage | None, other: Storage | None) -> bool:
        """Whether two ends are arrays that only change names from step to step: never the same."""
        turns = [self._entered.get(id(x.root)) for x in (one, other) if x is not None]
        if len(turns) < 2 or turns[0] is turns[1] or None in turns:
            return False
        cycles = [self.reached(turn) for turn in turns if turn is not None]
        return all(self._next[id(cycle[-1])] is cycle[0] for cycle in cycles)


def _same(one: Storage | None, other: Storage | None) -> bool:
    return one is not None and other is not None and one.root is other.root


class Shown(NamedTuple):
    """An array after a loop, and what it was in the body."""

    result: Storage
    end: Storage | None
    outside: list[Storage]


def settle_loop(turns: Turns, shown: Sequence[Shown]) -> None:
    """Note which arrays may be the same memory after the loop."""
    for one in shown:
        for root in one.outside:
            link(one.result, root)
    for k, one in enumerate(shown):
        for other in shown[:k]:
            common = {id(x) for x in one.outside} & {id(x) for x in other.outside}
            if _same(one.end, other.end) or (common and not turns.take_turns(one.end, other.end)):
                link(one.result, other.result)


def _shares(what: str) -> AliasError:
    return AliasError(
        at_place(
            f"the loop binds {what} to memory that has another name, and writes into it by one of "
            "the two. Which of them a step sees is not recorded. Bind a copy: b = a.copy()."
        )
    )


# --- branches ------------------------------------------------------------------------------------


class Chosen(NamedTuple):
    """An array after a branch, and the root that it is on each side; None for a new array."""

    result: Storage
    roots: tuple[Storage | None, ...]


def settle_branch(chosen: Sequence[Chosen], spoilt: Iterable[Storage]) -> None:
    """Note which arrays may be the same memory after the branch."""
    for root in spoilt:
        spoil(root)
    partners = [[may_be(root) if root else [] for root in c.roots] for c in chosen]
    for one, sides in zip(chosen, partners, strict=True):
        for root in (x for side in sides for x in side):
            link(one.result, root)
    for k, one in enumerate(chosen):
        for j in range(k):
            pairs = zip(partners[k], chosen[j].roots, strict=True)
            if any(root is x for side, root in pairs for x in side):
                link(one.result, chosen[j].result)
