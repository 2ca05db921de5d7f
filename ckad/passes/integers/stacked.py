"""What each step writes at its own number into an array is what the loop gives, not carries.

An array that is carried is part of every restart state. So where step i writes row i + s, and
reads a few rows before it at the most, the steps carry these rows alone; what they write is
stacked, and put into the array behind the loop. It is for the loops of the tape itself, before it
is differentiated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ckad.passes.liveness import readers
from ckad.tape.builder import Builder
from ckad.tape.control import UNGUARDED, Loop, loop_attrs, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import TUPLE, Type

#: So many rows before its own a step may read.
MOST_BEFORE = 4


class Written(NamedTuple):
    """A carried array of which step i writes row i + first along an axis."""

    position: int  # in the carry
    axis: int
    first: int
    write: int  # the row of the body that writes it
    reads: dict[int, int]  # row of a read -> how far before its own row
    before: int  # how many rows before its own a step needs

    @property
    def ahead(self) -> list[int]:
        """How far before their own the rows are that steps read as they were before the loop."""
        return sorted({far for far in self.reads.values() if far < 1})


def stacked(tape: Tape) -> Tape:
    """``tape`` whose loops give the rows that their steps write in order."""
    found = {
        k: written
        for k, row in enumerate(tape.rows)
        if row.op is Op.LOOP and (written := _written(read_loop(tape, row)))
    }
    if not found:
        return tape
    b, env = Builder(), dict[int, int]()
    results = dict[int, dict[int, int]]()  # row of a loop -> the rows of its results
    for k, row in enumerate(tape.rows):
        b.where = tape.sources[row.source]
        if k in found:
            results[k] = _rewritten(b, tape, row, found[k], env)
        elif row.op is Op.RESULT and row.operands[0] in results:
            env[k] = results[row.operands[0]][row.attrs[0]]
        else:
            env[k] = b.copy_row(tape, k, env)
    return b.tape([env[k] for k in tape.outputs.tolist()])


def _written(loop: Loop) -> list[Written]:
    if loop.guard != UNGUARDED or not loop.length:
        return []
    read = readers(loop.body)
    found = (_of_carry(loop, at, read) for at in range(len(loop.carry)))
    return [x for x in found if x is not None]


def _of_carry(loop: Loop, position: int, read: Sequence[Sequence[int]]) -> Written | None:
    body = loop.body
    before, after = int(body.inputs[1 + position]), int(body.outputs[position])
    row = body.rows[after]
    if row.op is not Op.SCATTER or row.operands[0] != before or read[after]:
        return None
    shown = [k for k in body.outputs.tolist() if k in (before, after)]
    first, axis = _shift(body, row.operands[1]), row.attrs[0]
    if len(shown) > 1 or first is None or before in row.operands[1:]:
        return None
    if first < 0 or first + loop.length > row.type.shape[axis]:
        return None
    reads = {}
    for k in read[before]:
        if k == after:
            continue
        at = _shift(body, body.rows[k].operands[1]) if body.rows[k].op is Op.GATHER else None
        if at is None or body.rows[k].attrs != (axis,) or body.rows[k].operands[0] != before:
            return None
        reads[k] = first - at
    far = max(reads.values(), default=0)
    last = first + loop.length - min(reads.values(), default=0)
    if far > min(MOST_BEFORE, first) or last > row.type.shape[axis]:
        return None
    return Written(position, axis, first, after, reads, max(far, 0))


def _shift(body: Tape, k: int) -> int | None:
    """s where row k is the number of the step plus s."""
    shift = 0
    while k != body.inputs[0]:
        row = body.rows[k]
        if row.op not in (Op.ADD, Op.SUB) or row.type.shape:
            return None
        x, y = row.operands
        if row.op is Op.ADD and body.rows[x].op is Op.CONST:
            x, y = y, x
        if body.rows[y].op is not Op.CONST:
            return None
        number = int(body.constants[body.rows[y].attrs[0]])
        shift += number if row.op is Op.ADD else -number
        k = x
    return shift


def _row_type(body: Tape, w: Written) -> Type:
    array = body.rows[w.write].type
    return array.with_shape((*array.shape[: w.axis], *array.shape[w.axis + 1 :]))


def _rewritten(
    b: Builder, tape: Tape, row: Row, written: list[Written], env: dict[int, int]
) -> dict[int, int]:
    """The new loop; its results by the numbers that they had."""
    loop, gone = read_loop(tape, row), {w.position for w in written}
    carry, xs, captured = ([env[x] for x in g] for g in (loop.carry, loop.xs, loop.captured))
    kept = [at for at in range(len(carry)) if at not in gone]
    rows = [
        b.gather(carry[w.position], b.const(np.int64(w.first - 1 - j)), attrs=(w.axis,))
        for w in written
        for j in range(w.before)
    ]
    own = [*(carry[at] for at in kept), *rows]
    xs += [
        _unwritten(b, carry[w.position], w, far, loop.length) for w in written for far in w.ahead
    ]
    body = _edited(loop, kept, written)
    attrs = loop_attrs(b.body(body), loop.length, len(own), len(xs), loop.guard)
    new = b.append(Op.LOOP, (*own, *xs, *captured), attrs, TUPLE)
    types = loop.body.output_types
    numbers = {at: j for j, at in enumerate(kept)}
    for y in range(loop.n_ys):
        numbers[len(carry) + y] = len(own) + y
    found = {}
    for at, number in numbers.items():
        type = (
            types[at] if at < len(carry) else types[at].with_shape((loop.length, *types[at].shape))
        )
        found[at] = b.emit(Op.RESULT, (new,), (number,), type)
    for j, w in enumerate(written):
        part = _row_type(loop.body, w)
        steps = part.with_shape((loop.length, *part.shape))
        rows_of = b.emit(Op.RESULT, (new,), (len(own) + loop.n_ys + j,), steps)
        found[w.position] = _in_place(b, carry[w.position], rows_of, w)
    return found


def _unwritten(b: Builder, array: int, w: Written, far: int, length: int) -> int:
    """The rows that steps find where nothing is written yet."""
    shape = b.type(array).shape
    rank = len(shape)
    starts = [w.first - far if a == w.axis else 0 for a in range(rank)]
    cut = [length if a == w.axis else n for a, n in enumerate(shape)]
    type = b.type(array).with_shape(tuple(cut))
    rows = b.slice(array, attrs=(*starts, *[1] * rank), type=type)
    order = (w.axis, *(a for a in range(rank) if a != w.axis))
    return b.transpose(rows, attrs=order) if w.axis else rows


def _in_place(b: Builder, array: int, rows: int, w: Written) -> int:
    """The array with the rows that the steps have given."""
    shape, rank = b.type(array).shape, len(b.type(array).shape)
    if w.axis:
        order = (*range(1, w.axis + 1), 0, *range(w.axis + 1, rank))
        rows = b.transpose(rows, attrs=order)
    if b.type(rows).shape == shape:
        return rows
    starts = [w.first if a == w.axis else 0 for a in range(rank)]
    return b.update(array, rows, attrs=(*starts, *[1] * rank))


def _edited(loop: Loop, kept: Sequence[int], written: Sequence[Written]) -> Tape:
    """The body: (i, carry, rows before, xs, rows as they were, captured) -> (carry, rows before,
    ys, rows)."""
    body, n, b = loop.body, len(loop.carry), Builder()
    inputs, outputs = body.inputs.tolist(), body.outputs.tolist()
    env = {k: b.input(body.rows[k].type) for k in (inputs[0], *(inputs[1 + at] for at in kept))}
    before = [[b.input(_row_type(body, w)) for _ in range(w.before)] for w in written]
    fixed = 1 + n + len(loop.xs)
    env |= {k: b.input(body.rows[k].type) for k in inputs[1 + n : fixed]}
    for w, rows in zip(written, before, strict=True):
        ahead = {far: b.input(_row_type(body, w)) for far in w.ahead}
        env |= {k: rows[far - 1] if far > 0 else ahead[far] for k, far in w.reads.items()}
    env |= {k: b.input(body.rows[k].type) for k in inputs[fixed:]}
    left = {w.write for w in written} | {inputs[1 + w.position] for w in written}
    for k in range(len(body)):
        if k not in env and k not in left:
            env[k] = b.copy_row(body, k, env)
    new = [
        b.reshape_to(env[body.rows[w.write].operands[2]], _row_type(body, w).shape) for w in written
    ]
    shifted = [x for row, rows in zip(new, before, strict=True) for x in [row, *rows][: len(rows)]]
    first = [env[outputs[at]] for at in kept]
    return b.tape([*first, *shifted, *(env[k] for k in outputs[n:]), *new])
