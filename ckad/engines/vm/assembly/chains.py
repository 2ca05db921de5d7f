"""The code of a chain: rows of one size that run together, strip by strip.

A value that only the chain reads lives in a strip's worth of cells, which stays in the L1 cache.
"""

from __future__ import annotations

from ckad.engines.vm.assembly.assembler import Assembler
from ckad.engines.vm.assembly.grouping import is_splat, reads_in_place
from ckad.engines.vm.assembly.lower import fill, merged, roll_rows, view_of
from ckad.engines.vm.assembly.placement import ROUND, Placement
from ckad.engines.vm.assembly.region import Region
from ckad.engines.vm.isa import STRIP, Code
from ckad.engines.vm.kernels.table import elements
from ckad.tape.ops import Op
from ckad.tape.tape import Row
from ckad.tape.types import DType

#: (address, 1 if it advances with the strip)
Operand = tuple[int, int]


def lower_chain(a: Assembler, placement: Placement, rows: list[int]) -> None:
    """STRIPS and its instructions."""
    chain = _Chain(a, placement, rows)
    words = chain.words()
    size = placement.tape.rows[rows[0]].operands[0] if _is_sum(placement, rows[0]) else rows[0]
    n = placement.tape.rows[size].type.size
    a.whole("strips", n, len(words), *words, cost=len(words) / 9 * n / 16)
    chain.close()


def _is_sum(placement: Placement, k: int) -> bool:
    return placement.tape.rows[k].op is Op.SUM


class _Chain:
    """Registers of one chain and where its rows' values are while it runs."""

    def __init__(self, a: Assembler, placement: Placement, rows: list[int]) -> None:
        self.a, self.placement, self.rows = a, placement, rows
        self.position = {k: p for p, k in enumerate(rows)}
        self.at: dict[int, Operand] = {}
        self.spare: list[Region] = []
        self.registers: list[Region] = []
        self.held: dict[int, Region] = {}
        self.last: dict[int, int] = {}
        for p, k in enumerate(rows):
            for x in placement.operands(k):
                self.last[x] = p
        tape_rows = placement.tape.rows
        self.viewed = {
            x for k in rows if not reads_in_place(tape_rows[k]) for x in tape_rows[k].operands
        }

    def words(self) -> list[int]:
        out: list[int] = []
        for p, k in enumerate(self.rows):
            if k in self.placement.absorbed:
                continue
            row, reads = self.placement.tape.rows[k], self.placement.operands(k)
            operands = [self._operand(x) for x in reads] if reads_in_place(row) else []
            out += self._instructions(k, row, operands)
            for x in set(reads):
                if self.last[x] == p and x in self.held:
                    self.spare.append(self.held.pop(x))
        return out

    def close(self) -> None:
        for register in self.registers:
            self.a.heap.release(register.offset, register.size)
        for k in self.rows:
            row = self.placement.tape.rows[k]
            if row.op is Op.SUM and row.type.dtype is DType.F32 and k in self.placement.region:
                at = self.placement.region[k].offset
                self.a.element(ROUND, 1, at, [at], cost=0)

    def _operand(self, x: int) -> Operand:
        if x not in self.at:
            if is_splat(self.placement.tape, x):
                self.at[x] = (self._splat(x).offset, 0)
            else:
                self.at[x] = (self.placement.region[x].offset, 1)
        return self.at[x]

    def _splat(self, x: int) -> Region:
        """A strip of one scalar, filled before the strips run."""
        placement = self.placement
        source = placement.region.get(x) or placement.region[placement.tape.rows[x].operands[0]]
        register = self.a.new(STRIP)
        self.registers.append(register)
        fill(self.a, register, STRIP, source.offset)
        return register

    def _register(self, k: int) -> Operand:
        if self.spare:
            register = self.spare.pop()
        else:
            register = self.a.new(STRIP)
            self.registers.append(register)
        self.held[k] = register
        return register.offset, 0

    def _destination(self, k: int, row: Row) -> Operand:
        if self.placement.last.get(k, -1) <= self.placement.now:
            return self._register(k)
        region = self._wanted(k) or self._take_over(k, row) or self.a.new(row.type.size)
        self.a.bind(self.placement, k, region)
        return region.offset, 1

    def _wanted(self, k: int) -> Region | None:
        """Where the loop around the body wants this row, if it may be written there already."""
        region = self.placement.wanted.get(k)
        if region is None or not region.users:
            return region
        here = [x for x in self._overwritable(k) if self.placement.region[x] is region]
        return self.a.take_over(self.placement, here[0], region.size) if here else None

    def _take_over(self, k: int, row: Row) -> Region | None:
        """The region of an array that nobody reads after this instruction."""
        for x in self._overwritable(k):
            region = self.a.take_over(self.placement, x, row.type.size)
            if region is not None:
                return region
        return None

    def _overwritable(self, k: int) -> list[int]:
        """Arrays of full size whose reads in this chain are over, in each strip, when row k is."""
        region, p = self.placement.region, self.position[k]
        viewed = {id(region[y]) for y in self.viewed if y in region}
        size = self.placement.tape.rows[k].type.size
        return [
            x
            for x, last in self.last.items()
            if last <= p
            and x in region
            and x not in self.position
            and self.placement.tape.rows[x].type.size == size
            and id(region[x]) not in viewed
            and not is_splat(self.placement.tape, x)
        ]

    def _instructions(self, k: int, row: Row, operands: list[Operand]) -> list[int]:
        if row.op is Op.SUM:
            return self._sum(k, operands[0])
        self.at[k] = dst = self._destination(k, row)
        if not reads_in_place(row):
            return self._load(row, dst)
        out: list[int] = []
        for key in self.placement.kernels(k):
            padded = (operands + [(0, 0), (0, 0)])[:3]
            out += [elements(key), *dst, *(word for operand in padded for word in operand)]
            operands = [dst]
        return out

    def _sum(self, k: int, operand: Operand) -> list[int]:
        total = self.a.new(1)
        self.a.bind(self.placement, k, total)
        self.a.emit(Code.SET, total.offset, 0)
        return [Code.SUM, total.offset, *operand]

    def _load(self, row: Row, dst: Operand) -> list[int]:
        x = row.operands[0]
        src = self.placement.region[x].offset
        if row.op is Op.ROLL:
            return [Code.ROLL, *dst, src, *roll_rows(row)]
        if row.op is Op.PAD:
            shape = self.placement.tape.rows[x].type.shape
            rank = len(shape)
            return [Code.PAD, *dst, src, rank, *row.type.shape, *row.attrs[:rank], *shape]
        offset, strides = view_of(self.placement, row)
        dims, (steps,) = merged(row.type.shape, strides)
        return [Code.VIEW, *dst, src + offset, len(dims), *dims, *steps]
