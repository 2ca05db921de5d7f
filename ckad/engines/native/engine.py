"""The native engine as the loop driver sees it: ``load`` compiles a tape, `Loaded` runs it.

`ckad/engines/engine.py` is the protocol; the vm has a module of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from ckad.engines.actions import Bare, Feed, Slots
from ckad.engines.engine import Direct
from ckad.engines.native.nests.traffic import moved_bytes
from ckad.engines.native.running.bare import bare
from ckad.engines.native.running.machine import Runner
from ckad.engines.native.running.program import Program, prepare
from ckad.engines.native.values.layout import offsets as record_offsets
from ckad.engines.native.values.layout import record_bytes
from ckad.tape.tape import Tape

name, overlaps = "native", True
__all__ = ["Loaded", "load", "moved_bytes", "name", "overlaps", "record_bytes", "record_offsets"]


class Loaded:
    """Compiled programs of a tape; the slots are given to each run.

    ``keeps_all`` says that schedules are likely to keep the residuals of all steps. Those then have
    a program of their own, which is soon compiled; for all others there is a second one.
    """

    def __init__(self, tape: Tape, threads: int, keeps_all: bool) -> None:
        self.tape, self.threads, self.keeps_all = tape, threads, keeps_all
        self.program = prepare(tape, keeps_all)  # that of the slots asked for last
        self._runner: Runner | None = None

    def _program_for(self, slots: Mapping[int, Slots]) -> Program:
        keeps_all = self.keeps_all and not any(s.n_slots for s in slots.values())
        program = self.program  # another thread may ask for the other one meanwhile
        if keeps_all is not program.keeps_all:
            program = self.program = prepare(self.tape, keeps_all)
        return program

    def run_bytes(self, slots: Mapping[int, Slots]) -> int:
        program = self._program_for(slots)
        return program.homes(slots)[-1] + 8 * program.facts.n_cells

    def kept_bytes(self) -> int:
        return self.program.kept_bytes

    def bare(self, feeds: Mapping[int, Feed], slots: Mapping[int, Slots]) -> Bare:
        return bare(self._program_for(slots), feeds, slots)

    @property
    def text(self) -> str:
        return self.program.text

    @property
    def llvm(self) -> str:
        return self.program.library.llvm

    @property
    def asm(self) -> str:
        return self.program.library.asm

    @property
    def compile_seconds(self) -> float:
        return self.program.library.seconds

    @property
    def from_cache(self) -> bool:
        return self.program.library.cached

    @property
    def longest(self) -> Mapping[int, int]:
        return self._runner.longest if self._runner else {}

    def run(
        self,
        inputs: Sequence[np.ndarray],
        feeds: Mapping[int, Feed],
        slots: Mapping[int, Slots],
        on_progress: Callable[[int], None] | None,
    ) -> list[np.ndarray]:
        return self._runner_for(feeds, slots)(inputs, on_progress, self.threads)

    def direct(self, feeds: Mapping[int, Feed], slots: Mapping[int, Slots]) -> Direct:
        runner = self._runner_for(feeds, slots)
        return runner if self.threads == 1 else partial(runner, n_threads=self.threads)

    def _runner_for(self, feeds: Mapping[int, Feed], slots: Mapping[int, Slots]) -> Runner:
        runner = self._runner
        if runner is None or runner.feeds is not feeds or runner.slots is not slots:
            runner = self._runner = Runner(self._program_for(slots), feeds, slots)
        return runner


def load(tape: Tape, check_finite: bool, threads: int, keeps_all: bool) -> Loaded:
    """Compile a tape, or take its code from the cache."""
    return Loaded(tape, threads, keeps_all)
