"""Numbers of single rows, and of what the sides of a branch give, while recording."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ckad.tape.ops import Op
from ckad.tape.row import Row
from ckad.tape.tape import Tape
from ckad.trace.memory.known import computed

Numbers = Callable[[int], Any]


def result_of(branch: Row, bodies: Any, which: int, given: Numbers) -> Any:
    """A result of a branch, from the numbers of its operands, which ``given`` tells by position."""
    if branch.op is not Op.COND:
        return None
    verdict = given(0)
    if verdict is None:
        return None
    side: Tape = bodies[branch.attrs[0 if verdict else 1]]
    return _of_tape(side, int(side.outputs[which]), lambda k: given(k + 1), {})


def _of_tape(tape: Tape, k: int, given: Numbers, known: dict[int, Any]) -> Any:
    if k not in known:
        known[k] = _row_of_tape(tape, k, given, known)
    return known[k]


def _row_of_tape(tape: Tape, k: int, given: Numbers, known: dict[int, Any]) -> Any:
    row = tape.rows[k]
    if row.op is Op.CONST:
        return tape.constants[row.attrs[0]]
    if row.op is Op.INPUT:
        return given(row.attrs[0])
    if row.op is Op.RESULT:
        inner = tape.rows[row.operands[0]]

        def operand(n: int) -> Any:
            return _of_tape(tape, inner.operands[n], given, known)

        return result_of(inner, tape.bodies, row.attrs[0], operand)
    values = [_of_tape(tape, x, given, known) for x in row.operands]
    return None if any(x is None for x in values) else computed(row, values)
