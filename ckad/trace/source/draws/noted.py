"""Draws noted while a body is recorded, and made when the outermost loop has been."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from ckad.errors import UnrecordableError
from ckad.place import user_place
from ckad.trace.memory.context import Trace, current
from ckad.trace.memory.storage import Storage
from ckad.trace.source.draws.events import Draw, DrawnNumbers, Loop, Sides, StepNumber
from ckad.trace.source.draws.generators import Generator, restoring
from ckad.trace.source.draws.replay import Replay, UndecidedDraw
from ckad.trace.source.draws.streams import Stream, begin, stream_of, streamed
from ckad.trace.source.names.frame import Region, depth_of, enclosing, region, undone_on_failure
from ckad.trace.source.values import weakened
from ckad.trace.values.tracer import Tracer, concrete, fresh, value


class Uncounted(Exception):
    """It is known only now how many steps draw, or that it is not: what draws is recorded again."""


def draw(generator: Generator, name: str, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """``generator.name(*args, **options)``: the numbers, or in a body those of the present step."""
    bodies, stream = _bodies(), stream_of(generator)
    _check_solver(generator, bodies)
    if stream is not None:
        return _streamed(stream, Draw(generator, name, tuple(args), options, user_place()))
    if not bodies:
        keep(generator)
        return getattr(generator, name)(*args, **options)
    if any(body.is_trial for body in bodies):
        raise UnrecordableError.here("random numbers are drawn in a step that is tried")
    made_at = depth_of(generator)
    if made_at == bodies[-1].depth:  # each step makes it anew
        return getattr(generator, name)(*args, **options)
    if made_at:
        raise UnrecordableError.here(
            "a loop draws from a generator that a step of the loop around it makes. Make the "
            "generator before both loops."
        )
    return _noted(bodies, Draw(generator, name, tuple(args), options, user_place()))


def _check_solver(generator: Generator, bodies: Sequence[Region]) -> None:
    """A function that a solver calls is recorded for some of the calls, who knows how many."""
    for body in bodies:
        if body.solver and depth_of(generator) < body.depth:
            raise UnrecordableError.here(
                f"random numbers are drawn in a function that {body.solver} calls, and that is "
                "recorded for some of its calls. Draw an array before, and read it there."
            )


def _bodies() -> list[Region]:
    """The bodies that are being recorded, the outermost first; none if steps are only tried."""
    found = [*enclosing()][::-1]
    return [] if all(body.is_trial for body in found) else found


def is_in_body() -> bool:
    """Whether what is drawn now is not known now."""
    return bool(_bodies())


def has_place(generator: Generator) -> bool:
    """The same of what is drawn from a generator."""
    return is_in_body() or stream_of(generator) is not None


def keep(generator: Generator) -> None:
    """Let the generator be put back where what is done now is undone."""
    inner, key = region(), id(generator)
    put_back = restoring(generator)
    if inner is not None:
        inner.undo.setdefault(key, put_back)
    undone_on_failure(key, put_back)


def _noted(bodies: Sequence[Region], draw: Draw) -> Any:
    inner, one = bodies[-1], _sample(draw)
    if one is None:
        inner.draws.append(draw)
        return None
    items = _numbers(one, draw)
    loops = [body for body in bodies if body.index is not None]
    assert bodies[0].trace is not None
    stack = DrawnNumbers(bodies[0].trace.parent, tuple(x.steps for x in loops), concrete(items))
    shown: Any = Tracer(Storage(stack.trace, stack.row))
    if loops:
        shown = shown[tuple(body.index for body in loops)]
    row = value(shown)
    inner.draws.append(draw._replace(stack=stack, row=StepNumber(current(), row)))
    return _as_drawn(row, one)


def _numbers(one: Any, draw: Draw) -> np.ndarray:
    """What a call gives as an array."""
    items = np.asarray(one)
    if items.dtype.kind not in "fiub":
        raise UnrecordableError.here(
            f"a loop or branch draws a {type(one).__name__} by {draw.name}, and is recorded "
            "once for all its steps: what it draws can only be numbers. Draw indices."
        )
    return items


def _streamed(stream: Stream, draw: Draw) -> Any:
    """What a call gives while the program runs."""
    one = _sample(draw)
    if one is not None:
        _numbers(one, draw)
    try:
        found = streamed(stream, draw, one)
    except TypeError:
        raise UndecidedDraw([draw]) from None
    return None if one is None else _as_drawn(value(found), one)


def _as_drawn(row: int, one: Any) -> Any:
    """The array of a row, in the form in which a call gives its numbers."""
    if isinstance(one, (list, tuple)):
        return type(one)(_item(row, k, x) for k, x in enumerate(one))
    found = fresh(row, scalar=not isinstance(one, np.ndarray))
    return found if isinstance(one, (np.ndarray, np.generic)) else weakened(found)


def _item(row: int, k: int, x: Any) -> Any:
    found = fresh(row, scalar=False)[k]
    return found if isinstance(x, np.generic) else weakened(found)


def _sample(draw: Draw) -> Any:
    """What a call may give: its shape and kind are those of each step."""
    put_back = restoring(draw.generator)
    args = _with_bounds(draw.args)
    try:
        return getattr(draw.generator, draw.name)(*args, **draw.options)
    finally:
        put_back()


def _with_bounds(args: Sequence[Any]) -> list[Any]:
    """Arguments with any bounds of integers in place of those that a step computes."""
    low, high, *rest = [*args, None] if len(args) > 1 else [0, *args, None]
    if type(high) is StepNumber:
        high = (0 if type(low) is StepNumber else low) + (1 << 30)
    if type(low) is StepNumber:
        low = high - 1
    return [low, high, *rest[:-1]] if len(args) > 1 else [high] if args else []


def note_sides(predicate: Tracer, sides: Sequence[tuple[Trace, Region]]) -> None:
    """Note what the sides of a branch draw."""
    events = [side.draws for _, side in sides]
    if not any(events):
        return
    outer = region()
    number = StepNumber(current(), value(predicate))
    found = Sides(number, [trace for trace, _ in sides], events)
    if outer is None:
        _let_stream(UndecidedDraw([found]))
    else:
        outer.draws.append(found)


def _let_stream(error: UndecidedDraw) -> NoReturn:
    """Record again, with the states of generators as variables."""
    begin(error.generators, error)
    raise Uncounted from None


@contextmanager
def drawn(loop: Loop | None) -> Iterator[None]:
    """Within, the numbers that a loop reads are drawn, if it stands in no other body."""
    if loop is None:
        yield
        return
    outer = region()
    if outer is not None:
        outer.draws.append(loop)
        yield
        return
    replay = Replay()
    try:
        replay.run(loop)
    except UndecidedDraw as error:
        _let_stream(error)
    try:
        _check_counts(loop, replay)
        for stack in replay.stacks.values():
            stack.settle()
        yield
    except BaseException:
        replay.undo()
        raise


def _check_counts(loop: Loop, replay: Replay) -> None:
    known = current().steps_of_draws
    wrong = [x for x in _loops([loop]) if replay.counts.get(x.place, 1) != x.body.steps]
    for found in wrong:
        known[found.place] = replay.counts.get(found.place, 1)
    if wrong:
        raise Uncounted


def _loops(events: Sequence[Any]) -> Iterator[Loop]:
    for event in events:
        if isinstance(event, Loop):
            yield event
            yield from _loops(event.events)
        elif isinstance(event, Sides):
            for side in event.events:
                yield from _loops(side)
