"""Integers of a program as sums of symbols, and the bounds that follow for them.

A symbol is an integer that is not a sum of others: the index of a loop, an input, a quotient. Its
bounds are such sums again, of symbols that were made before it: the index of a loop over
``range(k + 1, n)`` is at most n - k - 2, and k + 1 added to it at most n - 1, whatever k is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, inf
from typing import NamedTuple

#: Sums that could be larger than this are not followed: they might wrap around.
LARGEST = 2**62
#: Substitutions that are tried for one bound.
MOST = 200

Number = int | Fraction


class Sum(NamedTuple):
    """``constant`` plus each symbol times its factor."""

    constant: Number
    terms: tuple[tuple[int, Number], ...] = ()  # by symbol, in order

    def __add__(self, other: Sum) -> Sum:  # type: ignore[override]
        terms = dict(self.terms)
        for symbol, factor in other.terms:
            terms[symbol] = terms.get(symbol, 0) + factor
        kept = sorted((s, f) for s, f in terms.items() if f)
        return Sum(self.constant + other.constant, tuple(kept))

    def times(self, factor: Number) -> Sum:
        if not factor:
            return Sum(0)
        return Sum(self.constant * factor, tuple((s, f * factor) for s, f in self.terms))

    def minus(self, other: Sum) -> Sum:
        return self + other.times(-1)


@dataclass
class Symbols:
    """The symbols of a program, and the sums that bound each of them."""

    lower: list[list[Sum]] = field(default_factory=list)
    upper: list[list[Sum]] = field(default_factory=list)

    def new(self, lower: Sequence[Sum | Number] = (), upper: Sequence[Sum | Number] = ()) -> Sum:
        """A new symbol between bounds, each of which may have several."""
        self.lower.append([_sum(x) for x in lower])
        self.upper.append([_sum(x) for x in upper])
        return Sum(0, ((len(self.lower) - 1, 1),))

    def bounds(self, x: Sum) -> tuple[float, float]:
        """The smallest and the largest value that x can have; infinite ones where none is known."""
        least, most = self._bound(x, -1, [MOST]), self._bound(x, 1, [MOST])
        return (-inf if least is None else ceil(least)), (inf if most is None else floor(most))

    def _bound(self, x: Sum, side: int, left: list[int]) -> Number | None:
        """The best bound of x on one side: the last symbol is replaced by each of its bounds."""
        if not x.terms:
            return x.constant
        symbol, factor = x.terms[-1]
        rest = Sum(x.constant, x.terms[:-1])
        found: Number | None = None
        for bound in (self.upper if side * factor > 0 else self.lower)[symbol]:
            left[0] -= 1
            if left[0] < 0:
                break
            value = self._bound(rest + bound.times(factor), side, left)
            if value is not None and (found is None or side * value < side * found):
                found = value
        return found

    def at_most(self, x: Sum, sign: int = 1) -> tuple[int, bool] | None:
        """Note ``x <= 0`` as a bound of its last symbol; what `forget` takes back."""
        if not x.terms:
            return None
        symbol, factor = x.terms[-1]
        rest = Sum(x.constant, x.terms[:-1])
        is_upper = factor > 0
        (self.upper if is_upper else self.lower)[symbol].append(rest.times(Fraction(-1) / factor))
        return symbol, is_upper

    def forget(self, noted: tuple[int, bool]) -> None:
        symbol, is_upper = noted
        (self.upper if is_upper else self.lower)[symbol].pop()


def _sum(x: Sum | Number) -> Sum:
    return x if isinstance(x, Sum) else Sum(x)
