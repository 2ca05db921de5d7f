"""What both sides of a branch change, merged: the results of one COND row.

A `Side` is what one recording has left; a `Merge` binds names and arrays to what holds either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ckad import trees
from ckad.errors import CarryError, UnrecordableError
from ckad.tape.ops import Op
from ckad.tape.types import Type
from ckad.trace.memory.context import Trace, current, mark_place, resumed, storage_in
from ckad.trace.memory.storage import Storage
from ckad.trace.primitives.part.structures import opened
from ckad.trace.source.choices import unified
from ckad.trace.source.control.checks import maybe
from ckad.trace.source.control.filled import no_functions, note_number
from ckad.trace.source.control.flow import Flow, definite
from ckad.trace.source.memory.contents import Contents, length_unknown, said
from ckad.trace.source.memory.ended import Ended
from ckad.trace.source.memory.growing import in_branch
from ckad.trace.source.memory.housing import is_alike, merge_growth
from ckad.trace.source.memory.objects import Attributes
from ckad.trace.source.memory.rows import stacks
from ckad.trace.source.memory.rows.numbered import Entries
from ckad.trace.source.memory.sharing import Chosen, settle_branch
from ckad.trace.source.memory.twins import Merged, merged_containers, settle_merged
from ckad.trace.source.names.absence import shared, spread
from ckad.trace.source.names.frame import (
    MISSING,
    RETURN,
    Key,
    Ledger,
    Maybe,
    Region,
    Unclear,
    region,
)
from ckad.trace.source.outside.equal import same
from ckad.trace.source.outside.kinds import CONTAINERS, SEQUENCES
from ckad.trace.source.skipped import Skipped
from ckad.trace.source.values import (
    Slot,
    flatten,
    is_same_array,
    join,
    join_values,
    slot_of,
)
from ckad.trace.values.apply import astype
from ckad.trace.values.filled import is_filled
from ckad.trace.values.grown import Grown, aligned, settle_tips
from ckad.trace.values.grown import unified as unified_rows
from ckad.trace.values.tracer import Tracer, value

#: The key under which the value of an expression, or the flow of a side, is merged.
VALUE = "value"


class Side(NamedTuple):
    """One side: its trace, what it gives, and what the names it changed are bound to then."""

    trace: Trace
    result: Any
    ends: dict[Key, Any]
    region: Region
    raises: bool  # whether the program stops on this side
    ended: Ended  # the containers that it changes, as it leaves them


class _Leaf(NamedTuple):
    """One traced leaf of a merged value: its kind, and which result of the COND it is."""

    slot: Slot
    result: int
    sides: tuple[Any, ...] = ()  # what it is on each side


class _Joined(NamedTuple):
    """A merged value: its structure, and leaves that are traced or the same on both sides."""

    tree: trees.Treedef
    leaves: list[Any]
    sides: tuple[Any, ...]


class Merge:
    """Two recorded sides on their way to one COND row."""

    def __init__(self, predicate: Tracer, sides: list[Side]) -> None:
        self.predicate, self.sides = predicate, sides
        self.results = [side.result for side in sides]
        self.outputs: list[list[int]] = [[], []]
        self.slots: list[Slot] = []
        self.bindings: dict[Key, Any] = {}
        self.rows: list[int] = []
        self.flow: Flow | None = None
        self.chosen: list[Chosen] = []
        self.containers: list[Merged] = []
        self.tips: list[tuple[Grown, bool]] = []
        self._flow: tuple[frozenset[int], int] | None = None

    def output(self, slot: Slot, xs: Sequence[Any]) -> int:
        """A result of the COND: ``xs`` on the two sides."""
        for side, rows, x in zip(self.sides, self.outputs, xs, strict=True):
            with resumed(side.trace):
                rows.append(slot.undefined() if x is MISSING else slot.row(x))
        self.slots.append(slot)
        return len(self.slots) - 1

    def flows(self, flows: Sequence[Flow]) -> None:
        kinds = flows[0].kinds | flows[1].kinds
        if len(kinds) > 1:
            kinds -= {Flow.RAISE}
        if len(kinds) == 1:
            (kind,) = kinds
            self.flow = None if kind == Flow.NEXT else definite(kind)
            return
        signals = [MISSING if f.always(Flow.RAISE) else f.signal for f in flows]
        slot = slot_of(0)
        assert slot is not None
        self._flow = kinds, self.output(slot, signals)

    def names(self) -> None:
        inner = region()
        if inner is not None:
            merge_growth([side.region.growth for side in self.sides], inner.growth)
        ends = [side.ends for side in self.sides]
        for key in dict.fromkeys((*ends[0], *ends[1])):
            frame, name = key
            before = frame.names.get(name, MISSING)
            values = [e.get(key, before) for e in ends]
            self.bindings[key] = self._binding(key, values)
            grown = isinstance(frame, Contents) and self._is_grown(frame)
            if not all(key in e for e in ends) and before is not MISSING and not grown:
                frame.note_read(name, hands_on=True)

    def _is_grown(self, frame: Contents) -> bool:
        """Whether the sides do nothing with a list but append to it; the body around them, too."""
        own, inner = id(frame.owner), region()
        changed = [s.region for s in self.sides if any(f is frame for f, _ in s.region.changed)]
        if inner is None or not all(own in side.grown for side in changed):
            return False
        if all(f is not frame for f, _ in inner.changed):
            inner.grown.add(own)
        return own in inner.grown

    def _binding(self, key: Key, values: Sequence[Any]) -> Any:
        frame, name = key
        if values[0] is values[1]:
            return values[0]
        if self._is_known_list(values):
            (known,) = [x for x in values if x is not MISSING]
            return Maybe(known, self.joined(name, name, *(x is known for x in values)))
        try:
            values = [side.ended.of(x) for side, x in zip(self.sides, values, strict=True)]
        except UnrecordableError as error:
            return Unclear(error)
        if type(frame) is not Ledger:
            for side, x in zip(self.sides, reversed(values), strict=True):
                if side.raises:
                    return self.of_other_side(x, side is self.sides[1])
        for x in values:
            if type(x) is Unclear:
                return x
        if any(x is MISSING for x in values) and name == RETURN:
            (bound,) = [x for x in values if x is not MISSING]
            return self.of_other_side(bound, values[1] is MISSING)
        if any(x is MISSING or type(x) is Maybe for x in values):
            return self._half_bound(key, values)
        shown = "what the function returns" if name == RETURN else said(key)
        if isinstance(frame, Contents) and not self._is_alike(values):
            return Unclear(length_unknown(frame))
        joined = self.joined(name, shown, *values)
        if type(joined) is Unclear:
            in_branch(key, frame.names.get(name, MISSING), values, joined.error)
        return joined

    def _is_alike(self, values: Sequence[Any]) -> bool:
        """Whether a container has as many items on both sides, or is kept as rows of buffers."""
        if not is_alike(*values):
            return False
        stacks.unified(*values)
        return True

    def of_other_side(self, bound: Any, first: bool) -> Any:
        """A value that only the first, or the second, side gives; it is of no account elsewhere."""
        if bound is MISSING or type(bound) is Unclear:
            return bound
        leaves, tree = flatten(bound)
        slots = [slot_of(x) if isinstance(x, Tracer) else None for x in leaves]
        found = [
            x if s is None else self._output_leaf(s, (x, MISSING) if first else (MISSING, x))
            for s, x in zip(slots, leaves, strict=True)
        ]
        return _Joined(tree, found, (bound,))

    def _output_leaf(self, slot: Slot, xs: Sequence[Any]) -> _Leaf:
        return _Leaf(slot, self.output(slot, xs), tuple(xs))

    def _half_bound(self, key: Key, values: Sequence[Any]) -> Any:
        """A name that may not be bound: it can be read where it is."""
        name = key[1]
        full = next((x for x in values if x is not MISSING), None)
        filler = full.value if type(full) is Maybe else full
        both = [Maybe(filler, False) if x is MISSING else maybe(x) for x in values]
        flags = self.joined(name, name, both[0].bound, both[1].bound)
        leaves, tree = flatten(filler)
        parts = [MISSING if x is MISSING else flatten(maybe(x).value) for x in values]
        if any(p is not MISSING and p[1] != tree for p in parts):
            whole = self.joined(name, said(key), both[0].value, both[1].value)
            return whole if type(whole) is Unclear else Maybe(whole, flags)
        found: list[Any] = []
        for k in range(len(leaves)):
            xs = [MISSING if p is MISSING else p[0][k] for p in parts]
            made = self._leaf(xs)
            if made is None:
                return _unclear(said(key), repr(xs[0]), repr(xs[1]))
            found.append(made)
        sides = [maybe(x).value for x in values if x is not MISSING]
        return Maybe(_Joined(tree, found, tuple(sides)), flags)

    def _is_known_list(self, values: Sequence[Any]) -> bool:
        """Whether one side alone binds a name, to a list from before that it changes: its items are
        merged as what it holds."""
        one, other = values if values[1] is MISSING else values[::-1]
        is_alone = other is MISSING and type(one) in SEQUENCES
        return is_alone and any(
            side.ended.has(one) and id(one) not in side.region.made for side in self.sides
        )

    def _leaf(self, xs: Sequence[Any]) -> Any:
        """One leaf of both sides, either of which may have none."""
        given = [x for x in xs if x is not MISSING]
        slots = [slot for slot in map(slot_of, given) if slot is not None]
        if len(slots) < len(given):
            return given[0] if len(given) == 1 or same(*given) else None
        slot = slots[0] if len(slots) == 1 else join(slots[0], slots[1])
        return None if slot is None else self._output_leaf(slot, xs)

    def _changed(self) -> set[int]:
        """The objects of which a side binds attributes, by identity."""
        keys = [frame for side in self.sides for frame, _ in side.ends]
        return {id(frame.owner) for frame in keys if isinstance(frame, Attributes)}

    def joined(self, name: str, said: str, x: Any, y: Any) -> _Joined | Unclear:
        """``x`` of the first side and ``y`` of the second as one value."""
        x, y = no_functions([side.trace for side in self.sides], x, y)
        given = x, y = opened(x, y)
        try:
            made = {k for side in self.sides for k in side.region.made}
            x, y = unified(x, y, made, self._changed())
        except CarryError as error:
            return Unclear(error)
        sides = given if isinstance(x, CONTAINERS) else (x, y)
        unified_rows(x, y)
        partial = shared(x, y)
        xs, tree = flatten(x) if partial is None else spread(x, partial)
        ys, other = flatten(y) if partial is None else spread(y, partial)
        if tree != other:
            if type(x) is Entries and type(y) is Entries and x.keys != y.keys:
                return _of_other_keys(said, x.keys, y.keys)
            return _unclear(said, trees.describe(tree), trees.describe(other))
        leaves: list[Any] = []
        for a, b in zip(xs, ys, strict=True):
            if same(a, b) or type(a) is Skipped:
                leaves.append(a)
                continue
            if a is MISSING or b is MISSING:
                leaves.append(self._leaf((a, b)))
                continue
            if type(b) in (Skipped, Unclear) or type(a) is Unclear:
                leaves.append(a if type(a) is Unclear else b)
                continue
            s, t = slot_of(a), slot_of(b)
            if s is None or t is None:
                return _unclear(said, repr(a), repr(b))
            slot = join_values(a, b) or join_values(b, a)
            if slot is None or not (is_same_array(s, slot) and is_same_array(t, slot)):
                return _unclear(said, str(s.type), str(t.type))
            leaves.append(self._output_leaf(slot, (a, b)))
        return _Joined(tree, leaves, sides)

    # --- the row --------------------------------------------------------------------------------

    def finish(self) -> None:
        """Append the COND row and bind what the sides changed."""
        one, other = (side.trace for side in self.sides)
        roots = {**one.adopted, **other.adopted}
        changed = [
            key
            for key in roots
            if any(t.adopted[key].writes for t in (one, other) if key in t.adopted)
        ]
        for key in changed:
            for side, rows in zip(self.sides, self.outputs, strict=True):
                with resumed(side.trace):
                    rows.append(storage_in(side.trace, roots[key].root).row)
        self._emit(roots, changed)
        for (frame, name), end in self.bindings.items():
            bound = self.bound(end)
            frame.note_change(name)
            frame.restore(name, bound)
        if self._flow is not None:
            kinds, at = self._flow
            self.flow = Flow(kinds, self.slots[at].show(self.rows[at]))

    def _emit(self, roots: Mapping[int, Storage], changed: Sequence[int]) -> None:
        if not self.outputs[0]:
            return
        trace = current()
        mark_place(trace)
        b = trace.builder
        operands = [storage_in(trace, root.root) for root in roots.values()]
        for side in self.sides:
            with resumed(side.trace):
                for key in [key for key in roots if key not in side.trace.adopted]:
                    side.trace.adopt(roots[key].root)
        captured = list(dict.fromkeys(x for s in self.sides for x in s.trace.captured))
        bodies = []
        for side, outputs in zip(self.sides, self.outputs, strict=True):
            own = side.trace
            inputs: list[int | Type] = [own.adopted_inputs[key] for key in roots]
            inputs += [own.captured.get(x, b.type(x)) for x in captured]
            bodies.append(b.body(own.tape(outputs, inputs)))
        rows = [value(astype(self.predicate, bool)), *(s.row for s in operands), *captured]
        self.rows = b.control(Op.COND, rows, bodies, b.bodies[bodies[0]].output_types)
        for key, row in zip(changed, self.rows[len(self.rows) - len(changed) :], strict=True):
            local = storage_in(trace, roots[key].root)
            local.check_writable()
            local.write(row)

    def settle(self) -> None:
        """Note which arrays may be the same memory, now that all are bound."""
        for root, keepers in (x for side in self.sides for x in side.region.shelved):
            same = [c.result.root for c in self.chosen if any(x is root for x in c.roots())]
            stacks.shelve([root, *same], keepers)
        settle_tips(self.tips)
        settle_branch(self.chosen, [side.region.spoilt for side in self.sides])
        settle_merged(self.containers)

    def bound(self, end: Any) -> Any:
        """The value behind a binding, now that the row is there."""
        if type(end) is Maybe:
            return Maybe(self.bound(end.value), self.bound(end.bound))
        if not isinstance(end, _Joined):
            return end
        found = trees.unflatten(end.tree, [self._shown(x) for x in end.leaves])
        self.containers += [
            Merged(x.result, tuple(map(self._original, x.sides)))
            for x in merged_containers(found, *end.sides)
        ]
        self.tips += [(grown, self._were_tips(olds)) for grown, *olds in aligned(found, *end.sides)]
        return found

    def _original(self, x: Any) -> Any:
        for side in self.sides:
            x = side.ended.original(x)
        return x

    def _were_tips(self, olds: Sequence[Any]) -> bool:
        """Whether arrays that grow were the longest in their buffer at the ends of their sides."""
        sides = [side.trace for side in self.sides]
        if len(olds) < len(sides):
            return any(old.buffer.tip(trace) is old for old in olds for trace in sides)
        pairs = zip(olds, sides, strict=True)
        return all(type(old) is Grown and old.buffer.tip(trace) is old for old, trace in pairs)

    def _shown(self, leaf: Any) -> Any:
        if not isinstance(leaf, _Leaf):
            return leaf
        shown = leaf.slot.show(self.rows[leaf.result])
        if not shown.scalar:
            self.chosen.append(Chosen(shown.storage, leaf.sides))
        return note_number(shown, self.predicate, leaf.sides) if is_filled(shown) else shown


def _unclear(said: str, one: str, other: str) -> Unclear:
    other = "another one" if one == other else other
    return _unmerged(
        f"{said} is {one} on one side of a branch and {other} on the other",
        "Give both sides the same structure, shape and kind.",
    )


def _of_other_keys(said: str, one: Sequence[Any], other: Sequence[Any]) -> Unclear:
    here, there = (", ".join(map(repr, keys)) or "none" for keys in (one, other))
    both = ", ".join(f"{key!r}: 0.0" for key in dict.fromkeys((*one, *other)))
    return _unmerged(
        f"{said} has the keys {here} on one side of a branch and {there} on the other",
        f"Make it with all keys before: {{{both}}}.",
    )


def _unmerged(what: str, remedy: str) -> Unclear:
    return Unclear(CarryError.here(f"{what}, and the condition is traced. {remedy}"))
