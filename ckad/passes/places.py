"""Elements that loops read, or add to, at one place: they become scalars around the loop.

The index of a place is a sum of symbols (see `affine`), so it is known which reads stay the same
in all steps of a loop, and which writes never touch them. An element that no step writes is read
once before the loop. One that each step reads and writes is carried as a scalar. And an element
that is written as itself and something more is added to: its cotangent then stays where it is.

It is for a primal tape, before it is differentiated: what is read once is kept once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ckad.passes.affine import Sum, Symbols
from ckad.passes.liveness import readers
from ckad.passes.ranges import Ranges
from ckad.tape.builder import Builder
from ckad.tape.control import UNGUARDED, Loop, loop_attrs, read_loop
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.tape import Row, Tape
from ckad.tape.types import TUPLE

_WRITES = (Op.UPDATE, Op.SLICE_ADD, Op.SCATTER, Op.SCATTER_ADD)


def steady(tape: Tape) -> Tape:
    """``tape`` whose loops read each element that stays the same once, before they begin."""
    if not any(row.op is Op.LOOP for row in tape.rows):
        return tape
    symbols = Symbols()
    return _Steady(tape, [symbols.new() for _ in tape.inputs], symbols).run()


class Access(NamedTuple):
    """A read of, or a write to, an array that a tape was given."""

    position: int  # of the input
    row: int
    writes: bool
    place: Sum | None  # None: anywhere


class Survey(Ranges):
    """What a tape does to the arrays that it is given."""

    def __init__(self, tape: Tape, inputs: Sequence[Sum], symbols: Symbols) -> None:
        super().__init__(tape, inputs, symbols)
        self.accesses: list[Access] = []
        self._roots: dict[int, int | None] = {}
        self._bodies_of: dict[int, tuple[list[list[int]], Sequence[Survey]]] = {}

    def copied(self, k: int, row: Row) -> int:
        at = super().copied(k, row)
        if row.op in (Op.INPUT, Op.CONST, Op.RESULT, Op.RESHAPE, Op.LOOP, Op.COND):
            return at
        for n, x in enumerate(row.operands):
            position = self.root(x)
            if position is not None:
                writes = row.op in _WRITES and n == 0
                self.accesses.append(Access(position, k, writes, self.place(row, n)))
        return at

    def place(self, row: Row, n: int = 0) -> Sum | None:
        """The number of the one element that a row reads or writes of its n-th operand."""
        if n or row.op not in (Op.GATHER, Op.SCATTER, Op.SCATTER_ADD):
            return None
        x, idx = (self.rows[k].type for k in row.operands[:2])
        return self.value(row.operands[1]) if len(x.shape) == 1 and not idx.shape else None

    def seen(self, k: int, fed: list[list[int]], bodies: Sequence[Ranges]) -> None:
        found = [body for body in bodies if isinstance(body, Survey)]
        self._bodies_of[k] = fed, found
        for operands, body in zip(fed, found, strict=True):
            for access in body.accesses:
                position = self.root(operands[access.position])
                if position is not None:
                    self.accesses.append(access._replace(position=position, row=k))

    def root(self, k: int) -> int | None:
        """The position of the input that an array is, changed in places or not."""
        if k not in self._roots:
            self._roots[k] = self._root(k)
        return self._roots[k]

    def _root(self, k: int) -> int | None:
        row = self.rows[k]
        if not row.type.is_array or row.type.size <= 1:
            return None
        if row.op is Op.INPUT:
            return row.attrs[0]
        if row.op is Op.RESHAPE or row.op in _WRITES:
            return self.root(row.operands[0])
        if row.op is not Op.RESULT or row.operands[0] not in self._bodies_of:
            return None
        fed, bodies = self._bodies_of[row.operands[0]]
        sources = set()
        for operands, body in zip(fed, bodies, strict=True):
            inner = body.root(int(body.tape.outputs[row.attrs[0]]))
            if inner is None:
                return None
            if self.rows[row.operands[0]].op is Op.LOOP and inner != 1 + row.attrs[0]:
                return None
            sources.add(self.root(operands[inner]))
        return sources.pop() if len(sources) == 1 else None

    def apart(self, x: Sum, y: Sum) -> bool:
        """Whether two places are never the same."""
        least, most = self.symbols.bounds(x.minus(y))
        return least > 0 or most < 0


class _Plan(NamedTuple):
    """What changes in the body of a loop."""

    read_once: dict[int, int]  # row of a read -> number of the new captured scalar
    indices: list[tuple[int, int]]  # of these: (row of the array, row of the index)
    added: dict[int, tuple[int, bool]]  # row of a write -> (what it adds, whether negated)


class _Steady(Ranges):
    """One tape being rewritten, its bodies first."""

    def copied(self, k: int, row: Row) -> int:
        if row.op is not Op.LOOP:
            return super().copied(k, row)
        loop, symbols = read_loop(self.tape, row), self.symbols
        (body,) = self._loop(k, row)
        first = len(symbols.lower)
        survey = Survey(body, self.inputs_of(loop), symbols)
        survey.run()
        return self._rewritten(loop, body, _planned(survey, first, len(loop.carry)))

    def _rewritten(self, loop: Loop, body: Tape, plan: _Plan) -> int:
        lifted = _Lifted(self.b, body, self._operands(loop, body))
        new: list[int] = []
        done: dict[int, int] = {}  # number of a new scalar -> its place among those captured
        for number, (array, index) in enumerate(plan.indices):
            source, at = lifted.of(array), lifted.of(index)
            if source is not None and at is not None:
                done[number] = len(new)
                new.append(self._read(source, at, loop))
        body = _edited(body, plan, done)
        fixed = [self.env[x] for x in (*loop.carry, *loop.xs, *loop.captured)]
        attrs = loop_attrs(
            self.b.body(body), loop.length, len(loop.carry), len(loop.xs), loop.guard
        )
        return self.b.append(Op.LOOP, (*fixed, *new), attrs, TUPLE)

    def _operands(self, loop: Loop, body: Tape) -> dict[int, int]:
        """Row of an input of the body that is the same in every step -> row out here.

        An array is taken as it is before the first step.
        """
        n, inputs, outputs = len(loop.carry), body.inputs.tolist(), body.outputs.tolist()
        found = {}
        for at, x in enumerate(loop.carry):
            if outputs[at] == inputs[1 + at] or body.rows[inputs[1 + at]].type.size > 1:
                found[inputs[1 + at]] = self.env[x]
        for at, x in enumerate(loop.captured, 1 + n + len(loop.xs)):
            found[inputs[at]] = self.env[x]
        return found

    def _read(self, array: int, index: int, loop: Loop) -> int:
        """The element; where the loop may run no step, its index is brought into range."""
        b = self.b
        (n,) = b.type(array).shape
        if loop.guard != UNGUARDED or not loop.length:
            index = b.minimum(b.maximum(index, b.const(np.int64(0))), b.const(np.int64(n - 1)))
        return b.gather(array, index, attrs=(0,))


def _planned(survey: Survey, first: int, n_carry: int) -> _Plan:
    """What is read at a place that stays the same, and what is added to."""
    tape, rows = survey.tape, survey.rows
    outputs = tape.outputs.tolist()
    written: dict[int, list[Access]] = {}
    for access in survey.accesses:
        if access.writes:
            written.setdefault(access.position, []).append(access)
    moved = {1 + at for at in range(n_carry) if survey.root(outputs[at]) != 1 + at}
    plan = _Plan({}, [], {})
    numbers: dict[tuple[int, Sum], int] = {}
    for k, row in enumerate(rows):
        place = survey.place(row) if row.op is Op.GATHER else None
        position = survey.root(row.operands[0]) if place is not None else None
        if place is None or position is None or position in moved:
            continue
        if any(symbol >= first for symbol, _ in place.terms):
            continue
        writes = written.get(position, [])
        if all(w.place is not None and survey.apart(w.place, place) for w in writes):
            key = position, place
            if key not in numbers:
                numbers[key] = len(plan.indices)
                plan.indices.append((row.operands[0], row.operands[1]))
            plan.read_once[k] = numbers[key]
    _plan_sums(survey, plan)
    return plan


def _plan_sums(survey: Survey, plan: _Plan) -> None:
    rows, reads = survey.rows, readers(survey.tape)
    outputs = set(survey.tape.outputs.tolist())
    for k, row in enumerate(rows):
        place = survey.place(row) if row.op is Op.SCATTER else None
        if place is None or not row.type.is_float:
            continue
        total = row.operands[2]
        op, terms, *_ = rows[total]
        if op not in (Op.ADD, Op.SUB) or reads[total] != [k] or total in outputs:
            continue
        for n, x in enumerate(terms[: 1 if op is Op.SUB else 2]):
            own = rows[x]
            if own.op is not Op.GATHER or reads[x] != [total] or x in outputs:
                continue
            if survey.place(own) == place and _follows(survey, row.operands[0], own, place):
                plan.added[k] = terms[1 - n], op is Op.SUB
                break


def _follows(survey: Survey, x: int, read: Row, place: Sum) -> bool:
    """Whether array x has at a place what a read of an earlier state of it has found."""
    while x != read.operands[0]:
        row = survey.rows[x]
        if row.op in (Op.SCATTER, Op.SCATTER_ADD):
            other = survey.place(row)
            if other is None or not survey.apart(other, place):
                return False
        elif row.op is not Op.RESHAPE:
            return False
        x = row.operands[0]
    return True


class _Lifted:
    """Rows of a body that are the same in every step, computed before the loop."""

    def __init__(self, b: Builder, body: Tape, known: dict[int, int]) -> None:
        self.b, self.body, self.known = b, body, dict[int, int | None](known)

    def of(self, k: int) -> int | None:
        if k not in self.known:
            self.known[k] = self._of(k)
        return self.known[k]

    def _of(self, k: int) -> int | None:
        row = self.body.rows[k]
        if row.op is Op.CONST:
            return self.b.const(self.body.constants[row.attrs[0]])
        if row.op in _WRITES:  # elsewhere
            return self.of(row.operands[0])
        if row.op is not Op.RESHAPE and not (is_elementwise(row.op) and row.op is not Op.WRAP):
            return None
        operands = [self.of(x) for x in row.operands]
        found = [x for x in operands if x is not None]
        if len(found) < len(operands):
            return None
        return self.b.append(row.op, tuple(found), row.attrs, row.type)


def _edited(body: Tape, plan: _Plan, done: dict[int, int]) -> Tape:
    b, env = Builder(), dict[int, int]()
    for k in body.inputs.tolist():
        env[k] = b.input(body.rows[k].type)
    scalars: list[int] = []
    for number in done:
        k = next(k for k, at in plan.read_once.items() if at == number)
        scalars.append(b.input(body.rows[k].type))
    for k, row in enumerate(body.rows):
        if k in env:
            continue
        b.where = body.sources[row.source]
        if k in plan.read_once and plan.read_once[k] in done:
            env[k] = scalars[done[plan.read_once[k]]]
        elif k in plan.added:
            more, negated = plan.added[k]
            term = b.neg(env[more]) if negated else env[more]
            env[k] = b.scatter_add(env[row.operands[0]], env[row.operands[1]], term, attrs=(0,))
        else:
            env[k] = b.copy_row(body, k, env)
    return b.tape([env[k] for k in body.outputs.tolist()])
