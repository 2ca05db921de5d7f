"""The meaning of a tape in plain NumPy: the oracle the engines are held against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.rules.registry import RULES
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape

#: control op -> function(tape, row, operand values) -> tuple of results; filled by ``control``.
CONTROL: dict[int, Callable[[Tape, Row, Sequence[Any]], tuple[Any, ...]]] = {}


def evaluate(tape: Tape, *inputs: Any) -> list[np.ndarray]:
    """Run ``tape`` row by row; one array per output."""
    values: list[Any] = []
    for row in tape.rows:
        values.append(_row(tape, row, [values[x] for x in row.operands], inputs))
    return [values[k] for k in tape.outputs.tolist()]


def _row(tape: Tape, row: Row, operands: list[Any], inputs: Sequence[Any]) -> Any:
    if row.op == Op.INPUT:
        value = inputs[row.attrs[0]]
        return np.asarray(value, row.type.numpy) if row.type.is_array else value
    if row.op == Op.CONST:
        return tape.constants[row.attrs[0]]
    if row.op == Op.RESULT:
        return operands[0][row.attrs[0]]
    if row.op in CONTROL:
        return CONTROL[row.op](tape, row, operands)
    evaluator = RULES[row.op].evaluate
    assert evaluator is not None
    with np.errstate(all="ignore"):
        return np.asarray(evaluator(row.type, row.attrs, *operands), row.type.numpy)
