"""Restart slots on disk: what is done between the pieces of a loop's actions.

Compiled code knows slots in memory alone. A state that goes to disk is stored in the *staging*
slot, the one behind those of the schedule, where the piece ends; what comes from disk is read into
it before the piece begins that restores it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, Protocol

import numpy as np

from ckad.checkpoint.schedules.codes import DROP, RESTORE, STORE
from ckad.checkpoint.store.interrupts import deferred
from ckad.engines.actions import Rows, Window

KIND, START, STOP, SLOT = range(4)
#: Chunks of rows that are looked through for the next states to be read from disk.
AHEAD = 2


class Store(Protocol):
    """Where states lie on disk, by the number of their slot, from 0 on."""

    def write(self, slot: int, step: int, data: memoryview) -> None: ...
    def read(self, slot: int, step: int, into: memoryview) -> None: ...
    def prefetch(self, slot: int, step: int) -> None: ...
    def drop(self, slot: int) -> None: ...
    def close(self) -> None: ...


class Chunk(NamedTuple):
    """Rows, and the numbers of those that are about states on disk: looked for once."""

    rows: Rows
    disk: list[int]

    def after(self, first: int) -> list[int]:
        """Those from a row on."""
        return self.disk[bisect_left(self.disk, first) :]


class Staged:
    """The course of one run of a loop with ``n_slots`` restart slots in memory, others on disk."""

    def __init__(
        self,
        chunks: Iterator[Rows],
        after: Callable[[int], Iterator[Rows]] | None,
        n_slots: int,
        length: int,
        window: Window,
        store: Callable[[], Store],
    ) -> None:
        self.n_slots, self.length, self.window, self._open = n_slots, length, window, store
        self.chunks, self.after = chunks, after
        self.ahead: deque[Chunk] = deque()
        self.at = 0  # the next row of the first chunk
        self.stored: tuple[int, int] | None = None  # slot and step of what is in the staging slot
        self.held: dict[int, int] = {}  # the steps of the states on disk, by slot
        self.joined: memoryview | None = None

    def following(self, n_steps: int | None) -> Rows | None:
        """The actions up to the next one that needs the staging slot."""
        with deferred():  # once for all that the store is asked for
            return self._following(n_steps)

    def _following(self, n_steps: int | None) -> Rows | None:
        self._put_away()
        if n_steps is not None:
            self._begin_after(n_steps)
        rows = self._rest()
        while rows is not None and not len(piece := self._piece(rows)):
            rows = self._rest()
        return None if rows is None else piece

    def close(self, keep: bool) -> None:
        if self.is_open:
            self.store.close()

    @property
    def n_steps(self) -> int:
        """How many steps the loop runs, as far as that is known."""
        return min(self.length, self.window.n_steps)

    @cached_property
    def store(self) -> Store:
        """Opened when it is first needed."""
        with deferred():  # Ctrl-C comes when it is known here, and so will be closed
            self.__dict__["store"] = found = self._open()
        return found

    @property
    def is_open(self) -> bool:
        return "store" in self.__dict__

    def _begin_after(self, n_steps: int) -> None:
        """The rows of the reverse phase, where the number of steps was learnt."""
        assert self.after is not None
        self.chunks, self.at = self.after(n_steps), 0
        self.ahead.clear()

    # --- rows -----------------------------------------------------------------------------------

    def _rest(self) -> Rows | None:
        """What is left of the present chunk, or the next one."""
        if self.ahead and self.at >= len(self.ahead[0].rows):
            self.ahead.popleft()
            self.at = 0
        while len(self.ahead) < AHEAD and (rows := next(self.chunks, None)) is not None:
            self.ahead.append(self._chunk(rows))
        return self.ahead[0].rows[self.at :] if self.ahead else None

    def _piece(self, rows: Rows) -> Rows:
        """The first of ``rows``, those that come next, with what is on disk in the staging slot."""
        staged, used = list[int](), len(rows)
        for k in (k - self.at for k in self.ahead[0].after(self.at)):
            if k >= used:
                break
            kind, step, _, slot = rows[k].tolist()
            if kind == RESTORE and k:
                used = k
                break
            staged.append(k)
            if kind == STORE:
                self.stored, used = (slot, step), k + 1
            elif kind == DROP:
                self._drop(slot)
            else:
                self._fetch(slot, step)
        self.at += used
        self._look_ahead()
        piece = rows[:used].copy()
        piece[staged, SLOT] = self.n_slots
        return piece

    def _chunk(self, rows: Rows) -> Chunk:
        return Chunk(rows, self._on_disk(rows))

    def _on_disk(self, rows: Rows) -> list[int]:
        """The numbers of the rows that are about states on disk."""
        kind = rows[:, KIND]
        states = (kind == STORE) | (kind == RESTORE) | (kind == DROP)
        found: list[int] = np.flatnonzero(states & (rows[:, SLOT] >= self.n_slots)).tolist()
        return found

    def _look_ahead(self) -> None:
        """Ask for the next state that is to be read, if it is written by now."""
        written = {self.stored[0]} if self.stored else set()
        for chunk, first in zip(self.ahead, (self.at, 0), strict=False):
            for k in chunk.after(first):
                kind, step, _, slot = chunk.rows[k].tolist()
                if kind == STORE:
                    written.add(slot)
                elif kind == RESTORE:
                    if slot not in written and self.held.get(slot) == step:
                        self.store.prefetch(slot - self.n_slots, step)
                    return

    # --- states ---------------------------------------------------------------------------------

    def _put_away(self) -> None:
        """Write what the last piece has left in the staging slot, if the loop runs so long."""
        if self.stored is None:
            return
        (slot, step), self.stored = self.stored, None
        if step < self.n_steps:
            self.store.write(slot - self.n_slots, step, self._gathered(self.n_slots))
            self.held[slot] = step

    def _fetch(self, slot: int, step: int) -> None:
        """Read a state into the staging slot; past the end of a loop that is shorter than was
        thought there is none."""
        if self.held.get(slot) == step:
            self._read(slot - self.n_slots, step, self.window.slot(self.n_slots))

    def _drop(self, slot: int) -> None:
        if self.held.pop(slot, None) is not None:
            self.store.drop(slot - self.n_slots)

    def _read(self, at: int, step: int, parts: Sequence[memoryview]) -> None:
        """Read what the store has at a place into a slot in memory."""
        whole = self._room(parts)
        self.store.read(at, step, whole)
        if len(parts) > 1:
            for part, here in zip(parts, _offsets(parts), strict=True):
                part[:] = whole[here : here + len(part)]

    def _gathered(self, slot: int) -> memoryview:
        """A slot in memory in one piece."""
        parts = self.window.slot(slot)
        whole = self._room(parts)
        if len(parts) > 1:
            for part, here in zip(parts, _offsets(parts), strict=True):
                whole[here : here + len(part)] = part
        return whole

    def _room(self, parts: Sequence[memoryview]) -> memoryview:
        if len(parts) == 1:
            return parts[0]
        if self.joined is None:
            self.joined = memoryview(bytearray(sum(map(len, parts))))
        return self.joined


def _offsets(parts: Sequence[memoryview]) -> Iterator[int]:
    return accumulate(map(len, parts[:-1]), initial=0)
