"""The instruction set of the vm: words of int64, the first of them the code.

Memory is one array of 8-byte cells. A float64 or int64 takes one cell; so does a float32 (kept as
the float64 of the same value, rounded after every op) and a bool (0 or 1). Addresses are cell
numbers. Codes from ``FIRST_KERNEL`` on are short elementwise kernels: ``[code, n, dst, x, y, z]``;
those of others are called by address, which holds in one process.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

from ckad.engines.vm.pairs import PAIRS, Pair
from ckad.rules import RULES
from ckad.tape.ops import Op

#: Cells per strip: what one instruction works on while a chain of them stays in the L1 cache.
STRIP = 512


class Code(IntEnum):
    """Instructions and the words that follow the code."""

    HALT = 0
    COPY = 1  # n, dst, src
    WHOLE = (
        2  # size, address, words: a kernel on whole arrays, of which size words say what it does
    )
    KERNEL = 3  # address, n, dst, x, y, z: an elementwise kernel
    WRAP = 4  # n, dst, src, size, place
    SET = 5  # cell, integer
    NEXT = 6  # i, stop cell, step, target, cost: i += step; go on while before the stop
    COPY_IN = 7  # n, dst, base, i: dst <- base + i n
    COPY_OUT = 8  # n, base, i, src: base + i n <- src
    JUMP = 9  # target
    JUMP_IF_ZERO = 10  # cell, target
    JUMP_IF_LAST = 11  # i, stop cell, target: jump if i is the last before the stop
    JUMP_IF_AT = 12  # cell, integer, target: jump if the cell holds the integer
    ACTION = 13  # table, cells (start, stop, slot), then a target per Action
    RESTART = 14  # table, 1 to begin with the reverse phase
    RESIDUAL = 15  # cell, slot cell, i, start cell: the residual slot of step i
    BEFORE = 16  # cell, other: cell <- other - 1
    STEP = 17  # one step of an outermost loop is done
    CHECK = 18  # n, src, place: stop if a cell is not finite
    # only inside strips, beside the addresses of elementwise kernels: an operand is (cell, 1 if it
    # advances with the strip)
    VIEW = 19  # dst, advance, src, rank, dims, strides
    ROLL = 20  # dst, advance, src, row length, shift
    PAD = 21  # dst, advance, src, rank, outer dims, starts, inner dims
    SUM = 22  # cell, src, advance
    # guarded loops
    CLIP = 23  # start, stop, count, target: stop <- min(stop, count); jump if start >= stop
    NEXT_WHILE = 24  # i, stop, step, target, cost, flag: NEXT that ends too when the flag is 0
    JUMP_IF_REACHED = 25  # cell, other, target: jump if cell >= other
    TOO_LONG = 26  # table, cell: a loop needs actions for more steps, as many as the cell says
    LEARNT = 27  # table, cell: the loop runs as many steps as the cell says
    CALL = 28  # place: leave the interpreter for the routine of that place
    RUN = 29  # size, place, cost, address, work, n, n cells, words: machine code on arrays
    COPY_FAR = 30  # n, dst, cell, i: dst <- n cells at i n behind the cell that the cell numbers


Key: TypeAlias = "tuple[int, str] | Pair"
#: The elementwise kernels: an op and its cells, or a pair of ops.
KERNELS: list[Key] = [
    *((op, cells) for op in sorted(RULES) for cells in RULES[op].emit),
    *PAIRS,
]
_SHORT = {
    *(Op.NEG, Op.ABS, Op.SQRT, Op.NOT, Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.SAFEDIV, Op.MAXIMUM),
    *(Op.MINIMUM, Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.AND, Op.OR, Op.XOR, Op.SELECT),
    *(Op.CONVERT, Op.STOP),
}
#: Kernels of few instructions are part of the interpreter, for few elements, where a call would
#: take longer than they do.
SHORT = [key for key in KERNELS if isinstance(key, Pair) or key[0] in _SHORT]
FEW = 16
FIRST_KERNEL = 64
KERNEL_CODES = {key: FIRST_KERNEL + k for k, key in enumerate(SHORT)}


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
