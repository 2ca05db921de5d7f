"""Fused multiply-add: a product that one sum alone reads joins it, as x y + z rounded once.

It is the one pass that changes numbers, by the rounding that it saves. A primal value may be
computed in several bodies, so its rows are fused once, before the tape is differentiated; of a
derivative only the rows that depend on its seeds are, before it is split into bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape


def fma(tape: Tape) -> Tape:
    """``tape`` with every sum or difference of a product fused with it, in its bodies too.

    The product has to be read by this row alone, so that there are never more products than
    before. Values change by rounding: apply it to a primal tape, once, before differentiation.
    """
    return fuse(tape, [True] * len(tape), fma)


def fuse(
    tape: Tape, chosen: Sequence[bool], on_body: Callable[[Tape], Tape] = lambda body: body
) -> Tape:
    """Fuse the sums and differences among the rows that are ``chosen``."""
    products = _products(tape, chosen)
    if not products and not tape.bodies:
        return tape
    absorbed = set(products.values())
    b, env = Builder(), [-1] * len(tape)
    signs = _Signs(b)
    for k, row in enumerate(tape.rows):
        if k in products:
            b.where = tape.sources[row.source]
            env[k] = _fused(signs, row, products[k], tape.rows[products[k]], env)
        elif k not in absorbed:
            env[k] = b.copy_row(tape, k, env, on_body)
    return b.tape([env[k] for k in tape.outputs.tolist()])


def _products(tape: Tape, chosen: Sequence[bool]) -> dict[int, int]:
    """Row of a sum -> row of the product that it takes up, the later one of two."""
    reads = _reads(tape)
    rows, outputs = tape.rows, set(tape.outputs.tolist())
    found: dict[int, int] = {}
    for k, (op, operands, _, type, _) in enumerate(rows):
        if (op is Op.ADD or op is Op.SUB) and chosen[k] and type.is_float:
            free = [x for x in operands if rows[x].op is Op.MUL and reads[x] == 1]
            if free and not _is_tally(tape, k, reads, outputs):
                found[k] = max(free)
    return found


def _is_tally(tape: Tape, k: int, reads: Sequence[int], outputs: set[int]) -> bool:
    """Whether row k is a scalar that steps only add to: they wait for it, and a sum is faster."""
    rows = tape.rows
    if k not in outputs or reads[k] > 1 or rows[k].type.size > 1:
        return False
    return any(rows[x].op is Op.INPUT and reads[x] == 1 for x in rows[k].operands)


def _reads(tape: Tape) -> list[int]:
    """How often each value is read, by rows and as an output."""
    counts = [0] * len(tape)
    for row in tape.rows:
        for x in row.operands:
            counts[x] += 1
    for x in tape.outputs.tolist():
        counts[x] += 1
    return counts


def _fused(signs: _Signs, row: Row, at: int, product: Row, env: Sequence[int]) -> int:
    x, y = (env[v] for v in product.operands)
    first = row.operands[0] == at
    z = env[row.operands[1 if first else 0]]
    if row.op is Op.SUB and first:
        z = signs.negative(z)
    elif row.op is Op.SUB:
        x, y = signs.negative_product(x, y)
    return signs.b.append(Op.FMA, (x, y, z), (), row.type)


class _Signs:
    """Values with the other sign, each made once."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.made: dict[int, int] = {}

    def negative(self, x: int) -> int:
        if x not in self.made:
            self.made[x] = self._known(x) if self._is_known(x) else self.b.neg(x)
        return self.made[x]

    def negative_product(self, x: int, y: int) -> tuple[int, int]:
        """The factors with the sign of one changed, of y if that costs less."""
        if self._is_free(y) and not self._is_free(x):
            return x, self.negative(y)
        return self.negative(x), y

    def _is_free(self, x: int) -> bool:
        return x in self.made or self._is_known(x)

    def _is_known(self, x: int) -> bool:
        op, operands, *_ = self.b.rows[x]
        return op in (Op.CONST, Op.NEG) or (op is Op.BROADCAST and self._is_known(operands[0]))

    def _known(self, x: int) -> int:
        row = self.b.rows[x]
        if row.op is Op.NEG:
            return row.operands[0]
        if row.op is Op.BROADCAST:
            return self.b.broadcast_to(self.negative(row.operands[0]), row.type.shape)
        return self.b.const(np.negative(self.b.constants[row.attrs[0]]))
