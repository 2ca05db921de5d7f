"""The vm as the loop driver sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter

import numpy as np

from ckad.engines.actions import Bare, Feed, Slots
from ckad.engines.counts import Body, total, touched
from ckad.engines.engine import Direct
from ckad.engines.stops import Stops
from ckad.engines.vm.assembly.assemble import assemble
from ckad.engines.vm.machine import Runner
from ckad.engines.vm.program import CELL, Program
from ckad.errors import EngineError
from ckad.tape.ops import OPS, Group
from ckad.tape.tape import Tape
from ckad.tape.types import Type

name, overlaps = "vm", False
_NO_CODE = (
    'the vm interprets its tape, so this program has no {} of its own. Pass engine="native" to '
    "compile it, or look at .text, which is the tape."
)


def record_bytes(types: Sequence[Type]) -> int:
    """Every element takes a cell."""
    return sum(CELL * max(1, t.size) for t in types)


def record_offsets(types: Sequence[Type]) -> Sequence[int]:
    """Where each value begins; its parts are written to disk one after the other."""
    return [record_bytes(types[:k]) for k in range(len(types))]


def moved_bytes(body: Body) -> int:
    """Bytes of the cells that one run of ``body`` reads and writes, in caches or not."""
    tape = body.tape
    cells = [part.type.size for k in range(len(tape)) for part in touched(tape, k)]
    inner = [row for row in tape.rows if OPS[row.op].group is Group.CONTROL]
    return CELL * sum(cells) + sum(total(tape, row, moved_bytes) for row in inner)


class Loaded:
    """Programs of a tape; the slots are part of their code, so each choice has one of its own."""

    def __init__(self, tape: Tape, check_finite: bool, stops: Stops | None = None) -> None:
        self.tape, self.check_finite, self.stops = tape, check_finite, stops
        self.slots: dict[int, Slots] | None = None
        self.compile_seconds = 0.0
        self.from_cache = False
        self.longest: dict[int, int] = {}
        self._runner: Runner | None = None

    def program(self, slots: Mapping[int, Slots]) -> Program:
        if slots != self.slots:
            self.slots = dict(slots)
            start = perf_counter()
            self._program = assemble(self.tape, self.slots, self.check_finite, self.stops)
            self.compile_seconds = perf_counter() - start
        return self._program

    @property
    def text(self) -> str:
        return str(self.tape)

    @property
    def llvm(self) -> str:
        raise EngineError(_NO_CODE.format("IR"))

    @property
    def asm(self) -> str:
        raise EngineError(_NO_CODE.format("assembly"))

    def bare(self, feeds: Mapping[int, Feed], slots: Mapping[int, Slots]) -> Bare:
        raise EngineError(_NO_CODE.format("function"))

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
        return self._runner_for(feeds, slots)(inputs, on_progress, self.stops, self.longest)

    def direct(self, feeds: Mapping[int, Feed], slots: Mapping[int, Slots]) -> Direct:
        return partial(self._runner_for(feeds, slots), stops=self.stops, longest=self.longest)

    def _runner_for(self, feeds: Mapping[int, Feed], slots: Mapping[int, Slots]) -> Runner:
        runner, program = self._runner, self.program(slots)
        if runner is None or runner.program is not program or runner.feeds is not feeds:
            runner = self._runner = Runner(program, feeds)
        return runner


def load(tape: Tape, check_finite: bool, threads: int, keeps_all: bool) -> Loaded:
    """The vm has one thread, and assembles a program for each choice of slots."""
    return Loaded(tape, check_finite)
