"""The instructions on whole arrays: their words handed to the kernels in ``arrays``."""

from __future__ import annotations

import numpy as np
from numba.np.unsafe.ndarray import to_fixed_tuple as words

from ckad.engines.vm.isa import Code
from ckad.engines.vm.kernels.arrays import (
    copy_nd,
    cumsum,
    gather,
    matmul,
    matmul_integers,
    recurrence,
    reduce,
    scatter,
)
from ckad.kernel import kernel

_FILL, _COPY_ND, _REDUCE, _CUMSUM = (int(c) for c in list(Code)[2:6])
_RECURRENCE, _GATHER, _SCATTER = (int(c) for c in list(Code)[6:9])
_GATHER_FAR = int(Code.GATHER_FAR)


@kernel
def array_instruction(
    op: int, code: np.ndarray, pc: int, base: np.int64, f: np.ndarray, i: np.ndarray
) -> int:
    """Run the instruction at ``pc``; returns where the next one begins."""
    if op == _FILL:
        n, dst, number = code[pc + 1], code[pc + 2], f[code[pc + 3]]
        for k in range(dst, dst + n):
            f[k] = number
        return pc + 4
    if op == _COPY_ND:
        if code[pc + 1] == 2:
            copy_nd(code, pc, base, i)
        else:
            copy_nd(code, pc, base, f)
        end: int = pc + 5 + 3 * code[pc + 4]
        return end
    if op == _GATHER:
        gather(base, i, *words(code[pc + 1 :], 7))
        return pc + 8
    if op == _GATHER_FAR:
        src = i[code[pc + 2]]
        gather(base, i, code[pc + 1], src, *words(code[pc + 3 :], 5))
        return pc + 8
    if op == _SCATTER:
        scatter(base, f, i, *words(code[pc + 1 :], 8))
        return pc + 9
    if op == _REDUCE:
        reduce(base, f, i, *words(code[pc + 1 :], 6))
        return pc + 7
    if op == _CUMSUM:
        cumsum(f, i, *words(code[pc + 1 :], 7))
        return pc + 8
    if op == _RECURRENCE:
        if code[pc + 8]:
            recurrence(i, *words(code[pc + 1 :], 7))
        else:
            recurrence(f, *words(code[pc + 1 :], 7))
        return pc + 9
    # MATMUL, the last one
    if code[pc + 10]:
        matmul_integers(i, *words(code[pc + 1 :], 9))
    else:
        matmul(f, *words(code[pc + 1 :], 9))
    return pc + 11
