"""The code of TAPED_LOOP rows: the forward sweep, which stores restart states and residuals."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ckad.engines.actions import Kind
from ckad.engines.native.ir.element import POINTER, Value, whole
from ckad.engines.native.ir.state import LEARNT, Control
from ckad.engines.native.ir.stepping import Ran
from ckad.engines.native.loops.carries import Carry
from ckad.engines.native.loops.drive import Handlers, drive, store_and_restore
from ckad.engines.native.loops.lengths import begin_count, count_place
from ckad.engines.native.loops.plain import (
    as_held,
    borrowed,
    first_small,
    new_ys,
    while_flag,
)
from ckad.engines.native.loops.records import Record, record_of, residual_record
from ckad.engines.native.loops.steps import Steps, in_memory
from ckad.engines.native.loops.sweep import Shared, Store, Sweep
from ckad.engines.native.rows.code import TapeCode
from ckad.engines.native.values.held import Held, Token
from ckad.tape.control import UNGUARDED, WHILE, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape


def lower_taped_loop(code: TapeCode, k: int, row: Row) -> Sequence[Held]:
    """Results, ys, and the token."""
    loop = read_loop(code.tape, row)
    body, taping, n = loop.body, loop.taping, len(loop.carry)
    assert taping is not None
    carry = Carry(body.output_types[:n], [(body, 1), (taping, 1)])
    state = record_of(carry.types)
    kept = residual_record(taping, taping.outputs.tolist()[len(body.outputs) :])
    control = code.writer.note_loop(
        loop.name, state.nbytes, kept.nbytes, kept.inner, loop.guard != UNGUARDED
    )
    initial = carry.allocate(code, loop.carry)
    ys = new_ys(code, body.output_types[n:], loop.length)
    shared = Shared(
        [in_memory(code, x) for x in loop.xs],
        [borrowed(code, x) for x in loop.captured],
        [],
        ys,
    )
    token = _token_of(code, k, len(body.outputs), control)
    sweep = Sweep(code, loop, shared, token)
    sweep.facts.given = sweep.results_live()
    store = Store(sweep, carry, initial)
    if sweep.is_guarded:
        begin_count(code.unit, loop, control, first_small(carry, initial))
    if loop.length:
        handlers: Handlers = {}
        if not code.writer.keeps_all:
            handlers = store_and_restore(sweep, store, state)
            handlers[Kind.ADVANCE] = _steps(sweep, "advance", body, store, None)
        handlers[Kind.TAPE] = _steps(sweep, "tape", taping, store, kept)
        drive(sweep, handlers, reverse=False)
    if sweep.is_guarded:
        _note_count(sweep, token)
    held = carry.held(store.get(code.unit), pools=True)
    results = [*held, *(as_held(code, y) for y in ys), Token(token)]
    sweep.free()
    return results


def _note_count(sweep: Sweep, token: Value) -> None:
    """Keep in the token how many steps were run, for the reverse sweep.

    Where that was not known before, the rest of the actions is for nothing.
    """
    unit, control = sweep.code.unit, sweep.facts.control
    b, count, most = unit.b, *(unit.get(control + c) for c in (Control.COUNT, Control.MOST))
    b.store(count, count_place(unit, token))
    unit.put(control + Control.MOST, b.select(b.icmp_signed(">", count, most), count, most))
    learns = b.icmp_signed("!=", unit.get(control + Control.LEARNS), whole(0))
    unit.put(control + Control.LEARNS, b.select(learns, whole(LEARNT), whole(0)))
    cursor, filled = (unit.get(control + c) for c in (Control.CURSOR, Control.FILLED))
    unit.put(control + Control.FILLED, b.select(learns, cursor, filled))


def _token_of(code: TapeCode, k: int, number: int, control: int) -> Value:
    """Where a token lies: among the residuals of the step around it, or at a place of its own."""
    for r in code.fusion.readers[k]:
        row = code.rows[r]
        if row.op is Op.RESULT and row.attrs[0] == number and r in code.wanted:
            return code.wanted.pop(r).pointer
    return code.unit.b.inttoptr(code.unit.get(control + Control.TOKEN), POINTER)


def _steps(sweep: Sweep, kind: str, body: Tape, store: Store, record: Record | None) -> ir.Function:
    """ADVANCE or TAPE: the steps [start, stop), with their ys."""
    steps = Steps(sweep, sweep.function(kind), store)
    n_kept = len(store.carry.types) + len(steps.shared.results)
    residents = steps.residents(body, body.outputs.tolist()[n_kept:]) if record else {}
    if record and residents:
        steps.move_in(residents, record)

    def once(i: Value, values: list[Value]) -> list[Value]:
        homes = steps.homes(residents, i, values, record) if record and residents else None
        inputs = steps.inputs(i, values, homes)
        return steps.step(body, i, inputs, values, steps.shared.results, record, homes)

    guarded = sweep.loop.guard == WHILE
    ran = steps.run(once, body, guard=while_flag(steps.unit, store.carry) if guarded else None)
    if guarded:
        _end_early(steps, ran, residents, record)
    steps.unit.finish()
    return steps.unit.function


def _end_early(steps: Steps, ran: Ran, residents: dict[int, int], record: Record | None) -> None:
    """Where the flag has ended the loop: how many steps there were, and the carry at its home."""
    unit, store = steps.unit, steps.store
    b = unit.b
    with b.if_then(b.not_(while_flag(unit, store.carry)(ran.values))):
        unit.put(steps.sweep.facts.control + Control.COUNT, ran.at)
    if record and residents:
        with b.if_then(b.icmp_signed("<", ran.at, unit.stop)):
            steps.move_out(residents, ran.at, ran.values, record)
