"""Whether a function has kinks: choices, by what it is a function of, between formulas."""

from __future__ import annotations

from collections.abc import Sequence

from ckad.passes.activity import Flags
from ckad.tape.control import WHILE, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape

#: Ops whose slope jumps with any of their operands, and those of which the last is an index.
_JUMPS = frozenset({
    Op.ABS, Op.SIGN, Op.FLOOR, Op.CEIL, Op.TRUNC, Op.RINT, Op.FLOORDIV, Op.MOD, Op.COPYSIGN,
    Op.MAXIMUM, Op.MINIMUM, Op.REDUCE_MAX, Op.REDUCE_MIN,
})  # fmt: skip
_INDEXED = {Op.GATHER: 1, Op.SCATTER: 1, Op.SCATTER_ADD: 1}


def has_kinks(tape: Tape, inputs: Sequence[bool]) -> bool:
    """Whether what ``tape`` gives is chosen, somewhere, by the inputs that are marked.

    A comparison is none that only stops the program; a loop is one that ends by a number computed.
    """
    return _followed(tape, inputs)[1]


def _followed(tape: Tape, inputs: Sequence[bool]) -> tuple[Flags, bool]:
    """Which outputs depend on the inputs, and whether something chooses by these."""
    rows: Flags = []
    results: dict[int, Flags] = {}
    chooses = False
    for k, row in enumerate(tape.rows):
        if row.op is Op.INPUT:
            rows.append(inputs[row.attrs[0]])
        elif row.op is Op.RESULT and row.operands[0] in results:
            rows.append(results[row.operands[0]][row.attrs[0]])
        elif row.op in (Op.LOOP, Op.COND):
            follow = _loop if row.op is Op.LOOP else _cond
            results[k], within = follow(tape, row, rows)
            rows.append(any(results[k]))
            chooses = chooses or within
        else:
            rows.append(any(rows[x] for x in row.operands))
            chooses = chooses or any(rows[x] for x in _choosing(row))
    return [rows[k] for k in tape.outputs.tolist()], chooses


def _choosing(row: Row) -> Sequence[int]:
    """The operands by which a row chooses between formulas."""
    if row.op is Op.SELECT:
        return row.operands[:1]
    if row.op in _INDEXED:
        return (row.operands[_INDEXED[row.op]],)
    return row.operands if row.op in _JUMPS else ()


def _loop(tape: Tape, row: Row, rows: Flags) -> tuple[Flags, bool]:
    loop = read_loop(tape, row)
    carry = [rows[x] for x in loop.carry]
    fixed = [rows[x] for x in (*loop.xs, *loop.captured)]
    while True:
        out, chooses = _followed(loop.body, [False, *carry, *fixed])
        grown = [a or b for a, b in zip(carry, out, strict=False)]
        if grown == carry:
            ends = loop.guard >= WHILE and carry[0]
            return [*carry, *out[len(carry) :]], chooses or ends
        carry = grown


def _cond(tape: Tape, row: Row, rows: Flags) -> tuple[Flags, bool]:
    inputs = [rows[x] for x in row.operands[1:]]
    both = [_followed(tape.bodies[k], inputs) for k in row.attrs[:2]]
    depends = [a or b for a, b in zip(*(flags for flags, _ in both), strict=True)]
    chosen = rows[row.operands[0]]
    flags = [True] * len(depends) if chosen else depends
    return flags, chosen or any(within for _, within in both)
