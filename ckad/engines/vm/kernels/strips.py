"""STRIPS: a chain of elementwise instructions, run on one strip after the other."""

from __future__ import annotations

import numpy as np

from ckad.engines.vm.isa import FIRST_KERNEL, STRIP, Code
from ckad.engines.vm.kernels.arrays import copy, copy_row
from ckad.engines.vm.kernels.intrinsics import elementwise, sum_cells
from ckad.kernel import kernel

_VIEW, _ROLL, _PAD = int(Code.VIEW), int(Code.ROLL), int(Code.PAD)
_FIRST = FIRST_KERNEL


@kernel
def run_strips(code: np.ndarray, pc: int, base: np.int64, f: np.ndarray) -> int:
    """Run the instructions after ``pc`` strip by strip; returns where the next one begins."""
    size, first = code[pc + 1], pc + 3
    end: int = first + code[pc + 2]
    for at in range(0, size, STRIP):
        n = min(STRIP, size - at)
        p = first
        while p < end:
            op = code[p]
            if op >= _FIRST:
                elementwise(
                    op,
                    base,
                    n,
                    code[p + 1] + at * code[p + 2],
                    code[p + 3] + at * code[p + 4],
                    code[p + 5] + at * code[p + 6],
                    code[p + 7] + at * code[p + 8],
                )
                p += 9
            elif op == _ROLL:
                load_roll(
                    base,
                    code[p + 1] + at * code[p + 2],
                    code[p + 3],
                    code[p + 4],
                    code[p + 5],
                    at,
                    n,
                )
                p += 6
            elif op == _VIEW:
                load_view(code, p, base, f, at, n)
                p += 5 + 2 * code[p + 4]
            elif op == _PAD:
                load_pad(code, p, base, f, at, n)
                p += 5 + 3 * code[p + 4]
            else:  # SUM
                src = code[p + 2] + at * code[p + 3]
                f[code[p + 1]] += sum_cells(base, src, n)
                p += 4
    return end


@kernel
def load_roll(base: np.int64, dst: int, src: int, length: int, shift: int, at: int, n: int) -> None:
    """n cells from place ``at`` on of rows of ``length``, each turned by ``shift``."""
    row, column = divmod(at, length)
    row *= length
    done = 0
    while done < n:
        source = column - shift
        if source < 0:
            source += length
        part = min(n - done, length - column, length - source)
        copy(base, dst + done, src + row + source, part)
        done += part
        column += part
        if column == length:
            row, column = row + length, 0


@kernel
def load_view(code: np.ndarray, p: int, base: np.int64, f: np.ndarray, at: int, n: int) -> None:
    """n elements from place ``at`` on of a strided view, in C order."""
    dst, src, rank = code[p + 1] + at * code[p + 2], code[p + 3], code[p + 4]
    dims, strides = p + 5, p + 5 + rank
    inner, step = code[dims + rank - 1], code[strides + rank - 1]
    row, column = divmod(at, inner)
    done = 0
    while done < n:
        source, left = src + column * step, row
        for a in range(rank - 2, 0, -1):
            left, place = divmod(left, code[dims + a])
            source += place * code[strides + a]
        if rank > 1:
            source += left * code[strides]
        part = min(n - done, inner - column)
        copy_row(0, base, f, dst + done, 1, source, step, part)
        done += part
        row, column = row + 1, 0


@kernel
def load_pad(code: np.ndarray, p: int, base: np.int64, f: np.ndarray, at: int, n: int) -> None:
    """n elements from place ``at`` on of an array of zeros with another one inside."""
    dst, src, rank = code[p + 1] + at * code[p + 2], code[p + 3], code[p + 4]
    outer = code[p + 5 : p + 5 + rank]
    starts = code[p + 5 + rank : p + 5 + 2 * rank]
    dims = code[p + 5 + 2 * rank : p + 5 + 3 * rank]
    done = 0
    while done < n:
        row, column = divmod(at + done, outer[rank - 1])
        part = min(n - done, outer[rank - 1] - column)
        source, stride, hit = src, dims[rank - 1], True
        for a in range(rank - 2, -1, -1):
            row, place = divmod(row, outer[a])
            place -= starts[a]
            hit = hit and 0 <= place < dims[a]
            source += place * stride
            stride *= dims[a]
        first = min(max(starts[rank - 1] - column, 0), part) if hit else part
        last = min(max(starts[rank - 1] + dims[rank - 1] - column, first), part) if hit else part
        for k in range(first):
            f[dst + done + k] = 0.0
        for k in range(last, part):
            f[dst + done + k] = 0.0
        if first < last:
            copy(
                base,
                dst + done + first,
                source + column + first - starts[rank - 1],
                last - first,
            )
        done += part
