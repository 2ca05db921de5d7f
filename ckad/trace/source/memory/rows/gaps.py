"""Items that are put between the others of a list in buffers, or taken from there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.trace.integers.spans import plus
from ckad.trace.source.memory.rows.stacks import Stack
from ckad.trace.source.names.closures import call_from_source
from ckad.trace.values.tracer import Number


def open_gap(stack: Stack, place: Number) -> None:
    """Move the items from a place on one place up, but for the last, whose place is free."""
    _move(stack, place, plus(stack.count, -1), 1)


def close_gap(stack: Stack, place: Number) -> None:
    """Move the items behind a place one place down."""
    _move(stack, plus(place, 1), stack.count, -1)


def _move(stack: Stack, begin: Number, end: Number, by: int) -> None:
    move = _moved_round if stack.layout.is_ring else _moved
    for buffer in stack.layout.buffers:
        call_from_source(move, (buffer, stack.first, begin, end, by), {})


def _moved(rows: Any, first: Any, begin: Any, end: Any, by: int) -> None:
    begin, end = begin + first, end + first
    rows[begin + by : end + by] = rows[begin:end].copy()


def _moved_round(rows: Any, first: Any, begin: Any, end: Any, by: int) -> None:
    """The same in a ring, whose rows are all written anew."""
    row, size = np.arange(len(rows)), len(rows)
    place = (row - first) % size
    source = np.where((place >= begin + by) & (place < end + by), (row - by) % size, row)
    rows[...] = rows[source]
