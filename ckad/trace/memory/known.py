"""Numbers that are known while the program is recorded: what depends on constants alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ckad.passes.dce import apart, needed_alone
from ckad.rules.evaluate import evaluate
from ckad.rules.registry import RULES
from ckad.tape.builder import BODY_COUNT, Builder
from ckad.tape.ops import Op
from ckad.tape.row import Row
from ckad.tape.tape import Tape
from ckad.tape.types import TUPLE
from ckad.trace.memory.context import Given, Trace
from ckad.trace.memory.known_in_part import picked

#: Larger arrays are not computed while recording.
MOST_ELEMENTS = 1 << 20
#: How often what picks elements asks for what was picked before.
DEEPEST = 8

#: per trace: row -> its number, or None where it depends on an input
_Answers = dict[int, "np.ndarray | None"]
_NOTHING: Mapping[int, np.ndarray] = {}

#: The kinds of answers that a trace keeps: of constants, where loops and branches are run as well,
#: and where the numbers of inputs are given.
_PLAIN, _RUN, _GIVEN = range(3)

Runner = Callable[[Tape, Sequence[np.ndarray]], list[np.ndarray]]
_runners: list[Runner] = [lambda tape, inputs: evaluate(tape, *inputs)]


def runs_by(runner: Runner) -> None:
    """How loops and branches are run, in place of NumPy row by row."""
    _runners.append(runner)


def numbers_of(trace: Trace, row: int, *, running: bool = False) -> np.ndarray | None:
    """The numbers of a row if they depend on constants alone; None if they do not.

    With ``running``, what loops and branches give is known too, and arrays of any size are.
    """
    answers = trace.answers[_RUN if running else _PLAIN]
    return _number(trace, row, _Numbers(answers, running, partial(numbers_of, running=running)))


def number_of_call(trace: Trace, row: int) -> np.ndarray | None:
    """An integer that depends on what the call gives, for which the program is then recorded; with
    decisions that are the call's, truth values and arrays of both, too."""
    of = trace.builder.rows[row].type
    decides = trace.decides >= Given.DECISIONS
    if not of.is_array or (of.shape and not decides):
        return None
    if of.numpy.kind not in ("iub" if decides else "i"):
        return None
    found = trace.asked.get(row)
    if found is None:
        found = _of_call(trace, row)
        if found is not None:
            _ask(trace, row, found)
    return found


def numbers_of_call(trace: Trace, row: int) -> np.ndarray | None:
    """The same of any array, as the recording is for this call."""
    found = _of_call(trace, row)
    if found is not None:
        _ask(trace, row, found)
    return found


def tried_by_call(trace: Trace, row: int) -> None:
    """Raise what the call's numbers raise. The recording depends on them only where a handler may
    meet that: others would stop its run otherwise, as they stop the program."""
    if trace.handlers:
        numbers_of_call(trace, row)
    else:
        _of_call(trace, row)


def _of_call(trace: Trace, row: int) -> np.ndarray | None:
    """What a row holds in the call; None where steps of a loop decide it."""
    given = trace.given if trace.parent is None else _NOTHING
    return _number(trace, row, _Numbers(trace.answers[_GIVEN], True, _of_call, given))


def _ask(trace: Trace, row: int, found: np.ndarray) -> None:
    """Note that the recording depends on a row, or in a body on the rows that it shows."""
    trace.asked[row] = found
    if trace.parent is None:
        return
    outer = _rows_around(trace)
    for k in _behind(trace, {row}):
        if k in outer and (of_outer := _of_call(trace.parent, outer[k])) is not None:
            _ask(trace.parent, outer[k], of_outer)


def _rows_around(trace: Trace) -> dict[int, int]:
    """Inputs that show rows of the trace around, and these."""
    return trace.shown | {inner: k for k, inner in trace.captured.items()}


def depends_on_arguments(trace: Trace) -> bool:
    """Whether a recording holds only for arguments as a recording around it has made them."""
    return not _behind(trace, trace.asked.keys()).isdisjoint(trace.shown)


def _behind(trace: Trace, start: Set[int]) -> set[int]:
    """Some rows, and those that they are computed from."""
    seen, pending = {*start}, [*start]
    while pending:
        new = set(trace.builder.rows[pending.pop()].operands) - seen
        seen |= new
        pending += new
    return seen


def held_against(trace: Trace) -> dict[int, np.ndarray]:
    """The rows, and their numbers, for which a program was recorded: the inputs that integers
    depend on, and those integers that loops and branches give, which may round otherwise; or that
    depend on arguments which a recording around this one makes."""
    rows, seen = trace.builder.rows, _behind(trace, trace.asked.keys())
    of_results: set[int] = set()
    for k in sorted(seen):  # operands come first
        is_made = rows[k].op is Op.RESULT or k in trace.shown
        if is_made or not of_results.isdisjoint(rows[k].operands):
            of_results.add(k)
    own = trace.given if trace.parent is None else _NOTHING
    given = {k: x for k, x in own.items() if k in seen}
    whole = (k for k in trace.asked if k in of_results and rows[k].type.numpy.kind in "iub")
    return given | {k: trace.asked[k] for k in whole}


class _Numbers(NamedTuple):
    """How the numbers of a trace's rows are found, and those found so far."""

    answers: _Answers
    running: bool  # loops and branches, too
    outside: Callable[[Trace, int], np.ndarray | None]  # those of the trace around
    given: Mapping[int, np.ndarray] = _NOTHING  # those of inputs
    depth: int = 0


def _number(trace: Trace, row: int, numbers: _Numbers) -> np.ndarray | None:
    answers, running, given = numbers.answers, numbers.running, numbers.given
    pending, controls = [row], dict[int, _Control]()
    while pending:
        k = pending[-1]
        operands: Sequence[int] = trace.builder.rows[k].operands
        if running and trace.builder.rows[k].op is Op.RESULT:
            if k not in controls and (test := _test_of(trace, k)) is not None:
                if test not in answers:
                    pending.append(test)
                    continue
                if (
                    answers[test] is None
                ):  # which side is taken is not known, before it is looked at
                    answers[k] = None
                    pending.pop()
                    continue
            if k not in controls:
                b = trace.builder
                operands = trace.reads.behind(b.rows, b.bodies, k)
                if all(answers.get(x) is not None for x in operands):
                    controls[k] = _alone(trace, k)
            if k in controls:
                operands = controls[k].operands
        missing = [x for x in operands if x not in answers]
        if any(answers.get(x, ()) is None for x in operands):
            answers[k] = picked(trace, k, partial(_operand, trace, numbers))
        elif missing:
            pending.append(missing[-1])
            continue
        elif k in controls:
            answers[k] = _run(controls[k], answers)
        elif k not in answers:
            answers[k] = given[k] if k in given else _computed(trace, k, numbers)
        pending.pop()
    return answers[row]


def _operand(trace: Trace, numbers: _Numbers, k: int) -> np.ndarray | None:
    """The numbers of a row that another one picks from, unless that takes many of them."""
    if k in numbers.answers:
        return numbers.answers[k]
    if numbers.depth > DEEPEST:
        return None
    return _number(trace, k, numbers._replace(depth=numbers.depth + 1))


class _Control(NamedTuple):
    """A loop or branch cut down to one result, and the rows that are its inputs."""

    tape: Tape
    operands: tuple[int, ...]


def _test_of(trace: Trace, k: int) -> int | None:
    """The condition of the branch whose result a row is; None of a loop's."""
    rows = trace.builder.rows
    control = rows[rows[k].operands[0]]
    return control.operands[0] if control.op is Op.COND else None


def _alone(trace: Trace, k: int) -> _Control:
    rows, b = trace.builder.rows, Builder()
    control = rows[rows[k].operands[0]]
    inputs = [b.input(rows[x].type) for x in control.operands]
    n = BODY_COUNT[control.op]
    trace.spent.rows += sum(_size(trace.builder.bodies[at]) for at in control.attrs[:n])
    bodies = (b.body(_apart(trace, at)) for at in control.attrs[:n])
    made = b.emit(control.op, inputs, (*bodies, *control.attrs[n:]), TUPLE)
    found = b.emit(Op.RESULT, (made,), rows[k].attrs, rows[k].type)
    tape, unread = needed_alone(b.tape([found]))
    kept = (x for at, x in enumerate(control.operands) if at not in unread)
    return _Control(tape, tuple(kept))


def _size(tape: Tape) -> int:
    """Rows, which are gone through to cut a body down: that takes as long as to record some."""
    return len(tape.rows) + sum(map(_size, tape.bodies))


def _apart(trace: Trace, at: int) -> Tape:
    """A body with its branches apart, once for all the results that are asked for."""
    body = trace.builder.bodies[at]
    before, found = trace.apart.get(at, (None, body))
    if before is not body:
        found = apart(body)
        trace.apart[at] = body, found
    return found


def _run(control: _Control, answers: _Answers) -> np.ndarray:
    inputs = [x for k in control.operands if (x := answers[k]) is not None]
    return _runners[-1](control.tape, inputs)[0]


def _computed(trace: Trace, k: int, numbers: _Numbers) -> np.ndarray | None:
    op, operands, attrs, type, _ = trace.builder.rows[k]
    if op is Op.CONST:
        return trace.builder.constants[attrs[0]]
    if op is Op.INPUT:
        return _captured(trace, k, numbers)
    values = [numbers.answers[x] for x in operands]
    if type.is_array and type.size > MOST_ELEMENTS and not numbers.running:
        return None
    return computed(trace.builder.rows[k], values)


def computed(row: Row, values: Sequence[Any]) -> np.ndarray | None:
    """What a row gives for the numbers of its operands; None if that cannot be told."""
    evaluator = RULES[row.op].evaluate if row.op in RULES and row.type.is_array else None
    if evaluator is None:
        return None
    try:
        with np.errstate(all="ignore"):
            return np.asarray(evaluator(row.type, row.attrs, *values), row.type.numpy)
    except IndexError:
        return None  # the program itself will say so, if it gets there


def _captured(trace: Trace, row: int, numbers: _Numbers) -> np.ndarray | None:
    """What an input of a body is, if it shows a value of the trace around it."""
    outer = _rows_around(trace).get(row)
    return None if outer is None or trace.parent is None else numbers.outside(trace.parent, outer)
