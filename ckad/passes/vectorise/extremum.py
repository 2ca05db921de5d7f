"""Carried values that a loop replaces where it finds a larger or a smaller one.

``if x > m: m = x`` keeps the first of the largest, and what is no number is larger than nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from typing import NamedTuple

import numpy as np

from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Row

#: What ``m`` is compared by: (op, whether the found value stands first) -> the op with it first.
_FOUND_FIRST = {
    (Op.GT, True): Op.GT,
    (Op.LT, False): Op.GT,
    (Op.LT, True): Op.LT,
    (Op.GT, False): Op.LT,
}


class Record(NamedTuple):
    """``value`` is kept by an iteration that finds ``found`` larger (GT) or smaller (LT)."""

    condition: int  # a row of the loop's body
    op: Op
    found: int
    value: int


def leader_of(
    rows: Sequence[Row],
    out: int,
    start: Container[int],
    uses: Counter[int],
    follows: Container[int],
) -> Record | None:
    """The record of a cell that holds the largest or the smallest value found."""
    op, operands, _, type, _ = rows[out]
    if op is not Op.SELECT or type.shape:
        return None
    condition, new, kept = operands
    first, second = (*rows[condition].operands, -1, -1)[:2]
    if kept not in start or new in follows or uses[kept] != 2:
        return None
    if first == new and second == kept:
        compared = _FOUND_FIRST.get((rows[condition].op, True))
    elif first == kept and second == new:
        compared = _FOUND_FIRST.get((rows[condition].op, False))
    else:
        return None
    return None if compared is None else Record(condition, compared, new, new)


def follower_of(
    rows: Sequence[Row],
    out: int,
    start: Container[int],
    uses: Counter[int],
    follows: Container[int],
    leaders: Sequence[Record],
) -> Record | None:
    """The record of a cell that changes where a leader does, as the place of the largest."""
    op, operands, _, type, _ = rows[out]
    if op is not Op.SELECT or type.shape:
        return None
    condition, new, kept = operands
    leader = next((r for r in leaders if r.condition == condition), None)
    if leader is None or kept not in start or new in follows or uses[kept] != 1:
        return None
    return leader._replace(value=new)


def first_found(b: Builder, op: Op, found: int) -> int:
    """The iteration that finds the largest (GT) or the smallest (LT) first."""
    type = b.type(found)
    if type.is_float:
        least = b.full_like(found, -np.inf if op is Op.GT else np.inf)
        found = b.select(b.isnan(found), least, found)
    return b.emit(Op.ARGMAX if op is Op.GT else Op.ARGMIN, (found,), (0,))


def kept(b: Builder, record: Record, start: int, of: int, found: int, value: int) -> int:
    """What a cell holds after the loop.

    ``start`` is what it held before, ``of`` what its leader held; ``found`` and ``value`` are those
    of all iterations.
    """
    at = first_found(b, record.op, found)
    best = b.gather(found, at, attrs=(0,))
    return b.select(b.emit(record.op, (best, of)), b.gather(value, at, attrs=(0,)), start)
