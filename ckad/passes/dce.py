"""Dead code: rows that no output needs go; inputs stay.

Loops lose the ys, carries and captures that nothing needs, and carry only what they change.
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakSet

from ckad.passes.liveness import needed
from ckad.passes.rewrite import is_same, rebuild, with_outputs
from ckad.tape.builder import Builder
from ckad.tape.control import UNGUARDED, Loop, loop_attrs, read_loop
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of
from ckad.tape.tape import Row, Tape
from ckad.tape.types import TUPLE

#: What `dce` would return as it is: bodies stay the same through many tapes, those of nested
#: branches would be gone through once for each that they are in.
_lean: WeakSet[Tape] = WeakSet()


def dce(tape: Tape) -> Tape:
    """``tape`` without the rows that no output depends on.

    A loop carries only what its results need; what its body returns as it came in is captured.
    """
    made = tape if tape in _lean else _slimmed(tape)
    _lean.add(made)
    return made


def _slimmed(tape: Tape) -> Tape:
    live = needed(tape, tape.outputs.tolist())
    for k in tape.inputs.tolist():
        live[k] = True
    rows, alone = tape.rows, _read_in_part(tape, live)
    if all(live) and not tape.bodies and not alone:
        return tape
    used_results = _used_results(tape, live) if tape.bodies else {}
    if all(live) and not alone and _are_slim(tape, used_results):
        return tape
    b, env = Builder(), [-1] * len(rows)
    results: dict[int, dict[int, int]] = {}
    replaced = {rows[k].operands[0] for k in alone}
    plain: list[int] = []  # rows that are copied as they are, as soon as another one needs them
    for k, row in enumerate(rows):
        if not live[k] or k in replaced:
            continue
        is_result = row.op is Op.RESULT and row.operands[0] in results
        if not (row.op is Op.LOOP or is_result or k in alone):
            plain.append(k)
            continue
        b.copy_rows(tape, plain, env, dce)
        plain.clear()
        if row.op is Op.LOOP:
            b.where = tape.sources[row.source]
            env[k], results[k] = _slim_loop(b, tape, row, env, used_results.get(k, set()))
        elif is_result:
            b.where = tape.sources[row.source]
            env[k] = _result(b, row, env, results[row.operands[0]][row.attrs[0]])
        else:
            env[k] = _part(b, tape, k, env)
    b.copy_rows(tape, plain, env, dce)
    made = b.tape([env[k] for k in tape.outputs.tolist()])
    if is_same(tape, made):
        return tape
    # what only a dropped carry or capture read is dead as well
    return _slimmed(made) if _reads_less(tape, made, env, results) else made


def _are_slim(tape: Tape, used: dict[int, set[int]]) -> bool:
    """Whether all bodies are lean, and nothing can be left out of a loop."""
    if not all(body in _lean for body in tape.bodies):
        return False
    loops = ((k, read_loop(tape, row)) for k, row in enumerate(tape.rows) if row.op is Op.LOOP)
    return all(_is_slim(loop, used.get(k, set())) for k, loop in loops)


def _is_slim(loop: Loop, used: set[int]) -> bool:
    """Whether everything that a loop gives is used, and everything that it is given read, and
    changed if it is carried."""
    n_inputs, n_outputs = len(loop.body.inputs), len(loop.body.outputs)
    if len(used) < n_outputs or _unchanged(loop.body, [*range(len(loop.carry))], loop.guard):
        return False
    return _inputs_read(loop.body).issuperset(range(1, n_inputs))


def _read_in_part(tape: Tape, live: list[bool]) -> set[int]:
    """The SLICE rows that are all that is read of a routine which may compute less for it."""
    if Op.CALL not in tape.ops:
        return set()
    rows = tape.rows
    whole = {k for k, row in enumerate(rows) if row.op is Op.CALL and routine_of(row).alone}
    if not whole:
        return set()
    reads: dict[int, list[int]] = {k: [] for k in whole}
    for k in (k for k, row in enumerate(rows) if live[k]):
        for x in whole.intersection(rows[k].operands):
            reads[x].append(k)
    lone = (reads[k][0] for k in whole.difference(tape.outputs.tolist()) if len(reads[k]) == 1)
    return {k for k in lone if rows[k].op is Op.SLICE}


def _part(b: Builder, tape: Tape, k: int, env: list[int]) -> int:
    """A slice of a routine's result, which nothing else reads."""
    row = tape.rows[k]
    call = tape.rows[row.operands[0]]
    b.where = tape.sources[call.source]
    operands = [env[x] for x in call.operands]
    emit = routine_of(call).alone
    found = None if emit is None else emit(b, operands, call.attrs[1:], row.attrs)
    if found is None:
        env[row.operands[0]] = b.copy_row(tape, row.operands[0], env)
        return b.copy_row(tape, k, env)
    return found


def _reads_less(tape: Tape, made: Tape, env: list[int], loops: Iterable[int]) -> bool:
    """Whether a loop has fewer operands than it had."""
    return any(
        env[k] < 0 or len(made.rows[env[k]].operands) < len(tape.rows[k].operands) for k in loops
    )


def _result(b: Builder, row: Row, env: list[int], place: int) -> int:
    """A result of a loop: the one at ``place``, or the row ``~place`` that it never changes."""
    if place < 0:
        return ~place
    return b.emit(Op.RESULT, (env[row.operands[0]],), (place,), row.type)


def _used_results(tape: Tape, live: list[bool]) -> dict[int, set[int]]:
    used: dict[int, set[int]] = {}
    for k, row in enumerate(tape.rows):
        if row.op is Op.RESULT and live[k]:
            used.setdefault(row.operands[0], set()).add(row.attrs[0])
    return used


def _slim_loop(
    b: Builder, tape: Tape, row: Row, env: list[int], used: set[int]
) -> tuple[int, dict[int, int]]:
    """The loop with what its used results need; per result its new place, or ``~row``."""
    loop = read_loop(tape, row)
    n, first_captured = len(loop.carry), 1 + len(loop.carry) + len(loop.xs)
    ys = [k for k in range(n, len(loop.body.outputs)) if k in used]
    wanted = _wanted_carries(loop, {k for k in used if k < n}, ys)
    body = dce(_returning(loop.body, [*wanted, *ys]))
    same = _unchanged(body, wanted, loop.guard)
    carry = [c for c in wanted if c not in same]
    places = {c: ~env[loop.carry[c]] for c in same}
    places |= {k: at for at, k in enumerate([*carry, *ys])}
    if not carry and not ys:
        return -1, places
    kept = [at for at, k in enumerate([*wanted, *ys]) if k not in same]
    body = _returning(body, kept)
    read = _inputs_read(body)
    xs = [p for p in range(1 + n, first_captured) if p in read]
    constant = [1 + c for c in wanted if c in same and 1 + c in read]
    captured = [p for p in range(first_captured, len(body.inputs)) if p in read]
    inputs = [*(1 + c for c in carry), *xs, *constant, *captured]
    body = _with_inputs(body, [0, *inputs])
    attrs = loop_attrs(b.body(body), loop.length, len(carry), len(xs), loop.guard)
    return b.emit(Op.LOOP, [env[row.operands[p - 1]] for p in inputs], attrs, TUPLE), places


def _unchanged(body: Tape, carry: list[int], guard: int) -> set[int]:
    """The carries, those of the first outputs, that ``body`` returns as they came in."""
    inputs, outputs = body.inputs.tolist(), body.outputs.tolist()
    first = 0 if guard == UNGUARDED else 1
    return {c for at, c in enumerate(carry) if c >= first and outputs[at] == inputs[1 + c]}


def _wanted_carries(loop: Loop, used: set[int], ys: list[int]) -> list[int]:
    """The carries that the used results depend on, through any number of steps."""
    inputs, outputs = loop.body.inputs.tolist(), loop.body.outputs.tolist()
    n = len(loop.carry)
    wanted = used | ({0} if loop.guard != UNGUARDED else set())
    while len(wanted) < n:
        live = needed(loop.body, [outputs[k] for k in (*wanted, *ys)])
        found = wanted | {c for c in range(n) if live[inputs[1 + c]]}
        if found == wanted:
            break
        wanted = found
    return sorted(wanted)


def _returning(body: Tape, places: list[int]) -> Tape:
    outputs = body.outputs.tolist()
    if len(places) == len(outputs):
        return body
    return with_outputs(body, [outputs[k] for k in places])


def _with_inputs(tape: Tape, positions: list[int]) -> Tape:
    """``tape`` with these of its inputs, in this order; the others are not read."""
    dropped = set(range(len(tape.inputs))) - set(positions)
    if positions == sorted(positions):
        return drop_inputs(tape, dropped)
    inputs = tape.inputs.tolist()
    b, env = Builder(), [-1] * len(tape)
    for p in positions:
        env[inputs[p]] = b.input(tape.rows[inputs[p]].type)
    b.copy_rows(tape, (k for k, row in enumerate(tape.rows) if row.op is not Op.INPUT), env)
    return b.tape([env[k] for k in tape.outputs.tolist()])


def _inputs_read(tape: Tape) -> set[int]:
    read = {x for row in tape.rows for x in row.operands} | set(tape.outputs.tolist())
    return {k for k, x in enumerate(tape.inputs.tolist()) if x in read}


def drop_inputs(tape: Tape, positions: set[int]) -> Tape:
    """``tape`` without the (unread) inputs at these positions."""
    if not positions:
        return tape
    inputs = tape.inputs.tolist()
    dropped = {inputs[p] for p in positions}
    b, env = Builder(), [-1] * len(tape)
    b.copy_rows(tape, (k for k in range(len(tape)) if k not in dropped), env)
    return b.tape([env[k] for k in tape.outputs.tolist()])


# --- branches apart ------------------------------------------------------------------------------


def apart(tape: Tape) -> Tape:
    """``tape`` with one result per COND, in bodies too, each with what it needs alone.

    What several results share is repeated: it is for tapes of which one result is wanted.
    """

    def one(b: Builder, row: Row, env: list[int]) -> int | None:
        if row.op is not Op.RESULT or tape.rows[row.operands[0]].op is not Op.COND:
            return None
        cond = tape.rows[row.operands[0]]
        whole = [tape.bodies[k] for k in cond.attrs]
        # cut down first: what is apart may be many times as long
        wanted = [with_outputs(s, [s.outputs.tolist()[row.attrs[0]]]) for s in whole]
        sides = [apart(dce(s)) for s in wanted]
        unread = set.intersection(*map(_not_read, sides))
        kept = [x for at, x in enumerate(cond.operands[1:]) if at not in unread]
        bodies = [b.body(drop_inputs(s, unread)) for s in sides]
        made = b.emit(Op.COND, [env[cond.operands[0]], *(env[x] for x in kept)], bodies, TUPLE)
        return b.emit(Op.RESULT, (made,), (0,), row.type)

    return dce(rebuild(tape, one, apart))


def _not_read(tape: Tape) -> set[int]:
    read = {x for row in tape.rows for x in row.operands} | set(tape.outputs.tolist())
    return {at for at, x in enumerate(tape.inputs.tolist()) if x not in read}


def needed_alone(tape: Tape) -> tuple[Tape, set[int]]:
    """``tape`` without what its outputs do not need, and which of its inputs it has no more."""
    slim = apart(dce(tape))
    unread = _not_read(slim)
    return drop_inputs(slim, unread), unread
