"""The interpreter: one loop over instructions, compiled once.

All its state is in the cells, the action tables and the program counter, so it can return to
Python at any backward jump and go on later: that answers Ctrl-C and drives progress bars.
"""

from __future__ import annotations

import numpy as np
from numba.np.unsafe.ndarray import to_fixed_tuple as words

from ckad.engines.vm.isa import FIRST_KERNEL, Code, Status
from ckad.engines.vm.kernels import arrays
from ckad.engines.vm.kernels.array_code import array_instruction
from ckad.engines.vm.kernels.intrinsics import elementwise, run_at
from ckad.engines.vm.kernels.strips import run_strips
from ckad.kernel import kernel

_FIRST = FIRST_KERNEL
_HALT, _COPY, _WRAP = int(Code.HALT), int(Code.COPY), int(Code.WRAP)
_STRIPS, _SET, _NEXT, _COPY_IN, _COPY_OUT = (int(c) for c in list(Code)[11:16])
_JUMP, _IF_ZERO, _IF_LAST, _IF_AT = (int(c) for c in list(Code)[16:20])
_ACTION, _RESTART, _RESIDUAL, _BEFORE, _STEP, _CHECK = (int(c) for c in list(Code)[20:26])
_CLIP, _NEXT_WHILE, _REACHED, _TOO_LONG, _LEARNT, _CALL, _RUN = (int(c) for c in list(Code)[30:37])
_COPY_FAR = int(Code.COPY_FAR)
_DONE, _PAUSED, _ACTIONS, _INDEX, _NOT_FINITE, _LENGTH, _ROUTINE, _FAILED = (int(s) for s in Status)

#: Columns of an action table's row: the next row, the rows filled, where its buffer begins,
#: where the reverse phase begins, whether that waits for the number of steps, this number, and the
#: largest that it was.
CURSOR, FILLED, FIRST, REVERSE, LEARNS, COUNT, MOST = range(7)


@kernel
def _run(code: np.ndarray, pc: int, base: np.int64, i: np.ndarray) -> int:
    """Machine code on arrays in the cells; their addresses lie before its workspace."""
    work, n = code[pc + 5], code[pc + 6]
    for k in range(n):
        i[work + k] = base + 8 * code[pc + 7 + k]
    words, arrays = np.int64(code.ctypes.data) + 8 * (pc + 7 + n), base + 8 * work
    status: int = run_at(code[pc + 4], words, arrays, arrays + 8 * n)
    return status


@kernel
def run(
    code: np.ndarray,
    f: np.ndarray,
    i: np.ndarray,
    pc: int,
    fuel: int,
    tables: np.ndarray,
    actions: np.ndarray,
    report: np.ndarray,
) -> int:
    """Run from ``pc`` until the program stops or ``fuel`` (about nanoseconds) is used up.

    Returns the program counter to go on from. ``report`` gets the Status, a detail of it, counts
    the steps done, and gets how many steps an open loop wants.
    """
    base = np.int64(f.ctypes.data)
    report[0] = _PAUSED
    while fuel > 0:
        op = code[pc]
        if op >= _FIRST:
            elementwise(op, base, *words(code[pc + 1 :], 5))
            pc += 6
        elif op == _COPY:
            arrays.copy(base, code[pc + 2], code[pc + 3], code[pc + 1])
            pc += 4
        elif op == _STRIPS:
            pc = run_strips(code, pc, base, f)
        elif op == _COPY_IN:
            n = code[pc + 1]
            arrays.copy(base, code[pc + 2], code[pc + 3] + i[code[pc + 4]] * n, n)
            pc += 5
        elif op == _COPY_FAR:
            n = code[pc + 1]
            arrays.copy(base, code[pc + 2], i[code[pc + 3]] + i[code[pc + 4]] * n, n)
            pc += 5
        elif op == _COPY_OUT:
            n = code[pc + 1]
            arrays.copy(base, code[pc + 2] + i[code[pc + 3]] * n, code[pc + 4], n)
            pc += 5
        elif op == _NEXT:
            at = i[code[pc + 1]] + code[pc + 3]
            i[code[pc + 1]] = at
            stop = i[code[pc + 2]]
            fuel -= code[pc + 5]
            if (at < stop) if code[pc + 3] > 0 else (at >= stop):
                pc = code[pc + 4]
            else:
                pc += 6
        elif op == _ACTION:
            table = tables[code[pc + 1]]
            cursor = table[CURSOR]
            if cursor == table[FILLED]:
                report[0], report[1] = _ACTIONS, code[pc + 1]
                return pc
            table[CURSOR] = cursor + 1
            fuel -= 10
            cells = code[pc + 2]
            i[cells], i[cells + 1] = actions[cursor, 1], actions[cursor, 2]
            i[cells + 2] = actions[cursor, 3]
            pc = code[pc + 3 + actions[cursor, 0]]
        elif op == _RESIDUAL:
            i[code[pc + 1]] = i[code[pc + 2]] + i[code[pc + 3]] - i[code[pc + 4]]
            pc += 5
        elif op == _SET:
            i[code[pc + 1]] = code[pc + 2]
            pc += 3
        elif op == _BEFORE:
            i[code[pc + 1]] = i[code[pc + 2]] - 1
            pc += 3
        elif op == _JUMP:
            pc = code[pc + 1]
        elif op == _IF_LAST:
            pc = code[pc + 3] if i[code[pc + 1]] + 1 >= i[code[pc + 2]] else pc + 4
        elif op == _IF_AT:
            pc = code[pc + 3] if i[code[pc + 1]] == code[pc + 2] else pc + 4
        elif op == _IF_ZERO:
            pc = code[pc + 2] if i[code[pc + 1]] == 0 else pc + 3
        elif op == _STEP:
            report[2] += 1
            pc += 1
        elif op == _WRAP:
            if not arrays.wrap(i, *words(code[pc + 1 :], 4)):
                report[0], report[1] = _INDEX, code[pc + 5]
                return pc
            pc += 6
        elif op == _RESTART:
            table = tables[code[pc + 1]]
            table[CURSOR] = table[REVERSE] if code[pc + 2] else table[FIRST]
            pc += 3
        elif op == _CHECK:
            if not arrays.all_finite(f, code[pc + 2], code[pc + 1]):
                report[0], report[1] = _NOT_FINITE, code[pc + 3]
                return pc
            pc += 4
        elif op == _NEXT_WHILE:
            at = i[code[pc + 1]] + code[pc + 3]
            i[code[pc + 1]] = at
            fuel -= code[pc + 5]
            if at < i[code[pc + 2]] and i[code[pc + 6]] != 0:
                pc = code[pc + 4]
            else:
                pc += 7
        elif op == _CLIP:
            last = min(i[code[pc + 2]], i[code[pc + 3]])
            i[code[pc + 2]] = last
            pc = code[pc + 4] if i[code[pc + 1]] >= last else pc + 5
        elif op == _REACHED:
            pc = code[pc + 3] if i[code[pc + 1]] >= i[code[pc + 2]] else pc + 4
        elif op == _LEARNT:
            table = tables[code[pc + 1]]
            table[COUNT] = i[code[pc + 2]]
            table[MOST] = max(table[MOST], table[COUNT])
            if table[LEARNS]:
                table[FILLED] = table[CURSOR]
            pc += 3
        elif op == _TOO_LONG:
            report[0], report[1], report[3] = _LENGTH, code[pc + 1], i[code[pc + 2]]
            return pc
        elif op == _RUN:
            fuel -= code[pc + 3]
            status = _run(code, pc, base, i)
            if status != 0:
                report[0], report[1], report[3] = _FAILED, code[pc + 2], status
                return pc
            pc += code[pc + 1]
        elif op == _CALL:
            report[0], report[1] = _ROUTINE, code[pc + 1]
            return pc
        elif op == _HALT:
            report[0] = _DONE
            return pc
        else:
            pc = array_instruction(op, code, pc, base, f, i)
    return pc
