"""The code of REVERSE_LOOP rows: cotangents are carried backwards, restart states run again."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ckad.engines.actions import Kind
from ckad.engines.native.ir.element import Value, register_type, whole
from ckad.engines.native.ir.state import Cell, Control
from ckad.engines.native.ir.stepping import Body, Run, run_steps
from ckad.engines.native.ir.turns import in_turns, keep_order
from ckad.engines.native.kernels.rows import emit_zeros
from ckad.engines.native.loops.carries import Carry
from ckad.engines.native.loops.drive import Handlers, drive, store_and_restore, take_action
from ckad.engines.native.loops.lengths import count_place
from ckad.engines.native.loops.plain import as_held, borrowed, index_of, new_ys
from ckad.engines.native.loops.records import Record, arrays_at, record_of, residual_record
from ckad.engines.native.loops.steps import Homes, Steps, in_memory
from ckad.engines.native.loops.sweep import At, Shared, Store, Sweep
from ckad.engines.native.rows.code import TapeCode
from ckad.engines.native.values import registers
from ckad.engines.native.values.held import Held, Token, taken
from ckad.engines.native.values.registers import Registers
from ckad.engines.work import nanoseconds, runs_beside
from ckad.passes.dce import dce
from ckad.passes.rewrite import with_outputs
from ckad.tape.control import UNGUARDED, ReverseLoop, read_reverse_loop
from ckad.tape.tape import Row, Tape


def lower_reverse_loop(code: TapeCode, k: int, row: Row) -> Sequence[Held]:
    """Cotangents of the carry, sums, and cotangents of the xs."""
    loop = read_reverse_loop(code.tape, row)
    n, duals = loop.n_carry, [*loop.ct_carry, *loop.sums]
    primal = Carry(loop.taping.output_types[:n], [(loop.advance, 1), (loop.taping, 1)])
    state = record_of(primal.types)
    kept = residual_record(loop.taping, loop.taping.outputs.tolist()[n:])
    guarded = loop.guard != UNGUARDED
    control = code.writer.note_loop(loop.name, state.nbytes, kept.nbytes, kept.inner, guarded)
    totals = _Totals(loop)
    initial = totals.allocate(code, duals)
    ct_xs = new_ys(code, loop.reverse.output_types[len(duals) :], loop.length)
    shared = Shared(
        [in_memory(code, x) for x in loop.xs],
        [borrowed(code, x) for x in loop.captured],
        [in_memory(code, x) for x in loop.ct_ys],
        ct_xs,
    )
    token = code.held[loop.token]
    assert isinstance(token, Token)
    sweep = Sweep(code, loop, shared, token.pointer)
    if guarded:
        count = code.b.load(count_place(code.unit, token.pointer))
        code.unit.put(control + Control.COUNT, count)
        for x in ct_xs:
            emit_zeros(code.b, x.array)
    store = Store(sweep, totals, initial)
    sweep.facts.totals = [*store.live(), *sweep.results_live()]
    handlers: Handlers = {}
    both = None
    if loop.length and not code.writer.keeps_all:
        again = Store(sweep, primal, _undefined(code, primal))
        handlers = store_and_restore(sweep, again, state)
        handlers[Kind.ADVANCE] = _advance(sweep, loop.advance, again)
        handlers[Kind.TAPE] = _retape(sweep, loop.taping, again, kept)
        if runs_beside(loop):
            both = _both(sweep, loop, again, store, kept)
    if loop.length:
        handlers[Kind.REVERSE] = _reverse(sweep, loop, store, kept)
        drive(sweep, handlers, reverse=True, both=both)
    for pool in primal.pools:
        pool.free(code.writer)
    held = totals.held(store.get(code.unit), pools=True)
    results = [*held, *(as_held(code, x) for x in ct_xs)]
    sweep.free()
    return results


class _Totals(Carry):
    """Cotangents of the carry and sums; in the body's inputs those of the ys lie between them."""

    def __init__(self, loop: ReverseLoop) -> None:
        n_carry, n = len(loop.ct_carry), len(loop.ct_carry) + len(loop.sums)
        first = 1 + loop.n_residuals + len(loop.xs) + len(loop.captured)
        between = len(loop.ct_ys)
        self.positions = [first + k + (between if k >= n_carry else 0) for k in range(n)]
        super().__init__(loop.reverse.output_types[:n], [(loop.reverse, first)])

    def _position(self, k: int, first: int) -> int:
        return self.positions[k]


def _undefined(code: TapeCode, carry: Carry) -> list[Value]:
    """Buffers for a carry that gets its values from a restart state."""
    pointers = []
    for pool in carry.pools:
        pool.buffers = [code.writer.allocate(code.unit, pool.nbytes) for _ in range(pool.n_buffers)]
        pointers += [buffer.pointer for buffer in pool.buffers]
    types = [carry.types[k] for k in carry.small]
    smalls = [
        Registers(
            t,
            tuple(
                ir.Constant(register_type(t.dtype, width), ir.Undefined)
                for width in registers.widths(t.size)
            ),
        )
        for t in types
    ]
    return carry.flat(smalls, pointers)


def _advance(sweep: Sweep, body: Tape, store: Store) -> ir.Function:
    steps = Steps(sweep, sweep.function("advance"), store)

    def once(i: Value, values: list[Value]) -> list[Value]:
        return steps.step(body, i, steps.inputs(i, values), values)

    steps.run(once, body)
    steps.unit.finish()
    return steps.unit.function


def _retape(sweep: Sweep, taping: Tape, store: Store, record: Record) -> ir.Function:
    """TAPE in the reverse phase; the last step's new state is never read, so it is not computed."""
    steps = Steps(sweep, sweep.function("retape"), store)
    unit, kept = steps.unit, taping.outputs.tolist()[len(store.carry.types) :]
    residents = steps.residents(taping, kept)
    if residents:
        steps.move_in(residents, record)

    def homes(i: Value, values: Sequence[Value]) -> Homes | None:
        return steps.homes(residents, i, values, record) if residents else None

    def once(i: Value, values: list[Value]) -> list[Value]:
        at = homes(i, values)
        return steps.step(taping, i, steps.inputs(i, values, at), values, (), record, at)

    last = unit.b.sub(unit.stop, whole(1))
    steps.run(once, taping, stop=last)
    with unit.step(last):
        values = store.get(unit)
        at = homes(last, values)
        inputs = steps.inputs(last, values, at)
        steps.step(dce(with_outputs(taping, kept)), last, inputs, None, (), record, at)
    if steps.is_outermost:
        unit.put(Cell.STEPS, unit.b.add(unit.get(Cell.STEPS), whole(1)))
    unit.finish()
    return unit.function


def _reverse(sweep: Sweep, loop: ReverseLoop, store: Store, record: Record) -> ir.Function:
    """REVERSE: the steps [start, stop) backwards."""
    steps = Steps(sweep, sweep.function("reverse"), store, first=0)
    steps.run(_backwards(steps, loop, record), loop.reverse, backward=True)
    steps.unit.finish()
    return steps.unit.function


def _backwards(steps: Steps, loop: ReverseLoop, record: Record) -> Body:
    """The reversal of one step."""
    body, n_carry, shared = loop.reverse, len(loop.ct_carry), steps.shared
    kinds = body.input_types[1 : 1 + loop.n_residuals]

    def residuals(i: Value) -> list[Held]:
        place = steps.residuals(i)
        arrays = iter(arrays_at(steps.unit, place, record))
        tokens = steps.sweep.inner_tokens(steps.unit, place, record)
        return [
            taken(steps.unit.b, next(arrays)) if t.is_array else Token(next(tokens)) for t in kinds
        ]

    def once(i: Value, values: list[Value]) -> list[Value]:
        held = steps.store.carry.held(values)
        primal = [index_of(i), *residuals(i), *steps.elements(shared.xs, i), *shared.captured]
        dual = [*held[:n_carry], *steps.elements(shared.ct_ys, i), *held[n_carry:]]
        return steps.step(body, i, [*primal, *dual], values, shared.results)

    return once


def _both(
    sweep: Sweep, loop: ReverseLoop, again: Store, totals: Store, record: Record
) -> ir.Function:
    """As many steps of a TAPE as the REVERSE has that follows it, a step of each at a time.

    Neither waits for the other: their chains of dependent operations run at the same time.
    """
    unit = sweep.function("both")
    keep_order(unit.function)
    taping = Steps(sweep, unit, again)
    b = unit.b
    _, start, stop, slot = take_action(unit, sweep.facts.control)
    reversal = Steps(sweep, unit, totals, first=0, at=At(start, stop, slot))
    backwards = _backwards(reversal, loop, record)
    own = again.get(unit)
    last = b.sub(b.add(stop, unit.start), whole(1))

    def once(i: Value, values: list[Value]) -> list[Value]:
        primal, dual = values[: len(own)], values[len(own) :]
        ahead, back = in_turns(
            b,
            lambda: taping.step(loop.taping, i, taping.inputs(i, primal), primal, (), record),
            lambda: backwards(b.sub(last, i), dual),
        )
        return [*ahead, *back]

    cost = nanoseconds(loop.taping, "native") + nanoseconds(loop.reverse, "native")
    outermost = taping.is_outermost
    run = Run(unit.start, unit.stop, cost, loop.length, outermost=outermost, each=2)
    ran = run_steps(unit, run, [*own, *totals.get(unit)], once).values
    again.put(unit, ran[: len(own)])
    totals.put(unit, ran[len(own) :])
    unit.finish()
    return unit.function
