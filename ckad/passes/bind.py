"""Binding inputs: an input becomes a constant, as the seed of a gradient does."""

from __future__ import annotations

import numpy as np

from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Tape


def bind(tape: Tape, values: dict[int, np.ndarray]) -> Tape:
    """``tape`` with the inputs at these positions fixed to the given arrays."""
    b, env = Builder(), dict[int, int]()
    for k, row in enumerate(tape.rows):
        if row.op is Op.INPUT and row.attrs[0] in values:
            env[k] = b.const(values[row.attrs[0]])
        else:
            env[k] = b.copy_row(tape, k, env)
    return b.tape(env[k] for k in tape.outputs.tolist())


def seeded(tape: Tape) -> Tape:
    """``tape`` with its last input, the cotangent of a scalar, fixed to one."""
    one = np.ones((), tape.input_types[-1].numpy)
    return bind(tape, {len(tape.inputs) - 1: one})
