"""What was found in a program: its loops, what they carry, how they are reversed."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from ckad.checkpoint.plan import LoopPlan, Plan
from ckad.loops.asked import Choice
from ckad.loops.driver import Amount, Options
from ckad.memory import format_bytes
from ckad.passes import pipeline
from ckad.passes.pipeline import Stages
from ckad.tape.control import LOOPS
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of
from ckad.tape.tape import Source, Tape
from ckad.trace.source.control.notes import LoopNote, noting
from ckad.tracebacks import trimmed
from ckad.transforms.call import compiled
from ckad.transforms.gradients import Gradient
from ckad.transforms.returns import returning


@dataclass(frozen=True)
class LoopFound:
    """One loop of a program.

    ``way`` says how it was recorded, ``steps`` how many there are, ``state`` which names go from
    step to step (``u[...]``: an array that is written in place), ``reverse`` how it is reversed,
    ``nbytes`` what that keeps in memory while the loop runs once.
    """

    place: Source
    way: str
    steps: str
    state: tuple[str, ...]
    reverse: str
    nbytes: int

    def __str__(self) -> str:
        text = linecache.getline(*self.place).strip()
        state = ", ".join(self.state) or "nothing"
        kept = f", {format_bytes(self.nbytes)}" if self.nbytes else ""
        return (
            f"{self.place}: {text}\n    {self.way}; steps: {self.steps}; carries {state}\n"
            f"    reverse: {self.reverse}{kept}"
        )


@dataclass(frozen=True)
class Explanation:
    """The loops of a program in source order, and the plan of its gradient; made by `explain`.

    ``anew`` says why each call records the program anew; it is empty where one recording serves all
    calls, as long as what it reads from outside is as it was.
    ``print(explanation.passes)`` shows how the gradient's tape was made: the rows and loops of the
    program before and after every pass. ``explanation.passes.tapes`` are the tapes.
    """

    loops: tuple[LoopFound, ...]
    plan: Plan
    anew: str
    _watch: Callable[[], Stages] = field(repr=False, compare=False)

    @cached_property
    def passes(self) -> Stages:
        """What every pass made of the program, from its recording to its gradient."""
        return self._watch()

    def __str__(self) -> str:
        found = [str(loop) for loop in self.loops] or ["no loop"]
        anew = [f"Each call records it anew: {self.anew}."] if self.anew else []
        return "\n".join([*found, str(self.plan), *anew])


@trimmed
def explain(
    fun: Callable[..., Any],
    *args: Any,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    memory: Amount = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    threads: int | None = None,
    returns: int | Sequence[int] | None = None,
) -> Explanation:
    """Say what ckad makes of each loop of ``fun(*args)`` and of its gradient; nothing is run.

    ``print`` lists the loops in source order: how each was recorded, the number of its steps, the
    names that go from step to step, how it is reversed and what that keeps in memory. Arguments and
    errors are those of `value_and_grad`.

    >>> import numpy as np, ckad
    >>> def decay(x):
    ...     for i in range(1000):
    ...         x = x - 0.001 * x**2
    ...     return np.sum(x)
    >>> print(ckad.explain(decay, np.ones(3)))  # doctest: +ELLIPSIS
    <doctest ...>:2: for i in range(1000):
        recorded once; steps: 1,000; carries x
        reverse: ...
    Plan: ...
    """
    options = Options(memory, schedule, engine, threads=threads)
    with noting() as notes:
        gradient = Gradient(returning(fun, returns), argnums, has_aux, options)
        call, tape, layout = gradient.prepare(args, {})
    plan = compiled(tape, call.options).plan
    reversed_loops: dict[str, list[LoopPlan]] = {}
    for loop in plan.loops:
        reversed_loops.setdefault(loop.place, []).append(loop)
    plain = {str(source) for source in _loops(tape)}
    whole = _ELIMINATED if _eliminates(tape) else _INDEPENDENT
    found = [
        _found(note, reversed_loops.get(str(place)), plain, whole) for place, note in notes.items()
    ]
    watch = partial(call.watched, pipeline.gradient, layout.wrt)
    return Explanation(tuple(sorted(found, key=lambda x: x.place)), plan, call.anew, watch)


_INDEPENDENT = "its steps are independent: computed as whole arrays, nothing is kept"
_ELIMINATED = "its steps are independent, or eliminate: computed as whole arrays or by a routine"
_OF_LOOPS = {"eliminated", "rooted", "substituted", "solved_by"}


def _loops(tape: Tape) -> Iterator[Source]:
    """The lines of the loops that are left."""
    for row in tape.rows:
        if row.op in LOOPS:
            yield tape.sources[row.source]
    for body in tape.bodies:
        yield from _loops(body)


def _eliminates(tape: Tape) -> bool:
    """Whether loops have become calls of routines."""
    calls = (routine_of(row).name for row in tape.rows if row.op is Op.CALL)
    return not _OF_LOOPS.isdisjoint(calls) or any(map(_eliminates, tape.bodies))


def _found(note: LoopNote, plans: list[LoopPlan] | None, plain: set[str], whole: str) -> LoopFound:
    if not note.way.startswith("recorded"):
        reverse, size = "step by step, as part of what is around it", 0
    elif plans:
        reverse, size = "; ".join(map(str, plans)), max(p.nbytes for p in plans)
    elif str(note.place) in plain:
        reverse, size = "the gradient does not depend on it, or runs it again", 0
    else:
        reverse, size = whole, 0
    return LoopFound(note.place, note.way, note.steps, note.state, reverse, size)
