"""What the step of a loop costs: its floating-point operations, and what it reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ckad.tape.control import likely_length, read_loop, read_reverse_loop
from ckad.tape.ops import OPS, Group, Op, is_elementwise
from ckad.tape.routines import routine_of
from ckad.tape.tape import Row, Tape
from ckad.tape.types import Type

#: They change a sign, a type or nothing, and count as no operation.
_FREE = {Op.NEG, Op.ABS, Op.COPYSIGN, Op.CONVERT, Op.SELECT}


class Body(NamedTuple):
    """A tape and the inputs and outputs, by position, that lie in arrays whatever their size.

    For a body of a loop those are residuals, elements of the xs and results of the step; what it
    carries, and what is the same in every step, may be in registers.
    """

    tape: Tape
    fetched: Sequence[int]
    kept: Sequence[int]


class MainLoop(NamedTuple):
    """The steps of a loop; ``reverse`` where it is one that is reversed."""

    length: int
    primal: Body
    reverse: Body | None


def main_loop(tape: Tape) -> MainLoop:
    """The outermost loop that computes most; a tape without loops is the one step itself."""
    backward = {row.attrs[5]: row for row in tape.rows if row.op is Op.REVERSE_LOOP}
    found = []
    for row in tape.rows:
        if row.op in (Op.LOOP, Op.TAPED_LOOP):
            other = backward.get(row.attrs[5]) if row.op is Op.TAPED_LOOP else None
            reverse = bodies(tape, other)[0] if other else None
            loop = read_loop(tape, row)
            length = likely_length(loop.length, loop.guard)
            found.append(MainLoop(length, bodies(tape, row)[0], reverse))
    if not found:
        whole = Body(tape, range(len(tape.inputs)), range(len(tape.outputs)))
        return MainLoop(1, whole, None)
    return max(found, key=lambda steps: steps.length * flops(steps.primal.tape))


def bodies(tape: Tape, row: Row) -> list[Body]:
    """What a control row runs: the step of a loop, the reverse of one, or two branches."""
    if row.op is Op.COND:
        return [Body(tape.bodies[k], (), ()) for k in row.attrs[:2]]
    if row.op is Op.REVERSE_LOOP:
        back = read_reverse_loop(tape, row)
        n = 1 + back.n_residuals + len(back.xs)
        cts = n + len(back.captured) + len(back.ct_carry)
        fetched = [*range(1, n), *range(cts, cts + len(back.ct_ys))]
        n_totals = len(back.ct_carry) + len(back.sums)
        return [Body(back.reverse, fetched, range(n_totals, len(back.reverse.outputs)))]
    loop = read_loop(tape, row)
    n = len(loop.carry)
    fetched = list(range(1 + n, 1 + n + len(loop.xs)))
    return [Body(loop.body, fetched, range(n, len(loop.body.outputs)))]


def total(tape: Tape, row: Row, count: Callable[[Body], int]) -> int:
    """A count over all steps of a control row, or of its dearer branch."""
    counts = [count(body) for body in bodies(tape, row)]
    if row.op is Op.COND:
        return max(counts)
    loop = (read_reverse_loop if row.op is Op.REVERSE_LOOP else read_loop)(tape, row)
    return likely_length(loop.length, loop.guard) * counts[0]


# --- operations ----------------------------------------------------------------------------------


def flops(tape: Tape) -> int:
    """Floating-point operations of one run, as `Compiled.flops_per_step` counts them.

    >>> import numpy as np, ckad
    >>> flops(ckad.trace(lambda x: np.sum(x * np.sin(x)))(np.ones(10)))
    29
    """
    return sum(_flops(tape, row) for row in tape.rows)


def _flops(tape: Tape, row: Row) -> int:
    if OPS[row.op].group is Group.CONTROL:
        return total(tape, row, lambda body: flops(body.tape))
    if not (row.type.is_array and row.type.is_float):
        return 0
    if is_elementwise(row.op):
        return 0 if row.op in _FREE else row.type.size * (2 if row.op is Op.FMA else 1)
    types = [tape.rows[x].type for x in row.operands]
    if row.op in (Op.SUM, Op.PROD, Op.REDUCE_MAX, Op.REDUCE_MIN):
        return max(0, types[0].size - row.type.size)
    if row.op is Op.MATMUL:
        inner = types[0].shape[1 if row.attrs[0] else 2]
        return 2 * inner * row.type.size
    if row.op is Op.CALL:
        return call_flops(tape, row)
    if row.op in (Op.SLICE_ADD, Op.SCATTER_ADD):
        return types[-1].size
    return {Op.CUMSUM: 1, Op.RECURRENCE: 2}.get(row.op, 0) * row.type.size


def call_flops(tape: Tape, row: Row) -> int:
    """About how many operations a routine takes."""
    types = [tape.rows[x].type for x in row.operands]
    return int(routine_of(row).flops(row.attrs[1:], *types))


# --- memory --------------------------------------------------------------------------------------


class Touched(NamedTuple):
    """A part of what a row holds."""

    type: Type
    row: int


def touched(tape: Tape, k: int) -> Iterator[Touched]:
    """What row ``k`` reads and writes; arrays that it changes in part are changed in place."""
    row = tape.rows[k]
    if OPS[row.op].group in (Group.LEAF, Group.CONTROL) or row.op is Op.RESHAPE:
        return
    operands = [Touched(tape.rows[x].type, x) for x in row.operands]
    if row.op in (Op.SLICE, Op.GATHER):  # of what they read from they need no more
        operands[0] = Touched(row.type, row.operands[0])
    if row.op in (Op.UPDATE, Op.SLICE_ADD, Op.SCATTER, Op.SCATTER_ADD):
        part = Touched(operands[-1].type, k)
        yield from operands[1:]
        yield from [part] * (2 if row.op in (Op.SLICE_ADD, Op.SCATTER_ADD) else 1)
    else:
        yield from (*operands, Touched(row.type, k))
