"""Drawing in the order of the program: what decides it is computed step by step from constants."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ckad.errors import UnrecordableError
from ckad.place import at_place
from ckad.tape.control import COUNTED, WHILE
from ckad.tape.ops import Op
from ckad.tape.row import Row
from ckad.tape.tape import Tape
from ckad.trace.memory.context import Trace
from ckad.trace.memory.known import computed
from ckad.trace.source.draws.events import (
    Draw,
    DrawnNumbers,
    Event,
    Loop,
    Sides,
    StepNumber,
    Stepped,
    first_draw,
    generators_of,
)
from ckad.trace.source.draws.generators import Generator, restoring
from ckad.trace.source.names.frame import undone_on_failure
from ckad.trace.values.tracer import concrete


class NotConstant(Exception):
    """A number depends on an argument of the transformed function."""


class _More(Exception):
    """Another input of a body has to be followed from its first step on."""


class Replay:
    """The draws of one outermost loop."""

    def __init__(self) -> None:
        self.numbers: dict[Trace, dict[int, Any]] = {}  # rows of bodies in the present step
        self.followed: dict[Trace, set[int]] = {}  # inputs of bodies that decide what is drawn
        self.loops: dict[Trace, Stepped] = {}
        self.captured: dict[Trace, dict[int, int]] = {}  # rows of a body -> those around
        self.counts: dict[Hashable, int] = {}  # steps of loops
        self.restore: dict[int, Any] = {}  # by generators
        self.path: list[int] = []
        self.stacks: dict[int, DrawnNumbers] = {}  # what was drawn for, by identity

    def run(self, event: Event) -> None:
        """Make all draws; the generators are then as the program leaves them."""
        while True:
            try:
                return self._event(event)
            except _More:
                self.undo()
            except BaseException:
                self.undo()
                raise

    def undo(self) -> None:
        """Put the generators back."""
        for put_back in self.restore.values():
            put_back()
        self.numbers.clear()
        self.counts.clear()
        self.path.clear()
        for stack in self.stacks.values():
            stack.entries.clear()

    def _enter(self, trace: Trace, numbers: dict[int, Any]) -> None:
        """Begin a step of a body: nothing is known yet but ``numbers``."""
        for inner in [x for x in self.numbers if x.is_inside(trace)]:
            del self.numbers[inner]
        self.numbers[trace] = numbers

    # --- events ---------------------------------------------------------------------------------

    def _event(self, event: Event) -> None:
        if isinstance(event, Draw):
            self._draw(event)
        elif isinstance(event, Loop):
            self._loop(event)
        else:
            self._sides(event)

    def _draw(self, draw: Draw) -> None:
        self._keep(draw.generator)
        try:
            args = [self._argument(x) for x in draw.args]
            options = {name: self._argument(x) for name, x in draw.options.items()}
        except NotConstant:
            raise UndecidedDraw([draw]) from None
        drawn = getattr(draw.generator, draw.name)(*args, **options)
        if draw.stack is not None and draw.row is not None:
            self.stacks[id(draw.stack)] = draw.stack
            numbers = draw.stack.checked(concrete(np.asarray(drawn)), draw.place)
            draw.stack.entries.append((tuple(self.path), numbers))
            self.numbers.setdefault(draw.row.trace, {})[draw.row.row] = numbers

    def _argument(self, x: Any) -> Any:
        return self.number(x.trace, x.row).item() if isinstance(x, StepNumber) else x

    def _keep(self, generator: Generator) -> None:
        if id(generator) not in self.restore:
            self.restore[id(generator)] = put_back = restoring(generator)
            undone_on_failure(id(generator), put_back)

    def _loop(self, loop: Loop) -> None:
        body, k = loop.body, 0
        self.loops[body.trace] = body
        handed: dict[int, Any] = {}
        while True:
            self._enter(body.trace, {**handed, body.number: np.int64(k)})
            if not self._goes_on(loop, k):
                break
            self.path.append(k)
            for event in loop.events:
                self._event(event)
            self.path.pop()
            handed = self._handed(body, k)
            k += 1
        self.counts[loop.place] = max(self.counts.get(loop.place, 1), k)
        del self.numbers[body.trace]

    def _goes_on(self, loop: Loop, k: int) -> bool:
        body = loop.body
        if body.guard not in (WHILE, COUNTED):
            return k < body.steps
        try:
            number = self.number(body.trace, body.carried[0][0])
        except NotConstant:
            raise UndecidedDraw([loop]) from None
        return bool(number) if body.guard == WHILE else k < int(number)

    def _handed(self, body: Stepped, k: int) -> dict[int, Any]:
        """What the next step starts from, of what is followed."""
        handed: dict[int, Any] = {}
        followed = self.followed.setdefault(body.trace, set())
        known: set[int] = set()
        while followed - known:  # what is computed may make others followed
            for entered, _, end in body.carried:
                if entered in followed and entered not in known:
                    known.add(entered)
                    handed[entered] = self._known(body.trace, end)
        return handed

    def _sides(self, sides: Sides) -> None:
        try:
            verdict = bool(self.number(*sides.predicate))
        except NotConstant:
            raise UndecidedDraw([sides]) from None
        which = 0 if verdict else 1
        self._enter(sides.traces[which], {})
        for event in sides.events[which]:
            self._event(event)

    # --- numbers --------------------------------------------------------------------------------

    def number(self, trace: Trace, row: int) -> Any:
        """The number of a row in the present step; NotConstant if arguments decide it."""
        numbers = self.numbers.setdefault(trace, {})
        pending = [row]
        while pending:
            k = pending[-1]
            if k not in numbers:
                found = trace.builder.rows[k]
                missing = [x for x in found.operands if x not in numbers]
                if missing and found.op is not Op.RESULT:
                    pending.append(missing[-1])
                    continue
                unknown = found.op is not Op.RESULT and any(
                    numbers[x] is None for x in found.operands
                )
                numbers[k] = None if unknown else self._computed(trace, k)
            if numbers[k] is None:
                raise NotConstant
            pending.pop()
        return numbers[row]

    def _computed(self, trace: Trace, k: int) -> Any:
        row = trace.builder.rows[k]
        if row.op is Op.CONST:
            return trace.builder.constants[row.attrs[0]]
        if row.op is Op.INPUT:
            return self._input(trace, k)
        if row.op is Op.RESULT:
            branch = trace.builder.rows[row.operands[0]]

            def operand(n: int) -> Any:
                return self._known(trace, branch.operands[n])

            return result_of(branch, trace.builder.bodies, row.attrs[0], operand)
        return computed(row, [self.numbers[trace][x] for x in row.operands])

    def _known(self, trace: Trace, row: int) -> Any:
        try:
            return self.number(trace, row)
        except NotConstant:
            return None

    def _input(self, trace: Trace, row: int) -> Any:
        if trace not in self.captured:
            self.captured[trace] = {inner: outer for outer, inner in trace.captured.items()}
        outer = self.captured[trace].get(row)
        if outer is None:
            outer = self._start(trace, row)
        if outer is None or trace.parent is None:
            return None
        return self._known(trace.parent, outer)

    def _start(self, trace: Trace, row: int) -> int | None:
        """The row around a loop that its first step starts from as this input."""
        body = self.loops.get(trace)
        found = [start for entered, start, _ in body.carried if entered == row] if body else []
        if body is None or not found:
            return None
        followed = self.followed.setdefault(trace, set())
        is_first = not self.numbers[trace][body.number]
        if row not in followed:
            followed.add(row)
            if not is_first:
                raise _More
        return found[0] if is_first else None


class UndecidedDraw(UnrecordableError):
    """Whether or what is drawn depends on an argument: what first, and from which generators."""

    def __init__(self, events: Sequence[Event]) -> None:
        super().__init__(
            at_place(
                "whether random numbers are drawn here, or which, depends on a traced value, and "
                "all numbers that are drawn later depend on it. Draw before the condition, at each "
                "step alike (z = rng.normal()), and use what was drawn where the condition holds.",
                first_draw(events).place,
            )
        )
        self.generators = list({id(x): x for x in generators_of(events)}.values())


# --- what the sides of a branch give -------------------------------------------------------------

Numbers = Callable[[int], Any]


def result_of(branch: Row, bodies: Any, which: int, given: Numbers) -> Any:
    """A result of a branch, from the numbers of its operands, which ``given`` tells by position."""
    if branch.op is not Op.COND:
        return None
    verdict = given(0)
    if verdict is None:
        return None
    side: Tape = bodies[branch.attrs[0 if verdict else 1]]
    return _of_tape(side, int(side.outputs[which]), lambda k: given(k + 1), {})


def _of_tape(tape: Tape, k: int, given: Numbers, known: dict[int, Any]) -> Any:
    if k not in known:
        known[k] = _row_of_tape(tape, k, given, known)
    return known[k]


def _row_of_tape(tape: Tape, k: int, given: Numbers, known: dict[int, Any]) -> Any:
    row = tape.rows[k]
    if row.op is Op.CONST:
        return tape.constants[row.attrs[0]]
    if row.op is Op.INPUT:
        return given(row.attrs[0])
    if row.op is Op.RESULT:
        inner = tape.rows[row.operands[0]]

        def operand(n: int) -> Any:
            return _of_tape(tape, inner.operands[n], given, known)

        return result_of(inner, tape.bodies, row.attrs[0], operand)
    values = [_of_tape(tape, x, given, known) for x in row.operands]
    return None if any(x is None for x in values) else computed(row, values)
