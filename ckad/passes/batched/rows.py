"""A tape for all members of a batch at once.

A value that depends on a batched input gets a first axis in addition, one element for each member;
all others stay as they are and are computed once. An op says in its rule block how it takes such
operands; what has no such rule, and a branch or a loop that members leave at different times, runs
for one member after the other. A loop carries the axis in what becomes batched in any of its steps.
The token of a taped loop counts as batched if anything behind it is: so does then what reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

from ckad.errors import BatchError
from ckad.passes.untape import is_taped
from ckad.rules import RULES
from ckad.rules.registry import Lanes
from ckad.tape.builder import BODY_COUNT, Builder
from ckad.tape.control import UNGUARDED, loop_attrs, read_loop, read_reverse_loop
from ckad.tape.ops import OPS, Group, Op, is_elementwise
from ckad.tape.row import Row
from ckad.tape.tape import Tape
from ckad.tape.types import DType, Type

Flags = list[bool]


class Kept(NamedTuple):
    """What of the state and of the residuals of a taped loop is batched."""

    carry: Flags
    residuals: Flags


class Results(NamedTuple):
    """The row of a control op, which of its results are batched, and at the second axis."""

    row: int
    batched: Flags
    second: Flags


def batched(tape: Tape, inputs: Sequence[bool], n: int) -> Tape:
    """``tape`` with an axis of ``n`` members in front of the chosen inputs, and of all outputs.

    Raises BatchError if members would leave a taped loop at different times.
    """
    return _batched(tape, inputs, [True] * len(tape.outputs), n, {})[0]


def _batched(
    tape: Tape, inputs: Sequence[bool], wanted: Sequence[bool], n: int, kept: dict[int, Kept]
) -> tuple[Tape, Flags]:
    """The tape, and which of its outputs are batched: those ``wanted``, and others if they are.

    ``kept`` tells of each taped loop by its name.
    """
    if not any(inputs) and not any(wanted):
        return tape, [False] * len(tape.outputs)
    walk = _Walk(tape, inputs, n, kept)
    outputs = tape.outputs.tolist()
    flags = [walk.batched[k] or w for k, w in zip(outputs, wanted, strict=True)]
    values = [walk.axis(k) if f else walk.env[k] for k, f in zip(outputs, flags, strict=True)]
    return walk.b.tape(values), flags


class _Walk:
    """One tape being rewritten, row by row."""

    def __init__(self, tape: Tape, inputs: Sequence[bool], n: int, kept: dict[int, Kept]) -> None:
        self.tape, self.n, self.kept, self.b = tape, n, kept, Builder()
        self.inputs = [
            self.b.input(self._type(t, f)) for t, f in zip(tape.input_types, inputs, strict=True)
        ]
        self.env: list[int] = []
        self.batched: Flags = []
        self.results: dict[int, Results] = {}
        for k, row in enumerate(tape.rows):
            self.b.where = tape.sources[row.source]
            flag = self._flag(row, inputs)
            self.batched.append(flag)
            self.env.append(self._row(k, row, flag))

    def _flag(self, row: Row, inputs: Sequence[bool]) -> bool:
        if row.op is Op.INPUT:
            return inputs[row.attrs[0]]
        if row.op is Op.RESULT and row.operands[0] in self.results:
            return self.results[row.operands[0]].batched[row.attrs[0]]
        return any(self.batched[x] for x in row.operands)

    def _row(self, k: int, row: Row, flag: bool) -> int:
        if row.op is Op.INPUT:
            return self.inputs[row.attrs[0]]
        if row.op is Op.RESULT and row.operands[0] in self.results:
            return self._result(row)
        if not flag:
            return self.b.copy_row(self.tape, k, self.env)
        if row.op in BODY_COUNT:
            self.results[k] = self._control(k, row)
            return self.results[k].row
        lanes = Lanes(self.n, row.type, row.attrs, [self.batched[x] for x in row.operands])
        operands = [self.env[x] for x in row.operands]
        if is_elementwise(row.op):
            return self.b.emit(row.op, lanes.all(self.b, operands), row.attrs, lanes.out)
        rule = RULES[row.op].batch
        if rule is not None:
            return rule(self.b, lanes, *operands)
        return self._result(row, self._one_by_one(k, row))

    def _type(self, type: Type, flag: bool) -> Type:
        has_axis = flag and type.dtype is not DType.TOKEN
        return type.with_shape((self.n, *type.shape)) if has_axis else type

    def _result(self, row: Row, of: Results | None = None) -> int:
        """The result that ``row`` takes out; of a row that is no control op, its only one."""
        of, at = (self.results[row.operands[0]], row.attrs[0]) if of is None else (of, 0)
        type = self._type(row.type, of.batched[at])
        if not of.second[at]:
            return self.b.emit(Op.RESULT, (of.row,), (at,), type)
        n, length, *shape = type.shape
        type = type.with_shape((length, n, *shape))
        return self._swapped(self.b.emit(Op.RESULT, (of.row,), (at,), type))

    def _swapped(self, x: int) -> int:
        """The first two axes in the other order: that of steps and that of members."""
        rank = len(self.b.type(x).shape)
        return self.b.transpose(x, attrs=(1, 0, *range(2, rank)))

    def axis(self, k: int) -> int:
        """The value of a row with the axis."""
        x = self.env[k]
        type = self.b.type(x)
        if self.batched[k] or type.dtype is DType.TOKEN:
            return x
        return self.b.broadcast_to(x, (self.n, *type.shape))

    def _given(self, rows: Sequence[int], flags: Sequence[bool]) -> list[int]:
        return [self.axis(x) if f else self.env[x] for x, f in zip(rows, flags, strict=True)]

    def _streams(self, rows: Sequence[int]) -> list[int]:
        """What a loop reads at each step: the steps come first."""
        return [self._swapped(self.env[x]) if self.batched[x] else self.env[x] for x in rows]

    def _of(self, rows: Sequence[int]) -> Flags:
        return [self.batched[x] for x in rows]

    # --- control -------------------------------------------------------------------------------

    def _control(self, k: int, row: Row) -> Results:
        if row.op is Op.COND:
            return self._cond(k, row)
        if row.op is Op.REVERSE_LOOP:
            return self._reverse_loop(row)
        return self._loop(k, row)

    def _cond(self, k: int, row: Row) -> Results:
        if self.batched[row.operands[0]]:
            return self._one_by_one(k, row)
        sides = [self.tape.bodies[t] for t in row.attrs[:2]]
        given = self._of(row.operands[1:])
        wanted = [False] * len(sides[0].outputs)
        for _ in range(2):  # the second time each side gives the axis where the other has it
            for side in sides:
                _, found = _batched(side, given, wanted, self.n, self.kept)
                wanted = found
        bodies = [_batched(side, given, wanted, self.n, self.kept)[0] for side in sides]
        attrs = [self.b.body(body) for body in bodies]
        operands = [self.env[x] for x in row.operands]
        new = self.b.emit(Op.COND, operands, (*attrs, *row.attrs[2:]), row.type)
        return Results(new, wanted, [False] * len(wanted))

    def _loop(self, k: int, row: Row) -> Results:
        """A LOOP or a TAPED_LOOP."""
        loop = read_loop(self.tape, row)
        carry, rest = self._of(loop.carry), self._of((*loop.xs, *loop.captured))
        fullest = loop.body if loop.taping is None else loop.taping
        n, n_out = len(carry), len(loop.body.outputs)
        while True:
            wanted = [*carry, *[False] * (len(fullest.outputs) - n)]
            body, found = _batched(fullest, [False, *carry, *rest], wanted, self.n, self.kept)
            if found[:n] == carry:
                break
            carry = found[:n]
        if loop.guard != UNGUARDED and carry[0]:
            return self._one_by_one(k, row)
        bodies = [body]
        if loop.taping is not None:
            self.kept[loop.name] = Kept(carry, found[n_out:])
            given = [False, *carry, *rest]
            bodies.insert(0, _batched(loop.body, given, found[:n_out], self.n, self.kept)[0])
        operands = [*self._given(loop.carry, carry), *self._streams(loop.xs)]
        operands += [self.env[x] for x in loop.captured]
        attrs = (*map(self.b.body, bodies), *row.attrs[len(bodies) :])
        new = self.b.emit(row.op, operands, attrs, row.type)
        flags = found[:n_out]
        return Results(new, [*flags, any(found)], [*[False] * n, *flags[n:], False])

    def _reverse_loop(self, row: Row) -> Results:
        loop = read_reverse_loop(self.tape, row)
        nothing = Kept([False] * loop.n_carry, [False] * loop.n_residuals)
        kept = self.kept.get(loop.name, nothing)
        xs, captured, ct_ys = map(self._of, (loop.xs, loop.captured, loop.ct_ys))
        n, totals = len(loop.ct_carry), self._of((*loop.ct_carry, *loop.sums))
        while True:
            given = [False, *kept.residuals, *xs, *captured, *totals[:n], *ct_ys, *totals[n:]]
            wanted = [*totals, *[False] * loop.n_ct_xs]
            reverse, found = _batched(loop.reverse, given, wanted, self.n, self.kept)
            if found[: len(totals)] == totals:
                break
            totals = found[: len(totals)]
        given = [False, *kept.carry, *xs, *captured]
        states = [*kept.carry], [*kept.carry, *kept.residuals]
        advance, taping = (
            _batched(body, given, wanted, self.n, self.kept)[0]
            for body, wanted in zip((loop.advance, loop.taping), states, strict=True)
        )
        operands = [self.env[loop.token], *self._streams(loop.xs)]
        operands += [self.env[x] for x in loop.captured]
        operands += self._given(loop.ct_carry, totals[:n])
        operands += [*self._streams(loop.ct_ys), *self._given(loop.sums, totals[n:])]
        attrs = (*map(self.b.body, (advance, taping, reverse)), *row.attrs[3:])
        new = self.b.emit(Op.REVERSE_LOOP, operands, attrs, row.type)
        return Results(new, found, [*[False] * len(totals), *found[len(totals) :]])

    # --- one member after the other --------------------------------------------------------------

    def _one_by_one(self, k: int, row: Row) -> Results:
        """A loop over the members whose step is the row."""
        flags = self._of(row.operands)
        if row.op is Op.TAPED_LOOP or any(is_taped(self.tape.bodies[t]) for t in _bodies(row)):
            raise BatchError(f"{self.tape.source_of(k)}: members end a loop at different steps")
        members = list(compress(row.operands, flags))
        shared = [x for x, f in zip(row.operands, flags, strict=True) if not f]
        inner = Builder()
        inner.input(Type(DType.I64, ()))
        env = {x: inner.input(self.tape.rows[x].type) for x in dict.fromkeys(members)}
        env |= {x: inner.input(self.tape.rows[x].type) for x in dict.fromkeys(shared)}
        one = inner.copy_row(self.tape, k, env)
        types = _result_types(self.tape, row)
        outputs = [inner.emit(Op.RESULT, (one,), (at,), t) for at, t in enumerate(types)]
        body = self.b.body(inner.tape(outputs if row.op in BODY_COUNT else [one]))
        operands = [self.env[x] for x in env]
        attrs = loop_attrs(body, self.n, 0, len(set(members)))
        new = self.b.emit(Op.LOOP, operands, attrs, Type(DType.TUPLE, ()))
        n_results = len(types) if row.op in BODY_COUNT else 1
        return Results(new, [True] * n_results, [False] * n_results)


def _bodies(row: Row) -> Sequence[int]:
    return row.attrs[: BODY_COUNT.get(row.op, 0)]


def _result_types(tape: Tape, row: Row) -> list[Type]:
    """The types of the results of a COND or a LOOP; none of other rows."""
    if OPS[row.op].group is not Group.CONTROL:
        return []
    types = list(tape.bodies[row.attrs[0]].output_types)
    if row.op is Op.COND:
        return types
    loop = read_loop(tape, row)
    n = len(loop.carry)
    return [*types[:n], *(t.with_shape((loop.length, *t.shape)) for t in types[n:])]
