"""Guarded pairs as plain loops: how many steps there are is counted, then some states are kept.

A loop without a bound cannot stack the residuals of all its steps. The forward loop counts its
steps; the reverse one runs them again twice: once to keep SLOTS states at equal distances, then
from the last of these to each step. Both are loops that run as often as they are told, so that what
comes out can be differentiated again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ckad.tape.builder import Builder
from ckad.tape.control import COUNTED, UNBOUNDED, Loop, ReverseLoop, loop_attrs
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import DType, Type

#: States that are kept; n steps are run about 2 + n / (2 SLOTS) times each.
SLOTS = 64
INDEX = Type(DType.I64, ())

Values = list[int]
#: (builder, index, carry, captured) -> new carry
Step = Callable[[Builder, int, Values, Values], Values]


def counting_loop(b: Builder, loop: Loop, body: Tape, operands: Sequence[int]) -> Values:
    """The loop as it is, with a count of its steps; its carry, and then the count."""
    n = len(loop.carry)
    inner = Builder()
    i, *carry = (inner.input(t) for t in body.input_types[: 1 + n])
    count = inner.input(INDEX)
    rest = [inner.input(t) for t in body.input_types[1 + n :]]
    out = inlined(inner, body, [i, *carry, *rest])
    one = inner.const(np.int64(1))
    tape = inner.tape([*out[:n], inner.add(count, one)])
    attrs = loop_attrs(b.body(tape), loop.length, n + 1, len(loop.xs), loop.guard)
    first = [*operands[:n], b.const(np.int64(0)), *operands[n:]]
    return b.control(Op.LOOP, first, attrs, tape.output_types)


class Reversal:
    """The reverse loop of a guarded pair while it is written.

    ``taping`` and ``reverse`` are its bodies without pairs in them.
    """

    def __init__(self, loop: ReverseLoop, taping: Tape, reverse: Tape) -> None:
        self.loop, self.taping, self.reverse = loop, taping, reverse
        self.n_xs = len(loop.xs)

    def emit(
        self, b: Builder, token: Sequence[int], totals: Sequence[int], shared: Sequence[int]
    ) -> Values:
        """``totals`` (cotangents of the carry, sums) after all steps, and the cotangents of xs.

        ``token`` are the number of steps and the first carry, ``shared`` the xs and what is
        captured.
        """
        n, first = token[0], list(token[1:])
        last = b.const(np.int64(SLOTS - 1))
        distance = b.floordiv(b.add(n, last), b.const(np.int64(SLOTS)))
        distance = b.maximum(distance, b.const(np.int64(1)))
        kept = self._kept(b, n, distance, first, shared)
        n_out = len(self.reverse.outputs)
        stacks = [
            b.full(t.with_shape((self.loop.length, *t.shape)), 0.0)
            for t in self.reverse.output_types[len(totals) : n_out]
        ]
        captured = [n, distance, *kept, first[0], *shared]
        return counted(b, n, [*totals, *stacks], captured, self._step)

    # --- states at equal distances --------------------------------------------------------------

    def _kept(
        self, b: Builder, n: int, distance: int, first: Values, shared: Sequence[int]
    ) -> Values:
        """An array of states for each of the carry but the first, which ends the loop."""
        rest = first[1:]
        zeros = [
            b.broadcast_to(b.const(b.type(x).numpy.type(0)), (SLOTS, *b.type(x).shape))
            for x in rest
        ]
        one = b.const(np.int64(1))
        n_blocks = b.floordiv(b.add(n, b.sub(distance, one)), distance)
        n_rest = len(rest)

        def keep(inner: Builder, q: int, carry: Values, captured: Values) -> Values:
            n, distance, flag, *shared = captured
            state, arrays = carry[:n_rest], carry[n_rest:]
            new = [inner.scatter(a, q, x, attrs=(0, 1)) for a, x in zip(arrays, state, strict=True)]
            start = inner.mul(q, distance)
            m = inner.minimum(distance, inner.sub(n, start))
            return [*self._run_on(inner, m, start, flag, state, shared), *new]

        captured = [n, distance, first[0], *shared]
        return counted(b, n_blocks, [*rest, *zeros], captured, keep)[n_rest:]

    def _run_on(
        self, b: Builder, m: int, start: int, flag: int, state: Values, shared: Sequence[int]
    ) -> Values:
        """The state ``m`` steps after ``start``."""

        def advance(inner: Builder, j: int, carry: Values, captured: Values) -> Values:
            start, flag, *shared = captured
            i = inner.add(start, j)
            elements = self._elements(inner, i, shared)
            out = inlined(inner, self.loop.advance, [i, flag, *carry, *elements])
            return out[1 : 1 + len(carry)]

        return counted(b, m, state, [start, flag, *shared], advance)

    def _elements(self, b: Builder, i: int, shared: Sequence[int]) -> Values:
        """What step i reads of the xs, and what is captured."""
        xs = [b.gather(x, i, attrs=(0,)) for x in shared[: self.n_xs]]
        return [*xs, *shared[self.n_xs :]]

    # --- backwards ------------------------------------------------------------------------------

    def _step(self, b: Builder, j: int, carry: Values, captured: Values) -> Values:
        n_totals = len(self.loop.ct_carry) + len(self.loop.sums)
        totals, stacks = carry[:n_totals], carry[n_totals:]
        n, distance, *rest = captured
        kept, flag = rest[: self.loop.n_carry - 1], rest[self.loop.n_carry - 1]
        shared = rest[self.loop.n_carry :]
        i = b.sub(b.sub(n, b.const(np.int64(1))), j)
        q = b.floordiv(i, distance)
        start = b.mul(q, distance)
        state = [b.gather(x, q, attrs=(0,)) for x in kept]
        state = self._run_on(b, b.sub(i, start), start, flag, state, shared)
        elements = self._elements(b, i, shared)
        taped = inlined(b, self.taping, [i, flag, *state, *elements])
        residuals = taped[self.loop.n_carry :]
        out = inlined(b, self.reverse, [i, *residuals, *elements, *totals])
        new = [
            b.scatter(a, i, x, attrs=(0, 1)) for a, x in zip(stacks, out[n_totals:], strict=True)
        ]
        return [*out[:n_totals], *new]


def counted(
    b: Builder, n: int, carry: Sequence[int], captured: Sequence[int], step: Step
) -> Values:
    """The carry after ``n`` steps."""
    inner = Builder()
    i, own = inner.input(INDEX), inner.input(INDEX)
    given = [inner.input(b.type(x)) for x in (*carry, *captured)]
    out = step(inner, i, given[: len(carry)], given[len(carry) :])
    tape = inner.tape([own, *out])
    attrs = loop_attrs(b.body(tape), UNBOUNDED, 1 + len(carry), 0, COUNTED)
    return b.control(Op.LOOP, [n, *carry, *captured], attrs, tape.output_types)[1:]


def inlined(b: Builder, tape: Tape, inputs: Sequence[int]) -> Values:
    """Append the rows of a tape; its outputs."""
    env: list[int] = []
    for k, row in enumerate(tape.rows):
        env.append(inputs[row.attrs[0]] if row.op is Op.INPUT else b.copy_row(tape, k, env))
    return [env[k] for k in tape.outputs.tolist()]
