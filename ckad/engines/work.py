"""Predictions from a tape alone: how long each engine runs it, and how long it is compiled."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import NamedTuple

from ckad.engines.counts import call_flops
from ckad.tape.control import (
    UNGUARDED,
    ReverseLoop,
    likely_length,
    read_loop,
    read_reverse_loop,
)
from ckad.tape.ops import OPS, Group, Op
from ckad.tape.routines import routine_of
from ckad.tape.tape import Row, Tape

#: Arrays of at most this many elements are small.
SMALL = 64


#: Elements of a factor that is read for one product take as long as so many multiplications.
_UNSHARED = 16

_WRITES = (Op.UPDATE, Op.SLICE_ADD, Op.SCATTER, Op.SCATTER_ADD)
#: Of the elementwise ops.
_FEW_INSTRUCTIONS = {
    *(Op.NEG, Op.ABS, Op.SIGN, Op.SQRT, Op.FLOOR, Op.CEIL, Op.TRUNC, Op.RINT, Op.NOT, Op.STOP),
    *(Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.SAFEDIV, Op.FMA, Op.COPYSIGN, Op.MAXIMUM, Op.MINIMUM),
    *(Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.AND, Op.OR, Op.XOR, Op.SELECT, Op.CONVERT),
}


class Rates(NamedTuple):
    """Nanoseconds of a row on a small array, of one on a large array per element, of a call of
    machine code; of an element that lies apart from its neighbours, of one that is moved or added
    up along a short last axis."""

    row: float
    element: float
    call: float
    apart: float
    short: float


VM, NATIVE = Rates(4.0, 0.35, 200.0, 6.0, 2.0), Rates(0.6, 0.03, 100.0, 2.0, 0.06)
RATES = {"vm": VM, "native": NATIVE}
#: Elements of an array that the first cache holds.
CACHED = 4096
#: Nanoseconds of a call of Python, from either.
PYTHON = 10_000.0
#: Elements of a step and of its reversal, of two steps in one stream of instructions.
MOST_BESIDE = 1000
#: Operations that a routine does in a nanosecond.
FLOPS = 4.0
#: Nanoseconds of an elementary function, more than an addition, from either engine.
FUNCTION = 0.6
#: Seconds of compilation: at the least, and per row of all bodies, small ones and large ones.
LEAST, PER_ROW, PER_LARGE_ROW = 0.05, 6e-5, 2e-3
#: Seconds of one that only says where elements are found, as nests read them.
PER_LARGE_PLACE = 5e-4
_PLACES = (Op.RESHAPE, Op.SLICE, Op.BROADCAST, Op.TRANSPOSE, Op.PAD)
#: A last axis of fewer elements is short.
_SHORT = 16


def nanoseconds(tape: Tape, engine: str) -> float:
    """About how long an engine runs ``tape``."""
    return _run(tape, RATES[engine])


def compile_seconds(tape: Tape, times: float = 1.0) -> float:
    """About how long the native engine takes to compile ``tape``, or one of so many times its
    rows."""
    return LEAST + times * _rows(tape)


def step_nanoseconds(tape: Tape, engine: str) -> dict[int, float]:
    """About how long a step of each taped loop of ``tape`` takes, by the loop's name."""
    loops = [read_loop(tape, row) for row in tape.rows if row.op is Op.TAPED_LOOP]
    return {loop.name: nanoseconds(loop.body, engine) for loop in loops}


def reverse_nanoseconds(tape: Tape, engine: str) -> dict[int, float]:
    """About how long the reverse of a step of each outermost loop takes, by the loop's name."""
    loops = [read_reverse_loop(tape, row) for row in tape.rows if row.op is Op.REVERSE_LOOP]
    return {loop.name: nanoseconds(loop.reverse, engine) for loop in loops}


def beside(tape: Tape, engine: str) -> frozenset[int]:
    """The outermost loops of which an engine runs steps again beside the reversal of others."""
    loops = [read_reverse_loop(tape, row) for row in tape.rows if row.op is Op.REVERSE_LOOP]
    return frozenset(x.name for x in loops if engine == "native" and runs_beside(x))


def runs_beside(loop: ReverseLoop) -> bool:
    """Whether the native engine runs a step again beside the reversal of another one: if both are
    straight code on few values, all in registers. Elementary functions are too long: they keep the
    processor busy by themselves."""
    tapes = loop.taping, loop.reverse
    types = [type for tape in tapes for type in tape.output_types]
    if loop.guard != UNGUARDED or not all(t.is_array and t.size <= SMALL for t in types):
        return False
    rows = [x for tape in tapes for x in tape.rows if OPS[x.op].group is not Group.LEAF]
    return all(map(_is_short, rows)) and sum(x.type.size for x in rows) <= MOST_BESIDE


def _is_short(row: Row) -> bool:
    group = OPS[row.op].group
    if group is Group.ELEMENTWISE:
        return row.op in _FEW_INSTRUCTIONS
    return group not in (Group.CONTROL, Group.CALL, Group.LINALG)


def _run(tape: Tape, rates: Rates) -> float:
    return sum(map(partial(_row, tape, rates), tape.rows))


def _row(tape: Tape, rates: Rates, row: Row) -> float:
    group = OPS[row.op].group
    if group is Group.LEAF:
        return 0.0
    if group is Group.CONTROL:
        return _control(tape, rates, row)
    if row.op is Op.CALL:
        called = rates.call if routine_of(row).compiled else PYTHON
        # its derivatives by large operands are formulas of elements
        given = sum(tape.rows[x].type.size for x in row.operands)
        return called + rates.element * given + call_flops(tape, row) / FLOPS
    size = row.type.size if group is Group.ELEMENTWISE else _elements(tape, row)
    if _is_apart(tape, row):
        return rates.row + rates.apart * size
    if row.op is Op.MATMUL:
        size = max(_UNSHARED * size, row.type.size * _inner(tape, row))
    elif _is_short_axis(tape, row):
        return rates.row + rates.short * size
    is_function = group is Group.ELEMENTWISE and row.op not in _FEW_INSTRUCTIONS
    return rates.row + (rates.element + FUNCTION * is_function) * size


def _is_short_axis(tape: Tape, row: Row) -> bool:
    """Whether a row moves or adds up a large array's elements by few at a time."""
    group = OPS[row.op].group
    if group not in (Group.SHAPE, Group.REDUCE) or row.op is Op.RESHAPE or not row.operands:
        return False
    types = row.type, tape.rows[row.operands[-1]].type
    if not all(t.is_array and t.shape for t in types) or types[0].size <= SMALL:
        return False
    return min(t.shape[-1] for t in types) < _SHORT


def _inner(tape: Tape, row: Row) -> int:
    """The length over which a matrix product sums."""
    return tape.rows[row.operands[0]].type.shape[1 if row.attrs[0] else 2]


def _elements(tape: Tape, row: Row) -> int:
    """How many elements a row works on; of an array that is written in place, those that change."""
    sizes = [row.type.size, *(tape.rows[x].type.size for x in row.operands)]
    if row.op in (Op.GATHER, Op.SLICE):
        return sizes[0]
    return sizes[-1] if row.op in _WRITES else max(sizes)


def _is_apart(tape: Tape, row: Row) -> bool:
    """Whether a row reads or writes columns of a large array, each element in a cache line of its
    own."""
    if row.op not in (Op.GATHER, Op.SCATTER, Op.SCATTER_ADD):
        return False
    shape, axis = tape.rows[row.operands[0]].type.shape, row.attrs[0]
    outer, inner = prod(shape[:axis]), prod(shape[axis + 1 :])
    return outer > SMALL and inner == 1 and outer * shape[axis] > CACHED


def _control(tape: Tape, rates: Rates, row: Row) -> float:
    if row.op in (Op.LOOP, Op.TAPED_LOOP):
        loop = read_loop(tape, row)
        return likely_length(loop.length, loop.guard) * _run(loop.taping or loop.body, rates)
    if row.op is Op.REVERSE_LOOP:
        reverse = read_reverse_loop(tape, row)
        return likely_length(reverse.length, reverse.guard) * _run(reverse.reverse, rates)
    return max(_run(tape.bodies[k], rates) for k in row.attrs[:2])


def _rows(tape: Tape) -> float:
    large = [row.op for row in tape.rows if row.type.is_array and row.type.size > SMALL]
    places = sum(op in _PLACES for op in large)
    computed = PER_LARGE_ROW * (len(large) - places) + PER_LARGE_PLACE * places
    own = PER_ROW * (len(tape) - len(large)) + computed
    return own + sum(_rows(body) for body in tape.bodies)
