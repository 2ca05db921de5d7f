"""Elementwise kernels and sums of cells, made from the emitters of the rule blocks.

Each kernel is a loop over vectors of eight cells and a loop over what is left; because operands are
read before the result of the same place is written, a result may take the place of an operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ckad.engines.vm.isa import Key
from ckad.engines.vm.kernels.writing import DOUBLE, I64, Cells, Number, Word, Writer
from ckad.engines.vm.pairs import Pair
from ckad.rules import RULES

LANES = 8
UNROLL = 2  # vectors per turn of a kernel's loop
_CELL = {"f": DOUBLE, "s": DOUBLE, "i": I64, "b": I64}
#: Emits the value of an element from those of the operands.
Emit = Callable[..., Any]


def elementwise(key: Key) -> ir.Module:
    """The kernel on n cells: of (address of cell 0, n, dst, x, y, z)."""
    w = Writer("kernel", 6)
    base, n, *places = w.arguments
    emit, cells = emitter(key)
    apply(w, emit, cells, base, n, places)
    return w.finish()


def emitter(key: Key) -> tuple[Emit, str]:
    """The emitter of a kernel and the cells it reads and writes."""
    if not isinstance(key, Pair):
        op, cells = key
        return RULES[op].emit[cells], cells
    inner, outer = (RULES[op].emit["ff->f"] for op in (key.inner, key.outer))

    def both(b: Any, x: Any, y: Any, z: Any) -> Any:
        value = inner(b, x, y)
        return outer(b, z, value) if key.second else outer(b, value, z)

    return both, "fff->f"


def apply(
    w: Writer,
    emit: Emit,
    cells: str,
    base: Number,
    n: Word,
    places: list[Number],
    *,
    few: bool = False,
) -> None:
    """The loops of a kernel on n cells at places; of ``few`` there is no vector."""
    reads, writes = cells.split("->")
    types = [_CELL[c] for c in (writes, *reads)]
    dst, *operands = [
        w.cells(base, type).behind(place) for type, place in zip(types, places, strict=False)
    ]
    done: Word = 0
    if not few and not getattr(emit, "scalar_only", False):
        step = UNROLL * LANES
        done = Number(w.b, w.b.and_(w.number(n).value, ir.Constant(I64, -step)))
        for at in w.loop(0, done, step):
            for k in range(UNROLL):
                _vector(w, emit, at + k * LANES, dst, operands)
    for at in w.loop(done, n):
        dst[at] = Number(w.b, emit(w.b, *(x[at].value for x in operands)))


def _vector(w: Writer, emit: Emit, at: Number, dst: Cells, operands: list[Cells]) -> None:
    values = [w.b.load(_lanes(w, x, at), align=8) for x in operands]
    w.b.store(emit(w.b, *values), _lanes(w, dst, at), align=8)


def _lanes(w: Writer, cells: Cells, at: Word) -> Any:
    vector = ir.VectorType(cells.type, LANES).as_pointer()
    return w.b.bitcast(cells.behind(at).first, vector)


#: From this many cells on the C library copies faster than a loop.
LONG = 4096


def copy(w: Writer, base: Number, dst: Number, src: Number, n: Word) -> None:
    """Copy n cells by the loops of a kernel, without a call, or by the C library."""
    with w.either(w.number(n) < LONG) as (short, long):
        with short:
            apply(w, lambda b, x: x, "i->i", base, n, [dst, src])
        with long:
            copy_long(w, base, dst, src, n)


def copy_long(w: Writer, base: Number, dst: Number, src: Number, n: Word) -> None:
    cells, byte = w.cells(base), ir.IntType(8).as_pointer()
    to, source = (w.b.bitcast(cells.behind(x).first, byte) for x in (dst, src))
    move = w.module.declare_intrinsic("llvm.memmove", [byte, byte, I64])
    w.b.call(move, [to, source, (w.number(n) * 8).value, ir.Constant(ir.IntType(1), 0)])


#: Vectors that a sum adds into in turn: additions wait for the one before them.
SUMS = 4


def sum_cells(w: Writer, base: Number, src: Number, n: Number) -> Number:
    """The sum of n cells: in lanes, the lanes in pairs, then what is left, in order."""
    b, cells = w.b, w.cells(base, DOUBLE).behind(src)
    zeros = Number(b, ir.Constant(ir.VectorType(DOUBLE, LANES), [0.0] * LANES))
    sums, tail = [w.variable(zeros) for _ in range(SUMS)], w.variable(0.0)
    whole = Number(b, b.and_(n.value, ir.Constant(I64, -SUMS * LANES)))
    for at in w.loop(0, whole, SUMS * LANES):
        for k, total in enumerate(sums):
            x = b.load(_lanes(w, cells, at + k * LANES), align=8)
            total.set(Number(b, b.fadd(total.now.value, x)))
    for at in w.loop(whole, n):
        tail.add(cells[at])
    total_lanes = _in_pairs(b, [x.now.value for x in sums])
    lanes = [b.extract_element(total_lanes, ir.Constant(ir.IntType(32), k)) for k in range(LANES)]
    return Number(b, b.fadd(_in_pairs(b, lanes), tail.now.value))


def _in_pairs(b: ir.IRBuilder, values: list[Any]) -> Any:
    while len(values) > 1:
        values = [b.fadd(x, y) for x, y in zip(values[::2], values[1::2], strict=True)]
    return values[0]
