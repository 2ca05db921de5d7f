"""Python's builtins on parts, and parts as structures of what a branch chooses."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ckad import trees
from ckad.trace.dispatch import PART, Function, put
from ckad.trace.memory.context import current
from ckad.trace.memory.storage import Storage
from ckad.trace.values.grown import Grown
from ckad.trace.values.part import Extent, Extents, Part, as_python_int
from ckad.trace.values.tracer import Tracer

_BUILTINS: dict[Any, Function] = {
    builtins.len: lambda x: x.shape[0] if isinstance(x, Part) else len(x),  # a list of parts
    builtins.abs: np.abs,
    builtins.sum: lambda x, start=0: np.sum(x, axis=0) + start,
    builtins.min: lambda x: np.min(x, axis=0),
    builtins.max: lambda x: np.max(x, axis=0),
}
for _key, _function in _BUILTINS.items():
    put(_key, _function, PART)


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


# --- chosen by a branch ------------------------------------------------------------------------


class _Opened:
    """Stands in a structure for a part: its base, and between which bounds it is, are leaves."""

    def __init__(self, base: Tracer, extents: Extents) -> None:
        self.base, self.extents = base, extents


def _children(opened: _Opened) -> tuple[list[Any], tuple[bool, ...], None]:
    places = [as_python_int(x) for e in opened.extents if e is not None for x in e]
    return [opened.base, *places], tuple(e is not None for e in opened.extents), None


def _rebuilt(has_extent: tuple[bool, ...], leaves: Any) -> Part:
    base, *places = leaves
    pairs = iter(zip(places[::2], places[1::2], strict=True))
    return Part(base, Extents(Extent(*next(pairs)) if has else None for has in has_extent))


trees.register(_Opened, _children, _rebuilt)


def opened(x: Any, y: Any) -> tuple[Any, Any]:
    """What two sides of a branch give, with parts as structures; a whole array is a part too."""
    if type(x) is Grown and type(y) is Grown and x.buffer is y.buffer:
        return x, y
    first = next((_opened(z) for z in (x, y) if _is_between(z)), None)
    if first is None:
        return x, y
    return _opened_like(x, first.extents), _opened_like(y, first.extents)


def _is_between(x: Any) -> bool:
    return isinstance(x, Part) and isinstance(x.where, Extents)


def _opened(x: Any) -> Any:
    return _Opened(x.base, x.where) if _is_between(x) else x


def _opened_like(x: Any, extents: Extents) -> Any:
    if type(x) is Tracer and len(x.shape) == len(extents):
        lengths = zip(x.shape, extents, strict=True)
        return _Opened(x, Extents(e and Extent(0, n) for n, e in lengths))
    return _opened(x)


def own_part(x: Any) -> Any:
    """A part of an array made in the body being recorded as a structure; anything else as it is."""
    if not isinstance(x, Part) or type(x) is Grown or not _is_own(x.base.storage):
        return x
    return _opened(x)


def _is_own(storage: Storage) -> bool:
    return storage.root.trace is current()
