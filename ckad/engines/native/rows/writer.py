"""A program in the making: its module of IR, its memory, the cells of its state.

All functions of a program share the `Writer`: it lends memory of the arena, numbers cells, and
keeps what is known of taped loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from ckad.engines.heap import Heap
from ckad.engines.native.ir.state import Cell, Control
from ckad.engines.native.ir.unit import Buffer, Unit
from ckad.engines.native.nests.boxes import Shape, fused
from ckad.engines.native.nests.emit import NestWriter
from ckad.engines.native.nests.fusion import Fusion, Nest
from ckad.engines.native.values.layout import LINE, WORD, rounded_up
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape


@dataclass
class TapedFacts:
    """What has to be known of a taped loop to lay out its token."""

    control: int  # its first cell
    carry_bytes: int
    residual_bytes: int
    inner: list[int]  # names of the loops whose tokens follow the residuals
    is_residual: bool = False  # its token is among the residuals of the loop around it
    head_bytes: int = 0  # of its token, before the restart states: how many steps it ran
    # What lives between the actions of its sweeps: [place in the arena, bytes, 1 if an address of
    # so many bytes lies there].
    given: list[list[int]] = field(default_factory=list)  # what the steps give
    totals: list[list[int]] = field(default_factory=list)  # cotangents


#: (code, number of a row, row) -> its results; it writes code for the row's bodies
Lower = Callable[[Any, int, Row], Sequence[Any]]


class Emitted(NamedTuple):
    """A tape whose code stands in a function."""

    function: str
    tape: Tape


@dataclass
class Writer:
    """What all functions of a program share."""

    module: ir.Module
    with_bodies: Mapping[Op, Lower]  # the code of rows that have bodies
    keeps_all: bool = False  # every taped loop keeps all its residuals: no step is run again
    heap: Heap = field(default_factory=Heap)
    n_cells: int = int(Cell.END)
    constants: dict[int, int] = field(default_factory=dict)  # id of an array -> its cell
    arrays: list[np.ndarray] = field(default_factory=list)
    loops: dict[int, TapedFacts] = field(default_factory=dict)
    places: list[tuple[str, str, int]] = field(default_factory=list)
    shares: bool = False  # whether a nest is large enough for several threads
    emitted: list[Emitted] = field(default_factory=list)  # in the order in which they were written
    _fusions: dict[int, Fusion] = field(default_factory=dict)
    _shapes: dict[int, Shape] = field(default_factory=dict)
    _nests: dict[tuple[int, int], tuple[Any, Shape]] = field(default_factory=dict)
    _n_functions: int = 0

    def name(self, kind: str) -> str:
        self._n_functions += 1
        return f"{kind}_{self._n_functions}"

    def cells(self, n: int) -> int:
        """The first of ``n`` new cells of the state."""
        self.n_cells += n
        return self.n_cells - n

    def constant(self, array: np.ndarray) -> int:
        """The cell with the address of a constant."""
        if id(array) not in self.constants:
            self.constants[id(array)] = self.cells(1)
            self.arrays.append(array)
        return self.constants[id(array)]

    # --- memory: the heap counts words of 8 bytes -----------------------------------------------

    def allocate(self, unit: Unit, nbytes: int) -> Buffer:
        size = rounded_up(max(1, nbytes), LINE if nbytes >= LINE else WORD)
        offset = WORD * self.heap.allocate(size // WORD)
        return Buffer(unit.at(offset), size, offset)

    def release(self, buffer: Buffer) -> None:
        assert buffer.offset is not None
        self.heap.release(buffer.offset // WORD, buffer.nbytes // WORD)

    # --- what is written once for every tape ----------------------------------------------------

    def fusion(self, tape: Tape) -> Fusion:
        if id(tape) not in self._fusions:
            self._fusions[id(tape)], shapes = fused(tape)
            self._shapes |= shapes
        return self._fusions[id(tape)]

    def nest(self, tape: Tape, nest: Nest) -> tuple[ir.Function, Shape]:
        """The function of a nest, and how it is cut."""
        key = id(tape), id(nest)
        if key not in self._nests:
            fusion, shape = self.fusion(tape), self._shapes[id(nest)]
            name = self.name("nest")
            self._nests[key] = NestWriter(self.module, name, fusion, nest, shape).write(), shape
        return self._nests[key]

    def note_loop(
        self, name: int, carry_bytes: int, residual_bytes: int, inner: list[int], guarded: bool
    ) -> int:
        """Note what a taped loop's token holds; its first control cell.

        Both sweeps note it, and a loop that is known from the residuals of another one by its name
        alone gets its own facts later.
        """
        facts = self._facts(name)
        facts.carry_bytes, facts.residual_bytes, facts.inner = carry_bytes, residual_bytes, inner
        facts.head_bytes = LINE if guarded else 0
        for loop in inner:
            self._facts(loop).is_residual = True
        return facts.control

    def control(self, name: int) -> int:
        """The first control cell of a taped loop that has been noted."""
        return self.loops[name].control

    def _facts(self, name: int) -> TapedFacts:
        if name not in self.loops:
            self.loops[name] = TapedFacts(self.cells(int(Control.SIZE)), 0, 0, [])
        return self.loops[name]
