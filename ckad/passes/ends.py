"""Of what a loop stacks, rows near the end are carried where nothing else of it is read.

``ys[-1]`` is the last value of a carry. So is the last row of what is made of ``ys`` row by row: a
slice is taken before the sums, transposes and concatenations behind the loop, not of their result.
"""

from __future__ import annotations

from weakref import WeakSet

from ckad.passes.rewrite import as_it_is, rebuild
from ckad.passes.simplify import simplify
from ckad.tape.builder import Builder
from ckad.tape.control import UNGUARDED, Loop, loop_attrs, read_loop
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.tape import Row, Tape
from ckad.tape.types import TUPLE, Type

#: So many rows at the end, at most, are carried.
MOST = 4
#: Per axis: where a part starts, its step, its length.
Part = tuple[tuple[int, int, int], ...]

#: What `ends` would return as it is.
_plain: WeakSet[Tape] = WeakSet()


def ends(tape: Tape) -> Tape:
    """``tape`` whose loops, those in bodies too, stack nothing of which only the end is read."""
    if tape in _plain:
        return tape
    if any(ends(body) is not body for body in tape.bodies):
        tape = simplify(rebuild(tape, as_it_is, ends))
    stacks = _stacks(tape)
    while stacks:
        reading = _Reading(tape, stacks, {})
        reading.run()
        if not reading.whole:
            made = _Reading(tape, stacks, reading.depths).run()
            # parts that overlap are computed once each
            tape = simplify(made) if len(made) <= 2 * len(tape) + 64 else tape
            break
        stacks = {k: stack for k, stack in stacks.items() if k not in reading.whole}
    _plain.add(tape)
    return tape


def _stacks(tape: Tape) -> dict[int, tuple[int, int]]:
    """Rows of stacked results: the row of the loop, and which of its body's outputs they are."""
    found, stacking = dict[int, tuple[int, int]](), dict[int, int]()
    for k, row in enumerate(tape.rows):
        if row.op is Op.LOOP:
            loop = read_loop(tape, row)
            if loop.guard == UNGUARDED and loop.length > 1:
                stacking[k] = len(loop.carry)
        elif row.op is Op.RESULT and row.attrs[0] >= stacking.get(
            row.operands[0], row.attrs[0] + 1
        ):
            found[k] = row.operands[0], row.attrs[0]
    if found:
        along = _along(tape, dict.fromkeys(found, 0))
        ways = {k for k, row in enumerate(tape.rows) if k in along or row.op is Op.SLICE}
        read = {x for k, row in enumerate(tape.rows) if k not in ways for x in row.operands}
        for k in read.union(tape.outputs.tolist()):
            found.pop(k, None)
    return found


def _along(tape: Tape, stacks: dict[int, int]) -> dict[int, int]:
    """The rows that are made of these step by step: along which of their axes the steps go."""
    along = dict(stacks)
    for k, row in enumerate(tape.rows):
        axes = {along[x] for x in row.operands if x in along}
        if k not in along and len(axes) == 1:
            axis = _axis(tape, row, axes.pop())
            if axis is not None:
                along[k] = axis
    return along


def _axis(tape: Tape, row: Row, axis: int) -> int | None:
    """Where an axis of the operands is found in the result, if it is there."""
    if row.op is Op.TRANSPOSE:
        return row.attrs.index(axis)
    if row.op is Op.RESHAPE:
        before, after = tape.rows[row.operands[0]].type.shape, row.type.shape
        if [n for n in before if n != 1] != [n for n in after if n != 1] or 0 in before:
            return None
        return _longer(after)[_longer(before).index(axis)]
    if row.op is Op.SLICE:
        return axis if row.type.shape[axis] > 1 else None
    # an index that is out of range stops the program, whether its row is read or not
    same = is_elementwise(row.op) and row.op is not Op.WRAP
    return axis if same or row.op in (Op.CONCAT, Op.UPDATE) else None


def _longer(shape: tuple[int, ...]) -> list[int]:
    return [a for a, n in enumerate(shape) if n != 1]


def _all_of(shape: tuple[int, ...]) -> Part:
    return tuple((0, 1, n) for n in shape)


def _cut_by(row: Row) -> Part:
    """What a row of the slice family reads or writes."""
    shape = row.type.shape
    return tuple(zip(row.attrs[: len(shape)], row.attrs[len(shape) :], shape, strict=True))


def _within(inner: tuple[int, int, int], outer: tuple[int, int, int]) -> tuple[int, int, int]:
    """The part of a part."""
    (start, step, n), (first, by, _) = inner, outer
    return first + by * start, by * step if n > 1 else 1, n


def _found_in(
    wanted: tuple[int, int, int], region: tuple[int, int, int]
) -> tuple[int, int, int] | None:
    """Which part of ``region`` is ``wanted``, if all of that is there."""
    (start, step, n), (first, by, length) = wanted, region
    at, off = divmod(start - first, by)
    stride, uneven = divmod(step, by) if n > 1 else (1, 0)
    inside = 0 <= at < length and 0 <= at + stride * (n - 1) < length
    return (at, stride, n) if inside and not off and not uneven else None


def _span(part: tuple[int, int, int]) -> tuple[int, int]:
    start, step, n = part
    end = start + step * (n - 1)
    return min(start, end), max(start, end)


def _apart(x: tuple[int, int, int], y: tuple[int, int, int]) -> bool:
    if x[2] == 1:
        return _found_in(x, y) is None
    return _span(x)[0] > _span(y)[1] or _span(x)[1] < _span(y)[0]


class _Reading:
    """A tape in which of what is made of stacks only the parts that are read are made.

    Without ``depths`` it finds them: how many rows from its end are read of each stack, and which
    stacks are read elsewhere (``whole``).
    """

    def __init__(
        self, tape: Tape, stacks: dict[int, tuple[int, int]], depths: dict[int, int]
    ) -> None:
        self._tape, self._stacks, self._known = tape, stacks, depths
        self._along = _along(tape, dict.fromkeys(stacks, 0))
        self._b, self._env = Builder(), dict[int, int]()
        self._parts = dict[tuple[int, Part], int]()
        self._registers = dict[int, list[int]]()  # of a stack: the carries of its rows, last first
        self.depths, self.whole = dict[int, int](), set[int]()

    def run(self) -> Tape:
        tape, b, env = self._tape, self._b, self._env
        shifts = dict[int, int]()
        for k, row in enumerate(tape.rows):
            b.where = tape.sources[row.source]
            if k in self._along:
                continue
            if row.op is Op.SLICE and row.operands[0] in self._along:
                env[k] = self._part(row.operands[0], _cut_by(row))
                continue
            for x in row.operands:
                self._made(x)
            of = [x for x, (loop, _) in self._stacks.items() if loop == k and x in self._known]
            if of:
                env[k], shifts[k] = self._carrying(row, of)
            elif row.op is Op.RESULT and row.operands[0] in shifts:
                loop = read_loop(tape, tape.rows[row.operands[0]])
                place = row.attrs[0]
                place += shifts[row.operands[0]] if place >= len(loop.carry) else 0
                env[k] = b.emit(Op.RESULT, (env[row.operands[0]],), (place,), row.type)
            else:
                env[k] = b.copy_row(tape, k, env)
        for k in tape.outputs.tolist():
            self._made(k)
        return b.tape([env[k] for k in tape.outputs.tolist()])

    def _made(self, k: int) -> None:
        if k not in self._env:
            self._env[k] = self._part(k, _all_of(self._tape.rows[k].type.shape))

    def _part(self, k: int, part: Part) -> int:
        """The row of a part of row k."""
        part = tuple((start, step if n > 1 else 1, n) for start, step, n in part)
        row, shape = self._tape.rows[k], tuple(n for *_, n in part)
        if 0 in shape:
            return self._b.full(row.type.with_shape(shape), 0)
        if k not in self._along:
            return self._cut(self._env[k], part)
        if (k, part) not in self._parts:
            self._parts[k, part] = self._new(k, row, part, shape)
        return self._parts[k, part]

    def _cut(self, x: int, part: Part) -> int:
        b, type, shape = self._b, self._b.type(x), tuple(n for *_, n in part)
        if part == _all_of(type.shape):
            return x
        if b.rows[x].op is Op.BROADCAST and not b.type(b.rows[x].operands[0]).shape:
            return b.broadcast_to(b.rows[x].operands[0], shape)
        attrs = (*(start for start, *_ in part), *(step for _, step, _ in part))
        return b.slice(x, attrs=attrs, type=type.with_shape(shape))

    def _new(self, k: int, row: Row, part: Part, shape: tuple[int, ...]) -> int:
        b, operands = self._b, row.operands
        if k in self._stacks:
            return self._of_stack(k, row, part)
        if row.op is Op.SLICE:
            inner = tuple(map(_within, part, _cut_by(row)))
            return self._part(operands[0], inner)
        if row.op is Op.TRANSPOSE:
            turned = tuple(part[row.attrs.index(a)] for a in range(len(part)))
            return b.transpose(self._part(operands[0], turned), attrs=row.attrs)
        if row.op is Op.RESHAPE:
            before = self._tape.rows[operands[0]].type.shape
            at = dict(zip(_longer(before), _longer(row.type.shape), strict=True))
            inner = tuple(part[at[a]] if a in at else (0, 1, 1) for a in range(len(before)))
            return b.reshape_to(self._part(operands[0], inner), shape)
        if row.op is Op.CONCAT:
            return self._of_concat(k, row, part)
        if row.op is Op.UPDATE:
            return self._of_update(k, row, part)
        parts = [self._part(x, part) for x in operands]
        return b.emit(row.op, parts, row.attrs, row.type.with_shape(shape))

    def _of_concat(self, k: int, row: Row, part: Part) -> int:
        (axis,) = row.attrs
        (start, step, n), at, pieces = part[axis], 0, list[int]()
        low, high = _span(part[axis])
        for x in row.operands:
            length = self._tape.rows[x].type.shape[axis]
            if at <= low and high < at + length:
                return self._part(x, (*part[:axis], (start - at, step, n), *part[axis + 1 :]))
            if step == 1 and low < at + length and high >= at:
                first, stop = max(low - at, 0), min(high + 1 - at, length)
                own = (*part[:axis], (first, 1, stop - first), *part[axis + 1 :])
                pieces.append(self._part(x, own))
            at += length
        if step == 1:
            return self._b.concat(*pieces, attrs=(axis,))
        return self._cut(self._part(k, _all_of(row.type.shape)), part)

    def _of_update(self, k: int, row: Row, part: Part) -> int:
        array, put = row.operands
        rank, types = len(part), self._tape.rows
        region = tuple(zip(row.attrs[:rank], row.attrs[rank:], types[put].type.shape, strict=True))
        if 0 in types[put].type.shape or any(map(_apart, part, region)):
            return self._part(array, part)
        inner = tuple(map(_found_in, part, region))
        known = tuple(x for x in inner if x is not None)
        if len(known) == rank:
            return self._part(put, known)
        self._made(array)
        self._made(put)
        return self._cut(self._b.update(self._env[array], self._env[put], attrs=row.attrs), part)

    # --- the stacks ------------------------------------------------------------------------------

    def _of_stack(self, k: int, row: Row, part: Part) -> int:
        b, (steps, *others) = self._b, part
        type, n = row.type, row.type.shape[0]
        if n - _span(steps)[0] > MOST:
            self.whole.add(k)
        self.depths[k] = max(self.depths.get(k, 0), n - _span(steps)[0])
        if not self._known:
            return b.full(type.with_shape(tuple(m for *_, m in part)), 0)
        start, step, count = steps
        rows = []
        for at in range(start, start + step * count, step):
            found = self._cut(self._registers[k][n - 1 - at], tuple(others))
            rows.append(b.reshape_to(found, (1, *b.type(found).shape)))
        return b.concat(*rows, attrs=(0,)) if count > 1 else rows[0]

    def _carrying(self, row: Row, stacks: list[int]) -> tuple[int, int]:
        """The loop with carries for rows of these stacks, and how many those are."""
        b, loop = self._b, read_loop(self._tape, row)
        n, types, outputs = len(loop.carry), loop.body.output_types, loop.body.outputs.tolist()
        places, sources = list[list[int]](), list[int]()
        for k in stacks:
            y = self._stacks[k][1]
            own = [c for c in outputs[:n] if c == outputs[y]]
            chain = [outputs.index(own[0])] if own else []
            for _ in range(len(chain), self._known[k]):
                sources.append(chain[-1] if chain else ~y)
                chain.append(n + len(sources) - 1)
            places.append(chain)
        of = [
            types[self._stacks[k][1]]
            for k, chain in zip(stacks, places, strict=True)
            for c in chain
            if c >= n
        ]
        operands = [[self._env[x] for x in g] for g in (loop.carry, loop.xs, loop.captured)]
        body = _with_registers(loop, sources, of)
        attrs = loop_attrs(b.body(body), loop.length, n + len(of), len(loop.xs), loop.guard)
        begin = [*operands[0], *(b.full(type, 0) for type in of)]
        new = b.emit(Op.LOOP, [*begin, *operands[1], *operands[2]], attrs, TUPLE)
        for k, chain in zip(stacks, places, strict=True):
            type = types[self._stacks[k][1]]
            self._registers[k] = [b.emit(Op.RESULT, (new,), (c,), type) for c in chain]
        return new, len(of)


def _with_registers(loop: Loop, sources: list[int], types: list[Type]) -> Tape:
    """The body with more carries: each the carry ``source`` as it came in, or the y ``~source``."""
    body, n, b = loop.body, len(loop.carry), Builder()
    inputs, outputs = body.inputs.tolist(), body.outputs.tolist()
    env = {k: b.input(body.rows[k].type) for k in inputs[: 1 + n]}
    registers = [b.input(type) for type in types]
    env |= {k: b.input(body.rows[k].type) for k in inputs[1 + n :]}
    for k in range(len(body)):
        if k not in env:
            env[k] = b.copy_row(body, k, env)
    carried = [*(env[k] for k in inputs[1 : 1 + n]), *registers]
    new = [carried[at] if at >= 0 else env[outputs[~at]] for at in sources]
    return b.tape([*(env[k] for k in outputs[:n]), *new, *(env[k] for k in outputs[n:])])
