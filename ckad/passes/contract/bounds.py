"""The places between which a mask is true, for each row, where constants of the tape say them.

`sums` hands these numbers to the products of ``rules/routines/bounded.py``; the segments of
``vectorise`` ask for them, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.rules import RULES
from ckad.tape.builder import Builder
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.tape import Row

#: What place < bound and its like say: whether that is an end, and what is added to the bound.
_BOUNDS = {Op.LT: (True, 0), Op.LE: (True, 1), Op.GE: (False, 0), Op.GT: (False, 1)}
_TURNED = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GE: Op.LE, Op.GT: Op.LT}


def between(b: Builder, mask: int) -> tuple[np.ndarray, np.ndarray] | None:
    """For each row of a mask with two axes the first place, and the one behind the last, at which
    it is true; None if that is not all that it says, or not known."""
    n, length = b.type(mask).shape
    first, last = np.zeros(n, np.int64), np.full(n, length)
    for k in conjuncts(b, mask):
        found = _bound(b, k)
        if found is None:
            return None
        is_end, bounds = found
        if is_end:
            last = np.minimum(last, bounds)
        else:
            first = np.maximum(first, bounds)
    first = np.minimum(first, length)
    return first, np.maximum(last, first)


def conjuncts(b: Builder, mask: int) -> list[int]:
    """The masks that are true together where ``mask`` is."""
    row = b.rows[mask]
    if row.op is Op.AND:
        return [k for x in row.operands for k in conjuncts(b, x)]
    return [mask]


def _bound(b: Builder, k: int) -> tuple[bool, np.ndarray] | None:
    """What a comparison of the places in a row with a number for each row says."""
    op, operands, *_ = b.rows[k]
    if op not in _BOUNDS:
        return None
    places, others = operands
    if _counted(b, places) is None:
        places, others, op = others, places, _TURNED[op]
    offset, bounds = _counted(b, places), known(b, others)
    if offset is None or bounds is None or bounds.ndim != 2 or bounds.strides[1] != 0:
        return None
    is_end, more = _BOUNDS[op]
    return is_end, bounds[:, 0] + (more - offset)


def _counted(b: Builder, k: int) -> int | None:
    """The first of numbers that count places along the second of two axes."""
    numbers = known(b, k)
    if numbers is None or numbers.ndim != 2 or numbers.strides[0] != 0 or numbers.shape[1] < 2:
        return None
    row = numbers[0]
    return int(row[0]) if np.array_equal(row, row[0] + np.arange(len(row))) else None


def known(b: Builder, k: int) -> np.ndarray | None:
    """The constant integers of a row; what is repeated is repeated by strides of 0."""
    row = b.rows[k]
    if row.type.is_float or not row.type.is_array:
        return None
    if row.op is Op.CONST:
        return b.constants[row.attrs[0]]
    if row.op is Op.BROADCAST:
        whole = known(b, row.operands[0])
        return None if whole is None else np.broadcast_to(whole, row.type.shape)
    if sum(n > 1 for n in row.type.shape) > 1:
        return None  # as many as rows times places
    if row.op not in (Op.RESHAPE, Op.SLICE, Op.GATHER) and not is_elementwise(row.op):
        return None
    operands = [known(b, x) for x in row.operands]
    if any(x is None for x in operands):
        return None
    try:
        return np.asarray(evaluated(row, row.type.shape, operands))
    except IndexError:
        return None  # the program itself stops, if it comes there


def evaluated(row: Row, shape: tuple[int, ...], operands: Sequence[Any]) -> Any:
    """What a row of integers gives of such operands, in another shape."""
    evaluate = RULES[row.op].evaluate
    assert evaluate is not None
    return evaluate(row.type.with_shape(shape), row.attrs, *operands)
