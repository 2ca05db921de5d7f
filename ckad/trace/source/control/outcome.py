"""What names and lists show after a loop: which memory of NumPy the arrays of its last step are.

A body's end (`Bound`) and what the loop began with go in. Views, lists and objects come out that
show the loop's results as the last step has left them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import Any, NamedTuple

from ckad.errors import AliasError
from ckad.tape.control import UNGUARDED
from ckad.trace.memory.context import Trace
from ckad.trace.memory.storage import Storage, are_one, link, may_be, spoil, spoilt_since
from ckad.trace.source.control.carried.findings import Again, Findings
from ckad.trace.source.control.carried.kinds import End, changes, is_maybe, stays
from ckad.trace.source.control.carried.swaps import Rounds
from ckad.trace.source.control.checks import maybe
from ckad.trace.source.memory.aliases import holders, is_shown, live_names
from ckad.trace.source.memory.appends import Entry
from ckad.trace.source.memory.contents import ITEMS, Contents, Whole, contents
from ckad.trace.source.memory.handed import handed
from ckad.trace.source.memory.objects import Attributes
from ckad.trace.source.memory.rows.stacks import shelve
from ckad.trace.source.memory.sharing import (
    Place,
    Shown,
    Turn,
    Turns,
    memory,
    pairs_after,
    shown_after,
)
from ckad.trace.source.memory.twins import (
    Copies,
    Copy,
    Merged,
    containers,
    is_container,
    merged_containers,
)
from ckad.trace.source.names.absence import spread
from ckad.trace.source.names.frame import MISSING, Key, Region
from ckad.trace.source.outside.kinds import CONTAINERS
from ckad.trace.source.values import is_kept, is_same_array, slot_of
from ckad.trace.values.tracer import Tracer, assign, value

REPEATED = "another item of a list"


class Bound(NamedTuple):
    """What a step binds a name to that has a value after the loop, and its leaves."""

    end: End
    value: Any
    leaves: list[Any]


class Item(NamedTuple):
    """What the steps append to a list by one call."""

    before: list[Storage]  # the array itself, then what it is in terms of earlier steps
    roots: list[Storage]  # memory from around the loop that it may be
    repeats: bool  # whether items of two steps may be one array

    def meets(self, before: Sequence[Storage]) -> bool:
        """Whether it may be an array that is ``before`` in terms of a step and earlier ones."""
        return any(are_one(self.before[0], x) for x in before) if self.before else False


class Outcome:
    """The memory behind names and lists after a loop."""

    def __init__(
        self,
        loop: Findings,
        body: Trace,
        region: Region,
        entered: Mapping[Place, Storage],
        bound: Mapping[Key, Bound],
    ) -> None:
        assert body.parent is not None
        self.loop, self.region, self.around = loop, region, body.parent
        self.turns = Turns(list(_turns(loop, entered, bound)), body)
        if self.turns.grow(loop.origins):
            raise Again
        self._check_kinds(entered, bound)
        self.exact: dict[Place, Tracer] = {}  # arrays that are again ones from around the loop
        self.shown: list[Shown] = []  # the others
        rounds = Rounds(loop, self.turns.turns, body)
        self.given_back = rounds.given_back(self.turns.turns)
        self.spoilt = self._spoilt()
        for key, found in bound.items():
            self._note_shown(key, found, rounds)
        self.pairs = pairs_after(self.shown)
        entries = [e for _, found in region.appends.values() for e in found]
        self.items = [self._item(e) for e in entries]

    def _check_kinds(self, entered: Mapping[Place, Storage], bound: Mapping[Key, Bound]) -> None:
        """CarryError for what is carried as a kind that would take other numbers than its own."""
        for key, carried in self.loop.carried.items():
            leaves = zip(carried.slots, carried.leaves, bound[key].leaves, strict=True)
            for k, (slot, first, end) in enumerate(leaves):
                one, other = slot_of(first), slot_of(end)
                if slot is None or one is None or other is None:
                    continue
                kept = is_kept(one, slot) and is_kept(other, slot) and is_same_array(other, slot)
                if kept and not is_same_array(one, slot):
                    kept = not _stays(entered[key, k], bound.values())
                if not kept:
                    raise changes(key, str(one.type), str(other.type))

    def _spoilt(self) -> list[Storage]:
        """Memory that steps have written into by other names, and that has its value no more."""
        kept = {id(x.storage.root) for x in self.given_back.values()}
        changed = self.turns.changed(spoilt_since(self.region.n_spoilt))
        spoilt = [root for root in changed if id(root) not in kept]
        for root in spoilt:
            turn = self.turns.of(root, self.loop.origins)
            other = turn and next(live_names(root, self.loop.carried, self.loop.steps.node), None)
            if turn is not None and other is not None:
                raise _aliased(turn.place[0][1], other[1])
        return spoilt

    def _note_shown(self, key: Key, found: Bound, rounds: Rounds) -> None:
        runs = self.loop.guard == UNGUARDED and self.loop.length > 0
        before = handed(key[0], self.region.changed[key])
        firsts = [] if runs or before is MISSING else spread(before, found.end.tree)[0]
        firsts = [*firsts, *[None] * len(found.leaves)]
        for k, (leaf, slot) in enumerate(zip(found.leaves, found.end.slots, strict=True)):
            exact = rounds.after(leaf)
            if exact is not None:
                self.exact[key, k] = exact
            elif slot is not None and not slot.scalar:
                self.shown.append(shown_after((key, k), leaf, firsts[k], self.around))

    # --- lists ----------------------------------------------------------------------------------

    def _item(self, entry: Entry) -> Item:
        found = memory(entry.value)
        if found is None:
            return Item([], [], False)
        before, repeats = self.turns.before(found)
        known = {id(x): x for last in before for x in may_be(last)}
        roots = [x for x in known.values() if self.around.is_inside(x.trace)]
        return Item(before, roots, repeats)

    @property
    def writes_carried(self) -> bool:
        """Whether a step writes into an array that it starts with."""
        return any(turn.entered.writes or turn.entered.spoilt for turn in self.turns.turns)

    def check_appends(self) -> None:
        """Lists whose items later steps may write into are more than appended to."""
        adopted = self.turns.body.adopted
        for root, _ in self.region.shelved:
            if self._is_written(self._later(root)):
                raise written_item()
        for target, _ in self.region.appends.values():
            if self.writes_carried:
                raise Whole(target, self.region)
            for item in self.items:
                if any(id(root) in adopted or root.spoilt for root in item.roots):
                    raise Whole(target, self.region)

    def _later(self, root: Storage) -> list[Storage]:
        """An array of a step, and what later steps start with that may be that: itself, too."""
        found = [root]
        for one in found:
            for turn in self.turns.turns:
                end = memory(turn.end)
                if end is not None and are_one(end, one) and turn.entered not in found[1:]:
                    found.append(turn.entered)
        return found

    def _is_written(self, found: Sequence[Storage]) -> bool:
        """Whether steps write into memory that an item of a list may be."""
        adopted = self.turns.body.adopted
        here = [adopted[id(x)].writes for one in found for x in may_be(one) if id(x) in adopted]
        return any(here) or any(x.writes or x.spoilt for x in found[1:])

    # --- after the loop -------------------------------------------------------------------------

    def settle(self, found: Mapping[Place, Tracer], stacks: Sequence[Storage]) -> None:
        """Bind memory to the results: ``found`` of names, ``stacks`` of what was appended."""
        for place, array in self.given_back.items():
            assign(array, value(found[place]))
        for root in self.spoilt:
            spoil(root)
        for shown in self.shown:
            shown.settle(found[shown.place].storage)
        for root, keepers in self.region.shelved:
            later = self._later(root)
            ends = [(memory(x.end), found[x.place].storage.root) for x in self.shown]
            same = [x for end, x in ends if end and any(are_one(end, one) for one in later)]
            shelve([*may_be(root), *same], keepers)
        for one, other in self.pairs:
            link(found[one].storage, found[other].storage)
        self._settle_items(found, list(zip(self.items, stacks, strict=True)))

    def _settle_items(
        self, found: Mapping[Place, Tracer], items: Sequence[tuple[Item, Storage]]
    ) -> None:
        for item, stack in items:
            stack.shared = REPEATED if item.repeats else None
            for root in item.roots:
                link(stack, root)
            for shown in self.shown:
                end = memory(shown.end)
                if end is not None and item.meets(self.turns.before(end)[0]):
                    link(stack, found[shown.place].storage)
        for (one, first), (other, second) in combinations(items, 2):
            if one.meets(other.before) or other.meets(one.before):
                link(first, second)


class Objects:
    """The containers behind names after a loop."""

    def __init__(
        self,
        loop: Findings,
        region: Region,
        started: Mapping[Key, Any],
        bound: Mapping[Key, Bound],
    ) -> None:
        self.loop, self.region, self.bound = loop, region, bound
        copies = {
            key: [Copy(*x) for x in containers(value, self._first(key), bound[key].value)]
            for key, value in started.items()
        }
        self.copies = Copies(chain(*copies.values()))
        for key, found in copies.items():
            for copy in found:
                if id(copy.entered) in region.altered:
                    self._check_altered(key, copy)
        self._shown: list[Merged] = []
        changed: list[Any] = [target for target, _ in region.appends.values()]
        owners = (Attributes, Contents)
        changed += [frame.owner for frame, _ in region.changed if isinstance(frame, owners)]
        other = self.copies.changed(changed)
        if other is not None:
            self._forget_first(other, started, copies)
            raise AliasError.here(
                f"the loop binds a name to a {type(other).__name__} that its body changes by "
                "another name. Which of them a step sees is not recorded. Bind a copy."
            )

    def _forget_first(
        self, first: Any, started: Mapping[Key, Any], copies: Mapping[Key, Sequence[Copy]]
    ) -> None:
        """A container of which a name starts with a copy: it is that copy which steps change."""
        key = (contents(first), ITEMS) if type(first) in CONTAINERS else None
        if key in self.loop.carried and stays(started[key], key[0].names[key[1]]):
            names = (k for k, found in copies.items() if any(x.first is first for x in found))
            self.loop.spoilt.update(names)
            self.loop.forget(key)
            raise Again

    def _check_altered(self, key: Key, copy: Copy) -> None:
        """AliasError where another name may show a container that steps bind anew and change."""
        other = next(holders(self.copies.objects(copy.entered), key, self.loop.steps.node), None)
        if other is not None or self.copies.is_met(copy):
            raise AliasError.here(
                f"the loop binds a name to other {type(copy.entered).__name__}s and changes "
                f"them, and {repr(other) if other else 'another name'} may show one of these. "
                "Bind a copy."
            )

    def _first(self, key: Key) -> Any:
        first = self.region.changed[key]
        return maybe(first) if is_maybe(self.bound[key].end.tree) else first

    @property
    def _runs(self) -> bool:
        return self.loop.guard == UNGUARDED and self.loop.length > 0

    def after(self, key: Key, result: Any) -> Any:
        """What a name is bound to: the very object if that is known, else ``result``, like it."""
        end = self.bound[key].value
        exact = self.copies.after(end, self.loop.length) if self._runs else MISSING
        if exact is not MISSING:
            return exact
        if self._runs and is_container(end) and is_shown(end):
            return end  # one from around the loop
        first = MISSING if self._runs else self._first(key)
        self._shown += merged_containers(result, end, *([] if first is MISSING else [first]))
        return result

    def settle(self) -> None:
        self.copies.settle(self._shown)


def _turns(
    loop: Findings, entered: Mapping[Place, Storage], bound: Mapping[Key, Bound]
) -> Iterator[Turn]:
    for (key, k), storage in entered.items():
        carried, slot = loop.carried[key], loop.carried[key].slots[k]
        assert slot is not None
        yield Turn((key, k), slot, carried.leaves[k], storage, bound[key].leaves[k])


def _stays(entered: Storage, bound: Iterable[Bound]) -> bool:
    """Whether an array that a step starts with is written into, or bound to a name again."""
    ends = (memory(leaf) for found in bound for leaf in found.leaves)
    again = any(end is not None and are_one(end, entered) for end in ends)
    return again or entered.writes > 0 or entered.spoilt is not None


def written_item() -> AliasError:
    return AliasError.here(
        "a list gets an array that is written into later, which its item would show. Append a "
        "copy: xs.append(u.copy())."
    )


def _aliased(name: str, other: str) -> AliasError:
    return AliasError.here(
        f"the loop binds {name!r} to other arrays and writes into them, and {other!r} shows "
        f"the memory that {name!r} starts with. Start with a copy: {name} = {name}.copy()."
    )
