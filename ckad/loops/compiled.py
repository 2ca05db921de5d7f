"""A compiled program under its plan, and a look inside: text, machine code, what a step costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from time import perf_counter, thread_time
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.linalg import LinAlgError

from ckad.checkpoint.plan import OnDisk, Plan
from ckad.checkpoint.schedules.schedule import MAX_STEPS
from ckad.engines import arena
from ckad.engines.actions import Bare, BegunWith, Feed, Slots, TooManySteps
from ckad.engines.counts import Body, flops, main_loop
from ckad.engines.engine import Direct, Loaded
from ckad.errors import BudgetError, CkadError, EngineError, ScheduleError
from ckad.loops.costs import NOT_TIMED, Costs
from ckad.loops.engines import engine_named
from ckad.loops.watch import Watch
from ckad.place import at_place
from ckad.tape.tape import Tape

T = TypeVar("T")


class PerStep(NamedTuple):
    """A count for one step of a loop, and for its reverse; 0 for a loop that is not reversed."""

    primal: int
    reverse: int


class Run(NamedTuple):
    """How a program is run: the plan, and what the engine is given for its taped loops."""

    plan: Plan
    feeds: dict[int, Feed]
    slots: dict[int, Slots]
    total_steps: int  # of the outermost loops, both sweeps
    lengths: dict[int, int]  # how long the open loops are thought to run
    on_disk: Callable[[], int]  # bytes of states at the moment
    rounding: Callable[[], float | None]  # by how much states were changed
    seconds: Callable[[Mapping[int, int]], float | None]  # predicted, if loops run so many steps
    waits: bool  # for a disk, so that the seconds of a run are those of the wall


#: From how long open loops are thought to run, by name, how many times as long as predicted steps
#: take, and what was timed, to a run.
Planner = Callable[[Mapping[int, int], float, Costs], Run]
#: What a few steps take on inputs, in the memory of a run.
Timer = Callable[[Run, Sequence[np.ndarray]], Costs]
#: An open loop that ran longer than was thought is thought to run so many times as long.
GROWTH = 4
#: Where so many times less is enough, and a run takes at least so many bytes, less is thought next
#: time: twice what was needed.
SLACK, WORTH = 4, 2**20
#: Steps that take so many times as long as predicted, or as little, are planned for again.
OFF = 1.2
#: Runs of less than so many seconds are timed so many times under a plan: to ask for the time of a
#: thread is a call of the system, and takes a part of what a small run takes.
SHORT, LOOKS = 1e-3, 16
#: Of budgets from here on, what it takes to plan is a small part.
ROOM = 2**26


class Compiled:
    """A tape ready to run under its plan, to look inside.

    `value_and_grad(fun).compiled(*args)` and `jit(fun).compiled(*args)` return it.

    >>> import numpy as np, ckad
    >>> def decay(x):
    ...     return ckad.fori_loop(0, 1000, lambda i, x: x - 0.1 * x**2, x)
    >>> compiled = ckad.value_and_grad(decay, engine="native").compiled(1.0)
    >>> print(compiled)  # doctest: +ELLIPSIS
    engine native, ...
    one of 1,000 steps: 3 flops, 0 bytes moved; its reverse: 4 flops, 8 bytes moved
    Plan: ...
    """

    def __init__(
        self,
        tape: Tape,
        loaded: Loaded,
        planned: Planner,
        timer: Timer | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.tape, self.loaded, self._planned, self._watch = tape, loaded, planned, watch
        self._timer, self._costs = timer, NOT_TIMED
        self._timed: set[int] | None = None  # the loops that restored states when steps were timed
        self._assumed: dict[int, int] = {}
        self._ran: dict[int, int] = {}  # steps of the open loops in the last run
        self._made: Mapping[int, int] = {}  # those of all guarded ones
        self._shown: Plan | None = None
        self._least: float | None = None  # seconds of the fastest run under this plan
        self._looks = 0  # how many runs have been timed for that
        self._pace = 1.0
        self._planning = 0.0  # seconds that a plan took which a run's time has changed
        self._run = planned({}, self._pace, self._costs)
        # how runs go once nothing is found out from one of them
        self._direct: Direct | None = None

    @property
    def plan(self) -> Plan:
        """What a run costs; that of the last run, where loops run as long as they have to."""
        if self._shown is None:
            plan, seconds = self._run.plan, self._run.seconds(self._made)
            seconds = self._least if seconds is None else seconds
            plan = plan.after(self._ran) if self._ran else plan
            found = replace(plan, seconds=seconds, rounding=self._run.rounding())
            self._shown = plan if found == plan else found
        return self._shown

    @property
    def planned(self) -> Plan:
        """The plan that the next run begins with."""
        return self._run.plan

    def timed_on(self, inputs: Sequence[np.ndarray]) -> Plan:
        """The plan from what a few steps take on ``inputs``: they are run, once for a program, and
        once more where states are restored from then on."""
        restores = {name for name, slots in self._run.slots.items() if slots.n_slots}
        if self._timer is not None and self._timed != restores:
            self._timed = restores
            # an error is for the run itself to raise, if it meets it: here steps were left out
            try:
                with suppress(ArithmeticError, CkadError, LinAlgError, MemoryError, ValueError):
                    self._costs = self._timer(self._run, inputs)
            except TooManySteps:  # how many an inner loop makes is known after a run
                self._timed = None
            self._plan_again()
        return self.plan

    @property
    def costs(self) -> Costs:
        """What steps take, as far as `timed_on` has found out."""
        return self._costs

    @property
    def total_steps(self) -> int:
        """Steps of the outermost loops, both sweeps."""
        return self._run.total_steps

    @property
    def on_disk(self) -> int:
        """Bytes of states that lie on disk at the moment."""
        return self._run.on_disk()

    @property
    def nbytes(self) -> int:
        """Bytes that the program holds between runs."""
        return self.loaded.kept_bytes()

    @property
    def engine(self) -> str:
        """The name of the engine that runs it."""
        return self.plan.engine

    @property
    def text(self) -> str:
        """The program as one can read it.

        The native engine shows each function that it compiled: a row per line for what is computed
        in registers, and for each *nest*, one pass over arrays, what it computes at a place of
        their interior. Names are those of ``llvm`` and ``asm``, numbers with ``%`` those of the
        rows of its tape. The vm shows the tape.

        >>> import numpy as np, ckad
        >>> print(ckad.jit(lambda u: u + 0.5 * np.roll(u, 1), engine="native")
        ...     .compiled(np.ones(100)).text)
        body: the program
            given %0 f64[100]
            nest_1: for i in [0, 100)  # borders [[0, 1, 100]]
                t0 = 0.5 * %0[i - 1] + %0[i]
                %4[i] = t0
            gives %4 f64[100]
        """
        return self.loaded.text

    @property
    def llvm(self) -> str:
        """The optimised LLVM IR. EngineError if the vm runs the program."""
        return _placed(lambda: self.loaded.llvm)

    @property
    def asm(self) -> str:
        """The assembly of the CPU at hand. EngineError if the vm runs the program.

        >>> import numpy as np, ckad
        >>> "nest_1" in ckad.jit(np.sin, engine="native").compiled(np.ones(100)).asm
        True
        """
        return _placed(lambda: self.loaded.asm)

    @property
    def compile_seconds(self) -> float:
        """What it took to make the program from its tape; 0 if it was found on disk."""
        return self.loaded.compile_seconds

    @property
    def from_cache(self) -> bool:
        """Whether the machine code was found on disk."""
        return self.loaded.from_cache

    def bare(self) -> Bare:
        """What a function in C needs to run it; EngineError where it cannot do without Python."""
        return _placed(lambda: self.loaded.bare(self._run.feeds, self._run.slots))

    @property
    def flops_per_step(self) -> PerStep:
        """Floating-point operations of one step of the main loop, and of its reverse.

        The main loop is the outermost one with the most work; a program without loops counts as
        one step. Counted once per element: additions, multiplications, divisions, roots, other
        functions such as exp, minima and maxima; FMA counts twice, a sum of n numbers n - 1, a
        product of matrices 2 m k n. Changes of sign or type, selections, comparisons and integers
        count nothing. Each op of the tape counts once, also where a nest computes it again; inner
        loops count all their steps. The reverse is that of a step whose residuals are kept; how
        many steps run again to keep them, the plan says.

        >>> import numpy as np, ckad
        >>> step = lambda i, u: u * np.exp(-u)
        >>> decay = lambda u: np.sum(ckad.fori_loop(0, 50, step, u))
        >>> ckad.value_and_grad(decay, engine="native").compiled(np.ones(1000)).flops_per_step
        PerStep(primal=2000, reverse=4000)
        """
        return self._per_step(lambda body: flops(body.tape))

    @property
    def bytes_per_step(self) -> PerStep:
        """Bytes that one step of the main loop moves, and those that its reverse moves.

        The native engine counts every array that a nest or a kernel on whole arrays reads or
        writes, whole and once, however often it looks at an element, and whether it comes from a
        cache or not; parts that are changed in place count alone. Arrays of up to 64 elements are
        in registers and count only as residuals, elements of xs and results of steps, which lie in
        memory. The vm counts the cells of 8 bytes that each row reads and writes. What a step that
        keeps its residuals writes in addition, is ``plan.loops[0].residual_bytes``.

        >>> import numpy as np, ckad
        >>> step = lambda i, u: u + 0.1 * np.roll(u, 1)
        >>> mixing = lambda u: np.sum(ckad.fori_loop(0, 50, step, u))
        >>> ckad.value_and_grad(mixing, engine="native").compiled(np.ones(1000)).bytes_per_step
        PerStep(primal=16000, reverse=16000)
        """
        return self._per_step(engine_named(self.engine).moved_bytes)

    def _per_step(self, count: Callable[[Body], int]) -> PerStep:
        loop = main_loop(self.tape)
        return PerStep(count(loop.primal), count(loop.reverse) if loop.reverse else 0)

    def __repr__(self) -> str:
        ins, outs = (
            ", ".join(map(str, ts)) for ts in (self.tape.input_types, self.tape.output_types)
        )
        return f"<Compiled for engine {self.engine}: ({ins}) -> ({outs})>"

    def __str__(self) -> str:
        """Engine, time of compilation, what a step costs, the plan."""
        n, flops, moved = main_loop(self.tape).length, self.flops_per_step, self.bytes_per_step
        what = f"one of {n:,} steps" if n > 1 else "one run"
        step = f"{what}: {flops.primal:,} flops, {moved.primal:,} bytes moved"
        if flops.reverse or moved.reverse:
            step += f"; its reverse: {flops.reverse:,} flops, {moved.reverse:,} bytes moved"
        origin = f"compiled in {self.compile_seconds:.3f} s"
        if self.from_cache:
            origin = "machine code found on disk"
        return f"engine {self.engine}, {origin}\n{step}\n{self.plan}"

    def __call__(
        self, inputs: Sequence[np.ndarray], on_progress: Callable[[int], None] | None = None
    ) -> list[np.ndarray]:
        return self.run(self.tape.fitted(inputs), on_progress)

    def run(
        self, inputs: Sequence[np.ndarray], on_progress: Callable[[int], None] | None = None
    ) -> list[np.ndarray]:
        """Outputs of arrays that are of the inputs' types."""
        direct = self._direct  # another thread may plan again
        if direct is not None and on_progress is None:
            return direct(inputs)
        if self._watch is None:
            return self._execute(inputs, on_progress)
        return self._watch(lambda: self._execute(inputs, on_progress), inputs)

    def _execute(
        self, inputs: Sequence[np.ndarray], on_progress: Callable[[int], None] | None
    ) -> list[np.ndarray]:
        if self._run.plan.disk is not None:  # what is on it depends on what steps take
            self.timed_on(inputs)
        run = self._run
        while True:
            timed = self._looks < LOOKS or (self._least or 0.0) > SHORT
            began, busy = perf_counter(), thread_time() if timed else 0.0
            try:
                results = self.loaded.run(inputs, run.feeds, run.slots, on_progress)
            except BegunWith as begun:
                run = self._as_begun(begun)
            except TooManySteps as longer:
                run = self._longer(run, longer)
            else:
                seconds = perf_counter() - began
                if timed:
                    busy = seconds if run.waits else thread_time() - busy
                    self._least, self._looks = min(busy, self._least or busy), self._looks + 1
                self._shown = None
                longest = self.loaded.longest
                self._made = dict(longest) if longest else longest
                if run.lengths:
                    self._note(run)
                elif not (timed or longest or self._watch or run.plan.disk):
                    self._direct = self.loaded.direct(run.feeds, run.slots)
                if run.plan.disk is not None:
                    self._keep_pace(run, run.plan.disk, seconds)
                return results

    def _plan_again(self) -> None:
        arena.clear()  # a budget holds for a call, and to plan takes memory too
        self._run = self._planned(self._assumed, self._pace, self._costs)
        self._direct = None
        self._shown = self._least = None
        self._looks = 0

    def _note(self, run: Run) -> None:
        """Let the next run expect what this one has needed, if it was much less, or more."""
        longest = self.loaded.longest
        self._ran, self._shown = {name: longest.get(name, 0) for name in run.lengths}, None
        if run.plan.peak_bytes < WORTH:
            return
        new = {
            name: max(1, 2 * longest[name])
            for name, n in run.lengths.items()
            if name in longest and not n // SLACK <= 2 * longest[name] <= 2 * n
        }
        if new:
            self._assumed = {**self._assumed, **new}
            with suppress(BudgetError, ScheduleError):
                self._plan_again()

    def _keep_pace(self, run: Run, said: OnDisk, seconds: float) -> None:
        """Where the disk is weighed against steps that could not be timed, let the next run know
        what they have taken, if a plan takes no longer than a run, and little of its memory."""
        plan = run.plan
        if not said.computing or plan.seconds is not None:
            return
        if plan.budget is not None and plan.budget < ROOM:
            return
        steps = max(seconds - (said.seconds - said.computing), 0.1 * seconds)
        if 1 / OFF <= steps / said.computing <= OFF or seconds < self._planning:
            return
        self._pace *= steps / said.computing
        began = perf_counter()
        with suppress(BudgetError, ScheduleError):
            self._plan_again()
        self._planning = perf_counter() - began

    def _as_begun(self, begun: BegunWith) -> Run:
        """The plan that a run was begun with, which is gone on with; the refusal if that is not to
        be had."""
        self._assumed = {**self._assumed, **begun.lengths}
        self._plan_again()
        if self._run.lengths != begun.lengths and begun.__cause__ is not None:
            raise begun.__cause__
        return self._run

    def _longer(self, run: Run, longer: TooManySteps) -> Run:
        """The run with more steps for one loop; later runs begin with it.

        Nothing is compiled again: how many steps there are is no part of the code.
        """
        n = max(longer.wanted, GROWTH * run.slots[longer.loop].n_steps)
        self._assumed = {**self._assumed, longer.loop: min(n, MAX_STEPS)}
        try:
            self._plan_again()
        except (BudgetError, ScheduleError) as error:
            done = run.slots[longer.loop].n_steps
            why = f"{error} A loop of a length not known before has run {done:,} steps and goes on."
            raise type(error)(at_place(why)) from None
        if self._run.slots[longer.loop].n_steps <= run.slots[longer.loop].n_steps:
            raise ScheduleError.here(
                f"the schedule is made for {run.slots[longer.loop].n_steps:,} steps, and the "
                'loop runs on. Pass schedule="online", which needs no number of steps, or a '
                "function from a number of steps to a schedule."
            )
        return self._run


def _placed(look: Callable[[], T]) -> T:
    """What a look gives, its errors with the user's place."""
    try:
        return look()
    except EngineError as error:
        raise EngineError.here(str(error)) from None
