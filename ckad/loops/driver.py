"""The loop driver: a gradient's tape, its schedules and the engine's program, brought together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ckad.checkpoint.plan import Plan
from ckad.checkpoint.schedules.schedule import Action, Actions, Schedule
from ckad.engines.vm.assemble import assemble
from ckad.engines.vm.machine import ACTION_BYTES, CHUNK, Feed, execute
from ckad.engines.vm.measure import TapedLoop, taped_loops
from ckad.engines.vm.program import Program
from ckad.errors import BudgetError, CkadError
from ckad.loops.choose import Choice, Chooser, Schedules, slots_of
from ckad.memory import format_bytes, free_memory, parse_bytes
from ckad.tape.tape import Tape

#: Without a budget everything is kept where that fits this part of the free memory.
FREE_PART = 4
ENGINES = ("auto", "vm")


@dataclass(frozen=True)
class Options:
    """How a program is to be run; the keyword arguments of the transformations."""

    memory: int | str | None = None
    schedule: Choice = "auto"
    engine: str = "auto"
    progress: bool = False
    check_finite: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        return self.memory, self.schedule, self.engine, self.check_finite


@dataclass(frozen=True, eq=False)
class Compiled:
    """A tape ready to run under its plan."""

    program: Program
    plan: Plan
    feeds: dict[int, Feed]
    total_steps: int  # of the outermost loops, both sweeps

    def __call__(
        self, inputs: Sequence[np.ndarray], on_progress: Callable[[int], None] | None = None
    ) -> list[np.ndarray]:
        return execute(self.program, inputs, self.feeds, on_progress)


def compile_tape(tape: Tape, options: Options) -> Compiled:
    """Choose schedules for the taped loops of ``tape`` within the budget and assemble it.

    Raises BudgetError if the budget is below the minimum, which the message names.
    """
    if options.engine not in ENGINES:
        known = ", ".join(map(repr, ENGINES))
        raise CkadError(f"engine={options.engine!r} is not known; use one of {known}.")
    loops = taped_loops(tape)

    def program_for(schedules: Schedules) -> Program:
        return assemble(tape, slots_of(schedules), options.check_finite)

    def measure(schedules: Schedules) -> int:
        return run_bytes(tape, program_for(schedules), _feeds(loops, schedules))

    budget = free_memory() // FREE_PART if options.memory is None else parse_bytes(options.memory)
    chooser = Chooser(loops, budget, options.schedule, measure, options.memory)
    schedules = chooser.schedules() if loops else {}
    program, feeds = program_for(schedules), _feeds(loops, schedules)
    peak = run_bytes(tape, program, feeds)
    if options.memory is not None and peak > budget:
        raise BudgetError(
            f"memory={options.memory!r} is {budget:,} bytes; the program needs {peak:,} bytes "
            f"({format_bytes(peak)}). Raise memory= to at least {peak:,}."
        )
    plan = Plan(peak, None if options.memory is None else budget, "vm", chooser.plans(schedules))
    total = sum(schedules[x.name].forward_steps + x.n_steps for x in loops.values() if x.depth == 1)
    return Compiled(program, plan, feeds, total)


def run_bytes(tape: Tape, program: Program, feeds: dict[int, Feed]) -> int:
    """Everything that a run allocates: tape, code, cells, action tables, results."""
    results = sum(place.type.nbytes for place in program.outputs)
    tables = sum(feed.n_rows for feed in feeds.values()) * ACTION_BYTES
    return tape.nbytes + program.nbytes + tables + results


def _feeds(loops: dict[int, TapedLoop], schedules: Schedules) -> dict[int, Feed]:
    return {
        name: _streamed(schedules[name]) if loop.depth == 1 else _whole(schedules[name])
        for name, loop in loops.items()
    }


def _streamed(schedule: Schedule) -> Feed:
    """The rows in pieces: a loop that runs once needs no more than one piece at a time."""

    def pieces() -> Iterator[np.ndarray]:
        return (_rows(chunk) for chunk in schedule.chunks(CHUNK))

    return Feed(pieces, CHUNK, 0)


def _whole(schedule: Schedule) -> Feed:
    """All rows, for a loop that runs again and again."""
    actions = schedule.actions
    forward = (actions.kind == Action.ADVANCE) | (actions.kind == Action.TAPE)
    last = np.flatnonzero(forward & (actions.stop == schedule.n_steps))
    reverse = int(last[0]) + 1 if len(last) else 0
    rows = _rows(actions)
    return Feed(lambda: iter([rows]), len(rows), reverse)


def _rows(actions: Actions) -> np.ndarray:
    return np.stack([column.astype(np.int64) for column in actions], axis=1)
