"""Ranges of integers: indices that are proven to be in range are not checked.

A WRAP row brings an index into [0, n) and stops the program where it cannot. Where the ranges of
the loops around it prove that it is there already, or among the negative ones that NumPy counts
from the end, the row goes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import inf

import numpy as np

from ckad.passes.affine import LARGEST, Sum, Symbols
from ckad.tape.builder import Builder
from ckad.tape.control import COUNTED, WHILE, Loop, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType

_WHOLE = (DType.I64, DType.BOOL)
_COMPARISONS = (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE)
#: Ops whose results are elements of their operands.
_MOVES = (Op.RESHAPE, Op.BROADCAST, Op.TRANSPOSE, Op.SLICE, Op.ROLL, Op.CONCAT, Op.UPDATE,
          Op.GATHER, Op.SCATTER, Op.REDUCE_MAX, Op.REDUCE_MIN, Op.CONVERT)  # fmt: skip


def in_range(tape: Tape) -> Tape:
    """``tape`` without the WRAP rows of indices that are proven to be in range."""
    if not _has_wraps(tape):
        return tape
    symbols = Symbols()
    return Ranges(tape, [_any(symbols, t.dtype) for t in tape.input_types], symbols).run()


def _has_wraps(tape: Tape) -> bool:
    return any(row.op is Op.WRAP for row in tape.rows) or any(map(_has_wraps, tape.bodies))


def _any(symbols: Symbols, dtype: DType) -> Sum:
    return symbols.new([0], [1]) if dtype is DType.BOOL else symbols.new()


class Ranges:
    """One tape being rewritten; ``inputs`` are the values of its inputs.

    The value of an array is that of its element at some place, the same for all arrays of a sum.
    """

    def __init__(self, tape: Tape, inputs: Sequence[Sum], symbols: Symbols) -> None:
        self.tape, self.rows, self.symbols = tape, tape.rows, symbols
        self.inputs = inputs
        self.values: dict[int, Sum] = {}
        self.results: dict[int, list[Sum]] = {}
        self.b, self.env = Builder(), list[int]()

    def run(self) -> Tape:
        for k, row in enumerate(self.rows):
            self.b.where = self.tape.sources[row.source]
            if row.op is Op.WRAP:
                self.env.append(self._wrap(k, row))
                continue
            self.env.append(self.copied(k, row))
            if row.type.dtype in _WHOLE:
                self.values[k] = self._followed(k, row)
        return self.b.tape([self.env[k] for k in self.tape.outputs.tolist()])

    def copied(self, k: int, row: Row) -> int:
        """The row in the new tape."""
        if row.op not in (Op.LOOP, Op.COND):
            return self.b.copy_row(self.tape, k, self.env)
        return self.b.copy_row(self.tape, k, self.env, self._bodies(k, row))

    def value(self, k: int) -> Sum:
        """What is known of an integer row; anything for others, which nobody asks for."""
        if k not in self.values:
            self.values[k] = _any(self.symbols, self.rows[k].type.dtype)
        return self.values[k]

    # --- indices --------------------------------------------------------------------------------

    def _wrap(self, k: int, row: Row) -> int:
        (x,), n = row.operands, row.attrs[0]
        value = self.value(x)
        least, most = self.symbols.bounds(value)
        if least >= 0 and most < n:
            self.values[k] = value
            return self.env[x]
        if -n <= least and most < 0:
            self.values[k] = value + Sum(n)
            return self.b.add(self.env[x], self.b.broadcast_to(self.b.const(n), row.type.shape))
        if least >= 0:
            # what follows is reached by indices in range alone
            self.values[k] = self.symbols.new([0, value], [n - 1, value])
        else:
            self.values[k] = self.symbols.new([0], [n - 1])
        return self.b.copy_row(self.tape, k, self.env)

    # --- values ---------------------------------------------------------------------------------

    def _followed(self, k: int, row: Row) -> Sum:
        """The value of an integer row; sums that could wrap around are not followed."""
        value = self._value(k, row)
        least, most = self.symbols.bounds(value)
        if value.terms and len(value.terms) == 1 and value.constant == 0:
            return value
        if least >= -LARGEST and most <= LARGEST:
            return value
        return _any(self.symbols, row.type.dtype)

    def _value(self, k: int, row: Row) -> Sum:
        op, xs = row.op, row.operands
        if op is Op.INPUT:
            return self.inputs[row.attrs[0]]
        if op is Op.CONST:
            return self._constant(self.tape.constants[row.attrs[0]])
        if op is Op.RESULT:
            return self._result(row)
        if row.type.dtype is DType.BOOL or op in _COMPARISONS:
            return self.symbols.new([0], [1])
        if op in (Op.ADD, Op.SUB, Op.NEG, Op.MUL):
            return self._arithmetic(op, [self.value(x) for x in xs])
        rule = _VALUES.get(op)
        if rule is not None:
            return rule(self, *(self.value(x) for x in xs))
        if op in _MOVES and all(self.rows[x].type.dtype in _WHOLE for x in xs):
            return self._moved(row)
        if op is Op.SELECT:
            return self._selected(*xs)
        if op in (Op.ARGMAX, Op.ARGMIN):
            return self.symbols.new([0], [max(1, self.rows[xs[0]].type.size) - 1])
        return self.symbols.new()

    def _constant(self, array: np.ndarray) -> Sum:
        if not array.size:
            return Sum(0)
        least, most = int(array.min()), int(array.max())
        return Sum(least) if least == most else self.symbols.new([least], [most])

    def _arithmetic(self, op: int, xs: list[Sum]) -> Sum:
        if op is Op.NEG:
            return xs[0].times(-1)
        if op is Op.ADD:
            return xs[0] + xs[1]
        if op is Op.SUB:
            return xs[0].minus(xs[1])
        for x, y in (xs, xs[::-1]):
            if not y.terms:
                return x.times(y.constant)
        (a, b), (c, d) = (self.symbols.bounds(x) for x in xs)
        if inf in (b, d) or -inf in (a, c):
            return self.symbols.new()
        corners = [a * c, a * d, b * c, b * d]
        return self.symbols.new([int(min(corners))], [int(max(corners))])

    def _moved(self, row: Row) -> Sum:
        """An element that may come from another place."""
        xs = row.operands
        if row.op is Op.CONVERT or self.rows[xs[0]].type.size == 1 == len(xs):
            return self.value(xs[0])
        sources = xs[:1] if row.op is Op.GATHER else (xs[0], xs[2]) if row.op is Op.SCATTER else xs
        return self._one_of([self.symbols.bounds(self.value(x)) for x in sources])

    def _selected(self, c: int, x: int, y: int) -> Sum:
        """Each value counts where it is taken: ``where(i > 0, i - 1, n - 1)`` is not negative."""
        both = []
        for v, holds in ((x, True), (y, False)):
            noted = self._assume(c, holds)
            both.append(self.symbols.bounds(self.value(v)))
            self._forget(noted)
        return self._one_of(both)

    def _one_of(self, both: Sequence[tuple[float, float]]) -> Sum:
        return self._between(min(least for least, _ in both), max(most for _, most in both))

    def _between(self, least: float, most: float) -> Sum:
        lower = [] if least == -inf else [int(least)]
        return self.symbols.new(lower, [] if most == inf else [int(most)])

    def maximum(self, x: Sum, y: Sum) -> Sum:
        most = max(self.symbols.bounds(v)[1] for v in (x, y))
        return self.symbols.new([x, y], [] if most == inf else [int(most)])

    def minimum(self, x: Sum, y: Sum) -> Sum:
        least = min(self.symbols.bounds(v)[0] for v in (x, y))
        return self.symbols.new([] if least == -inf else [int(least)], [x, y])

    def quotient(self, x: Sum, y: Sum) -> Sum:
        if y.terms or y.constant <= 0:
            return self.symbols.new()
        inverse = Fraction(1) / y.constant
        return self.symbols.new([x.times(inverse) + Sum(inverse - 1)], [x.times(inverse)])

    def remainder(self, x: Sum, y: Sum) -> Sum:
        if y.terms or y.constant <= 0:
            return self.symbols.new()
        least, most = self.symbols.bounds(x)
        if least >= 0 and most < y.constant:
            return x
        return self.symbols.new([0], [y.constant - 1])

    def absolute(self, x: Sum) -> Sum:
        least, most = self.symbols.bounds(x)
        return x if least >= 0 else self._between(0, max(-least, most))

    # --- bodies ---------------------------------------------------------------------------------

    def _result(self, row: Row) -> Sum:
        known = self.results.get(row.operands[0])
        return self.symbols.new() if known is None else known[row.attrs[0]]

    def _bodies(self, k: int, row: Row) -> Callable[[Tape], Tape]:
        bodies = iter(self._loop(k, row) if row.op is Op.LOOP else self._cond(k, row))
        return lambda body: next(bodies)

    def _loop(self, k: int, row: Row) -> list[Tape]:
        loop, symbols = read_loop(self.tape, row), self.symbols
        inner = type(self)(loop.body, self.inputs_of(loop), symbols)
        body = inner.run()
        self.seen(k, [[-1, *loop.carry, *loop.xs, *loop.captured]], [inner])
        outputs = [inner.value(x) for x in loop.body.outputs.tolist()]
        first = [self.value(x) for x in loop.carry]
        n = len(first)
        self.results[k] = [
            *(
                self._one_of([symbols.bounds(x) for x in pair])
                for pair in zip(first, outputs[:n], strict=True)
            ),
            *(self._one_of([symbols.bounds(y)]) for y in outputs[n:]),
        ]
        if loop.guard == WHILE:
            self.results[k][0] = symbols.new([0], [1])
        return [body]

    def inputs_of(self, loop: Loop) -> list[Sum]:
        """What the inputs of a loop's body are."""
        symbols = self.symbols
        last: list[Sum | int] = [loop.length - 1] if loop.length < LARGEST else []
        if loop.guard == COUNTED:
            last += [x.minus(Sum(1)) for x in self._counts(loop.carry[0])]
        i = symbols.new([0], last)
        carry = [self._carried(loop.body, at, x, i) for at, x in enumerate(loop.carry)]
        elements = [self._one_of([symbols.bounds(self.value(x))]) for x in loop.xs]
        return [i, *carry, *elements, *(self.value(x) for x in loop.captured)]

    def seen(self, k: int, fed: list[list[int]], bodies: Sequence[Ranges]) -> None:
        """A row's bodies have been walked; ``fed`` are the rows that their inputs are."""

    def _counts(self, k: int) -> list[Sum]:
        """Bounds of how many steps run, given that there is one."""
        row = self.rows[k]
        if row.op is Op.MAXIMUM:
            below = [x for x in row.operands if self.symbols.bounds(self.value(x))[1] <= 0]
            others = [x for x in row.operands if x not in below]
            if below and len(others) == 1:
                return self._counts(others[0])
        if row.op is Op.MINIMUM:
            return [c for x in row.operands for c in self._counts(x)]
        return [self.value(k)]

    def _carried(self, body: Tape, at: int, x: int, i: Sum) -> Sum:
        """A carried integer: the same in every step, moved by the same each time, or anything."""
        type = self.rows[x].type
        if type.dtype is not DType.I64:
            return _any(self.symbols, type.dtype)
        out, own = int(body.outputs[at]), int(body.inputs[1 + at])
        if out == own:
            return self.value(x)
        row = body.rows[out]
        if row.op in (Op.ADD, Op.SUB):
            left, right = row.operands
            if row.op is Op.ADD and right == own:
                left, right = right, left
            step = body.rows[right]
            if left == own and step.op is Op.CONST and not step.type.shape:
                by = int(body.constants[step.attrs[0]])
                return self.value(x) + i.times(by if row.op is Op.ADD else -by)
        return self.symbols.new()

    def _cond(self, k: int, row: Row) -> list[Tape]:
        fed = [self.value(x) for x in row.operands[1:]]
        bodies, results, walked = [], [], []
        for at, holds in zip(row.attrs[:2], (True, False), strict=True):
            noted = self._assume(row.operands[0], holds)
            inner = type(self)(self.tape.bodies[at], fed, self.symbols)
            bodies.append(inner.run())
            walked.append(inner)
            outputs = [inner.value(x) for x in self.tape.bodies[at].outputs.tolist()]
            results.append([self.symbols.bounds(x) for x in outputs])
            self._forget(noted)
        self.results[k] = [self._one_of(both) for both in zip(*results, strict=True)]
        self.seen(k, [list(row.operands[1:])] * 2, walked)
        return bodies

    def _forget(self, noted: list[tuple[int, bool]]) -> None:
        for note in reversed(noted):
            self.symbols.forget(note)

    def _assume(self, k: int, holds: bool) -> list[tuple[int, bool]]:
        """Note what follows for integers where row k is true, or false."""
        row = self.rows[k]
        if row.op is Op.NOT:
            return self._assume(row.operands[0], not holds)
        if row.op is (Op.AND if holds else Op.OR):
            return [note for x in row.operands for note in self._assume(x, holds)]
        if row.op not in _COMPARISONS:
            return []
        types = [self.rows[x].type for x in row.operands]
        if any(t.dtype is not DType.I64 or t.shape for t in types):
            return []
        x, y = (self.value(v) for v in row.operands)
        op = row.op if holds else _OPPOSITE[row.op]
        found = [self.symbols.at_most(s) for s in _at_most(op, x.minus(y))]
        return [note for note in found if note is not None]


_VALUES: dict[Op, Callable[..., Sum]] = {
    Op.MAXIMUM: Ranges.maximum,
    Op.MINIMUM: Ranges.minimum,
    Op.FLOORDIV: Ranges.quotient,
    Op.MOD: Ranges.remainder,
    Op.ABS: Ranges.absolute,
}
_OPPOSITE = {Op.EQ: Op.NE, Op.NE: Op.EQ, Op.LT: Op.GE, Op.GE: Op.LT, Op.GT: Op.LE, Op.LE: Op.GT}


def _at_most(op: Op, d: Sum) -> list[Sum]:
    """Sums that are at most 0 where ``d op 0`` holds."""
    one = Sum(1)
    return {
        Op.LT: [d + one],
        Op.LE: [d],
        Op.GT: [one.minus(d)],
        Op.GE: [d.times(-1)],
        Op.EQ: [d, d.times(-1)],
        Op.NE: [],
    }[op]
