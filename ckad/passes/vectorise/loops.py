"""The loops of a tape, the innermost first: each as rows for all its iterations, if it can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from ckad.passes.contract import contracted
from ckad.passes.cse import Sharing
from ckad.passes.loops.counted import under_mask
from ckad.passes.loops.fission import fission
from ckad.passes.rewrite import appended, is_same
from ckad.passes.simplify import simplify, simplify_again
from ckad.passes.vectorise.predicate import Interval, intervals_of, predicated
from ckad.passes.vectorise.reduction import is_recurrence
from ckad.passes.vectorise.rows import TooLarge, largest, side_by_side
from ckad.passes.vectorise.segments import segments
from ckad.passes.vectorise.survey import LONGEST, Unfit
from ckad.passes.vectorise.transposes import transposes_last
from ckad.passes.vectorise.unflatten import flattened, unflatten
from ckad.tape.builder import Builder
from ckad.tape.control import COUNTED, UNGUARDED, Loop, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Tape

#: What a body has of which all iterations may be sums of products, or that themselves.
_SUMS = (Op.SUM, Op.MATMUL, Op.MUL)


def vectorise(tape: Tape) -> Tape:
    """``tape`` with its loops over elements as array ops where their iterations allow it."""
    return _vectorised(tape, {})


def _vectorised(tape: Tape, ranges: Mapping[int, Interval], masked: bool = False) -> Tape:
    """`vectorise`, the ranges of some integer inputs being known; if ``masked``, with loops whose
    number of steps is computed as such over all places."""
    if Op.LOOP not in tape.ops and Op.COND not in tape.ops:
        return tape
    b, env = Sharing(), [-1] * len(tape)
    results: dict[int, list[int]] = {}
    within = partial(_vectorised, ranges={}, masked=masked)
    for k, row in enumerate(tape.rows):
        b.where = tape.sources[row.source]
        if row.op is Op.LOOP:
            env[k] = _loop(b, tape, k, env, results, ranges, masked)
        elif row.op is Op.RESULT and row.operands[0] in results:
            env[k] = results[row.operands[0]][row.attrs[0]]
        else:
            env[k] = b.copy_row(tape, k, env, within)
    made = b.tape([env[k] for k in tape.outputs.tolist()])
    made = simplify_again(tape) if is_same(tape, made) else simplify(made)
    return simplify(transposes_last(made)) if results else made


def _loop(
    b: Builder,
    tape: Tape,
    k: int,
    env: Sequence[int],
    results: dict[int, list[int]],
    ranges: Mapping[int, Interval],
    masked: bool,
) -> int:
    """The loop with its inner loops vectorised, or its results as rows of their own."""
    loop, known = read_loop(tape, tape.rows[k]), intervals_of(tape, ranges)
    inner = known.of_body(loop)
    body = _vectorised(loop.body, inner, masked)
    found: list[int] | None = None
    if loop.guard == UNGUARDED:
        found = _side_by_side(b, loop._replace(body=body), env, inner)
        if found is None and not masked and _counts(loop.body):
            # under masks, if that leaves no loop: else they are whole axes that each step reads
            whole = loop._replace(body=_vectorised(loop.body, inner, masked=True))
            found = _side_by_side(b, whole, env, inner)
    elif masked:
        all_places = under_mask(tape, loop._replace(body=body), ranges, known.is_natural)
        if all_places is not None:
            found = _side_by_side(b, all_places, env, known.of_body(all_places))
            found = found and [env[loop.carry[0]], *found]
    if found is not None:
        results[k] = found
    return b.copy_row(tape, k, env, lambda _: flattened(body))


def _counts(tape: Tape) -> bool:
    """Whether a loop within has a number of steps that is computed."""
    loops = (read_loop(tape, row) for row in tape.rows if row.op is Op.LOOP)
    return any(loop.guard == COUNTED or _counts(loop.body) for loop in loops)


def _side_by_side(
    b: Builder, loop: Loop, env: Sequence[int], inner: Mapping[int, Interval]
) -> list[int] | None:
    """The results of a loop whose operands are rows of the tape that ``env`` is of; None if its
    iterations cannot run side by side."""
    if not 0 < loop.length <= LONGEST or is_recurrence(loop.body, len(loop.carry)):
        return None
    groups = loop.carry, loop.xs, loop.captured
    carry, xs, captured = (tuple(env[x] for x in group) for group in groups)
    clear = simplify(unflatten(simplify(predicated(loop.body, inner))))
    clear = simplify_again(clear)  # of two writes to one place, the one that nothing reads now
    return _in_turn(b, Loop(clear, None, loop.length, -1, carry, xs, captured))


def _in_turn(b: Builder, loop: Loop) -> list[int] | None:
    """The loop's results, of what writes an array twice as two loops if it must be."""
    with suppress(Unfit):
        return _rows(b, loop)
    parts = fission(loop)
    results = None if parts is None else _in_turn(b, parts.first)
    if parts is None or results is None:
        return None
    changed = _in_turn(b, parts.second._replace(carry=(results[parts.changed],)))
    if changed is not None:
        results[parts.changed] = changed[0]
    return None if changed is None else results


def _rows(b: Builder, loop: Loop) -> list[int]:
    """The loop's results for all iterations, of sums under masks what is under these."""
    try:
        return side_by_side(b, loop)
    except TooLarge:
        if not any(row.op in _SUMS for row in loop.body.rows):
            raise
    inner, operands = Sharing(), (*loop.carry, *loop.xs, *loop.captured)
    inputs = {x: inner.input(b.type(x)) for x in dict.fromkeys(operands)}
    carry, xs, captured = (
        tuple(inputs[x] for x in group) for group in (loop.carry, loop.xs, loop.captured)
    )
    whole = loop._replace(carry=carry, xs=xs, captured=captured)
    made = inner.tape(side_by_side(inner, whole, limited=False))
    made = simplify(contracted(segments(simplify(made))))
    if max(row.type.nbytes for row in made.rows if row.type.is_array) > largest(b, loop):
        raise TooLarge
    return appended(b, made, list(inputs))
