"""What names start with that a loop carries, and whether they start with it again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ckad import trees
from ckad.tape.types import DType, Type
from ckad.trace.integers.affine import is_counted
from ckad.trace.memory.context import Trace
from ckad.trace.source.choices import fitted
from ckad.trace.source.control.carried.kinds import Carried, is_maybe
from ckad.trace.source.control.checks import maybe
from ckad.trace.source.memory.rows.stacks import Stack
from ckad.trace.source.names.absence import spread
from ckad.trace.source.names.frame import MISSING
from ckad.trace.source.values import Slot, flatten, slot_of
from ckad.trace.values.tracer import Tracer

FLOAT = Type(DType.F64, ())


class Start(NamedTuple):
    """The kind of a leaf that a loop carries, and what it was at first."""

    slot: Slot | None
    first: object
    widened: bool = False  # an integer, or nothing, that becomes a float


def start_of(slot: Slot | None, leaf: Any) -> Start | None:
    """None for what becomes an array of another type: the next time it need not."""
    if leaf is MISSING:  # a value that is None at first
        return Start(slot, MISSING, widened=True) if slot and slot.type == FLOAT else None
    own = slot_of(leaf)
    if slot is None:
        return Start(None, type(leaf))
    if type(leaf) is int and slot.type == FLOAT:
        return Start(slot, _first(leaf), widened=True)
    if own is None or slot.type != own.type:
        return None
    return Start(slot._replace(type=own.type.with_shape(())), _first(leaf))


def _first(leaf: Any) -> object:
    if np.ndim(leaf) or isinstance(leaf, (Tracer, float)):
        return type(leaf), np.ndim(leaf)
    if type(leaf) is int and is_counted(leaf):  # as a counter from outside, another one each time
        return int
    return type(leaf), leaf


class Varying(NamedTuple):
    """A list in buffers from around a loop: which of its numbers change from step to step.

    The buffers are others in each recording.
    """

    numbers: frozenset[str]


Form = trees.Treedef | Varying


def form_of(kept: Carried) -> Form:
    """The structure of what a name is carried as."""
    if kept.tree.type is Stack:
        layout = trees.unflatten(kept.tree, kept.leaves).layout
        return Varying(frozenset(layout.varies))
    return kept.tree


def fitting(first: Any, form: Form, starts: tuple[Start, ...], around: Trace) -> Carried | None:
    """What a name is carried as, if it starts with what it started with."""
    if first is MISSING:
        return None
    if not isinstance(form, Varying):
        first = fitted(maybe(first) if is_maybe(form) else first, form)
        leaves, tree = spread(first, form)
        return _of_kinds(leaves, tree, starts, around) if tree == form else None
    if type(first) is not Stack:
        return None
    before = first.layout.varies
    first.layout.varies = before | form.numbers
    kept = _of_kinds(*flatten(first), starts, around)
    if kept is None:
        first.layout.varies = before
    return kept


def _of_kinds(
    leaves: list[Any], tree: trees.Treedef, starts: tuple[Start, ...], around: Trace
) -> Carried | None:
    if len(leaves) != len(starts):
        return None
    slots: list[Slot | None] = []
    for (slot, start, is_widened), leaf in zip(starts, leaves, strict=True):
        if leaf is MISSING or start is MISSING:
            if leaf is not start or _has_single(around):
                return None
            slots.append(slot)
            continue
        own = slot_of(leaf)
        if slot is None or own is None:
            if slot is not None or start is not type(leaf):
                return None
            slots.append(None)
            continue
        if start != _first(leaf) or not (is_widened or slot.type.dtype == own.type.dtype):
            return None
        if slot.weak != own.weak and _has_single(around):
            return None
        slots.append(slot if is_widened else slot._replace(type=own.type))
    return Carried(tree, slots, leaves)


def _has_single(trace: Trace | None) -> bool:
    """Whether there is float32, of which Python's numbers and NumPy's make different types."""
    while trace is not None:
        b = trace.builder
        if any(b.type(row).dtype == DType.F32 for row in b.inputs):
            return True
        if any(x.dtype == np.float32 for x in b.constants):
            return True
        trace = trace.parent
    return False
