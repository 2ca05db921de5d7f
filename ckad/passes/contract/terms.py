"""A sum over one of three axes as terms: products of factors of at most two axes, under masks.

`Terms` walks from the row that is summed to its operands; `sums` makes a product of each term.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ckad.tape.builder import Builder
from ckad.tape.extents import Masks
from ckad.tape.ops import Op

#: Sums of more terms stay as they are.
MOST_TERMS = 4


class Unknown(Exception):
    """The sum is not made of such terms."""


class Factor(NamedTuple):
    """A row, and the axes along which its elements differ, in order."""

    row: int
    axes: tuple[int, ...]


class Term(NamedTuple):
    """The product of all factors where all masks are true, elsewhere nothing."""

    negative: bool
    factors: tuple[Factor, ...]
    masks: frozenset[Factor]


class _Place(NamedTuple):
    """A row on the way to the factors, and which axis of the product each of its own is."""

    row: int
    axes: tuple[int | None, ...]


class Terms:
    """Reads the terms of what is summed, among rows in the making."""

    def __init__(self, b: Builder) -> None:
        self.b, self.masks = b, Masks(b.rows, b.constants)

    def of(self, row: int, under: frozenset[Factor]) -> list[Term]:
        """The terms of a row with all axes, looked at where the masks ``under`` are true alone;
        Unknown if it has other ones."""
        shape = self.b.type(row).shape
        terms = self._terms(_Place(row, tuple(range(len(shape)))), under)
        return [t._replace(masks=t.masks | under) for t in terms]

    def of_product(
        self, x: int, y: int, axes: Sequence[Sequence[int | None]], under: frozenset[Factor]
    ) -> list[Term]:
        """The same of the product of two rows, whose axes are given."""
        terms = self._product(_Place(x, tuple(axes[0])), _Place(y, tuple(axes[1])), under)
        return [t._replace(masks=t.masks | under) for t in terms]

    def cores(self, mask: int, axes: Sequence[int]) -> list[Factor]:
        """The masks that one is made of; its axes that are longer than one are given."""
        own = iter(axes)
        places = [None if n == 1 else next(own) for n in self.b.type(mask).shape]
        return [*self._cores(_Place(mask, tuple(places)))]

    def _terms(self, at: _Place, under: frozenset[Factor]) -> list[Term]:
        """The terms at a place where the masks ``under`` are true."""
        row = self.b.rows[at.row]
        xs = row.operands
        if row.op in (Op.BROADCAST, Op.RESHAPE) and self._may_have_more(at):
            return self._terms(self._source(at), under)
        if row.op is Op.SELECT:
            found = self._chosen(at, under)
            if found is not None:
                return found
        elif row.op in (Op.ADD, Op.SUB) and len(self._wide(at)) > 2:
            right = self._terms(at._replace(row=xs[1]), under)
            terms = self._terms(at._replace(row=xs[0]), under)
            terms += map(_negated, right) if row.op is Op.SUB else right
            if len(terms) > MOST_TERMS:
                raise Unknown
            return terms
        elif row.op is Op.NEG:
            return [*map(_negated, self._terms(at._replace(row=xs[0]), under))]
        elif row.op is Op.MUL and len(self._wide(at)) > 2:
            return self._product(at._replace(row=xs[0]), at._replace(row=xs[1]), under)
        return [self._factor(at)]

    def _may_have_more(self, at: _Place) -> bool:
        """Whether what is repeated, or has other axes of length one, may be more than a factor."""
        source = self.b.rows[self.b.rows[at.row].operands[0]]
        return len(self._wide(at)) > 2 or source.op in (
            *(Op.SELECT, Op.NEG, Op.BROADCAST, Op.RESHAPE),
        )

    def _product(self, x: _Place, y: _Place, under: frozenset[Factor]) -> list[Term]:
        first, second = self._terms(x, under), self._terms(y, under)
        if len(first) * len(second) > MOST_TERMS:
            raise Unknown
        pairs = [(p, q) for p in first for q in second]
        if any(p.masks != q.masks for p, q in pairs):
            # a zero under a mask times what is no number is none: it stays what it is
            first, second = ([self._factor(at)] for at in (x, y))
            pairs = [(first[0], second[0])]
        return [Term(p.negative != q.negative, p.factors + q.factors, p.masks) for p, q in pairs]

    def _chosen(self, at: _Place, under: frozenset[Factor]) -> list[Term] | None:
        """What is chosen where masks are true, else a zero, or a number that nobody looks at."""
        mask, x, rest = self.b.rows[at.row].operands
        masks = frozenset(self._cores(at._replace(row=mask)))
        if masks <= under:
            return self._terms(at._replace(row=x), under)
        if not self.masks.is_zero(rest):
            return None
        terms = self._terms(at._replace(row=x), under | masks)
        return [t._replace(masks=t.masks | masks) for t in terms]

    def _cores(self, at: _Place) -> Iterator[Factor]:
        """The masks that one is made of, each without the axes along which it is repeated."""
        while self.b.rows[at.row].op in (Op.BROADCAST, Op.RESHAPE):
            at = self._source(at)
        if self.b.rows[at.row].op is Op.AND:
            for x in self.b.rows[at.row].operands:
                yield from self._cores(at._replace(row=x))
        else:
            yield Factor(at.row, self._wide(at))

    def _source(self, at: _Place) -> _Place:
        """What a BROADCAST repeats, or a RESHAPE has with other axes of length one."""
        (x,) = self.b.rows[at.row].operands
        shape = self.b.type(x).shape
        if self.b.rows[at.row].op is Op.BROADCAST:
            own = at.axes[len(at.axes) - len(shape) :]
            return _Place(x, tuple(None if n == 1 else a for n, a in zip(shape, own, strict=True)))
        wide = self._wide(at)
        full = self.b.type(at.row).shape
        if [n for n in shape if n != 1] != [n for n in full if n != 1]:
            raise Unknown
        left = iter([a for n, a in zip(full, at.axes, strict=True) if n != 1])
        assert len(wide) <= len(shape)
        return _Place(x, tuple(None if n == 1 else next(left) for n in shape))

    def _wide(self, at: _Place) -> tuple[int, ...]:
        shape = self.b.type(at.row).shape
        return tuple(a for n, a in zip(shape, at.axes, strict=True) if n != 1 and a is not None)

    def _factor(self, at: _Place) -> Term:
        """The row itself, without axes along which it is repeated."""
        while self.b.rows[at.row].op in (Op.BROADCAST, Op.RESHAPE):
            try:
                at = self._source(at)
            except Unknown:
                break
        axes = self._wide(at)
        if len(axes) > 2 or list(axes) != sorted(axes):
            raise Unknown
        shape = self.b.type(at.row).shape
        row = self.b.reshape_to(at.row, [n for n in shape if n != 1])
        return Term(False, (Factor(row, axes),), frozenset())


def _negated(term: Term) -> Term:
    return term._replace(negative=not term.negative)
