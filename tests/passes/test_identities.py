"""Rows that are one of their operands go; rows that only look like it stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ckad.passes.fold import fold
from ckad.rules.evaluate import evaluate
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.types import DType, Type

T = np.array([True, False])
KINDS = {"b": DType.BOOL, "i": DType.I64, "f": DType.F64}


def constant(b: Builder, number: Any) -> int:
    return b.broadcast_to(b.const(np.asarray(number)), (2,))


CASES = {
    "or False": (T, lambda b, x: b.emit(Op.OR, (constant(b, False), x)), 0),
    "and True": (T, lambda b, x: b.emit(Op.AND, (x, constant(b, True))), 0),
    "or True": (T, lambda b, x: b.emit(Op.OR, (x, constant(b, True))), 1),
    "bits and 1": (np.array([2, 3]), lambda b, x: b.emit(Op.AND, (x, constant(b, 1))), 1),
    "integer + 0": (np.array([2, 3]), lambda b, x: b.add(constant(b, 0), x), 0),
    "-0.0 + 0.0": (np.array([-0.0, 1.0]), lambda b, x: b.add(x, constant(b, 0.0)), 1),
    "row turned": (np.array([[1.0, 2.0]]), lambda b, x: b.transpose(x, attrs=(1, 0)), 1),
    "axes of one swapped": (np.ones((1, 2, 1)), lambda b, x: b.transpose(x, attrs=(2, 1, 0)), 0),
    "one choice": (
        np.array([[5.0]]),
        lambda b, x: b.select(b.const(np.array([[True]])), x, b.const(np.array([[1.0]]))),
        0,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_without_effect_go_and_no_bit_changes(name: str) -> None:
    given, row, left = CASES[name]
    b = Builder()
    x = b.input(Type(KINDS[given.dtype.kind], given.shape))
    tape = b.tape([row(b, x)])
    found = fold(tape)
    assert sum(r.op not in (Op.INPUT, Op.CONST, Op.BROADCAST) for r in found.rows) == left
    assert all(r.op is not Op.TRANSPOSE for r in found.rows)
    (before,), (after,) = (evaluate(each, given) for each in (tape, found))
    assert before.tobytes() == after.tobytes()
    assert before.dtype == after.dtype
    assert before.shape == after.shape
