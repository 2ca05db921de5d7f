"""A few steps of each outermost loop, timed: a run of the program that leaves most steps out.

Both sweeps do what they do in a whole run, on the same arrays and in the same memory. Every step
that is run finds the state that it has in a whole run: the forward sweep begins at the first step
and ends where enough is known; the reverse one begins anew from the first state, or reverses what
was taped last. So indices that were proven to be in range are, and loops within a step end. What
follows a loop gets numbers of a step on the way, and what it gives is of no use: programs are run
so in which that can do no harm.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from math import inf
from time import thread_time
from typing import NamedTuple

import numpy as np

from ckad.checkpoint.schedules.schedule import Action
from ckad.engines.actions import Feed, Rows, Slots, Window
from ckad.engines.engine import Loaded
from ckad.engines.measure import TapedLoop, step_bytes
from ckad.loops.costs import Cost, Costs
from ckad.tape.control import UNGUARDED, has_open_loop, is_open, read_loop
from ckad.tape.ops import OPS, Group, Op
from ckad.tape.routines import routine_of
from ckad.tape.row import Row as TapeRow
from ckad.tape.tape import Tape

#: Seconds of steps that are enough to tell what one takes.
ENOUGH = 2e-3
#: Seconds of a piece that is not timed again, and of a run: what else the machine does is little of
#: them, and nobody waits for a plan.
LONG, LONGEST = 2e-2, 1e-1
#: Actions that are timed together, at the most, and runs.
MOST_ROWS, MOST_RUNS = 512, 5
#: Bytes of residuals that do not fit into caches.
FAR = 2**25
#: Loops of fewer steps are over before they are timed.
FEWEST = 2
#: What is done with numbers that are no indices.
NUMBERS = (Group.ELEMENTWISE, Group.SHAPE, Group.REDUCE)

Row = tuple[int, int, int, int]
Timing = Generator[list[Row], float, None]


def can_be_timed(tape: Tape) -> bool:
    """Whether steps can be left out of a run: nothing behind a loop is in range, or ends, for what
    the loop gives; and no function of the user's is called."""
    loops = [k for k, row in enumerate(tape.rows) if row.op is Op.TAPED_LOOP]
    if not loops or _calls_python(tape):
        return False
    behind = tape.rows[loops[0] + 1 :]
    return not any(map(partial(_may_go_on, tape), behind)) and _only_computes(tape)


def _may_go_on(tape: Tape, row: TapeRow) -> bool:
    """Whether a row may run for ever on other numbers; an outermost loop itself is ended."""
    if row.op is Op.LOOP:
        loop = read_loop(tape, row)
        return is_open(loop.length, loop.guard) or has_open_loop(loop.body)
    if row.op is Op.TAPED_LOOP:
        return has_open_loop(read_loop(tape, row).body)
    return row.op is Op.COND and any(has_open_loop(tape.bodies[k]) for k in row.attrs[:2])


def _only_computes(tape: Tape) -> bool:
    """Whether integers and flags that loops give are numbers to compute with behind them, not
    indices, lengths or conditions."""
    given: set[int] = set()
    for k, row in enumerate(tape.rows):
        is_given = any(x in given for x in row.operands)
        if row.op is Op.RESULT:
            is_given = tape.rows[row.operands[0]].op is Op.TAPED_LOOP
        elif is_given and OPS[row.op].group not in NUMBERS:
            return False
        if is_given and row.op is not Op.WRAP and row.type.is_array and not row.type.is_float:
            given.add(k)
    return True


def _calls_python(tape: Tape) -> bool:
    called = [routine_of(row) for row in tape.rows if row.op is Op.CALL]
    return any(x.compiled is None for x in called) or any(map(_calls_python, tape.bodies))


def timed(
    loaded: Loaded,
    loops: Mapping[int, TapedLoop],
    feeds: Mapping[int, Feed],
    slots: Mapping[int, Slots],
    beside: frozenset[int],
    inputs: Sequence[np.ndarray],
) -> Costs:
    """Run a few steps of each outermost loop under the slots of its plan, some times: what else the
    machine does only adds to a time. Seconds are of this thread on a processor, which others hardly
    move: as long as a run goes on, it computes, or looks whether its helpers have."""
    (found, spent), k = _once(loaded, loops, feeds, slots, beside, inputs), 1
    # a first run may compile kernels, which is no reason not to run again
    while k < MOST_RUNS and spent * (k + 1) / k < LONGEST:
        (again, more), k = _once(loaded, loops, feeds, slots, beside, inputs), k + 1
        least = {name: found.loops[name].least(cost) for name, cost in again.loops.items()}
        found, spent = Costs(least, min(found.outside, again.outside)), spent + more
    return found


def _once(
    loaded: Loaded,
    loops: Mapping[int, TapedLoop],
    feeds: Mapping[int, Feed],
    slots: Mapping[int, Slots],
    beside: frozenset[int],
    inputs: Sequence[np.ndarray],
) -> tuple[Costs, float]:
    """What was found, and the seconds of the steps."""
    trials: dict[int, Trial] = {}
    feeds = dict(feeds)
    for name, loop in loops.items():
        if loop.depth == 1 and loop.n_steps >= FEWEST:
            size = step_bytes(dict(loops), dict(slots), name)
            trials[name] = Trial(loop, size, slots[name], name in beside)
            feeds[name] = Feed(lambda: iter(()), MOST_ROWS, 0, None, trials[name].begun)
    loaded.run(inputs, feeds, slots, None)
    # what it takes to prepare a run of other actions is no part of one
    whole = thread_time() - min((x.began for x in trials.values()), default=thread_time())
    within = sum(x.within for x in trials.values())
    found = {name: x.cost for name, x in trials.items() if x.cost}
    return Costs(found, max(0.0, whole - within)), within


class Forward(NamedTuple):
    """What a forward sweep has shown: seconds of a step, and which steps were run last."""

    seconds: float
    start: int
    stop: int


class Trial:
    """The course of a loop in such a run: the same actions again and again, until their time is
    known."""

    window: Window

    def __init__(self, loop: TapedLoop, step_bytes: int, slots: Slots, beside: bool) -> None:
        self.step_bytes, self.beside = step_bytes, beside
        self.n, self.is_guarded = loop.n_steps, loop.guard != UNGUARDED
        self.n_slots, self.n_tape_slots = slots.n_slots, slots.n_tape_slots
        self.first = 0  # of the residual slots
        if slots.arena:  # those beside one state are the last ones
            self.n_tape_slots = slots.arena[min(1, slots.n_slots)]
            self.first = slots.n_tape_slots - self.n_tape_slots
        self.hook = self.within = 0.0  # seconds: between two pieces, and of all of them
        self.cost: Cost | None = None
        self.steps = self._timing()
        self.began = self.since = 0.0

    def begun(self, window: Window, inputs: Sequence[np.ndarray]) -> Trial:
        self.window, self.began = window, thread_time()
        return self

    def following(self, n_steps: int | None) -> Rows:
        now = thread_time()
        rows = self.steps.send(now - self.since) if self.since else next(self.steps)
        piece = np.array(rows, np.int64)
        self.since = thread_time()
        self.within += self.since - now
        return piece

    def close(self, keep: bool) -> None:
        self.steps.close()
        del self.window  # it holds the memory of the run, and engines keep what they ran last

    def _timing(self) -> Timing:
        self.hook = yield from self._each([(int(Action.DROP), 0, 0, 0)])
        cost = Cost(0.0, 0.0, 0.0, 0.0, piece=self.hook)
        timing = self._from_states if self.n_slots else self._from_residuals
        self.cost = yield from timing(cost)
        yield [(int(Action.END), 0, 0, -1)]

    def _from_states(self, cost: Cost) -> Generator[list[Row], float, Cost]:
        """Of a schedule that restores states: later sweeps begin at the first one."""
        store, restore = ((int(kind), 0, 0, 0) for kind in (Action.STORE, Action.RESTORE))
        cost = cost._replace(store=(yield from self._each([store])))
        forward = yield from self._forward(Action.ADVANCE)
        k = max(1, min(self._wanted(forward.seconds), self.n_tape_slots, self._n_steps))
        first = self.first
        again, back = (int(Action.TAPE), 0, k, first), (int(Action.REVERSE), 0, k, first)
        yield from self._piece([restore, again])  # on pages that are new
        both = yield from self._each([restore, again])
        kept = yield from self._each([restore])
        tape, reverse = max(0.0, both - kept) / k, (yield from self._each([back])) / k
        cost = cost._replace(advance=forward.seconds, tape=tape, reverse=reverse, restore=kept)
        cost = cost._replace(both=tape + reverse, held=float(k * self.step_bytes))
        k = min(k, self.n_tape_slots // 2, self._n_steps // 2)
        if self.beside and k:
            again = int(Action.TAPE), 0, k, first
            back = int(Action.REVERSE), k, 2 * k, first + k
            yield from self._piece([restore, (int(Action.TAPE), 0, 2 * k, first)])
            both = yield from self._each([restore, again, back])
            cost = cost._replace(both=max(0.0, both - kept) / k)
        return cost

    def _from_residuals(self, cost: Cost) -> Generator[list[Row], float, Cost]:
        """Of a schedule that keeps the residuals of all steps."""
        tape, start, stop = yield from self._forward(Action.TAPE)
        each = yield from self._each([(int(Action.REVERSE), start, stop, 0)])
        k = max(1, stop - start)
        held = float(k * self.step_bytes)
        cost = cost._replace(advance=tape, tape=tape, reverse=each / k, held=held)
        return cost._replace(both=tape + each / k)

    # --- the forward sweep ----------------------------------------------------------------------

    @property
    def _n_steps(self) -> int:
        """How many steps the loop runs, as far as that is known."""
        return min(self.n, self.window.n_steps)

    def _forward(self, action: Action) -> Generator[list[Row], float, Forward]:
        """Run steps from the first one on, more and more at a time, and end the sweep. Residuals go
        to the first slots."""
        tapes, most = action is Action.TAPE, max(1, (self.n - 1) // 3)
        most = min(most, self.n_tape_slots) if tapes else most
        wanted = self._wanted(ENOUGH) if tapes else 1
        at = start = touched = times = 0
        k, spent, found = 1, 0.0, inf
        while times < 3 and (stop := at + k) < self.n:
            seconds = yield [(int(action), at, stop, 0 if tapes else -1)]
            start, at = at, min(stop, self._n_steps)
            if at < stop or self._n_steps == stop:  # what follows the loop is in this time
                return Forward(self._shown(found, spent or seconds, at), start, at)
            seconds = max(0.0, seconds - self.hook)
            self.within, spent = self.within + seconds + self.hook, spent + seconds
            is_enough = 2 * k > most or (seconds >= ENOUGH and k >= wanted)
            if is_enough and (k <= touched or not tapes):
                found, times = min(found, seconds / k), times + 1
                if seconds > LONG:
                    break
            touched, k = max(k, touched), k if is_enough else 2 * k
        yield from self._ended(action, at, at - start)
        return Forward(self._shown(found, spent, at), start, at)

    def _shown(self, found: float, spent: float, n: int) -> float:
        """Seconds of a step."""
        return found if found < inf else spent / max(1, n)

    def _ended(self, action: Action, at: int, slot: int) -> Generator[list[Row], float, None]:
        """End the sweep: a guarded loop has one more step, in others the last ones are left out."""
        if self.is_guarded:
            self.window.end_at(at + 1)
        rows = (at, at + 1) if self.is_guarded else (self.n, self.n)
        self.within += self.hook
        yield [(int(action), *rows, slot if action is Action.TAPE else -1)]

    def _wanted(self, seconds: float) -> int:
        """How many steps are taped one after the other, if each takes so many seconds: more than
        fit into caches, where not all do."""
        is_far = self.n_tape_slots * self.step_bytes > FAR
        far = FAR // max(1, self.step_bytes) if is_far else 0
        return max(1, far, int(ENOUGH / max(seconds, 1e-9)))

    # --- pieces ---------------------------------------------------------------------------------

    def _piece(self, rows: list[Row]) -> Generator[list[Row], float, float]:
        """Seconds of some actions."""
        seconds = yield rows
        self.within += seconds
        return max(0.0, seconds - self.hook)

    def _each(self, rows: list[Row]) -> Generator[list[Row], float, float]:
        """Seconds of actions, that are done again until that is enough, at the least."""
        most = MOST_ROWS // len(rows) if self.hook else 1
        n = 1
        while (seconds := (yield from self._piece(rows * n))) < ENOUGH and n < most:
            n = min(most, 4 * n)
        found = seconds
        for _ in range(0 if seconds > LONG else 2):
            found = min(found, (yield from self._piece(rows * n)))
        return found / n
