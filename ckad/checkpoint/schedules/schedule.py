"""What a checkpointing schedule is: a stream of actions on slots, and the counts that sum it up."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ckad.errors import ScheduleError
from ckad.kernel import interpreted

MAX_STEPS = 2**62
MAX_SLOTS = 2**31 - 1
CHUNK = 65_536
#: The part of a forward step that a reversal beside it hides, of short steps: measured 0.5 to 0.6.
HIDDEN = 0.5


class Action(IntEnum):
    """One kind of action; ``w`` is the working state's step, 0 at the start.

    The values are fixed: compiled loop drivers read them from ``Actions.kind``.

    >>> from ckad import schedules
    >>> [schedules.Action(kind).name for kind in schedules.store_all(2).actions.kind]
    ['TAPE', 'REVERSE', 'END']
    """

    ADVANCE = 0
    """Run the steps [start, stop) and keep nothing; needs w == start, leaves w == stop."""
    STORE = 1
    """Copy the working state into a free restart slot, in RAM or on disk; start == stop == w."""
    RESTORE = 2
    """Copy a restart slot into the working state; start == stop == the step it holds."""
    DROP = 3
    """Free a restart slot; start == stop == the step it held."""
    TAPE = 4
    """Run [start, stop), keep the residuals of step start + k in residual slot ``slot`` + k."""
    REVERSE = 5
    """Reverse steps stop-1 … start from residual slots ``slot`` + k, and free these."""
    END = 6
    """Every step is reversed. Once, last; start == stop == 0."""


class Actions(NamedTuple):
    """Actions in execution order, one row each; ranges are half-open.

    >>> from ckad import schedules
    >>> print(schedules.store_all(3).actions.stop)
    [3 3 0]
    """

    kind: NDArray[np.int8]
    """int8[n], an `Action`."""
    start: NDArray[np.int64]
    """int64[n]."""
    stop: NDArray[np.int64]
    """int64[n], exclusive."""
    slot: NDArray[np.int32]
    """int32[n]: a residual slot for TAPE and REVERSE, else a restart slot; -1 if unused."""

    @classmethod
    def empty(cls, n_actions: int) -> Actions:
        """Uninitialised columns of ``n_actions`` rows."""
        return cls._make(np.empty(n_actions, dtype) for dtype in ACTION_DTYPES)

    def piece(self, start: int, stop: int) -> Actions:
        """Rows [start, stop), as views."""
        rows = slice(start, stop)
        return Actions(self.kind[rows], self.start[rows], self.stop[rows], self.slot[rows])

    def describe(self, row: int) -> str:
        """Row ``row`` in words, such as ``RESTORE [5, 5) slot 2``."""
        kind, start, stop, slot = (int(column[row]) for column in self)
        known = Action.ADVANCE <= kind <= Action.END
        name = Action(kind).name if known else f"kind {kind}"
        return f"{name} [{start}, {stop}) slot {slot}"


ACTION_DTYPES = (np.int8, np.int64, np.int64, np.int32)

Fill = Callable[..., int]
"""``fill(state, kind, start, stop, slot) -> count``: write the next rows into the columns.

``state`` is int64 and all the memory the generator has. Fewer rows than the columns hold are
written only once END is among them, or has been before.
"""


class Source(Protocol):
    """Where a schedule's actions come from."""

    def chunks(self, n_actions: int) -> Iterator[Actions]:
        """Consecutive pieces of at most ``n_actions`` rows, from the first action on."""
        ...


#: Rows that a generator writes as plain Python, some 10 µs each, before it is worth a compilation.
FEW_ROWS = 2_000
_written: Counter[Fill] = Counter()


def _fill(fill: Fill, n_rows: int) -> Fill:
    """The generator, compiled if it writes many rows, now or so far."""
    _written[fill] += min(n_rows, FEW_ROWS + 1)  # several threads may count less: nothing is lost
    return fill if _written[fill] > FEW_ROWS else interpreted(fill)


@dataclass(frozen=True)
class Generated:
    """Actions written on demand by a compiled generator."""

    fill: Fill
    registers: tuple[int, ...]
    n_stack: int
    max_actions: int
    table: bytes = field(default=b"", repr=False)
    """Numbers (int64) that the generator reads, if any."""

    def state(self) -> NDArray[np.int64]:
        """A fresh generator state: the registers, the table, then an empty stack."""
        given = [np.array(self.registers, np.int64), np.frombuffer(self.table, np.int64)]
        return np.concatenate([*given, np.zeros(self.n_stack, np.int64)])

    def chunks(self, n_actions: int) -> Iterator[Actions]:
        state = self.state()
        n_rows = min(n_actions, self.max_actions)
        count = n_rows
        while count == n_rows:
            rows = Actions.empty(n_rows)
            count = int(_fill(self.fill, n_rows)(state, *rows))
            if count:
                yield rows.piece(0, count)


@dataclass(frozen=True, eq=False)
class Listed:
    """Actions held as arrays."""

    actions: Actions

    def chunks(self, n_actions: int) -> Iterator[Actions]:
        for start in range(0, self.actions.kind.size, n_actions):
            yield self.actions.piece(start, start + n_actions)


@dataclass(frozen=True)
class Schedule:
    """Which step is run, stored, restored and reversed when.

    Restart slots 0 to ``n_slots`` - 1 are in RAM, the ``n_disk_slots`` that follow them on disk.
    The forward phase ends with the first ADVANCE or TAPE whose stop is ``n_steps``: the final
    state exists then. What follows is the reverse phase.

    >>> from ckad import schedules
    >>> print(schedules.revolve(50, 4))
    revolve: n_steps=50, n_slots=4, n_tape_slots=1, forward_steps=194, recompute factor 3.880
    """

    family: str
    n_steps: int
    n_slots: int
    """Restart slots in RAM that the schedule fills at its fullest: what has to be allocated."""
    n_tape_slots: int
    """Single-step residual slots in use at once."""
    forward_steps: int
    """Every execution of the step, the ones that tape included."""
    source: Source = field(repr=False)
    n_disk_slots: int = 0
    """Restart slots on disk; their numbers follow those in RAM."""
    arena: tuple[int, ...] = field(default=(), repr=False)
    """Residual slots that may be in use beside 0, 1, 2 … restart slots in RAM; only of families
    that use both as stacks, so that they can share memory."""
    n_beside: int = 0
    """Of the forward steps, those that are independent of the reversals which follow at once: a
    TAPE and the REVERSE of no more other steps. They may run at the same time."""

    def __post_init__(self) -> None:
        if self.n_steps > MAX_STEPS:
            raise ScheduleError(
                f"n_steps={self.n_steps} is above 2**62, the longest loop a schedule can count. "
                f"forward_steps(...) alone takes any length."
            )
        if self.n_slots + self.n_disk_slots > MAX_SLOTS:
            raise ScheduleError(
                f"{self.n_slots + self.n_disk_slots} restart slots are above 2**31 - 1, the most "
                f"a schedule can name. Pass fewer slots, or a longer period."
            )

    @classmethod
    def from_actions(
        cls,
        actions: Actions,
        *,
        n_steps: int,
        n_slots: int | None = None,
        n_tape_slots: int | None = None,
        n_disk_slots: int = 0,
        family: str = "custom",
    ) -> Schedule:
        """Wrap rows made elsewhere; what is not given is counted from them.

        Of the restart slots the last ``n_disk_slots`` are on disk. Nothing is checked here: run
        `check_schedule` on the result.

        >>> from ckad.schedules import revolve
        >>> rows = revolve(4, 2).actions
        >>> Schedule.from_actions(rows, n_steps=4).forward_steps
        8
        """
        rows = Actions._make(map(np.asarray, actions, ACTION_DTYPES))
        length = rows.stop - rows.start
        taped = rows.kind == Action.TAPE
        stored = rows.kind == Action.STORE
        if n_slots is None:
            n_slots = max(0, int(np.max(rows.slot[stored] + 1, initial=0)) - n_disk_slots)
        if n_tape_slots is None:
            n_tape_slots = int(np.max((rows.slot + length)[taped], initial=0))
        forward_steps = int(np.sum(length[taped | (rows.kind == Action.ADVANCE)]))
        source = Listed(rows)
        return cls(family, n_steps, n_slots, n_tape_slots, forward_steps, source, n_disk_slots)

    def chunks(self, n_actions: int = CHUNK) -> Iterator[Actions]:
        """Stream the actions from the first on, in pieces of at most ``n_actions`` rows.

        The memory used does not grow with the number of steps; every call starts anew.

        >>> from ckad.schedules import revolve
        >>> sum(rows.kind.size for rows in revolve(1000, 10).chunks(100))
        5427
        """
        return self.source.chunks(at_least(1, "n_actions", n_actions))

    @cached_property
    def actions(self) -> Actions:
        """All actions as arrays, 21 bytes per row."""
        # One piece holds them all: a generator's piece is never longer than its max_actions, and
        # the pages of the columns that stay unused are never touched.
        return next(self.chunks(8 * MAX_STEPS))

    @property
    def writes(self) -> int:
        """How often a state is stored in RAM; counted by streaming through the actions."""
        return self._traffic[0]

    @property
    def disk_writes(self) -> int:
        """How often a state is stored on disk; counted by streaming through the actions."""
        return self._traffic[1]

    @property
    def disk_reads(self) -> int:
        """How often a state is restored from disk; counted by streaming through the actions."""
        return self._traffic[2]

    @cached_property
    def _traffic(self) -> tuple[int, int, int]:
        """Stores in RAM, stores on disk, restores from disk."""
        counts = np.zeros(3, np.int64)
        for rows in self.chunks():
            stored, on_disk = rows.kind == Action.STORE, rows.slot >= self.n_slots
            restored = rows.kind == Action.RESTORE
            wanted = (stored & ~on_disk, stored & on_disk, restored & on_disk)
            counts += [np.count_nonzero(x) for x in wanted]
        return int(counts[0]), int(counts[1]), int(counts[2])

    def makespan(self, step: int, write: int, read: int, reverse: int = 0) -> int:
        """Time of one run if nothing overlaps, in the unit of its arguments.

        ``step`` is one forward step, ``reverse`` the reversal of one from its residuals, ``write``
        and ``read`` one restart state to and from disk; RAM is free.

        >>> from ckad.schedules import multistage
        >>> multistage(1000, 5, 5).makespan(step=1, write=2, read=2)
        5026
        """
        disk = self.disk_writes * write + self.disk_reads * read if self.n_disk_slots else 0
        return self.forward_steps * step + self.n_steps * reverse + disk

    def shared_bytes(self, restart: int, residual: int) -> int | None:
        """Bytes of one arena for restart states of ``restart`` bytes and residuals of ``residual``.

        Restart slot k lies at byte k x ``restart``, residual slot k ends k x ``residual`` bytes
        before the arena's end. None where slots are not used as stacks.

        >>> from ckad.schedules import mixed
        >>> schedule = mixed(100, 5)
        >>> schedule.n_slots, schedule.n_tape_slots, schedule.shared_bytes(8, 24)
        (5, 6, 144)
        """
        if not self.arena:
            return None
        return max(held * restart + taped * residual for held, taped in enumerate(self.arena))

    @property
    def weight(self) -> float:
        """Forward steps, those that hide beside reversals at what they add to these."""
        return self.forward_steps - HIDDEN * self.n_beside

    @property
    def recompute_factor(self) -> float:
        """Forward steps per step of the loop; 1 when nothing is computed again."""
        return self.forward_steps / self.n_steps if self.n_steps else 1.0

    def __str__(self) -> str:
        disk = f"n_disk_slots={self.n_disk_slots}, " if self.n_disk_slots else ""
        return (
            f"{self.family}: n_steps={self.n_steps}, n_slots={self.n_slots}, {disk}"
            f"n_tape_slots={self.n_tape_slots}, forward_steps={self.forward_steps}, "
            f"recompute factor {self.recompute_factor:.3f}"
        )


class Family(NamedTuple):
    """One row of the SCHEDULES table."""

    name: str
    build: Callable[..., Schedule]
    forward_steps: Callable[..., int]
    """The count of ``build(*arguments)`` without building anything; any length."""
    examples: tuple[tuple[Any, ...], ...]
    """Arguments of small schedules that together reach every branch of the family."""


def at_least(minimum: int, name: str, value: Any) -> int:
    """``value`` as a Python int no smaller than ``minimum``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ScheduleError(f"{name}={value!r} is not an integer. Pass an int.") from None
    if number < minimum:
        raise ScheduleError(f"{name}={number} is below {minimum}. Pass at least {minimum}.")
    return number
