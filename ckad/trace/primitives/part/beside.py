"""``x[rows, :k]`` and ``x[mask, k:] = y``: an index array or a mask beside slices whose bounds are
computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.trace.integers.spans import is_traced_slice
from ckad.trace.primitives import index as indexing
from ckad.trace.primitives.part.extents import part_of
from ckad.trace.values.part import unsupported
from ckad.trace.values.tracer import Tracer, known_by_running

_WHOLE = slice(None)


def read(x: Tracer, entries: Sequence[Any]) -> Any:
    """A copy of the rows, and of these what the slices pick."""
    entries = _known(entries)
    at = _place(entries)
    if _is_mask(entries[at]):
        unsupported("a mask beside a slice with computed bounds")
    rows = indexing.gathered(x, _without_slices(entries))
    return part_of(rows, [None] * rows.ndim, _of_rows(entries, at))


def write(x: Tracer, entries: Sequence[Any], new: Any) -> None:
    """Rows are read, written into and put back; under a mask what the slices pick is chosen."""
    entries = _known(entries)
    at = _place(entries)
    if _is_mask(entries[at]):
        return _under(x, entries, at, new)
    rows, plain = indexing.gathered(x, _without_slices(entries)), _without_slices(entries)
    rows[_of_rows(entries, at)] = new
    indexing.scatter(x, plain, rows)


def _under(x: Tracer, entries: list[Any], at: int, new: Any) -> None:
    mask, after = entries[at], len(entries) - at - 1
    new = indexing.from_list(new)
    rank = np.ndim(new)
    if rank == after + 1 and np.shape(new)[0] == 1:
        new = new[0]
    elif rank > after:
        unsupported("an item for each place under a mask beside a slice with computed bounds")
    beside = (*entries[:at], *[_WHOLE] * mask.ndim, *entries[at + 1 :])
    x[beside] = np.where(mask.reshape((*mask.shape, *[1] * after)), new, x[beside])


def _known(entries: Sequence[Any]) -> list[Any]:
    """The entries, with the numbers of masks that are known."""
    found = [known_by_running(i) if _is_mask(i) else None for i in entries]
    return [i if n is None else n for i, n in zip(entries, found, strict=True)]


def _is_mask(entry: Any) -> bool:
    return isinstance(entry, Tracer) and entry.dtype == bool


def _place(entries: list[Any]) -> int:
    """Where the one array among slices is."""
    at = [k for k, i in enumerate(entries) if not isinstance(i, slice)]
    if len(at) != 1 or not np.ndim(entries[at[0]]):
        unsupported("several indices beside a slice with computed bounds")
    return at[0]


def _without_slices(entries: list[Any]) -> list[Any]:
    return [_WHOLE if is_traced_slice(i) else i for i in entries]


def _of_rows(entries: list[Any], at: int) -> tuple[Any, ...]:
    """What is left to pick of the rows."""
    index = entries[at]
    axes = 1 if index.dtype == bool else index.ndim
    rest = [i if is_traced_slice(i) else _WHOLE for i in entries]
    return (*rest[:at], *[_WHOLE] * axes, *rest[at + 1 :])
