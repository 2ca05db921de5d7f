"""Products with infinite constants, and quotients by constants that are zero, have no derivative.

In ``h = r / k2; h[0] = 0`` with a zero first in ``k2`` nobody sees ``h[0]``, but its cotangent, a
zero, would be divided by it. Where a factor is infinite for sure, the product is so for all numbers
near this one, or no number: it is that of the sign, which nothing is derived by. Elsewhere the
constant stays what it is, so that all values are the same bits. A result of the program is seen:
its derivative is the infinite one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ckad.passes.liveness import last_reads
from ckad.passes.rewrite import in_bodies, rebuild
from ckad.rules.registry import RULES
from ckad.tape.builder import Builder
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.tape import Row, Tape
from ckad.tape.types import Type

#: What moves the elements of constants to others, which may be unknown.
_MOVES = {Op.BROADCAST, Op.RESHAPE, Op.SLICE, Op.TRANSPOSE, Op.CONCAT, Op.UPDATE, Op.NEG}
#: Larger arrays are not looked at.
_MOST_ELEMENTS = 1 << 18

_Test = Callable[[np.ndarray], np.ndarray]
_is_zero: _Test = partial(np.equal, 0.0)
#: Which operands are asked, and what for.
_ASKED: Mapping[Op, tuple[tuple[int, _Test], ...]] = {
    Op.DIV: ((1, _is_zero),),
    Op.MUL: ((0, np.isinf), (1, np.isinf)),
    Op.FMA: ((0, np.isinf), (1, np.isinf)),
}


class _Infinite(NamedTuple):
    """Where the result of a row is infinite by one of its operands."""

    at: int
    where: np.ndarray


def infinite(tape: Tape) -> Tape:
    """``tape`` with such products apart, in its bodies too."""
    found = _found(tape)
    if not found:
        return in_bodies(tape, infinite)
    number = iter(range(len(tape)))

    def rewrite(b: Builder, row: Row, env: list[int]) -> int | None:
        known = found.get(next(number))
        return None if known is None else _apart(b, row, env, known)

    return rebuild(tape, rewrite, infinite)


def _apart(b: Builder, row: Row, env: list[int], known: Sequence[_Infinite]) -> int:
    xs = [env[x] for x in row.operands]
    ordinary, sides = xs.copy(), list[tuple[int, int]]()
    for at, where in known:
        mask, side, factor = b.const(where), xs.copy(), 1 - at
        one = b.full_like(xs[at], 1.0)
        ordinary[at] = b.emit(Op.SELECT, (mask, one, xs[at]), type=b.type(one))
        side[factor] = b.emit(Op.SIGN, (xs[factor],), type=b.type(xs[factor]))
        sides.append((mask, b.append(row.op, tuple(side), row.attrs, row.type)))
    found = b.append(row.op, tuple(ordinary), row.attrs, row.type)
    for mask, infinity in sides:
        found = b.emit(Op.SELECT, (mask, infinity, found), type=row.type)
    return found


def _found(tape: Tape) -> dict[int, list[_Infinite]]:
    """The rows that are apart."""
    found, numbers = dict[int, list[_Infinite]](), _Numbers(tape)
    last = last_reads((row.operands for row in tape.rows), ())
    before: tuple[int, ...] = ()
    for k, (op, operands, _, type, _) in enumerate(tape.rows):
        for x in before:
            if last[x] < k:
                numbers.held.pop(x, None)
        before = operands
        if not type.is_array or type.size > _MOST_ELEMENTS:
            continue
        numbers.follow(k)
        for at, test in _ASKED.get(op, ()) if type.is_float else ():
            x, factor = operands[at], operands[1 - at]
            if k not in tape.outputs and x in numbers.held and factor not in numbers.whole:
                where = test(numbers.held[x])
                if where.any():
                    found.setdefault(k, []).append(_Infinite(at, where))
    return found


class _Numbers:
    """What is known of rows: all elements, or some of those that constants were put among; any
    number stands for the others."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.held: dict[int, np.ndarray] = {}
        self.whole: set[int] = set()

    def follow(self, k: int) -> None:
        op, operands, attrs, type, _ = self.tape.rows[k]
        if op is Op.CONST:
            self.held[k] = self.tape.constants[attrs[0]]
            self.whole.add(k)
        elif op in _MOVES or (is_elementwise(op) and op is not Op.WRAP):  # which stops programs
            is_whole = self.whole.issuperset(operands)
            if is_whole:
                self.whole.add(k)
            elif op not in _MOVES or self.held.keys().isdisjoint(operands):
                return
            given = [self.held[x] if x in self.held else self._any(x) for x in operands]
            self.held[k] = _evaluated(op, type, attrs, given)

    def _any(self, k: int) -> np.ndarray:
        type = self.tape.rows[k].type
        return np.ones(type.shape, type.numpy)


def _evaluated(op: Op, type: Type, attrs: Sequence[int], given: list[np.ndarray]) -> np.ndarray:
    if op is Op.BROADCAST:  # as a view
        return np.broadcast_to(given[0], type.shape)
    evaluate = RULES[op].evaluate
    assert evaluate is not None
    with np.errstate(all="ignore"):
        return np.asarray(evaluate(type, attrs, *given))
