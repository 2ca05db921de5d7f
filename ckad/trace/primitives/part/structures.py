"""Python's builtins on parts, and parts as structures of what a branch chooses."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad import trees
from ckad.trace.dispatch import MASK, PART, put
from ckad.trace.memory.context import current
from ckad.trace.memory.storage import Storage
from ckad.trace.values.part import Extent, Padded, Part, as_python_int
from ckad.trace.values.tracer import Tracer

for _kind in (PART, MASK):
    put(builtins.len, lambda x: x.shape[0], _kind)
    put(builtins.abs, np.abs, _kind)
    put(builtins.sum, lambda x, start=0: np.sum(x, axis=0) + start, _kind)
    put(builtins.min, lambda x: np.min(x, axis=0), _kind)
    put(builtins.max, lambda x: np.max(x, axis=0), _kind)
    put(builtins.any, np.any, _kind)
    put(builtins.all, np.all, _kind)


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
