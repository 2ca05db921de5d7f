"""Predictions of time: what a tape costs in machine code, and what it costs to compile."""

from __future__ import annotations

from ckad.engines.native.fusion import work_of
from ckad.engines.native.layout import is_small
from ckad.tape.control import read_loop, read_reverse_loop
from ckad.tape.ops import OPS, Group, Op
from ckad.tape.tape import Row, Tape

#: Nanoseconds per unit of work: a scalar op, and an element of a large array.
SCALAR, ELEMENT = 0.3, 0.06


def nanoseconds(tape: Tape) -> float:
    """About how long a tape runs."""
    return sum(_row(tape, row) for row in tape.rows)


def _row(tape: Tape, row: Row) -> float:
    group = OPS[row.op].group
    if group is Group.CONTROL:
        return _control(tape, row)
    if group is Group.LEAF:
        return 0.0
    sizes = [tape.rows[x].type.size for x in row.operands]
    size = max([row.type.size, *sizes])
    if row.op is Op.MATMUL:
        return 0.1 * row.type.size * sizes[0] / max(1, row.type.shape[1] * row.type.shape[0])
    work = max(1, work_of(row.op))
    return work * (SCALAR * (1 + size / 8) if is_small(row.type) else ELEMENT * size)


def _control(tape: Tape, row: Row) -> float:
    if row.op in (Op.LOOP, Op.TAPED_LOOP):
        loop = read_loop(tape, row)
        return loop.length * nanoseconds(loop.taping or loop.body)
    if row.op is Op.REVERSE_LOOP:
        reverse = read_reverse_loop(tape, row)
        return reverse.length * nanoseconds(reverse.reverse)
    return max(nanoseconds(tape.bodies[k]) for k in row.attrs[:2])
