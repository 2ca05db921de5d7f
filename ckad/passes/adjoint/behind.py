"""A part of an array that both sides of a branch write is written behind the branch.

The branch then gives a place and what to write there, and the array is no part of it: the array
can be put back in the reverse (`undo`), and its cotangent does not go through the branch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ckad.passes.dce import dce
from ckad.passes.rewrite import with_outputs
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape

#: Arrays of so few elements may be changed by branches.
FEW = 64


class Write(NamedTuple):
    """A result of a branch that is one of its inputs with a part written."""

    position: int  # of the input
    row: Row  # the SCATTER


def behind(tape: Tape) -> Tape:
    """``tape`` whose branches do not write what is written on both sides."""
    if not tape.bodies:
        return tape
    b, env = Builder(), dict[int, int]()
    results = dict[int, list[int]]()  # row of a branch -> its results
    for k, row in enumerate(tape.rows):
        b.where = tape.sources[row.source]
        if row.op is Op.RESULT and row.operands[0] in results:
            env[k] = results[row.operands[0]][row.attrs[0]]
            continue
        if row.op is Op.COND:
            branches = [behind(tape.bodies[at]) for at in row.attrs[:2]]
            writes = _writes(branches, row.operands[1:])
            if writes:
                results[k] = _moved(b, row, branches, writes, env)
            else:
                env[k] = b.copy_row(tape, k, env, _each_of(branches))
            continue
        env[k] = b.copy_row(tape, k, env, behind)
    return b.tape([env[k] for k in tape.outputs.tolist()])


def _each_of(bodies: Sequence[Tape]) -> Callable[[Tape], Tape]:
    """One after the other: to make them anew doubles with every branch in a branch."""
    left = iter(bodies)
    return lambda _: next(left)


def _writes(branches: Sequence[Tape], operands: Sequence[int]) -> dict[int, list[Write]]:
    """By number of the result: what both branches do, where that is the same but for its values."""
    found = {}
    for number, outputs in enumerate(zip(*(x.outputs.tolist() for x in branches), strict=True)):
        writes = [_write(body, k) for body, k in zip(branches, outputs, strict=True)]
        both = [w for w in writes if w is not None]
        if len(both) < 2:
            continue
        kinds = {
            (operands[w.position], w.row.attrs, w.row.type, *_types(body, w))
            for body, w in zip(branches, both, strict=True)
        }
        if len(kinds) == 1:
            found[number] = both
    return found


def _write(body: Tape, k: int) -> Write | None:
    row = body.rows[_unshaped(body, k)]
    if row.op is not Op.SCATTER or not row.type.is_float or row.type.size <= FEW:
        return None
    x = body.rows[_unshaped(body, row.operands[0])]
    return Write(x.attrs[0], row) if x.op is Op.INPUT else None


def _unshaped(body: Tape, k: int) -> int:
    while body.rows[k].op is Op.RESHAPE:
        (k,) = body.rows[k].operands
    return k


def _types(body: Tape, write: Write) -> list[object]:
    return [body.rows[x].type for x in write.row.operands[1:]]


def _moved(
    b: Builder,
    row: Row,
    branches: Sequence[Tape],
    writes: Mapping[int, Sequence[Write]],
    env: Mapping[int, int],
) -> list[int]:
    """The results of a branch that gives places and values, and of the writes behind it."""
    bodies = []
    for at, body in enumerate(branches):
        outputs = body.outputs.tolist()
        for number, both in writes.items():
            _, outputs[number], value = both[at].row.operands
            outputs.append(value)
        bodies.append(dce(with_outputs(body, outputs)))
    operands, types = [env[x] for x in row.operands], bodies[0].output_types
    found = b.control(row.op, operands, [*map(b.body, bodies), *row.attrs[2:]], types)
    n = len(branches[0].outputs)
    for value, (number, both) in zip(found[n:], writes.items(), strict=True):
        array, write = env[row.operands[1 + both[0].position]], both[0].row
        flat = b.reshape_to(array, write.type.shape)
        written = b.scatter(flat, found[number], value, attrs=write.attrs)
        found[number] = b.reshape_to(written, branches[0].output_types[number].shape)
    return found[:n]
