"""The tangent of a tape: forward mode, as a tape."""

from __future__ import annotations

from collections.abc import Container, Sequence

from ckad.errors import DifferentiationError
from ckad.passes import simplify
from ckad.passes.activity import dependent, varied
from ckad.passes.fma import fuse
from ckad.passes.squares import Pushed, Squares
from ckad.passes.untape import untape
from ckad.rules import RULES
from ckad.tape.builder import Builder
from ckad.tape.control import loop_attrs, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import Type

Env = dict[int, int]


def tangent(tape: Tape, wrt: Sequence[int] | None = None, contract: bool = False) -> Tape:
    """A tape from (inputs, tangents of the inputs ``wrt``) to (outputs, tangents of the outputs).

    ``wrt`` are positions of float inputs (default: all of them). Outputs that are not floats have
    no tangent; those that do not depend on ``wrt`` have a zero one. Taped loops become plain ones.
    With ``contract`` products and sums of tangents are fused; the values stay as they are.
    """
    tape = untape(tape)
    if wrt is None:
        wrt = [k for k, t in enumerate(tape.input_types) if t.is_float]
    b = Builder()
    push = _Push(b, tape, [k in wrt for k in range(len(tape.inputs))], contract)
    primals = [b.input(t) for t in tape.input_types]
    tangents = {k: b.input(tape.input_types[k]) for k in wrt}
    push.run(primals, tangents)
    outputs = tape.outputs.tolist()
    floats = [k for k in outputs if tape.rows[k].type.is_float]
    return push.finished(
        [*(push.env[k] for k in outputs), *(push.tangent_or_zero(k) for k in floats)],
        tangents.values(),
    )


class _Push:
    """Copies the rows of a tape and emits the tangent of each right after it."""

    def __init__(self, b: Builder, tape: Tape, inputs: Sequence[bool], contract: bool) -> None:
        self.b, self.tape, self.contract = b, tape, contract
        self.env: Env = {}
        self.tangents: Env = {}
        self.varied, self.results = varied(tape, inputs)
        self.squares = Pushed(b, Squares(tape), self.env, self.tangents)
        self.result_values: dict[int, list[int]] = {}
        self.result_tangents: dict[int, dict[int, int]] = {}

    def run(self, primals: Sequence[int], tangents: dict[int, int]) -> None:
        for k, row in enumerate(self.tape.rows):
            self.b.where = self.tape.sources[row.source]
            if row.op is Op.INPUT:
                self.env[k] = primals[row.attrs[0]]
                if self.varied[k]:
                    self.tangents[k] = tangents[row.attrs[0]]
            else:
                self._row(k, row)

    def finished(self, outputs: Sequence[int], tangents: Container[int]) -> Tape:
        """The tape made so far; what depends on the inputs ``tangents`` fused if that is wanted."""
        is_tangent = [x in tangents for x in self.b.inputs]
        tape = self.b.tape(outputs)
        if not self.contract:
            return tape
        tape = simplify(tape)
        return fuse(tape, dependent(tape, is_tangent))

    def _row(self, k: int, row: Row) -> None:
        if row.op is Op.LOOP and self.varied[k]:
            self._loop(k, row)
        elif row.op is Op.COND and self.varied[k]:
            self._cond(k, row)
        elif row.op is Op.RESULT and row.operands[0] in self.result_values:
            loop, at = row.operands[0], row.attrs[0]
            self.env[k] = self.result_values[loop][at]
            if at in self.result_tangents[loop]:
                self.tangents[k] = self.result_tangents[loop][at]
        else:
            self.env[k] = self.b.copy_row(self.tape, k, self.env)
            if self.varied[k]:
                self._rule(k, row)

    def _rule(self, k: int, row: Row) -> None:
        operands = [self.env[x] for x in row.operands]
        tangents = [self.tangents.get(x) for x in row.operands]
        rule = RULES[row.op].jvp
        if rule is None:
            raise DifferentiationError(
                f"{self.tape.source_of(k)}: {row.op.name} has no derivative rule"
            )
        new = rule(self.b, tangents, self.env[k], *operands, attrs=row.attrs)
        if new is not None:
            self.tangents[k] = self.squares.tangent(k, new)

    def tangent_or_zero(self, k: int) -> int:
        if k in self.tangents:
            return self.tangents[k]
        return self.b.full_like(self.env[k], 0.0)

    def _loop(self, k: int, row: Row) -> None:
        loop, b = read_loop(self.tape, row), self.b
        flags = self.results[k]
        n = len(loop.carry)
        moving = [c for c in range(n) if flags[c]]
        xs = [x for x in loop.xs if self.varied[x]]
        captured = [x for x in loop.captured if self.varied[x]]
        body = _tangent_body(
            loop.body,
            (1, n, len(loop.xs)),
            [False, *flags[:n], *(self.varied[x] for x in (*loop.xs, *loop.captured))],
            flags,
            self.contract,
        )
        operands = [
            *(self.env[x] for x in loop.carry),
            *(self.tangent_or_zero(loop.carry[c]) for c in moving),
            *(self.env[x] for x in loop.xs),
            *(self.tangents[x] for x in xs),
            *(self.env[x] for x in loop.captured),
            *(self.tangents[x] for x in captured),
        ]
        n_carry, n_xs = n + len(moving), len(loop.xs) + len(xs)
        attrs = loop_attrs(b.body(body), loop.length, n_carry, n_xs, loop.guard)
        types = _result_types(body, n_carry, loop.length)
        values = b.control(Op.LOOP, operands, attrs, types)
        moving_ys = [y for y in range(n, len(flags)) if flags[y]]
        self.result_values[k] = [*values[:n], *values[n_carry : n_carry + len(flags) - n]]
        tangents = [*values[n:n_carry], *values[n_carry + len(flags) - n :]]
        self.result_tangents[k] = dict(zip([*moving, *moving_ys], tangents, strict=True))

    def _cond(self, k: int, row: Row) -> None:
        b, flags = self.b, self.results[k]
        moving = [self.varied[x] for x in row.operands[1:]]
        bodies = [
            _tangent_body(self.tape.bodies[t], (0, 0, 0), moving, flags, self.contract)
            for t in row.attrs[:2]
        ]
        operands = [self.env[x] for x in row.operands]
        operands += [self.tangents[x] for x, m in zip(row.operands[1:], moving, strict=True) if m]
        attrs = [b.body(body) for body in bodies]
        values = b.control(Op.COND, operands, attrs, bodies[0].output_types)
        n = len(flags)
        self.result_values[k] = values[:n]
        self.result_tangents[k] = dict(
            zip([r for r in range(n) if flags[r]], values[n:], strict=True)
        )


def _result_types(body: Tape, n_carry: int, length: int) -> list[Type]:
    types = body.output_types
    return [*types[:n_carry], *(t.with_shape((length, *t.shape)) for t in types[n_carry:])]


def _tangent_body(
    body: Tape,
    counts: tuple[int, int, int],
    inputs: Sequence[bool],
    flags: Sequence[bool],
    contract: bool,
) -> Tape:
    """The body with tangents after each group of inputs, and after carry and ys.

    ``counts`` are the numbers of indices (0 for a COND), carry and xs; ``inputs`` and ``flags``
    tell which inputs and outputs move.
    """
    lead, n, m = counts
    groups = [range(0, lead), range(lead, lead + n), range(lead + n, lead + n + m)]
    groups.append(range(lead + n + m, len(inputs)))
    b = Builder()
    push = _Push(b, body, inputs, contract)
    primals: list[int] = []
    tangents: dict[int, int] = {}
    for group in groups:
        primals += [b.input(body.input_types[k]) for k in group]
        tangents |= {k: b.input(body.input_types[k]) for k in group if inputs[k]}
    push.run(primals, tangents)
    outputs = body.outputs.tolist()
    carry, ys = outputs[:n], outputs[n:]
    moving = [
        [x for x, f in zip(part, fl, strict=True) if f]
        for part, fl in ((carry, flags[:n]), (ys, flags[n:]))
    ]
    return push.finished(
        [
            *(push.env[x] for x in carry),
            *(push.tangent_or_zero(x) for x in moving[0]),
            *(push.env[x] for x in ys),
            *(push.tangent_or_zero(x) for x in moving[1]),
        ],
        tangents.values(),
    )
