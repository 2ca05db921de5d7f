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
    used_results = _used_results(tape, live)
    b, env = Builder(), dict[int, int]()
    places: dict[int, dict[int, int]] = {}
    for k, row in enumerate(tape.rows):
        b.where = tape.sources[row.source]
        if not live[k] and row.op is not Op.INPUT:
            continue
        if row.op is Op.LOOP:
            env[k], places[k] = _slim_loop(b, tape, row, env, used_results.get(k, set()))
        elif row.op is Op.RESULT and row.operands[0] in places:
            loop = row.operands[0]
            env[k] = b.emit(Op.RESULT, (env[loop],), (places[loop][row.attrs[0]],), row.type)
        else:
            env[k] = b.copy_row(tape, k, env, dce)
    return b.tape(env[k] for k in tape.outputs.tolist())


def _used_results(tape: Tape, live: list[bool]) -> dict[int, set[int]]:
    used: dict[int, set[int]] = {}
    for k, row in enumerate(tape.rows):
        if row.op is Op.RESULT and live[k]:
            used.setdefault(row.operands[0], set()).add(row.attrs[0])
    return used


def _slim_loop(
    b: Builder, tape: Tape, row: Row, env: dict[int, int], used: set[int]
) -> tuple[int, dict[int, int]]:
    """The loop with the ys that are used and the captures its body reads; where results went."""
    loop = read_loop(tape, row)
    n = len(loop.carry)
    ys = [k for k in range(loop.n_ys) if n + k in used]
    outputs = loop.body.outputs.tolist()
    body = dce(with_outputs(loop.body, [*outputs[:n], *(outputs[n + k] for k in ys)]))
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
    dropped = {tape.inputs[p] for p in positions}
    b, env = Builder(), dict[int, int]()
    for k in range(len(tape)):
        if k not in dropped:
            env[k] = b.copy_row(tape, k, env)
    return b.tape(env[k] for k in tape.outputs.tolist())
