"""A loop that writes an array twice in each step as two loops, of one write each.

``c[i, i:] = c[i:, i] = v`` puts a vector into a row and a column. Where the second vector is
computed of nothing that steps change, and no step writes with its first write what an earlier one
wrote with its second, all second writes may follow all first ones: two loops each of whose
iterations write places of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ckad.passes.dce import dce
from ckad.passes.liveness import readers_of
from ckad.passes.rewrite import with_outputs
from ckad.rules import RULES
from ckad.tape.builder import Builder
from ckad.tape.control import UNGUARDED, Loop
from ckad.tape.extents import Bound, Masks
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.tape import Tape
from ckad.tape.types import DType

#: Longer loops are not looked at: each step is compared with each other one.
LONGEST = 1 << 12


class _Line(NamedTuple):
    """What a write puts into a matrix in each step: a part of a row or a column."""

    before: int  # the matrix that is written to
    axis: int  # of the place
    place: np.ndarray  # one number for each step
    first: np.ndarray  # the part: from here
    last: np.ndarray  # to before this
    reads: frozenset[int]  # the rows that read the matrix and only keep what is there


class Parts(NamedTuple):
    """Two loops in the place of one."""

    first: Loop  # all of it but one write
    second: Loop  # that write; to be given what the first leaves of what it changes
    changed: int  # which of the carry that is


def fission(loop: Loop) -> Parts | None:
    """A loop without the last write to one of its carry, and that alone; None if there is none that
    may come behind all of the rest."""
    if loop.guard != UNGUARDED or loop.length > LONGEST:
        return None
    try:
        places = _Places(loop)
    except IndexError:
        return None  # the program itself stops there
    for c, out in enumerate(loop.body.outputs.tolist()[: len(loop.carry)]):
        second = places.line(out)
        if second is not None and places.may_be_parted(c, out, second):
            return _parted(loop, c, out, second)
    return None


class _Places:
    """The integers of a body that follow from the number of the step, and what is written there."""

    def __init__(self, loop: Loop) -> None:
        self.loop, self.body, self.rows = loop, loop.body, loop.body.rows
        self.masks = Masks(self.rows, self.body.constants)
        self.readers = readers_of(self.rows)
        inputs = self.body.inputs.tolist()
        self.carried = inputs[1 : 1 + len(loop.carry)]
        self.known: Mapping[int, np.ndarray] = self._known(inputs[0])

    def _known(self, index: int) -> dict[int, np.ndarray]:
        n = self.loop.length
        found = {index: np.arange(n)}
        for k, (op, operands, attrs, type, _) in enumerate(self.rows):
            if type.shape or type.dtype is not DType.I64:
                continue
            if op is Op.CONST:
                found[k] = np.broadcast_to(self.body.constants[attrs[0]], (n,))
            elif operands and is_elementwise(op) and all(x in found for x in operands):
                evaluate = RULES[op].evaluate
                assert evaluate is not None
                given = [found[x] for x in operands]
                if op in (Op.FLOORDIV, Op.MOD) and not np.all(given[1]):
                    continue
                found[k] = np.asarray(evaluate(type.with_shape((n,)), attrs, *given))
        return found

    def line(self, k: int) -> _Line | None:
        """What row k puts into another row of a matrix; None if it is not known where."""
        op, operands, attrs, type, _ = self.rows[k]
        if op is not Op.SCATTER or len(type.shape) != 2:
            return None
        before, index, new = operands
        if index not in self.known:
            return None
        axis, n = attrs[0], type.shape[1 - attrs[0]]
        first, last = np.zeros(self.loop.length, np.int64), np.full(self.loop.length, n)
        reads = frozenset[int]()
        if self.rows[new].op is Op.SELECT and self._keeps(before, k, new):
            mask, _, kept = self.rows[new].operands
            bounds = self._bounds(mask, n)
            if bounds is None:
                return None
            (first, last), reads = bounds, frozenset((kept,))
        return _Line(before, axis, self.known[index], first, last, reads)

    def _keeps(self, before: int, k: int, new: int) -> bool:
        """Whether what a mask does not choose stays what it is; nothing else may look at that."""
        kept = self.rows[new].operands[2]
        op, operands, attrs, *_ = self.rows[kept]
        _, index, _ = self.rows[k].operands
        same = op is Op.GATHER and operands == (before, index) and attrs[0] == self.rows[k].attrs[0]
        return same and self.readers[kept] == [new] and self.readers[new] == [k]

    def _bounds(self, mask: int, n: int) -> tuple[np.ndarray, np.ndarray] | None:
        spans = self.masks.spans(mask)
        if spans is None or len(spans) != 1 or not self.masks.is_exact(mask):
            return None
        first, last = np.zeros(self.loop.length, np.int64), np.full(self.loop.length, n)
        for bound in (*spans[0].lows, *spans[0].highs):
            if bound.row not in self.known:
                return None
        for bound in spans[0].lows:
            first = np.maximum(first, self._number(bound))
        for bound in spans[0].highs:
            last = np.minimum(last, self._number(bound))
        return first, last

    def _number(self, bound: Bound) -> np.ndarray:
        return bound.sign * self.known[bound.row] + bound.shift

    def may_be_parted(self, c: int, out: int, second: _Line) -> bool:
        """Whether all of these writes may come after all of the others to their matrix."""
        if self.readers[out] or self.body.outputs.tolist().count(out) != 1:
            return False
        at, firsts, kept = second.before, list[_Line](), set(second.reads)
        while at != self.carried[c]:
            line = self.line(at)
            if line is None:
                return False
            firsts.append(line)
            kept |= line.reads
            at = line.before
        if not firsts or not self._reads_nothing_else(c, out, kept):
            return False
        return self._is_of_itself(out, second) and not any(_meet(x, second) for x in firsts)

    def _reads_nothing_else(self, c: int, out: int, kept: set[int]) -> bool:
        """Whether all that reads the matrix writes to it, or keeps what is there."""
        k = out
        while k != self.carried[c]:
            after, k = k, self.rows[k].operands[0]
            if not set(self.readers[k]) <= kept | {after} or k in self.body.outputs:
                return False
        return True

    def _is_of_itself(self, out: int, second: _Line) -> bool:
        """Whether what is written follows from nothing that is carried."""
        before, *pending = self.rows[out].operands
        seen = {before, *second.reads}
        while pending:
            k = pending.pop()
            if k in self.carried:
                return False
            if k not in seen:
                seen.add(k)
                pending += self.rows[k].operands
        return True


def _meet(first: _Line, second: _Line) -> bool:
    """Whether a step writes with the first what an earlier one has written with the second."""
    p, q = first.place[None, :], second.place[:, None]  # later steps along the second axis
    (low, high), (start, stop) = (
        (first.first[None, :], first.last[None, :]),
        (second.first[:, None], second.last[:, None]),
    )
    if first.axis == second.axis:
        common = (p == q) & (np.maximum(low, start) < np.minimum(high, stop))
    else:
        common = (low <= q) & (q < high) & (start <= p) & (p < stop)
    return bool(np.triu(common, 1).any())


def _parted(loop: Loop, c: int, out: int, second: _Line) -> Parts:
    outputs = loop.body.outputs.tolist()
    without = dce(with_outputs(loop.body, [*outputs[:c], second.before, *outputs[c + 1 :]]))
    only = loop._replace(body=_only(loop, c, out, second), carry=(loop.carry[c],))
    return Parts(loop._replace(body=without), only, c)


def _only(loop: Loop, c: int, out: int, second: _Line) -> Tape:
    """The body that writes to what it is given."""
    body, inputs = loop.body, loop.body.inputs.tolist()
    others = {k for at, k in enumerate(inputs[1 : 1 + len(loop.carry)]) if at != c}
    b, env = Builder(), dict[int, int]()
    for k in inputs:
        if k not in others:
            env[k] = b.input(body.rows[k].type)
    env[second.before] = env[inputs[1 + c]]
    needed, pending = set[int](), [out]
    while pending:
        k = pending.pop()
        if k not in needed and k not in env:
            needed.add(k)
            pending += body.rows[k].operands
    for k in sorted(needed):
        b.where = body.sources[body.rows[k].source]
        env[k] = b.copy_row(body, k, env)
    return b.tape([env[out]])
