"""The Hurwitz zeta function as LLVM IR: the sum of (x + k)**-s over k >= 0, for integer s >= 2."""

from __future__ import annotations

import math
from typing import Any

from ckad.rules import ir

#: From here on the Euler-Maclaurin series (DLMF 25.11.5) is exact to rounding.
START = 15.0
#: Below this the direct sum would take too long; the result is NaN.
LOWEST = -10_000.0
_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]


def emit_hurwitz_zeta(b: Any, s: Any, x: Any) -> Any:
    """Terms are added one by one until the argument is large, the rest is the series."""
    total, a = _direct_sum(b, s, x)
    value = b.fadd(total, _tail(b, s, a))
    allowed = b.fcmp_ordered(">", x, ir.constant(x, LOWEST))
    return b.select(allowed, value, ir.constant(x, math.nan))


def _direct_sum(b: Any, s: Any, x: Any) -> tuple[Any, Any]:
    head, inside, after = (b.append_basic_block(f"zeta_{name}") for name in ("head", "add", "end"))
    before = b.block
    b.branch(head)
    b.position_at_end(head)
    a, total = b.phi(x.type), b.phi(x.type)
    a.add_incoming(x, before)
    total.add_incoming(ir.constant(x, 0.0), before)
    small = b.fcmp_ordered("<", a, ir.constant(x, START))
    in_range = b.fcmp_ordered(">", a, ir.constant(x, LOWEST))
    b.cbranch(b.and_(small, in_range), inside, after)
    b.position_at_end(inside)
    total.add_incoming(b.fadd(total, ir.libm("pow")(b, a, b.fneg(s))), b.block)
    a.add_incoming(b.fadd(a, ir.constant(x, 1.0)), b.block)
    b.branch(head)
    b.position_at_end(after)
    return total, a


def _tail(b: Any, s: Any, a: Any) -> Any:
    """a**(1 - s) / (s - 1) + a**-s / 2 + sum of B[2j] / (2j)! s (s + 1) ... a**(1 - s - 2j)."""
    one = ir.constant(a, 1.0)
    power = ir.libm("pow")(b, a, b.fneg(s))
    total = b.fadd(b.fdiv(b.fmul(power, a), b.fsub(s, one)), b.fmul(power, ir.constant(a, 0.5)))
    square = b.fmul(a, a)
    factor = b.fdiv(b.fmul(s, power), a)
    for j, bernoulli in enumerate(_BERNOULLI, 1):
        coefficient = ir.constant(a, bernoulli / math.factorial(2 * j))
        total = b.fadd(total, b.fmul(coefficient, factor))
        for k in (2 * j - 1, 2 * j):
            factor = b.fmul(factor, b.fadd(s, ir.constant(a, float(k))))
        factor = b.fdiv(factor, square)
    return total
