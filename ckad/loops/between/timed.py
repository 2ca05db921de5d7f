"""A few steps of each outermost loop, timed: a run of the program that leaves most steps out.

Both sweeps do what they do in a whole run, on the same arrays and in the same memory, from the
state that the loop begins with. What they give is of no use. Left out are steps alone, so only
programs are run in which that can do no harm: what a loop carries and collects are floats, so no
index that was proven to be in range can leave it; nothing runs until a condition holds; and no
function of the user's is called.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from math import inf

import numpy as np

from ckad.checkpoint.schedules.schedule import Action
from ckad.engines.actions import Feed, Rows, Slots, Window
from ckad.engines.engine import Loaded
from ckad.engines.measure import TapedLoop, step_bytes
from ckad.loops.costs import Cost, Costs
from ckad.tape.control import has_open_loop, read_loop
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of
from ckad.tape.tape import Tape

#: Seconds of steps that are enough to tell what one takes.
ENOUGH = 2e-3
#: Seconds of a piece that is not timed again, and of a run: what else the machine does is little of
#: them, and nobody waits for a plan.
LONG, LONGEST = 2e-2, 1e-1
#: Actions of one kind that are timed together, at the most.
MOST_ROWS = 64
#: Bytes of residuals that do not fit into caches.
FAR = 2**25
#: Loops of fewer steps are not worth it.
FEWEST = 4

Row = tuple[int, int, int, int]
Clock = Callable[[], float]
Timing = Generator[list[Row], float, None]


def can_be_timed(tape: Tape) -> bool:
    """Whether steps can be left out of a run."""
    if has_open_loop(tape) or _calls_python(tape):
        return False
    loops = [read_loop(tape, row) for row in tape.rows if row.op is Op.TAPED_LOOP]
    types = [type for loop in loops for type in loop.body.output_types]
    return bool(loops) and all(type.is_array and type.is_float for type in types)


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
    clock: Clock,
) -> Costs:
    """Run a few steps of each outermost loop under the slots of its plan, twice: what else the
    machine does only adds to a time. Where one thread does it all, ``clock`` is that thread's own,
    which other programs do not move."""
    began = clock()
    first = _once(loaded, loops, feeds, slots, beside, inputs, clock)
    if clock() - began > LONGEST:
        return first
    second = _once(loaded, loops, feeds, slots, beside, inputs, clock)
    found = {name: first.loops[name].least(cost) for name, cost in second.loops.items()}
    return Costs(found, min(first.outside, second.outside))


def _once(
    loaded: Loaded,
    loops: Mapping[int, TapedLoop],
    feeds: Mapping[int, Feed],
    slots: Mapping[int, Slots],
    beside: frozenset[int],
    inputs: Sequence[np.ndarray],
    clock: Clock,
) -> Costs:
    trials: dict[int, Trial] = {}
    feeds = dict(feeds)
    for name, loop in loops.items():
        if loop.depth == 1 and loop.n_steps >= FEWEST:
            size = step_bytes(dict(loops), dict(slots), name)
            trials[name] = Trial(loop.n_steps, size, slots[name], name in beside, clock)
            begin = partial(_begun, trials[name])
            feeds[name] = Feed(lambda: iter(()), MOST_ROWS, 0, None, begin)
    began = clock()
    loaded.run(inputs, feeds, slots, None)
    whole = clock() - began
    outside = max(0.0, whole - sum(x.within for x in trials.values()))
    return Costs({name: x.cost for name, x in trials.items()}, outside)


def _begun(trial: Trial, window: Window, inputs: Sequence[np.ndarray]) -> Trial:
    return trial


class Trial:
    """The course of a loop in such a run: the same actions again and again, until their time is
    known."""

    def __init__(
        self, n_steps: int, step_bytes: int, slots: Slots, beside: bool, clock: Clock
    ) -> None:
        self.clock = clock
        self.n, self.step_bytes, self.beside = n_steps, step_bytes, beside
        self.n_slots, self.n_tape_slots = slots.n_slots, slots.n_tape_slots
        self.hook = self.within = 0.0  # seconds: between two pieces, and of all of them
        self.cost = Cost(0.0, 0.0, 0.0, 0.0)
        self.steps = self._timing()
        self.since = 0.0

    def following(self, n_steps: int | None) -> Rows:
        now = self.clock()
        rows = self.steps.send(now - self.since) if self.since else next(self.steps)
        piece = np.array(rows, np.int64)
        self.since = self.clock()
        self.within += self.since - now
        return piece

    def close(self, keep: bool) -> None:
        self.steps.close()

    def _timing(self) -> Timing:
        drop = (int(Action.DROP), 0, 0, 0)
        self.hook = yield from self._least([drop], 1, 3)
        n, cost = self.n, self.cost._replace(piece=self.hook)
        if self.n_slots:
            store = (int(Action.STORE), 0, 0, 0)
            cost = cost._replace(store=(yield from self._least([store], 1, 3)))
            cost = cost._replace(advance=(yield from self._advanced()))
            first = cost.advance
        else:
            first = yield from self._each((int(Action.TAPE), 0, 1, 0))
        k = self._together(first)
        some = (int(Action.TAPE), n - 1 - k, n - 1, 0)
        yield from self._piece([some])  # on pages that are new
        cost = cost._replace(tape=(yield from self._each(some)), held=k * self.step_bytes)
        last = k if k < self.n_tape_slots else 0
        yield [(int(Action.TAPE), n - 1, n, last)]
        self.within += cost.tape  # else what lies between the sweeps would be part of it
        yield from self._piece([(int(Action.REVERSE), n - 1, n, last)])
        back = (int(Action.REVERSE), n - 1 - k, n - 1, 0)
        cost = cost._replace(reverse=(yield from self._each(back)))
        cost = cost._replace(both=cost.tape + cost.reverse)
        if self.n_slots:
            restore = (int(Action.RESTORE), 0, 0, 0)
            cost = cost._replace(restore=(yield from self._least([restore], 1, 3)))
            if self.beside and 2 * k < n - 1 and k < self.n_tape_slots:
                again = (int(Action.TAPE), 0, k, 0)
                cost = cost._replace(both=(yield from self._least([restore, again, back], k, 3)))
        self.cost = cost
        yield [(int(Action.END), 0, 0, -1)]

    def _piece(self, rows: list[Row]) -> Generator[list[Row], float, float]:
        """Seconds of some actions."""
        seconds = yield rows
        self.within += seconds
        return max(0.0, seconds - self.hook)

    def _least(self, rows: list[Row], n: int, times: int) -> Generator[list[Row], float, float]:
        """Seconds of actions, of ``n`` steps, at the least."""
        found = inf
        for _ in range(times):
            seconds = yield from self._piece(rows)
            found = min(found, seconds / n)
            if seconds > LONG:
                break
        return found

    def _each(self, row: Row) -> Generator[list[Row], float, float]:
        """Seconds of a step of an action that is done again until that is enough."""
        n_rows, steps, seconds = 1, row[2] - row[1], 0.0
        while seconds < ENOUGH and n_rows < MOST_ROWS:
            seconds = yield from self._piece([row] * n_rows)
            n_rows = min(MOST_ROWS, 4 * n_rows) if seconds < ENOUGH else n_rows
        if seconds > LONG:
            return seconds / (n_rows * steps)
        return (yield from self._least([row] * n_rows, n_rows * steps, 3))

    def _advanced(self) -> Generator[list[Row], float, float]:
        """Seconds of a step that is only run, along the loop's way up to its end."""
        at, k, seconds = 0, 1, 0.0
        while seconds < ENOUGH and at + 2 * k < self.n:
            seconds = yield from self._piece([(int(Action.ADVANCE), at, at + k, -1)])
            at, k = at + k, k if seconds >= ENOUGH else 2 * k
        k = max(1, min(k, (self.n - 1 - at) // 3))
        found = inf
        for start in range(at, min(at + 3 * k, self.n - k), k):
            rows = [(int(Action.ADVANCE), start, start + k, -1)]
            found = min(found, (yield from self._piece(rows)) / k)
            if found * k > LONG:
                break
        return found if found < inf else seconds / k

    def _together(self, seconds: float) -> int:
        """How many steps are taped one after the other."""
        most = min(self.n_tape_slots - 1, self.n - 2)
        far = FAR // max(1, self.step_bytes) if self.n_tape_slots * self.step_bytes > FAR else 0
        return max(1, min(most, max(far, int(ENOUGH / max(seconds, 1e-9)))))
