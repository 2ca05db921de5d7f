"""Rows that may write over arrays, and what reads these before.

A row alone that writes a part of an array, or a loop that carries it, takes its place if nobody
reads the array later. So whatever reads it before, as the tape has it, is to be computed before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ckad.engines.native.values.registers import is_small
from ckad.tape.control import read_loop, read_reverse_loop
from ckad.tape.ops import Op
from ckad.tape.row import Row
from ckad.tape.tape import Tape

#: Ops that change a part of their first operand.
WRITES = (Op.UPDATE, Op.SLICE_ADD, Op.SCATTER, Op.SCATTER_ADD)


def reads_before(
    tape: Tape,
    rows: Sequence[Row],
    readers: Sequence[Sequence[int]],
    k: int,
    is_virtual: Callable[[int], bool],
) -> Iterator[int]:
    """The rows, not virtual ones, that read an array before row k may take its place."""
    for x in _taken(tape, rows[k]):
        family = list(_family(rows, readers, x))
        reads = [r for a in family for r in readers[a] if r not in family]
        if any(r > k for r in reads):
            continue  # it is copied
        seen = {k}
        while reads:
            r = reads.pop()
            if r in seen or r > k:
                continue
            seen.add(r)
            if is_virtual(r):
                reads += readers[r]
            else:
                yield r


def _taken(tape: Tape, row: Row) -> Sequence[int]:
    if row.op in WRITES:
        taken: Sequence[int] = row.operands[:1]
    elif row.op in (Op.LOOP, Op.TAPED_LOOP):
        taken = read_loop(tape, row).carry
    elif row.op is Op.REVERSE_LOOP:
        loop = read_reverse_loop(tape, row)
        taken = (*loop.ct_carry, *loop.sums)
    else:
        return ()
    return [x for x in taken if not is_small(tape.rows[x].type)]


def _family(rows: Sequence[Row], readers: Sequence[Sequence[int]], x: int) -> Iterator[int]:
    """The rows that may show the same memory."""
    while rows[x].op is Op.RESHAPE:
        (x,) = rows[x].operands
    shown = [x]
    for k in shown:
        yield k
        shown += [r for r in readers[k] if rows[r].op is Op.RESHAPE]
