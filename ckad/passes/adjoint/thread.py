"""Arrays that change around a loop which only reads them go through it.

A loop in a loop may capture an array that the outer steps change. Its reverse would ask for the
array as it was in each of these steps, though it needs but the few elements that are read. As a
part of the loop's state the array is handed on, and the elements are kept. Where as many are read
as the program says when it runs, each of these steps would keep the whole array: it stays captured.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckad.passes.activity import dependent
from ckad.passes.adjoint.residuals import Picks
from ckad.tape.builder import Builder
from ckad.tape.control import Loop, loop_attrs, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import TUPLE

#: Arrays of so few elements are kept rather than their elements.
FEW = 64


def threaded(tape: Tape, stays: Sequence[bool] | None = None) -> Tape:
    """``tape`` whose inner loops carry the large arrays that change around them.

    Inputs that ``stays`` are the same in all steps of all loops around.
    """
    if not tape.bodies:
        return tape
    return _Threaded(tape, [True] * len(tape.inputs) if stays is None else stays).run()


class _Threaded:
    def __init__(self, tape: Tape, stays: Sequence[bool]) -> None:
        self.tape, self.b = tape, Builder()
        self.changes = dependent(tape, [not x for x in stays])
        self.env: list[int] = []
        self.moved: dict[int, tuple[int, int]] = {}  # row of a loop -> (its carry, how many more)

    def run(self) -> Tape:
        for k, row in enumerate(self.tape.rows):
            self.b.where = self.tape.sources[row.source]
            self.env.append(self._row(k, row))
        return self.b.tape([self.env[k] for k in self.tape.outputs.tolist()])

    def _row(self, k: int, row: Row) -> int:
        if row.op is Op.LOOP:
            return self._loop(k, read_loop(self.tape, row))
        if row.op is Op.COND:
            inside = [not self.changes[x] for x in row.operands[1:]]
            return self.b.copy_row(self.tape, k, self.env, lambda body: threaded(body, inside))
        if row.op is Op.RESULT and row.operands[0] in self.moved:
            n, more = self.moved[row.operands[0]]
            number = row.attrs[0] + (more if row.attrs[0] >= n else 0)
            return self.b.emit(Op.RESULT, (self.env[row.operands[0]],), (number,), row.type)
        return self.b.copy_row(self.tape, k, self.env)

    def _loop(self, k: int, loop: Loop) -> int:
        b, n = self.b, len(loop.carry)
        given = [*loop.carry, *loop.xs, *loop.captured]
        through = [
            at
            for at, x in enumerate(loop.captured)
            if self._goes_through(x)
            and not _is_picked(loop, at)
            and [self._base(y) for y in given].count(self._base(x)) == 1
        ]
        rest = [at for at in range(len(loop.captured)) if at not in through]
        inside = [
            True,
            *[False] * (n + len(through)),
            *(not self.changes[x] for x in loop.xs),
            *(not self.changes[loop.captured[at]] for at in rest),
        ]
        body = threaded(_carrying(loop, through, rest), inside)
        taken = [loop.captured[at] for at in through]
        operands = [*loop.carry, *taken, *loop.xs, *(loop.captured[at] for at in rest)]
        attrs = loop_attrs(b.body(body), loop.length, n + len(through), len(loop.xs), loop.guard)
        new = b.append(Op.LOOP, tuple(self.env[x] for x in operands), attrs, TUPLE)
        self.moved[k] = n, len(through)
        for j, x in enumerate(taken):
            self._follow(x, b.emit(Op.RESULT, (new,), (n + j,), self.tape.rows[x].type))
        return new

    def _goes_through(self, x: int) -> bool:
        type = self.tape.rows[x].type
        return self.changes[x] and type.is_float and type.size > FEW

    def _base(self, x: int) -> int:
        while self.tape.rows[x].op is Op.RESHAPE:
            (x,) = self.tape.rows[x].operands
        return x

    def _follow(self, x: int, new: int) -> None:
        """What is read of an array from here on is what the loop has handed on."""
        base = self._base(x)
        for k in range(len(self.env)):
            if self._base(k) == base:
                self.env[k] = self.b.reshape_to(new, self.tape.rows[k].type.shape)


def _is_picked(loop: Loop, at: int) -> bool:
    """Whether the body picks parts of run-time lengths from a captured array: it is kept whole."""
    body, picks = loop.body, Picks(loop.body)
    same = {int(body.inputs[1 + len(loop.carry) + len(loop.xs) + at])}
    for k, row in enumerate(body.rows):
        if row.op is Op.RESHAPE and row.operands[0] in same:
            same.add(k)
        elif row.op is Op.GATHER and row.operands[0] in same and picks.is_part(k):
            return True
    return False


def _carrying(loop: Loop, through: Sequence[int], rest: Sequence[int]) -> Tape:
    """The body with some captured arrays as carried ones that it returns as they are."""
    body, b = loop.body, Builder()
    n, inputs = len(loop.carry), loop.body.inputs.tolist()
    first = 1 + n + len(loop.xs)
    order = [*range(1 + n), *(first + at for at in through), *range(1 + n, first),
             *(first + at for at in rest)]  # fmt: skip
    env = {inputs[at]: b.input(body.rows[inputs[at]].type) for at in order}
    for k in range(len(body)):
        if k not in env:
            env[k] = b.copy_row(body, k, env)
    outputs = [env[k] for k in body.outputs.tolist()]
    kept = [env[inputs[first + at]] for at in through]
    return b.tape([*outputs[:n], *kept, *outputs[n:]])
