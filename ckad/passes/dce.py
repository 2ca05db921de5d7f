"""Dead code: rows that no output needs go; inputs stay. Unused ys and captures of loops go too."""

from __future__ import annotations

from ckad.passes.liveness import needed
from ckad.passes.rewrite import with_outputs
from ckad.tape.builder import Builder
from ckad.tape.control import loop_attrs, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import TUPLE


def dce(tape: Tape) -> Tape:
    """``tape`` without the rows that no output depends on."""
    live = needed(tape, tape.outputs.tolist())
    for k in tape.inputs.tolist():
        live[k] = True
    rows = tape.rows
    if all(live) and not tape.bodies:
        return tape
    used_results = _used_results(tape, live) if tape.bodies else {}
    b, env = Builder(), [-1] * len(rows)
    places: dict[int, dict[int, int]] = {}
    for k, row in enumerate(rows):
        if not live[k]:
            continue
        if row.op is Op.LOOP:
            b.where = tape.sources[row.source]
            env[k], places[k] = _slim_loop(b, tape, row, env, used_results.get(k, set()))
        elif row.op is Op.RESULT and row.operands[0] in places:
            b.where = tape.sources[row.source]
            loop = row.operands[0]
            env[k] = b.emit(Op.RESULT, (env[loop],), (places[loop][row.attrs[0]],), row.type)
        else:
            env[k] = b.copy_row(tape, k, env, dce)
    return b.tape([env[k] for k in tape.outputs.tolist()])


def _used_results(tape: Tape, live: list[bool]) -> dict[int, set[int]]:
    used: dict[int, set[int]] = {}
    for k, row in enumerate(tape.rows):
        if row.op is Op.RESULT and live[k]:
            used.setdefault(row.operands[0], set()).add(row.attrs[0])
    return used


def _slim_loop(
    b: Builder, tape: Tape, row: Row, env: list[int], used: set[int]
) -> tuple[int, dict[int, int]]:
    """The loop with the ys that are used and the captures its body reads; where results went."""
    loop = read_loop(tape, row)
    n = len(loop.carry)
    ys = [k for k in range(loop.n_ys) if n + k in used]
    outputs = loop.body.outputs.tolist()
    body = loop.body
    if len(ys) < loop.n_ys:
        body = with_outputs(body, [*outputs[:n], *(outputs[n + k] for k in ys)])
    body = dce(body)
    first = 1 + n + len(loop.xs)
    read = _inputs_read(body)
    kept = [k for k in range(len(loop.captured)) if first + k in read]
    body = drop_inputs(
        body, {first + k for k in range(len(loop.captured))} - {first + k for k in kept}
    )
    operands = [env[x] for x in (*loop.carry, *loop.xs, *(loop.captured[k] for k in kept))]
    attrs = loop_attrs(b.body(body), loop.length, n, len(loop.xs))
    places = {**{k: k for k in range(n)}, **{n + y: n + at for at, y in enumerate(ys)}}
    return b.emit(Op.LOOP, operands, attrs, TUPLE), places


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
    for k in range(len(tape)):
        if k not in dropped:
            env[k] = b.copy_row(tape, k, env)
    return b.tape([env[k] for k in tape.outputs.tolist()])
