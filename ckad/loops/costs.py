"""What a run costs in seconds: from a few steps that were timed, and from a schedule's counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from time import thread_time
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ckad.checkpoint.plan import clipped
from ckad.checkpoint.schedules.online import Online, online
from ckad.checkpoint.schedules.schedule import Action, Schedule
from ckad.engines.actions import CHUNK
from ckad.engines.arena import MOST, aligned
from ckad.engines.measure import TapedLoop
from ckad.loops.tables import chunks

#: Actions that are counted; those of longer schedules in proportion.
COUNTED = 200_000
#: Pieces of them that tell how long it takes to make one.
PIECES = 100
#: Bytes that the caches are thought to hold, and nanoseconds that a byte takes beyond them: it is
#: written and read once, and lies on a page that the system has to find.
CACHE, MEMORY = 10 * 2**20, 0.2
#: Nanoseconds that a byte takes to be cleared, where memory is not kept from run to run.
NEW = 0.15


class Cost(NamedTuple):
    """Seconds of each thing that is done for one step of a loop."""

    advance: float
    tape: float
    reverse: float
    both: float  # a step that is taped beside the reversal of another
    store: float = 0.0
    restore: float = 0.0
    piece: float = 0.0  # of actions, to be asked for
    held: float = 0.0  # bytes of residuals that were kept when steps were timed

    @property
    def back(self) -> float:
        """The reversal of a step, and what taping it takes more than to run it."""
        return max(0.0, self.tape - self.advance) + self.reverse

    def least(self, other: Cost) -> Cost:
        return Cost(*map(min, self, other))

    def seconds(self, schedule: Schedule, most_rows: int) -> float:
        """Both sweeps of a loop whose actions come in pieces of so many, but for its disk."""
        moved = _moved(schedule, most_rows)
        return self.kernels(schedule) + moved.pieces * self.piece + moved.seconds

    def seconds_of(self, n: int, schedule: Schedule, most_rows: int) -> float:
        """Those of ``n`` steps, under a schedule that was made for more of them, or learns it."""
        if isinstance(schedule.source, Online):
            learnt = online(n, min(max(n - 1, 1), schedule.n_slots + schedule.n_disk_slots))
            return self.seconds(learnt, most_rows)
        if n == schedule.n_steps:
            return self.seconds(schedule, most_rows)
        moved, share = _moved(schedule, most_rows), n / schedule.n_steps
        steps = (clipped(schedule, n) - n) * self.advance + n * (self.tape + self.reverse)
        states = share * (moved.stores * self.store + moved.restores * self.restore)
        return steps + states + moved.pieces * self.piece + moved.seconds

    def kernels(self, schedule: Schedule) -> float:
        """Of these, what compiled code takes: steps, reversals, states stored and restored."""
        n, beside = schedule.n_steps, schedule.n_beside
        again = schedule.forward_steps - n
        steps = again * self.advance + (n - beside) * (self.tape + self.reverse)
        moved = _moved(schedule, CHUNK)
        states = moved.stores * self.store + moved.restores * self.restore
        return steps + beside * self.both + states


class Costs(NamedTuple):
    """Of the outermost loops that were timed, by name; of all that is around them; of memory."""

    loops: Mapping[int, Cost] = MappingProxyType({})
    outside: float = 0.0


NOT_TIMED = Costs()


def is_far(n_tape_slots: int, step_bytes: int) -> bool:
    """Whether the residuals of steps are more than caches hold."""
    return n_tape_slots > 1 and n_tape_slots * step_bytes > CACHE


def slot_bytes(x: TapedLoop, step_bytes: int, schedule: Schedule) -> int:
    """What a loop's slots take, with so many bytes of residuals in each step."""
    return schedule.n_slots * x.state_bytes + schedule.n_tape_slots * step_bytes


def nanoseconds(x: TapedLoop, step_bytes: int, schedule: Schedule, step_ns: float) -> float:
    """What a schedule adds to the time of a loop."""
    far = is_far(schedule.n_tape_slots, step_bytes)
    moved = (x.n_steps if far else 0) * step_bytes + 2 * schedule.n_slots * x.state_bytes
    taken = slot_bytes(x, step_bytes, schedule)
    new = taken if taken > MOST else 0
    return schedule.forward_steps * step_ns + moved * MEMORY + new * NEW


def pages(peak_bytes: int) -> float:
    """Seconds that new pages take: memory that is kept from run to run has none."""
    return _fresh() * peak_bytes if peak_bytes > MOST else 0.0


@lru_cache(maxsize=1)
def _fresh() -> float:
    """Seconds that a byte takes on a page that is new, beside writing it."""
    times = [_touched() for _ in range(3)]
    first, again = min(x for x, _ in times), min(y for _, y in times)
    return max(0.0, first - again) / MOST


def _touched() -> tuple[float, float]:
    """Seconds of new memory that is written, and of writing it again: as much as is never kept,
    since caches still hold the pages of a little that was given back, and clear it faster."""
    memory = aligned(MOST)
    return _filled(memory), _filled(memory)


def _filled(memory: np.ndarray) -> float:
    began = thread_time()
    memory.fill(0)
    return thread_time() - began


class Prediction(NamedTuple):
    """Seconds of a whole run, from the steps of its outermost loops."""

    loops: Sequence[TapedLoop]
    schedules: Mapping[int, Schedule]
    costs: Costs
    pace: float
    most_rows: int
    peak_bytes: int
    on_disk: Callable[[], float | None] | None  # both sweeps' seconds where there is a disk

    def seconds(self, ran: Mapping[int, int]) -> float | None:
        """Where the steps of all loops were timed, and are so many, by name; None where nobody
        knows how many there are."""
        lengths = {x.name: ran.get(x.name, 0 if x.is_open else x.n_steps) for x in self.loops}
        if not lengths or not all(lengths.values()) or lengths.keys() - self.costs.loops.keys():
            return None
        if self.on_disk is not None:
            seconds = self.on_disk()
            return None if seconds is None else seconds + self.costs.outside
        steps = sum(
            cost.seconds_of(lengths[name], self.schedules[name], self.most_rows)
            for name, cost in self.costs.loops.items()
        )
        return self.pace * steps + pages(self.peak_bytes) + self.costs.outside


class _Moved(NamedTuple):
    """How many states are stored and restored, in how many pieces a schedule's actions come, and
    seconds to make them."""

    stores: float
    restores: float
    pieces: float
    seconds: float


@lru_cache(maxsize=256)
def _moved(schedule: Schedule, most_rows: int) -> _Moved:
    if not schedule.n_slots + schedule.n_disk_slots:
        return _Moved(0, 0, 0, 0)
    n = stores = restores = steps = 0
    for actions in schedule.chunks():
        n += actions.kind.size
        stores += int(np.count_nonzero(actions.kind == Action.STORE))
        restores += int(np.count_nonzero(actions.kind == Action.RESTORE))
        back = actions.kind == Action.REVERSE
        steps += int(np.sum((actions.stop - actions.start)[back]))
        if n >= COUNTED:
            break
    whole = schedule.n_steps / max(1, steps) if n >= COUNTED else 1.0
    pieces = n * whole / most_rows
    if pieces <= 1:  # it is made once, and there when a run begins
        return _Moved(stores * whole, restores * whole, 0.0, 0.0)
    # what is compiled or loaded for the first time is not counted
    making = min(_making(schedule, most_rows) for _ in range(3))
    return _Moved(stores * whole, restores * whole, pieces, pieces * making)


def _making(schedule: Schedule, most_rows: int) -> float:
    """Seconds of a piece of actions, made as runs do it."""
    began = thread_time()
    made = sum(1 for _ in islice(chunks(schedule, most_rows), PIECES))
    return (thread_time() - began) / max(1, made)
