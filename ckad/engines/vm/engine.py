"""The vm as the loop driver sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ckad.engines.actions import Feed, Slots
from ckad.engines.vm.assemble import assemble
from ckad.engines.vm.machine import execute
from ckad.engines.vm.program import CELL, Program
from ckad.tape.tape import Tape
from ckad.tape.types import Type

name = "vm"


def record_bytes(types: Sequence[Type]) -> int:
    """Every element takes a cell."""
    return sum(CELL * max(1, t.size) for t in types)


class Loaded:
    """Programs of a tape; the slots are part of their code, so each choice has one of its own."""

    def __init__(self, tape: Tape, check_finite: bool) -> None:
        self.tape, self.check_finite = tape, check_finite
        self.slots: dict[int, Slots] | None = None

    def program(self, slots: Mapping[int, Slots]) -> Program:
        if slots != self.slots:
            self.slots = dict(slots)
            self._program = assemble(self.tape, self.slots, self.check_finite)
        return self._program

    def run_bytes(self, slots: Mapping[int, Slots]) -> int:
        return self.program(slots).nbytes

    def kept_bytes(self) -> int:
        constants = sum(c.nbytes for _, c in self._program.constants)
        return self._program.code.nbytes + constants

    def run(
        self,
        inputs: Sequence[np.ndarray],
        feeds: Mapping[int, Feed],
        slots: Mapping[int, Slots],
        on_progress: Callable[[int], None] | None,
    ) -> list[np.ndarray]:
        return execute(self.program(slots), inputs, feeds, on_progress)


def load(tape: Tape, check_finite: bool, threads: int) -> Loaded:
    """The vm has one thread."""
    return Loaded(tape, check_finite)
