"""Dicts whose keys are numbers of steps, as rows of buffers: ``{t: x}`` in row ``t - low``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ckad import trees
from ckad.errors import UnrecordableError
from ckad.trace.integers.affine import form_of
from ckad.trace.integers.spans import number, plus
from ckad.trace.memory.context import current
from ckad.trace.source.memory.rows.kinds import Kind
from ckad.trace.source.memory.rows.stacks import RowLayout, Stack, shelve, stacked
from ckad.trace.source.names.frame import Region, enclosing
from ckad.trace.values.tracer import Number, Tracer, fresh, value


class Entries(tuple[Any, ...]):
    """The values of a dict, in the order of their ``keys``."""

    keys: tuple[Any, ...]


def entries_of(keys: Iterable[Any], values: Iterable[Any]) -> Entries:
    found = Entries(values)
    found.keys = tuple(keys)
    return found


trees.register(Entries, lambda x: (tuple(x), x.keys), entries_of)


class StepKey(NamedTuple):
    """``factor`` times the number of a loop's step plus ``const``; a known number without loop."""

    loop: Region | None
    factor: int
    const: int

    def numbers(self) -> np.ndarray[Any, Any]:
        """What it is in each step."""
        count = 1 if self.loop is None else steps_of(self.loop)
        return self.factor * np.arange(count) + self.const

    def differs(self, other: StepKey) -> bool:
        """Whether both are never one in the same steps."""
        if self.loop is other.loop and self.factor == other.factor:
            return self.const != other.const
        return not np.isin(self.numbers(), other.numbers()).any()


class Several(NamedTuple):
    """What a loop within the body has put in."""

    keys: tuple[int, ...]


def steps_of(loop: Region) -> int:
    """How many steps a loop has at most; 0 where that is not known."""
    found = loop.trace.index_range if loop.trace is not None else None
    return found[1] if found is not None else 0


def key_of(index: Any) -> StepKey | None:
    """A key that follows from the number of one loop's step, or is known; None for others."""
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        return StepKey(None, 0, int(index))
    if not isinstance(index, Tracer) or index.size != 1 or index.dtype.kind != "i":
        return None
    form = form_of(number(index))
    if not form.terms:
        return StepKey(None, 0, form.const)
    if len(form.terms) > 1:
        return None
    ((atom, factor),) = form.terms
    for inner in enclosing():
        at = inner.index
        if at is not None and atom == (at.storage.trace, at.storage.row) and steps_of(inner):
            return StepKey(inner, factor, form.const)
    return None


class Rows:
    """What a dict holds: the item of key ``low + k * step`` is row ``k`` of its buffers."""

    __slots__ = ("keys", "low", "stack", "step")
    is_known = True

    def __init__(self, stack: Stack, keys: Sequence[int], low: int, step: int) -> None:
        self.stack, self.keys, self.low, self.step = stack, tuple(keys), low, step

    @property
    def kind(self) -> Kind:
        return self.stack.layout.kind

    @property
    def span(self) -> range:
        """The keys for which there is space."""
        return range(self.low, self.low + self.stack.layout.capacity * self.step, self.step)

    def with_keys(self, keys: Sequence[int]) -> Rows:
        return Rows(self.stack, keys, self.low, self.step)

    def place(self, key: StepKey) -> Number:
        first = (key.const - self.low) // self.step
        if key.loop is None:
            return first
        factor = key.factor // self.step
        at: Any = key.loop.index if factor == 1 else np.multiply(key.loop.index, factor)
        return plus(at, first)

    def write(self, key: StepKey, item: Any) -> None:
        self.stack.shelve(item)
        self.stack.write(self.place(key), item)

    def views(self) -> list[Any]:
        """The items in the order of their keys; nothing is recorded for them."""
        self.stack.show()
        each, span = self.stack.views(), self.span
        if any(key not in span for key in self.keys):
            raise UnrecordableError.here(
                "the keys of a dict are others than a loop has made space for."
            )
        return [each[(key - self.low) // self.step] for key in self.keys]


def span_of(*keys: Any) -> range:
    """The least even range that holds all these numbers."""
    numbers = np.unique(np.concatenate([np.asarray(x, np.int64) for x in keys]))
    step = int(np.gcd.reduce(np.diff(numbers))) if len(numbers) > 1 else 1
    return range(int(numbers[0]), int(numbers[-1]) + 1, step)


def rows_for(items: dict[int, Any], kind: Kind, span: range) -> Rows:
    """The items of a dict as rows of new buffers."""
    parts: list[Sequence[Tracer]] = []
    for is_gap, keys in groupby(span, lambda key: key not in items):
        run = list(keys)
        if is_gap:
            parts.append(empty(kind, len(run)))
        else:
            parts.append(stacked([items[key] for key in run], kind, len(run)).layout.buffers)
    made = Rows(
        Stack(RowLayout(kind, joined(parts)), 0, len(span)), list(items), span[0], span.step
    )
    for item in items.values():
        made.stack.shelve(item)
    return made


def extended(before: Rows, kind: Kind, span: range) -> Rows:
    """The same with space for more keys."""
    old, step = before.stack.layout, span.step
    ends = (before.span[0] - span[0]) // step, (span[-1] - before.span[-1]) // step
    parts = [empty(kind, ends[0]), old.buffers, empty(kind, ends[1])]
    buffers = joined([x for x, n in zip(parts, (ends[0], 1, ends[1]), strict=True) if n])
    shelve([x.storage.root for x in old.buffers], [x.storage.root for x in buffers])
    return Rows(Stack(RowLayout(kind, buffers), 0, len(span)), before.keys, span[0], step)


def empty(kind: Kind, count: int) -> list[Tracer]:
    types = [slot.type.with_shape((count, *slot.type.shape)) for slot in kind.slots]
    return [fresh(current().builder.full(t, 0), scalar=False) for t in types] if count else []


def joined(parts: Sequence[Sequence[Tracer]]) -> list[Tracer]:
    """Rows of several buffers one after the other."""
    each = zip(*parts, strict=True)
    found: list[Any] = [np.concatenate(x) if len(x) > 1 else x[0] for x in each]
    return [fresh(value(x), scalar=False) for x in found]
