"""Two-level checkpointing for adjoints written by hand in Numba: cases bring their steps only.

Forward with a checkpoint at the start of each block of `period` steps; then block by block from the
last, every state of a block at once. A period of the whole length keeps every state, and no step is
run twice.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Sums may be reordered and a*b+c contracted: nothing has to match these kernels bit by bit.
compiled = njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})


@compiled
def copy_into(out, field):
    # A loop, since `out[:] = field` takes Numba over two seconds to compile.
    flat, source = out.reshape(-1), field.reshape(-1)
    for i in range(flat.size):
        flat[i] = source[i]


@compiled
def wrap_border(w):
    """The border of a periodic field repeats the other side: what np.pad(..., mode="wrap") does."""
    last = w.shape[0] - 1
    for j in range(1, last):
        w[0, j], w[last, j] = w[last - 1, j], w[1, j]
    for i in range(last + 1):
        w[i, 0], w[i, last] = w[i, last - 1], w[i, 1]


@compiled
def advance(fields, stop, first, step, parameters):
    """fields[0] is older than fields[1], the state before step `first`; fills those after it."""
    for i in range(stop):
        step(fields[i + 2], fields[i + 1], fields[i], first + i, parameters)


@compiled
def forward(checkpoints, start, period, step, parameters):
    """All checkpoints, as deep as the method looks back; three buffers take turns in between."""
    depth = start.shape[0]
    buffers = np.zeros((3,) + start.shape[1:])
    copy_into(checkpoints[0], start)
    copy_into(buffers[2 - depth : 2], start)
    for i in range((checkpoints.shape[0] - 1) * period):
        older, old, new = i % 3, (i + 1) % 3, (i + 2) % 3
        step(buffers[new], buffers[old], buffers[older], i, parameters)
        if (i + 1) % period == 0:
            checkpoint = checkpoints[(i + 1) // period]
            for age in range(depth):
                copy_into(checkpoint[depth - 1 - age], buffers[(new - age) % 3])


@compiled
def two_level(start, length, period, step, finish, step_adjoint, parameters):
    """The value, and the cotangent of the state before the first step.

    Parameters
    ----------
    start : array (1, ...) or (2, ...)
        The state before the first step; if the method looks back by two, first the older one.
    length, period : int
    step : compiled function
        step(new, old, older, i, parameters) writes the state after step i.
    finish : compiled function
        finish(ct, last, parameters) writes the last state's cotangent, returns the value.
    step_adjoint : compiled function
        step_adjoint(new_ct, ct, newer_ct, old, i, parameters) writes the cotangent of the state
        before step i, given those after it and after step i + 1; adds to those of parameters.
    parameters : tuple
        Handed through: constants, cotangents that are added to, work arrays.

    States and cotangents are zero where `start` is and no function writes: a border stays as it is.
    """
    n_blocks = (length + period - 1) // period
    checkpoints = np.empty((n_blocks,) + start.shape)
    forward(checkpoints, start, period, step, parameters)
    fields = np.zeros((period + 2,) + start.shape[1:])
    cts = np.zeros((3,) + start.shape[1:])
    value = 0.0
    for block in range(n_blocks - 1, -1, -1):
        first = block * period
        stop = min(period, length - first)
        copy_into(fields[2 - start.shape[0] : 2], checkpoints[block])
        if block == n_blocks - 1:
            advance(fields, stop, first, step, parameters)
            value = finish(cts[length % 3], fields[stop + 1], parameters)
        else:
            advance(fields, stop - 1, first, step, parameters)
        for i in range(stop - 1, -1, -1):
            at = first + i
            new_ct, ct, newer_ct = cts[at % 3], cts[(at + 1) % 3], cts[(at + 2) % 3]
            step_adjoint(new_ct, ct, newer_ct, fields[i + 1], at, parameters)
    return value, cts[0]


def period_of(length: int, store_all: bool = False) -> int:
    """Less than the square root, which would keep the fewest states: so a block stays in cache.

    At 400 steps, 29 checkpoints and blocks of 14 states instead of 20 and 20.
    """
    return length if store_all else max(1, round((length / 2) ** 0.5))
