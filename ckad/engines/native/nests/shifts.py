"""Rows that move an array by a number of places that a program computes.

Where two parts of different places meet (``x[:k] + y[n - k:]``), one is picked by the indices
``clip(place + b, 0, n - 1)``. They follow each other: nothing is looked up, and no indices are
computed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ckad.engines.native.values.registers import is_small
from ckad.tape.extents import Bound, Masks
from ckad.tape.ops import Op
from ckad.tape.tape import Tape

_MOVES = (Op.GATHER, Op.SCATTER_ADD)


def shifts(tape: Tape) -> dict[int, Bound]:
    """The rows that pick, or add to, elements so along the first axis; by how many places."""
    return dict(_shifts(tape))


def _shifts(tape: Tape) -> Iterator[tuple[int, Bound]]:
    masks = Masks(tape.rows, tape.constants)
    for k, row in enumerate(tape.rows):
        if row.op in _MOVES and row.attrs[0] == 0 and not is_small(row.type):
            index = tape.rows[row.operands[1]]
            clipped = index.op is Op.MINIMUM and not is_small(index.type)
            n = tape.rows[row.operands[0]].type.shape[0]
            bound = masks.shift(row.operands[1], n) if clipped else None
            if bound is not None:
                yield k, bound
