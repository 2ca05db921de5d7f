"""The few buffers between a program and the disk, and what each of them holds."""

from __future__ import annotations

import mmap
from enum import Enum

from ckad.checkpoint.store.format.layout import padded
from ckad.checkpoint.store.format.slots import Stored

PAGE = mmap.PAGESIZE


class State(Enum):
    """What a buffer is good for; the later ones are given away the sooner."""

    WRITING = 0  # handed over, and not in its file yet
    LOADING = 1
    AHEAD = 2  # read from its file, and not asked for yet
    KEPT = 3  # the same as in the file
    EMPTY = 4


class Buffer:
    """Memory of one state. ``users`` copy into it or out of it; meanwhile it stays as it is."""

    def __init__(self, n_bytes: int) -> None:
        # pages of its own, which the system gets back when the buffer goes
        self.memory = memoryview(mmap.mmap(-1, max(n_bytes, 1)))[:n_bytes]
        self.state = State.EMPTY
        self.holds: Stored | None = None
        self.users = 0
        self.age = 0

    def is_free(self, *states: State) -> bool:
        return self.users == 0 and self.state in states

    def clear(self) -> None:
        self.state, self.holds = State.EMPTY, None


class Buffers:
    """The buffers of one store. Whoever calls this holds the store's lock."""

    def __init__(self, n: int, n_bytes: int) -> None:
        self.all = [Buffer(n_bytes) for _ in range(n)]
        self.n_bytes = n * padded(max(n_bytes, 1), PAGE)
        self._clock = 0

    def holding(self, stored: Stored) -> Buffer | None:
        return next((one for one in self.all if one.holds == stored), None)

    def for_writing(self) -> Buffer | None:
        """What was read ahead gives way at last. Of three or more one is left to reading."""
        writing = sum(one.state is State.WRITING for one in self.all)
        if writing >= len(self.all) - (len(self.all) > 2):
            return None
        return self._free(State.EMPTY, State.KEPT, State.AHEAD)

    def for_reading(self) -> Buffer | None:
        return self._free(State.EMPTY, State.KEPT)

    def take(self, buffer: Buffer, state: State, stored: Stored | None) -> None:
        self._clock += 1
        buffer.state, buffer.holds, buffer.age = state, stored, self._clock

    def forget(self, stored: Stored) -> None:
        """Nobody will ask for it again."""
        found = self.holding(stored)
        if found is not None and found.state in (State.AHEAD, State.KEPT):
            found.clear()

    def _free(self, *states: State) -> Buffer | None:
        free = [one for one in self.all if one.is_free(*states)]
        return min(free, key=lambda one: (-one.state.value, one.age), default=None)
