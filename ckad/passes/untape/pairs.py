"""Pairs of TAPED_LOOP and REVERSE_LOOP as plain LOOPs, so that a gradient can be differentiated.

The residuals of all steps become ys of the forward loop and xs of the reverse one: the
meaning of the pair without a schedule. It runs over flipped xs, so that one direction is all that
other passes meet.
"""

from __future__ import annotations

from ckad.passes.untape.guarded import Reversal, counting_loop
from ckad.tape.builder import Builder
from ckad.tape.control import UNGUARDED, ReverseLoop, loop_attrs, read_loop, read_reverse_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import DType, Type

#: The arrays that stand for a value: one, or those of a token.
Values = list[int]


def untape(tape: Tape) -> Tape:
    """``tape`` with plain loops only."""
    return _Untape(tape, {}).tape if is_taped(tape) else tape


def is_taped(tape: Tape) -> bool:
    """Whether a loop of the tape, or of a body of it, is one of a pair."""
    return any(row.op is Op.TAPED_LOOP for row in tape.rows) or any(map(is_taped, tape.bodies))


class _Untape:
    """One tape being rewritten; ``tokens`` gives the types that each token input stands for."""

    def __init__(self, tape: Tape, tokens: dict[int, list[Type]]) -> None:
        self.source, self.b = tape, Builder()
        self.env: dict[int, Values] = {}
        self.single: dict[int, int] = {}  # all but the tokens
        self.results: dict[int, list[Values]] = {}
        for k, row in enumerate(tape.rows):
            self.b.where = tape.sources[row.source]
            self._row(k, tokens)
            if len(self.env.get(k, ())) == 1:
                (self.single[k],) = self.env[k]
        outputs = [self.env[k] for k in tape.outputs.tolist()]
        self.widths = [len(values) for values in outputs]
        self.tape = self.b.tape(x for values in outputs for x in values)

    def _row(self, k: int, tokens: dict[int, list[Type]]) -> None:
        row, b = self.source.rows[k], self.b
        if row.op is Op.INPUT:
            types = tokens[k] if row.type.dtype is DType.TOKEN else [row.type]
            self.env[k] = [b.input(t) for t in types]
        elif row.op is Op.TAPED_LOOP:
            self._taped_loop(k)
        elif row.op is Op.REVERSE_LOOP:
            self._reverse_loop(k)
        elif row.op is Op.RESULT and row.operands[0] in self.results:
            self.env[k] = self.results[row.operands[0]][row.attrs[0]]
        else:
            self.env[k] = [b.copy_row(self.source, k, self.single, untape)]

    def _flat(self, rows: tuple[int, ...]) -> Values:
        return [x for row in rows for x in self.env[row]]

    def _taped_loop(self, k: int) -> None:
        loop = read_loop(self.source, self.source.rows[k])
        assert loop.taping is not None
        if loop.guard != UNGUARDED:
            given = self._flat((*loop.carry, *loop.xs, *loop.captured))
            *last, count = counting_loop(self.b, loop, untape(loop.body), given)
            # in place of residuals: the number of steps, and where to begin
            self.results[k] = [[x] for x in last] + [[count, *self._flat(loop.carry)]]
            return
        b, n, n_out = self.b, len(loop.carry), len(loop.body.outputs)
        taping = _Untape(loop.taping, {})
        operands = self._flat((*loop.carry, *loop.xs, *loop.captured))
        attrs = loop_attrs(b.body(taping.tape), loop.length, n, len(loop.xs))
        types = _stacked(taping.tape.output_types, n, loop.length)
        values = b.control(Op.LOOP, operands, attrs, types)
        self.results[k] = [[x] for x in values[:n_out]] + [values[n_out:]]

    def _reverse_loop(self, k: int) -> None:
        loop = read_reverse_loop(self.source, self.source.rows[k])
        b = self.b
        residuals = self.env[loop.token]
        taping = _Untape(loop.taping, {})
        kept_types = list(taping.tape.output_types[loop.n_carry :])
        widths = taping.widths[loop.n_carry :]
        if loop.guard != UNGUARDED:
            reverse = _Untape(loop.reverse, _token_types(loop.reverse, widths, kept_types)).tape
            totals, shared = (*loop.ct_carry, *loop.sums), (*loop.xs, *loop.captured)
            parts = Reversal(loop, taping.tape, reverse)
            values = parts.emit(b, residuals, self._flat(totals), self._flat(shared))
            self.results[k] = [[x] for x in values]
            return
        body = _reverse_body(loop.reverse, widths, kept_types, loop)
        carry = self._flat((*loop.ct_carry, *loop.sums))
        xs = [*residuals, *self._flat(loop.xs), *self._flat(loop.ct_ys)]
        turned = [_flip(b, x) for x in xs]
        operands = [*carry, *turned, *self._flat(loop.captured)]
        attrs = loop_attrs(b.body(body), loop.length, len(carry), len(xs))
        values = b.control(
            Op.LOOP, operands, attrs, _stacked(body.output_types, len(carry), loop.length)
        )
        ct_xs = [_flip(b, x) for x in values[len(carry) :]]
        self.results[k] = [[x] for x in (*values[: len(carry)], *ct_xs)]


def _stacked(types: tuple[Type, ...], n_carry: int, length: int) -> list[Type]:
    return [*types[:n_carry], *(t.with_shape((length, *t.shape)) for t in types[n_carry:])]


def _flip(b: Builder, x: int) -> int:
    type = b.type(x)
    n, rank = type.shape[0], len(type.shape)
    starts, steps = [0] * rank, [1] * rank
    starts[0], steps[0] = max(n - 1, 0), -1
    return b.slice(x, attrs=(*starts, *steps), type=type)


def _token_types(reverse: Tape, widths: list[int], kept: list[Type]) -> dict[int, list[Type]]:
    """The types that each residual of a reverse body, a token among them, stands for."""
    inputs = reverse.inputs.tolist()
    tokens, at = {}, 0
    for k, width in zip(inputs[1 : 1 + len(widths)], widths, strict=True):
        tokens[k] = kept[at : at + width]
        at += width
    return tokens


def _reverse_body(reverse: Tape, widths: list[int], kept: list[Type], loop: ReverseLoop) -> Tape:
    """The reverse body as the body of a plain loop.

    From (i, residuals, x, captured, ct_carry, ct_y, sums) to
    (j, ct_carry, sums, residuals, x, ct_y, captured) with i = length - 1 - j.
    """
    inner = _Untape(reverse, _token_types(reverse, widths, kept)).tape
    counts = [1, len(kept), len(loop.xs), len(loop.captured), len(loop.ct_carry), len(loop.ct_ys)]
    bounds = [sum(counts[:k]) for k in range(len(counts) + 1)]
    i, residuals, xs, captured, ct_carry, ct_ys = (
        list(range(bounds[k], bounds[k + 1])) for k in range(6)
    )
    sums = list(range(bounds[6], len(inner.inputs)))
    b, env = Builder(), dict[int, int]()
    positions = inner.inputs.tolist()
    for p in (*i, *ct_carry, *sums, *residuals, *xs, *ct_ys, *captured):
        env[positions[p]] = b.input(inner.input_types[p])
    j = env[positions[0]]
    env[positions[0]] = b.sub(b.const(loop.length - 1), j)
    for k in range(len(inner)):
        if k not in env:
            env[k] = b.copy_row(inner, k, env)
    return b.tape(env[k] for k in inner.outputs.tolist())
