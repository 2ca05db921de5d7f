"""The instruction set of the vm: words of int64, the first of them the code.

Memory is one array of 8-byte cells. A float64 or int64 takes one cell; so does a float32 (kept as
the float64 of the same value, rounded after every op) and a bool (0 or 1). Addresses are cell
numbers. Codes from ``FIRST_KERNEL`` on are the elementwise kernels: ``[code, n, dst, x, y, z]``.
"""

from __future__ import annotations

from enum import IntEnum

from ckad.engines.vm.pairs import PAIRS, Pair
from ckad.rules import RULES

#: Cells per strip: what one instruction works on while a chain of them stays in the L1 cache.
STRIP = 512


class Code(IntEnum):
    """Instructions and the words that follow the code."""

    HALT = 0
    COPY = 1  # n, dst, src
    FILL = 2  # n, dst, src: the cell at src, n times
    COPY_ND = 3  # add (1: floats, 2: integers), dst, src, rank, dims, dst strides, src strides
    REDUCE = 4  # kind, dst, src, outer, n, inner
    CUMSUM = 5  # dst, src, outer, n, inner, backward, integers
    RECURRENCE = 6  # dst, a, x, outer, n, inner, backward, integers
    GATHER = 7  # dst, src, idx, outer, n, n_idx, inner
    SCATTER = 8  # add, dst, idx, src, outer, n, n_idx, inner
    WRAP = 9  # n, dst, src, size, place
    MATMUL = 10  # dst, x, y, batch, m, k, n, tx, ty, integers
    STRIPS = 11  # size, words: run the instructions in them strip by strip
    SET = 12  # cell, integer
    NEXT = 13  # i, stop cell, step, target, cost: i += step; go on while before the stop
    COPY_IN = 14  # n, dst, base, i: dst <- base + i n
    COPY_OUT = 15  # n, base, i, src: base + i n <- src
    JUMP = 16  # target
    JUMP_IF_ZERO = 17  # cell, target
    JUMP_IF_LAST = 18  # i, stop cell, target: jump if i is the last before the stop
    JUMP_IF_AT = 19  # cell, integer, target: jump if the cell holds the integer
    ACTION = 20  # table, cells (start, stop, slot), then a target per Action
    RESTART = 21  # table, 1 to begin with the reverse phase
    RESIDUAL = 22  # cell, slot cell, i, start cell: the residual slot of step i
    BEFORE = 23  # cell, other: cell <- other - 1
    STEP = 24  # one step of an outermost loop is done
    CHECK = 25  # n, src, place: stop if a cell is not finite
    # only inside STRIPS: an operand is (address, 1 if it advances with the strip)
    VIEW = 26  # dst, advance, src, rank, dims, strides
    ROLL = 27  # dst, advance, src, row length, shift
    PAD = 28  # dst, advance, src, rank, outer dims, starts, inner dims
    SUM = 29  # cell, src, advance
    # guarded loops
    CLIP = 30  # start, stop, count, target: stop <- min(stop, count); jump if start >= stop
    NEXT_WHILE = 31  # i, stop, step, target, cost, flag: NEXT that ends too when the flag is 0
    JUMP_IF_REACHED = 32  # cell, other, target: jump if cell >= other
    TOO_LONG = 33  # table, cell: a loop needs actions for more steps, as many as the cell says
    LEARNT = 34  # table, cell: the loop runs as many steps as the cell says
    CALL = 35  # place: leave the interpreter for the routine of that place
    RUN = 36  # size, place, cost, address, work, n, n cells, words: machine code on arrays
    COPY_FAR = 37  # n, dst, cell, i: dst <- n cells at i n behind the cell that the cell numbers
    GATHER_FAR = 38  # as GATHER, with the cell that holds the number of src in its place


class Reduce(IntEnum):
    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    ARGMAX = 4
    ARGMIN = 5


#: Added to a Reduce kind when the cells hold integers.
INTEGERS = 8

#: The elementwise kernels in the order of their codes: an op and its cells, or a pair of ops.
KERNELS: list[tuple[int, str] | Pair] = [
    *((op, cells) for op in sorted(RULES) for cells in RULES[op].emit),
    *PAIRS,
]
FIRST_KERNEL = 64
KERNEL_CODES = {key: FIRST_KERNEL + k for k, key in enumerate(KERNELS)}


class Status(IntEnum):
    """Why the interpreter returned."""

    DONE = 0
    PAUSED = 1  # its time slice is over
    ACTIONS = 2  # a table of actions has to be filled
    INDEX = 3  # an index is out of range
    NOT_FINITE = 4
    LENGTH = 5  # an open loop runs longer than its actions are made for
    CALL = 6  # a routine is to be run
    FAILED = 7  # a routine has failed
