"""Arrays that a step makes longer: they are kept in buffers while a loop is recorded.

``ys = np.vstack((ys, y))`` binds a name to an array of another shape in each step. Before the loop
that does so the name is given an array that grows (``values.grown``), with space for all rows;
after it the array is what it is in NumPy, of the length that is known by then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ckad.errors import CarryError, CkadError
from ckad.place import Source
from ckad.trace.arrays import traced
from ckad.trace.integers.affine import declare
from ckad.trace.memory.context import Trace, current
from ckad.trace.memory.storage import Storage, link
from ckad.trace.source.memory.contents import Stacked, is_in_no_buffer, said
from ckad.trace.source.memory.rows.kinds import Kind
from ckad.trace.source.names.frame import Key, enclosing, region
from ckad.trace.source.names.region import Growth
from ckad.trace.source.values import Slot, is_kept, join, slot_of
from ckad.trace.values.apply import astype
from ckad.trace.values.filled import is_filled
from ckad.trace.values.grown import Buffer, Grown, aligned, plain_in, put, settle_tips
from ckad.trace.values.part import Extents, Part
from ckad.trace.values.tracer import Tracer, fresh, lift, value

#: Larger buffers are not made.
MOST_BYTES = 1 << 31
#: Space to begin with, until it is known how much is appended.
GUESS = 64
#: Space where nothing bounds what is appended, and its most bytes: the program stops at its end.
ASSUMED, ASSUMED_BYTES = 1 << 13, 1 << 25


class Lengthening(NamedTuple):
    """How an array in what a name is bound to changes: the axis that grows, and by how much."""

    path: tuple[int, ...]  # where it is in tuples
    axis: int
    rows: int
    slot: Slot  # of what it is before, with a dtype for both


class Growing(BaseException):
    """A step makes an array longer: the loop is recorded again, with the array in a buffer."""

    is_needed = False

    def __init__(self, key: Key, step: Lengthening, error: BaseException) -> None:
        self.key, self.step, self.error = key, step, error

    @property
    def mark(self) -> Any:
        return self.key, self.step.path


class Outgrown(BaseException):
    """A step does more with an array that grows than to make it longer: it is kept in no buffer."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer


class Filled(Stacked):
    """A list that keeps its length: a body puts numbers into it at traced places."""

    grows = False

    def __init__(self, owner: Any, error: CkadError, kind: Kind | None) -> None:
        super().__init__(owner, error, kind, is_needed=False)


def steps_of(before: Any, end: Any, path: tuple[int, ...] = ()) -> Iterator[Lengthening]:
    """The arrays that are longer at the end of a step, and of the same shape otherwise."""
    if isinstance(before, tuple):
        if isinstance(end, tuple) and type(end) is type(before) and len(end) == len(before):
            for k, (x, y) in enumerate(zip(before, end, strict=True)):
                yield from steps_of(x, y, (*path, k))
        return
    grows = _growth(before, end)
    if grows is not None:
        yield Lengthening(path, *grows)


def _growth(before: Any, end: Any) -> tuple[int, int, Slot] | None:
    is_part = isinstance(end, Part) and isinstance(end.where, Extents)
    if type(before) is not Tracer and type(before) is not np.ndarray:
        return None
    if is_filled(before) or is_filled(end):  # it may be a number, which is of another length
        return None
    if not (type(end) is Tracer or is_part) or before.ndim != end.ndim:
        return None
    sizes = end.base.shape if is_part else end.shape
    axes = [
        k for k in range(end.ndim) if type(end.shape[k]) is not int or sizes[k] != before.shape[k]
    ]
    slot, other = slot_of(before), slot_of(end.base if is_part else end)
    if len(axes) != 1 or slot is None or other is None:
        return None
    (axis,) = axes
    both = join(slot, Slot(other.type.with_shape(slot.type.shape), *other[1:]))
    if both is None or not is_kept(slot, both) or both.type.dtype != other.type.dtype:
        return None
    rows = sizes[axis] - before.shape[axis]
    return (axis, rows, both) if rows > 0 else None


def check_growth(
    key: Key, before: Any, end: Any, error: BaseException, is_final: bool = True
) -> None:
    """Have arrays kept in buffers that a step makes longer."""
    for step in steps_of(before, end):
        wanted = Growing(key, step, error)
        if not is_in_no_buffer(wanted.mark):
            raise wanted
        if is_final:
            raise not_followed(key, step)


def check_outgrown(before: Any, end: Any) -> None:
    """A step ends with another array than that which it starts with, made longer."""
    for grown, other in aligned(before, end):
        if type(other) is not Grown or other.buffer is not grown.buffer:
            raise Outgrown(grown.buffer)


def not_followed(key: Key, step: Lengthening) -> CkadError:
    name, before = said(key).removeprefix("the variable "), step.slot.type
    shape = list(before.shape)
    shape[step.axis] += step.rows
    after = before.with_shape(tuple(shape))
    return CarryError.here(
        f"the loop carries {name} from step to step, and a step makes an array longer: its "
        f"shape changes from {before} to {after}. That is followed where rows are put behind "
        "the others, x = np.append(x, y), and a bound of the number of steps is known. Write "
        "into an array made before, as long as it can become: x = np.zeros(most), x[m] = y "
        "and m += 1; x[:m] is what is filled."
    )


def in_branch(key: Key, before: Any, sides: Sequence[Any], error: BaseException) -> None:
    """The same where one side of a branch makes an array longer, in the body of a loop."""
    for inner in enclosing(key[0].depth):  # those that start with an array of that name
        before = inner.changed.get(key, before)  # at the beginning of that body
        if inner.takes_appends or inner.ends_unknown:
            break
    else:
        return
    for side in sides:
        check_growth(key, before, side, error, is_final=False)


def assumed_rows(nbytes: int, most: int = ASSUMED) -> int | None:
    most = min(most, ASSUMED_BYTES // nbytes)
    return most if most > GUESS else None


class ArrayHouse:
    """The buffer of one array, around one loop."""

    is_ring = is_probed = False
    is_needed = False
    kind = None
    roots: Mapping[int, Storage] = MappingProxyType({})

    def __init__(self, found: Growing, most: float, guess: int) -> None:
        self.key, self.step, self.error = found.key, found.step, found.error
        self.mark = found.mark
        frame, name = self.key
        self.before: Any = frame.names[name]
        for k in self.step.path:
            self.before = self.before[k]
        self.length: int = self.before.shape[self.step.axis]
        self.space = self.step.rows * int(min(most, guess))
        self.buffer: Buffer | None = None
        self.is_bounded = True  # by what is known of the loop
        self.copied: set[Source] = set()  # lines that make longer arrays for themselves alone

    @property
    def growth_mark(self) -> Any:
        return id(self)

    @property
    def is_built(self) -> bool:
        return self.buffer is not None

    def build(self) -> None:
        if self.is_built:
            return
        rows = self._rows()
        self.buffer = Buffer(rows, self.step.axis, self.length, self._note, self.copied)
        self.buffer.is_bounded = self.is_bounded
        grown = Grown(self.buffer, self.length)
        self.buffer.set_tip(grown)
        self._bind(grown)

    def _rows(self) -> Tracer:
        axis, slot = self.step.axis, self.step.slot
        shape = (max(self.space, 1), *np.delete(slot.type.shape, axis))
        empty = slot.type.with_shape(tuple(int(n) for n in shape))
        if empty.nbytes + slot.type.nbytes > MOST_BYTES:
            raise self.error
        first = np.moveaxis(traced(astype(lift(self.before), slot.type.numpy)), axis, 0)
        more = fresh(current().builder.full(empty, 0), scalar=False)
        return fresh(value(np.concatenate([first, more])), scalar=False)

    def _note(self, rows: int) -> None:
        inner = region()
        if inner is not None:
            inner.growth.setdefault(self.growth_mark, Growth()).add(rows, rows, rows)

    def _bind(self, x: Any) -> None:
        frame, name = self.key
        frame.note_change(name)
        frame.names[name] = put(frame.names[name], self.step.path, x)

    def copies_more(self) -> bool:
        """Have a line make an array of its own, where two are made longer from one."""
        rival = None if self.buffer is None else self.buffer.rival
        if rival is None or rival in self.copied:
            return False
        self.leave()
        self.copied.add(rival)
        return True

    def leave(self) -> None:
        """The array as it was."""
        if self.buffer is not None:
            self.buffer = None
            self._bind(self.before)

    def room(self, growth: Growth, length: float, most: int | None) -> tuple[bool, int | None]:
        """Whether it is a ring, and the space for what ``length`` steps append, if it is known."""
        if most is not None:
            return False, max(most - self.length, 0)
        space = length * growth.pushed if growth.pushed else 0.0
        return False, int(space) if math.isfinite(space) else None

    def assumed(self) -> int | None:
        """The space where nothing tells how much is appended; None if that is too little."""
        whole = self.step.slot.type
        row = np.delete(whole.shape, self.step.axis)
        self.is_bounded = False
        nbytes = max(math.prod(map(int, row)) * whole.numpy.itemsize, 1)
        return assumed_rows(nbytes, 2 * ASSUMED)  # more steps than what is recorded as it runs


class Tips:
    """Which arrays that grow are the longest in their buffers, at both ends of a step."""

    def __init__(self, body: Trace) -> None:
        self.body = body
        self._entered: list[tuple[Grown, bool]] = []

    def enter(self, started: Any, first: Any) -> None:
        """A step starts with ``started``, and the first one with what ``first`` is."""
        for grown, old in aligned(started, first):
            was_tip = old is not None and grown.buffer.tip(self.body.parent) is old
            self._entered.append((grown, was_tip))

    def begin(self) -> None:
        settle_tips(self._entered)
        for grown, _ in self._entered:
            if isinstance(grown.count, Tracer):
                declare(grown.count, grown.buffer.least, grown.buffer.capacity)

    def after(self, result: Any, started: Any, end: Any) -> Iterator[tuple[Grown, bool]]:
        """The arrays that grow in what a name is bound to after the loop."""
        known = {id(grown) for grown, was_tip in self._entered if was_tip}
        for grown, first, last in aligned(result, started, end):
            yield grown, id(first) in known and grown.buffer.tip(self.body) is last


def settled(x: Any, houses: Sequence[ArrayHouse], is_run: bool) -> Any:
    """``x`` after the loop, with arrays of their own length."""
    buffers = [h.buffer for h in houses if h.buffer is not None]
    for (grown,) in aligned(x):
        if grown.buffer in buffers and isinstance(grown.count, Tracer):
            declare(grown.count, grown.buffer.least, grown.buffer.capacity)
    found = plain_in(x, buffers)
    if not is_run:
        for (grown,) in aligned(x):
            for house in houses:
                if house.buffer is grown.buffer and type(house.before) is Tracer:
                    _link(found, house.before.storage)
    return found


def _link(x: Any, storage: Storage) -> None:
    """Where the loop makes no step an array is that which it starts with."""
    if isinstance(x, tuple):
        for item in x:
            _link(item, storage)
    elif isinstance(x, Part):
        link(x.base.storage, storage)
    elif type(x) is Tracer:
        link(x.storage, storage)
