"""What every m-th step writes into an array is what a loop of loops of m steps gives.

An array that is written under a condition (`if t % m == 0: history[t // m] = u`) is carried, so it
is a part of every restart state. Where the steps that write follow from their number alone, and
are every m-th, the loop becomes one over groups of m steps, each of which gives one row; the rows
are put into the array behind the loop. In a group it is known which step writes: it stands by
itself, and the others are loops. What the steps compute, and in which order, stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ckad.passes.liveness import readers
from ckad.tape.builder import Builder
from ckad.tape.control import UNGUARDED, Loop, loop_attrs, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
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
    if loop.guard != UNGUARDED or not 0 < loop.length <= MOST_STEPS:
        return []
    read, n = readers(loop.body), len(loop.carry)
    each = (_of_carry(loop, at, read) for at in range(n))
    found = [x for x in each if x is not None]
    found = [x for x in found if x.period == found[0].period]
    types = loop.body.output_types
    own = sum(types[x.position].nbytes for x in found)
    others = sum(type.nbytes for type in types[:n]) - own
    copied = 0
    if found and loop.length % found[0].period:  # what all steps read and give is put together anew
        rows = [*types[n:], *(loop.body.rows[k].type for k in _fed(loop))]
        copied = loop.length * sum(type.nbytes for type in rows)
    return found if own >= WORTH * others and copied <= WORTH * own else []


def _fed(loop: Loop) -> list[int]:
    """The inputs of the body that are rows of the xs."""
    first = 1 + len(loop.carry)
    found: list[int] = loop.body.inputs[first : first + len(loop.xs)].tolist()
    return found


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
        n, at = row.attrs[0], _computed(tape, row.operands[0], given)
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


class Steps(NamedTuple):
    """Some steps of a loop that follow each other: what they begin with."""

    state: Sequence[int]  # of the carry, what is kept
    xs: Sequence[int]  # their rows
    captured: Sequence[int]


class Ran(NamedTuple):
    """What they give."""

    state: list[int]
    rows: dict[Written, int]  # that were written
    ys: list[int]


def _grouped(
    b: Builder, loop: Loop, written: Sequence[Written], env: Mapping[int, int]
) -> list[int]:
    """The results of the loop."""
    period, kept = written[0].period, _kept(loop, written)
    n_groups = loop.length // period
    whole, left = n_groups * period, loop.length % period
    xs, captured = ([env[x] for x in operands] for operands in (loop.xs, loop.captured))
    groups = [_by_groups(b, _part(b, x, 0, whole), period) for x in xs]
    group = _group(loop, written, [b.type(x) for x in groups])
    state = [env[loop.carry[at]] for at in kept]
    attrs = loop_attrs(b.body(group), n_groups, len(kept), len(xs))
    types = _results(group, len(kept), n_groups)
    found = list(b.control(Op.LOOP, (*state, *groups, *captured), attrs, types))
    state, found = found[: len(kept)], found[len(kept) :]
    arrays = {w: _put(b, env[loop.carry[w.position]], found[n], w) for n, w in enumerate(written)}
    ys = [b.reshape_to(y, (whole, *b.type(y).shape[2:])) for y in found[len(written) :]]
    if left:
        rest = Steps(state, [_part(b, x, whole, left) for x in xs], captured)
        ran = _run(b, loop, written, left, rest, b.const(np.int64(whole)))
        state, ys = (
            ran.state,
            [b.concat(*each, attrs=(0,)) for each in zip(ys, ran.ys, strict=True)],
        )
        for w, row in ran.rows.items():
            at = b.const(np.int64(w.place + n_groups))
            arrays[w] = b.scatter(arrays[w], at, row, attrs=(0, 1))
    results = dict(zip(kept, state, strict=True))
    results |= {w.position: array for w, array in arrays.items()}
    return [*(results[at] for at in range(len(loop.carry))), *ys]


def _kept(loop: Loop, written: Sequence[Written]) -> list[int]:
    gone = {w.position for w in written}
    return [at for at in range(len(loop.carry)) if at not in gone]


def _group(loop: Loop, written: Sequence[Written], xs: Sequence[Type]) -> Tape:
    """The body of the loop over groups: (number, carry, xs, captured) -> (carry, rows, ys)."""
    b, body, n = Builder(), loop.body, 1 + len(loop.carry) + len(loop.xs)
    number = b.input(body.rows[int(body.inputs[0])].type)
    state = [b.input(body.output_types[at]) for at in _kept(loop, written)]
    fed = [b.input(type.with_shape(type.shape[1:])) for type in xs]
    captured = [b.input(body.rows[k].type) for k in body.inputs[n:].tolist()]
    start, period = b.mul(number, b.const(np.int64(written[0].period))), written[0].period
    ran = _run(b, loop, written, period, Steps(state, fed, captured), start)
    return b.tape([*ran.state, *(ran.rows[w] for w in written), *ran.ys])


def _run(
    b: Builder, loop: Loop, written: Sequence[Written], length: int, given: Steps, start: int
) -> Ran:
    """So many steps of a group: those that write one by one, those between them as loops."""
    cuts = {0, length, *(w.first + k for w in written for k in (0, 1) if w.first < length)}
    state, rows, pieces = list(given.state), dict[Written, int](), list[list[int]]()
    for at, stop in pairwise(sorted(cuts)):
        begin = b.add(start, b.const(np.int64(at))) if at else start
        xs = [_part(b, x, at, stop - at) for x in given.xs]
        some = Steps(state, xs, given.captured)
        if stop - at > 1:
            state, _, ys = _between(b, loop, written, stop - at, some, begin)
        else:
            fed = [b.reshape_to(x, b.type(x).shape[1:]) for x in xs]
            step = _step(b, loop, written, at, some._replace(xs=fed), begin)
            state, ys = step.state, [b.reshape_to(y, (1, *b.type(y).shape)) for y in step.ys]
            rows |= step.rows
        pieces.append(ys)
    ys = [y[0] if len(y) == 1 else b.concat(*y, attrs=(0,)) for y in zip(*pieces, strict=True)]
    return Ran(state, rows, ys)


def _between(
    b: Builder, loop: Loop, written: Sequence[Written], length: int, given: Steps, start: int
) -> Ran:
    """A loop over steps that do not write."""
    inner, body = Builder(), loop.body
    number = inner.input(body.rows[int(body.inputs[0])].type)
    state = [inner.input(b.type(x)) for x in given.state]
    fed = [inner.input(body.rows[k].type) for k in _fed(loop)]
    first, *captured = (inner.input(b.type(x)) for x in (start, *given.captured))
    step = _step(inner, loop, written, -1, Steps(state, fed, captured), inner.add(first, number))
    tape, n = inner.tape([*step.state, *step.ys]), len(state)
    attrs = loop_attrs(b.body(tape), length, n, len(fed))
    operands = (*given.state, *given.xs, start, *given.captured)
    found = list(b.control(Op.LOOP, operands, attrs, _results(tape, n, length)))
    return Ran(found[:n], {}, found[n:])


def _step(
    b: Builder, loop: Loop, written: Sequence[Written], at: int, given: Steps, number: int
) -> Ran:
    """One step, the ``at``-th of a group, in which it is known which branches are taken."""
    body, n = loop.body, len(loop.carry)
    inputs, outputs = body.inputs.tolist(), body.outputs.tolist()
    kept, writers = _kept(loop, written), [w for w in written if w.first == at]
    env = dict(zip((inputs[1 + k] for k in kept), given.state, strict=True))
    env |= dict(zip(inputs[1 + n :], (*given.xs, *given.captured), strict=True))
    env[inputs[0]] = number
    gone = {inputs[1 + w.position] for w in written}
    taken = {w.cond: w.side if w.first == at else 1 - w.side for w in written}
    results, rows = dict[int, list[int]](), dict[Written, int]()
    for k, row in enumerate(body.rows):
        b.where = body.sources[row.source]
        if k in taken:
            side = body.bodies[row.attrs[taken[k]]]
            found = _inlined(b, side, [env.get(x, -1) for x in row.operands[1:]], written, k)
            results[k] = [found.get(x, -1) for x in side.outputs.tolist()]
            rows |= {w: found[w.value] for w in writers if w.cond == k}
        elif row.op is Op.RESULT and row.operands[0] in results:
            env[k] = results[row.operands[0]][row.attrs[0]]
        elif k not in env and k not in gone:
            env[k] = b.copy_row(body, k, env)
    return Ran([env[outputs[at]] for at in kept], rows, [env[k] for k in outputs[n:]])


def _inlined(
    b: Builder, side: Tape, operands: Sequence[int], written: Sequence[Written], cond: int
) -> dict[int, int]:
    """The rows of a side, but for those that write."""
    env = {k: x for k, x in zip(side.inputs.tolist(), operands, strict=True) if x >= 0}
    arrays = {int(side.outputs[w.number]) for w in written if w.cond == cond}
    for k, row in enumerate(side.rows):
        b.where = side.sources[row.source]
        if k not in env and k not in arrays and row.op is not Op.INPUT:
            env[k] = b.copy_row(side, k, env)
    return env


def _part(b: Builder, x: int, first: int, length: int) -> int:
    """Rows of all steps from the ``first`` on."""
    shape = b.type(x).shape
    if shape[0] == length:
        return x
    attrs = (first, *[0] * (len(shape) - 1), *[1] * len(shape))
    return b.slice(x, attrs=attrs, type=b.type(x).with_shape((length, *shape[1:])))


def _by_groups(b: Builder, x: int, period: int) -> int:
    n, *shape = b.type(x).shape
    return b.reshape_to(x, (n // period, period, *shape))


def _results(body: Tape, n_carry: int, length: int) -> list[Type]:
    types = body.output_types
    stacks = [type.with_shape((length, *type.shape)) for type in types[n_carry:]]
    return [*types[:n_carry], *stacks]


def _put(b: Builder, array: int, rows: int, w: Written) -> int:
    shape = b.type(array).shape
    if b.type(rows).shape == shape:
        return rows
    starts, ones = (w.place, *[0] * (len(shape) - 1)), [1] * len(shape)
    return b.update(array, rows, attrs=(*starts, *ones))
