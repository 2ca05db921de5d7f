"""What the assembler makes of a tape: code, the layout of memory, tables of actions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ckad.engines.origin import Origin
from ckad.tape.types import Type

CELL = 8  # bytes
#: An array of more cells than this cannot be indexed.
MOST_CELLS = 2**60
#: Constants of at most so many elements are written together.
FEW = 16


class Place(NamedTuple):
    """An array in the cells, or one cell that says where it lies, see Region."""

    offset: int
    type: Type
    far: bool = False


class Call(NamedTuple):
    """A routine on arrays in the cells: its number and attributes."""

    attrs: tuple[int, ...]
    out: Place
    operands: tuple[Place, ...]


class Token(NamedTuple):
    """Where the restart states of an outermost loop lie, and what lives between its actions: the
    offset and the number of cells of each item."""

    carry: list[tuple[int, int]]  # of the first restart state; those of the others follow
    n_steps: int | None  # the cell with the number of steps of a guarded loop
    given: list[tuple[int, int]]  # what the steps give
    totals: list[tuple[int, int]]  # cotangents


@dataclass(frozen=True, eq=False)
class Program:
    """An assembled tape. ``loops`` maps the name of a taped loop to its action table."""

    code: np.ndarray  # int64
    n_cells: int
    constants: list[tuple[int, np.ndarray]]
    inputs: list[Place]
    outputs: list[Place]
    loops: dict[int, int]
    places: list[Origin] = field(default_factory=list)  # of the rows that may fail
    counters: dict[int, tuple[int, ...]] = field(default_factory=dict)  # index cells of a place
    results: dict[int, Place] = field(default_factory=dict)  # what to show of places to stop at
    calls: dict[int, Call] = field(default_factory=dict)  # the routine of a place
    nested: set[int] = field(default_factory=set)  # names of loops that run more than once
    tokens: dict[int, Token] = field(default_factory=dict)  # of outermost loops, by name
    calls_blas: bool = False

    @cached_property
    def address(self) -> int:
        return int(self.code.ctypes.data)

    @cached_property
    def scattered(self) -> tuple[np.ndarray, np.ndarray]:
        """The cells of all constants of few elements, and what these cells hold as integers."""
        few = [(at, cells_of(array)) for at, array in self.constants if array.size <= FEW]
        if not few:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        cells = [np.arange(at, at + array.size) for at, array in few]
        return np.concatenate(cells), np.concatenate([array for _, array in few])

    @cached_property
    def whole(self) -> list[tuple[int, np.ndarray]]:
        """The other constants, as their cells hold them."""
        return [(at, cells_of(array)) for at, array in self.constants if array.size > FEW]

    @property
    def nbytes(self) -> int:
        """Bytes of a run: code and cells."""
        return self.code.nbytes + self.n_cells * CELL


def cells_of(array: np.ndarray) -> np.ndarray:
    """What cells that hold an array hold as integers."""
    if array.dtype.kind == "f":
        return array.ravel().astype(np.float64, copy=False).view(np.int64)
    return array.ravel().astype(np.int64, copy=False)
