"""The loop driver: a gradient's tape, its schedules and the engine's program, brought together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from ckad.checkpoint.budget import Budget, path_of
from ckad.checkpoint.plan import Plan
from ckad.checkpoint.schedules import SCHEDULES
from ckad.engines.actions import ACTION_BYTES, Feed, Slots
from ckad.engines.engine import Loaded
from ckad.engines.measure import TapedLoop, taped_loops
from ckad.engines.stops import Stops
from ckad.engines.work import beside, compile_seconds, nanoseconds, step_nanoseconds
from ckad.errors import BudgetError, EngineError, ScheduleError
from ckad.loops.advice import largest, warn_if_dear
from ckad.loops.arenas import Schedules
from ckad.loops.asked import Choice
from ckad.loops.between.courses import Courses, Disk
from ckad.loops.between.timed import can_be_timed, timed
from ckad.loops.choose import Chooser, Measure
from ckad.loops.compiled import Compiled, Run
from ckad.loops.costs import Costs, Prediction
from ckad.loops.disk import on_disk, seconds_on_disk
from ckad.loops.engines import AUTO, ENGINES, chosen, engine_named
from ckad.loops.progress import Shown
from ckad.loops.threads import n_threads
from ckad.loops.watch import Watch
from ckad.memory import format_bytes, free_memory, parse_bytes
from ckad.passes.calls.marks import unmarked
from ckad.tape.tape import Tape
from ckad.trace.memory.known import runs_by

#: Without a budget everything is kept where that fits this part of the free memory.
FREE_PART = 4
#: A program whose compilation takes so many seconds and more is run on the vm first, where what may
#: stop it makes another program of it, and where that takes a small part of the time.
LONG, SMALL_PART = 1.0, 0.2
#: Smaller plans are not held against the free memory again: to ask for it takes a millisecond.
SMALL = 2**26


#: Bytes, text that says how many, or disk as well.
Amount = int | str | Budget | None


@dataclass(frozen=True)
class Options:
    """How a program is to be run; the keyword arguments of the transformations."""

    memory: Amount = None
    schedule: Choice = "auto"
    engine: str = "auto"
    progress: Shown = False
    check_finite: bool = False
    threads: int | None = None
    resume: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        """Refuse what no program could be run with, at the line that asks for it."""
        try:
            if self.memory is not None and not isinstance(self.memory, Budget):
                parse_bytes(self.memory)
            if self.resume is not None:
                path_of(self.resume, "resume")
        except BudgetError as error:
            raise BudgetError.here(str(error)) from None
        if self.engine not in (AUTO, *ENGINES):
            known = ", ".join(map(repr, (AUTO, *ENGINES)))
            raise EngineError.here(f"engine={self.engine!r} is not known; use one of {known}.")
        threads = self.threads
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise EngineError.here(f"threads={threads!r}; pass how many threads to use, 1 or more.")
        if isinstance(self.schedule, str) and self.schedule not in ("auto", *SCHEDULES):
            names = ", ".join(map(repr, ("auto", *SCHEDULES)))
            raise ScheduleError.here(
                f"schedule={self.schedule!r} is not known; use one of {names}, or a schedule "
                "of ckad.schedules."
            )

    @property
    def asked(self) -> int | str | None:
        """What was asked for of memory."""
        return self.memory.memory if isinstance(self.memory, Budget) else self.memory

    @property
    def disk(self) -> Disk:
        """What may lie on disk, nothing if no disk was given."""
        given = self.memory
        if not isinstance(given, Budget) or given.disk_bytes is None:
            return Disk()
        return Disk(given.disk_bytes, given.directory, given.codec, given.fallback)

    @property
    def resumed_from(self) -> str | None:
        """The directory of runs that can be gone on with."""
        given = self.memory
        if self.resume is None and isinstance(given, Budget) and given.durability == "resume":
            return str(given.directory)
        return None if self.resume is None else os.path.abspath(os.fspath(self.resume))

    @property
    def key(self) -> tuple[object, ...]:
        left = self.resumed_from
        return self._made_of if left is None else (*self._made_of, left)

    @cached_property
    def _made_of(self) -> tuple[object, ...]:
        return self.memory, self.schedule, self.engine, self.check_finite, self.threads


def fits_still(plan: Plan) -> bool:
    """Whether a plan made without a budget keeps to its part of what is free now."""
    return not depends_on_free(plan) or plan.peak_bytes <= free_memory() // FREE_PART


def depends_on_free(plan: Plan) -> bool:
    """Whether it has to be looked up before each run that a plan still fits."""
    return plan.budget is None and bool(plan.loops) and plan.peak_bytes >= SMALL


def compile_tape(tape: Tape, options: Options) -> Compiled:
    """Choose schedules for the taped loops of ``tape`` within the budget and load it.

    Raises BudgetError if the budget is below the minimum, which the message names.
    """
    watch = Watch(tape, partial(_row_by_row, tape, options)) if options.check_finite else None
    return _compile(tape, options, watch=watch)


def _row_by_row(tape: Tape, options: Options, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run ``tape`` on the vm, which stops at the first row that is not finite."""
    options = replace(options, engine="vm")
    load = partial(engine_named("vm").load, tape, True, 1, False)
    try:
        looking = _compile(tape, options, load)
    except BudgetError:  # elements take more bytes in the vm
        looking = _compile(tape, replace(options, memory=None), load)
    return looking(inputs)


def run_to(tape: Tape, stops: Stops, inputs: Sequence[np.ndarray]) -> None:
    """Run ``tape`` on the vm until all that ``stops`` asks for has been seen, or to its end."""
    from ckad.engines.vm.engine import Loaded as Stopping  # an engine is imported when it is used

    _compile(tape, Options(engine="vm"), partial(Stopping, tape, False, stops))(inputs)


def try_out(tape: Tape, options: Options, inputs: Sequence[np.ndarray]) -> None:
    """Let the vm, which compiles nothing, meet what stops ``tape`` before machine code is made of
    it; where that takes long, nothing is found out."""
    seconds = compile_seconds(tape)
    if options.engine != "native" or options.disk.limit or options.resumed_from is not None:
        return
    if seconds < LONG or 1e-9 * nanoseconds(tape, "vm") > SMALL_PART * seconds:
        return
    began = list[float]()  # kernels of the vm that an installation has not compiled are so once

    def tell(steps: int) -> None:
        began.append(time.perf_counter())
        if began[-1] - began[0] > SMALL_PART * seconds:
            raise TimeoutError

    with suppress(BudgetError, ScheduleError, TimeoutError):
        _compile(tape, Options(options.memory, options.schedule, "vm")).run(inputs, tell)


def _constant(tape: Tape, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    return _compile(tape, Options(engine="vm"))(inputs)


runs_by(_constant)


def run_once(tape: Tape, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run ``tape`` on the engine that is predicted to be done with it first."""
    saved = 1e-9 * (nanoseconds(tape, "vm") - nanoseconds(tape, "native"))
    name = "native" if saved > compile_seconds(tape) else "vm"
    return _compile(tape, Options(engine=name, threads=1))(inputs)


def _compile(
    tape: Tape,
    options: Options,
    load: Callable[[], Loaded] | None = None,
    watch: Watch | None = None,
) -> Compiled:
    """``load`` makes the program, if that is to be done in another way than the engine does it."""
    tape = unmarked(tape)
    name = chosen(tape, options.engine)
    engine = engine_named(name)
    loops = taped_loops(tape, engine.record_bytes)
    # what is free takes a millisecond to find out, and limits nothing but what loops keep
    budget = _budget(options) if loops or options.memory is not None else 0
    if load is None:
        chooser = _chooser(tape, loops, options, name, lambda *_: 0, budget)
        likely = not loops or chooser.is_likely_to_keep_all()
        loaded = engine.load(tape, False, n_threads(options.threads), likely)
    else:
        loaded = load()

    # Without a disk neither pace nor costs decide anything: schedules are then chosen once.
    weighs = options.disk.limit or options.resumed_from is not None
    last: dict[tuple[object, ...], tuple[Chooser, Schedules]] = {}

    def planned(assumed: Mapping[int, int], pace: float, costs: Costs) -> Run:
        loops = taped_loops(tape, engine.record_bytes, assumed)
        # a program that runs longer than was assumed is planned later, with what is free then
        room = _budget(options) if assumed else budget
        n_outer = len(_outermost(loops))
        lengths = {name: x.n_steps for name, x in loops.items() if x.is_open}
        about = options.disk, options.resumed_from, n_outer, lengths, pace, costs
        courses = Courses(tape, name, *about)
        key = room, *sorted(assumed.items())
        found = last.get(key) or _choice(loaded, loops, options, room, courses)
        last.clear()
        if not weighs:
            last[key] = found
        return _planned(loaded, loops, options, room, courses, found)

    def measured(run: Run, inputs: Sequence[np.ndarray]) -> Costs:
        loops = taped_loops(tape, engine.record_bytes)
        return timed(loaded, loops, run.feeds, run.slots, beside(tape, name), inputs)

    return Compiled(tape, loaded, planned, measured if can_be_timed(tape) else None, watch)


def _budget(options: Options) -> int:
    return free_memory() // FREE_PART if options.asked is None else parse_bytes(options.asked)


def _chooser(
    tape: Tape,
    loops: dict[int, TapedLoop],
    options: Options,
    engine: str,
    measure: Measure,
    budget: int,
) -> Chooser:
    step_ns = step_nanoseconds(tape, engine)
    resumes = options.resumed_from is not None
    # a run is gone on with from where no residuals are kept, and with these there always are some
    hidden = frozenset[int]() if resumes else beside(tape, engine)
    asked = options.schedule, measure, options.asked, step_ns, resumes, hidden
    return Chooser(loops, budget, *asked, engine_named(engine).overlaps, partial(largest, tape))


def _choice(
    loaded: Loaded,
    loops: dict[int, TapedLoop],
    options: Options,
    budget: int,
    courses: Courses,
) -> tuple[Chooser, Schedules]:
    """Schedules for ``loops`` within the budget, and who chose them."""

    def measure(schedules: Schedules, most_rows: int) -> int:
        return _arranged(loaded, loops, schedules, most_rows, courses)[0]

    chooser = _chooser(courses.tape, loops, options, courses.engine, measure, budget)
    return chooser, chooser.schedules() if loops else {}


def _arranged(
    loaded: Loaded,
    loops: dict[int, TapedLoop],
    schedules: Schedules,
    most_rows: int,
    courses: Courses,
) -> tuple[int, dict[int, Slots], dict[int, Feed]]:
    """The bytes of a run, the slots and the actions of its loops."""
    feeds = _feeds(loops, schedules, most_rows, courses)
    slots = courses.slots(loops, schedules)
    between = _between(loops, schedules, courses)
    return run_bytes(courses.tape, loaded, slots, feeds) + between, slots, feeds


def _planned(
    loaded: Loaded,
    loops: dict[int, TapedLoop],
    options: Options,
    budget: int,
    courses: Courses,
    chosen: tuple[Chooser, Schedules],
) -> Run:
    chooser, schedules = chosen
    # a run that goes on needs the schedule that it was begun with: none that a measurement decides
    weighs = options.disk.limit and courses.resume is None
    choice = on_disk(chooser, schedules, courses) if weighs else None
    schedules = choice.schedules if choice else schedules
    peak, slots, feeds = _arranged(loaded, loops, schedules, chooser.most_rows, courses)
    if options.asked is not None and peak > budget:
        raise BudgetError(
            f"memory={options.asked!r} is {budget:,} bytes; the program needs {peak:,} bytes "
            f"({format_bytes(peak)}). {largest(courses.tape, peak)}"
            f"Raise memory= to at least {peak:,}."
        )
    warn_if_dear(chooser, schedules)
    known = None if options.asked is None else budget
    found = choice.described if choice else None
    lengths = {name: x.n_steps for name, x in loops.items() if x.is_open}
    sizes = chooser.most_rows, peak
    has_disk = any(x.n_disk_slots for x in schedules.values())
    with_disk: Callable[[], float | None] | None = None
    if found is not None:
        with_disk = partial(float, found.seconds)
    elif has_disk:
        with_disk = partial(seconds_on_disk, chooser, schedules, courses)
    about = courses.costs, courses.pace, *sizes, with_disk
    prediction = Prediction(chooser.outer, schedules, *about)
    seconds = prediction.seconds({})
    plan = Plan(peak, known, courses.engine, chooser.plans(schedules), found, seconds)
    total = sum(schedules[x.name].forward_steps + x.n_steps for x in loops.values() if x.depth == 1)
    looks = courses.on_disk, lambda: courses.rounding, prediction.seconds
    waits = has_disk or courses.resume is not None
    return Run(plan, feeds, slots, total, lengths, *looks, waits)


def run_bytes(tape: Tape, loaded: Loaded, slots: dict[int, Slots], feeds: dict[int, Feed]) -> int:
    """Everything that a run allocates: tape, code, values, action tables, results."""
    results = sum(type.nbytes for type in tape.output_types)
    tables = sum(feed.n_rows for feed in feeds.values()) * ACTION_BYTES
    return tape.nbytes + loaded.run_bytes(slots) + tables + results


def _feeds(
    loops: dict[int, TapedLoop], schedules: Schedules, most_rows: int, courses: Courses
) -> dict[int, Feed]:
    numbers = {name: k for k, name in enumerate(_outermost(loops))}
    return {
        name: courses.feed(loop, schedules[name], most_rows, numbers.get(name, -1))
        for name, loop in loops.items()
    }


def _outermost(loops: dict[int, TapedLoop]) -> list[int]:
    return [x.name for x in loops.values() if x.depth == 1]


def _between(loops: dict[int, TapedLoop], schedules: Schedules, courses: Courses) -> int:
    return sum(courses.nbytes(loop, schedules[name]) for name, loop in loops.items())
