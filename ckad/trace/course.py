"""Whether other numbers lead along the course for which a program was recorded as it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ckad.passes.dce import dce
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import DType, Type
from ckad.trace.arrays import stopping
from ckad.trace.memory.context import Given, Trace
from ckad.trace.values.apply import astype
from ckad.trace.values.tracer import Tracer, fresh, value


@dataclass(frozen=True)
class Course:
    """The course for which a function is recorded as it runs."""

    answers: Tape  # what was recorded, with the answers as its result
    stopping: Tape  # the same with its own results; it stops where answers differ

    @cached_property
    def test(self) -> Tape:
        """What gives whether the numbers of its inputs lead along the course."""
        return dce(self.answers)


_TRUTH = Type(DType.BOOL, ())


def course_of(trace: Trace, leaves: Sequence[Any]) -> Course | None:
    """The course of a recording with these results; None where it holds for all numbers."""
    alike = _alike(trace)
    if alike is None:
        return None
    differs = np.logical_not(fresh(alike))
    rows = [value(unless(differs, x)) if isinstance(x, Tracer) else value(x) for x in leaves]
    return Course(trace.tape([alike]), trace.tape(rows))


def unless(differs: Any, leaf: Tracer) -> Tracer:
    """A result that stops the program where the numbers are others."""
    if leaf.dtype == np.bool_:
        number: Any = stopping(astype(leaf, np.int64), differs, "GIVEN")
        found: Tracer = np.not_equal(number, 0)
        return found
    kept: Any = stopping(leaf, differs, "GIVEN")
    return Tracer(kept.storage, kept.path, leaf.scalar, leaf.weak, leaf.classes)


def _alike(trace: Trace) -> int | None:
    """A row that is true where everything that was asked while recording has the same answer; None
    where nothing was, or where a recording around this one has the numbers."""
    if not trace.asked or trace.parent is not None or trace.decides < Given.DECISIONS:
        return None
    b = trace.builder
    alike = b.const(np.True_)
    for row, answer in trace.asked.items():
        alike = b.emit(Op.AND, (alike, _same(trace, row, answer)), type=_TRUTH)
    return alike


def _same(trace: Trace, row: int, answer: np.ndarray) -> int:
    b, type = trace.builder, trace.builder.rows[row].type
    if not type.shape and type.dtype is DType.BOOL:
        return row if answer else b.emit(Op.NOT, (row,), type=_TRUTH)
    truth = Type(DType.BOOL, type.shape)
    number = b.const(answer)
    same = b.emit(Op.EQ, (row, number), type=truth)
    if type.is_float:  # zeros of either sign may lead elsewhere
        one = b.const(np.ones(type.shape, type.numpy))
        signs = (b.emit(Op.COPYSIGN, (one, x), type=type) for x in (row, number))
        same = b.emit(Op.AND, (same, b.emit(Op.EQ, signs, type=truth)), type=truth)
    if not type.shape:
        return same
    return b.emit(Op.REDUCE_MIN, (same,), range(len(type.shape)), _TRUTH)
