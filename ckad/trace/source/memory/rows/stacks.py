"""Lists and deques whose length loops and branches change: rows of buffers, and a count.

Each leaf of an item is a row of a buffer, an array that is written in place like any other. What
goes from step to step is where the items begin and how many there are. The list itself is empty
meanwhile; it is filled again for whoever looks at it otherwise.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad import trees
from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.tape.reasons import Reason
from ckad.trace import dispatch
from ckad.trace.integers.spans import minus, number, plus
from ckad.trace.memory.context import current
from ckad.trace.memory.storage import Storage, link, may_be
from ckad.trace.memory.views import ReshapeView, SliceView
from ckad.trace.primitives.part.extents import checked_index
from ckad.trace.source.choices import picked
from ckad.trace.source.memory.rows.kinds import Kind, leaves_of, row_of
from ckad.trace.source.names.frame import region
from ckad.trace.source.values import Slot, flatten
from ckad.trace.values.apply import apply, astype
from ckad.trace.values.part import Extent, Extents, Part, as_python_int
from ckad.trace.values.tracer import Number, Tracer, fresh, known_by_running, value

#: What an array read from a list may share memory with.
ITEM = "an item of a list"


class Identity:
    """Which rows are one object in Python; the layouts that a list has one after the other share
    it."""

    __slots__ = ("are_distinct", "are_told")

    def __init__(self) -> None:
        self.are_distinct = False  # whether each row is an object of its own
        self.are_told = False  # whether that was asked


class RowLayout:
    """Where the items of one list lie, and which of its numbers change from step to step."""

    __slots__ = (
        "buffers",
        "capacity",
        "identity",
        "is_own",
        "is_ring",
        "kind",
        "maxlen",
        "varies",
    )

    def __init__(
        self, kind: Kind, buffers: Sequence[Tracer], is_ring: bool = False, maxlen: Any = None
    ) -> None:
        self.kind, self.buffers = kind, tuple(buffers)
        self.capacity: int = buffers[0].shape[0]
        self.is_ring, self.maxlen = is_ring, maxlen
        self.is_own = False  # whether the buffers are the very memory of the items
        self.varies: set[str] = set()
        self.identity = Identity()

    def with_buffers(self, buffers: Sequence[Tracer], is_ring: bool) -> RowLayout:
        """The same rows in other buffers, without an end."""
        return self._like(RowLayout(self.kind, buffers, is_ring))

    def of_kind(self, kind: Kind) -> RowLayout:
        """The same buffers for items that are others of known objects, too."""
        return self._like(RowLayout(kind, self.buffers, self.is_ring, self.maxlen))

    def alone(self) -> RowLayout:
        """The same where nothing changes its numbers any more."""
        return self.of_kind(self.kind)

    def _like(self, new: RowLayout) -> RowLayout:
        new.identity = self.identity
        return new

    def item(self, leaves: Sequence[Any]) -> Any:
        """An item of these leaves."""
        both = zip(leaves, self.kind.options, strict=True)
        return trees.unflatten(self.kind.tree, [x if o is None else picked(x, o) for x, o in both])


class Stack:
    """The items of a list: ``count`` rows of its buffers, from row ``first`` on."""

    __slots__ = ("count", "first", "layout")

    def __init__(self, layout: RowLayout, first: Number, count: Number) -> None:
        self.layout = layout
        self.first, self.count = as_python_int(first), as_python_int(count)

    @property
    def is_known(self) -> bool:
        return isinstance(self.first, int) and isinstance(self.count, int)

    def moved(self, first: Number, count: Number) -> Stack:
        return Stack(self.layout, first, count)

    def after(self, first: Number, count: Number) -> Stack:
        """The same where nothing changes these numbers any more."""
        return Stack(self.layout.alone(), first, count)

    def longer(self) -> Stack:
        """The same with space for one more item; a ring begins with its first one then."""
        old, first = self.layout, self.first
        before: list[Any] = list(old.buffers)
        if old.is_ring:
            before, first = [self._from_first(x) for x in before], 0
        joined: list[Any] = [np.concatenate([x, np.zeros_like(x[:1])]) for x in before]
        buffers = [fresh(value(x), scalar=False) for x in joined]
        return Stack(old.with_buffers(buffers, old.is_ring), first, self.count)

    # --- where items are ------------------------------------------------------------------------

    def row(self, place: Number) -> Number:
        """The row of the item at a place, counted from the first."""
        return self.wrapped(plus(self.first, place))

    def wrapped(self, row: Number) -> Number:
        """The row itself; in a ring, counted from its beginning again behind its end."""
        if not self.layout.is_ring:
            return row
        found: Any = np.remainder(row, self.layout.capacity)
        return int(found) if isinstance(row, int) else found

    def with_space(self, place: Number) -> Number:
        """A place behind the items; the program stops where there is no row for it."""
        if not isinstance(place, Tracer) or self.layout.is_ring:
            return place
        return apply(Op.WRAP, place, attrs=(self.layout.capacity, int(Reason.SPACE)))

    def place(self, index: Any) -> Number:
        """The place of ``xs[index]``; IndexError now, or when the program runs."""
        index = number(index)
        if isinstance(index, int) and isinstance(self.count, int):
            at = index + self.count if index < 0 else index
            if not 0 <= at < self.count:
                raise IndexError(at_place("list index out of range"))
            return at
        return checked_index(index, self.count, self.layout.capacity)

    def read(self, place: Number) -> Any:
        """The item at a place."""
        row = self.row(place)
        layout = self.layout
        pairs = zip(layout.buffers, layout.kind.slots, strict=True)
        if layout.is_own and isinstance(row, int) and region() is None:
            return self._view(row)
        return layout.item([_read(x, row, slot) for x, slot in pairs])

    def _view(self, row: int) -> Any:
        (buffer,), (slot,) = self.layout.buffers, self.layout.kind.slots
        if slot.scalar:
            return _read(buffer, row, slot)
        return views_of_rows(buffer, [row], *slot[1:])[0]

    def show(self) -> None:
        """Let the items be views of their rows from here on, which nobody gives other items."""
        self.layout.is_own = True
        for keeper in (buffer.storage.root for buffer in self.layout.buffers):
            for root in keeper.lent:
                root.kept = [x for x in root.kept if x is not keeper]
                link(keeper, root)

    def write(self, place: Number, item: Any, flag: Any = True) -> None:
        """Put an item of the stack's own kind at a place, where ``flag`` is true."""
        row = self.row(place)
        layout = self.layout
        leaves = leaves_of(item)[0]
        for buffer, slot, leaf in zip(layout.buffers, layout.kind.slots, leaves, strict=True):
            new: Any = Tracer(Storage(current(), row_of(slot, leaf)))
            if flag is not True:
                new = np.where(flag, new, buffer[row])
            dispatch.call(operator.setitem, (buffer, row, new), {})

    def shelve(self, item: Any) -> None:
        """Note that arrays in an item are rows here: to write into them spoils these."""
        keepers = [x.storage.root for x in self.layout.buffers]
        shelve([x.storage.root for x in flatten(item)[0] if _is_array(x)], keepers)

    # --- all items ------------------------------------------------------------------------------

    def leaves(self) -> list[Any]:
        """The items' leaves, each as an array or a part of one."""
        return [self._in_order(x) for x in self.layout.buffers]

    def _from_first(self, buffer: Tracer) -> Any:
        """A ring's rows, from that of the first item on."""
        first, size = self.first, self.layout.capacity
        if isinstance(first, int) and first == 0:
            return buffer
        return buffer[np.remainder(np.add(np.arange(size), first), size)]

    def turned(self, place: Number, count: Number) -> Stack:
        """``count`` items from a place backwards, in buffers of their own."""
        old, first = self.layout, self.first
        before: list[Any] = list(old.buffers)
        if old.is_ring:
            before, first = [self._from_first(x) for x in before], 0
        buffers = [fresh(value(np.copy(x[::-1])), scalar=False) for x in before]
        row = minus(old.capacity - 1, plus(first, place))
        return Stack(RowLayout(old.kind, buffers), row, count)

    def _in_order(self, buffer: Tracer) -> Any:
        first, count, size = self.first, self.count, self.layout.capacity
        if self.layout.is_ring:
            buffer, first = self._from_first(buffer), 0
        if isinstance(first, int) and isinstance(count, int):
            return np.copy(buffer[first : first + count])
        if isinstance(first, int) and (n := known_by_running(count)) is not None:
            return _constant_if_known(buffer[first : first + int(n)])
        own = fresh(value(buffer), scalar=False)
        if isinstance(count, int) and count == size:
            return own
        return Part(own, Extents([Extent(first, count), *[None] * (own.ndim - 1)]))

    def array(self) -> Any:
        """``np.array(xs)``; None where items are no arrays, or not of one shape."""
        slots, tree = self.layout.kind.slots, self.layout.kind.tree
        if not self.layout.kind.is_of_numbers:
            return None
        found = self.leaves()
        if tree.num_nodes == 1:
            return found[0]
        flat = tree.type in (list, tuple) or _is_named(tree.type)
        alike = len({s.type.shape for s in slots}) == 1
        if not (flat and alike and tree.num_nodes == 1 + len(slots)):
            return None
        if not isinstance(found[0], Part):
            return np.stack(found, axis=1)
        bases = np.stack([x.base for x in found], axis=1)
        where: Any = found[0].where
        return Part(bases, Extents([where[0], *[None] * (bases.ndim - 1)]))

    def views(self) -> list[Any]:
        """The items one by one, if it is known which they are; nothing is recorded for them."""
        assert isinstance(self.first, int)
        assert isinstance(self.count, int)
        layout = self.layout
        rows = [self.row(k) for k in range(self.count)]
        for x in layout.buffers if not layout.is_own else ():
            x.storage.root.shared = ITEM
        pairs = zip(layout.buffers, layout.kind.slots, strict=True)
        items = zip(*(views_of_rows(x, rows, *slot[1:]) for x, slot in pairs), strict=True)
        return [layout.item(leaves) for leaves in items]


def views_of_rows(
    buffer: Tracer,
    rows: Sequence[Any],
    scalar: bool,
    weak: bool = False,
    classes: frozenset[Any] | None = None,
) -> list[Tracer]:
    """Views of these rows of a buffer; nothing is recorded before they are read."""
    shape = buffer.shape[1:]
    rest, steps, one = (0,) * len(shape), (1,) * (len(shape) + 1), ReshapeView(shape)
    paths = [(SliceView((row, *rest, *steps), (1, *shape)), one) for row in rows]
    path, storage = buffer.path, buffer.storage
    return [Tracer(storage, (*path, *x), scalar, weak, classes) for x in paths]


def _is_array(x: Any) -> bool:
    return type(x) is Tracer and not x.scalar


def shelve(roots: Sequence[Storage], keepers: Sequence[Storage]) -> None:
    """Note that rows of ``keepers`` are the memory of ``roots`` in NumPy."""
    inner = region()
    for root in roots:
        new = [x for x in keepers if x not in root.kept]
        root.kept += new
        for keeper in keepers:
            keeper.lent.append(root)
        if inner is not None:
            inner.shelved.append((root, keepers))
            inner.kept.append((root, new))


def _is_named(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _read(buffer: Tracer, row: Number, slot: Slot) -> Tracer:
    found = buffer[row]
    copied = fresh(value(found), scalar=slot.scalar)
    copied.weak, copied.classes = slot.weak, slot.classes
    if not slot.scalar:
        copied.storage.shared = ITEM
        buffer.storage.root.lent.append(copied.storage)
    return copied


def _children(stack: Stack) -> tuple[list[Any], Any, None]:
    varies = stack.layout.varies
    numbers = {"first": stack.first, "count": stack.count}
    varies.update(name for name, x in numbers.items() if isinstance(x, Tracer))
    known = tuple(None if name in varies else x for name, x in numbers.items())
    return [x for name, x in numbers.items() if name in varies], (stack.layout, known), None


def _rebuilt(aux: Any, children: Any) -> Stack:
    layout, known = aux
    left = iter(children)
    first, count = (next(left) if x is None else x for x in known)
    return Stack(layout, first, count)


trees.register(Stack, _children, _rebuilt)


def unified(x: Any, y: Any) -> tuple[Any, Any]:
    """Two values of a list's items: what differs between them varies."""
    if type(x) is Stack and type(y) is Stack and x.layout is y.layout:
        for name in ("first", "count"):
            one, other = getattr(x, name), getattr(y, name)
            known = isinstance(one, int) and isinstance(other, int)
            if not (known and one == other):
                x.layout.varies.add(name)
    return x, y


# --- made from items ------------------------------------------------------------------------------


def stacked(
    items: Sequence[Any], kind: Kind, capacity: int, is_ring: bool = False, maxlen: Any = None
) -> Stack:
    """Items as rows of new buffers with space for ``capacity``."""
    flat = [leaves_of(item)[0] for item in items]
    buffers = []
    for k, slot in enumerate(kind.slots):
        rows = [row_of(slot, leaves[k]) for leaves in flat]
        buffers.append(_buffer(rows, slot, capacity))
    made = Stack(RowLayout(kind, buffers, is_ring, maxlen), 0, len(items))
    made.layout.identity.are_distinct = len({*map(id, items)}) == len(items)
    for item in items:
        made.shelve(item)
    return made


def _buffer(rows: Sequence[int], slot: Slot, capacity: int) -> Tracer:
    shape = slot.type.shape
    parts: list[Any] = []
    if rows:
        parts.append(np.stack([fresh(row, scalar=False) for row in rows]))
    if len(rows) < capacity or not rows:
        empty = slot.type.with_shape((max(capacity - len(rows), 1), *shape))
        parts.append(fresh(current().builder.full(empty, 0), scalar=False))
    return fresh(value(parts[0] if len(parts) == 1 else np.concatenate(parts)), scalar=False)


def with_rows(items: Sequence[Any], kind: Kind, rows: Tracer) -> Stack:
    """Items of a kind of one array each, then the rows of an array as further ones."""
    if not items:
        layout = RowLayout(kind, [rows])
        layout.is_own = True
        return Stack(layout, 0, rows.shape[0])
    (slot,) = kind.slots
    before = [fresh(slot.row(item), scalar=False) for item in items]
    buffer = np.concatenate([np.stack(before), astype(rows, slot.type.numpy)])
    made = Stack(RowLayout(kind, [fresh(value(buffer), scalar=False)]), 0, buffer.shape[0])
    for item in items:
        made.shelve(item)
    shelve([x.root for x in may_be(rows.storage)], [made.layout.buffers[0].storage.root])
    return made


def _constant_if_known(part: Any) -> Any:
    """Places that loops on constants have found, as such: shapes may depend on them."""
    numbers = known_by_running(part) if part.dtype.kind == "i" else None
    if numbers is None:
        return np.copy(part)
    return fresh(current().builder.const(np.array(numbers)), scalar=False)
