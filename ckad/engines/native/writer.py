"""A program in the making: its module of IR, its memory, the cells of its state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from llvmlite import ir

from ckad.engines.heap import Heap
from ckad.engines.native.describe import nest_text
from ckad.engines.native.fusion import Fusion, Nest
from ckad.engines.native.layout import LINE, WORD, rounded_up
from ckad.engines.native.nests import NestWriter, Shape, cut
from ckad.engines.native.state import Cell, Control
from ckad.engines.native.unit import Buffer, Unit
from ckad.tape.tape import Tape


@dataclass
class TapedFacts:
    """What has to be known of a taped loop to lay out its token."""

    control: int  # its first cell
    carry_bytes: int
    residual_bytes: int
    inner: list[int]  # names of the loops whose tokens follow the residuals
    is_residual: bool = False  # its token is among the residuals of the loop around it
    nested: bool = False


@dataclass
class Writer:
    """What all functions of a program share."""

    module: ir.Module
    heap: Heap = field(default_factory=Heap)
    n_cells: int = int(Cell.END)
    constants: dict[int, int] = field(default_factory=dict)  # id of an array -> its cell
    arrays: list[np.ndarray] = field(default_factory=list)
    loops: dict[int, TapedFacts] = field(default_factory=dict)
    places: list[tuple[str, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # the readable text of the program
    _fusions: dict[int, Fusion] = field(default_factory=dict)
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
            self._fusions[id(tape)] = Fusion(tape)
        return self._fusions[id(tape)]

    def nest(self, tape: Tape, nest: Nest) -> tuple[ir.Function, Shape]:
        """The function of a nest, and how it is cut."""
        key = id(tape), id(nest)
        if key not in self._nests:
            fusion = self.fusion(tape)
            shape = cut(fusion, nest)
            name = self.name("nest")
            self._nests[key] = NestWriter(self.module, name, fusion, nest, shape).write(), shape
            self.notes.append(nest_text(name, fusion, nest, shape))
        return self._nests[key]

    def taped(self, name: int, facts: TapedFacts) -> TapedFacts:
        """The facts of a taped loop; both of its sweeps share them."""
        return self.loops.setdefault(name, facts)

    def control(self, name: int) -> int:
        if name in self.loops:
            return self.loops[name].control
        return self.cells(int(Control.SIZE))
