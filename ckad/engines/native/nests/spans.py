"""Where the large rows of a tape are computed: everywhere, or between bounds of a mask alone.

A row that is summed, or added to another array, and vanishes outside of spans is needed there
alone, and so is what it is computed from. A write to a part of an array leaves the rest as it was.
Rows in memory that are computed between bounds hold nothing elsewhere, so whoever reads them
computes between the very same bounds, each rounded outwards to whole vectors alike.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ckad.engines.native.values.registers import is_small
from ckad.tape.extents import PART, Masks, Spans
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.row import Row
from ckad.tape.tape import Tape

#: The spans between which a row is computed by each of its readers; None: everywhere.
Seen = set[Spans | None]


class Evaluated:
    """Where each row is computed, given which ones nests compute and which lie in memory."""

    def __init__(
        self,
        tape: Tape,
        rows: Sequence[Row],
        readers: Sequence[Sequence[int]],
        uniform: Sequence[int | None],
    ) -> None:
        self.rows, self.readers, self.uniform = rows, readers, uniform
        self.outputs = set(tape.outputs.tolist())
        self.masks = Masks(rows, tape.constants)
        self.any = any(
            row.op is Op.SELECT and not is_small(row.type) and self.masks.spans(row.operands[0])
            for row in rows
        )
        self.updates: dict[int, int] = {}  # writes to a part of an array: row -> the array

    def find(
        self, fusable: Sequence[bool], in_memory: Sequence[bool], sums: Sequence[bool]
    ) -> list[Seen]:
        """For each row, where it is computed; by several nests maybe, if it is in none's memory."""
        self.fusable, self.in_memory, self.sums = fusable, in_memory, sums
        self.seen: list[Seen] = [{None} for _ in self.rows]
        self.updates.clear()
        for k in range(len(self.rows) - 1, -1, -1) if self.any else ():
            wanted = self._wanted(k)
            if fusable[k] and not in_memory[k]:
                self.seen[k] = wanted
            else:
                self.seen[k] = {self._own(k, wanted)}
        return self.seen

    def _wanted(self, k: int) -> Seen:
        """Where the readers of row k compute what they need it for."""
        if k in self.outputs:
            row = self.rows[k]
            part = row.op is Op.SELECT and PART in row.attrs and not self.readers[k]
            return {self.masks.spans(row.operands[0]) if part else None}
        found: Seen = set()
        for r in self.readers[k]:
            for at, x in enumerate(self.rows[r].operands):
                if x == k:
                    found |= self._read(r, at)
        return found or {None}

    def _read(self, r: int, at: int) -> Seen:
        """Where row r reads its operand of that position."""
        row = self.rows[r]
        if r in self.updates and at == 2:
            return {None}
        if self.fusable[r]:
            return self.seen[r] if is_elementwise(row.op) else {None}
        if self.sums[r]:
            return self.seen[r]
        return self.seen[r] if at in _between(self.rows, row) else {None}

    def _own(self, k: int, wanted: Seen) -> Spans | None:
        """The spans between which row k, a sum, an array in memory, or a row alone is computed."""
        row = self.rows[k]
        only = next(iter(wanted)) if len(wanted) == 1 else None
        if self.sums[k]:
            return self.masks.vanishing(row.operands[0])
        if self.fusable[k]:
            if not is_elementwise(row.op):
                return None
            return only or self._update(k, row)
        if row.op in (Op.GATHER, Op.WRAP):
            return only if _between(self.rows, row) else None
        if row.op is Op.SCATTER_ADD and _between(self.rows, row):
            return self.masks.vanishing(row.operands[2])
        if row.op is Op.SCATTER and _between(self.rows, row):
            return self._written(row)
        return None

    def _update(self, k: int, row: Row) -> Spans | None:
        """Spans of a write to a part of an array that lies in memory."""
        if row.op is not Op.SELECT:
            return None
        spans, old = self.masks.spans(row.operands[0]), row.operands[2]
        virtual = self.fusable[old] and not self.in_memory[old]
        if spans is None or virtual or self.uniform[old] is not None or old == row.operands[1]:
            return None
        self.updates[k] = old
        return spans

    def _written(self, row: Row) -> Spans | None:
        """Spans of a row written back to where it came from, changed between bounds."""
        x, index, new = row.operands
        select = self.rows[new]
        if select.op is not Op.SELECT:
            return None
        old = self.rows[select.operands[2]]
        same = old.op is Op.GATHER and old.operands == (x, index) and old.attrs[0] == row.attrs[0]
        return self.masks.spans(select.operands[0]) if same else None


def _between(rows: Sequence[Row], row: Row) -> Collection[int]:
    """The operands of a row alone that it reads at the places at which it is computed."""
    if row.op is Op.WRAP:
        return (0,) if len(row.type.shape) == 1 else ()
    if row.op not in (Op.GATHER, Op.SCATTER, Op.SCATTER_ADD):
        return ()
    part = row if row.op is Op.GATHER else rows[row.operands[2]]
    if len(part.type.shape) != 1 or is_small(part.type):
        return ()
    index = rows[row.operands[1]]
    if index.type.size == 1:  # a row or a column of an array of two axes
        whole = len(rows[row.operands[0]].type.shape) == 2 and not index.type.shape
        return () if not whole else ((2,) if row.op is not Op.GATHER else (-1,))
    if row.op is Op.SCATTER or row.attrs[0] != 0:
        return ()
    return (1,) if row.op is Op.GATHER else (1, 2)
