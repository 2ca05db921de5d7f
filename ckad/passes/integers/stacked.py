"""What steps write in order into an array is what the loop gives, not carries.

An array that is carried is part of every restart state. So where step i writes row a i + s,
forwards or backwards, one row or several at different places, and reads a few rows before its own
at the most, the steps carry these rows alone; what they write is stacked, and put into the array
behind the loop. It is for the loops of the tape itself, before it is differentiated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ckad.passes.integers.periodic import periodic
from ckad.passes.liveness import readers
from ckad.tape.builder import Builder
from ckad.tape.control import UNGUARDED, Loop, loop_attrs, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import TUPLE, Type

#: So many rows before its own a step may read, and so many rows it may write.
MOST_BEFORE, MOST_ROWS = 4, 16


class Numbers(NamedTuple):
    """Integers that follow from the number of the step, i: ``stride`` i + s for each of some s."""

    stride: int
    shifts: tuple[int, ...]


class Link(NamedTuple):
    """One row that each step writes."""

    write: int  # the row of the body that writes it
    part: int | None  # which of those that are written at once
    first: int  # where step 0 writes it
    before: int  # how many steps before its own a step reads what was written


class Written(NamedTuple):
    """A carried array that steps write in order along an axis."""

    position: int  # in the carry
    axis: int
    stride: int
    type: Type  # of the array as it is written, which may be reshaped to be
    links: list[Link]
    read: dict[int, tuple[int, int]]  # row of a read -> which link, how many steps before or 0
    unwritten: dict[int, int]  # row of a read of what is there before the loop -> where of step 0
    gone: set[int]  # rows of the body that are the array in one of its states

    @property
    def ahead(self) -> list[int]:
        return sorted(set(self.unwritten.values()))


def stacked(tape: Tape) -> Tape:
    """``tape`` whose loops give the rows that steps, or every m-th of them, write in order."""
    return periodic(_stacked(tape))


def _stacked(tape: Tape) -> Tape:
    found = {
        k: written
        for k, row in enumerate(tape.rows)
        if row.op is Op.LOOP and (written := _written(tape, read_loop(tape, row)))
    }
    if not found:
        return tape
    b, env = Builder(), dict[int, int]()
    results = dict[int, dict[int, int]]()  # row of a loop -> the rows of its results
    for k, row in enumerate(tape.rows):
        b.where = tape.sources[row.source]
        if k in found:
            results[k] = _rewritten(b, tape, row, found[k], env)
        elif row.op is Op.RESULT and row.operands[0] in results:
            env[k] = results[row.operands[0]][row.attrs[0]]
        else:
            env[k] = b.copy_row(tape, k, env)
    return b.tape([env[k] for k in tape.outputs.tolist()])


# --- which they are ------------------------------------------------------------------------------


def _written(tape: Tape, loop: Loop) -> list[Written]:
    if loop.guard != UNGUARDED or not loop.length:
        return []
    read, known = readers(loop.body), _counters(tape, loop)
    found = (_of_carry(loop, at, read, known) for at in range(len(loop.carry)))
    return [x for x in found if x is not None]


def _counters(tape: Tape, loop: Loop) -> dict[int, Numbers]:
    """The number of the step, and what is carried and grows by a constant in each, by row."""
    body = loop.body
    found = {int(body.inputs[0]): Numbers(1, (0,))}
    for at, given in enumerate(loop.carry):
        before, row = int(body.inputs[1 + at]), body.rows[int(body.outputs[at])]
        if row.type.shape or row.op is not Op.ADD or tape.rows[given].op is not Op.CONST:
            continue
        if not np.issubdtype(row.type.numpy, np.integer):
            continue
        by = [_constant(body, x) for x in row.operands if x != before]
        if len(by) == 1 and by[0] is not None and before in row.operands:
            start = _constant(tape, given)
            assert start is not None
            found[before] = Numbers(int(by[0]), (int(start),))
    return found


def _constant(tape: Tape, k: int) -> np.ndarray | None:
    row = tape.rows[k]
    return tape.constants[row.attrs[0]] if row.op is Op.CONST else None


def _numbers(body: Tape, k: int, known: Mapping[int, Numbers]) -> Numbers | None:
    """What row k is, if it is that."""
    if k in known:
        return known[k]
    row = body.rows[k]
    if len(row.type.shape) > 1 or not 0 < row.type.size <= MOST_ROWS:
        return None
    constant = _constant(body, k)
    if constant is not None:
        return Numbers(0, tuple(map(int, constant.ravel())))
    if row.op is Op.BROADCAST:
        x = _numbers(body, row.operands[0], known)
        return x and Numbers(x.stride, x.shifts * (row.type.size // len(x.shifts)))
    if row.op not in (Op.ADD, Op.SUB, Op.MUL):
        return None
    x, y = (_numbers(body, operand, known) for operand in row.operands)
    if x is None or y is None:
        return None
    if row.op is not Op.MUL:
        sign = 1 if row.op is Op.ADD else -1
        sums = tuple(a + sign * b for a, b in zip(x.shifts, y.shifts, strict=True))
        return Numbers(x.stride + sign * y.stride, sums)
    x, y = (x, y) if not y.stride else (y, x)
    if y.stride or len(set(y.shifts)) > 1:
        return None
    by = y.shifts[0]
    return Numbers(x.stride * by, tuple(a * by for a in x.shifts))


def _of_carry(
    loop: Loop, position: int, read: Sequence[Sequence[int]], known: Mapping[int, Numbers]
) -> Written | None:
    body = loop.body
    before, after = int(body.inputs[1 + position]), int(body.outputs[position])
    shown = [k for k in body.outputs.tolist() if k in (before, after)]
    start, last, gone = before, after, {before, after}
    if len(shown) > 1 or before == after:
        return None
    if body.rows[after].op is Op.RESHAPE:
        last = body.rows[after].operands[0]
        flat = [k for k in read[before] if body.rows[k].op is Op.RESHAPE]
        if not flat or list(read[before]) != flat[:1] or read[after]:
            return None
        start = flat[0]
        gone |= {start, last}
    chain = _chain(body, start, last)
    if not chain or {start, *chain} & set(body.outputs.tolist()) - {after}:
        return None
    type, axis = body.rows[last].type, body.rows[last].attrs[0]
    places = [_numbers(body, body.rows[k].operands[1], known) for k in chain]
    if body.rows[start].type != type or any(body.rows[k].attrs[0] != axis for k in chain):
        return None
    links, strides = list[Link](), set[int]()
    for k, at in zip(chain, places, strict=True):
        if at is None or len(body.rows[body.rows[k].operands[1]].type.shape) > 1:
            return None
        strides.add(at.stride)
        one = not body.rows[body.rows[k].operands[1]].type.shape
        links += [Link(k, None if one else j, s, 0) for j, s in enumerate(at.shifts)]
    stride = strides.pop()
    if strides or not stride or len({x.first % stride for x in links}) < len(links):
        return None
    found = Written(position, axis, stride, type, links, {}, {}, gone | set(chain))
    if len(links) > MOST_ROWS or not all(_within(found, loop, x.first) for x in links):
        return None
    reads = [
        (k, state, chain[:at])
        for at, state in enumerate([start, *chain])
        for k in read[state]
        if k not in gone | set(chain)
    ]
    return _with_reads(loop, found, reads, known)


def _chain(body: Tape, start: int, last: int) -> list[int]:
    """The rows that write, one after the other, from one state of an array to another."""
    chain, k = list[int](), last
    while k != start:
        row = body.rows[k]
        if row.op is not Op.SCATTER or row.operands[0] in row.operands[1:]:
            return []
        chain.append(k)
        k = row.operands[0]
    return chain[::-1]


def _within(w: Written, loop: Loop, first: int) -> bool:
    """Whether there is a row where each step looks."""
    n = w.type.shape[w.axis]
    return 0 <= first < n and 0 <= first + w.stride * (loop.length - 1) < n


def _with_reads(
    loop: Loop,
    w: Written,
    reads: Sequence[tuple[int, int, Sequence[int]]],
    known: Mapping[int, Numbers],
) -> Written | None:
    """With all reads: their rows, the state of the array that they read, and what has written it
    in the same step."""
    body, links, n = loop.body, list(w.links), w.type.shape[w.axis]
    for k, state, done in reads:
        row = body.rows[k]
        if row.op is not Op.GATHER or row.attrs != (w.axis,) or row.operands[0] != state:
            return None
        at = _numbers(body, row.operands[1], known)
        if at is None or body.rows[row.operands[1]].type.shape or at.stride != w.stride:
            return None
        (place,) = at.shifts
        own = next((j for j, x in enumerate(links) if not (x.first - place) % w.stride), None)
        far = -1 if own is None else (links[own].first - place) // w.stride
        if own is None or far < 0 or (far == 0 and links[own].write not in done):
            if not _within(w, loop, place):
                return None
            w.unwritten[k] = place
        elif far > MOST_BEFORE or not 0 <= place < n:
            return None
        else:
            w.read[k] = own, far
            links[own] = links[own]._replace(before=max(far, links[own].before))
    return w._replace(links=links)


# --- the new loop --------------------------------------------------------------------------------


def _row_type(w: Written) -> Type:
    return w.type.with_shape((*w.type.shape[: w.axis], *w.type.shape[w.axis + 1 :]))


def _rewritten(
    b: Builder, tape: Tape, row: Row, written: list[Written], env: dict[int, int]
) -> dict[int, int]:
    """The new loop; its results by the numbers that they had."""
    loop, gone = read_loop(tape, row), {w.position for w in written}
    carry, xs, captured = ([env[x] for x in g] for g in (loop.carry, loop.xs, loop.captured))
    kept = [at for at in range(len(carry)) if at not in gone]
    arrays = [b.reshape_to(carry[w.position], w.type.shape) for w in written]
    rows = [
        _row_at(b, array, w, link.first - w.stride * (1 + j))
        for w, array in zip(written, arrays, strict=True)
        for link in w.links
        for j in range(link.before)
    ]
    own = [*(carry[at] for at in kept), *rows]
    xs += [
        _unwritten(b, array, w, first, loop.length)
        for w, array in zip(written, arrays, strict=True)
        for first in w.ahead
    ]
    body = _edited(loop, kept, written)
    attrs = loop_attrs(b.body(body), loop.length, len(own), len(xs), loop.guard)
    new = b.append(Op.LOOP, (*own, *xs, *captured), attrs, TUPLE)
    types = loop.body.output_types
    numbers = {at: j for j, at in enumerate(kept)}
    for y in range(loop.n_ys):
        numbers[len(carry) + y] = len(own) + y
    found = {}
    for at, number in numbers.items():
        type = (
            types[at] if at < len(carry) else types[at].with_shape((loop.length, *types[at].shape))
        )
        found[at] = b.emit(Op.RESULT, (new,), (number,), type)
    number = len(own) + loop.n_ys
    for w, array in zip(written, arrays, strict=True):
        part = _row_type(w)
        steps = part.with_shape((loop.length, *part.shape))
        for link in w.links:
            rows_of = b.emit(Op.RESULT, (new,), (number,), steps)
            array, number = _in_place(b, array, rows_of, w, link.first), number + 1
        found[w.position] = b.reshape_to(array, types[w.position].shape)
    return found


def _row_at(b: Builder, array: int, w: Written, place: int) -> int:
    starts, steps, shape = _cut(w._replace(stride=1), place, 1)
    row = b.slice(array, attrs=(*starts, *steps), type=b.type(array).with_shape(shape))
    return b.reshape_to(row, _row_type(w).shape)


def _unwritten(b: Builder, array: int, w: Written, first: int, length: int) -> int:
    """The rows that steps find where nothing is written yet."""
    starts, steps, shape = _cut(w, first, length)
    rows = b.slice(array, attrs=(*starts, *steps), type=b.type(array).with_shape(shape))
    order = (w.axis, *(a for a in range(len(shape)) if a != w.axis))
    return b.transpose(rows, attrs=order) if w.axis else rows


def _in_place(b: Builder, array: int, rows: int, w: Written, first: int) -> int:
    """The array with the rows that the steps have given."""
    shape, rank = w.type.shape, len(w.type.shape)
    starts, steps, _ = _cut(w, first, b.type(rows).shape[0])
    if w.axis:
        order = (*range(1, w.axis + 1), 0, *range(w.axis + 1, rank))
        rows = b.transpose(rows, attrs=order)
    if b.type(rows).shape == shape and abs(w.stride) == 1:
        same = w.stride == 1
        return rows if same else b.slice(rows, attrs=(*starts, *steps), type=b.type(rows))
    return b.update(array, rows, attrs=(*starts, *steps))


def _cut(
    w: Written, first: int, length: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Starts, steps and shape of the rows of all steps."""

    def along(n: int, others: Sequence[int]) -> tuple[int, ...]:
        return tuple(n if a == w.axis else other for a, other in enumerate(others))

    rank = len(w.type.shape)
    return along(first, [0] * rank), along(w.stride, [1] * rank), along(length, w.type.shape)


def _edited(loop: Loop, kept: Sequence[int], written: list[Written]) -> Tape:
    """The body: (i, carry, rows before, xs, rows as they were, captured) -> (carry, rows before,
    ys, rows)."""
    body, n, b = loop.body, len(loop.carry), Builder()
    inputs, outputs = body.inputs.tolist(), body.outputs.tolist()
    env = {k: b.input(body.rows[k].type) for k in (inputs[0], *(inputs[1 + at] for at in kept))}
    before = [
        [[b.input(_row_type(w)) for _ in range(link.before)] for link in w.links] for w in written
    ]
    fixed = 1 + n + len(loop.xs)
    env |= {k: b.input(body.rows[k].type) for k in inputs[1 + n : fixed]}
    for w, links in zip(written, before, strict=True):
        ahead = {first: b.input(_row_type(w)) for first in w.ahead}
        env |= {k: links[own][far - 1] for k, (own, far) in w.read.items() if far}
        env |= {k: ahead[first] for k, first in w.unwritten.items()}
    env |= {k: b.input(body.rows[k].type) for k in inputs[fixed:]}
    left = set[int]().union(*(w.gone for w in written))
    same = {k: (w, w.links[own]) for w in written for k, (own, far) in w.read.items() if not far}
    for k in range(len(body)):
        if k in same:  # what the step itself has written
            w, link = same[k]
            env[k] = _row(b, env[body.rows[link.write].operands[2]], w, link)
        elif k not in env and k not in left:
            env[k] = b.copy_row(body, k, env)
    new, shifted = list[int](), list[int]()
    for w, links in zip(written, before, strict=True):
        for link, rows in zip(w.links, links, strict=True):
            row = _row(b, env[body.rows[link.write].operands[2]], w, link)
            new.append(row)
            shifted += [row, *rows][: len(rows)]
    first = [env[outputs[at]] for at in kept]
    return b.tape([*first, *shifted, *(env[k] for k in outputs[n:]), *new])


def _row(b: Builder, values: int, w: Written, link: Link) -> int:
    """The row of a link, of one or several that are written at once."""
    if link.part is not None:
        starts, _, shape = _cut(w, link.part, 1)
        ones = [1] * len(shape)
        values = b.slice(values, attrs=(*starts, *ones), type=b.type(values).with_shape(shape))
    return b.reshape_to(values, _row_type(w).shape)
