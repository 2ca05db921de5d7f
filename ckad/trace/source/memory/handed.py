"""Lists in buffers that a step makes and hands on by a name: the rows, as arrays of their own.

A list from around a loop keeps its buffers, which its steps write into. One that a step makes has
others each time, which are carried to the next step and out of the loop like any array.
"""

from __future__ import annotations

from typing import Any

from ckad import trees
from ckad.trace.source.memory.contents import (
    Contents,
    bodies_around,
    holding,
    read,
    stack_of,
)
from ckad.trace.source.memory.rows.kinds import Kind
from ckad.trace.source.memory.rows.stacks import RowLayout, Stack
from ckad.trace.source.names.frame import Frame
from ckad.trace.values.tracer import Number, fresh, value

#: Lists in lists are looked into to this depth.
_DEEPEST = 4


class Handed:
    """The items of a list: ``count`` rows of arrays."""

    __slots__ = ("arrays", "count", "kind")

    def __init__(self, kind: Kind, arrays: list[Any], count: Number) -> None:
        self.kind, self.arrays, self.count = kind, arrays, count

    def as_list(self) -> list[Any]:
        """A list of its own of these items."""
        buffers = [fresh(value(x), scalar=False) for x in self.arrays]
        found: list[Any] = holding([], Stack(RowLayout(self.kind, buffers), 0, self.count))
        return found


def handed(frame: Frame, x: Any) -> Any:
    """What goes from step to step for what a name of a frame is bound to."""
    if isinstance(frame, Contents) or type(x) not in (list, tuple):
        return x
    stack = stack_of(x) if type(x) is list else None
    if stack is None:
        _fill_inner(x)
    if stack is None or not isinstance(stack.first, int) or (stack.first and stack.layout.is_ring):
        return x
    first, count, arrays = stack.first, stack.count, list[Any](stack.layout.buffers)
    if isinstance(count, int) and count != stack.layout.capacity:
        arrays = [buffer[first : first + count] for buffer in arrays]
    elif first:
        return x
    return Handed(stack.layout.kind, arrays, count)


def _fill_inner(x: Any, depth: int = _DEEPEST) -> None:
    """Give lists in a list the items that are their own, by views of their rows."""
    for part in x if depth else ():
        if type(part) is list and (stack := stack_of(part)) is not None:
            if stack.is_known and not bodies_around(part):
                read(part)
        elif type(part) in (list, tuple):
            _fill_inner(part, depth - 1)


def housed(x: Any) -> Any:
    """What a name is bound to for what goes from step to step."""
    return x.as_list() if type(x) is Handed else x


def _children(x: Handed) -> tuple[list[Any], Any, None]:
    about = x.kind.tree, x.kind.slots, x.kind.options
    if isinstance(x.count, int):
        return x.arrays, (*about, x.count), None
    return [*x.arrays, x.count], (*about, None), None


def _rebuilt(aux: Any, children: Any) -> Handed:
    *about, count = aux
    arrays = list(children)
    return Handed(Kind(*about), arrays, arrays.pop() if count is None else count)


trees.register(Handed, _children, _rebuilt)
