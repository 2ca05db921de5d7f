"""Products of a vector with a part of a matrix, which are read from the matrix itself.

A part ``A[i:j, :k]`` is the whole matrix with zeros around it. Where only products with vectors
read that, nothing is copied: they run between the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ckad.engines.native.values.registers import is_small
from ckad.tape.extents import Masks, Span
from ckad.tape.ops import Op
from ckad.tape.row import Row
from ckad.tape.tape import Tape


class PartProduct(NamedTuple):
    """A MATMUL row; ``spans`` of the matrix's rows and columns, None where all of them count."""

    matrix: int
    vector: int
    spans: tuple[Span | None, Span | None]
    sums_rows: bool  # the sum runs along a row of the matrix, else down a column


def part_products(tape: Tape) -> dict[int, PartProduct]:
    """The products of vectors with parts between bounds among the rows of a tape."""
    masks = Masks(tape.rows, tape.constants)
    return dict(_products(tape.rows, masks))


def reading_parts(rows: Sequence[Row], products: dict[int, PartProduct]) -> tuple[Row, ...]:
    """The rows as if these products had the matrix and the vector as their operands."""
    changed = {k: (p.matrix, p.vector) for k, p in products.items()}
    return tuple(
        row._replace(operands=changed[k]) if k in changed else row for k, row in enumerate(rows)
    )


def _products(rows: Sequence[Row], masks: Masks) -> Iterator[tuple[int, PartProduct]]:
    for k, row in enumerate(rows):
        if row.op is not Op.MATMUL or row.type.shape[0] != 1 or not row.type.is_float:
            continue
        (x, y), (_, m, n) = row.operands, row.type.shape
        if n == 1 and m > 1:
            matrix, vector, sums_rows = x, y, not row.attrs[0]
        elif m == 1 and n > 1:
            matrix, vector, sums_rows = y, x, bool(row.attrs[1])
        else:
            continue
        part = _part(rows, masks, matrix)
        if part is not None:
            yield k, PartProduct(part[0], vector, part[1], sums_rows)


def _part(
    rows: Sequence[Row], masks: Masks, x: int
) -> tuple[int, tuple[Span | None, Span | None]] | None:
    """The matrix of which row x is a part, and the spans of its two axes."""
    while (
        rows[x].op is Op.RESHAPE and rows[rows[x].operands[0]].type.shape == rows[x].type.shape[1:]
    ):
        (x,) = rows[x].operands
    row = rows[x]
    if row.op is not Op.SELECT or len(row.type.shape) != 2 or is_small(row.type):
        return None
    mask, matrix, rest = row.operands
    spans = masks.spans(mask)
    if spans is None or not masks.is_exact(mask) or not masks.is_zero(rest):
        return None
    by_axis = {span.axis: span for span in spans}
    return matrix, (by_axis.get(0), by_axis.get(1))
