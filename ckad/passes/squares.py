"""Squares of roots, differentiated where the root is 0.

There a root has no derivative, or an infinite one, and by convention gives 0 (``sqrt`` of a sum
of squares, ``hypot``, ``abs``); its square is smooth nevertheless. So where a row holds the root r
only by its square, as ``r * r``, ``(r / a)**2``, ``hypot(r, z)`` and ``cos(r)`` do, and r is 0, the
row is differentiated by what is under the root instead: by y for ``r = sqrt(y)``, by ``x x + y y``
for ``r = hypot(x, y)``, by ``x x`` for ``r = abs(x)``.

Other rows that hold a root of a sum of squares get nothing through it where it is 0: what is under
it does not change there (``Squares.flat``), so that an infinite slope has nothing to multiply.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from ckad.passes.contributions import plus
from ckad.rules import RULES, Contribution
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType

_ROOTS = (Op.SQRT, Op.ABS, Op.HYPOT)
#: Rows that hold the elements of a root at other places.
_MOVES = (Op.RESHAPE, Op.BROADCAST, Op.TRANSPOSE, Op.SLICE)
#: Rows of parts of their first operand, or sums of them.
_PARTS = frozenset({*_MOVES, Op.SUM, Op.CUMSUM, Op.PAD, Op.ROLL, Op.GATHER, Op.ABS})
#: Rows that are 0 only where operands are, and change as those do.
_JOINTS = frozenset({Op.ADD, Op.DIV, Op.MAXIMUM, Op.MINIMUM, Op.CONCAT, Op.UPDATE})
#: Functions f(s) that are even -> f''(0) / 2, their derivative by s * s where s is 0.
_EVEN = {Op.COS: -0.5, Op.COSH: 0.5}
#: The same of log(1 + exp(s)) - s / 2. The odd part, s / 2, has no second derivative; it is smooth
#: only with what it is added to, as in maximum(x, 0) + log1p(exp(-abs(x))).
_SOFTPLUS = 0.125


class Scaled(NamedTuple):
    """A value that is a root times factors, or that over divisors."""

    root: int
    factors: tuple[int, ...] = ()
    divisors: tuple[int, ...] = ()
    negative: bool = False


class Use(NamedTuple):
    """A row that holds ``root`` by its square, times the product of ``scales``."""

    root: int
    scales: tuple[Scaled, Scaled]
    factor: float = 1.0  # the derivative by the square where the root is 0


class Squares:
    """What is known of a tape: its roots, and the rows that hold them by their squares."""

    def __init__(self, tape: Tape) -> None:
        self.tape, self.rows = tape, tape.rows
        self.scaled: dict[int, Scaled] = {}
        self.under: dict[int, int] = {}  # roots that a choice sets to 0 -> what is under them
        self.uses: dict[int, list[Use]] = {}
        #: sign(x) * abs(x), which is x: its row -> that of abs(x)
        self.signed: dict[int, int] = {}
        #: rows that are never negative, and whose derivative is 0 wherever they are
        self.flat: set[int] = set()
        if any(row.op in _ROOTS for row in self.rows):
            for k, row in enumerate(self.rows):
                self._visit(k, row)
                if row.type.is_float and self._is_flat(row):
                    self.flat.add(k)
        self.wanted = self._wanted()

    def _visit(self, k: int, row: Row) -> None:
        scaled = self._scaled(k, row)
        if scaled is not None:
            self.scaled[k] = scaled
        uses = list(self._uses(row))
        if uses:
            self.uses[k] = uses
        if row.op is Op.MUL:
            ops = {self.rows[x].op: x for x in row.operands}
            if ops.keys() == {Op.SIGN, Op.ABS} and self._same_operand(*row.operands):
                self.signed[k] = ops[Op.ABS]

    def _is_flat(self, row: Row) -> bool:
        op, operands, flat = row.op, row.operands, self.flat
        if op in (Op.MUL, Op.FMA):
            x, y, *rest = operands
            flat_product = (x in flat and y in flat) or self._squares(x, y) or self._squares(y, x)
            return flat_product and flat.issuperset(rest)
        if op is Op.POW:
            return self._holds(operands[1], 2.0) or self._holds(operands[1], 4.0)
        if op is Op.CONST:
            return bool(np.all(self.tape.constants[row.attrs[0]] >= 0))
        if op is Op.SELECT:
            return flat.issuperset(operands[1:])
        if op in _PARTS:
            return operands[0] in flat
        return op in (Op.EXP, Op.COSH) or (op in _JOINTS and flat.issuperset(operands))

    def _squares(self, x: int, y: int) -> bool:
        """Whether x is y, or a flat row times y."""
        row = self.rows[x]
        if x == y or row.op is not Op.MUL or y not in row.operands:
            return x == y
        one, other = row.operands
        return (other if one == y else one) in self.flat

    def _same_operand(self, x: int, y: int) -> bool:
        return self.rows[x].operands == self.rows[y].operands

    def _scaled(self, k: int, row: Row) -> Scaled | None:
        op, operands, *_ = row
        if op in _ROOTS or (op is Op.SELECT and self._is_guarded(k, row)):
            return Scaled(k) if row.type.is_float else None
        inner = [self.scaled.get(x) for x in operands]
        if op in _MOVES:
            return Scaled(k) if inner[0] else None
        if op is Op.NEG and inner[0]:
            return inner[0]._replace(negative=not inner[0].negative)
        if op is Op.DIV and inner[0] and not inner[1]:
            return inner[0]._replace(divisors=(*inner[0].divisors, operands[1]))
        if op is Op.MUL and (inner[0] is None) != (inner[1] is None):
            (one,) = filter(None, inner)
            other = operands[1] if inner[0] else operands[0]
            return one._replace(factors=(*one.factors, other))
        return None

    def _is_guarded(self, k: int, row: Row) -> bool:
        """Whether it is 0 where y is, and else the root of y: that of 1 where y is 0."""
        condition, zero, root = row.operands
        if self.rows[root].op is not Op.SQRT or not self._holds(zero, 0.0):
            return False
        inside = self.rows[self.rows[root].operands[0]]
        if inside.op is not Op.SELECT or inside.operands[0] != condition:
            return False
        y, test = inside.operands[2], self.rows[condition]
        if test.op is not Op.EQ or y not in test.operands:
            return False
        self.under[k] = y
        return True

    def _holds(self, x: int, number: float) -> bool:
        """Whether row x is this number everywhere."""
        row = self.rows[x]
        if row.op is Op.BROADCAST:
            return self._holds(row.operands[0], number)
        return row.op is Op.CONST and bool(np.all(self.tape.constants[row.attrs[0]] == number))

    def _uses(self, row: Row) -> Iterator[Use]:
        op, operands, *_ = row
        inner = [self.scaled.get(x) for x in operands[:2]]
        if op in (Op.MUL, Op.FMA) and inner[0] and inner[1] and inner[0].root == inner[1].root:
            yield Use(inner[0].root, (inner[0], inner[1]))
        elif (op is Op.POW and inner[0] and self._holds(operands[1], 2.0)) or op in _EVEN:
            if inner[0]:
                yield Use(inner[0].root, (inner[0], inner[0]), _EVEN.get(op, 1.0))
        elif op is Op.HYPOT:
            yield from (Use(one.root, (one, one), 0.5) for one in inner if one)
        elif op in (Op.LOG, Op.LOG1P):
            one = self.scaled.get(self._exponent(row))
            if one:
                yield Use(one.root, (one, one), _SOFTPLUS)

    def _exponent(self, row: Row) -> int:
        """s of log(1 + exp(s)), else -1."""
        power = row.operands[0]
        if row.op is Op.LOG and self.rows[power].op is Op.ADD:
            ones = [x for x in self.rows[power].operands if not self._holds(x, 1.0)]
            power = ones[0] if len(ones) == 1 else -1
        elif row.op is Op.LOG:
            return -1
        return self.rows[power].operands[0] if self.rows[power].op is Op.EXP else -1

    def _wanted(self) -> set[int]:
        """The roots whose squares are read, and the roots that these hold by their squares."""
        found = {use.root for uses in self.uses.values() for use in uses}
        for k in range(max(found, default=-1), -1, -1):
            if k in found and self.rows[k].op in (*_MOVES, Op.HYPOT):
                inner = (self.scaled.get(x) for x in self.rows[k].operands)
                found.update(one.root for one in inner if one)
        return found


class _Emitter:
    """What both modes emit."""

    def __init__(self, b: Builder, squares: Squares, env: Mapping[int, int]) -> None:
        self.b, self.squares, self.env = b, squares, env

    def is_zero(self, k: int) -> int:
        x = self.env[k]
        return self.b.eq(x, self.b.full_like(x, 0.0))

    def times(self, value: int, scales: Iterable[Scaled]) -> int:
        """``value`` times what the roots are scaled by."""
        b, negative = self.b, False
        for scaled in scales:
            for x in scaled.factors:
                value = b.mul(value, self.env[x])
            for x in scaled.divisors:
                value = b.div(value, self.env[x])
            negative ^= scaled.negative
        return b.neg(value) if negative else value

    def by_square(self, k: int, use: Use, change: int) -> int:
        """``change`` times the derivative of row k by the square of the root, where that is 0."""
        b = self.b
        scaled = self.times(change, use.scales)
        if use.factor != 1.0:
            scaled = b.mul(scaled, b.full_like(scaled, use.factor))
        if self.squares.rows[k].op is not Op.HYPOT:
            return scaled
        nothing, zero = self.is_zero(k), b.full_like(scaled, 0.0)
        length = b.select(nothing, b.full_like(scaled, 1.0), self.env[k])
        return b.select(nothing, zero, b.div(scaled, length))


class Pushed(_Emitter):
    """Tangents of squares of roots, and of the rows that hold them."""

    def __init__(
        self, b: Builder, squares: Squares, env: Mapping[int, int], tangents: Mapping[int, int]
    ) -> None:
        super().__init__(b, squares, env)
        self.tangents = tangents
        self.of: dict[int, tuple[int, int]] = {}  # root -> where it is 0, tangent of its square

    def tangent(self, k: int, usual: int) -> int:
        """The tangent of row k, which is ``usual`` where no root is 0."""
        b, row = self.b, self.squares.rows[k]
        for use in self.squares.uses.get(k, ()):
            if use.root in self.of:
                nothing, moved = self.of[use.root]
                grown = self._even(row, usual, self.by_square(k, use, moved))
                usual = b.select(nothing, grown, usual)
        if k in self.squares.signed:
            (x,) = self.squares.rows[self.squares.signed[k]].operands
            usual = b.select(self.is_zero(x), self.tangents[x], usual)
        if k in self.squares.wanted:
            self._root(k, row)
        return usual

    def _even(self, row: Row, usual: int, change: int) -> int:
        if row.op is Op.FMA and row.operands[2] in self.tangents:
            return self.b.add(change, self.tangents[row.operands[2]])
        if row.op in (Op.MUL, Op.FMA, Op.POW):
            return change
        return self.b.add(usual, change)

    def _root(self, k: int, row: Row) -> None:
        """Note where row k is 0, and the tangent of its square there."""
        b, y = self.b, self.squares.under.get(k, row.operands[0])
        if row.op in _MOVES:
            one = self.squares.scaled[y]
            if one.root in self.of:  # else it is a factor alone that moves
                nothing, moved = self.of[one.root]
                moved = self.times(moved, (one, one))
                mask = row.type.with_dtype(DType.BOOL)
                nothing = b.emit(row.op, (nothing,), row.attrs, mask)
                self.of[k] = nothing, b.emit(row.op, (moved,), row.attrs, row.type)
        elif row.op in (Op.SQRT, Op.SELECT):
            self.of[k] = self.is_zero(k), self.tangents[y]
        else:
            terms = [self._of_square(x) for x in row.operands if x in self.tangents]
            self.of[k] = self.is_zero(k), terms[0] if len(terms) == 1 else b.add(*terms)

    def _of_square(self, x: int) -> int:
        """The tangent of x * x."""
        b, one = self.b, self.squares.scaled.get(x)
        usual = b.mul(b.add(self.env[x], self.env[x]), self.tangents[x])
        if one is None or one.root not in self.of:
            return usual
        nothing, moved = self.of[one.root]
        return b.select(nothing, self.times(moved, (one, one)), usual)


class Pulled(_Emitter):
    """Cotangents by squares of roots, gathered until the roots are reached."""

    def __init__(self, b: Builder, squares: Squares, env: Mapping[int, int]) -> None:
        super().__init__(b, squares, env)
        self.ct: dict[int, int] = {}  # by the square of a root
        self.ct_signed: dict[int, int] = {}  # by x, of a root abs(x)

    def received(self, k: int, ct: int) -> int:
        """The cotangent of row k, as far as its own rule is to see it."""
        row = self.squares.rows[k]
        if row.op is not Op.SQRT or row.operands[0] not in self.squares.flat:
            return ct
        return self.b.select(self.is_zero(k), self.b.full_like(ct, 0.0), ct)

    def contributions(
        self, k: int, ct: int, usual: Iterable[Contribution]
    ) -> Iterator[tuple[int, Contribution]]:
        """What row k adds to which rows; ``usual`` is what it adds to its operands elsewhere."""
        row, squares = self.squares.rows[k], self.squares
        for use in squares.uses.get(k, ()):
            self._add(use.root, self.by_square(k, use, ct))
        if k in squares.signed:
            _gather(self.b, self.ct_signed, squares.signed[k], ct)
        if k in self.ct:
            yield from self._of_root(k, row, ct, tuple(usual))
        else:
            yield from zip(row.operands, usual, strict=True)
        if k in self.ct_signed:
            (x,) = row.operands
            yield x, self._where(self.is_zero(x), self.ct_signed[k])

    def _where(self, mask: int, x: int) -> int:
        return self.b.select(mask, x, self.b.full_like(x, 0.0))

    def _add(self, k: int, ct: int) -> None:
        """Gather ``ct`` by the square of row k, or of the root that this only moves."""
        row = self.squares.rows[k]
        if row.op not in _MOVES:
            return _gather(self.b, self.ct, k, ct)
        rule = RULES[row.op].vjp
        assert rule is not None
        (x,) = row.operands
        (pulled,) = rule(self.b, ct, self.env[k], self.env[x], attrs=row.attrs)
        assert pulled is not None
        pulled = pulled(self.b, None) if callable(pulled) else pulled
        one = self.squares.scaled[x]
        return self._add(one.root, self.times(pulled, (one, one)))

    def _of_root(
        self, k: int, row: Row, ct: int, usual: tuple[Contribution, ...]
    ) -> Iterator[tuple[int, Contribution]]:
        b, nothing, square = self.b, self.is_zero(k), self.ct[k]
        if row.op is Op.SQRT:
            (y,), (given,) = row.operands, usual
            yield y, b.select(nothing, b.add(given, square), given)
        elif row.op is Op.HYPOT:
            yield from self._of_hypot(k, row, nothing, b.select(nothing, square, ct))
        elif row.op is Op.ABS:
            (x,), (given,) = row.operands, usual
            double = b.add(self.env[x], self.env[x])
            yield x, b.select(nothing, b.mul(square, double), given)
        else:
            yield from zip(row.operands, usual, strict=True)
            yield self.squares.under[k], self._where(nothing, square)

    def _of_hypot(
        self, k: int, row: Row, nothing: int, ct: int
    ) -> Iterator[tuple[int, Contribution]]:
        """With the products of the usual contributions, so that sums take up the same ones."""
        b, out = self.b, self.env[k]
        length = b.select(nothing, b.full_like(out, 1.0), out)
        for x in row.operands:
            double = b.add(self.env[x], self.env[x])
            yield x, b.mul(ct, b.select(nothing, double, b.div(self.env[x], length)))
            one = self.squares.scaled.get(x)
            if one is not None:
                square = self._where(nothing, self.ct[k])
                self._add(one.root, self.times(square, (one, one)))


def _gather(b: Builder, total: dict[int, int], k: int, ct: int) -> None:
    total[k] = plus(b, total[k], ct) if k in total else ct
