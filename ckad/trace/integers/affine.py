"""What is known of traced integers: sums of other integers, and the range they lie in.

Slices with computed bounds ask whether two lengths are equal, whether a bound can leave its axis,
and how long a part can be. A traced integer is read as ``constant + sum of coefficient * atom``;
equal expressions have equal forms wherever they were written. An atom is a row that is no sum, or
an operation on forms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from ckad.tape.ops import Op
from ckad.tape.types import DType
from ckad.trace.memory.context import Trace, current
from ckad.trace.memory.opened import is_tracing
from ckad.trace.values.tracer import Tracer, known, localise, value

Atom = Any  # (Trace, row), or (Op, attributes, forms of the operands)
Range = tuple[float, float]
ANY: Range = (-math.inf, math.inf)
#: 64 bits hold smaller integers.
MOST_HELD = 1 << 63
#: What is added at a time by who counts.
MOST_COUNTED = 1 << 20
#: What loops and branches hand on, and floats that become integers.
_STEPPED = frozenset({Op.INPUT, Op.RESULT, Op.CONVERT})
#: Longer chains of operations are atoms.
MOST_NESTED = 60
#: Minima and maxima in one form that are told apart.
MOST_CASES = 6


class Form(NamedTuple):
    """``const`` plus the sum of coefficient times atom."""

    const: int
    terms: frozenset[tuple[Atom, int]] = frozenset()

    def plus(self, other: Form, factor: int = 1) -> Form:
        terms = dict(self.terms)
        for atom, coefficient in other.terms:
            terms[atom] = terms.get(atom, 0) + factor * coefficient
        return Form(self.const + factor * other.const, _terms(terms))

    def minus(self, other: Form) -> Form:
        return self.plus(other, -1)

    def times(self, factor: int) -> Form:
        return Form(0).plus(self, factor)


def _terms(coefficients: dict[Atom, int]) -> frozenset[tuple[Atom, int]]:
    return frozenset((atom, c) for atom, c in coefficients.items() if c)


def form_of(x: int | Tracer) -> Form:
    """The form of a Python int, or of a traced integer without axes."""
    if not isinstance(x, Tracer):
        return Form(int(x))
    number = known(localise(x))
    if number is not None:
        return Form(int(number))
    return _form(current(), value(x), 0)


def form_of_row(row: int) -> Form:
    """The form of a row of the current trace."""
    return _form(current(), row, 0)


def settled(x: int | Tracer) -> int | Tracer:
    """``x`` as a Python int if its form is a constant."""
    form = form_of(x)
    return x if form.terms else form.const


def is_at_least(x: int | Tracer, y: int | Tracer) -> bool:
    """Whether ``x >= y`` for certain."""
    return interval(form_of(x).minus(form_of(y)))[0] >= 0


def range_of(x: int | Tracer) -> Range:
    """The least and the greatest number that ``x`` can be, infinite where nothing is known."""
    return interval(form_of(x))


def is_held(x: Tracer) -> bool:
    """Whether 64 bits hold a Python integer for certain.

    One that steps of a loop count up or down, by little at a time, would need centuries to leave
    them.
    """
    form = form_of(x)
    low, high = interval(form)
    return (low > -MOST_HELD and high < MOST_HELD) or _is_counted(form, MOST_CASES)


def is_counted(x: Any) -> bool:
    """Whether an integer is far from the ends of 64 bits, as far as is known."""
    if isinstance(x, Tracer):
        return bool(x.path) or _is_counted(_form(x.storage.trace, x.storage.row, 0), MOST_CASES)
    return not isinstance(x, int) or abs(x) < MOST_HELD // 2


def _is_counted(form: Form, depth: int) -> bool:
    ranges = [(atom, c, _atom_range(atom)) for atom, c in form.terms]
    open_ended = [(atom, c) for atom, c, ends in ranges if not all(map(isfinite, ends))]
    closed = sum(abs(c) * max(map(abs, ends)) for _, c, ends in ranges if all(map(isfinite, ends)))
    if not open_ended:
        return abs(form.const) + closed < MOST_HELD // 2
    if len(open_ended) > 1 or abs(form.const) + closed > MOST_COUNTED:
        return False
    ((atom, coefficient),) = open_ended
    if abs(coefficient) != 1 or not depth:
        return False
    if isinstance(atom[0], Trace):
        trace, row = atom
        op = trace.builder.rows[row].op
        return op in _STEPPED and row not in trace.large
    return atom[0] is not Op.GATHER and all(_is_counted(f, depth - 1) for f in atom[2])


def declare(x: Tracer, low: int, high: int) -> None:
    """State that ``x`` lies in [low, high] whenever the code being recorded runs."""
    trace, row = current(), value(x)
    trace.ranges[row] = (low, high)
    trace.bounds.clear()
    trace.forms[row] = _atom((trace, row))


# --- forms -------------------------------------------------------------------------------------


def _form(trace: Trace, row: int, depth: int) -> Form:
    if row not in trace.forms:
        trace.forms[row] = _read(trace, row, depth + 1)
    form: Form = trace.forms[row]
    return form


def _read(trace: Trace, row: int, depth: int) -> Form:
    op, operands, attrs, type, _ = trace.builder.rows[row]
    if op is Op.CONST and type.size == 1 and type.dtype in (DType.I64, DType.BOOL):
        return Form(int(trace.builder.constants[attrs[0]].item()))
    if op is Op.INPUT:
        return _of_input(trace, row, depth)
    rule = _RULES.get(op)
    if rule is None or type.size != 1 or depth > MOST_NESTED:
        return _atom((trace, row))
    if any(trace.builder.type(x).dtype not in (DType.I64, DType.BOOL) for x in operands):
        return _atom((trace, row))
    if op is Op.GATHER and len(trace.builder.type(operands[0]).shape) != 1:
        return _atom((trace, row))
    return rule(attrs, *(_form(trace, x, depth) for x in operands))


def _atom(atom: Atom) -> Form:
    return Form(0, frozenset([(atom, 1)]))


def _of_input(trace: Trace, row: int, depth: int) -> Form:
    """An input that shows a row of the trace around is that row."""
    outer = next((k for k, inner in trace.captured.items() if inner == row), None)
    if outer is None or trace.parent is None:
        return _atom((trace, row))
    return _form(trace.parent, outer, depth)


def _product(attrs: Any, x: Form, y: Form) -> Form:
    if not x.terms:
        return y.times(x.const)
    return x.times(y.const) if not y.terms else _atom((Op.MUL, (), (x, y)))


def _wrap(attrs: Any, x: Form) -> Form:
    low, high = interval(x)
    if low >= 0 and high < attrs[0]:
        return x
    return _atom((Op.WRAP, tuple(attrs), (x,)))


def _extremum(op: int, sign: int) -> Callable[..., Form]:
    def rule(attrs: Any, x: Form, y: Form) -> Form:
        low, high = interval(x.minus(y))
        if sign * low >= 0 <= sign * high:
            return x
        if sign * low <= 0 >= sign * high:
            return y
        return _atom((op, (), (x, y)))

    return rule


def _select(attrs: Any, chosen: Form, x: Form, y: Form) -> Form:
    if not chosen.terms:
        return x if chosen.const else y
    return x if x == y else _atom((Op.SELECT, (), (chosen, x, y)))


def _comparison(op: int, decide: Callable[[float, float], bool | None]) -> Callable[..., Form]:
    def rule(attrs: Any, x: Form, y: Form) -> Form:
        answer = decide(*interval(x.minus(y)))
        return _atom((op, (), (x, y))) if answer is None else Form(int(answer))

    return rule


def _less(low: float, high: float) -> bool | None:
    return True if high < 0 else (False if low >= 0 else None)


def _opaque(op: int) -> Callable[..., Form]:
    return lambda attrs, *xs: _atom((op, tuple(attrs), xs))


_RULES: dict[int, Callable[..., Form]] = {
    Op.ADD: lambda attrs, x, y: x.plus(y),
    Op.SUB: lambda attrs, x, y: x.minus(y),
    Op.NEG: lambda attrs, x: x.times(-1),
    Op.MUL: _product,
    Op.RESHAPE: lambda attrs, x: x,
    Op.BROADCAST: lambda attrs, x: x,
    Op.CONVERT: lambda attrs, x: x,
    Op.WRAP: _wrap,
    Op.MAXIMUM: _extremum(Op.MAXIMUM, 1),
    Op.MINIMUM: _extremum(Op.MINIMUM, -1),
    Op.SELECT: _select,
    Op.LT: _comparison(Op.LT, _less),
    Op.GE: _comparison(Op.GE, lambda low, high: _not(_less(low, high))),
    Op.GT: _comparison(Op.GT, lambda low, high: _less(-high, -low)),
    Op.LE: _comparison(Op.LE, lambda low, high: _not(_less(-high, -low))),
    Op.FLOORDIV: _opaque(Op.FLOORDIV),
    Op.MOD: _opaque(Op.MOD),
    Op.AND: _opaque(Op.AND),
    Op.ABS: _opaque(Op.ABS),
    Op.GATHER: _opaque(Op.GATHER),  # a row holds one value: an element of it is one, too
}


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


# --- ranges ------------------------------------------------------------------------------------


def interval(form: Form, cases: int = 0) -> Range:
    """Bounds of a form. ``x + max(y, z)`` is ``max(x + y, x + z)``, which keeps what cancels."""
    if not form.terms:
        return float(form.const), float(form.const)
    bounds = current().bounds if is_tracing() else {}
    found: Range | None = bounds.get((form, cases))
    if found is None:
        found = bounds[form, cases] = _interval(form, cases)
    return found


def _interval(form: Form, cases: int) -> Range:
    for atom, coefficient in form.terms:
        op = atom[0]
        if op in (Op.MAXIMUM, Op.MINIMUM) and abs(coefficient) == 1 and cases < MOST_CASES:
            rest = form.minus(_atom(atom).times(coefficient))
            parts = [interval(rest.plus(x, coefficient), cases + 1) for x in atom[2]]
            pick = max if (op is Op.MAXIMUM) == (coefficient > 0) else min
            return pick(p[0] for p in parts), pick(p[1] for p in parts)
    low = high = float(form.const)
    for atom, coefficient in form.terms:
        ends = [coefficient * end for end in _atom_range(atom)]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _atom_range(atom: Atom) -> Range:
    if isinstance(atom[0], Trace):
        return _row_range(*atom)
    op, attrs, forms = atom
    if op is Op.GATHER:
        return interval(forms[0], MOST_CASES)
    ranges = [interval(f, MOST_CASES) for f in forms]
    if op is Op.WRAP:
        return 0, attrs[0] - 1
    if op is Op.MOD and ranges[1][0] > 0:
        return 0, ranges[1][1] - 1
    if op is Op.FLOORDIV and not forms[1].terms and forms[1].const:
        low, high = sorted(end // forms[1].const for end in ranges[0])
        return low, high
    if op is Op.AND and (masks := [high for low, high in ranges if low >= 0]):
        return 0, min(masks)
    if op is Op.MUL and all(map(isfinite, (*ranges[0], *ranges[1]))):
        ends = [a * b for a in ranges[0] for b in ranges[1]]
        return min(ends), max(ends)
    if op in _TRUTHS:
        return 0, 1
    if op is Op.SELECT:
        return _hull(ranges[1:])
    pick = {Op.MAXIMUM: max, Op.MINIMUM: min}.get(op)
    if pick is not None:
        return pick(r[0] for r in ranges), pick(r[1] for r in ranges)
    if op is Op.ABS:
        return max(0, ranges[0][0], -ranges[0][1]), max(map(abs, ranges[0]))
    return ANY


_WHOLE = (DType.I64, DType.BOOL)
#: What gives elements of its operand alone.
_KEEPING = (Op.CONVERT, Op.RESHAPE, Op.BROADCAST, Op.SLICE)
_TRUTHS = (Op.LT, Op.LE, Op.GT, Op.GE)


def _hull(ranges: list[Range]) -> Range:
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


def _row_range(trace: Trace, row: int) -> Range:
    if row in trace.ranges:
        return trace.ranges[row]
    if trace.index_range is not None and row == trace.builder.inputs[0]:
        return trace.index_range[0], trace.index_range[1] - 1
    op, operands, attrs, type, _ = trace.builder.rows[row]
    if type.dtype is DType.BOOL:
        return 0, 1
    if op is Op.CONST and type.size:
        numbers = trace.builder.constants[attrs[0]]
        return float(np.min(numbers)), float(np.max(numbers))
    if op is Op.GATHER or (op in _KEEPING and trace.builder.type(operands[0]).dtype in _WHOLE):
        return _row_range(trace, operands[0])
    if op is Op.SUM and type.dtype is DType.I64 and type.size:
        each = trace.builder.type(operands[0]).size // type.size
        low, high = _row_range(trace, operands[0])
        return (each * low, each * high) if each else (0, 0)
    return ANY
