"""Nests over several threads: whoever is free takes the next part of the first axis.

A run with threads starts helpers, which wait for passes to share until they are told to end. There
is nothing left of them after the run, so that forks and runs from several threads do not meet. A
pass is cut into parts; TICKET counts those that nobody has taken. A helper that gets no time on a
processor takes none, and holds nobody up.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from llvmlite import ir

from ckad.engines.native.ir.element import I64, POINTER, Value, whole
from ckad.engines.native.ir.flow import count, smaller
from ckad.engines.native.ir.hooks import declared, spend
from ckad.engines.native.ir.state import Cell
from ckad.engines.native.ir.stepping import CHUNK
from ckad.engines.native.ir.unit import Unit, cell, internal
from ckad.engines.native.nests.boxes import Shape
from ckad.engines.native.nests.emit import SIGNATURE
from ckad.engines.native.nests.fusion import Nest

#: Additions and loads below which a pass is not worth being shared.
LEAST_WORK = 60_000
#: Nanoseconds of an addition or a load, about: a long pass is done in pieces, with Python called
#: now and then.
PER_WORK = 0.05
#: Looks at a cell before a waiting thread lets others run.
PATIENCE = 100_000
ON_STATE = ir.FunctionType(ir.VoidType(), [POINTER])
ACQUIRE, RELEASE = "acquire", "release"
#: The parts of a pass, and a ticket that ends the helpers.
PARTS, END = 8, 2**62


def call_nest(
    unit: Unit, function: ir.Function, values: Sequence[Value], shape: Shape, nest: Nest
) -> bool:
    """Run a nest on its arguments, pointers and scalars; whether threads may share it."""
    work = prod(nest.shape) * (shape.flops + shape.loads)
    return call_shared(unit, function, values, shape.n_outer, work)


def call_shared(
    unit: Unit,
    function: ir.Function,
    values: Sequence[Value],
    n: int,
    work: int,
    at_once: int = 1,
) -> bool:
    """Run ``function`` over [0, n) on its arguments; whether threads may share that.

    ``work`` counts its additions and loads; ``at_once`` of the n are done at least before Python
    may be called.
    """
    b = unit.b
    block = unit.alloca(ir.ArrayType(I64, max(1, len(values))))
    block = b.bitcast(block, POINTER.as_pointer())
    for at, value in enumerate(values):
        place = b.gep(block, [whole(at)])
        b.store(value, b.bitcast(place, value.type.as_pointer()))
    shared = n > 1 and work >= LEAST_WORK

    def run(first: Value, last: Value) -> None:
        if shared:
            b.call(_shared(unit.module), [unit.state, function, block, first, last])
        else:
            b.call(function, [block, first, last])

    nanoseconds = int(work * PER_WORK)
    if nanoseconds <= 2 * CHUNK or n <= at_once:
        run(whole(0), whole(n))
        return shared
    rows = max(at_once, n * CHUNK // nanoseconds)
    with count(b, whole(0), whole(n), rows) as first:
        run(first, smaller(b, b.add(first, whole(rows)), whole(n)))
        spend(unit, whole(CHUNK))
    return shared


def _shared(module: ir.Module) -> ir.Function:
    """``void share(state, nest, arguments, first, last)``: a pass over a range by all threads."""
    if "share" in module.globals:
        return module.globals["share"]
    kinds = [POINTER, SIGNATURE.as_pointer(), POINTER.as_pointer(), I64, I64]
    function = internal(module, "share", ir.FunctionType(ir.VoidType(), kinds))
    b = ir.IRBuilder(function.append_basic_block())
    state, nest, arguments, first, last = function.args
    threads = b.load(cell(b, state, Cell.N_THREADS))
    with b.if_else(b.icmp_signed(">", threads, whole(1))) as (several, one):
        with several:
            b.store(b.ptrtoint(nest, I64), cell(b, state, Cell.FUNCTION))
            b.store(b.ptrtoint(arguments, I64), cell(b, state, Cell.ARGUMENTS))
            b.store(b.sub(last, first), cell(b, state, Cell.LENGTH))
            b.store(first, cell(b, state, Cell.START))
            b.store_atomic(whole(0), cell(b, state, Cell.DONE), RELEASE, 8)
            b.store_atomic(whole(PARTS), cell(b, state, Cell.TICKET), "seq_cst", 8)
            b.call(_take(module), [state])
            _wait(b, state, Cell.DONE, whole(PARTS), "==")
        with one:
            b.call(nest, [arguments, first, last])
    b.ret_void()
    return function


def _take(module: ir.Module) -> ir.Function:
    """``void take(state)``: parts of the present pass, as long as there are any."""
    if "take" in module.globals:
        return module.globals["take"]
    function = internal(module, "take", ON_STATE)
    (state,) = function.args
    b = ir.IRBuilder(function.append_basic_block())
    look, take, out = (function.append_basic_block(name) for name in ("look", "part", "out"))
    b.branch(look)
    b.position_at_end(look)
    ticket = b.atomic_rmw("sub", cell(b, state, Cell.TICKET), whole(1), "seq_cst")
    # none left gives 0 and less, the end of the run more than there are parts
    valid = b.icmp_unsigned("<", b.sub(ticket, whole(1)), whole(PARTS))
    b.cbranch(valid, take, out)
    b.position_at_end(take)  # what follows stays as it is until this part is done
    nest = b.inttoptr(b.load(cell(b, state, Cell.FUNCTION)), SIGNATURE.as_pointer())
    address = b.load(cell(b, state, Cell.ARGUMENTS))
    n, start = (b.load(cell(b, state, x)) for x in (Cell.LENGTH, Cell.START))
    borders = (b.sdiv(b.mul(n, k), whole(PARTS)) for k in (b.sub(ticket, whole(1)), ticket))
    first, last = (b.add(start, border) for border in borders)
    b.call(nest, [b.inttoptr(address, POINTER.as_pointer()), first, last])
    b.atomic_rmw("add", cell(b, state, Cell.DONE), whole(1), "seq_cst")
    b.branch(look)
    ir.IRBuilder(out).ret_void()
    return function


def _wait(b: ir.IRBuilder, state: Value, number: int, wanted: Value, relation: str) -> None:
    """Until a cell is in a relation to ``wanted``: looking at first, then letting others run."""
    look, more, give_way, ready = (b.append_basic_block(f"wait{k}") for k in range(4))
    before = b.block
    b.branch(look)
    b.position_at_end(look)
    tries = b.phi(I64)
    tries.add_incoming(whole(0), before)
    found = b.load_atomic(cell(b, state, number), ACQUIRE, 8)
    b.cbranch(b.icmp_signed(relation, found, wanted), ready, more)
    b.position_at_end(more)
    next_try = b.add(tries, whole(1))
    tries.add_incoming(next_try, b.block)
    b.cbranch(b.icmp_signed(">", next_try, whole(PATIENCE)), give_way, look)
    b.position_at_end(give_way)
    b.call(declared(b.module, "sched_yield", ir.FunctionType(ir.IntType(32), [])), [])
    tries.add_incoming(next_try, b.block)
    b.branch(look)
    b.position_at_end(ready)


def write_worker(module: ir.Module) -> None:
    """``void worker(state)``: what a helper does until there is nothing more to do."""
    function = ir.Function(module, ON_STATE, "worker")
    b = ir.IRBuilder(function.append_basic_block())
    (state,) = function.args
    again, over = b.append_basic_block("again"), b.append_basic_block("over")
    b.branch(again)
    b.position_at_end(again)
    _wait(b, state, Cell.TICKET, whole(0), ">")
    ticket = b.load_atomic(cell(b, state, Cell.TICKET), ACQUIRE, 8)
    ended = b.icmp_signed(">", ticket, whole(PARTS))
    part = b.append_basic_block("parts")
    b.cbranch(ended, over, part)
    b.position_at_end(part)
    b.call(_take(module), [state])
    b.branch(again)
    b.position_at_end(over)
    b.ret_void()


def write_end(module: ir.Module) -> None:
    """``void end(state)``: tell the helpers that there is nothing more to do."""
    function = ir.Function(module, ON_STATE, "end")
    b = ir.IRBuilder(function.append_basic_block())
    (state,) = function.args
    b.store_atomic(whole(END), cell(b, state, Cell.TICKET), "seq_cst", 8)
    b.ret_void()
