"""Numbers that are known while the program is recorded: what depends on constants alone."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from ckad.rules.registry import RULES
from ckad.tape.ops import Op
from ckad.trace.memory.context import Trace

#: Larger arrays are not computed while recording.
MOST_ELEMENTS = 1 << 20

#: per trace: row -> its number, or None where it depends on an input
_Answers = dict[int, "np.ndarray | None"]
_answers: WeakKeyDictionary[Trace, _Answers] = WeakKeyDictionary()


def numbers_of(trace: Trace, row: int) -> np.ndarray | None:
    """The numbers of a row if they depend on constants alone; None if they do not."""
    answers = _answers.setdefault(trace, {})
    pending = [row]
    while pending:
        k = pending[-1]
        operands = trace.builder.rows[k].operands
        missing = [x for x in operands if x not in answers]
        if any(answers.get(x, ()) is None for x in operands):
            answers[k] = None
        elif missing:
            pending.append(missing[-1])
            continue
        elif k not in answers:
            answers[k] = _computed(trace, k, answers)
        pending.pop()
    return answers[row]


def _computed(trace: Trace, k: int, answers: _Answers) -> np.ndarray | None:
    op, operands, attrs, type, _ = trace.builder.rows[k]
    if op is Op.CONST:
        return trace.builder.constants[attrs[0]]
    if op is Op.INPUT:
        return _captured(trace, k)
    values = [answers[x] for x in operands]
    if op not in RULES or not type.is_array or type.size > MOST_ELEMENTS:
        return None
    evaluator = RULES[op].evaluate
    if evaluator is None:
        return None
    try:
        with np.errstate(all="ignore"):
            return np.asarray(evaluator(type, attrs, *values), type.numpy)
    except IndexError:
        return None  # the program itself will say so, if it gets there


def _captured(trace: Trace, row: int) -> np.ndarray | None:
    """What an input of a body is, if it shows a value of the trace around it."""
    outer = next((k for k, inner in trace.captured.items() if inner == row), None)
    return None if outer is None or trace.parent is None else numbers_of(trace.parent, outer)
