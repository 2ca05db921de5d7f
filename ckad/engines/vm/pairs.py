"""Two rows in one instruction: a product, sum or difference that one other row reads.

Both operations round as they do alone, so every number stays the same; what is saved is the
instruction and the way of the value between them through memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import DType


class Pair(NamedTuple):
    """``outer(inner(x, y), z)``, or ``outer(z, inner(x, y))`` if the inner value comes second."""

    inner: int
    outer: int
    second: bool = False


_INNER = (Op.MUL, Op.ADD, Op.SUB)
#: The kernels there are. The order of the operands only matters to a difference.
PAIRS = [
    *(Pair(inner, outer) for inner in _INNER for outer in (Op.ADD, Op.MUL, Op.SUB)),
    *(Pair(inner, Op.SUB, True) for inner in _INNER),
]


class Joined(NamedTuple):
    """A row that computes another one on the way."""

    pair: Pair
    inner: int
    operands: tuple[int, ...]  # x, y, z


def joined_rows(
    tape: Tape, rows: Sequence[int], readers: Sequence[Sequence[int]]
) -> dict[int, Joined]:
    """Outer rows among ``rows`` with what they absorb; a row takes part in one pair only."""
    inside, outputs = set(rows), set(tape.outputs.tolist())
    found: dict[int, Joined] = {}
    absorbed: set[int] = set()
    for k in rows:
        row = tape.rows[k]
        if row.op not in (Op.ADD, Op.MUL, Op.SUB) or row.type.dtype is not DType.F64:
            continue
        for side, x in enumerate(row.operands):
            inner = tape.rows[x]
            free = x in inside and x not in found and x not in absorbed and x not in outputs
            if free and inner.op in _INNER and len(readers[x]) == 1 and inner.type == row.type:
                pair = Pair(inner.op, row.op, bool(side) and row.op is Op.SUB)
                found[k] = Joined(pair, x, (*inner.operands, row.operands[1 - side]))
                absorbed.add(x)
                break
    return found
