"""Arrays that a loop makes longer: the places of a buffer that are filled so far.

``ys = np.vstack((ys, y))`` makes another array in NumPy. Here the rows are written behind those of
``ys``, where nothing has looked yet, and both arrays are parts of one buffer. That is right as long
as only the longest of them is made longer: the *tip* of the buffer. What is looked up in such an
array is read from the buffer as it is now, and is no view of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import numpy as np

from ckad import trees
from ckad.place import Source
from ckad.trace.memory.context import Trace, current
from ckad.trace.memory.views import TransposeView
from ckad.trace.values.part import Extent, Extents, Part, as_python_int
from ckad.trace.values.tracer import Number, Tracer, fresh, value

#: What an array read from a buffer may share memory with.
GROWS = "an array that grows in a loop"


class Buffer:
    """Space for an array that grows along ``axis``, which is the first axis of ``rows``."""

    __slots__ = ("axis", "copied", "is_bounded", "least", "note", "rival", "rows", "varies")

    def __init__(
        self,
        rows: Tracer,
        axis: int,
        least: int,
        note: Callable[[int], None],
        copied: Collection[Source] = (),
    ) -> None:
        self.rows, self.axis = rows, axis
        self.copied = copied  # lines that make another array of it, longer, for themselves alone
        self.rival: Source | None = None  # a line that should be one of them
        self.least = least  # so many rows are filled before the loop
        self.note = note  # called with the number of rows that are written behind the tip
        self.is_bounded = True  # else it may be full, which stops the program
        self.varies = False  # whether the number of rows changes from step to step

    @property
    def capacity(self) -> int:
        return self.rows.shape[0]

    @property
    def array(self) -> Tracer:
        """The rows along the axis that they have in the array."""
        if not self.axis:
            return self.rows
        rank = self.rows.ndim
        order = (*range(1, self.axis + 1), 0, *range(self.axis + 1, rank))
        return Tracer(self.rows.storage, (*self.rows.path, TransposeView(order)))

    # --- the tip --------------------------------------------------------------------------------

    def tip(self, trace: Trace | None) -> Grown | None:
        """The longest of the arrays that are parts of it, as ``trace`` sees them."""
        while trace is not None:
            if id(self) in trace.tips:
                found: Grown | None = trace.tips[id(self)]
                return found
            trace = trace.parent
        return None

    def set_tip(self, grown: Grown | None) -> None:
        current().tips[id(self)] = grown


class Grown(Part):
    """The first ``count`` places of a buffer."""

    __slots__ = ("buffer", "count", "made")

    buffer: Buffer
    count: Number
    made: tuple[Grown | None, Source | None]  # of which array, and where

    def __init__(self, buffer: Buffer, count: Number) -> None:
        self.buffer, self.count = buffer, as_python_int(count)
        self.tame = False
        self.made = None, None
        rank = buffer.rows.ndim
        extent = Extent(0, self.count)
        self.where = Extents(extent if k == buffer.axis else None for k in range(rank))

    @property
    def base(self) -> Tracer:  # type: ignore[override]
        """The whole buffer as it is now, which may not be written into by this name."""
        found = fresh(value(self.buffer.array), scalar=False)
        found.storage.shared = GROWS
        return found

    def plain(self) -> Any:
        """The same as an array with memory of its own."""
        whole = fresh(value(self.buffer.array), scalar=False)
        if not isinstance(self.count, int):
            return Part(whole, self.where)
        if self.count == self.buffer.capacity:
            return whole
        place = [slice(None)] * whole.ndim
        place[self.buffer.axis] = slice(0, self.count)
        return np.copy(whole[tuple(place)])


def _children(x: Grown) -> tuple[list[Any], Any, None]:
    x.buffer.varies |= isinstance(x.count, Tracer)
    return (
        ([x.count], (x.buffer, None), None) if x.buffer.varies else ([], (x.buffer, x.count), None)
    )


def _rebuilt(aux: Any, children: Any) -> Grown:
    buffer, count = aux
    return Grown(buffer, *children) if count is None else Grown(buffer, count)


trees.register(Grown, _children, _rebuilt)


def unified(x: Any, y: Any) -> None:
    """Note in which buffers two values of a name have different numbers of rows."""
    for one, other in aligned(x, y):
        if type(other) is Grown and one.buffer is other.buffer:
            known = isinstance(one.count, int) and isinstance(other.count, int)
            one.buffer.varies |= not (known and one.count == other.count)


def aligned(x: Any, *others: Any) -> Iterator[tuple[Any, ...]]:
    """The arrays that grow in a value, each with what stands at its place in others."""
    if type(x) is Grown:
        yield (x, *others)
    elif isinstance(x, tuple):
        for k, item in enumerate(x):
            rest = [o[k] if isinstance(o, tuple) and len(o) == len(x) else None for o in others]
            yield from aligned(item, *rest)


def settle_tips(found: Iterable[tuple[Grown, bool]]) -> None:
    """Note what is the longest array now: of all that names are bound to anew, the only one that
    was it where it comes from. If there are several, none can be made longer."""
    tips: dict[int, list[Grown]] = {}
    buffers: dict[int, Buffer] = {}
    for grown, was_tip in found:
        buffers[id(grown.buffer)] = grown.buffer
        tips.setdefault(id(grown.buffer), []).extend([grown] if was_tip else [])
    for key, buffer in buffers.items():
        buffer.set_tip(tips[key][0] if len(tips[key]) == 1 else None)


def plain_in(x: Any, buffers: Collection[Buffer]) -> Any:
    """``x`` with its parts of some buffers as arrays of their own."""
    if type(x) is Grown:
        return x.plain() if x.buffer in buffers else x
    if isinstance(x, tuple) and any(g.buffer in buffers for (g,) in aligned(x)):
        return trees.with_items(x, [plain_in(item, buffers) for item in x])
    return x


def put(x: Any, path: tuple[int, ...], new: Any) -> Any:
    """``x`` with another value at one place in tuples of tuples."""
    if not path:
        return new
    items = list(x)
    items[path[0]] = put(items[path[0]], path[1:], new)
    return trees.with_items(x, items)
