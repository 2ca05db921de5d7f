"""Inputs that stay where they are, which may be a file: steps read elements of them."""

from __future__ import annotations

from ckad.tape.control import read_loop, read_reverse_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType


def far_inputs(tape: Tape) -> set[int]:
    """The inputs that loops read at their index, and nothing reads as a whole; their numbers are as
    long as cells."""
    return {
        number
        for number, k in enumerate(tape.inputs.tolist())
        if tape.rows[k].type.dtype in (DType.F64, DType.I64)
        and any(row.op in _LOOPS and k in row.operands for row in tape.rows)
        and _is_far(tape, k)
    }


_LOOPS = (Op.LOOP, Op.TAPED_LOOP, Op.REVERSE_LOOP)


def _is_far(tape: Tape, k: int) -> bool:
    """Whether everything that reads row ``k`` reads elements along an axis."""
    if k in tape.outputs.tolist():
        return False
    for row in tape.rows:
        if k not in row.operands:
            continue
        if row.op is Op.GATHER and row.operands[1] != k:
            continue
        if row.op not in _LOOPS:
            return False
        xs, bodies = _parts(tape, row)
        captured = [(body, at, first) for body, at, first in bodies if k in at]
        n_uses = xs.count(k) + (captured[0][1].count(k) if captured else 0)
        if n_uses != row.operands.count(k):  # the loop carries it, or adds to it
            return False
        for body, at, first in captured:
            own = [body.inputs.tolist()[first + p] for p, x in enumerate(at) if x == k]
            if not all(_is_far(body, x) for x in own):
                return False
    return True


def _parts(tape: Tape, row: Row) -> tuple[tuple[int, ...], list[tuple[Tape, tuple[int, ...], int]]]:
    """A loop's xs; its bodies, what they capture, and which input of theirs is the first of it."""
    if row.op is Op.REVERSE_LOOP:
        reverse = read_reverse_loop(tape, row)
        state, residuals = (1 + len(reverse.xs) + n for n in (reverse.n_carry, reverse.n_residuals))
        bodies = (reverse.advance, state), (reverse.taping, state), (reverse.reverse, residuals)
        return reverse.xs, [(body, reverse.captured, first) for body, first in bodies]
    loop = read_loop(tape, row)
    first = 1 + len(loop.carry) + len(loop.xs)
    return loop.xs, [(body, loop.captured, first) for body in (loop.body, loop.taping) if body]
