"""A name that goes from step to step: the kind of its value, or why there is none."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ckad import trees
from ckad.errors import CarryError, CkadError
from ckad.tape.types import DType, Type
from ckad.trace.memory.foreseen import UNKNOWN
from ckad.trace.source.choices import fitted, unified
from ckad.trace.source.control.checks import maybe
from ckad.trace.source.memory.contents import (
    Contents,
    Stacked,
    changes_length,
    is_unhoused,
    said,
)
from ckad.trace.source.memory.growing import check_growth, check_outgrown
from ckad.trace.source.memory.objects import Attributes
from ckad.trace.source.memory.rows import stacks
from ckad.trace.source.memory.sharing import part_of_root
from ckad.trace.source.memory.twins import containers
from ckad.trace.source.names.absence import OrNone, shared, spread
from ckad.trace.source.names.frame import (
    MISSING,
    Key,
    Maybe,
    Unclear,
    region,
)
from ckad.trace.source.outside.equal import same
from ckad.trace.source.skipped import Skipped
from ckad.trace.source.values import (
    Slot,
    flatten,
    is_kept,
    is_same_array,
    join,
    join_values,
    slot_of,
)
from ckad.trace.values import grown
from ckad.trace.values.complex import ComplexTracer
from ckad.trace.values.fields import Fields
from ckad.trace.values.short import Short
from ckad.trace.values.tracer import Tracer, known

INDEX = Type(DType.I64, ())


FLAG = Slot(Type(DType.BOOL, ()), True, False)


COUNT = Slot(INDEX, True, True)


class Carried(NamedTuple):
    """A name whose value goes from step to step: its structure, the kinds of its leaves."""

    tree: trees.Treedef
    slots: list[Slot | None]
    leaves: list[Any]  # the first value; what is not traced stays

    def starting_with(self, first: Any) -> Carried | None:
        """The same for a name that is bound to ``first`` now, if that fits."""
        first = maybe(first) if is_maybe(self.tree) else first
        first = fitted(first, self.tree)
        leaves, tree = spread(first, self.tree)
        if type(first) is Unclear or tree != self.tree:
            return None
        slots: list[Slot | None] = []
        for slot, x in zip(self.slots, leaves, strict=True):
            own = slot if x is MISSING else slot_of(x)
            joined = None if slot is None or own is None else join(slot, own, broadcasts=True)
            if joined is None:
                return None
            slots.append(joined)
        return Carried(tree, slots, leaves)

    def or_unbound(self) -> Carried:
        """The same for a name that may not be bound after some step."""
        leaves, tree = flatten(maybe(trees.unflatten(self.tree, self.leaves)))
        return Carried(tree, [*self.slots, slot_of(True)], leaves)


class End(NamedTuple):
    """What a name is bound to at the end of a step: result rows, from ``first`` on."""

    tree: trees.Treedef
    leaves: list[Any]
    slots: list[Slot | None]
    first: int


def carried_from(key: Key, before: Any, end: Any) -> Carried:
    """A name as what holds both its first value and that after a step."""
    for x in (before, end):
        if type(x) is Unclear:
            raise x.error
    if end is MISSING:
        raise CarryError.here(f"the loop deletes {key[1]!r}, which its next step reads.")
    if before is MISSING:
        kinds, tree = flatten(maybe(end))
        return Carried(tree, [slot_of(x) for x in kinds], [*[MISSING] * (len(kinds) - 1), False])
    if type(before) is Maybe or type(end) is Maybe:
        before, end = maybe(before), maybe(end)
    check_outgrown(before, end)
    grown.unified(before, end)
    inner = region()
    before, end = stacks.unified(*unified(before, end, inner.made if inner else ()))
    partial = shared(before, end)
    leaves, tree = flatten(before) if partial is None else spread(before, partial)
    new, new_tree = flatten(end) if partial is None else spread(end, partial)
    if tree != new_tree:
        raise restructured(key, tree, new_tree)
    slots: list[Slot | None] = []
    for a, b in zip(leaves, new, strict=True):
        if a is MISSING or b is MISSING:
            leaves[len(slots)] = b if b is not MISSING and slot_of(b) is None else a
            slots.append(slot_of(b if a is MISSING else a))
            continue
        s, t = slot_of(a), slot_of(b)
        if type(b) is Skipped:
            leaves[len(slots)] = b
            slots.append(None)
            continue
        if s is None or t is None:
            if not same(a, b):
                error = changes(key, repr(a), repr(b))
                check_growth(key, before, end, error)
                raise error
            slots.append(None)
            continue
        joined = join_values(a, b)
        if joined is None:
            error = changes(key, str(s.type), str(t.type))
            check_growth(key, before, end, error)
            raise error
        slots.append(joined)
    return Carried(tree, slots, leaves)


def is_maybe(tree: trees.Treedef) -> bool:
    return tree.type is Maybe


def restructured(key: Key, before: trees.Treedef, after: trees.Treedef) -> CkadError:
    """What a loop carries has another structure after a step."""
    frame, _ = key
    if isinstance(frame, Contents):
        error = changes_length(type(frame.owner).__name__)
        if isinstance(frame.owner, (list, deque)) and not is_unhoused(frame.owner):
            raise Stacked(frame.owner, error)
        if type(frame.owner) is defaultdict:  # the first step may make what others find
            return CarryError(*error.args)
        return error
    return changes(key, trees.describe(before), trees.describe(after))


def binds_first(key: Key) -> CkadError:
    """Steps look whether a name is bound, and bind it."""
    return CarryError.here(
        f"a step of the loop asks whether {said(key)} is bound, and steps bind it. Bind it "
        "before the loop."
    )


def changes(key: Key, before: str, after: str) -> CkadError:
    """What a loop carries is of another kind after a step."""
    name = said(key).removeprefix("the variable ")
    return CarryError.here(
        f"the loop carries {name} from step to step, and it changes from {before} to {after}. "
        "Start with the shape, dtype and structure that the body gives it."
    )


def stays(before: Any, end: Any) -> bool:
    """Whether a step ends with what it starts with."""
    if before is end or same(before, end):
        return True
    if type(before) is ComplexTracer and type(end) is ComplexTracer:
        return all(map(stays, before.parts, end.parts))
    if type(before) is Short and type(end) is Short:
        return before.dtype == end.dtype and stays(before.numbers, end.numbers)
    if type(before) is OrNone and type(end) is OrNone:
        pairs = (before.value, end.value), (before.present, end.present)
        return all(stays(*pair) for pair in pairs)
    if type(before) is grown.Grown and type(end) is grown.Grown and before.buffer is end.buffer:
        return stays(before.count, end.count)
    if type(before) is Fields and type(end) is Fields and before.record == end.record:
        return all(map(stays, before.fields, end.fields))
    if isinstance(before, tuple) and type(before) is type(end) and len(before) == len(end):
        keys = getattr(before, "keys", None) == getattr(end, "keys", None)
        return keys and all(map(stays, before, end))
    if type(before) is not Tracer or type(end) is not Tracer:
        return False
    if before.storage is end.storage:
        return before.path == end.path
    part = part_of_root(before)
    return (
        before.storage.root is end.storage.root and part is not None and part == part_of_root(end)
    )


def remains(before: Any, end: Any, changed: Iterable[Key]) -> bool:
    """Whether a name shows what it showed before a step, or what is equal to it and will be so:
    nothing that the step has changed is another one."""
    if not stays(before, end):
        return False
    owners = {id(frame.owner) for frame, _ in changed if isinstance(frame, (Attributes, Contents))}
    pairs = [(x, y) for x, y in containers(before, end) if x is not y] if owners else []
    return all(id(x) not in owners and id(y) not in owners for x, y in pairs)


def one_kind(one: Slot | None, other: Slot | None) -> Slot | None:
    """The kind of a name that has a value of either kind, and of neither another one."""
    if one is None or other is None or not is_same_array(one, other):
        return None
    joined = join(one, other)
    return joined if joined and is_kept(one, joined) and is_kept(other, joined) else None


def number(x: Any) -> Any:
    """A number that is known while recording, as Python's."""
    numbers = known(x) if isinstance(x, Tracer) else x
    if numbers is UNKNOWN or numbers is None or np.ndim(numbers):
        return UNKNOWN
    return np.asarray(numbers).item()
