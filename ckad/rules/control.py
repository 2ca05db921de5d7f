"""The meaning of the control rows in plain NumPy, for the oracle.

Their derivatives are made by the passes ``tangent`` and ``adjoint``, which transform the bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from ckad.rules.evaluate import CONTROL, evaluate
from ckad.tape.control import COUNTED, UNGUARDED, Loop, read_loop, read_reverse_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import Type


def _loop(tape: Tape, row: Row, operands: Sequence[Any]) -> tuple[Any, ...]:
    """LOOP, and TAPED_LOOP: its token holds the residuals of every step."""
    loop = read_loop(tape, row)
    n, m = len(loop.carry), len(loop.xs)
    carry, xs, captured = list(operands[:n]), operands[n : n + m], operands[n + m :]
    body = loop.taping or loop.body
    ys: list[list[Any]] = [[] for _ in range(loop.n_ys)]
    residuals: list[Any] = []
    for i in count():
        if not _goes_on(loop, i, carry):
            break
        out = evaluate(body, i, *carry, *(x[i] for x in xs), *captured)
        carry = out[:n]
        for y, new in zip(ys, out[n:], strict=False):
            y.append(new)
        residuals.append(out[n + loop.n_ys :])
    stacked = tuple(_stack(y, t) for y, t in zip(ys, loop.body.output_types[n:], strict=True))
    return (*carry, *stacked, *([residuals] if loop.taping else ()))


def _goes_on(loop: Loop, i: int, carry: Sequence[Any]) -> bool:
    if i >= loop.length or loop.guard == UNGUARDED:
        return i < loop.length
    return i < carry[0] if loop.guard == COUNTED else bool(carry[0])


def _reverse_loop(tape: Tape, row: Row, operands: Sequence[Any]) -> tuple[Any, ...]:
    loop = read_reverse_loop(tape, row)
    residuals, rest = operands[0], list(operands[1:])
    groups = []
    for names in (loop.xs, loop.captured, loop.ct_carry, loop.ct_ys, loop.sums):
        groups.append(rest[: len(names)])
        rest = rest[len(names) :]
    xs, captured, ct_carry, ct_ys, sums = groups
    n, m = len(ct_carry), len(sums)
    types = loop.reverse.output_types[n + m :]
    # Steps that a guarded loop did not run contribute nothing.
    ct_xs = [[np.zeros(t.shape, t.numpy)] * loop.length for t in types]
    for i in reversed(range(len(residuals))):
        x, ct_y = [x[i] for x in xs], [ct[i] for ct in ct_ys]
        out = evaluate(loop.reverse, i, *residuals[i], *x, *captured, *ct_carry, *ct_y, *sums)
        ct_carry, sums = out[:n], out[n : n + m]
        for ct, new in zip(ct_xs, out[n + m :], strict=True):
            ct[i] = new
    return (*ct_carry, *sums, *(_stack(ct, t) for ct, t in zip(ct_xs, types, strict=True)))


def _stack(steps: list[Any], type: Type) -> np.ndarray:
    """The values of all steps in one array, also of no steps at all."""
    return np.stack(steps) if steps else np.zeros((0, *type.shape), type.numpy)


def _cond(tape: Tape, row: Row, operands: Sequence[Any]) -> tuple[Any, ...]:
    chosen = tape.bodies[row.attrs[0 if operands[0] else 1]]
    return tuple(evaluate(chosen, *operands[1:]))


CONTROL.update(
    {Op.LOOP: _loop, Op.TAPED_LOOP: _loop, Op.REVERSE_LOOP: _reverse_loop, Op.COND: _cond}
)
