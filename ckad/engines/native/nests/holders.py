"""Arrays of which other rows are parts: what an UPDATE, a PAD or a CONCAT holds of its operands.

`fusion` reads a part from the array that holds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ckad.tape.ops import Op
from ckad.tape.tape import Row


class Holder(NamedTuple):
    """An array of which another row is the part that begins at ``starts``."""

    row: int
    starts: tuple[int, ...]


def held_in(rows: Sequence[Row], k: int, row: Row) -> Iterator[tuple[int, Holder]]:
    """The operands that row k holds unchanged."""
    if row.op is Op.UPDATE:
        yield row.operands[1], Holder(k, row.attrs[: len(row.type.shape)])
    elif row.op is Op.PAD:
        yield row.operands[0], Holder(k, row.attrs[: len(row.type.shape)])
    elif row.op is Op.CONCAT:
        (axis,) = row.attrs
        first = 0
        for x in row.operands:
            yield x, Holder(k, tuple(first if a == axis else 0 for a in range(len(row.type.shape))))
            first += rows[x].type.shape[axis]
