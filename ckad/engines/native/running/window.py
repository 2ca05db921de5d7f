"""What can be seen of a run between the pieces of its actions."""

from __future__ import annotations

import ctypes

import numpy as np

from ckad.engines.native.ir.state import Control
from ckad.engines.native.rows.writer import TapedFacts
from ckad.engines.native.values.layout import WORD


class Window:
    """What can be seen of an outermost loop between its pieces; see actions.Window.

    Its token begins at ``home`` of the memory.
    """

    def __init__(self, cells: np.ndarray, memory: np.ndarray, home: int, facts: TapedFacts) -> None:
        self.cells, self.memory, self.home, self.facts = cells, memory, home, facts

    @property
    def n_steps(self) -> int:
        return int(self.cells[Control.COUNT])

    def end_at(self, n_steps: int) -> None:
        self.cells[Control.COUNT] = n_steps

    def slot(self, number: int) -> list[memoryview]:
        at = self.home + number * self.facts.carry_bytes
        return [self.memory[at : at + self.facts.carry_bytes].data]

    def live(self, reverse: bool) -> list[memoryview]:
        return [self._part(*x) for x in (self.facts.totals if reverse else self.facts.given)]

    def _part(self, at: int, nbytes: int, is_address: int) -> memoryview:
        if not is_address:
            return self.memory[at : at + nbytes].data
        address = int(self.memory[at : at + WORD].view(np.int64)[0])
        return memoryview((ctypes.c_char * nbytes).from_address(address)).cast("B")
