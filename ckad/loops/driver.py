"""The loop driver: a gradient's tape, its schedules and the engine's program, brought together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ckad.checkpoint.plan import Plan
from ckad.checkpoint.schedules import SCHEDULES
from ckad.engines.vm.assemble import assemble
from ckad.engines.vm.machine import ACTION_BYTES, Feed, execute
from ckad.engines.vm.measure import TapedLoop, taped_loops
from ckad.engines.vm.program import Program
from ckad.errors import BudgetError, EngineError, ScheduleError
from ckad.loops.choose import Choice, Chooser, Schedules, slots_of
from ckad.loops.tables import streamed, whole
from ckad.memory import format_bytes, free_memory, parse_bytes
from ckad.tape.tape import Tape
from ckad.trace.where import at_place

#: Without a budget everything is kept where that fits this part of the free memory.
FREE_PART = 4
#: Smaller plans are not held against the free memory again: to ask for it takes a millisecond.
SMALL = 2**26
ENGINES = ("auto", "vm")


@dataclass(frozen=True)
class Options:
    """How a program is to be run; the keyword arguments of the transformations."""

    memory: int | str | None = None
    schedule: Choice = "auto"
    engine: str = "auto"
    progress: bool = False
    check_finite: bool = False

    def __post_init__(self) -> None:
        """Refuse what no program could be run with, at the line that asks for it."""
        try:
            if self.memory is not None:
                parse_bytes(self.memory)
        except BudgetError as error:
            raise BudgetError(at_place(str(error))) from None
        if self.engine not in ENGINES:
            known = ", ".join(map(repr, ENGINES))
            raise EngineError(at_place(f"engine={self.engine!r} is not known; use one of {known}."))
        if isinstance(self.schedule, str) and self.schedule not in ("auto", *SCHEDULES):
            names = ", ".join(map(repr, ("auto", *SCHEDULES)))
            raise ScheduleError(
                at_place(
                    f"schedule={self.schedule!r} is not known; use one of {names}, or a schedule "
                    "of ckad.schedules."
                )
            )

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

    @property
    def nbytes(self) -> int:
        """Bytes that the program holds between runs."""
        return self.program.code.nbytes + sum(c.nbytes for _, c in self.program.constants)

    def __call__(
        self, inputs: Sequence[np.ndarray], on_progress: Callable[[int], None] | None = None
    ) -> list[np.ndarray]:
        return execute(self.program, inputs, self.feeds, on_progress)


def fits_still(plan: Plan) -> bool:
    """Whether a plan made without a budget keeps to its part of what is free now."""
    if plan.budget is not None or not plan.loops or plan.peak_bytes < SMALL:
        return True
    return plan.peak_bytes <= free_memory() // FREE_PART


def compile_tape(tape: Tape, options: Options) -> Compiled:
    """Choose schedules for the taped loops of ``tape`` within the budget and assemble it.

    Raises BudgetError if the budget is below the minimum, which the message names.
    """
    loops = taped_loops(tape)

    def program_for(schedules: Schedules) -> Program:
        return assemble(tape, slots_of(schedules), options.check_finite)

    def measure(schedules: Schedules, most_rows: int) -> int:
        return run_bytes(tape, program_for(schedules), _feeds(loops, schedules, most_rows))

    budget = free_memory() // FREE_PART if options.memory is None else parse_bytes(options.memory)
    chooser = Chooser(loops, budget, options.schedule, measure, options.memory)
    schedules = chooser.schedules() if loops else {}
    program, feeds = program_for(schedules), _feeds(loops, schedules, chooser.most_rows)
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


def _feeds(loops: dict[int, TapedLoop], schedules: Schedules, most_rows: int) -> dict[int, Feed]:
    return {
        name: streamed(schedules[name], most_rows) if loop.depth == 1 else whole(schedules[name])
        for name, loop in loops.items()
    }
