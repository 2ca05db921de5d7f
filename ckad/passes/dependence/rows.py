"""What the elements of every row of a tape depend on, by its derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ckad.passes.activity import has_derivative
from ckad.passes.dependence.columns import Columns, nothing, stacked, union, units
from ckad.passes.dependence.places import RULES_OF_PLACES, Known
from ckad.rules import RULES
from ckad.tape.control import UNGUARDED, Loop, read_loop
from ckad.tape.ops import Group, Op, is_elementwise
from ckad.tape.routines import routine_of
from ckad.tape.row import Row
from ckad.tape.tape import Tape
from ckad.tape.types import Type

#: Loops of so many rows in all are followed step by step; others to a fixed point,
FOLLOWED = 4096
#: which is found after so many rounds, or taken to be that everything depends on everything.
ROUNDS = 16

Parts = list[Columns | None]


def dependence(
    tape: Tape, wrt: Sequence[int], known: Mapping[int, np.ndarray] | None = None
) -> list[Columns]:
    """Per output, the elements of the inputs ``wrt``, one after the other, that it depends on.

    ``known`` holds inputs of integers whose values count: indices, masks. What derivatives do not
    see (the condition of a branch, an index) is no dependence.
    """
    types, inputs = tape.input_types, Parts([None] * len(tape.inputs))
    sizes = [types[k].size for k in wrt]
    n = sum(sizes)
    for k, first, size in zip(wrt, np.cumsum([0, *sizes]).tolist(), sizes, strict=False):
        inputs[k] = units(first, size, n)
    numbers: list[Known] = [None] * len(tape.inputs)
    for k, values in (known or {}).items():
        numbers[k] = values
    found = _outputs(tape, inputs, numbers)
    outputs = zip(found, tape.output_types, strict=True)
    return [nothing(t.size, n) if x is None else x for x, t in outputs]


def _outputs(tape: Tape, inputs: Parts, numbers: Sequence[Known]) -> Parts:
    walk = _Walk(tape, inputs, numbers)
    return [walk.parts[k] for k in tape.outputs.tolist()]


class _Walk:
    """One tape, row by row."""

    def __init__(self, tape: Tape, inputs: Parts, numbers: Sequence[Known]) -> None:
        self.tape, self.given = tape, (inputs, numbers)
        self.parts: Parts = []
        self.numbers: list[Known] = []
        self.results: dict[int, Parts] = {}
        for k, row in enumerate(tape.rows):
            self.numbers.append(self._number(row))
            self.parts.append(self._part(k, row))

    def _number(self, row: Row) -> Known:
        """The value of a row of constants; of floats only where it is itself one."""
        if row.op is Op.INPUT:
            return self.given[1][row.attrs[0]]
        if row.op is Op.CONST:
            return self.tape.constants[row.attrs[0]]
        of = [self.numbers[x] for x in row.operands]
        group = row.op.row.group
        if row.type.is_float or group in (Group.CONTROL, Group.LEAF, Group.CALL):
            return None
        if any(x is None for x in of):
            return None
        evaluator = RULES[row.op].evaluate
        assert evaluator is not None
        with np.errstate(all="ignore"):
            return np.asarray(evaluator(row.type, row.attrs, *of), row.type.numpy)

    def _part(self, k: int, row: Row) -> Columns | None:
        if row.op is Op.INPUT:
            return self.given[0][row.attrs[0]] if row.type.is_float else None
        if row.op is Op.RESULT:
            of = self.results.get(row.operands[0])
            return None if of is None else of[row.attrs[0]]
        operands = [self.parts[x] for x in row.operands]
        if all(x is None for x in operands):
            return None
        if row.op in (Op.LOOP, Op.COND):
            self.results[k] = self._loop(row) if row.op is Op.LOOP else self._cond(row)
            return union_of_all(self.results[k])
        if not row.type.is_float or row.op is Op.STOP or not has_derivative(row.op):
            return None
        if row.op is Op.CALL and routine_of(row).marks:
            operands[0] = None  # its derivative is that of the others
        types = [self.tape.rows[x].type for x in row.operands]
        numbers = [self.numbers[x] for x in row.operands]
        rule = RULES_OF_PLACES.get(row.op)
        if rule is None and is_elementwise(row.op):
            return union(operands)
        if rule is None:
            return union([x.everything(row.type.size) for x in operands if x is not None])
        return rule(row, operands, numbers, types)

    def _of(self, rows: Sequence[int]) -> Parts:
        return [self.parts[x] for x in rows]

    def _cond(self, row: Row) -> Parts:
        inputs = self._of(row.operands[1:])
        numbers = [self.numbers[x] for x in row.operands[1:]]
        taken = self.numbers[row.operands[0]]
        sides = [self.tape.bodies[k] for k in row.attrs[:2]]
        if taken is not None:
            sides = [sides[0] if taken else sides[1]]
        both = [_outputs(side, inputs, numbers) for side in sides]
        return [union(pair) for pair in zip(*both, strict=True)]

    # --- loops ---------------------------------------------------------------------------------

    def _loop(self, row: Row) -> Parts:
        loop = read_loop(self.tape, row)
        if loop.length * _n_rows(loop.body) <= FOLLOWED:
            return self._followed(loop)
        return self._fixed(loop)

    def _followed(self, loop: Loop) -> Parts:
        """Step by step: the number of the step is known, and what it reads."""
        carry, n = self._of(loop.carry), len(loop.carry)
        ever = carry
        steps: list[Parts] = []
        captured = [self.numbers[x] for x in loop.captured]
        types = loop.body.input_types[1 + n :]
        for i in range(loop.length):
            xs = [_item(self.parts[x], i, t) for x, t in zip(loop.xs, types, strict=False)]
            known = [None if v is None else v[i] for v in (self.numbers[x] for x in loop.xs)]
            own: list[Known] = [np.asarray(i), *[None] * n, *map(_array, known), *captured]
            out = _outputs(loop.body, [None, *carry, *xs, *self._of(loop.captured)], own)
            carry = out[:n]
            ever = [union(pair) for pair in zip(ever, carry, strict=True)]
            steps.append(out[n:])
        ys = [
            stacked(parts, t.size)
            for parts, t in zip(
                zip(*steps, strict=True), loop.body.output_types[n:], strict=bool(steps)
            )
        ]
        return [*(carry if loop.guard == UNGUARDED else ever), *ys]

    def _fixed(self, loop: Loop) -> Parts:
        """What holds for all steps alike."""
        carry, n = self._of(loop.carry), len(loop.carry)
        types = loop.body.input_types
        xs = [
            None if c is None else _any_item(c, t)
            for c, t in zip(self._of(loop.xs), types[1 + n :], strict=False)
        ]
        rest = [*xs, *self._of(loop.captured)]
        own: list[Known] = [None] * (1 + n + len(loop.xs))
        own += [self.numbers[x] for x in loop.captured]
        for rounds in range(ROUNDS + n + 1):
            out = _outputs(loop.body, [None, *carry, *rest], own)
            grown = [union(pair) for pair in zip(carry, out[:n], strict=True)]
            if rounds >= ROUNDS:  # whatever it will be, it is not more
                grown = _everything(grown, rest, types[1 : 1 + n])
            if all(map(_same, carry, grown)):
                break
            carry = grown
        ys = [stacked([y] * loop.length, t.size) for y, t in
              zip(out[n:], loop.body.output_types[n:], strict=True)]  # fmt: skip
        return [*carry, *ys]


def union_of_all(parts: Parts) -> Columns | None:
    """All columns of several values, of one element: a mark that a control row has some."""
    return union([None if x is None else x.everything(1) for x in parts])


def _everything(carry: Parts, rest: Parts, types: Sequence[Type]) -> Parts:
    """Each carry that depends on anything depends on all that any of them can."""
    all_of = union_of_all([*carry, *rest])
    return [
        None if c is None or all_of is None else all_of.everything(t.size)
        for c, t in zip(carry, types, strict=True)
    ]


def _same(x: Columns | None, y: Columns | None) -> bool:
    return x is y or (x is not None and y is not None and x.same(y))


def _item(x: Columns | None, i: int, type: Type) -> Columns | None:
    return None if x is None else x.taken(np.arange(i * type.size, (i + 1) * type.size))


def _any_item(x: Columns, type: Type) -> Columns:
    size = max(type.size, 1)
    return x.grouped(np.arange(x.size) % size, type.size)


def _array(x: Known) -> Known:
    return None if x is None else np.asarray(x)


def _n_rows(tape: Tape) -> int:
    return len(tape) + sum(map(_n_rows, tape.bodies))
