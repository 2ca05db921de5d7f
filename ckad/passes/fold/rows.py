"""Constants: rows that depend on nothing but constants are computed now; trivial rows vanish.

Only rewrites that keep every bit are made: ``x * 1`` and ``-(-x)`` go, ``x + 0`` stays (it turns
-0.0 into 0.0). A matrix product over an axis of one is a product of elements, and keeps its -0.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from ckad.passes.fold.identities import IDENTITIES, UNIFORM, array, same_type, uniform
from ckad.passes.rewrite import Rewrite, rebuild
from ckad.rules import RULES
from ckad.tape.builder import Builder
from ckad.tape.ops import BY_CODE, OPS, Group, Op, is_elementwise
from ckad.tape.tape import Row, Tape

#: Results with more elements than this are left to the program.
LARGEST = 4096
_GROUPS = (Group.ELEMENTWISE, Group.SHAPE, Group.INDEX, Group.REDUCE)
#: Rows that are computed now if their operands are known; a repeated scalar stays one.
_COMPUTED = {op for op in BY_CODE if OPS[op].group in _GROUPS}
_CONSTANT = _COMPUTED - {Op.BROADCAST}


def fold(tape: Tape) -> Tape:
    """``tape`` with constant rows evaluated and rows without effect removed."""
    return rebuild(tape, folding(tape), fold)


def folding(tape: Tape) -> Rewrite:
    """The value of a row of ``tape`` that is constant or without effect, else None.

    An array that is read between two writes at the same places is there anyway, and takes the
    second one where it is: with two writes to the array before it, that would be copied.
    """
    if tape.ops.count(Op.SCATTER) < 2:
        return fold_row
    arrays: list[int] = []  # what each row is but for its shape
    for k, row in enumerate(tape.rows):
        arrays.append(arrays[row.operands[0]] if row.op is Op.RESHAPE else k)
    twice = {arrays[row.operands[0]] for row in tape.rows if row.op is Op.SCATTER}
    readers: dict[int, list[int]] = {k: [] for k in twice if tape.rows[k].op is Op.SCATTER}
    for k, row in enumerate(tape.rows):
        for x in row.operands if row.op is not Op.RESHAPE else ():
            if arrays[x] in readers:
                readers[arrays[x]].append(k)
    for k in tape.outputs.tolist():
        readers.get(arrays[k], []).append(len(tape))

    def is_read(b: Builder, x: int, env: list[int]) -> bool:
        """By another row than the one that is rewritten, so far as those before are left."""
        for k in readers[x]:
            operands = b.rows[env[k]].operands if k < len(env) else ()
            if k > len(env) or any(_unshaped(b, y) == _unshaped(b, env[x]) for y in operands):
                return True
        return False

    def rewrite(b: Builder, row: Row, env: list[int]) -> int | None:
        array = arrays[row.operands[0]] if row.op is Op.SCATTER else -1
        if array in readers and is_read(b, array, env):
            return _read_back(b, row, [env[x] for x in row.operands])
        return fold_row(b, row, env)

    return rewrite


def _unshaped(b: Builder, x: int) -> int:
    return _unshaped(b, b.rows[x].operands[0]) if b.rows[x].op is Op.RESHAPE else x


def fold_row(b: Builder, row: Row, env: list[int]) -> int | None:
    """The value of a row that is constant or without effect, else None."""
    op, operands = row.op, row.operands
    if 0 in row.type.shape and op in _COMPUTED:
        return b.full(row.type, 0)  # without elements there is nothing to compute
    rule = _TRIVIAL.get(op)
    if rule is not None:
        same = rule(b, row, [env[x] for x in operands])
        if same is not None:
            return same
    if op not in _CONSTANT:
        return None
    rows = b.rows
    for x in operands:
        if rows[env[x]].op not in UNIFORM:
            return None  # most rows end here
    return _constant(b, row, [env[x] for x in operands])


def is_final(b: Builder) -> bool:
    """Whether no rule, as is easily seen, has more to do with the rows that rules have emitted."""
    return all(_is_final(b, row) for row in b.emitted)


def _is_final(b: Builder, row: Row) -> bool:
    if row.op is Op.CONST:
        return True
    others = _NOT_FINAL_OF.get(row.op)
    if others is None or 0 in row.type.shape:
        return False
    return all(b.rows[x].op not in others for x in row.operands)


def _constant(b: Builder, row: Row, operands: list[int]) -> int | None:
    evaluate = RULES[row.op].evaluate
    if evaluate is None:
        return None
    if is_elementwise(row.op):
        numbers = [uniform(b, x) for x in operands]
        if all(u is not None for u in numbers):
            try:
                scalar = evaluate(row.type.with_shape(()), row.attrs, *numbers)
            except IndexError:
                return None  # the program itself stops, if it comes there
            return b.broadcast_to(b.const(np.asarray(scalar, row.type.numpy)), row.type.shape)
    arrays = [array(b, x) for x in operands]
    if row.type.size > LARGEST or any(a is None for a in arrays):
        return None
    try:
        return b.const(np.asarray(evaluate(row.type, row.attrs, *arrays), row.type.numpy))
    except IndexError:
        return None  # the program itself stops, if it comes there


def _broadcast(b: Builder, row: Row, xs: list[int]) -> int | None:
    """A number is spread at once, as one that a loop over elements need not read."""
    inner = b.rows[xs[0]]
    if inner.op is Op.BROADCAST and not b.type(inner.operands[0]).shape:
        return b.broadcast_to(inner.operands[0], row.type.shape)
    return same_type(b, row, xs)


def _reshape(b: Builder, row: Row, xs: list[int]) -> int | None:
    inner = b.rows[xs[0]]
    source = inner.operands[0] if inner.op is Op.RESHAPE else xs[0]
    if b.type(source) == row.type or source != xs[0]:
        return b.reshape_to(source, row.type.shape)
    return None


def _select(b: Builder, row: Row, xs: list[int]) -> int | None:
    """A choice by the same mask within a choice is made already.

    One between a row and itself stays: it is how a result depends on a check (``control/checks``).
    """
    c, x, y = xs
    u = uniform(b, c)
    if u is not None:
        return x if u else y
    yes, no = b.rows[x], b.rows[y]
    if yes.op is Op.SELECT and yes.operands[0] == c:
        x = yes.operands[1]
    if no.op is Op.SELECT and no.operands[0] == c:
        y = no.operands[2]
    return b.select(c, x, y) if [c, x, y] != xs else None


def _slice(b: Builder, row: Row, xs: list[int]) -> int | None:
    inner = b.rows[xs[0]]
    is_put = inner.op in (Op.PAD, Op.UPDATE) and inner.attrs == row.attrs
    if is_put and b.type(inner.operands[-1]) == row.type:
        return inner.operands[-1]
    rank = len(row.attrs) // 2
    part = _Part(row.attrs[:rank], row.attrs[rank:], row.type.shape)
    return xs[0] if part.is_all_of(b, xs[0]) else _taken_before(b, part, xs[0])


class _Part(NamedTuple):
    """What a SLICE takes of each axis."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    shape: tuple[int, ...]

    def of(self, axes: Sequence[int]) -> _Part:
        return _Part(*(tuple(given[k] for k in axes) for given in self))

    def is_all_of(self, b: Builder, x: int) -> bool:
        return b.type(x).shape == self.shape and not any(self.starts) and {*self.steps} <= {1}

    def take(self, b: Builder, x: int) -> int:
        if self.is_all_of(b, x):
            return x
        before = _taken_before(b, self, x)
        if before is not None:
            return before
        type = b.type(x).with_shape(self.shape)
        return b.slice(x, attrs=(*self.starts, *self.steps), type=type)

    def places(self) -> tuple[np.ndarray, ...]:
        spans = zip(*self, strict=True)
        return np.ix_(*(start + step * np.arange(n) for start, step, n in spans))


def _taken_before(b: Builder, part: _Part, x: int) -> int | None:
    """A part of what is transposed, or picked at known places, is taken before that is done."""
    row, rank = b.rows[x], len(part.shape)
    if row.op is Op.TRANSPOSE:
        inner = part.of([row.attrs.index(k) for k in range(rank)])
        return _transposed(b, inner.take(b, row.operands[0]), row.attrs)
    if row.op is not Op.GATHER or b.rows[row.operands[1]].op is not Op.CONST:
        return None
    (axis,), (source, index) = row.attrs, row.operands
    places = b.constants[b.rows[index].attrs[0]]
    picked, shape = range(axis, axis + places.ndim), b.type(source).shape
    rest = part.of([k for k in range(rank) if k not in picked])
    whole = _Part((0,), (1,), (shape[axis],))
    outer = _Part(*(x[:axis] + y + x[axis:] for x, y in zip(rest, whole, strict=True)))
    chosen = b.const(places[part.of(picked).places()])
    return b.gather(outer.take(b, source), chosen, attrs=(axis,))


def _transpose(b: Builder, row: Row, xs: list[int]) -> int | None:
    """A transpose of a transpose is one of what that is of."""
    order, x, inner = row.attrs, xs[0], b.rows[xs[0]]
    if inner.op is Op.TRANSPOSE:
        order, x = tuple(inner.attrs[a] for a in order), inner.operands[0]
    is_other = x != xs[0] or _keeps_places(b, x, order)
    return _transposed(b, x, order) if is_other else None


def _keeps_places(b: Builder, x: int, order: Sequence[int]) -> bool:
    """Whether axes of length one alone are moved."""
    shape = b.type(x).shape
    longer = [a for a in order if shape[a] != 1]
    return longer == sorted(longer)


def _transposed(b: Builder, x: int, order: Sequence[int]) -> int:
    if _keeps_places(b, x, order):
        return b.reshape_to(x, tuple(b.type(x).shape[a] for a in order))
    return b.transpose(x, attrs=tuple(order))


def _gather(b: Builder, row: Row, xs: list[int]) -> int | None:
    """What has just been written to where it is read."""
    written = b.rows[xs[0]]
    if written.op is not Op.SCATTER or written.operands[1] != xs[1]:
        return None
    axis, unique = written.attrs
    if (axis,) != row.attrs or not (unique or b.type(xs[1]).size == 1):
        return None
    return b.reshape_to(written.operands[2], row.type.shape)


def _read_back(b: Builder, row: Row, xs: list[int]) -> int | None:
    """What is read at the places where it is written is there."""
    x, index, written = xs
    read = b.rows[written]
    same = read.op is Op.GATHER and read.operands == (x, index) and read.attrs == row.attrs[:1]
    return x if same else None


def _scatter(b: Builder, row: Row, xs: list[int]) -> int | None:
    """What is written over at the same places is not written."""
    same = _read_back(b, row, xs)
    if same is not None:
        return same
    x, index, written = xs
    before = b.rows[x]
    if before.op is not Op.SCATTER or before.operands[1] != index:
        return None
    if before.attrs != row.attrs or b.type(before.operands[2]) != b.type(written):
        return None
    if _is_read(b, x):
        return None
    return b.scatter(before.operands[0], index, written, attrs=row.attrs)


def _update(b: Builder, row: Row, xs: list[int]) -> int | None:
    """A part written back to where it came from, or over what was written there before."""
    x, part = xs
    inner, before = b.rows[part], b.rows[x]
    if inner.op is Op.SLICE and inner.operands == (x,) and inner.attrs == row.attrs:
        return x
    same = before.op is Op.UPDATE and before.attrs == row.attrs
    if same and b.type(before.operands[1]) == b.type(part) and not _is_read(b, x):
        return b.update(before.operands[0], part, attrs=row.attrs)
    return None


def _is_read(b: Builder, x: int) -> bool:
    """Whether a row reads ``x`` so far: if what ``x`` was written into were kept for a later write,
    both would be needed at once, and one would be a copy of the whole array."""
    return any(x in row.operands for row in islice(b.rows, x + 1, None))


def _untransposed(b: Builder, row: Row, xs: list[int]) -> int | None:
    """Factors that are transposed for the product are read where they lie."""
    turned = [_turned(b, x) for x in xs]
    if all(y is None for y in turned):
        return None
    factors = [x if y is None else y for x, y in zip(xs, turned, strict=True)]
    attrs = [t if y is None else 1 - t for t, y in zip(row.attrs, turned, strict=True)]
    return b.matmul(*factors, attrs=attrs)


def _negated_product(b: Builder, row: Row, xs: list[int]) -> int | None:
    """The sign of a factor is that of the product, to the bit."""
    for at, x in enumerate(xs):
        seen = b.rows[x]
        inner = b.rows[seen.operands[0]] if seen.op is Op.RESHAPE else seen
        if inner.op is Op.NEG:
            factors = list(xs)
            factors[at] = b.reshape_to(inner.operands[0], seen.type.shape)
            return b.neg(b.matmul(*factors, attrs=row.attrs))
    return None


def _turned(b: Builder, x: int) -> int | None:
    """What a stack of matrices is the transpose of, matrix by matrix, if it is known as one."""
    batch, m, n = b.type(x).shape
    row = b.rows[b.rows[x].operands[0]] if b.rows[x].op is Op.RESHAPE else b.rows[x]
    if row.op is not Op.TRANSPOSE:
        return None
    shape = b.type(row.operands[0]).shape
    order = [a for a in row.attrs if shape[a] != 1]
    axes = sorted(order)
    for k in range(len(axes)):
        # order is [those of the stack, second group, first group]
        for cut in range(k + 1, len(axes)):
            groups = axes[:k], axes[cut:], axes[k:cut]
            sizes = [math.prod(shape[a] for a in group) for group in groups]
            if order == [a for group in groups for a in group] and sizes == [batch, m, n]:
                return b.reshape_to(row.operands[0], (batch, n, m))
    return None


def _matmul(b: Builder, row: Row, xs: list[int]) -> int | None:
    """An outer product is a product of elements, which what reads it can compute by itself."""
    shapes = [b.type(x).shape for x in xs]
    if shapes[0][1 if row.attrs[0] else 2] != 1:
        return _untransposed(b, row, xs) or _negated_product(b, row, xs)
    columns = b.reshape_to(xs[0], (*row.type.shape[:2], 1))
    rows = b.reshape_to(xs[1], (row.type.shape[0], 1, row.type.shape[2]))
    return b.mul(*(b.broadcast_to(x, row.type.shape) for x in (columns, rows)))


def _sum_of_one(b: Builder, row: Row, xs: list[int]) -> int | None:
    return b.reshape_to(xs[0], row.type.shape) if b.type(xs[0]).size == row.type.size else None


_TRIVIAL: dict[Op, Callable[[Builder, Row, list[int]], int | None]] = {
    **IDENTITIES,
    Op.MATMUL: _matmul,
    Op.BROADCAST: _broadcast,
    Op.RESHAPE: _reshape,
    Op.SELECT: _select,
    Op.SLICE: _slice,
    Op.GATHER: _gather,
    Op.SCATTER: _scatter,
    Op.UPDATE: _update,
    Op.SUM: _sum_of_one,
    Op.TRANSPOSE: _transpose,
}
#: Rows that no rule folds unless one of their operands is such a row.
_ARITHMETIC, _MOVED = (*UNIFORM, Op.NEG), (*UNIFORM, Op.RESHAPE)
_NOT_FINAL_OF: dict[Op, tuple[Op, ...]] = {
    **dict.fromkeys((Op.ADD, Op.SUB, Op.MUL, Op.NEG), _ARITHMETIC),
    **dict.fromkeys((Op.RESHAPE, Op.BROADCAST), _MOVED),
}
