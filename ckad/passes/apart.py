"""Branches apart: a COND for each of its results, with what that result needs alone.

It repeats what several results share, and is made for tapes of which one result is wanted: what
one of them depends on is then seen.
"""

from __future__ import annotations

from ckad.passes.dce import dce, drop_inputs
from ckad.passes.rewrite import rebuild, with_outputs
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import TUPLE


def apart(tape: Tape) -> Tape:
    """``tape`` with one result per COND, in bodies too."""

    def one(b: Builder, row: Row, env: list[int]) -> int | None:
        if row.op is not Op.RESULT or tape.rows[row.operands[0]].op is not Op.COND:
            return None
        cond = tape.rows[row.operands[0]]
        sides = [apart(tape.bodies[k]) for k in cond.attrs]
        sides = [dce(with_outputs(s, [s.outputs.tolist()[row.attrs[0]]])) for s in sides]
        unread = set.intersection(*map(_unread, sides))
        kept = [x for at, x in enumerate(cond.operands[1:]) if at not in unread]
        bodies = [b.body(drop_inputs(s, unread)) for s in sides]
        made = b.emit(Op.COND, [env[cond.operands[0]], *(env[x] for x in kept)], bodies, TUPLE)
        return b.emit(Op.RESULT, (made,), (0,), row.type)

    return dce(rebuild(tape, one, apart))


def _unread(tape: Tape) -> set[int]:
    read = {x for row in tape.rows for x in row.operands} | set(tape.outputs.tolist())
    return {at for at, x in enumerate(tape.inputs.tolist()) if x not in read}


def needed_alone(tape: Tape) -> tuple[Tape, set[int]]:
    """``tape`` without what its outputs do not need, and which of its inputs it has no more."""
    slim = apart(tape)
    unread = _unread(slim)
    return drop_inputs(slim, unread), unread
