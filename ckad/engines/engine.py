"""What the loop driver asks of an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from ckad.engines.actions import Bare, Feed, Slots
from ckad.engines.counts import Body
from ckad.engines.measure import RecordBytes
from ckad.tape.tape import Tape
from ckad.tape.types import Type

#: A run on inputs: arrays of their dtypes, or floats.
Direct = Callable[[Sequence[np.ndarray]], list[np.ndarray]]


class Loaded(Protocol):
    """A tape that an engine can run."""

    @property
    def text(self) -> str:
        """The program, readable."""

    @property
    def llvm(self) -> str:
        """Its LLVM IR; EngineError if it has none."""

    @property
    def asm(self) -> str:
        """Its assembly; EngineError if it has none."""

    @property
    def compile_seconds(self) -> float:
        """What it took to make the program from its tape; 0 if it was read from a disk."""

    @property
    def from_cache(self) -> bool:
        """Whether it was read from a disk."""

    def bare(self, feeds: Mapping[int, Feed], slots: Mapping[int, Slots]) -> Bare:
        """The program for threads that Python does not know; EngineError if there is none."""

    def run_bytes(self, slots: Mapping[int, Slots]) -> int:
        """What a run allocates beside tape, action tables and results."""

    def kept_bytes(self) -> int:
        """What is held between runs."""

    @property
    def longest(self) -> Mapping[int, int]:
        """How many steps each guarded loop ran at the most, in the last run that ended."""

    def run(
        self,
        inputs: Sequence[np.ndarray],
        feeds: Mapping[int, Feed],
        slots: Mapping[int, Slots],
        on_progress: Callable[[int], None] | None,
    ) -> list[np.ndarray]: ...

    def direct(self, feeds: Mapping[int, Feed], slots: Mapping[int, Slots]) -> Direct:
        """The same without progress, for one plan: without what is looked up for each run."""


class Engine(Protocol):
    """One way to run tapes."""

    name: str
    overlaps: bool  # whether residuals may lie where restart states were
    record_bytes: RecordBytes

    def record_offsets(self, types: Sequence[Type]) -> Sequence[int]:
        """Where each value begins in a restart state."""

    def moved_bytes(self, body: Body) -> int:
        """Bytes that one run of a body reads from memory and writes to it."""

    def load(self, tape: Tape, check_finite: bool, threads: int, keeps_all: bool) -> Loaded:
        """A program; ``keeps_all`` if its schedules are likely to keep the residuals of all steps,
        which may be taken as a hint."""
