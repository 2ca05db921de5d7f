"""Bounds that a program computes, as code: the places of an axis between them.

A tape's `Span` and the registers of its scalars go in; a first index and the one behind the last
come out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce

from llvmlite import ir

from ckad.engines.native.ir.element import Value, whole
from ckad.engines.native.ir.flow import larger, smaller
from ckad.engines.native.values.registers import LANES
from ckad.tape.extents import Bound, Span

#: Numbers beyond are bounds of no axis; sums with those below do not wrap around.
FAR = 2**60

#: The value of a scalar row.
Scalar = Callable[[int], Value]


def limits(b: ir.IRBuilder, span: Span, n: int, scalar: Scalar) -> tuple[Value, Value]:
    """The first place of a span, and the first beyond it, within an axis of n."""
    low = reduce(lambda x, y: larger(b, x, y), _numbers(b, span.lows, scalar), whole(0))
    high = reduce(lambda x, y: smaller(b, x, y), _numbers(b, span.highs, scalar), whole(n))
    return smaller(b, low, whole(n)), larger(b, high, whole(0))


def _numbers(b: ir.IRBuilder, bounds: Sequence[Bound], scalar: Scalar) -> Iterator[Value]:
    for bound in bounds:
        yield number(b, bound, scalar)


def number(b: ir.IRBuilder, bound: Bound, scalar: Scalar) -> Value:
    """The number of a bound, or one that is as far beyond all places."""
    row, sign, shift = bound
    value = smaller(b, larger(b, scalar(row), whole(-FAR)), whole(FAR))
    value = value if sign > 0 else b.sub(whole(0), value)
    return b.add(value, whole(shift)) if shift else value


def vector_limits(b: ir.IRBuilder, span: Span, n: int, scalar: Scalar) -> tuple[Value, Value]:
    """The same, rounded outwards to whole vectors: all that computes between the bounds does so.

    What is left of the axis after the last whole vector is computed, all of it, if the end is n.
    """
    low, high = limits(b, span, n, scalar)
    up = b.and_(b.add(high, whole(LANES - 1)), whole(-LANES))
    return b.and_(low, whole(-LANES)), smaller(b, up, whole(n))
