"""Sums of contributions to a cotangent."""

from __future__ import annotations

import numpy as np

from ckad.passes.extents import Masks
from ckad.tape.builder import Builder
from ckad.tape.ops import Op

#: Terms of a cotangent that are looked through for a part that is still zero.
MOST_TERMS = 16


def plus(b: Builder, x: int, y: int) -> int:
    """x + y; where x has zeros in place of a part, and y is that part alone, it is put there.

    The zeros may be the first of several terms. Where y is a part between bounds, it is added there
    alone.
    """
    padded = b.rows[y]
    terms = [x]
    while b.rows[terms[-1]].op is Op.ADD and len(terms) < MOST_TERMS:
        terms.append(b.rows[terms[-1]].operands[0])
    cleared = b.rows[terms[-1]]
    if (
        padded.op is Op.PAD
        and cleared.op is Op.UPDATE
        and cleared.attrs == padded.attrs
        and b.type(cleared.operands[1]) == b.type(padded.operands[0])
        and _is_zero(b, cleared.operands[1])
    ):
        total = b.update(cleared.operands[0], padded.operands[0], attrs=padded.attrs)
        for term in reversed(terms[:-1]):
            total = b.add(total, b.rows[term].operands[1])
        return total
    if padded.op is Op.SELECT and not b.type(y).size == 1:
        masks = Masks(b.rows, b.constants)
        mask, part, rest = padded.operands
        if masks.is_zero(rest) and masks.spans(mask):  # what lies outside of a part stays as it is
            return b.select(mask, b.add(x, part), x)
    return b.add(x, y)


def _is_zero(b: Builder, x: int) -> bool:
    row = b.rows[x]
    if row.op is Op.BROADCAST:
        return _is_zero(b, row.operands[0])
    return row.op is Op.CONST and not np.any(b.constants[row.attrs[0]])
