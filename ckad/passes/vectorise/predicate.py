"""Branches of a loop's body as choices: both sides are computed, what the taken one wrote stays.

What a side computes of its surroundings where it is not taken is computed of a harmless number
instead. So nothing there can stop the program or be infinite, and no derivative of it reaches
anything: a cotangent ends at the choice that let the number in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ckad.passes.cse import Sharing
from ckad.rules.facts import FINITE, harmless
from ckad.tape.builder import Builder
from ckad.tape.control import Loop
from ckad.tape.ops import OPS, Group, Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType

#: Branches with more rows stay branches.
MOST_ROWS = 100
#: Ops that move elements of arrays and compute nothing.
_MOVES = (Op.RESHAPE, Op.BROADCAST, Op.TRANSPOSE, Op.SLICE, Op.GATHER)

#: The least and the greatest that an integer can be.
Interval = tuple[int, int]


def predicated(tape: Tape, ranges: Mapping[int, Interval]) -> Tape:
    """A loop's body without the branches that can be choices; ``ranges`` are those of inputs."""
    if not any(row.op is Op.COND for row in tape.rows):
        return tape
    b = Sharing()
    env: list[int] = []
    results: dict[int, list[int]] = {}
    known = Intervals(b, ranges)
    for k, row in enumerate(tape.rows):
        b.where = tape.sources[row.source]
        if row.op is Op.COND and all(_fits(tape.bodies[t]) for t in row.attrs):
            operands = [env[x] for x in row.operands]
            inner = known.of_all(operands[1:])
            sides = [predicated(tape.bodies[t], inner) for t in row.attrs]
            env.append(-1)
            results[k] = _both(b, known, sides, operands)
        elif row.op is Op.RESULT and row.operands[0] in results:
            env.append(results[row.operands[0]][row.attrs[0]])
        else:
            env.append(b.copy_row(tape, k, env))
    return b.tape([env[k] for k in tape.outputs.tolist()])


def _fits(side: Tape) -> bool:
    """Whether a branch holds only rows that may run for nothing."""
    if len(side) > MOST_ROWS:
        return False
    for row in side.rows:
        if row.op is Op.COND:
            if not all(_fits(side.bodies[t]) for t in row.attrs):
                return False
        elif OPS[row.op].group in (Group.CONTROL, Group.CALL):
            return False
    return True


class Intervals:
    """What is known of the scalar integers of a tape in the making."""

    def __init__(self, b: Builder, inputs: Mapping[int, Interval]) -> None:
        self.b, self.inputs = b, inputs

    def of(self, x: int) -> Interval | None:
        """The range of a row, if it follows from those of the inputs."""
        op, operands, attrs, type, _ = self.b.rows[x]
        if type.shape or type.dtype is not DType.I64:
            return None
        if op is Op.INPUT:
            return self.inputs.get(attrs[0])
        if op is Op.CONST:
            value = int(self.b.constants[attrs[0]])
            return value, value
        if op is Op.WRAP:
            return 0, attrs[0] - 1
        if op not in (Op.ADD, Op.SUB, Op.MUL):
            return None
        return _computed(op, *(self.of(k) for k in operands))

    def of_all(self, xs: Sequence[int]) -> dict[int, Interval]:
        """The ranges of rows by their place, where they are known."""
        found = ((at, self.of(x)) for at, x in enumerate(xs))
        return {at: interval for at, interval in found if interval is not None}

    def of_body(self, loop: Loop) -> dict[int, Interval]:
        """The ranges of the inputs of the body of a loop that stands here."""
        first = 1 + len(loop.carry) + len(loop.xs)
        captured = self.of_all(loop.captured)
        return {0: (0, loop.length - 1), **{first + at: found for at, found in captured.items()}}

    def is_natural(self, x: int) -> bool:
        """Whether a number is known not to be negative."""
        interval = self.of(x)
        return interval is not None and interval[0] >= 0


def _computed(op: int, x: Interval | None, y: Interval | None) -> Interval | None:
    if x is None or y is None:
        return None
    if op is Op.ADD:
        return x[0] + y[0], x[1] + y[1]
    if op is Op.SUB:
        return x[0] - y[1], x[1] - y[0]
    products = [a * b for a in x for b in y]
    return min(products), max(products)


def intervals_of(tape: Tape, ranges: Mapping[int, Interval]) -> Intervals:
    """What is known of the integers of a tape; ``ranges`` are those of its inputs."""
    b = Builder()
    b.rows, b.constants = list(tape.rows), list(tape.constants)
    return Intervals(b, ranges)


def _both(
    b: Builder, known: Intervals, sides: Sequence[Tape], operands: Sequence[int]
) -> list[int]:
    """The results of a branch whose sides are both computed."""
    mask, *given = operands
    taken = _Side(b, known, sides[0], mask, given)
    # the other side starts from the arrays that this one wrote to: only one of the two writes
    started = list(given)
    for out in taken.outputs:
        start = taken.started_as(out)
        if start != out and start in given and b.type(start).shape:
            started = [out if x == start else x for x in started]
    other = _Side(b, known, sides[1], b.emit(Op.NOT, (mask,)), started)
    return [
        y if other.started_as(y) == x else _chosen(b, mask, x, y)
        for x, y in zip(taken.outputs, other.outputs, strict=True)
    ]


def _chosen(b: Builder, mask: int, x: int, y: int) -> int:
    if x == y:
        return x
    shape = b.type(x).shape
    return b.emit(Op.SELECT, (b.broadcast_to(mask, shape), x, y))


def _appended(b: Builder, row: Row, xs: Sequence[int]) -> int:
    """A row like ``row``; an array in another shape and back is the array itself."""
    source = xs[0]
    if row.op is not Op.RESHAPE:
        return b.append(row.op, tuple(xs), row.attrs, row.type)
    while b.rows[source].op is Op.RESHAPE:
        source = b.rows[source].operands[0]
    return b.reshape_to(source, row.type.shape)


class _Side:
    """The rows of one side, which count where ``mask`` is true."""

    def __init__(
        self, b: Builder, known: Intervals, side: Tape, mask: int, given: Sequence[int]
    ) -> None:
        self.b, self.known, self.mask = b, known, mask
        self.origin: dict[int, int] = {}  # array after a write -> before it
        self.raw: set[int] = set(given)  # not computed by this side
        # what is no float has no derivative, and what is tame needs no other number
        ops = {row.op for row in side.rows}
        floats = any(t.is_float for t in side.output_types)
        self.is_harmless = not floats and ops <= FINITE | {*_MOVES, Op.INPUT, Op.CONST, Op.WRAP}
        env: list[int] = []
        for k, row in enumerate(side.rows):
            b.where = side.sources[row.source]
            env.append(given[row.attrs[0]] if row.op is Op.INPUT else self._row(side, k, row, env))
        self.outputs = [env[k] for k in side.outputs.tolist()]

    def started_as(self, x: int) -> int:
        """The array that ``x`` was before this side wrote to it."""
        while x in self.origin:
            x = self.origin[x]
        return x

    def _row(self, side: Tape, k: int, row: Row, env: Sequence[int]) -> int:
        b, xs = self.b, [env[x] for x in row.operands]
        if row.op is Op.CONST:
            return b.copy_row(side, k, env)
        if row.op in (Op.SCATTER, Op.UPDATE) and xs[0] in self.raw:
            return self._write(row, xs)
        if row.op is Op.WRAP:
            xs = [self._in_range(xs[0], row.attrs[0])]
        elif row.op not in _MOVES and not self.is_harmless:
            xs = [self._harmless(x, row.op) for x in xs]
        made = _appended(b, row, xs)
        if row.op in _MOVES and xs[0] in self.raw:
            self.raw.add(made)
            if xs[0] in self.origin and made not in self.origin and row.op is not Op.BROADCAST:
                self._remember(made, row, xs)
        return made

    def _remember(self, made: int, row: Row, xs: Sequence[int]) -> None:
        """A view of an array after a write was that view of it before."""
        before = (self.started_as(xs[0]), *xs[1:])
        same = _appended(self.b, row, before)
        if same != made:
            self.origin[made] = same

    def _write(self, row: Row, xs: Sequence[int]) -> int:
        """A write that puts back what was there where the side is not taken."""
        b, x, new = self.b, xs[0], xs[-1]
        old = self._read(row, xs)
        if new in self.origin and self._is_before(new, old):
            made = b.append(row.op, tuple(xs), row.attrs, row.type)
        else:
            kept = _chosen(b, self.mask, new, old)
            made = b.append(row.op, (*xs[:-1], kept), row.attrs, row.type)
        if made != x:
            self.origin[made] = x
        self.raw.add(made)
        return made

    def _is_before(self, new: int, old: int) -> bool:
        while new in self.origin:
            new = self.origin[new]
            if new == old:
                return True
        return False

    def _read(self, row: Row, xs: Sequence[int]) -> int:
        if row.op is Op.SCATTER:
            return self.b.gather(xs[0], xs[1], attrs=row.attrs[:1])
        return self.b.slice(xs[0], attrs=row.attrs, type=self.b.type(xs[-1]))

    def _in_range(self, index: int, n: int) -> int:
        """An index that cannot stop the program where the side is not taken."""
        interval = self.known.of(index)
        if interval is not None and -n <= interval[0] and interval[1] < n:
            return index
        return _chosen(self.b, self.mask, index, self.b.full_like(index, 0))

    def _harmless(self, x: int, op: Op) -> int:
        type = self.b.type(x)
        if op in (Op.FLOORDIV, Op.MOD) and type.dtype is DType.I64:
            return _chosen(self.b, self.mask, x, self.b.full(type, 1))
        if not type.is_float or (x not in self.raw and op in FINITE):
            return x
        if self.b.rows[x].op is Op.CONST:
            return x
        number = harmless(op)
        return _chosen(self.b, self.mask, x, self.b.full(type, number))
