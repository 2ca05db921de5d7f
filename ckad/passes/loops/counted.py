"""Loops whose number of steps is computed, as loops over all places of which a mask takes some.

``for j in range(i, n)`` within a loop over i runs over the last of n places, ``for j in range(i)``
over the first. As a loop over all places, each of whose steps is a branch, it may become array ops
under a mask, which are computed between its bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ckad.tape.builder import Builder
from ckad.tape.control import COUNTED, UNGUARDED, Loop
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import DType, Type

_INTEGER = Type(DType.I64, ())
_FOLLOWING = (Op.ADD, Op.SUB, Op.MUL, Op.MAXIMUM, Op.MINIMUM)
#: Whether a row is known not to be negative.
IsNatural = Callable[[int], bool]


def under_mask(
    tape: Tape, loop: Loop, places: Collection[int], is_natural: IsNatural
) -> Loop | None:
    """A COUNTED loop of ``tape`` as one over all places, which carries no count; None if it is no
    such loop, or if its count does not follow from ``places``, inputs that loops around it count.

    Data may say that few of many places are taken: there a loop is best.
    """
    count, body = loop.carry[0], loop.body
    if loop.guard != COUNTED or loop.xs or not _follows(tape, count, places):
        return None
    index, own = body.inputs.tolist()[:2]
    if body.outputs[0] != own or any(own in row.operands for row in body.rows):
        return None
    shifted = [k for k, row in enumerate(body.rows) if index in row.operands]
    start = None if index in body.outputs else _start(body, shifted, 1 + len(loop.carry))
    if start is None:
        whole, length, captured = _branch(loop, None, ()), loop.length, (*loop.captured, count)
    else:
        behind, captured = _behind(tape, count, loop.captured[start]), loop.captured
        if behind is None or not is_natural(loop.captured[start]):
            return None
        whole, length = _branch(loop, start, shifted), behind
    return Loop(whole, None, length, loop.name, loop.carry[1:], (), captured, UNGUARDED)


def _follows(tape: Tape, k: int, places: Collection[int]) -> bool:
    row = tape.rows[k]
    if row.op is Op.INPUT:
        return row.attrs[0] in places
    is_sum = row.op in _FOLLOWING and not row.type.shape
    return row.op is Op.CONST or (is_sum and all(_follows(tape, x, places) for x in row.operands))


def _start(body: Tape, shifted: Collection[int], first: int) -> int | None:
    """Which of the captured numbers is added to the index wherever that is read; None if not so."""
    inputs = body.inputs.tolist()
    found = set[int]()
    for k in shifted:
        row = body.rows[k]
        if row.op is not Op.ADD:
            return None
        found.update(x for x in row.operands if x != inputs[0])
    (start, *others) = found or (-1,)
    return inputs.index(start) - first if not others and start in inputs[first:] else None


def _behind(tape: Tape, count: int, first: int) -> int | None:
    """n, if the count is that of the places from ``first`` to n - 1."""
    row = tape.rows[count]
    if row.op is not Op.MAXIMUM:
        return None
    for x, y in (row.operands, row.operands[::-1]):
        op, operands, *_ = tape.rows[x]
        if op is Op.SUB and operands[1] == first and _number(tape, y) == 0:
            n = _number(tape, operands[0])
            return n if n is not None and n > 0 else None
    return None


def _number(tape: Tape, k: int) -> int | None:
    row = tape.rows[k]
    is_one = row.op is Op.CONST and row.type == _INTEGER
    return int(tape.constants[row.attrs[0]]) if is_one else None


def _branch(loop: Loop, start: int | None, shifted: Collection[int]) -> Tape:
    """The body of all places: what the loop's does where the mask is true."""
    b, body, n = Builder(), loop.body, len(loop.carry) - 1
    index, _, *inputs = body.inputs.tolist()
    place = b.input(_INTEGER)
    given = [b.input(body.rows[k].type) for k in inputs]
    if start is None:
        mask = b.lt(place, b.input(_INTEGER))
    else:
        mask = b.ge(place, given[n + start])
    taken, env = Builder(), dict[int, int]()
    env[index] = taken.input(_INTEGER)
    env |= {k: taken.input(body.rows[k].type) for k in inputs}
    env |= dict.fromkeys(shifted, env[index])
    for k, row in enumerate(body.rows):
        if k not in env and row.op is not Op.INPUT:
            taken.where = body.sources[row.source]
            env[k] = taken.copy_row(body, k, env)
    same = Builder()
    kept = [same.input(b.type(k)) for k in (place, *given)]
    sides = [taken.tape([env[k] for k in body.outputs.tolist()[1:]]), same.tape(kept[1 : 1 + n])]
    attrs = [b.body(side) for side in sides]
    return b.tape(b.control(Op.COND, [mask, place, *given], attrs, sides[0].output_types))
