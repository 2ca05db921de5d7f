"""Residuals of which the reverse reads a part between bounds are kept between these alone.

A step that changes ``a[:, k + 1:]`` needs that part of ``a`` in its reverse, which reads it by
a choice with the mask of the part. So the taping body gives the choice in place of the array, and
says so (`PART`): an engine writes what lies between the bounds, and leaves the rest as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ckad.passes.activity import dependent
from ckad.passes.liveness import readers
from ckad.tape.builder import Builder
from ckad.tape.extents import PART, Masks, Spans
from ckad.tape.ops import Op
from ckad.tape.tape import Tape

#: Arrays of fewer elements are kept as they are.
LEAST = 1024


def bounded(
    joint: Tape, n_primal: int, residuals: Sequence[int], reverse: Tape
) -> tuple[Tape, list[int]]:
    """The joint tape with what is kept instead, and the rows to keep.

    The inputs of the reverse are the step's number, the ``residuals``, and others.
    """
    inputs = reverse.inputs.tolist()[1 : 1 + len(residuals)]
    read = readers(reverse)
    found = [
        (at, k)
        for at, (k, x) in enumerate(zip(residuals, inputs, strict=True))
        if joint.rows[k].type.is_float
        and joint.rows[k].type.size >= LEAST
        and all(_is_choice(reverse, x, r) for r in read[x])
        and x not in reverse.outputs
    ]
    masks = dict(_masks(joint, n_primal, [k for _, k in found])) if found else {}
    if not masks:
        return joint, list(residuals)
    b, env = Builder(), dict[int, int]()
    for k in range(len(joint)):
        env[k] = b.copy_row(joint, k, env)
    kept = [env[k] for k in residuals]
    for at, k in found:
        if k in masks:
            zero = b.full_like(env[k], 0.0)
            kept[at] = b.emit(Op.SELECT, (env[masks[k]], env[k], zero), (PART,))
    return b.tape([env[k] for k in joint.outputs.tolist()]), kept


def _is_choice(tape: Tape, x: int, r: int) -> bool:
    """Whether row r reads row x where a mask is true alone."""
    row = tape.rows[r]
    return row.op is Op.SELECT and row.operands[1] == x and row.operands.count(x) == 1


def _masks(joint: Tape, n_primal: int, kept: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(row, mask) of those that all choices of the joint tape read between the same bounds."""
    dual = dependent(joint, [k >= n_primal for k in range(len(joint.inputs))])
    read, masks = readers(joint), Masks(joint.rows, joint.constants)
    for k in kept:
        found = {joint.rows[r].operands[0] for r in read[k] if _is_choice(joint, k, r)}
        spans: set[Spans | None] = {masks.spans(m) for m in found}
        if len(spans) != 1 or None in spans or any(dual[m] for m in found):
            continue
        if len(found) == 1 or all(map(masks.is_exact, found)):
            yield k, min(found)
