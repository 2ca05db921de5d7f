"""Elements that are known of arrays that are known in part: columns of a table into which others
were written, one row of several.

A row that only moves elements is followed to where these come from. That is done for small arrays,
through a few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ckad.rules.registry import RULES
from ckad.tape.ops import Op
from ckad.tape.types import DType
from ckad.trace.memory.context import Trace

#: Larger arrays are not followed, nor through more rows.
MOST_ELEMENTS, MOST_ROWS = 4096, 32
_PICKING = frozenset({Op.SLICE, Op.GATHER})
_TURNING = frozenset({Op.RESHAPE, Op.BROADCAST, Op.TRANSPOSE, Op.ROLL}) | _PICKING
_JOINING = frozenset({Op.UPDATE, Op.CONCAT, Op.PAD})

#: The numbers of a row, None if they are not known.
Known = Callable[[int], "np.ndarray | None"]
#: A row, for which of the elements it is asked, and which of its own they are.
_Asked = tuple[int, np.ndarray, np.ndarray]


def picked(trace: Trace, row: int, known: Known) -> np.ndarray | None:
    """The numbers of a row that picks elements of an array put together of several; None if some
    of them are not known."""
    rows, of = trace.builder.rows, trace.builder.rows[row].type
    if not _picks(trace, row) or of.size > MOST_ELEMENTS:
        return None
    found, every, left = np.zeros(of.size, of.numpy), np.arange(of.size), MOST_ROWS
    pending: list[_Asked] = [(row, every, every)]
    while pending:
        k, at, places = pending.pop()
        if not at.size:
            continue
        if rows[k].op in _TURNING | _JOINING:
            left -= 1
            sources = _sources(trace, k, at, places, known) if left else None
            if sources is None:
                return None
            pending += sources
        elif (numbers := known(k)) is None:
            return None
        else:
            found[at] = numbers.ravel()[places]
    return found.reshape(of.shape)


def _picks(trace: Trace, k: int) -> bool:
    rows, some = trace.builder.rows, False
    while rows[k].op in _TURNING:
        some |= rows[k].op in _PICKING
        k = rows[k].operands[0]
    return some and rows[k].op in _JOINING


def _sources(
    trace: Trace, k: int, at: np.ndarray, places: np.ndarray, known: Known
) -> list[_Asked] | None:
    """Where elements of a row come from; what is none of the operands' is zero."""
    row, rows = trace.builder.rows[k], trace.builder.rows
    moved = row.operands[:1] if row.op is Op.GATHER else row.operands
    sizes = [rows[x].type.size for x in moved]
    if sum(sizes) > MOST_ELEMENTS:
        return None
    others = [known(x) for x in row.operands[len(moved) :]]
    ends = np.cumsum([1, *sizes])
    numbered = [
        np.arange(start, end).reshape(rows[x].type.shape)
        for x, start, end in zip(moved, ends, ends[1:], strict=False)
    ]
    evaluate = RULES[row.op].evaluate
    if evaluate is None or any(x is None for x in others):
        return None
    try:
        whole = evaluate(row.type._replace(dtype=DType.I64), row.attrs, *numbered, *others)
    except IndexError:
        return None  # the program itself will say so, if it gets there
    return list(_shared(moved, ends, at, np.asarray(whole).ravel()[places]))


def _shared(
    moved: tuple[int, ...], ends: np.ndarray, at: np.ndarray, numbers: np.ndarray
) -> Iterator[_Asked]:
    for x, start, end in zip(moved, ends, ends[1:], strict=False):
        own = (numbers >= start) & (numbers < end)
        yield x, at[own], numbers[own] - start
