"""Runs that go on where a state on disk is lost.

It is computed again from the nearest sound one before it. The state before the first step is kept
in memory as well, where the schedule has it on disk.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.checkpoint.schedules.schedule import Action
from ckad.engines.actions import Rows
from ckad.errors import CheckpointError, RecomputeWarning
from ckad.loops.between.tiers import KIND, SLOT, START, Staged


class Recomputed(Staged):
    """The course of one run in which a state that cannot be written or read costs steps only."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.in_memory: dict[int, int] = {}  # the steps of the states in memory, by slot
        self.lost: dict[int, int] = {}  # those of the states that the disk should have
        self.first: bytes | None = None  # the state before the first step
        self.fault: CheckpointError | None = None

    def close(self, keep: bool) -> None:
        self._done(lambda: super(Recomputed, self).close(keep), -1)

    def _piece(self, rows: Rows) -> Rows:
        kind, step, slot = (int(rows[0, column]) for column in (KIND, START, SLOT))
        if kind == Action.RESTORE and slot >= self.n_slots:
            again = self._fetched(slot, step)
            if again is not None:
                self.at += 1
                return again
        piece = super()._piece(rows)
        for kind, step, slot in piece[:, (KIND, START, SLOT)].tolist():
            if kind == Action.STORE and slot < self.n_slots and step < self.n_steps:
                self.in_memory[slot] = step
            elif kind == Action.DROP:
                self.in_memory.pop(slot, None)
        return piece

    def _fetched(self, slot: int, step: int) -> Rows | None:
        """Read a state into the staging slot; where it is lost, the actions that compute it."""
        if self._read_from(slot, step):
            return None
        if self.lost.get(slot) != step:
            return None  # past the end of a loop that is shorter than was thought
        before = [(k, at) for at, k in (self.in_memory | self.held).items() if k <= step]
        before += [(0, slot)] if self.first is not None else []
        for begin, at in sorted(before, reverse=True):
            if at < self.n_slots or self._read_from(at, begin) or self._begun(begin):
                restore = (Action.RESTORE, begin, begin, min(at, self.n_slots))
                advance = (Action.ADVANCE, begin, step, -1)
                return np.array([restore, advance] if begin < step else [restore], np.int64)
        raise AssertionError("the state before the first step is always there")

    def _read_from(self, slot: int, step: int) -> bool:
        """Whether a state on disk is in the staging slot now; if it cannot be read, it is lost."""
        if self.held.get(slot) != step:
            return False
        parts = self.window.slot(self.n_slots)
        if self._done(lambda: self._read(slot - self.n_slots, step, parts), slot):
            return True
        self._lose(slot)
        return False

    def _begun(self, step: int) -> bool:
        """Whether the state before the first step is meant; it is in the staging slot then."""
        if step or self.first is None:
            return False
        whole, at = memoryview(self.first), 0
        for part in self.window.slot(self.n_slots):
            part[:] = whole[at : at + len(part)]
            at += len(part)
        return True

    def _fetch(self, slot: int, step: int) -> None:
        """It is there already."""

    def _put_away(self) -> None:
        if self.stored is None:
            return
        (slot, step), self.stored = self.stored, None
        if step >= self.n_steps:
            return
        state = self._gathered(self.n_slots)
        self.first = bytes(state) if step == 0 else self.first
        written = self._done(lambda: self.store.write(slot - self.n_slots, step, state), slot)
        self.lost.pop(slot, None)
        self.held.pop(slot, None)
        (self.held if written else self.lost)[slot] = step

    def _drop(self, slot: int) -> None:
        self.lost.pop(slot, None)
        self._done(lambda: super(Recomputed, self)._drop(slot), slot)

    def _look_ahead(self) -> None:
        self._done(super()._look_ahead, -1)

    def _lose(self, slot: int) -> None:
        step = self.held.pop(slot, None)
        if step is not None:
            self.lost[slot] = step

    def _done(self, call: Callable[[], object], slot: int) -> bool:
        """Whether a call of the store succeeds. What it finds of other slots is noted first."""
        for _ in range(2 + len(self.held)):
            try:
                call()
            except CheckpointError as error:
                if self.fault is None:
                    warnings.warn(f"{error} It is computed again.", RecomputeWarning, stacklevel=2)
                self.fault = error
                other = None if error.slot is None else error.slot + self.n_slots
                if other is None or other == slot:
                    return False
                self._lose(other)
            else:
                return True
        return False
