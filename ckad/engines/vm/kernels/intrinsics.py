"""The elementwise kernels as LLVM IR, made from the emitters of the rule blocks.

All kernels are cases of one switch. Each is a loop over vectors of eight cells and a loop over what
is left; because operands are read before the result of the same place is written, a result may
take the place of an operand.
"""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from ckad.engines.vm.isa import FIRST_KERNEL, KERNELS
from ckad.engines.vm.pairs import Pair
from ckad.rules import RULES
from ckad.rules.numbers import special

LANES = 8
UNROLL = 2  # vectors per turn of a kernel's loop
DOUBLE, I64 = ir.DoubleType(), ir.IntType(64)
_CELL = {"f": DOUBLE, "s": DOUBLE, "i": I64, "b": I64}


@functools.cache
def register_symbols() -> None:
    """Give SciPy's functions the names that emitters use; kernels are loaded after this."""
    for name in special.COMPILED:
        llvmlite.binding.add_symbol(f"ckad_{name}", special.address(name))


@intrinsic
def elementwise(typing: Any, code: Any, base: Any, n: Any, dst: Any, x: Any, y: Any, z: Any) -> Any:
    """Run kernel ``code`` on n cells; ``base`` is the address of cell 0."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, args: Any) -> Any:
        code, base, n, *addresses = args
        after = b.append_basic_block("after")
        switch = b.switch(code, after)
        for k, key in enumerate(KERNELS):
            case = b.append_basic_block(f"kernel{k}")
            switch.add_case(ir.Constant(I64, FIRST_KERNEL + k), case)
            b.position_at_end(case)
            _kernel(b, *_emitter(key), base, n, addresses)
            b.branch(after)
        b.position_at_end(after)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 7), generate


def _emitter(key: Any) -> tuple[Any, str]:
    """The emitter of a kernel and the cells it reads and writes."""
    if not isinstance(key, Pair):
        op, cells = key
        return RULES[op].emit[cells], cells
    inner, outer = (RULES[op].emit["ff->f"] for op in (key.inner, key.outer))

    def both(b: Any, x: Any, y: Any, z: Any) -> Any:
        value = inner(b, x, y)
        return outer(b, z, value) if key.second else outer(b, value, z)

    return both, "fff->f"


def _kernel(b: ir.IRBuilder, emit: Any, cells: str, base: Any, n: Any, addresses: Any) -> None:
    reads, writes = cells.split("->")
    dst, *operands = [_address(b, base, a) for a in addresses]
    operands = list(zip(operands, (_CELL[c] for c in reads), strict=False))
    done = ir.Constant(I64, 0)
    if not getattr(emit, "scalar_only", False):
        step = UNROLL * LANES
        whole = b.and_(n, ir.Constant(I64, -step))
        cell = _CELL[writes]
        _loop(b, done, whole, step, lambda at: _vectors(b, emit, at, dst, cell, operands))
        done = whole
    _loop(b, done, n, 1, lambda at: _apply(b, emit, at, dst, _CELL[writes], operands, 1))


def _loop(b: ir.IRBuilder, start: Any, stop: Any, step: int, body: Any) -> None:
    head, inside, after = (b.append_basic_block(name) for name in ("head", "inside", "after"))
    before = b.block
    b.branch(head)
    b.position_at_end(head)
    at = b.phi(I64)
    at.add_incoming(start, before)
    b.cbranch(b.icmp_signed("<", at, stop), inside, after)
    b.position_at_end(inside)
    body(at)
    at.add_incoming(b.add(at, ir.Constant(I64, step)), b.block)
    b.branch(head)
    b.position_at_end(after)


def _vectors(b: Any, emit: Any, at: Any, dst: Any, cell: Any, operands: Any) -> None:
    for k in range(UNROLL):
        _apply(b, emit, b.add(at, ir.Constant(I64, k * LANES)), dst, cell, operands, LANES)


def _apply(b: Any, emit: Any, at: Any, dst: Any, cell: Any, operands: Any, lanes: int) -> None:
    def pointer(address: Any, type: Any) -> Any:
        type = ir.VectorType(type, lanes) if lanes > 1 else type
        place = b.add(address, b.shl(at, ir.Constant(I64, 3)))
        return b.inttoptr(place, type.as_pointer())

    values = [b.load(pointer(address, type), align=8) for address, type in operands]
    b.store(emit(b, *values), pointer(dst, cell), align=8)


def _address(b: ir.IRBuilder, base: Any, cell: Any) -> Any:
    return b.add(base, b.shl(cell, ir.Constant(I64, 3)))


@intrinsic
def run_at(typing: Any, address: Any, words: Any, arrays: Any, work: Any) -> Any:
    """Call the machine code of a routine, see ckad.tape.routines.Compiled."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, args: Any) -> Any:
        address, *given = args
        body = ir.FunctionType(ir.IntType(32), [I64] * 3).as_pointer()
        return b.sext(b.call(b.inttoptr(address, body), given), I64)

    return types.int64(*[types.int64] * 4), generate


@intrinsic
def copy_short(typing: Any, base: Any, dst: Any, src: Any, n: Any) -> Any:
    """Copy n cells by the loop of an elementwise kernel, without a call."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, args: Any) -> Any:
        base, dst, src, n = args
        _kernel(b, lambda b, x: x, "i->i", base, n, (dst, src))
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


@intrinsic
def copy_long(typing: Any, base: Any, dst: Any, src: Any, n: Any) -> Any:
    """Copy n cells by the C library."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, args: Any) -> Any:
        base, dst, src, n = args
        byte = ir.IntType(8).as_pointer()
        to, source = (b.inttoptr(_address(b, base, a), byte) for a in (dst, src))
        cgutils.raw_memmove(b, to, source, n, 8, align=8)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


#: Vectors that a sum adds into in turn: additions wait for the one before them.
SUMS = 4


@intrinsic
def sum_cells(typing: Any, base: Any, src: Any, n: Any) -> Any:
    """The sum of n cells: in lanes, the lanes in pairs, then what is left, in order."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, args: Any) -> Any:
        base, src, n = args
        first = _address(b, base, src)
        whole = b.and_(n, ir.Constant(I64, -SUMS * LANES))
        sums = [
            cgutils.alloca_once_value(b, ir.Constant(_LANES, [0.0] * LANES)) for _ in range(SUMS)
        ]
        tail = cgutils.alloca_once_value(b, ir.Constant(DOUBLE, 0.0))
        # allocas are set at the function's entry, a sum begins anew each time
        for place in sums:
            b.store(ir.Constant(_LANES, [0.0] * LANES), place)
        b.store(ir.Constant(DOUBLE, 0.0), tail)

        def add_vectors(at: Any) -> None:
            for k, place in enumerate(sums):
                x = _load(b, first, b.add(at, ir.Constant(I64, k * LANES)), _LANES)
                b.store(b.fadd(b.load(place), x), place)

        def add_one(at: Any) -> None:
            b.store(b.fadd(b.load(tail), _load(b, first, at, DOUBLE)), tail)

        _loop(b, ir.Constant(I64, 0), whole, SUMS * LANES, add_vectors)
        _loop(b, whole, n, 1, add_one)
        vectors = [b.load(place) for place in sums]
        total = _in_pairs(b, vectors)
        lanes = [b.extract_element(total, ir.Constant(ir.IntType(32), k)) for k in range(LANES)]
        return b.fadd(_in_pairs(b, lanes), b.load(tail))

    return types.float64(*[types.int64] * 3), generate


_LANES = ir.VectorType(DOUBLE, LANES)


def _load(b: ir.IRBuilder, first: Any, at: Any, type: Any) -> Any:
    place = _address(b, first, at)
    return b.load(b.inttoptr(place, type.as_pointer()), align=8)


def _in_pairs(b: ir.IRBuilder, values: list[Any]) -> Any:
    while len(values) > 1:
        values = [b.fadd(x, y) for x, y in zip(values[::2], values[1::2], strict=True)]
    return values[0]
