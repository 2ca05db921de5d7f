"""Which rows run together strip by strip, and in which order the rest follows."""

from __future__ import annotations

from collections.abc import Sequence

from ckad.engines.vm.isa import STRIP
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.tape import Row, Tape

#: A row alone, or a chain of rows of one size.
Item = int | list[int]
_VIEWS = {Op.SLICE, Op.ROLL, Op.PAD, Op.TRANSPOSE, Op.BROADCAST}
_LEAVES = {Op.INPUT, Op.CONST}
#: Rows of a chain at most: what the chain keeps in L1 grows with it.
LONGEST = 256


def is_splat(tape: Tape, k: int) -> bool:
    """A scalar repeated over an array: a chain keeps one strip of it."""
    row = tape.rows[k]
    return row.op is Op.BROADCAST and tape.rows[row.operands[0]].type.size == 1


def strip_size(tape: Tape, row: Row) -> int:
    """The number of elements a chain that holds the row runs over; 0 if it cannot be in one."""
    if row.op is Op.SUM:
        source = tape.rows[row.operands[0]].type
        fits = source.is_float and row.type.size == 1 and source.size > STRIP
        return source.size if fits else 0
    if not row.type.is_array or row.type.size <= STRIP:
        return 0
    if row.op is Op.PAD and any(s != 1 for s in row.attrs[len(row.attrs) // 2 :]):
        return 0
    streams = (is_elementwise(row.op) and row.op is not Op.WRAP) or row.op in _VIEWS
    return row.type.size if streams else 0


def reads_in_place(row: Row) -> bool:
    """Whether the row reads the same place of its operands that it writes."""
    return is_elementwise(row.op) or row.op is Op.SUM


def group(tape: Tape, chained: bool = True) -> list[Item]:
    """The rows of ``tape`` as items in an order that respects their operands."""
    sizes = [strip_size(tape, row) if chained else 0 for row in tape.rows]
    done = [row.op in _LEAVES for row in tape.rows]
    splats = [bool(sizes[k]) and is_splat(tape, k) for k in range(len(tape))]
    items: list[Item] = []
    for k, row in enumerate(tape.rows):
        if done[k]:
            continue
        if not sizes[k] or splats[k]:
            items.append(k)
            done[k] = True
        else:
            items.append(_chain(tape, k, sizes, splats, done))
    return items


def _chain(
    tape: Tape, first: int, sizes: Sequence[int], splats: Sequence[bool], done: list[bool]
) -> list[int]:
    """All rows of one size, from ``first`` on, that can run before anything that is not done."""
    chain: list[int] = []
    inside: set[int] = set()
    for k in range(first, len(tape)):
        if done[k] or sizes[k] != sizes[first] or splats[k] or len(chain) == LONGEST:
            continue
        row = tape.rows[k]
        direct = reads_in_place(row)
        ready = all(
            done[x]
            or (direct and x in inside)
            or (direct and splats[x] and done[tape.rows[x].operands[0]])
            for x in row.operands
        )
        if ready:
            chain.append(k)
            inside.add(k)
    for k in chain:
        done[k] = True
    return chain
