"""What a body draws, in its order: single draws, loops, and the sides of branches.

The numbers are not known before it is known what is drawn before them, which is when the outermost
loop has been recorded. Until then a row holds their place.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckad.errors import UnrecordableError
from ckad.place import Source
from ckad.tape.ops import Op
from ckad.tape.types import Type, type_of
from ckad.trace.memory.context import Trace
from ckad.trace.source.draws.generators import Generator


class StepNumber(NamedTuple):
    """A number that is another one at each step: a row of a body."""

    trace: Trace
    row: int


class DrawnNumbers:
    """A constant of a trace: the numbers of all steps, once they are known."""

    def __init__(self, trace: Trace, steps: tuple[int, ...], one: np.ndarray) -> None:
        self.trace, self.n_loops = trace, len(steps)
        self.shape, self.dtype, self.is_known = (*steps, *one.shape), one.dtype, False
        self.entries: list[tuple[tuple[int, ...], np.ndarray]] = []
        b = trace.builder
        # a row of which nothing is known; a constant's numbers would be read while recording
        type = Type(type_of(one).dtype, self.shape)
        self.row = b.append(Op.INPUT, (), (len(b.inputs),), type)
        trace.late.append(self)

    def checked(self, numbers: np.ndarray, place: Source) -> np.ndarray:
        """What one step draws, which is of the kind of what the others do."""
        if numbers.dtype != self.dtype or numbers.shape != self.shape[self.n_loops :]:
            raise UnrecordableError.here(
                "the numbers that are drawn here are of another kind or shape from step to "
                "step of a loop that is recorded once. Draw the largest array, and use a part.",
                place,
            )
        return numbers

    def settle(self) -> None:
        """Become the constant of what was drawn."""
        numbers = np.zeros(self.shape, self.dtype)
        for steps, drawn in self.entries:
            numbers[steps] = drawn
        self._become(numbers)

    def forgo(self) -> None:
        """Be any constant of this kind, if it is not needed: rows that are not run may read it."""
        if not self.is_known:
            self._become(np.zeros(self.shape, self.dtype))

    def _become(self, numbers: np.ndarray) -> None:
        b = self.trace.builder
        numbers.flags.writeable = False
        b.constants.append(numbers)
        attrs = (len(b.constants) - 1,)
        b.rows[self.row] = b.rows[self.row]._replace(
            op=Op.CONST, attrs=attrs, type=type_of(numbers)
        )
        self.trace.bounds.clear()
        self.is_known = True


class Draw(NamedTuple):
    """One call; numbers among its arguments may be another at each step."""

    generator: Generator
    name: str
    args: tuple[Any, ...]
    options: dict[str, Any]
    place: Source
    stack: DrawnNumbers | None = None  # of the numbers; a seed gives none
    row: StepNumber | None = None  # where a step reads them


class Stepped(NamedTuple):
    """The body of a loop, and what its steps hand on."""

    trace: Trace
    number: int  # the row of the step's number
    carried: Sequence[tuple[Any, int, int]]  # row of the input, row of the start around, row of end
    guard: int  # how the loop ends (``tape.control``)
    steps: int  # how many there are, as far as that is known


class Loop(NamedTuple):
    """A loop, and what each of its steps draws."""

    body: Stepped
    place: Hashable
    events: Sequence[Any]


class Sides(NamedTuple):
    """A branch, and what is drawn on its sides."""

    predicate: StepNumber
    traces: Sequence[Trace]
    events: Sequence[Sequence[Any]]


Event = Draw | Loop | Sides


def first_draw(events: Sequence[Event]) -> Draw:
    """The first call among some events."""
    event = events[0]
    if isinstance(event, Draw):
        return event
    if isinstance(event, Loop):
        return first_draw(event.events)
    return first_draw(next(side for side in event.events if side))


def generators_of(events: Sequence[Event]) -> Iterator[Generator]:
    """From which generators some events draw, perhaps more than once."""
    for event in events:
        if isinstance(event, Draw):
            yield event.generator
        elif isinstance(event, Loop):
            yield from generators_of(event.events)
        else:
            for side in event.events:
                yield from generators_of(side)
