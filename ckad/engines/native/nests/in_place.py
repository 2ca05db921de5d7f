"""Which outputs of a body can take the place of one of its inputs.

They are what is left of an input after writes to parts of it, by rows, loops and branches, each of
them the last to read what it writes over. Loops and branches give such arrays no second place. It
is a prediction, read from the order of rows: where code has to be written in another order, the
array is copied, and copied back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from weakref import WeakKeyDictionary

from ckad.engines.native.nests.boxes import Shape, fused
from ckad.engines.native.nests.fusion import Fusion, Item, Nest
from ckad.passes.liveness import readers
from ckad.tape.control import read_loop, read_reverse_loop
from ckad.tape.extents import Masks
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape

#: Ops that change a part of their first operand.
WRITES = (Op.UPDATE, Op.SLICE_ADD, Op.SCATTER, Op.SCATTER_ADD)

_known: WeakKeyDictionary[Tape, list[int | None]] = WeakKeyDictionary()


def takes_place_of(tape: Tape, output: int) -> int | None:
    """The position of the input whose place the output at a position can take, if any."""
    if tape not in _known:
        places = _Places(tape)
        _known[tape] = [places.input_of(k) for k in tape.outputs.tolist()]
    return _known[tape][output]


class _Places:
    """The outputs of one tape."""

    def __init__(self, tape: Tape) -> None:
        self.tape, self.rows = tape, tape.rows
        self.readers = readers(tape)
        self.masks = Masks(tape.rows, tape.constants)
        self.outputs = tape.outputs.tolist()
        self.positions = {k: at for at, k in enumerate(tape.inputs.tolist())}

    def input_of(self, k: int) -> int | None:
        """The position of the input whose place the output k can take."""
        if self.outputs.count(k) > 1:
            return None
        while k not in self.positions:
            before = self._before(k)
            if before is None:
                return None
            k = before
        return self.positions[k]

    def _before(self, k: int) -> int | None:
        """The row whose place row k takes."""
        row = self.rows[k]
        if row.op is Op.RESHAPE:
            return row.operands[0]
        if (row.op in WRITES or self._is_part(row)) and k in self.nests:
            return self._base(k)
        if row.op in WRITES:
            writer, x = k, row.operands[0]
        elif row.op is Op.RESULT:
            writer = row.operands[0]
            source = operand_taken(self.tape, self.rows[writer], row.attrs[0])
            if source is None:
                return None
            x = source
        else:
            return None
        return x if self._dies(x, writer) else None

    def _is_part(self, row: Row) -> bool:
        """Whether a row may be a write to a part of an array, between bounds."""
        return row.op is Op.SELECT and self.masks.spans(row.operands[0]) is not None

    @cached_property
    def nests(self) -> dict[int, int]:
        """The rows that nests compute, and where these are among the items."""
        items = enumerate(self.fused[0].items)
        return {k: at for at, item in items if isinstance(item, Nest) for k in item.outputs}

    @cached_property
    def fused(self) -> tuple[Fusion, dict[int, Shape]]:
        return fused(self.tape)

    def _base(self, k: int) -> int | None:
        """The row whose place a nest's output can take, if nobody reads it later."""
        fusion, shapes = self.fused
        at = self.nests[k]
        nest = fusion.items[at]
        assert isinstance(nest, Nest)
        x = shapes[id(nest)].bases.get(k)
        if x is None:
            return None
        family = set(self._family(x))
        later = (y for item in fusion.items[at + 1 :] for y in _read(fusion, item))
        same = (y for y in nest.leaves if y != x)
        alone = not family & {*self.outputs, *later, *same}
        return x if alone else None

    def _dies(self, x: int, writer: int) -> bool:
        """Whether ``writer`` reads x once and nobody reads it later, under any shape."""
        family = set(self._family(x))
        reads = [r for k in family for r in self.readers[k] if r not in family]
        if reads.count(writer) != 1 or any(r > writer for r in reads):
            return False
        return not family & set(self.outputs)

    def _family(self, x: int) -> Iterator[int]:
        """The rows that show the same memory."""
        while self.rows[x].op is Op.RESHAPE:
            (x,) = self.rows[x].operands
        shown = [x]
        for k in shown:
            yield k
            shown += [r for r in self.readers[k] if self.rows[r].op is Op.RESHAPE]


def _read(fusion: Fusion, item: Item) -> Sequence[int]:
    return item.leaves if isinstance(item, Nest) else fusion.rows[item].operands


def operand_taken(tape: Tape, row: Row, number: int) -> int | None:
    """The operand of a loop or a branch whose place its result of that number takes."""
    if row.op is Op.COND:
        both = {takes_place_of(tape.bodies[t], number) for t in row.attrs[:2]}
        at = both.pop() if len(both) == 1 else None
        return None if at is None else row.operands[1 + at]
    if row.op in (Op.LOOP, Op.TAPED_LOOP):
        loop = read_loop(tape, row)
        bodies = [body for body in (loop.body, loop.taping) if body is not None]
        if number >= len(loop.carry):
            return None
        own = all(takes_place_of(body, number) == 1 + number for body in bodies)
        return loop.carry[number] if own else None
    if row.op is Op.REVERSE_LOOP:
        reverse = read_reverse_loop(tape, row)
        duals = [*reverse.ct_carry, *reverse.sums]
        if number >= len(duals):
            return None
        first = len(reverse.reverse.inputs) - len(duals) - len(reverse.ct_ys)
        between = len(reverse.ct_ys) if number >= len(reverse.ct_carry) else 0
        own = takes_place_of(reverse.reverse, number) == first + number + between
        return duals[number] if own else None
    return None
