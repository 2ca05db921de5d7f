"""How many bytes native code moves between memory and registers, counted over nests and rows."""

from __future__ import annotations

from collections.abc import Sequence

from ckad.engines.counts import Body, total, touched
from ckad.engines.native.nests.boxes import fused
from ckad.engines.native.nests.fusion import Fusion, Nest
from ckad.engines.native.values.registers import is_small
from ckad.tape.ops import OPS, Group
from ckad.tape.tape import Tape


def moved_bytes(body: Body) -> int:
    """Bytes that one run of ``body`` reads from arrays in memory and writes to them.

    A nest reads and writes each of its arrays once, at however many places it looks at it; a row
    alone, its operands and its result. Small arrays are in registers, but for those that the body
    finds in arrays around it or leaves there.
    """
    tape, (fusion, _) = body.tape, fused(body.tape)
    inputs = [tape.input_types[k] for k in body.fetched]
    outputs = [tape.output_types[k] for k in body.kept]
    around = sum(t.nbytes for t in (*inputs, *outputs) if t.is_array and is_small(t))
    return around + sum(_item(tape, fusion, item) for item in fusion.items)


def _item(tape: Tape, fusion: Fusion, item: int | Nest) -> int:
    if isinstance(item, Nest):
        return _large(tape, [*item.leaves, *item.outputs])
    row = tape.rows[item]
    if OPS[row.op].group is Group.CONTROL:
        return total(tape, row, moved_bytes)
    if fusion.uniform[item] is not None and not fusion.in_memory[item]:
        return 0
    return sum(p.type.nbytes for p in touched(tape, item) if not is_small(tape.rows[p.row].type))


def _large(tape: Tape, rows: Sequence[int]) -> int:
    types = [tape.rows[k].type for k in rows]
    return sum(t.nbytes for t in types if not is_small(t))
