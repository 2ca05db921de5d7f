"""The native engine as the loop driver sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ckad.engines.actions import Feed, Slots
from ckad.engines.native.nests.traffic import moved_bytes
from ckad.engines.native.running.machine import Runner
from ckad.engines.native.running.program import Program, prepare
from ckad.engines.native.values.layout import record_bytes
from ckad.tape.tape import Tape

name = "native"
__all__ = ["Loaded", "load", "moved_bytes", "name", "record_bytes"]


class Loaded:
    """A compiled program; the slots are given to each run."""

    def __init__(self, program: Program, threads: int) -> None:
        self.program, self.threads = program, threads
        self._runner: Runner | None = None

    def run_bytes(self, slots: Mapping[int, Slots]) -> int:
        return self.program.homes(slots)[-1] + 8 * self.program.facts.n_cells

    def kept_bytes(self) -> int:
        return self.program.kept_bytes

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
        runner = self._runner
        if runner is None or runner.feeds is not feeds or runner.slots is not slots:
            runner = self._runner = Runner(self.program, feeds, slots)
        return runner(inputs, on_progress, self.threads)


def load(tape: Tape, check_finite: bool, threads: int) -> Loaded:
    """Compile a tape, or take its code from the cache."""
    return Loaded(prepare(tape), threads)
