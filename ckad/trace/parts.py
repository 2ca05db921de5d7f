"""Calls with parts (arrays of run-time extent or under a mask) from source that is run here."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad import trees
from ckad.trace.extent_elements import PART_FUNCTIONS
from ckad.trace.extents import Extent, Padded, as_python_int
from ckad.trace.masked import MASKED_FUNCTIONS
from ckad.trace.memory.context import current
from ckad.trace.memory.storage import Storage
from ckad.trace.tracer import Part, Tracer

#: builtin -> what it does with a part
_BUILTINS: dict[Any, Callable[..., Any]] = {
    builtins.len: lambda x: x.shape[0],
    builtins.abs: np.abs,
    builtins.sum: lambda x, start=0: np.sum(x, axis=0) + start,
    builtins.min: lambda x: np.min(x, axis=0),
    builtins.max: lambda x: np.max(x, axis=0),
    builtins.any: np.any,
    builtins.all: np.all,
}


def part_in(args: Any) -> Part | None:
    """The first part among arguments, and in lists and tuples of them."""
    for x in args:
        if isinstance(x, Part):
            return x
        if isinstance(x, (list, tuple)):
            found = part_in(x)
            if found is not None:
                return found
    return None


def counterpart(callee: Any, part: Part) -> Callable[..., Any] | None:
    """What is called in place of ``callee`` where ``part`` is an argument."""
    if callee in _BUILTINS:
        return _BUILTINS[callee]
    table = PART_FUNCTIONS if isinstance(part, Padded) else MASKED_FUNCTIONS
    return table.get(callee)


# --- chosen by a branch ------------------------------------------------------------------------


class _Opened:
    """Stands in a structure for a part: its base, and where it lies in it, are leaves."""

    def __init__(self, part: Padded) -> None:
        self.part = part


def _children(opened: _Opened) -> tuple[list[Any], tuple[bool, ...], None]:
    part = opened.part
    places = [as_python_int(x) for e in part.extents if e is not None for x in e]
    return [part.base, *places], tuple(e is not None for e in part.extents), None


def _rebuilt(has_extent: tuple[bool, ...], leaves: Any) -> Padded:
    base, *places = leaves
    pairs = iter(zip(places[::2], places[1::2], strict=True))
    return Padded(base, [Extent(*next(pairs)) if has else None for has in has_extent])


trees.register(_Opened, _children, _rebuilt)


def opened(x: Any, y: Any) -> tuple[Any, Any]:
    """What two sides of a branch give, with parts as structures; a whole array is a part too."""
    if not (isinstance(x, Padded) or isinstance(y, Padded)):
        return x, y
    first = next(p for p in (x, y) if isinstance(p, Padded))
    return _opened_like(x, first.extents), _opened_like(y, first.extents)


def _opened_like(x: Any, extents: Sequence[Extent | None]) -> Any:
    if type(x) is Tracer and len(x.shape) == len(extents):
        lengths = zip(x.shape, extents, strict=True)
        x = Padded(x, [e and Extent(0, n) for n, e in lengths])
    return _Opened(x) if isinstance(x, Padded) else x


def own_part(x: Any) -> Any:
    """A part of an array made in the body being recorded as a structure; anything else as it is."""
    return _Opened(x) if isinstance(x, Padded) and _is_own(x.base.storage) else x


def _is_own(storage: Storage) -> bool:
    return storage.root.trace is current()
