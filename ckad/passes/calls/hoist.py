"""Routines and products that a loop does on the same operands in every step are done before it.

So a matrix that does not change is factored once, and its cotangent goes through the factors once.
What only computes elements stays, since it costs about as much to read as to compute again; but not
where it is laid out in memory for a routine, a product or an inner loop, which read no elements
that are computed as they are needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ckad.tape.builder import Builder
from ckad.tape.control import UNGUARDED, Loop, loop_attrs, read_loop
from ckad.tape.ops import OPS, Group, Op
from ckad.tape.routines import routine_of
from ckad.tape.tape import Row, Tape
from ckad.tape.types import TUPLE

#: Arrays of so few elements are computed where they are read.
FEW = 64
#: Rows whose operands lie in memory.
READERS = (Op.CALL, Op.MATMUL, Op.LOOP)
#: Rows that compute nothing.
_MOVES = (Op.CONST, Op.RESHAPE, Op.BROADCAST, Op.SLICE)


def hoist(tape: Tape) -> Tape:
    """``tape`` with what its loops need not repeat moved out as far as what it reads allows."""
    if not _readers_in_bodies(tape):
        return tape
    b, env = Builder(), list[int]()
    for k, row in enumerate(tape.rows):
        b.where = tape.sources[row.source]
        if row.op is Op.LOOP:
            env.append(_loop(b, tape, row, env))
        else:
            env.append(b.copy_row(tape, k, env, hoist))
    return b.tape([env[k] for k in tape.outputs.tolist()])


def _readers_in_bodies(tape: Tape) -> bool:
    return any(
        any(row.op in (Op.CALL, Op.MATMUL) for row in body.rows) or _readers_in_bodies(body)
        for body in tape.bodies
    )


def _loop(b: Builder, tape: Tape, row: Row, env: list[int]) -> int:
    """A LOOP, after what it does not need to repeat."""
    loop = read_loop(tape, row)
    body = hoist(loop.body)
    first = 1 + len(loop.carry) + len(loop.xs)
    same = _invariant(body, first)
    chosen = _calls(body, same) | _laid_out(body, same)
    calls = [k for k in sorted(chosen) if _runs_anyway(loop, body, k)]
    outside = {body.inputs[first + at]: env[x] for at, x in enumerate(loop.captured)}
    for k in _needed(body, calls):
        if k not in outside:
            outside[k] = b.copy_row(body, k, outside)
    b.where = tape.sources[row.source]
    operands = [*(env[x] for x in row.operands), *(outside[k] for k in calls)]
    body = _with_inputs(body, calls)
    attrs = loop_attrs(b.body(body), loop.length, len(loop.carry), len(loop.xs), loop.guard)
    return b.emit(Op.LOOP, operands, attrs, TUPLE)


def _invariant(body: Tape, first: int) -> set[int]:
    """The rows that follow from constants and captured inputs, those from ``first`` on, alone."""
    same = set(body.inputs[first:].tolist())
    for k, row in enumerate(body.rows):
        moves = OPS[row.op].group not in (Group.LEAF, Group.CONTROL) and row.op is not Op.WRAP
        if row.op is Op.CONST or (moves and same.issuperset(row.operands)):
            same.add(k)
    return same


def _calls(body: Tape, same: Collection[int]) -> set[int]:
    return {k for k in same if body.rows[k].op is Op.CALL or _is_product(body, k)}


def _is_product(body: Tape, k: int) -> bool:
    row = body.rows[k]
    return row.op is Op.MATMUL and body.rows[row.operands[0]].type.size > FEW


def _laid_out(body: Tape, same: Collection[int]) -> set[int]:
    """The rows among ``same`` that something else reads from memory, if they take computing."""
    computed: set[int] = set()
    for k in sorted(same):
        row = body.rows[k]
        if row.op not in (*_MOVES, Op.INPUT) or not computed.isdisjoint(row.operands):
            computed.add(k)
    readers = (row for k, row in enumerate(body.rows) if k not in same and row.op in READERS)
    read = {x for row in readers for x in row.operands}
    return {k for k in read & computed if body.rows[k].type.size > FEW}


def _runs_anyway(loop: Loop, body: Tape, k: int) -> bool:
    """Whether what is done before the loop fails only where it would within."""
    row = body.rows[k]
    compiled = routine_of(row).compiled if row.op is Op.CALL else None
    never_fails = compiled is not None and not compiled.errors
    return never_fails or (loop.guard == UNGUARDED and loop.length > 0)


def _needed(body: Tape, calls: Iterable[int]) -> list[int]:
    """These rows and what they follow from, in order."""
    found = set(calls)
    for k in range(max(found, default=-1), -1, -1):
        if k in found:
            found.update(body.rows[k].operands)
    return sorted(found)


def _with_inputs(body: Tape, rows: list[int]) -> Tape:
    """``body`` with more inputs, the last ones, in place of these rows."""
    if not rows:
        return body
    b, env = Builder(), dict[int, int]()
    for k in body.inputs.tolist():
        env[k] = b.input(body.rows[k].type)
    for k in rows:
        env[k] = b.input(body.rows[k].type)
    for k in range(len(body)):
        if k not in env:
            env[k] = b.copy_row(body, k, env)
    return b.tape([env[k] for k in body.outputs.tolist()])
