"""What every m-th step writes into an array is what a loop of loops of m steps gives.

An array that is written under a condition (`if t % m == 0: history[t // m] = u`) is carried, so it
is a part of every restart state. Where the steps that write follow from their number alone, and
are every m-th, the loop becomes one over groups of m steps, each of which gives one row; the rows
are put into the array behind the loop. What the steps compute, and in which order, stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ckad.passes.liveness import needed, readers
from ckad.tape.builder import Builder
from ckad.tape.control import UNGUARDED, Loop, loop_attrs, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import Type

#: Rows of so many bytes are worth a loop within the loop; and so many steps are looked at.
LEAST_BYTES, MOST_STEPS = 2048, 2**20
#: Groups of fewer steps cost more than they save.
LEAST_PERIOD = 8
#: The arrays have to be so many times as large as what else is carried.
WORTH = 4

_COMPUTED = {
    Op.ADD: np.add,
    Op.SUB: np.subtract,
    Op.MUL: np.multiply,
    Op.MOD: np.mod,
    Op.FLOORDIV: np.floor_divide,
    Op.EQ: np.equal,
    Op.NE: np.not_equal,
}


class Written(NamedTuple):
    """A carried array of which a branch writes a row in every m-th step."""

    position: int  # in the carry
    cond: int  # row of the branch
    number: int  # of its result
    side: int  # which of the two writes
    value: int  # the row of that side that it writes
    type: Type  # of the row
    first: int  # the first step that writes
    period: int
    place: int  # where that is; the next is written behind it


def periodic(tape: Tape) -> Tape:
    """``tape`` whose loops give the rows that every m-th of their steps writes."""
    found = {
        k: written
        for k, row in enumerate(tape.rows)
        if row.op is Op.LOOP and (written := _written(read_loop(tape, row)))
    }
    if not found:
        return tape
    b, env = Builder(), dict[int, int]()
    results = dict[int, list[int]]()  # row of a loop -> its results
    for k, row in enumerate(tape.rows):
        b.where = tape.sources[row.source]
        if k in found:
            results[k] = _grouped(b, read_loop(tape, row), found[k], env)
        elif row.op is Op.RESULT and row.operands[0] in results:
            env[k] = results[row.operands[0]][row.attrs[0]]
        else:
            env[k] = b.copy_row(tape, k, env)
    return b.tape([env[k] for k in tape.outputs.tolist()])


# --- which they are ------------------------------------------------------------------------------


def _written(loop: Loop) -> list[Written]:
    if loop.guard != UNGUARDED or not 0 < loop.length <= MOST_STEPS or loop.n_ys or loop.xs:
        return []
    read = readers(loop.body)
    each = (_of_carry(loop, at, read) for at in range(len(loop.carry)))
    found = [x for x in each if x is not None]
    found = [x for x in found if x.period == found[0].period]
    sizes = [t.nbytes for t in loop.body.output_types]
    own = sum(sizes[x.position] for x in found)
    return found if own >= WORTH * (sum(sizes) - own) else []


def _of_carry(loop: Loop, position: int, read: Sequence[Sequence[int]]) -> Written | None:
    """What is written, if nothing else reads or writes the array, nor shows it."""
    body = loop.body
    before, after = int(body.inputs[1 + position]), int(body.outputs[position])
    result, outputs = body.rows[after], body.outputs.tolist()
    if result.op is not Op.RESULT or read[after] or outputs.count(after) > 1 or before in outputs:
        return None
    (k,), (number,) = result.operands, result.attrs
    cond = body.rows[k]
    if cond.op is not Op.COND or set(read[before]) != {k} or cond.operands.count(before) > 1:
        return None
    at, sides = cond.operands.index(before) - 1, [body.bodies[x] for x in cond.attrs[:2]]
    side = next((n for n, x in enumerate(sides) if _shows(x, at, number)), None)
    if at < 0 or side is None or not _shows(sides[1 - side], at, number, as_it_is=True):
        return None
    own = sides[side]
    write = own.rows[int(own.outputs[number])]
    index, value = write.operands[1:]
    steps = np.arange(loop.length, dtype=np.int64)
    given = {int(body.inputs[0]): steps}
    truth = _computed(body, cond.operands[0], given)
    if truth is None:
        return None
    found = [_computed(body, x, given) for x in cond.operands[1:]]
    inner = {int(x): v for x, v in zip(own.inputs, found, strict=True) if v is not None}
    places = _computed(own, index, inner)
    (when,) = np.nonzero(
        np.broadcast_to(truth if side == 0 else np.logical_not(truth), steps.shape)
    )
    if places is None or len(when) < 2:
        return None
    first, period, rows = int(when[0]), int(when[1] - when[0]), write.type.shape[0]
    places = np.broadcast_to(places, steps.shape)[when]
    place = int(places[0])
    if (
        period < LEAST_PERIOD
        or not np.array_equal(when, np.arange(first, loop.length, period))
        or first >= period
        or not np.array_equal(places, np.arange(place, place + len(when)))
        or not 0 <= place <= rows - len(when)
    ):
        return None
    type = own.rows[value].type
    return Written(position, k, number, side, value, type, first, period, place)


def _shows(side: Tape, at: int, number: int, as_it_is: bool = False) -> bool:
    """Whether a result of a side is its input ``at`` with a row written, or as it is, and nothing
    else is done with that."""
    array, k = int(side.inputs[at]), int(side.outputs[number])
    outputs, read = side.outputs.tolist(), readers(side)
    if outputs.count(k) > 1 or read[k]:
        return False
    if as_it_is:
        return k == array
    row = side.rows[k]
    if row.op is not Op.SCATTER or row.attrs[0] or row.operands[0] != array:
        return False
    index, value = (side.rows[x].type for x in row.operands[1:])
    if index.shape or not value.is_float or value.nbytes < LEAST_BYTES:
        return False
    return list(read[array]) == [k] and array not in (*row.operands[1:], *outputs)


def _computed(tape: Tape, k: int, given: Mapping[int, np.ndarray]) -> np.ndarray | None:
    """The whole number, or the truth, of row k in all steps, if it follows from what is given."""
    if k in given:
        return given[k]
    row = tape.rows[k]
    if row.type.shape:
        return None
    if row.op is Op.CONST:
        constant = tape.constants[row.attrs[0]]
        return constant if constant.dtype == np.int64 else None
    if row.op is Op.WRAP:
        (n,), at = row.attrs, _computed(tape, row.operands[0], given)
        return None if at is None or at.min() < 0 or at.max() >= n else at
    if row.op not in _COMPUTED:
        return None
    operands = [_computed(tape, x, given) for x in row.operands]
    known = [x for x in operands if x is not None]
    if len(known) < len(operands):
        return None
    if row.op in (Op.MOD, Op.FLOORDIV) and np.any(known[1] <= 0):
        return None
    found: np.ndarray = _COMPUTED[row.op](*known)
    return found


# --- the new loops -------------------------------------------------------------------------------


def _grouped(
    b: Builder, loop: Loop, written: Sequence[Written], env: Mapping[int, int]
) -> list[int]:
    """The results of the loop."""
    period, gone = written[0].period, {w.position for w in written}
    kept = [at for at in range(len(loop.carry)) if at not in gone]
    captured = [env[x] for x in loop.captured]
    steps, n_groups = _steps(loop, kept, written), loop.length // period
    inner = Builder()
    number = inner.input(loop.body.rows[int(loop.body.inputs[0])].type)
    fed = [inner.input(loop.body.output_types[at]) for at in kept]
    shared = [inner.input(b.type(x)) for x in captured]
    start = inner.mul(number, inner.const(np.int64(period)))
    group = inner.tape(_run(inner, steps, period, fed, written, start, shared))
    state = [env[loop.carry[at]] for at in kept]
    types = [loop.body.output_types[at] for at in kept]
    stacks = [w.type.with_shape((n_groups, *w.type.shape)) for w in written]
    attrs = loop_attrs(b.body(group), n_groups, len(kept), 0)
    found = b.control(Op.LOOP, (*state, *captured), attrs, [*types, *stacks])
    state, rows = list(found[: len(kept)]), found[len(kept) :]
    arrays = [env[loop.carry[w.position]] for w in written]
    arrays = [_put(b, *each) for each in zip(arrays, rows, written, strict=True)]
    left = loop.length - n_groups * period
    if left:
        start = b.const(np.int64(n_groups * period))
        found = _run(b, steps, left, state, written, start, captured)
        state = found[: len(kept)]
        for n, (w, row) in enumerate(zip(written, found[len(kept) :], strict=True)):
            if w.first < left:
                at = b.const(np.int64(w.place + n_groups))
                arrays[n] = b.scatter(arrays[n], at, row, attrs=(0, 1))
    own = dict(zip(kept, state, strict=True))
    own |= {w.position: array for w, array in zip(written, arrays, strict=True)}
    return [own[at] for at in range(len(loop.carry))]


def _put(b: Builder, array: int, rows: int, w: Written) -> int:
    shape = b.type(array).shape
    if b.type(rows).shape == shape:
        return rows
    starts, ones = (w.place, *[0] * (len(shape) - 1)), [1] * len(shape)
    return b.update(array, rows, attrs=(*starts, *ones))


def _run(
    b: Builder,
    steps: Tape,
    length: int,
    state: Sequence[int],
    written: Sequence[Written],
    start: int,
    captured: Sequence[int],
) -> list[int]:
    """The carry after some steps, and the rows that they have written."""
    rows = [b.full(w.type, 0.0) for w in written]
    n = len(state) + len(rows)
    attrs = loop_attrs(b.body(steps), length, n, 0)
    operands = (*state, *rows, start, *captured)
    return list(b.control(Op.LOOP, operands, attrs, steps.output_types))


def _steps(loop: Loop, kept: Sequence[int], written: Sequence[Written]) -> Tape:
    """The body of a group: (j, carry, rows, its first step, captured) -> (carry, rows)."""
    body, b, n = loop.body, Builder(), len(loop.carry)
    inputs, outputs = body.inputs.tolist(), body.outputs.tolist()
    number = b.input(body.rows[inputs[0]].type)
    env = {inputs[1 + at]: b.input(body.rows[inputs[1 + at]].type) for at in kept}
    rows = {w: b.input(w.type) for w in written}
    start = b.input(body.rows[inputs[0]].type)
    env |= {k: b.input(body.rows[k].type) for k in inputs[1 + n :]}
    env[inputs[0]] = b.add(start, number)
    branches: dict[int, list[Written]] = {}
    for w in written:
        branches.setdefault(w.cond, []).append(w)
    results: dict[int, list[int]] = {}
    gone = {inputs[1 + w.position] for w in written}
    for k, row in enumerate(body.rows):
        b.where = body.sources[row.source]
        if k in branches:
            results[k] = _branch(b, body, row, branches[k], env, rows)
        elif row.op is Op.RESULT and row.operands[0] in results:
            env[k] = results[row.operands[0]][row.attrs[0]]
        elif k not in env and k not in gone:
            env[k] = b.copy_row(body, k, env)
    new = [env[outputs[w.position]] for w in written]
    return b.tape([*(env[outputs[at]] for at in kept), *new])


def _branch(
    b: Builder,
    body: Tape,
    row: Row,
    written: Sequence[Written],
    env: Mapping[int, int],
    rows: Mapping[Written, int],
) -> list[int]:
    """The results of a branch, which gives a row or leaves the one there is."""
    gone = {row.operands.index(int(body.inputs[1 + w.position])) - 1 for w in written}
    sides = []
    for side, at in enumerate(row.attrs[:2]):
        values = {w.number: w.value if w.side == side else None for w in written}
        sides.append(_side(body.bodies[at], values, gone, written))
    operands = [env[x] for at, x in enumerate(row.operands) if at - 1 not in gone]
    operands += [rows[w] for w in written]
    attrs = [*map(b.body, sides), *row.attrs[2:]]
    return list(b.control(Op.COND, operands, attrs, sides[0].output_types))


def _side(
    side: Tape, values: Mapping[int, int | None], gone: set[int], written: Sequence[Written]
) -> Tape:
    outputs: list[int | None] = [values.get(n, k) for n, k in enumerate(side.outputs.tolist())]
    live = needed(side, [k for k in outputs if k is not None])
    b, env = Builder(), dict[int, int]()
    for at, k in enumerate(side.inputs.tolist()):
        if at not in gone:
            env[k] = b.input(side.rows[k].type)
    before = {w.number: b.input(w.type) for w in written}
    for k, row in enumerate(side.rows):
        b.where = side.sources[row.source]
        if live[k] and k not in env:
            env[k] = b.copy_row(side, k, env)
    return b.tape([before[n] if k is None else env[k] for n, k in enumerate(outputs)])
