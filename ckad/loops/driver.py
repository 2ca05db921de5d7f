"""The loop driver: a gradient's tape, its schedules and the engine's program, brought together."""

from __future__ import annotations

from dataclasses import dataclass

from ckad.checkpoint.plan import Plan
from ckad.checkpoint.schedules import SCHEDULES
from ckad.engines.actions import ACTION_BYTES, Feed, Slots
from ckad.engines.engine import Loaded
from ckad.engines.measure import TapedLoop, taped_loops
from ckad.engines.work import step_nanoseconds
from ckad.errors import BudgetError, EngineError, ScheduleError
from ckad.loops.choose import Choice, Chooser, Schedules, slots_of
from ckad.loops.compiled import Compiled
from ckad.loops.engines import AUTO, ENGINES, chosen, engine_named
from ckad.loops.tables import streamed, whole
from ckad.loops.threads import n_threads
from ckad.memory import format_bytes, free_memory, parse_bytes
from ckad.tape.tape import Tape
from ckad.trace.where import at_place

#: Without a budget everything is kept where that fits this part of the free memory.
FREE_PART = 4
#: Smaller plans are not held against the free memory again: to ask for it takes a millisecond.
SMALL = 2**26


@dataclass(frozen=True)
class Options:
    """How a program is to be run; the keyword arguments of the transformations."""

    memory: int | str | None = None
    schedule: Choice = "auto"
    engine: str = "auto"
    progress: bool = False
    check_finite: bool = False
    threads: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no program could be run with, at the line that asks for it."""
        try:
            if self.memory is not None:
                parse_bytes(self.memory)
        except BudgetError as error:
            raise BudgetError(at_place(str(error))) from None
        if self.engine not in (AUTO, *ENGINES):
            known = ", ".join(map(repr, (AUTO, *ENGINES)))
            raise EngineError(at_place(f"engine={self.engine!r} is not known; use one of {known}."))
        if self.engine == "native" and self.check_finite:
            raise EngineError(
                at_place(
                    "check_finite=True is the vm's: it looks at every row, which machine code does "
                    'not have. Leave engine="native" out, or check_finite.'
                )
            )
        threads = self.threads
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise EngineError(
                at_place(f"threads={threads!r}; pass how many threads to use, 1 or more.")
            )
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
        return self.memory, self.schedule, self.engine, self.check_finite, self.threads


def fits_still(plan: Plan) -> bool:
    """Whether a plan made without a budget keeps to its part of what is free now."""
    if plan.budget is not None or not plan.loops or plan.peak_bytes < SMALL:
        return True
    return plan.peak_bytes <= free_memory() // FREE_PART


def compile_tape(tape: Tape, options: Options) -> Compiled:
    """Choose schedules for the taped loops of ``tape`` within the budget and load it.

    Raises BudgetError if the budget is below the minimum, which the message names.
    """
    name = chosen(tape, options.engine, options.check_finite)
    engine = engine_named(name)
    loaded = engine.load(tape, options.check_finite, n_threads(options.threads))
    loops = taped_loops(tape, engine.record_bytes)

    def measure(schedules: Schedules, most_rows: int) -> int:
        feeds = _feeds(loops, schedules, most_rows)
        return run_bytes(tape, loaded, slots_of(schedules), feeds)

    budget = free_memory() // FREE_PART if options.memory is None else parse_bytes(options.memory)
    step_ns = step_nanoseconds(tape, name)
    chooser = Chooser(loops, budget, options.schedule, measure, options.memory, step_ns)
    schedules = chooser.schedules() if loops else {}
    slots, feeds = slots_of(schedules), _feeds(loops, schedules, chooser.most_rows)
    peak = run_bytes(tape, loaded, slots, feeds)
    if options.memory is not None and peak > budget:
        raise BudgetError(
            f"memory={options.memory!r} is {budget:,} bytes; the program needs {peak:,} bytes "
            f"({format_bytes(peak)}). Raise memory= to at least {peak:,}."
        )
    plan = Plan(peak, None if options.memory is None else budget, name, chooser.plans(schedules))
    total = sum(schedules[x.name].forward_steps + x.n_steps for x in loops.values() if x.depth == 1)
    return Compiled(tape, loaded, plan, feeds, slots, total)


def run_bytes(tape: Tape, loaded: Loaded, slots: dict[int, Slots], feeds: dict[int, Feed]) -> int:
    """Everything that a run allocates: tape, code, values, action tables, results."""
    results = sum(type.nbytes for type in tape.output_types)
    tables = sum(feed.n_rows for feed in feeds.values()) * ACTION_BYTES
    return tape.nbytes + loaded.run_bytes(slots) + tables + results


def _feeds(loops: dict[int, TapedLoop], schedules: Schedules, most_rows: int) -> dict[int, Feed]:
    return {
        name: streamed(schedules[name], most_rows) if loop.depth == 1 else whole(schedules[name])
        for name, loop in loops.items()
    }
