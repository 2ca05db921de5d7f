"""Activity: which values depend on the differentiated inputs, and which the outputs depend on.

Loops are taken to a fixed point: a carry that becomes varied in one step is varied in all.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckad.errors import DifferentiationError
from ckad.rules import RULES
from ckad.tape.control import Loop, read_loop
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of
from ckad.tape.tape import Row, Tape

Flags = list[bool]


def dependent(tape: Tape, inputs: Sequence[bool]) -> Flags:
    """Per row: does it read one of the chosen inputs, itself or through other rows."""
    flags: Flags = []
    of = flags.__getitem__
    for op, operands, attrs, _, _ in tape.rows:
        flags.append(inputs[attrs[0]] if op is Op.INPUT else any(map(of, operands)))
    return flags


def has_derivative(op: int) -> bool:
    return op in RULES and RULES[op].jvp is not None


def varied(tape: Tape, inputs: Sequence[bool]) -> tuple[Flags, dict[int, Flags]]:
    """Per row: does it depend on the chosen inputs; per control row: its results likewise."""
    rows: Flags = []
    results: dict[int, Flags] = {}
    for k, row in enumerate(tape.rows):
        if row.op is Op.INPUT:
            rows.append(inputs[row.attrs[0]] and row.type.is_float)
        elif row.op is Op.RESULT:
            rows.append(
                results[row.operands[0]][row.attrs[0]] if row.operands[0] in results else False
            )
        elif row.op is Op.LOOP:
            results[k] = varied_loop(read_loop(tape, row), rows)
            rows.append(any(results[k]))
        elif row.op in (Op.TAPED_LOOP, Op.REVERSE_LOOP):
            if any(rows[x] for x in row.operands):
                raise DifferentiationError(
                    f"{tape.source_of(k)}: the tape is the adjoint of a loop, which cannot be "
                    "differentiated again. Take adjoint(tangent(tape)) instead."
                )
            rows.append(False)
        elif row.op is Op.COND:
            results[k] = _varied_cond(tape, row, rows)
            rows.append(any(results[k]))
        else:
            depends = has_derivative(row.op) and any(rows[x] for x in _derived_by(row))
            rows.append(depends and row.type.is_float)
    return rows, results


def _derived_by(row: Row) -> Sequence[int]:
    """The operands that a row may have a derivative by."""
    if row.op is Op.STOP:
        return ()
    marks = row.op is Op.CALL and routine_of(row).marks
    return row.operands[1:] if marks else row.operands


def varied_loop(loop: Loop, rows: Flags) -> Flags:
    """Which of the carry and ys are varied."""
    carry = [rows[x] for x in loop.carry]
    fixed = [rows[x] for x in (*loop.xs, *loop.captured)]
    while True:
        out = varied_outputs(loop.body, [False, *carry, *fixed])
        grown = [a or b for a, b in zip(carry, out, strict=False)]
        if grown == carry:
            return [*carry, *out[len(carry) :]]
        carry = grown


def varied_outputs(tape: Tape, inputs: Sequence[bool]) -> Flags:
    rows, _ = varied(tape, inputs)
    return [rows[k] for k in tape.outputs.tolist()]


def _varied_cond(tape: Tape, row: Row, rows: Flags) -> Flags:
    inputs = [rows[x] for x in row.operands[1:]]
    both = [varied_outputs(tape.bodies[k], inputs) for k in row.attrs[:2]]
    return [a or b for a, b in zip(*both, strict=True)]


def useful(tape: Tape, outputs: Sequence[bool]) -> tuple[Flags, dict[int, Flags]]:
    """Per row: do the chosen outputs depend on it; per control row: on which of its results."""
    rows = [False] * len(tape)
    results: dict[int, Flags] = {}
    for k, flag in zip(tape.outputs.tolist(), outputs, strict=True):
        rows[k] = rows[k] or flag
    for k in range(len(tape) - 1, -1, -1):
        row = tape.rows[k]
        if not rows[k]:
            continue
        if row.op is Op.RESULT and not row.type.is_float:  # a derivative goes no further
            continue
        if row.op is Op.RESULT:
            found = results.setdefault(row.operands[0], [])
            found.extend([False] * (row.attrs[0] + 1 - len(found)))
            found[row.attrs[0]] = True
        needs = _useful_operands(tape, row, k, results)
        for x, need in zip(row.operands, needs, strict=True):
            rows[x] = rows[x] or need
    return rows, results


def _useful_operands(tape: Tape, row: Row, k: int, results: dict[int, Flags]) -> Flags:
    if row.op is Op.LOOP:
        loop = read_loop(tape, row)
        results[k] = _padded(results.get(k, []), len(loop.body.outputs))
        results[k], inputs = useful_loop(loop, results[k])
        return inputs[1:]
    if row.op is Op.COND:
        bodies = [tape.bodies[b] for b in row.attrs[:2]]
        results[k] = _padded(results.get(k, []), len(bodies[0].outputs))
        both = [useful_inputs(body, results[k]) for body in bodies]
        return [False, *(a or b for a, b in zip(*both, strict=True))]
    derived_by = _derived_by(row)
    return [x in derived_by for x in row.operands]


def useful_loop(loop: Loop, results: Flags) -> tuple[Flags, Flags]:
    """The flags of the results grown to a fixed point, and those of the body's inputs."""
    n = len(loop.carry)
    while True:
        inputs = useful_inputs(loop.body, results)
        grown = [r or (k < n and inputs[1 + k]) for k, r in enumerate(results)]
        if grown == results:
            for k in range(n):
                inputs[1 + k] = inputs[1 + k] or results[k]
            return results, inputs
        results = grown


def useful_inputs(tape: Tape, outputs: Sequence[bool]) -> Flags:
    rows, _ = useful(tape, outputs)
    return [rows[k] for k in tape.inputs.tolist()]


def _padded(flags: Flags, n: int) -> Flags:
    return flags + [False] * (n - len(flags))
