"""One tape while its code is written: where rows lie, when they are read last, their kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ckad.engines.vm.assembly.grouping import Item, group, members
from ckad.engines.vm.assembly.region import Region
from ckad.engines.vm.isa import Key
from ckad.engines.vm.pairs import Joined, joined_rows
from ckad.passes.liveness import last_reads, readers
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType, Type

#: Rounds to float32.
ROUND: Key = (Op.CONVERT, "f->s")


class Order(NamedTuple):
    """What is the same wherever the code of a tape is written."""

    items: Sequence[Item]
    joined: dict[int, Joined]
    absorbed: set[int]
    last: dict[int, int]  # the item that reads a row last
    named: dict[int, set[int]]  # which results of a control row have rows


#: Of tapes whose rows are joined, and of those whose rows are not: bodies stand at many places.
_known: WeakKeyDictionary[Tape, dict[bool, Order]] = WeakKeyDictionary()


def order_of(tape: Tape, joins: bool) -> Order:
    """The order of a tape's rows; ``joins``: several may be one instruction."""
    known = _known.setdefault(tape, {})
    if joins not in known:
        known[joins] = _ordered(tape, joins)
    return known[joins]


def _ordered(tape: Tape, joins: bool) -> Order:
    items = group(tape, chained=joins)
    joined = _joined(tape, items) if joins else {}
    absorbed = {j.inner for j in joined.values()}

    def operands(k: int) -> tuple[int, ...]:
        if k in joined:
            return joined[k].operands
        return () if k in absorbed else tape.rows[k].operands

    reads = ([x for k in members(item) for x in operands(k)] for item in items)
    last = last_reads(reads, tape.outputs.tolist())
    named: dict[int, set[int]] = {}
    for row in tape.rows:
        if row.op is Op.RESULT:
            named.setdefault(row.operands[0], set()).add(row.attrs[0])
    return Order(items, joined, absorbed, last, named)


def _joined(tape: Tape, items: Sequence[Item]) -> dict[int, Joined]:
    """Pairs within a chain, and among the rows that stand alone."""
    alone = [x for x in items if not isinstance(x, list)]
    readers_of, joined = readers(tape), dict[int, Joined]()
    for rows in (alone, *(x for x in items if isinstance(x, list))):
        joined |= joined_rows(tape, rows, readers_of)
    return joined


class Placement:
    """One tape being assembled: where its rows lie and when they are read last."""

    def __init__(self, tape: Tape, wanted: dict[int, Region], joins: bool) -> None:
        self.tape = tape
        self.items, self.joined, self.absorbed, self.last, self.named = order_of(tape, joins)
        self.region: dict[int, Region] = {}
        self.results: dict[int, list[Region]] = {}
        self.wanted = wanted  # rows that the loop around this body wants in a region of its own
        self.now = 0

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
