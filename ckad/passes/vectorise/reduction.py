"""Carried values that a loop only adds to, or only takes the larger or the smaller of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from typing import NamedTuple

import numpy as np

from ckad.rules import facts
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType


class Mask(NamedTuple):
    """A condition of the loop's body, and what it has to be for a term to count."""

    row: int
    wanted: bool


class Place(NamedTuple):
    """The place along an axis, a row that follows from the loop's index, to which a term goes."""

    row: int
    axis: int


class Term(NamedTuple):
    """What an iteration adds, where all masks are as wanted."""

    op: Op
    row: int
    masks: tuple[Mask, ...] = ()
    place: Place | None = None  # None: it has the shape of the whole


class Kind(NamedTuple):
    """How the terms of all iterations become one, and how that joins what the loop starts from."""

    reduce: Op
    join: Op


#: Ops that no reduction is made of, and no rule for rows takes away where its operands vary.
_FIRM = frozenset(
    (Op.MUL, Op.DIV, Op.POW, Op.SQRT, Op.EXP, Op.EXPM1, Op.LOG, Op.LOG1P, Op.SIN, Op.COS, Op.TANH)
)
#: Other ops whose results vary where one of their operands does.
_VARYING = frozenset(
    (Op.ADD, Op.SUB, Op.NEG, Op.MAXIMUM, Op.MINIMUM, Op.ABS, Op.SUM, Op.MATMUL)
    + (Op.SLICE, Op.RESHAPE, Op.TRANSPOSE, Op.BROADCAST, Op.ROLL, Op.CONCAT, Op.MOD)
)

_KINDS = {
    Op.ADD: Kind(Op.SUM, Op.ADD),
    Op.SUB: Kind(Op.SUM, Op.ADD),
    Op.MAXIMUM: Kind(Op.REDUCE_MAX, Op.MAXIMUM),
    Op.MINIMUM: Kind(Op.REDUCE_MIN, Op.MINIMUM),
    Op.OR: Kind(Op.REDUCE_MAX, Op.OR),
    Op.AND: Kind(Op.REDUCE_MIN, Op.AND),
}


def terms_of(
    rows: Sequence[Row],
    out: int,
    start: Container[int],
    uses: Counter[int],
    follows: Container[int],
    known: Container[int],
) -> list[Term] | None:
    """The terms that lead from what is carried in to ``out``; None if it is no reduction.

    ``start`` are the rows of the carried value, ``follows`` all that depend on it, ``known`` those
    that follow from the loop's index, and are not always the same. No value on the way may be read
    by anything else.
    """
    terms = _Chain(rows, start, uses, follows, known).terms(out, None, (), 1)
    return terms if terms and len({_KINDS[t.op] for t in terms}) == 1 else None


def is_recurrence(body: Tape, n_carry: int) -> bool:
    """Whether steps certainly need what those before them compute, as is seen without a survey: a
    float is carried to itself through what no reduction has, however the body is simplified."""
    inputs, outputs = body.inputs.tolist(), body.outputs.tolist()
    carried = {k: 1 << c for c, k in enumerate(inputs[1 : 1 + n_carry])}
    varies = [False] * len(body.rows)
    reached = [0] * len(body.rows)  # by which carried values, a bit for each,
    firmly = [0] * len(body.rows)  # and which of them through an op that stays
    stays = [False] * len(body.rows)  # whether it varies, or is no number that takes a row away
    for k, (op, operands, attrs, type, _) in enumerate(body.rows):
        if not type.is_float or 0 in type.shape:
            continue
        if op is Op.INPUT:
            varies[k], reached[k] = True, carried.get(k, 0)
        elif op is Op.CONST:
            stays[k] = not np.any(body.constants[attrs[0]] == 1)
            continue
        elif op is Op.BROADCAST and not varies[operands[0]]:
            stays[k] = stays[operands[0]]
            continue
        elif op in _VARYING or op in _FIRM:
            for x in operands:
                varies[k] |= varies[x]
                reached[k] |= reached[x]
                firmly[k] |= firmly[x]
            if op in _FIRM and varies[k] and all(stays[x] for x in operands):
                firmly[k] |= reached[k]
        stays[k] = varies[k]
    return any(firmly[out] >> c & 1 for c, out in enumerate(outputs[:n_carry]))


class _Chain:
    """The way back from the next value of a carry to the present one."""

    def __init__(
        self,
        rows: Sequence[Row],
        start: Container[int],
        uses: Counter[int],
        follows: Container[int],
        known: Container[int],
    ) -> None:
        self.rows, self.start, self.uses, self.follows = rows, start, uses, follows
        self.known = known

    def terms(
        self, k: int, goal: int | None, masks: tuple[Mask, ...], readers: int
    ) -> list[Term] | None:
        """The terms from ``goal``, or from the start, to row k, which has so many readers."""
        found: list[Term] = []
        while k != goal:
            if self.uses[k] != readers:
                return None
            if k in self.start:
                return found[::-1] if goal is None else None
            op, operands, _, type, _ = self.rows[k]
            if op is Op.SELECT:
                step = self._through_choice(operands, masks)
                if step is None:
                    return None
                k, readers, more = step
                found += more
                continue
            if op is Op.SCATTER:
                added = None if masks else self._added_to_part(self.rows[k])
                if added is None:
                    return None
                found.append(added)
                k, readers = operands[0], 2
                continue
            if op not in _KINDS or (op in (Op.AND, Op.OR) and type.dtype is not DType.BOOL):
                return None
            x, y = operands
            if y in self.follows and op is not Op.SUB:
                x, y = y, x
            if x not in self.follows or y in self.follows:
                return None
            found.append(Term(op, y, masks))
            k, readers = x, 1 if x != goal else readers
        return found[::-1]

    def _through_choice(
        self, operands: Sequence[int], masks: tuple[Mask, ...]
    ) -> tuple[int, int, list[Term]] | None:
        """``x + term if c else x`` leads to x, which has two readers."""
        c, *sides = operands
        if c in self.follows:
            return self._through_logic(c, sides, masks)
        if sides[1] not in self.follows:  # a harmless number where the mask is not as wanted
            return (sides[0], 1, []) if any(self._is_mask(c, m) for m in masks) else None
        for wanted, x, kept in ((True, sides[0], sides[1]), (False, sides[1], sides[0])):
            if x in self.follows and kept in self.follows:
                terms = self.terms(x, kept, (*masks, Mask(c, wanted)), 1)
                if terms is not None:
                    return kept, 2, terms[::-1]
        return None

    def _through_logic(
        self, c: int, sides: Sequence[int], masks: tuple[Mask, ...]
    ) -> tuple[int, int, list[Term]] | None:
        """``x or term`` is x where x is true, ``x and term`` where it is not."""
        for op, (kept, new) in ((Op.OR, sides), (Op.AND, sides[::-1])):
            if kept == c and new not in self.follows:
                return c, 2, [Term(op, new, masks)]
        return None

    def _added_to_part(self, scatter: Row) -> Term | None:
        """The term of ``x[i] = x[i] + term``, where x has two readers."""
        (x, index, new), (axis, *_) = scatter.operands, scatter.attrs
        row = self.rows[new]
        if index not in self.known or row.op not in (Op.ADD, Op.SUB) or self.uses[new] != 1:
            return None
        part, term = row.operands
        if part not in self.follows and row.op is Op.ADD:
            part, term = term, part
        gather = self.rows[part]
        same = gather.op is Op.GATHER and (*gather.operands, gather.attrs) == (x, index, (axis,))
        if not same or self.uses[part] != 1 or term in self.follows:
            return None
        return Term(row.op, term, (), Place(index, axis))

    def _is_mask(self, c: int, mask: Mask) -> bool:
        """Whether ``c`` is true exactly where the mask is as wanted."""
        x, m = self._scalar(c), self._scalar(mask.row)
        if mask.wanted:
            return x == m
        return self.rows[x].op is Op.NOT and self.rows[x].operands[0] == m

    def _scalar(self, c: int) -> int:
        while self.rows[c].op is Op.BROADCAST:
            c = self.rows[c].operands[0]
        return c


def masked(b: Builder, op: Op, x: int, mask: int, wanted: bool) -> int:
    """``x`` where the mask is as wanted, elsewhere what changes nothing."""
    neutral = b.full_like(x, facts.neutral(op, b.type(x).numpy))
    return b.select(mask, x, neutral) if wanted else b.select(mask, neutral, x)


def joined(b: Builder, terms: Sequence[tuple[Op, int]]) -> int:
    """The terms of each iteration as one."""
    (first, x), *rest = terms
    if first is Op.SUB:
        x = b.neg(x)
    for op, y in rest:
        x = b.emit(op, (x, y))
    return x


def total(b: Builder, op: Op, start: int, x: int) -> int:
    """``start`` joined with the terms of all iterations, which are the first axis of ``x``."""
    kind = _KINDS[op]
    return b.emit(kind.join, (start, b.emit(kind.reduce, (x,), (0,))))
