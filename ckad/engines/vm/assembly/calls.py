"""CALL: a routine's machine code on cells, or the way out to Python for a routine without."""

from __future__ import annotations

from ckad.engines.counts import call_flops
from ckad.engines.vm.assembly.assembler import Assembler
from ckad.engines.vm.assembly.placement import Placement
from ckad.engines.vm.isa import Code
from ckad.engines.vm.program import CELL, Call, Place
from ckad.engines.work import FLOPS
from ckad.tape.routines import Compiled, routine_of, words_of
from ckad.tape.tape import Row


def call_routine(a: Assembler, placement: Placement, k: int, row: Row) -> None:
    dst = a.new(row.type.size)
    rows, at = placement.tape.rows, a.place(placement.tape, k)
    operands = [Place(placement.region[x].offset, rows[x].type) for x in row.operands]
    a.calls[at] = Call(row.attrs, Place(dst.offset, row.type), tuple(operands))
    body, cost = routine_of(row).compiled, int(call_flops(placement.tape, row) / FLOPS)
    if body is None:
        a.emit(Code.CALL, at, cost=cost)
    else:
        _run(a, at, cost, body)
    a.bind(placement, k, dst)


def _run(a: Assembler, at: int, cost: int, body: Compiled) -> None:
    """It may take long: the interpreter looks at once whether its time is over."""
    call = a.calls[at]
    attrs, types = call.attrs[1:], [x.type for x in call.operands]
    cells = [call.out.offset, *(x.offset for x in call.operands)]
    words = words_of(attrs, types)
    work = a.new(len(cells) + -(-body.workspace(attrs, *types) // CELL))
    size = 7 + len(cells) + len(words)
    a.emit(Code.RUN, size, at, cost, body.address(), work.offset, len(cells), *cells, *words)
    a.heap.release(work.offset, work.size)
