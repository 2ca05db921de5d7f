"""Sums of products become products of matrices, of which rows are read between known bounds.

What a loop over rows computes by parts of rows, as ``y[i] = a[i, :i] @ b[:i]``, is for all i a sum
of whole rows under a mask, with three axes. It is the product of two matrices of which one is read
under the mask, or of which nothing else is computed: nobody lays three axes out in memory, and no
element outside of the mask is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from ckad.passes.contract.bounds import between
from ckad.passes.contract.chosen import chosen_by
from ckad.passes.contract.terms import Factor, Term, Terms, Unknown
from ckad.passes.cse import Sharing
from ckad.passes.rewrite import rebuild
from ckad.rules.routines.bounded import product, samples
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType

#: Sums of fewer products stay in registers.
LEAST = 1 << 14
#: The axes of a MATMUL: of stacks, rows, what is summed, columns.
_STACK, _ROW, _INNER, _COLUMN = range(4)


def contracted(tape: Tape) -> Tape:
    """``tape`` with such sums as products of matrices, not so in its bodies."""
    if not any(map(_may_be_sum, tape.rows)):
        return tape
    rewritten = partial(_rewritten, chosen_by(tape, _may_be_sum))
    return rebuild(tape, rewritten, lambda body: body, Sharing())


def _may_be_sum(row: Row) -> bool:
    return row.op in (Op.SUM, Op.MATMUL) and row.type.dtype is DType.F64


def _rewritten(
    chosen: Mapping[int, frozenset[int]], b: Builder, row: Row, env: list[int]
) -> int | None:
    if not _may_be_sum(row):
        return None
    xs = [env[x] for x in row.operands]
    masks = [env[k] for k in chosen.get(len(env), ()) if k < len(env)]
    try:
        return (_sum if row.op is Op.SUM else _matmul)(b, row, xs, masks)
    except Unknown:
        return None


def _sum(b: Builder, row: Row, xs: Sequence[int], masks: Sequence[int]) -> int:
    (x,) = xs
    sizes = dict(enumerate(b.type(x).shape))
    summed = [a for a in row.attrs if sizes[a] != 1]
    if not _are_three(sizes) or len(summed) != 1:
        raise Unknown
    terms = Terms(b)
    under = _under(terms, masks, [a for a, n in sizes.items() if n != 1 and a not in summed])
    return b.reshape_to(_total(b, terms.of(x, under), sizes, summed[0]), row.type.shape)


def _matmul(b: Builder, row: Row, xs: Sequence[int], masks: Sequence[int]) -> int:
    """Vectors by matrices that are parts of one."""
    left, right = (_STACK, _ROW, _INNER), (_STACK, _INNER, _COLUMN)
    places = [
        (_STACK, axes[2], axes[1]) if turned else axes
        for turned, axes in zip(row.attrs, (left, right), strict=True)
    ]
    lengths = [b.type(k).shape for k in xs]
    sizes = dict(zip(places[0], lengths[0], strict=True))
    sizes |= zip(places[1], lengths[1], strict=True)
    if not _are_three(sizes) or sizes[_INNER] == 1 or sizes[_STACK] == 1:
        raise Unknown
    terms = Terms(b)
    under = _under(terms, masks, [a for a in (_STACK, _ROW, _COLUMN) if sizes[a] != 1])
    made = terms.of_product(xs[0], xs[1], places, under)
    return b.reshape_to(_total(b, made, sizes, _INNER), row.type.shape)


def _under(terms: Terms, masks: Sequence[int], axes: Sequence[int]) -> frozenset[Factor]:
    """The masks of a sum's two axes under which alone it is looked at, their bounds being known."""
    found = [core for mask in masks for core in terms.cores(mask, axes)]
    known = all(f.axes == tuple(axes) and between(terms.b, f.row) for f in found)
    return frozenset(found) if known else frozenset()


def _are_three(sizes: Mapping[int, int]) -> bool:
    """Whether a sum has three axes longer than one, and many terms."""
    wide = [n for n in sizes.values() if n != 1]
    return len(wide) == 3 and int(np.prod(wide)) >= LEAST


def _total(b: Builder, terms: Sequence[Term], sizes: Mapping[int, int], summed: int) -> int:
    """The sum of all terms over one axis; the other two in order."""
    wide = sorted(a for a, n in sizes.items() if n != 1)
    rows, columns = (a for a in wide if a != summed)
    parts = [_Matrices(b, term, sizes, (rows, summed, columns)).product() for term in terms]
    (first, total), *rest = parts
    if first:
        total = b.neg(total)
    for negative, part in rest:
        total = b.sub(total, part) if negative else b.add(total, part)
    return total


class _Matrices:
    """The two matrices that a term is the product of: of its rows, and of its columns."""

    def __init__(
        self, b: Builder, term: Term, sizes: Mapping[int, int], axes: tuple[int, int, int]
    ) -> None:
        self.b, self.term, self.sizes = b, term, sizes
        self.rows, self.summed, self.columns = axes
        self.made = {k: self._factors(k) for k in (self.rows, self.columns)}
        self._scale()

    def product(self) -> tuple[bool, int]:
        """Whether the term counts as negative, and its sum."""
        return self.term.negative, self._product()

    def _product(self) -> int:
        b, (r, s, c) = self.b, (self.rows, self.summed, self.columns)
        if not self.term.masks:
            pair = self._turned(r, (r, s)), self._turned(c, (s, c))
            stacked = [b.reshape_to(x, (1, *b.type(x).shape)) for x in pair]
            made = b.matmul(*stacked, attrs=(0, 0))
            return b.reshape_to(made, (self.sizes[r], self.sizes[c]))
        (by, along), bounds = self._between()
        if {by, along} == {r, c}:
            other = along
            made = samples(b, self._turned(by, (by, s)), self._turned(other, (other, s)), bounds)
            return made if by == r else b.transpose(made, attrs=(1, 0))
        part, whole = (r, c) if r in (by, along) else (c, r)
        matrices = self._turned(part, (by, along)), self._turned(whole, (s, whole))
        made = product(b, *matrices, bounds, transposed=by == s)
        return made if part == r else b.transpose(made, attrs=(1, 0))

    def _between(self) -> tuple[tuple[int, int], list[int]]:
        """The axis that has bounds, the one along which they are, and these."""
        axes, *others = {mask.axes for mask in self.term.masks}
        if others or len(axes) != 2:
            raise Unknown
        n, length = (self.sizes[a] for a in axes)
        low, high = np.zeros(n, np.int64), np.full(n, length)
        for mask in self.term.masks:
            found = between(self.b, mask.row)
            if found is None:
                raise Unknown
            low, high = np.maximum(low, found[0]), np.minimum(high, found[1])
        return (axes[0], axes[1]), [self.b.const(x) for x in (low, np.maximum(low, high))]

    def _factors(self, axis: int) -> int:
        """The product of all factors of an axis and the one that is summed."""
        pair = tuple(sorted((axis, self.summed)))
        found = [f.row for f in self.term.factors if f.axes == pair]
        if not found:
            raise Unknown
        total = found[0]
        for row in found[1:]:
            total = self.b.mul(total, row)
        return total

    def _scale(self) -> None:
        """Factors of one axis, and numbers, multiply the smaller of the matrices that have it."""
        for f in self.term.factors:
            fit = [k for k in self.made if set(f.axes) <= {k, self.summed}]
            if not fit:
                raise Unknown
            if len(f.axes) < 2:
                k = min(fit, key=lambda k: self.sizes[k])
                pair, type = sorted((k, self.summed)), self.b.type(self.made[k])
                own = [self.sizes[a] if a in f.axes else 1 for a in pair]
                scale = self.b.broadcast_to(self.b.reshape_to(f.row, own), type.shape)
                self.made[k] = self.b.mul(self.made[k], scale)

    def _turned(self, k: int, order: tuple[int, int]) -> int:
        """One of the two with its axes in an order."""
        x = self.made[k]
        return x if order[0] < order[1] else self.b.transpose(x, attrs=(1, 0))
