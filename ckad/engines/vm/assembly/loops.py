"""The code of LOOP and COND rows, and the table of all control rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ckad.engines.vm.assembly.assembler import Assembler
from ckad.engines.vm.assembly.placement import Placement
from ckad.engines.vm.assembly.region import Region
from ckad.engines.vm.assembly.steps import (
    Counter,
    Steps,
    carry_on,
    close,
    count,
    new_ys,
    put,
    swaps,
    take_carry,
)
from ckad.engines.vm.assembly.taped import lower_reverse_loop, lower_taped_loop
from ckad.engines.vm.isa import Code
from ckad.tape.control import COUNTED, WHILE, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape


def _loop(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    loop = read_loop(placement.tape, row)
    n = len(loop.carry)
    a.depth += 1
    carried = take_carry(a, placement, row, loop.carry)
    i, stop = a.hold(a.new(1)), a.hold(a.new(1))
    steps = Steps(a, placement, loop.xs, loop.captured, i)
    ys, bases = new_ys(a, loop.body.output_types[n:], loop.length)
    a.emit(Code.SET, i.offset, 0)
    a.emit(Code.SET, stop.offset, loop.length)

    def once(now: Sequence[Region], then: Sequence[Region]) -> None:
        inner, out = steps.run(loop.body, now, then)
        put(a, out[n:], bases, i)
        carry_on(a, then, out[:n])
        a.leave(inner)

    skip = None
    if loop.guard == WHILE:
        skip = a.emit(Code.JUMP_IF_ZERO, carried[0].offset, 0) + 2
    elif loop.guard == COUNTED:
        skip = a.emit(Code.CLIP, i.offset, stop.offset, carried[0].offset, 0) + 4
    if loop.length:
        counter = Counter(i, stop, 1, carried[0] if loop.guard == WHILE else None)
        count(a, counter, carried, swaps(loop.body, 1, n), once)
    if skip is not None:
        a.code[skip] = len(a.code)
    steps.close()
    close(a, placement, k, [*carried, *ys], [i, stop])


def _cond(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    """Both branches write the same result cells."""
    bodies = [placement.tape.bodies[t] for t in row.attrs[:2]]
    operands = [placement.region[x] for x in row.operands[1:]]
    a.depth += 1
    results = [a.hold(a.new(t.size)) for t in bodies[0].output_types]
    otherwise = a.emit(Code.JUMP_IF_ZERO, placement.region[row.operands[0]].offset, 0) + 2
    _branch(a, bodies[0], operands, results)
    end = a.emit(Code.JUMP, 0) + 1
    a.code[otherwise] = len(a.code)
    _branch(a, bodies[1], operands, results)
    a.code[end] = len(a.code)
    close(a, placement, k, results, [])


def _branch(a: Assembler, body: Tape, operands: list[Region], results: list[Region]) -> None:
    inner, out = a.walk(body, operands)
    for result, new in zip(results, out, strict=True):
        a.copy(result.offset, new.offset, new.size)
    a.leave(inner)


CONTROL: dict[int, Callable[[Assembler, Placement, int, Row], None]] = {
    Op.LOOP: _loop,
    Op.TAPED_LOOP: lower_taped_loop,
    Op.REVERSE_LOOP: lower_reverse_loop,
    Op.COND: _cond,
}
