"""Bounds of traced integers that follow from the ranges of the loops they are computed in."""

from __future__ import annotations

from ckad.tape.ops import Op
from ckad.trace.context import Trace
from ckad.trace.known import known
from ckad.trace.tracer import Tracer, localise
from ckad.trace.views import read

Interval = tuple[int, int]  # both ends included
#: Rows that are looked through.
DEEPEST = 64


def upper_bound(x: Tracer) -> int | None:
    """The largest value of a traced integer, or None if it is not known."""
    found = interval(x)
    return None if found is None else found[1]


def interval(x: Tracer) -> Interval | None:
    """The least and the largest value of a traced integer, or None if they are not known."""
    numbers = known(x)
    if numbers is not None:
        return int(numbers.min()), int(numbers.max())
    x = localise(x)
    storage = x.storage
    row = read(storage.trace.builder, storage.row, x.path, storage.cache)
    return _of_row(storage.trace, row, 0)


def _of_row(trace: Trace, k: int, depth: int) -> Interval | None:
    op, operands, attrs, type, _ = trace.builder.rows[k]
    if type.shape or depth > DEEPEST:
        return None
    if op is Op.CONST:
        number = trace.builder.constants[attrs[0]]
        return (int(number), int(number)) if number.dtype.kind in "ib" else None
    if op is Op.INPUT:
        return _of_input(trace, k, depth)
    found = [_of_row(trace, x, depth + 1) for x in operands]
    rule = _RULES.get(op)
    if rule is None or any(x is None for x in found):
        return _partial(op, found)
    return rule(*found)


def _of_input(trace: Trace, k: int, depth: int) -> Interval | None:
    if trace.builder.rows[k].attrs[0] == 0 and trace.index_range is not None:
        first, stop = trace.index_range
        return first, max(first, stop - 1)
    outer = next((row for row, inner in trace.captured.items() if inner == k), None)
    if outer is None or trace.parent is None:
        return None
    return _of_row(trace.parent, outer, depth + 1)


def _partial(op: Op, found: list[Interval | None]) -> Interval | None:
    """What one known operand says; ends that are not known are far away."""
    known_ones = [x for x in found if x is not None]
    if len(known_ones) != 1:
        return None
    (low, high), far = known_ones[0], 2**62
    if op is Op.MINIMUM:
        return -far, high
    return (low, far) if op is Op.MAXIMUM else None


def _product(x: Interval, y: Interval) -> Interval:
    ends = [a * b for a in x for b in y]
    return min(ends), max(ends)


def _quotient(x: Interval, y: Interval) -> Interval | None:
    if y[0] <= 0 <= y[1]:
        return None
    ends = [a // b for a in x for b in y]
    return min(ends), max(ends)


_RULES = {
    Op.ADD: lambda x, y: (x[0] + y[0], x[1] + y[1]),
    Op.SUB: lambda x, y: (x[0] - y[1], x[1] - y[0]),
    Op.MUL: _product,
    Op.NEG: lambda x: (-x[1], -x[0]),
    Op.FLOORDIV: _quotient,
    Op.MINIMUM: lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    Op.MAXIMUM: lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    Op.WRAP: lambda x: x if x[0] >= 0 else None,
}
