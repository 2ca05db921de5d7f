"""One tape while its code is written: where rows lie, when they are read last, their kernels."""

from __future__ import annotations

from collections.abc import Sequence

from ckad.engines.vm.assembly.grouping import Item, members
from ckad.engines.vm.assembly.region import Region
from ckad.engines.vm.isa import Key
from ckad.engines.vm.pairs import Joined, joined_rows
from ckad.passes.liveness import last_reads, readers
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType, Type

#: Rounds to float32.
ROUND: Key = (Op.CONVERT, "f->s")


class Placement:
    """One tape being assembled: where its rows lie and when they are read last."""

    def __init__(
        self, tape: Tape, items: list[Item], wanted: dict[int, Region], joins: bool
    ) -> None:
        self.tape = tape
        self.items = items
        self.region: dict[int, Region] = {}
        self.joined: dict[int, Joined] = {}
        self.absorbed: set[int] = set()
        if joins:
            self._join()
        self.last = last_reads(
            ([x for k in members(item) for x in self.operands(k)] for item in items),
            tape.outputs.tolist(),
        )
        self.results: dict[int, list[Region]] = {}
        self.named: dict[int, set[int]] = {}  # which results of a control row have rows
        for row in tape.rows:
            if row.op is Op.RESULT:
                self.named.setdefault(row.operands[0], set()).add(row.attrs[0])
        self.wanted = wanted  # rows that the loop around this body wants in a region of its own
        self.now = 0

    def _join(self) -> None:
        """Pairs within a chain, and among the rows that stand alone."""
        alone = [x for x in self.items if not isinstance(x, list)]
        readers_of = readers(self.tape)
        for rows in (alone, *(x for x in self.items if isinstance(x, list))):
            self.joined |= joined_rows(self.tape, rows, readers_of)
        self.absorbed = {j.inner for j in self.joined.values()}

    def operands(self, k: int) -> tuple[int, ...]:
        """What the code of row k reads."""
        if k in self.joined:
            return self.joined[k].operands
        return () if k in self.absorbed else self.tape.rows[k].operands

    def kernels(self, k: int) -> list[Key]:
        """The kernels that compute an elementwise row, one after the other."""
        if k in self.joined:
            return [self.joined[k].pair]
        row = self.tape.rows[k]
        return kernels_for(row, [self.tape.rows[x].type for x in row.operands])

    def dies(self, row: int) -> bool:
        """Whether the item at hand is the last to read ``row``."""
        return self.last.get(row, -1) <= self.now


def signature(operands: Sequence[Type], out: Type, op: int) -> str:
    """The cells an elementwise row reads and writes."""
    if op == Op.SELECT:
        return "iii->i"
    reads = "".join("f" if t.is_float else "i" for t in operands)
    return f"{reads}->{'f' if out.is_float else 'i'}"


def kernels_for(row: Row, operands: Sequence[Type]) -> list[Key]:
    """The kernels that compute an elementwise row; the second rounds the result in place."""
    cells = signature(operands, row.type, row.op)
    if row.op is Op.CONVERT:
        target = {DType.BOOL: "b", DType.F32: "s"}.get(row.type.dtype)
        if target and operands[0].dtype != row.type.dtype:
            if target == "s" and not operands[0].is_float:
                return [(Op.CONVERT, "i->f"), ROUND]
            cells = f"{cells[0]}->{target}"
        return [(Op.CONVERT, cells)]
    kernels: list[Key] = [(row.op, cells)]
    if row.type.dtype is DType.F32 and row.op not in _EXACT:
        kernels.append(ROUND)
    return kernels


#: Ops whose float32 result needs no rounding.
_EXACT = {Op.NEG, Op.ABS, Op.SIGN, Op.SELECT, Op.MAXIMUM, Op.MINIMUM, Op.COPYSIGN, Op.FLOOR,
          Op.CEIL, Op.TRUNC, Op.RINT, Op.STOP}  # fmt: skip
