"""Sums of contributions to a cotangent."""

from __future__ import annotations

from ckad.tape.builder import Builder
from ckad.tape.extents import Masks
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
        and Masks(b.rows, b.constants).is_zero(cleared.operands[1])
    ):
        total = b.update(cleared.operands[0], padded.operands[0], attrs=padded.attrs)
        for term in reversed(terms[:-1]):
            total = b.add(total, b.rows[term].operands[1])
        return total
    placed = _plus_part(b, x, y)
    return b.add(x, y) if placed is None else placed


def _plus_part(b: Builder, x: int, y: int) -> int | None:
    """x + y where y is a part between bounds, with zeros around: what lies outside stays as it is.

    The part may be seen in another shape. Where x is zero there, it takes that place.
    """
    part = b.rows[y].operands[0] if b.rows[y].op is Op.RESHAPE else y
    if b.rows[part].op is not Op.SELECT:
        return None
    masks = Masks(b.rows, b.constants)
    mask, new, rest = b.rows[part].operands
    if not masks.is_zero(rest) or masks.spans(mask) is None:
        return None
    before = b.reshape_to(x, b.type(part).shape)
    op, operands, *_ = b.rows[before]
    if op is Op.SELECT and operands[0] == mask and masks.is_zero(operands[1]):
        placed = _joined(b, mask, new, operands[2])
    else:
        placed = b.select(mask, b.add(before, new), before)
    return b.reshape_to(placed, b.type(y).shape)


def _joined(b: Builder, mask: int, inside: int, outside: int) -> int:
    """Two parts of one row are that row."""
    row = b.rows[inside]
    if row.op is Op.SELECT and row.operands[0] == mask:
        inside = row.operands[1]
    return outside if inside == outside else b.select(mask, inside, outside)
